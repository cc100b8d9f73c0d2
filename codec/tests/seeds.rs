//! The fuzzers' seeds are what their names and comments say: they decode, or are refused.

use std::path::PathBuf;

use ringmain_codec::*;

/// Name, bytes, and whether the seed is to be refused: it stands below a comment that says so.
fn seeds(file: &str) -> Vec<(String, Vec<u8>, bool)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(file);
    let text = std::fs::read_to_string(path).expect("seeds are part of the project");
    let mut refused = false;
    let mut seeds = vec![];
    for line in text.lines() {
        if line.starts_with("# Refused") {
            refused = true;
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (name, hex) = line.split_once(' ').expect("a name and bytes");
        let hex = hex.replace(' ', "");
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("bytes in hexadecimal");
        seeds.push((name.to_owned(), (0..hex.len()).step_by(2).map(byte).collect(), refused));
    }
    assert!(!seeds.is_empty());
    seeds
}

#[test]
fn values() {
    for (name, bytes, refused) in seeds("value.hex") {
        assert_eq!(
            Value::from_encoded(&bytes).is_err(),
            refused,
            "{name}: {:?}",
            Value::from_encoded(&bytes)
        );
    }
}

#[test]
fn performatives() {
    for (name, bytes, refused) in seeds("performative.hex") {
        let result = if name.starts_with("sasl-") {
            SaslFrame::decode(&bytes).map(|frame| frame.name())
        } else {
            Performative::decode(&bytes).map(|(performative, _)| performative.name())
        };
        match result {
            Ok(decoded) => {
                assert!(!refused, "{name}");
                assert!(name.starts_with(decoded), "{name} is a {decoded}");
            }
            Err(malformed) => assert!(refused, "{name}: {malformed}"),
        }
    }
}

#[test]
fn messages() {
    for (name, bytes, refused) in seeds("message.hex") {
        let mut sections = Sections::new(&bytes);
        let result = loop {
            match sections.next() {
                Ok(Some(section)) => {
                    if section.kind == SectionKind::Header {
                        Header::from_section(&section).unwrap_or_else(|error| panic!("{name}: {error}"));
                    }
                    if section.kind == SectionKind::Properties {
                        Properties::from_section(&section).unwrap_or_else(|error| panic!("{name}: {error}"));
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        match result {
            Ok(()) => assert!(!refused && name != "incomplete", "{name}"),
            Err(SectionError::Incomplete) => assert_eq!(name, "incomplete"),
            Err(SectionError::Malformed(malformed)) => assert!(refused, "{name}: {malformed}"),
        }
    }
}

#[test]
fn frames() {
    for (name, bytes, refused) in seeds("frame.hex") {
        let mut rest = &bytes[..];
        let result = loop {
            if let Ok(Some(_)) = ProtocolHeader::decode(rest) {
                rest = &rest[ProtocolHeader::LEN..];
                continue;
            }
            match split_frame(rest, 4096) {
                Ok(Some((frame, after))) => {
                    rest = after;
                    let decoded = match frame.kind {
                        FrameKind::Amqp if frame.body.is_empty() => Ok(()),
                        FrameKind::Amqp => Performative::decode(frame.body).map(|_| ()),
                        FrameKind::Sasl => SaslFrame::decode(frame.body).map(|_| ()),
                    };
                    if decoded.is_err() {
                        break decoded;
                    }
                }
                Ok(None) => break Ok(()),
                Err(malformed) => break Err(malformed),
            }
        };
        assert_eq!(result.is_err(), refused, "{name}: {result:?}");
        if !refused && name != "incomplete" {
            assert_eq!(rest, b"", "{name}");
        }
    }
}
