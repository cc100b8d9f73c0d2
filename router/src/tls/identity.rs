//! Who a peer is by its certificate: the name that SASL's EXTERNAL and policy know it by.

use sha1::Digest as _;
use std::collections::HashMap;
use std::fmt::Write as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::{
    OID_X509_COMMON_NAME, OID_X509_COUNTRY_NAME, OID_X509_LOCALITY_NAME, OID_X509_ORGANIZATION_NAME,
    OID_X509_ORGANIZATIONAL_UNIT, OID_X509_STATE_OR_PROVINCE_NAME,
};
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// How a profile makes names of certificates (`uidFormat`, `uidNameMappingFile`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Naming {
    /// `uidFormat`: letters out of `csloun125`. `None`: the certificate's whole subject is the name.
    pub format: Option<String>,
    /// Other names for those so made.
    pub names: HashMap<String, String>,
}

impl Naming {
    /// Reads `uidNameMappingFile`: a JSON object that has, for each profile's name, an object of names by names.
    ///
    /// # Errors
    /// It isn't such a thing: what is wrong with it.
    pub fn read_names(text: &str, profile: &str) -> Result<HashMap<String, String>, String> {
        let all: HashMap<String, HashMap<String, String>> = serde_json::from_str(text)
            .map_err(|error| format!("expected {{\"PROFILE\": {{\"UID\": \"NAME\"}}}}: {error}"))?;
        Ok(all.into_iter().find(|(name, _)| name == profile).map(|(_, names)| names).unwrap_or_default())
    }

    /// The name of who showed a certificate (in DER). `None`: it has none of the fields that make one.
    #[must_use]
    pub fn name(&self, certificate: &[u8]) -> Option<String> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let subject = parsed.subject();
        let Some(format) = &self.format else {
            let name = distinguished_name(subject);
            return (!name.is_empty()).then_some(name);
        };
        let fields: Vec<String> =
            format.chars().filter_map(|letter| field(letter, subject, certificate)).collect();
        if fields.is_empty() {
            return None;
        }
        let uid = fields.join(";");
        Some(self.names.get(&uid).cloned().unwrap_or(uid))
    }
}

/// What a letter of `uidFormat` stands for.
fn field(letter: char, subject: &X509Name<'_>, certificate: &[u8]) -> Option<String> {
    let oid = match letter {
        'c' => OID_X509_COUNTRY_NAME,
        's' => OID_X509_STATE_OR_PROVINCE_NAME,
        'l' => OID_X509_LOCALITY_NAME,
        'o' => OID_X509_ORGANIZATION_NAME,
        'u' => OID_X509_ORGANIZATIONAL_UNIT,
        'n' => OID_X509_COMMON_NAME,
        '1' => return Some(hex(&sha1::Sha1::digest(certificate))),
        '2' => return Some(hex(&sha2::Sha256::digest(certificate))),
        '5' => return Some(hex(&sha2::Sha512::digest(certificate))),
        _ => return None,
    };
    subject.iter_attributes().find(|attribute| *attribute.attr_type() == oid).and_then(text)
}

fn text(attribute: &AttributeTypeAndValue<'_>) -> Option<String> {
    attribute.as_str().map(str::to_owned).ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string doesn't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A name as RFC 2253 writes it: the last part first.
fn distinguished_name(name: &X509Name<'_>) -> String {
    let mut parts: Vec<String> = name
        .iter_rdn()
        .map(|part| {
            let attributes: Vec<String> = part.iter().map(attribute_text).collect();
            attributes.join("+")
        })
        .collect();
    parts.reverse();
    parts.join(",")
}

fn attribute_text(attribute: &AttributeTypeAndValue<'_>) -> String {
    let registry = x509_parser::oid_registry::OidRegistry::default().with_x509();
    let key = match registry.get(attribute.attr_type()).map(|entry| entry.sn()) {
        Some("commonName") => "CN".to_owned(),
        Some("countryName") => "C".to_owned(),
        Some("stateOrProvinceName") => "ST".to_owned(),
        Some("localityName") => "L".to_owned(),
        Some("organizationName") => "O".to_owned(),
        Some("organizationalUnitName") => "OU".to_owned(),
        Some("streetAddress") => "street".to_owned(),
        Some(_) | None => attribute.attr_type().to_id_string(),
    };
    format!("{key}={}", escaped(&text(attribute).unwrap_or_default()))
}

/// A value with its special characters escaped (RFC 2253 §2.4).
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (index, letter) in value.chars().enumerate() {
        let is_special = matches!(letter, ',' | '+' | '"' | '\\' | '<' | '>' | ';')
            || (index == 0 && matches!(letter, ' ' | '#'))
            || (index == last && letter == ' ');
        if is_special {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn certificate() -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CountryName, "DE");
        params.distinguished_name.push(DnType::StateOrProvinceName, "Hessen");
        params.distinguished_name.push(DnType::OrganizationName, "Acme, Inc");
        params.distinguished_name.push(DnType::CommonName, "client");
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn name(format: Option<&str>, names: &[(&str, &str)]) -> Option<String> {
        let names = names.iter().map(|(uid, name)| ((*uid).to_owned(), (*name).to_owned())).collect();
        Naming { format: format.map(str::to_owned), names }.name(&certificate())
    }

    /// Router-protocol reference §12.
    #[test]
    fn fields_are_joined_in_the_order_of_the_format() {
        assert_eq!(name(Some("ncs"), &[]).as_deref(), Some("client;DE;Hessen"));
        assert_eq!(name(Some("oln"), &[]).as_deref(), Some("Acme, Inc;client"));
        assert_eq!(name(Some("l"), &[]), None);
        assert_eq!(name(Some("n"), &[("client", "trader")]).as_deref(), Some("trader"));
        assert_eq!(name(Some("n"), &[("other", "trader")]).as_deref(), Some("client"));
    }

    /// RFC 2253 §2: the order is turned round, and what is special escaped.
    #[test]
    fn without_a_format_it_is_the_subject() {
        assert_eq!(name(None, &[]).as_deref(), Some("CN=client,O=Acme\\, Inc,ST=Hessen,C=DE"));
    }

    #[test]
    fn a_fingerprint_is_that_of_the_whole_certificate() {
        assert_eq!(name(Some("1"), &[]).unwrap().len(), 40);
        assert_eq!(name(Some("2n"), &[]).unwrap().len(), 64 + 7);
        // FIPS 180-2, appendix C.1: "abc".
        assert_eq!(
            hex(&sha2::Sha256::digest(b"abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn the_file_of_names_is_by_profile() {
        let names = Naming::read_names(r#"{"a": {"x": "y"}, "b": {}}"#, "a").unwrap();
        assert_eq!(names.get("x").map(String::as_str), Some("y"));
        assert!(Naming::read_names(r#"{"a": 1}"#, "a").is_err());
    }
}
