//! TLS of a client on the command line: its options, and the session that they make.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::url::Target;
use crate::tls::{Profile, ProfileFiles, Session};

/// How to connect with TLS. The comments here are `--help`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "TLS")]
pub struct TlsOptions {
    /// Our certificate, in PEM; this and the other options mean TLS, as amqps:// does
    #[arg(long, value_name = "FILE")]
    pub ssl_certificate: Option<PathBuf>,

    /// The key of our certificate, in PEM; without it, it is in the certificate's file
    #[arg(long, value_name = "FILE", requires = "ssl_certificate")]
    pub ssl_key: Option<PathBuf>,

    /// Certificates of the authorities that are trusted, in PEM; without it those that the system trusts
    #[arg(long, value_name = "FILE")]
    pub ssl_trustfile: Option<PathBuf>,

    /// Password of the key; others can see it in the list of processes, so better use a file
    #[arg(long, value_name = "PASSWORD", conflicts_with = "ssl_password_file")]
    pub ssl_password: Option<String>,

    /// File whose first line is the password of the key
    #[arg(long, value_name = "FILE")]
    pub ssl_password_file: Option<PathBuf>,

    /// Don't compare the router's name with its certificate
    #[arg(long)]
    pub ssl_disable_peer_name_verify: bool,
}

/// A session, and who its client is by its certificate.
pub(super) type Identified = (Session, Option<Arc<str>>);

impl TlsOptions {
    fn is_asked_for(&self) -> bool {
        let files = [&self.ssl_certificate, &self.ssl_key, &self.ssl_trustfile, &self.ssl_password_file];
        files.iter().any(|file| file.is_some())
            || self.ssl_password.is_some()
            || self.ssl_disable_peer_name_verify
    }

    /// What encrypts the connection to `target`, and who we are by our certificate; `None`: neither its URL nor an option
    /// asks for that.
    ///
    /// # Errors
    /// A file can't be used: a sentence for the user.
    pub(super) fn session(&self, target: &Target) -> Result<Option<Identified>, String> {
        if !target.is_encrypted && !self.is_asked_for() {
            return Ok(None);
        }
        let (password, file) = (self.ssl_password.clone(), self.ssl_password_file.clone());
        let reveal = move || match (&password, &file) {
            (Some(password), _) => Ok(password.clone()),
            (None, Some(path)) => std::fs::read_to_string(path)
                .map(|text| text.lines().next().unwrap_or_default().to_owned())
                .map_err(|error| format!("can't read {}: {error}", path.display())),
            (None, None) => Ok(String::new()),
        };
        let has_password = self.ssl_password.is_some() || self.ssl_password_file.is_some();
        let files = ProfileFiles {
            ca_cert_file: self.ssl_trustfile.clone(),
            cert_file: self.ssl_certificate.clone(),
            private_key_file: self.ssl_key.clone(),
            password: has_password.then(|| -> crate::tls::profile::Password { Arc::new(reveal) }),
            ..ProfileFiles::default()
        };
        // The profile's words are those of the configuration.
        let in_our_words = |reason: String| {
            [
                ("'caCertFile'", "--ssl-trustfile"),
                ("'certFile'", "--ssl-certificate"),
                ("'privateKeyFile'", "--ssl-key"),
                ("'password'", "--ssl-password"),
                ("the profile", "the command"),
            ]
            .iter()
            .fold(reason, |reason, (theirs, ours)| reason.replace(theirs, ours))
        };
        let material = Profile::load(files).map_err(in_our_words)?.current();
        let config = material.client(!self.ssl_disable_peer_name_verify);
        let session = Session::client(config, &target.host, 0)?;
        Ok(Some((session, material.own_name.clone())))
    }
}
