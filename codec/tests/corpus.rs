//! Encodings that others wrote: Proton's fuzzing corpora and its interoperability samples, from the folder of
//! test data.

mod common;

use std::path::PathBuf;

use common::{Model, encoded, test_data};
use ringmain_codec::*;

/// The files of one corpus; empty, with a line that says so, where there is none.
fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let Some(folder) = test_data(&format!("corpus/{name}")) else {
        eprintln!("SKIPPED: no corpus {name} here: set RINGMAIN_TESTDATA to a folder with corpus/");
        return vec![];
    };
    let mut files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect::<Vec<_>>();
    files.sort();
    assert!(!files.is_empty(), "the corpus {name} is empty");
    files
}

/// Encodes the value and everything in it anew, and expects the same value.
fn assert_value_round_trip(value: Value<'_>, path: &std::path::Path) {
    let again = encoded(&value.view());
    let again = Value::from_encoded(&again).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(again, value, "{}", path.display());
    assert_eq!(Model::from(again.view()), Model::from(value.view()), "{}", path.display());
    assert!(!value.to_string().is_empty());
}

#[test]
fn connections() {
    let (mut frames, mut performatives, mut refused) = (0, 0, 0);
    let files = corpus("proton-connection");
    for (path, bytes) in &files {
        let mut rest = &bytes[..];
        loop {
            // A header opens a layer; after SASL another one follows.
            if rest.starts_with(b"AMQP") {
                match ProtocolHeader::decode(rest) {
                    Ok(Some(header)) => {
                        assert_eq!(header.to_bytes()[..], rest[..ProtocolHeader::LEN]);
                        rest = &rest[ProtocolHeader::LEN..];
                        continue;
                    }
                    Ok(None) => break,
                    Err(malformed) => {
                        assert_eq!(malformed.condition(), Condition::FRAMING_ERROR);
                        break;
                    }
                }
            }
            let frame = match split_frame(rest, 1 << 20) {
                Ok(Some((frame, after))) => {
                    rest = after;
                    frame
                }
                Ok(None) => break,
                Err(malformed) => {
                    assert_eq!(malformed.condition(), Condition::FRAMING_ERROR);
                    refused += 1;
                    break;
                }
            };
            frames += 1;
            let result = match frame.kind {
                FrameKind::Amqp if frame.body.is_empty() => continue,
                FrameKind::Amqp => Performative::decode(frame.body).map(|(performative, payload)| {
                    performatives += 1;
                    let again = encoded(&performative);
                    assert!(again.len() <= frame.body.len() - payload.len(), "{}", path.display());
                    let (again, payload) = Performative::decode(&again).unwrap();
                    assert_eq!((again, payload), (performative, &b""[..]), "{}", path.display());
                }),
                FrameKind::Sasl => SaslFrame::decode(frame.body).map(|frame| {
                    assert_eq!(SaslFrame::decode(&encoded(&frame)), Ok(frame), "{}", path.display());
                }),
            };
            if let Err(malformed) = result {
                refused += 1;
                assert!(malformed.offset <= frame.body.len(), "{}: {malformed}", path.display());
                assert!(!malformed.to_string().is_empty());
            }
        }
    }
    println!("{} connections: {frames} frames, {performatives} decoded, {refused} refused", files.len());
    if !files.is_empty() {
        assert!(performatives > 500, "the corpus has real performatives, but only {performatives} decoded");
    }
}

#[test]
fn messages() {
    let (mut sections, mut values, mut refused) = (0, 0, 0);
    let files = corpus("proton-message");
    for (path, bytes) in &files {
        // Fuzzers made these: few are messages, but most begin with some values.
        let mut cursor = Cursor::new(bytes);
        while let Ok(value) = Value::decode(&mut cursor, "") {
            values += 1;
            assert_value_round_trip(value, path);
        }
        let mut scanner = Sections::new(bytes);
        loop {
            let peeked = scanner.peek();
            match scanner.next() {
                Ok(Some(section)) => {
                    sections += 1;
                    assert_eq!(peeked, Ok(Some(section.kind)));
                    assert_value_round_trip(section.value, path);
                    assert_typed_round_trip(&section, path);
                }
                Ok(None) => {
                    assert_eq!(scanner.offset(), bytes.len());
                    break;
                }
                Err(SectionError::Incomplete) => break,
                Err(SectionError::Malformed(malformed)) => {
                    refused += 1;
                    assert!(malformed.offset <= bytes.len(), "{}: {malformed}", path.display());
                    break;
                }
            }
        }
    }
    println!("{} messages: {sections} sections, {values} values, {refused} refused", files.len());
    if !files.is_empty() {
        assert!(values > 1000, "the corpus is full of values, but only {values} decoded");
    }
}

/// The sections that have a type of their own.
fn assert_typed_round_trip(section: &Section<'_>, path: &std::path::Path) {
    let one = |bytes: &[u8]| -> Vec<u8> { bytes.to_vec() };
    if section.kind == SectionKind::Header
        && let Ok(header) = Header::from_section(section)
    {
        let bytes = one(&encoded(&header));
        let again = Sections::new(&bytes).next().unwrap().unwrap();
        assert_eq!(Header::from_section(&again), Ok(header), "{}", path.display());
    }
    if section.kind == SectionKind::Properties
        && let Ok(properties) = Properties::from_section(section)
    {
        let bytes = one(&encoded(&properties));
        let again = Sections::new(&bytes).next().unwrap().unwrap();
        assert_eq!(Properties::from_section(&again), Ok(properties), "{}", path.display());
        assert_eq!(Properties::to_from_section(section), Ok(properties.to), "{}", path.display());
    }
}

/// The values of one interoperability file, one after the other.
fn interop(name: &str) -> Option<Vec<Model>> {
    let (path, bytes) = corpus("proton-interop").into_iter().find(|(path, _)| path.ends_with(name))?;
    let mut cursor = Cursor::new(&bytes);
    let mut models = vec![];
    while !cursor.is_empty() {
        let value = Value::decode(&mut cursor, "").unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_value_round_trip(value, &path);
        models.push(Model::from(value.view()));
    }
    Some(models)
}

fn string(text: &str) -> Model {
    Model::Str(text.to_owned())
}

fn symbol(text: &str) -> Model {
    Model::Symbol(text.to_owned())
}

/// The contents are what Proton's own interoperability tests expect in these files.
#[test]
fn interop_values() {
    let Some(null) = interop("null.amqp") else { return };
    assert_eq!(null, [Model::Null]);
    assert_eq!(
        interop("primitives.amqp").unwrap(),
        [
            Model::Bool(true),
            Model::Bool(false),
            Model::Ubyte(42),
            Model::Ushort(42),
            Model::Short(-42),
            Model::Uint(12345),
            Model::Int(-12345),
            Model::Ulong(12345),
            Model::Long(-12345),
            Model::Float(0.125_f32.to_bits()),
            Model::Double(0.125_f64.to_bits()),
        ]
    );
    assert_eq!(
        interop("strings.amqp").unwrap(),
        [
            Model::Binary(b"abc\0defg".to_vec()),
            string("abcdefg"),
            symbol("abcdefg"),
            Model::Binary(vec![]),
            string(""),
            symbol(""),
        ]
    );
    let described = |descriptor, value| Model::Described(Box::new(descriptor), Box::new(value));
    assert_eq!(
        interop("described.amqp").unwrap(),
        [described(symbol("foo-descriptor"), string("foo-value")), described(Model::Int(12), Model::Int(13)),]
    );
    let ints = (0..10).map(Model::Int).collect();
    assert_eq!(
        interop("described_array.amqp").unwrap(),
        [Model::Array(0x71, vec![symbol("int-array")], ints)]
    );
    assert_eq!(
        interop("arrays.amqp").unwrap(),
        [
            Model::Array(0x71, vec![], (0..100).map(Model::Int).collect()),
            Model::Array(0xb1, vec![], ["a", "b", "c"].map(string).to_vec()),
            Model::Array(0x71, vec![], vec![]),
        ]
    );
    assert_eq!(
        interop("lists.amqp").unwrap(),
        [Model::List(vec![Model::Int(32), string("foo"), Model::Bool(true)]), Model::List(vec![]),]
    );
    assert_eq!(
        interop("maps.amqp").unwrap(),
        [
            Model::Map(
                [("three", 3), ("two", 2), ("one", 1)]
                    .into_iter()
                    .flat_map(|(key, value)| [string(key), Model::Int(value)])
                    .collect()
            ),
            Model::Map(
                [(1, "one"), (2, "two"), (3, "three")]
                    .into_iter()
                    .flat_map(|(key, value)| [Model::Int(key), string(value)])
                    .collect()
            ),
            Model::Map(vec![]),
        ]
    );
}

#[test]
fn interop_message() {
    let Some((_, bytes)) =
        corpus("proton-interop").into_iter().find(|(path, _)| path.ends_with("message.amqp"))
    else {
        return;
    };
    let mut sections = Sections::new(&bytes);
    let header = Header::from_section(&sections.next().unwrap().unwrap()).unwrap();
    assert_eq!(header, Header::default());
    let properties = Properties::from_section(&sections.next().unwrap().unwrap()).unwrap();
    let zero = Some(Timestamp(0));
    let expected = Properties {
        absolute_expiry_time: zero,
        creation_time: zero,
        group_sequence: Some(0),
        ..Properties::default()
    };
    assert_eq!(properties, expected);
    let body = sections.next().unwrap().unwrap();
    assert_eq!(body.kind, SectionKind::AmqpValue);
    // A binary that holds an encoded string.
    assert_eq!(body.value.as_binary(), Some(&b"\xa1\x05hello"[..]));
    assert_eq!(sections.next(), Ok(None));
}
