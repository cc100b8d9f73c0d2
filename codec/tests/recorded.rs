//! Frames recorded between real routers and clients, from the folder of test data: all of them decode, to the
//! performative that the recording names, and encode back to an equal one that is no longer.

mod common;

use std::collections::HashSet;

use common::{encoded, test_data};
use ringmain_codec::*;

/// The value of a text member in one line of JSON, as the recordings are written. None holds an escaped
/// quote.
fn member<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let (_, after) = line.split_once(&format!("\"{name}\": \""))?;
    after.split_once('"').map(|(value, _)| value)
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn recorded_frames_decode_and_encode_back() {
    let Some(folder) = test_data("transcripts") else {
        eprintln!("SKIPPED: no recordings here: set RINGMAIN_TESTDATA to a folder with transcripts/");
        return;
    };
    let (mut frames, mut sections) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let mut halfway = HashSet::new();
        for (number, line) in text.lines().enumerate().skip(1) {
            frames += 1;
            let context = format!("{}:{}", path.display(), number + 1);
            let mut hex = bytes(member(line, "hex").expect(&context));
            // Long frames are recorded without the end of their payload: let the size say so.
            let cut = line.contains("\"hex_cut_from_bytes\"");
            if cut {
                let size = (hex.len() as u32).to_be_bytes();
                hex[..4].copy_from_slice(&size);
            }
            let name = member(line, "performative");
            if member(line, "kind") == Some("header") {
                let header = ProtocolHeader::decode(&hex).unwrap().unwrap();
                assert_eq!(header.to_bytes(), hex[..], "{context}");
                continue;
            }
            let (frame, rest) = split_frame(&hex, u32::MAX).unwrap().unwrap();
            assert_eq!(rest, b"", "{context}");
            match (frame.kind, name) {
                (FrameKind::Amqp, None) => assert_eq!(frame.body, b"", "{context}"),
                (FrameKind::Sasl, _) => {
                    let sasl =
                        SaslFrame::decode(frame.body).unwrap_or_else(|error| panic!("{context}: {error}"));
                    assert_eq!(Some(sasl.name()), name, "{context}");
                    let again = encoded(&sasl);
                    assert!(again.len() <= frame.body.len(), "{context}");
                    assert_eq!(SaslFrame::decode(&again), Ok(sasl), "{context}");
                }
                (FrameKind::Amqp, Some(name)) => {
                    let (performative, payload) =
                        Performative::decode(frame.body).unwrap_or_else(|error| panic!("{context}: {error}"));
                    assert_eq!(performative.name(), name, "{context}");
                    let again = encoded(&performative);
                    assert!(again.len() <= frame.body.len() - payload.len(), "{context}");
                    assert_eq!(Performative::decode(&again), Ok((performative, &b""[..])), "{context}");
                    if let Performative::Transfer(transfer) = performative {
                        // A message in several frames isn't looked into.
                        let conn = line.split_once("\"conn\": ").map(|(_, after)| &after[..1]);
                        let link = (member(line, "from"), conn, frame.channel, transfer.handle);
                        if !cut && !transfer.more && !halfway.contains(&link) {
                            sections += scan(payload, &context);
                        }
                        if transfer.more {
                            halfway.insert(link)
                        } else {
                            halfway.remove(&link)
                        };
                    } else {
                        assert_eq!(payload, b"", "{context}");
                    }
                }
            }
        }
    }
    println!("{frames} recorded frames, {sections} message sections");
    assert!(
        frames > 1000 && sections > 1000,
        "the recordings are read: {frames} frames, {sections} sections"
    );
}

/// Looks into every section of a message that came in one frame.
fn scan(message: &[u8], context: &str) -> usize {
    // skupper-router puts a list of its own, the ulong "SKPR--RA" as descriptor, before the header.
    const ROUTER_ANNOTATIONS: &[u8] = b"\x00\x80SKPR--RA";
    let mut message = message;
    if message.starts_with(ROUTER_ANNOTATIONS) {
        let mut cursor = Cursor::new(message);
        Value::decode(&mut cursor, "").unwrap_or_else(|error| panic!("{context}: {error}"));
        message = cursor.remaining();
    }
    let mut sections = Sections::new(message);
    let mut count = 0;
    loop {
        // qdrouterd's management agent puts an empty map behind a body that is null, in some of its refusals.
        if message[sections.offset()..] == *b"\xd1\x00\x00\x00\x04\x00\x00\x00\x00" {
            let Err(SectionError::Malformed(malformed)) = sections.next() else { panic!("{context}") };
            assert_eq!(malformed.offset, sections.offset(), "{context}");
            return count;
        }
        let Some(section) = sections.next().unwrap_or_else(|error| panic!("{context}: {error}")) else {
            return count;
        };
        count += 1;
        let again = encoded(&section.value.view());
        assert_eq!(Value::from_encoded(&again), Ok(section.value), "{context}");
        if section.kind == SectionKind::Header {
            Header::from_section(&section).unwrap_or_else(|error| panic!("{context}: {error}"));
        }
        if section.kind == SectionKind::Properties {
            let properties =
                Properties::from_section(&section).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(Properties::to_from_section(&section), Ok(properties.to), "{context}");
        }
    }
}
