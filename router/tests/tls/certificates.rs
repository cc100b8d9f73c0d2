//! Authorities and what they issue, in files.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, SanType,
    date_time_ymd,
};

/// A folder that is removed at the end of the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tls-{}-{number}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Puts a file there as editors and renewal do it: another one is renamed to its name.
    pub fn replace(&self, name: &str, content: &str) {
        let new = self.path(&format!("{name}.new"));
        fs::write(&new, content).expect("the folder for temporary files is writable");
        fs::rename(new, self.path(name)).expect("it can be renamed");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Who issues certificates.
pub struct Authority(Issuer<'static, KeyPair>);

/// What a certificate is to be like.
#[derive(Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The common name.
    pub name: &'a str,
    /// The organization.
    pub organization: Option<&'a str>,
    /// Whether it has expired.
    pub is_expired: bool,
    /// Whether it is for another host than that of the tests.
    pub is_elsewhere: bool,
}

/// A certificate and its key, in PEM.
pub struct Issued {
    pub certificate: String,
    pub key: KeyPair,
}

impl Authority {
    /// Writes its own certificate to that file.
    pub fn new(file: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Of two with one name a checker might take the wrong one.
        params.distinguished_name = named(&file.display().to_string(), None);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("it signs itself");
        fs::write(file, certificate.pem()).expect("the folder for temporary files is writable");
        Self(Issuer::new(params, key))
    }

    pub fn issue(&self, wanted: Wanted<'_>) -> Issued {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = named(wanted.name, wanted.organization);
        params.subject_alt_names = if wanted.is_elsewhere {
            vec![SanType::DnsName("elsewhere.example".try_into().expect("a name"))]
        } else {
            vec![
                SanType::DnsName("localhost".try_into().expect("a name")),
                SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ]
        };
        if wanted.is_expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("it signs").pem();
        Issued { certificate, key }
    }

    /// Issues one into files: NAME.pem and NAME.key.
    pub fn issue_to(&self, folder: &Folder, file: &str, wanted: Wanted<'_>) {
        let issued = self.issue(wanted);
        folder.replace(&format!("{file}.key"), &issued.key.serialize_pem());
        folder.replace(&format!("{file}.pem"), &issued.certificate);
    }
}

fn named(name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    if let Some(organization) = organization {
        names.push(DnType::OrganizationName, organization);
    }
    names.push(DnType::CommonName, name);
    names
}

/// What most tests have: an authority, the router's certificate, a client's.
pub fn usual() -> (Folder, Authority) {
    let folder = Folder::new();
    let authority = Authority::new(&folder.path("ca.pem"));
    authority.issue_to(&folder, "server", Wanted { name: "router", ..Wanted::default() });
    authority.issue_to(
        &folder,
        "client",
        Wanted { name: "fred", organization: Some("Acme"), ..Wanted::default() },
    );
    (folder, authority)
}

/// The section of a profile with the usual files, and more attributes.
pub fn profile(folder: &Folder, more: &str) -> String {
    format!(
        "sslProfile {{\n    name: tls\n    caCertFile: {}\n    certFile: {}\n    privateKeyFile: {}\n{more}\n}}\n",
        folder.path("ca.pem").display(),
        folder.path("server.pem").display(),
        folder.path("server.key").display()
    )
}
