//! The files of a section `sslProfile`: read, checked, and read again without a restart.

use super::ciphers::{suites, versions};
use super::identity::Naming;
use crate::base::lock::Mutex;
use pkcs8::EncryptedPrivateKeyInfoRef;
use pkcs8::der::pem::PemLabel as _;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use std::collections::HashMap;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

/// Finds the password of a key.
pub type Password = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

/// What a profile is made of.
#[derive(Clone, Default)]
pub struct ProfileFiles {
    /// `name`
    pub name: String,
    /// `ciphers`, in OpenSSL's notation.
    pub ciphers: Option<String>,
    /// `protocols`; empty: all that are served.
    pub protocols: Vec<String>,
    /// `caCertFile`: whom to trust.
    pub ca_cert_file: Option<PathBuf>,
    /// `certFile`: our certificate, then those that it is issued by.
    pub cert_file: Option<PathBuf>,
    /// `privateKeyFile`; `None`: the key is in the file of the certificate.
    pub private_key_file: Option<PathBuf>,
    /// The key's password.
    pub password: Option<Password>,
    /// `uidFormat`
    pub uid_format: Option<String>,
    /// `uidNameMappingFile`
    pub uid_name_mapping_file: Option<PathBuf>,
    /// `ordinal`: the number of this version.
    pub ordinal: u64,
    /// `oldestValidOrdinal`: connections that were made with an earlier version are closed.
    pub oldest_valid_ordinal: u64,
}

impl fmt::Debug for ProfileFiles {
    /// Doesn't show what leads to the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileFiles").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Whether those who connect show a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Peers {
    /// They aren't asked.
    #[default]
    Unasked,
    /// They may; one that they show must be good.
    MayShow,
    /// They must.
    MustShow,
}

/// One version of a profile, ready for use.
#[derive(Debug)]
pub struct Material {
    servers: Result<[Arc<ServerConfig>; 3], String>,
    /// Why nobody can be made to show a certificate.
    no_roots: Option<String>,
    clients: [Arc<ClientConfig>; 2],
    /// How peers are named by their certificates.
    pub naming: Naming,
    /// Who we are to those whom we connect to: the subject of our certificate; `None`: we have none to show.
    pub own_name: Option<Arc<str>>,
    /// The number of this version.
    pub ordinal: u64,
    /// When our certificate ends to be valid, in seconds since 1970; `None`: there is none.
    pub not_after: Option<i64>,
}

impl Material {
    /// What holds for who connects to us.
    ///
    /// # Errors
    /// The profile has no certificate, or nobody to trust where that is needed: a sentence for the user.
    pub fn server(&self, peers: Peers) -> Result<Arc<ServerConfig>, String> {
        let servers = self.servers.as_ref().map_err(String::clone)?;
        if let (Peers::MustShow, Some(reason)) = (peers, &self.no_roots) {
            return Err(reason.clone());
        }
        Ok(servers[peers as usize].clone())
    }

    /// What holds for those whom we connect to. `is_name_verified`: their certificate must be for the host that was named.
    #[must_use]
    pub fn client(&self, is_name_verified: bool) -> Arc<ClientConfig> {
        self.clients[usize::from(is_name_verified)].clone()
    }
}

/// What has happened to a profile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProfileStatus {
    /// How often its files were taken into use.
    pub loads: u64,
    /// How often they couldn't be.
    pub failures: u64,
    /// Why they couldn't be the last time; `None`: they are in use.
    pub error: Option<String>,
}

/// A file as it was: whether it has changed can be told by this.
type Stamp = Option<(i64, i64, u64, u64)>;

/// A profile, which may be read again while it is used.
#[derive(Debug)]
pub struct Profile {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    files: ProfileFiles,
    stamps: Vec<Stamp>,
    current: Arc<Material>,
    status: ProfileStatus,
}

impl Profile {
    /// Reads a profile's files.
    ///
    /// # Errors
    /// They can't be used: a sentence for the user.
    pub fn load(files: ProfileFiles) -> Result<Arc<Self>, String> {
        let stamps = stamps(&files);
        let current = Arc::new(read(&files)?);
        let status = ProfileStatus { loads: 1, ..ProfileStatus::default() };
        Ok(Arc::new(Self { state: Mutex::new(State { files, stamps, current, status }) }))
    }

    /// The version that new connections use.
    #[must_use]
    pub fn current(&self) -> Arc<Material> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).current.clone()
    }

    /// What has happened to it.
    #[must_use]
    pub fn status(&self) -> ProfileStatus {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).status.clone()
    }

    /// What it is made of.
    #[must_use]
    pub fn files(&self) -> ProfileFiles {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).files.clone()
    }

    /// Whether a file of it isn't what it was when it was last read, with success or without.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        let (files, old) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.files.clone(), state.stamps.clone())
        };
        stamps(&files) != old
    }

    /// Reads the files again, `files` if it is to be made of others from now on. New connections use what they have;
    /// the others go on.
    ///
    /// # Errors
    /// They can't be used, and everything is as it was: a sentence for the user.
    pub fn reread(&self, files: Option<ProfileFiles>) -> Result<(), String> {
        let files = files.unwrap_or_else(|| self.files());
        // Whatever changes from here on is noticed the next time.
        let stamps = stamps(&files);
        let read = read(&files);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(material) => {
                state.files = files;
                state.stamps = stamps;
                state.current = Arc::new(material);
                state.status.loads += 1;
                state.status.error = None;
                Ok(())
            }
            Err(reason) => {
                if state.files.ca_cert_file == files.ca_cert_file && state.files.cert_file == files.cert_file
                {
                    state.stamps = stamps;
                }
                state.status.failures += 1;
                state.status.error = Some(reason.clone());
                Err(reason)
            }
        }
    }
}

fn stamps(files: &ProfileFiles) -> Vec<Stamp> {
    let paths =
        [&files.ca_cert_file, &files.cert_file, &files.private_key_file, &files.uid_name_mapping_file];
    let stamp = |path: &PathBuf| {
        let data = std::fs::metadata(path).ok()?;
        Some((data.mtime(), data.mtime_nsec(), data.ino(), data.size()))
    };
    paths.into_iter().flatten().map(stamp).collect()
}

fn read(files: &ProfileFiles) -> Result<Material, String> {
    let provider =
        CryptoProvider { cipher_suites: suites(files.ciphers.as_deref())?, ..aws_lc_rs::default_provider() };
    let provider = Arc::new(provider);
    let versions = versions(&files.protocols)?;
    let roots = match &files.ca_cert_file {
        Some(path) => Some(Arc::new(read_roots(path)?)),
        None => None,
    };
    let own = match &files.cert_file {
        Some(path) => Some((read_certificates("certFile", path)?, read_key(files, path)?)),
        None => None,
    };
    let naming = Naming {
        format: files.uid_format.clone(),
        names: match &files.uid_name_mapping_file {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    format!("can't read 'uidNameMappingFile' {}: {error}", path.display())
                })?;
                Naming::read_names(&text, &files.name)
                    .map_err(|error| format!("'uidNameMappingFile' {}: {error}", path.display()))?
            }
            None => HashMap::new(),
        },
    };
    let own_name = own.as_ref().map(|(chain, _)| {
        let name = chain.first().and_then(|certificate| Naming::default().name(certificate));
        Arc::from(name.unwrap_or_default())
    });
    let not_after = own.as_ref().and_then(|(chain, _)| not_after(chain.first()?));
    let client = |is_name_verified: bool| -> Result<Arc<ClientConfig>, String> {
        let roots = match &roots {
            Some(roots) => roots.clone(),
            None => Arc::new(system_roots()),
        };
        let verifier: Arc<dyn ServerCertVerifier> = if roots.is_empty() {
            Arc::new(NobodyTrusted(provider.clone()))
        } else {
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
                .build()
                .map_err(|error| format!("'caCertFile': {error}"))?;
            if is_name_verified { verifier } else { Arc::new(AnyName(verifier)) }
        };
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match &own {
            Some((chain, key)) => builder
                .with_client_auth_cert(chain.clone(), key.clone_key())
                .map_err(|error| key_unfit(files, &error))?,
            None => builder.with_no_client_auth(),
        };
        Ok(Arc::new(config))
    };
    let clients = [client(false)?, client(true)?];
    let servers = match &own {
        None => Err(format!(
            "sslProfile '{}' has no 'certFile', which a listener needs to show who it is",
            files.name
        )),
        Some((chain, key)) => {
            let server = |peers: Peers| -> Result<Arc<ServerConfig>, String> {
                let roots = roots.clone().unwrap_or_else(|| Arc::new(RootCertStore::empty()));
                let builder = ServerConfig::builder_with_provider(provider.clone())
                    .with_protocol_versions(&versions)
                    .map_err(unusable)?;
                let verifier = match peers {
                    Peers::Unasked => WebPkiClientVerifier::no_client_auth(),
                    // With nobody to trust none can be good.
                    Peers::MayShow | Peers::MustShow if roots.is_empty() => {
                        WebPkiClientVerifier::no_client_auth()
                    }
                    Peers::MayShow | Peers::MustShow => {
                        let builder = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
                        let builder =
                            if peers == Peers::MayShow { builder.allow_unauthenticated() } else { builder };
                        builder.build().map_err(|error| format!("'caCertFile': {error}"))?
                    }
                };
                let config = builder
                    .with_client_cert_verifier(verifier)
                    .with_single_cert(chain.clone(), key.clone_key())
                    .map_err(|error| key_unfit(files, &error))?;
                Ok(Arc::new(config))
            };
            Ok([server(Peers::Unasked)?, server(Peers::MayShow)?, server(Peers::MustShow)?])
        }
    };
    let no_roots = roots.is_none().then(|| {
        format!(
            "sslProfile '{}' has no 'caCertFile', without which no client's certificate can be checked",
            files.name
        )
    });
    Ok(Material { servers, no_roots, clients, naming, own_name, ordinal: files.ordinal, not_after })
}

fn unusable(error: Error) -> String {
    format!("'ciphers' and 'protocols' don't go together: {error}")
}

fn key_unfit(files: &ProfileFiles, error: &Error) -> String {
    let path = files.private_key_file.as_ref().or(files.cert_file.as_ref());
    let path = path.map_or_else(String::new, |path| path.display().to_string());
    format!("the key in {path} can't be used with the certificate: {error}")
}

/// The certificates of those whom the operating system trusts.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn read_certificates(attribute: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let fault = |what: &dyn fmt::Display| format!("'{attribute}' {}: {what}", path.display());
    let text = std::fs::read(path).map_err(|error| fault(&format!("can't be read: {error}")))?;
    let certificates = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| fault(&pem_fault(&error)))?;
    if certificates.is_empty() {
        return Err(fault(&"has no certificate (expected PEM, with BEGIN CERTIFICATE)"));
    }
    for certificate in &certificates {
        x509_parser::parse_x509_certificate(certificate)
            .map_err(|error| fault(&format!("has something that isn't a certificate: {error}")))?;
    }
    Ok(certificates)
}

fn read_roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates("caCertFile", path)? {
        roots.add(certificate).map_err(|error| format!("'caCertFile' {}: {error}", path.display()))?;
    }
    Ok(roots)
}

fn read_key(files: &ProfileFiles, cert_file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let (attribute, path) = match &files.private_key_file {
        Some(path) => ("privateKeyFile", path.as_path()),
        None => ("certFile", cert_file),
    };
    let fault = |what: &str| format!("'{attribute}' {}: {what}", path.display());
    let text = std::fs::read(path).map_err(|error| fault(&format!("can't be read: {error}")))?;
    let text = String::from_utf8_lossy(&text);
    let begin = format!("-----BEGIN {}-----", EncryptedPrivateKeyInfoRef::PEM_LABEL);
    if let Some(place) = text.find(&begin) {
        let Some(password) = &files.password else {
            return Err(fault("the key is encrypted, and the profile has no 'password'"));
        };
        let password = password().map_err(|reason| format!("'password': {reason}"))?;
        let (_, document) = pkcs8::SecretDocument::from_pem(pem_block(&text[place..]))
            .map_err(|error| fault(&format!("the encrypted key isn't PEM: {error}")))?;
        let encrypted = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes())
            .map_err(|error| fault(&format!("the encrypted key can't be understood: {error}")))?;
        let key = encrypted
            .decrypt(password)
            .map_err(|_| fault("the key can't be decrypted: is 'password' the right one?"))?;
        return Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into());
    }
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(fault(
            "the key is encrypted in OpenSSL's old format, which isn't served: convert it with 'openssl pkcs8 -topk8'",
        ));
    }
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            let hint =
                if files.private_key_file.is_none() { "; 'privateKeyFile' names another file" } else { "" };
            fault(&format!("has no private key (expected PEM, with BEGIN PRIVATE KEY){hint}"))
        }
        error => fault(&pem_fault(&error)),
    })
}

/// What is wrong with a file that should be PEM.
fn pem_fault(error: &rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::MissingSectionEnd { .. } => {
            "isn't whole: it ends before the line with END".to_owned()
        }
        error => format!("isn't PEM: {error}"),
    }
}

/// The first block of PEM in `text`, which begins with it.
fn pem_block(text: &str) -> &str {
    let end = text.find("-----END").map(|end| end + text[end..].find('\n').unwrap_or(text.len() - end));
    &text[..end.unwrap_or(text.len())]
}

fn not_after(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(parsed.validity().not_after.timestamp())
}

/// Trusts whom the other trusts, for whatever host the certificate is (`verifyHostname: no`).
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The name is what rustls looks at last.
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Trusts nobody, where neither the profile nor the system names anybody.
#[derive(Debug)]
struct NobodyTrusted(Arc<CryptoProvider>);

impl ServerCertVerifier for NobodyTrusted {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
