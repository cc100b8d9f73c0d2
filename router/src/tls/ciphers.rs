//! OpenSSL's names of protocols and cipher suites, for those that rustls has.

use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
use rustls::{CipherSuite, ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};

/// The name that OpenSSL has for a protocol version; `None`: one that this router doesn't speak.
#[must_use]
pub fn protocol_name(version: ProtocolVersion) -> Option<&'static str> {
    if version == ProtocolVersion::TLSv1_3 {
        Some("TLSv1.3")
    } else if version == ProtocolVersion::TLSv1_2 {
        Some("TLSv1.2")
    } else {
        None
    }
}

/// What is known of a suite: IANA's name of it, OpenSSL's, the bits of its key, and words that choose it.
struct Known {
    suite: CipherSuite,
    iana: &'static str,
    openssl: &'static str,
    bits: u16,
}

const KNOWN: &[Known] = &[
    known(CipherSuite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", 256),
    known(CipherSuite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", 128),
    known(
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
        256,
    ),
    known(
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        256,
    ),
    known(
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        128,
    ),
    known(
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        256,
    ),
    known(
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
        256,
    ),
    known(
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
        128,
    ),
    known(
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-RSA-CHACHA20-POLY1305",
        256,
    ),
];

const fn known(suite: CipherSuite, iana: &'static str, openssl: &'static str, bits: u16) -> Known {
    Known { suite, iana, openssl, bits }
}

/// OpenSSL's name of a suite, and the bits of its key. A suite that isn't among those served has no name.
#[must_use]
pub fn suite_name(suite: CipherSuite) -> (&'static str, u16) {
    KNOWN
        .iter()
        .find(|known| known.suite == suite)
        .map_or(("unknown", 0), |known| (known.openssl, known.bits))
}

/// The protocol versions that a profile's `protocols` names; an empty list stands for all that are served.
///
/// # Errors
/// One of them isn't served: a sentence for the user.
pub fn versions(protocols: &[String]) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    if protocols.is_empty() {
        return Ok(vec![&rustls::version::TLS13, &rustls::version::TLS12]);
    }
    protocols
        .iter()
        .map(|name| match name.as_str() {
            "TLSv1.2" => Ok(&rustls::version::TLS12),
            "TLSv1.3" => Ok(&rustls::version::TLS13),
            other => Err(format!(
                "'protocols' names {other}, which is broken and isn't served: leave it out (TLSv1.2 and TLSv1.3 are)"
            )),
        })
        .collect()
}

/// The suites that a profile's `ciphers` chooses, in OpenSSL's notation (ciphers(1)): names with `:` between them, `!` and
/// `-` take away, `+` joins words that must all hold. As there, those of TLS 1.3 aren't touched by it, unless it names
/// some of them. A list is often written for several libraries: what isn't served is passed over as long as something is
/// left, and returned as a sentence for the user.
///
/// # Errors
/// It leaves nothing: a sentence for the user.
pub fn suites(ciphers: Option<&str>) -> Result<(Vec<SupportedCipherSuite>, Option<String>), String> {
    let Some(ciphers) = ciphers else { return Ok((ALL_CIPHER_SUITES.to_vec(), None)) };
    let mut chosen: Vec<&Known> = Vec::new();
    let mut banned: Vec<CipherSuite> = Vec::new();
    let mut missing: Vec<&str> = Vec::new();
    for word in ciphers.split([':', ',', ' ']).filter(|word| !word.is_empty() && !word.starts_with('@')) {
        let (sign, name) = match word.as_bytes()[0] {
            sign @ (b'!' | b'-' | b'+') => (sign, &word[1..]),
            _ => (b' ', word),
        };
        let matched: Vec<&Known> = KNOWN.iter().filter(|known| is_meant(known, name)).collect();
        match sign {
            b'!' | b'-' => {
                chosen.retain(|known| !matched.iter().any(|other| other.suite == known.suite));
                if sign == b'!' {
                    banned.extend(matched.iter().map(|known| known.suite));
                }
            }
            // Moves what is chosen to the end: an order among ciphers that are all good is of no use to anybody.
            b'+' => {}
            _ if matched.is_empty() => missing.push(word),
            _ => {
                for known in matched {
                    let is_new = !chosen.iter().any(|other| other.suite == known.suite);
                    if is_new && !banned.contains(&known.suite) {
                        chosen.push(known);
                    }
                }
            }
        }
    }
    let warning = (!missing.is_empty()).then(|| {
        let served: Vec<&str> = KNOWN.iter().map(|known| known.openssl).collect();
        format!(
            "'ciphers' names what isn't served: {}. Served are: {}",
            missing.join(", "),
            served.join(", ")
        )
    });
    if chosen.is_empty() {
        return Err(warning.unwrap_or_else(|| "'ciphers' leaves no suite".to_owned()));
    }
    let is_1_3 = |known: &Known| known.iana == known.openssl;
    let names_1_3 = chosen.iter().any(|known| is_1_3(known));
    let of_1_3 = KNOWN.iter().filter(|known| is_1_3(known) && !names_1_3);
    let wanted: Vec<CipherSuite> = chosen.into_iter().chain(of_1_3).map(|known| known.suite).collect();
    let supported =
        |suite: &CipherSuite| ALL_CIPHER_SUITES.iter().find(|other| other.suite() == *suite).copied();
    Ok((wanted.iter().filter_map(supported).collect(), warning))
}

/// Whether a suite is meant by a name, or by words joined with `+`.
fn is_meant(known: &Known, name: &str) -> bool {
    if name == known.openssl || name == known.iana {
        return true;
    }
    let is_1_2 = known.openssl != known.iana;
    is_1_2
        && name.split('+').all(|word| match word {
            "ALL"
            | "DEFAULT"
            | "COMPLEMENTOFDEFAULT"
            | "HIGH"
            | "ECDHE"
            | "ECDH"
            | "EECDH"
            | "kECDHE"
            | "kEECDH"
            | "TLSv1.2"
            | "AEAD" => true,
            "ECDSA" | "aECDSA" => known.openssl.contains("ECDSA"),
            "RSA" | "aRSA" => known.openssl.contains("RSA"),
            "AESGCM" | "AES" => known.openssl.contains("AES"),
            "AES128" => known.openssl.contains("AES128"),
            "AES256" => known.openssl.contains("AES256"),
            "CHACHA20" => known.openssl.contains("CHACHA20"),
            "SHA256" => known.openssl.ends_with("SHA256"),
            "SHA384" => known.openssl.ends_with("SHA384"),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ciphers: &str) -> Vec<&'static str> {
        suites(Some(ciphers)).unwrap().0.iter().map(|suite| suite_name(suite.suite()).0).collect()
    }

    const OF_1_3: [&str; 3] =
        ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];

    /// ciphers(1) of OpenSSL: the list is of TLS 1.2 and below; the suites of TLS 1.3 are another list.
    #[test]
    fn the_list_chooses_among_the_suites_of_tls_1_2() {
        let only = names("ECDHE-RSA-AES128-GCM-SHA256");
        assert_eq!(only[0], "ECDHE-RSA-AES128-GCM-SHA256");
        assert_eq!(only[1..], OF_1_3);
        assert_eq!(names("ECDHE+AESGCM:!aECDSA:-AES128").first(), Some(&"ECDHE-RSA-AES256-GCM-SHA384"));
        assert_eq!(names("HIGH:!aNULL:!MD5").len(), 9);
        assert_eq!(names("TLS_AES_128_GCM_SHA256"), ["TLS_AES_128_GCM_SHA256"]);
        assert_eq!(suites(None).unwrap().0.len(), 9);
    }

    #[test]
    fn what_is_not_served_is_named() {
        let (left, said) = suites(Some("ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA:RC4-MD5")).unwrap();
        assert_eq!(left.len(), 4);
        assert!(said.unwrap().contains("AES128-SHA, RC4-MD5"));
        let reason = suites(Some("AES128-SHA:RC4-MD5")).unwrap_err();
        assert!(reason.contains("AES128-SHA, RC4-MD5"), "{reason}");
        let reason = versions(&["TLSv1".to_owned()]).unwrap_err();
        assert!(reason.contains("TLSv1,"), "{reason}");
        assert_eq!(versions(&[]).unwrap().len(), 2);
    }
}
