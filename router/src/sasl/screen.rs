//! Which SCRAM messages rsasl may see.
//!
//! Its parser takes two bytes off each attribute without asking whether they are there, and would panic where they
//! aren't (rsasl 2.3.1). So each message is held against the grammar's outline first: attributes are a letter, `=` and a
//! value, with commas between them (RFC 5802 §5.1, §7).

/// Whether all of a message is attributes, as those of a server are, and a client's last.
pub(super) fn are_attributes(message: &[u8]) -> bool {
    message.split(|byte| *byte == b',').all(is_attribute)
}

/// Whether a message begins with a GS2 header, as a client's first does, and the rest is attributes.
pub(super) fn is_client_first(message: &[u8]) -> bool {
    let mut parts = message.split(|byte| *byte == b',');
    // The flag of channel binding is looked at with care there.
    let (Some(_flag), Some(authorization)) = (parts.next(), parts.next()) else { return false };
    let has_name = authorization.is_empty() || authorization.starts_with(b"a=");
    let mut parts = parts.peekable();
    has_name && parts.peek().is_some() && parts.all(is_attribute)
}

fn is_attribute(part: &[u8]) -> bool {
    matches!(part, [letter, b'=', ..] if letter.is_ascii_alphabetic())
}

/// The name that SCRAM's `=2C` and `=3D` stand for (RFC 5802 §5.1); `None`: another `=` is in it.
pub(super) fn unescape(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut parts = name.split('=');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (character, rest) = part
            .strip_prefix("2C")
            .map(|rest| (',', rest))
            .or_else(|| part.strip_prefix("3D").map(|rest| ('=', rest)))?;
        out.push(character);
        out.push_str(rest);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_rfc_5802_pass() {
        assert!(is_client_first(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"));
        assert!(is_client_first(b"y,a=other,n=user,r=fyko"));
        assert!(is_client_first(b"p=tls-unique,,n=user,r=fyko"));
        assert!(are_attributes(
            b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
        ));
        assert!(are_attributes(b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096"));
        assert!(are_attributes(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="));
    }

    #[test]
    fn what_would_be_too_short_does_not() {
        for message in
            ["", ",", "n", "n,", "n,,", "n,,n", "n,,n=u,r", "n,,n=u,", "n,a,n=u,r=1", "n,,=,r=1", "n,b=,n=u"]
        {
            assert!(!is_client_first(message.as_bytes()), "{message:?}");
        }
        for message in ["", "c", "c=biws,r", "c=biws,,p=1", "c=biws,r=1,p=1,", "1=2"] {
            assert!(!are_attributes(message.as_bytes()), "{message:?}");
        }
    }

    #[test]
    fn names_are_unescaped() {
        assert_eq!(unescape("user").as_deref(), Some("user"));
        assert_eq!(unescape("a=2Cb=3Dc=3D2C").as_deref(), Some("a,b=c=2C"));
        for wrong in ["=", "a=2", "a=2c", "a=41"] {
            assert_eq!(unescape(wrong), None, "{wrong}");
        }
    }
}
