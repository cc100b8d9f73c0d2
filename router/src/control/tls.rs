//! The sections `sslProfile` of the running router: read when something first uses them, and again on reload, by
//! management, and when their files change.

use super::config::{Config, ConnectorConfig, ListenerConfig, SslProfileConfig};
use super::handle::ShardsHandle;
use crate::log;
use crate::log::{Level, Module};
use crate::shard::mailbox::Message;
use crate::shard::tls::{TlsRole, TlsSettings};
use crate::tls::{Peers, Profile, ProfileFiles, ProfileStatus};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How often the files are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The profiles. Clones are the same ones; they stay on the control thread.
#[derive(Clone)]
pub(super) struct TlsProfiles(Rc<RefCell<State>>);

struct State {
    configs: Vec<SslProfileConfig>,
    /// Those in use.
    used: Vec<Used>,
}

struct Used {
    name: String,
    /// A listener's `trustedCertsFile`, in the place of `caCertFile`.
    trusted: Option<PathBuf>,
    profile: Arc<Profile>,
}

impl TlsProfiles {
    /// The profiles that a file has.
    pub(super) fn new(config: &Config) -> Self {
        Self(Rc::new(RefCell::new(State { configs: config.ssl_profiles.clone(), used: Vec::new() })))
    }

    /// The profile of this name, read if it wasn't yet.
    fn profile(&self, name: &str, trusted: Option<&Path>) -> Result<Arc<Profile>, String> {
        let mut state = self.0.borrow_mut();
        let found = state.used.iter().find(|used| used.name == name && used.trusted.as_deref() == trusted);
        if let Some(used) = found {
            return Ok(used.profile.clone());
        }
        let config = state.configs.iter().find(|config| config.name == name);
        let config = config.ok_or_else(|| format!("there is no sslProfile '{name}'"))?;
        let profile = Profile::load(files(config, trusted))
            .map_err(|reason| format!("sslProfile '{name}': {reason}"))?;
        if let Some(warning) = &profile.current().warning {
            log!(Module::Server, Level::Warning, "sslProfile '{name}': {warning}");
        }
        state.used.push(Used {
            name: name.to_owned(),
            trusted: trusted.map(Path::to_path_buf),
            profile: profile.clone(),
        });
        Ok(profile)
    }

    /// How a listener's connections are encrypted; `None`: they aren't.
    ///
    /// # Errors
    /// Its profile can't be used: a sentence for the user.
    pub(super) fn of_listener(&self, listener: &ListenerConfig) -> Result<Option<Arc<TlsSettings>>, String> {
        let Some(name) = &listener.ssl_profile else {
            if listener.is_tls_required {
                return Err("'requireSsl' is set without 'sslProfile'".to_owned());
            }
            return Ok(None);
        };
        let profile = self.profile(name, listener.trusted_certs_file.as_deref())?;
        let is_external = listener.sasl_mechanisms.iter().any(|mechanism| mechanism == "EXTERNAL");
        let peers = match (is_external, profile.files().ca_cert_file) {
            (true, _) => Peers::MustShow,
            (false, Some(_)) if listener.is_authentication_required => Peers::MayShow,
            (false, _) => Peers::Unasked,
        };
        profile.current().server(peers)?;
        let role = TlsRole::Server { is_required: listener.is_tls_required, peers };
        Ok(Some(Arc::new(TlsSettings { profile, role })))
    }

    /// How a connector's connections are encrypted; `None`: they aren't.
    ///
    /// # Errors
    /// Its profile can't be used: a sentence for the user.
    pub(super) fn of_connector(
        &self,
        connector: &ConnectorConfig,
    ) -> Result<Option<Arc<TlsSettings>>, String> {
        let Some(name) = &connector.ssl_profile else { return Ok(None) };
        let role = TlsRole::Client {
            host: connector.host.clone(),
            is_name_verified: connector.is_hostname_verified,
        };
        Ok(Some(Arc::new(TlsSettings { profile: self.profile(name, None)?, role })))
    }

    /// Makes a profile of another section of the same name, or adds it.
    ///
    /// # Errors
    /// Its files can't be used, and everything is as it was: a sentence for the user.
    pub(super) fn set(&self, config: SslProfileConfig, shards: &ShardsHandle) -> Result<(), String> {
        for (profile, trusted) in self.used(&config.name) {
            let new = files(&config, trusted.as_deref());
            let oldest = new.oldest_valid_ordinal;
            reread(&config.name, &profile, Some(new), shards)?;
            shards.send_all(|| Message::RetireTls { profile: profile.clone(), oldest });
        }
        let mut state = self.0.borrow_mut();
        state.configs.retain(|other| other.name != config.name);
        state.configs.push(config);
        Ok(())
    }

    fn used(&self, name: &str) -> Vec<(Arc<Profile>, Option<PathBuf>)> {
        let state = self.0.borrow();
        let its = state.used.iter().filter(|used| used.name == name);
        its.map(|used| (used.profile.clone(), used.trusted.clone())).collect()
    }

    /// Reads all files again, or only those that have changed. The log says what comes of it.
    pub(super) fn reread(&self, only_changed: bool, shards: &ShardsHandle) {
        let all: Vec<(String, Arc<Profile>)> = {
            let state = self.0.borrow();
            state.used.iter().map(|used| (used.name.clone(), used.profile.clone())).collect()
        };
        for (name, profile) in all {
            if !only_changed || profile.has_changed() {
                // What is wrong was told.
                let _told = reread(&name, &profile, None, shards);
            }
        }
    }

    /// What has happened to the profiles of a name, and when its certificate ends; `None`: nothing uses it.
    pub(super) fn status(&self, name: &str) -> Option<(ProfileStatus, Option<i64>)> {
        let used = self.used(name);
        let (profile, _) = used.first()?;
        Some((profile.status(), profile.current().not_after))
    }

    /// What has happened to all profiles in use, by their names.
    pub(super) fn statuses(&self) -> Vec<(String, ProfileStatus, Option<i64>)> {
        let state = self.0.borrow();
        let of = |used: &Used| (used.name.clone(), used.profile.status(), used.profile.current().not_after);
        state.used.iter().filter(|used| used.trusted.is_none()).map(of).collect()
    }

    /// Looks at the files for ever, and reads those again that change.
    pub(super) async fn watch(self, shards: ShardsHandle) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            self.reread(true, &shards);
        }
    }
}

fn reread(
    name: &str,
    profile: &Arc<Profile>,
    files: Option<ProfileFiles>,
    shards: &ShardsHandle,
) -> Result<(), String> {
    let outcome = profile.reread(files);
    match &outcome {
        Ok(()) => {
            log!(
                Module::Server,
                Level::Notice,
                "sslProfile '{name}': its files were read again, for new connections"
            );
            let oldest = profile.files().oldest_valid_ordinal;
            if oldest > 0 {
                shards.send_all(|| Message::RetireTls { profile: profile.clone(), oldest });
            }
        }
        Err(reason) => log!(
            Module::Server,
            Level::Error,
            "sslProfile '{name}' can't be read again: {reason}. What was read before stays in use"
        ),
    }
    outcome
}

/// What a section asks for, as those see it who read it.
fn files(config: &SslProfileConfig, trusted: Option<&Path>) -> ProfileFiles {
    let password = config.password.clone();
    ProfileFiles {
        name: config.name.clone(),
        ciphers: config.ciphers.clone(),
        protocols: config.protocols.clone(),
        ca_cert_file: trusted.map(Path::to_path_buf).or_else(|| config.ca_cert_file.clone()),
        cert_file: config.cert_file.clone(),
        private_key_file: config.private_key_file.clone(),
        password: password.map(|secret| {
            let reveal: crate::tls::profile::Password = Arc::new(move || secret.reveal());
            reveal
        }),
        uid_format: config.uid_format.clone(),
        uid_name_mapping_file: config.uid_name_mapping_file.clone(),
        ordinal: config.ordinal,
        oldest_valid_ordinal: config.oldest_valid_ordinal,
    }
}
