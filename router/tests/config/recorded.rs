//! The schema beside what recorded routers say of theirs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringmain::control::config::schema::{ENTITY_TYPES, EntityType, Origin};
use ringmain_codec::{Performative, SectionKind, Sections, Value, split_frame};

/// The prefix of `qdrouterd`'s types.
const PREFIX: &str = "org.apache.qpid.dispatch.";

/// Types for tests of the router that recorded this.
const LEFT_OUT: [&str; 1] = ["dummy"];

/// Operations that look into the Python of the router that recorded this.
const OPERATIONS_LEFT_OUT: [&str; 1] = ["PROFILE"];

fn recording() -> Option<String> {
    let folder = match std::env::var_os("RINGMAIN_TESTDATA") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    };
    std::fs::read_to_string(folder.join("transcripts/s7-q-management.jsonl")).ok()
}

/// The reply to the first request with this operation: each type with its list, in the order of the reply.
fn reply(recording: &str, operation: &str) -> BTreeMap<String, Vec<String>> {
    let mut wanted = None;
    for line in recording.lines().skip(1) {
        let line: serde_json::Value = serde_json::from_str(line).expect("a recording is JSON");
        if line["performative"] != "transfer" {
            continue;
        }
        let hex = line["hex"].as_str().expect("frames are in hex");
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits"))
            .collect();
        let Ok(Some((frame, _))) = split_frame(&bytes, u32::MAX) else { continue };
        let Ok((Performative::Transfer(_), payload)) = Performative::decode(frame.body) else { continue };
        let Some((correlation, properties, body)) = message(payload) else { continue };
        if line["from"] == "connector" {
            if wanted.is_none() && properties.get("operation").is_some_and(|name| name == operation) {
                wanted = Some(correlation);
            }
        } else if wanted.as_ref() == Some(&correlation) {
            return lists(&body);
        }
    }
    panic!("no reply to {operation} was recorded");
}

/// Correlation-id, texts among the application properties, and the value of a message.
fn message(payload: &[u8]) -> Option<(String, BTreeMap<String, String>, Vec<u8>)> {
    let mut correlation = String::new();
    let mut texts = BTreeMap::new();
    let mut body = Vec::new();
    let mut sections = Sections::new(payload);
    while let Ok(Some(section)) = sections.next() {
        match section.kind {
            SectionKind::Properties => {
                let mut fields = section.value.items()?;
                correlation = fields.nth(5)?.as_str().unwrap_or_default().to_owned();
            }
            SectionKind::ApplicationProperties => {
                for (key, value) in section.value.entries()? {
                    if let (Some(key), Some(value)) = (key.as_str(), value.as_str()) {
                        texts.insert(key.to_owned(), value.to_owned());
                    }
                }
            }
            SectionKind::AmqpValue => body = section.value.encoded().to_vec(),
            _ => {}
        }
    }
    Some((correlation, texts, body))
}

fn lists(body: &[u8]) -> BTreeMap<String, Vec<String>> {
    let value = Value::from_encoded(body).expect("a value");
    let text = |value: Value<'_>| value.as_str().expect("a text").to_owned();
    let entries = value.entries().expect("a map");
    entries
        .map(|(key, list)| {
            let name = text(key).strip_prefix(PREFIX).expect("a type of qdrouterd").to_owned();
            (name, list.items().expect("a list").map(text).collect())
        })
        .collect()
}

/// Types, operations, attributes and their order are those of a recorded `qdrouterd`, but for what only other
/// routers have.
#[test]
fn types_operations_and_attributes_are_those_of_qdrouterd() {
    let Some(recording) = recording() else {
        eprintln!("SKIPPED: no recordings here: set RINGMAIN_TESTDATA to a folder with transcripts/");
        return;
    };
    for (name, bases) in reply(&recording, "GET-TYPES") {
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let entity = EntityType::find_type(&name).unwrap_or_else(|| panic!("no type {name}"));
        let bases: Vec<&str> = bases.iter().filter_map(|base| base.strip_prefix(PREFIX)).collect();
        assert_eq!(entity.base_types(), bases, "{name}");
    }
    for (name, mut operations) in reply(&recording, "GET-OPERATIONS") {
        operations.retain(|operation| !OPERATIONS_LEFT_OUT.contains(&operation.as_str()));
        let Some(entity) = EntityType::find_type(&name) else { continue };
        let ours: Vec<&str> = entity.operations.iter().map(|operation| operation.name()).collect();
        assert_eq!(ours, operations, "{name}");
    }
    let mut types = 0;
    for (name, attributes) in reply(&recording, "GET-ATTRIBUTES") {
        let Some(entity) = EntityType::find_type(&name) else { continue };
        types += 1;
        let is_theirs = |attribute: &&str| {
            entity.attribute(attribute).is_none_or(|(_, attribute)| attribute.origin == Origin::Dispatch)
        };
        let ours: Vec<&str> = entity.attribute_names().filter(is_theirs).collect();
        assert_eq!(ours, attributes, "{name}");
    }
    let of_dispatch = ENTITY_TYPES.iter().filter(|entity| entity.origin == Origin::Dispatch).count();
    assert!(types >= 25 && of_dispatch >= types, "{types} of {of_dispatch}");
}
