//! How a frame's body is shown: the names of AMQP's composite types and of their fields (AMQP 1.0 parts 2, 3
//! and 5), `@name(code) [field=value, …]`, without fields that are null.

use ringmain_codec::{Cursor, Decode as _, Value, View};
use std::fmt;

/// A composite type: its descriptor, its name, and its fields in order.
type Composite = (u64, &'static str, &'static [&'static str]);

/// What may be in a frame.
const COMPOSITES: &[Composite] = &[
    (
        0x10,
        "open",
        &[
            "container-id",
            "hostname",
            "max-frame-size",
            "channel-max",
            "idle-time-out",
            "outgoing-locales",
            "incoming-locales",
            "offered-capabilities",
            "desired-capabilities",
            "properties",
        ],
    ),
    (
        0x11,
        "begin",
        &[
            "remote-channel",
            "next-outgoing-id",
            "incoming-window",
            "outgoing-window",
            "handle-max",
            "offered-capabilities",
            "desired-capabilities",
            "properties",
        ],
    ),
    (
        0x12,
        "attach",
        &[
            "name",
            "handle",
            "role",
            "snd-settle-mode",
            "rcv-settle-mode",
            "source",
            "target",
            "unsettled",
            "incomplete-unsettled",
            "initial-delivery-count",
            "max-message-size",
            "offered-capabilities",
            "desired-capabilities",
            "properties",
        ],
    ),
    (
        0x13,
        "flow",
        &[
            "next-incoming-id",
            "incoming-window",
            "next-outgoing-id",
            "outgoing-window",
            "handle",
            "delivery-count",
            "link-credit",
            "available",
            "drain",
            "echo",
            "properties",
        ],
    ),
    (
        0x14,
        "transfer",
        &[
            "handle",
            "delivery-id",
            "delivery-tag",
            "message-format",
            "settled",
            "more",
            "rcv-settle-mode",
            "state",
            "resume",
            "aborted",
            "batchable",
        ],
    ),
    (0x15, "disposition", &["role", "first", "last", "settled", "state", "batchable"]),
    (0x16, "detach", &["handle", "closed", "error"]),
    (0x17, "end", &["error"]),
    (0x18, "close", &["error"]),
    (0x1d, "error", &["condition", "description", "info"]),
    (0x23, "received", &["section-number", "section-offset"]),
    (0x24, "accepted", &[]),
    (0x25, "rejected", &["error"]),
    (0x26, "released", &[]),
    (0x27, "modified", &["delivery-failed", "undeliverable-here", "message-annotations"]),
    (
        0x28,
        "source",
        &[
            "address",
            "durable",
            "expiry-policy",
            "timeout",
            "dynamic",
            "dynamic-node-properties",
            "distribution-mode",
            "filter",
            "default-outcome",
            "outcomes",
            "capabilities",
        ],
    ),
    (
        0x29,
        "target",
        &[
            "address",
            "durable",
            "expiry-policy",
            "timeout",
            "dynamic",
            "dynamic-node-properties",
            "capabilities",
        ],
    ),
    (0x2b, "delete-on-close", &[]),
    (0x2c, "delete-on-no-links", &[]),
    (0x2d, "delete-on-no-messages", &[]),
    (0x2e, "delete-on-no-links-or-messages", &[]),
    (0x30, "coordinator", &["capabilities"]),
    (0x33, "declared", &["txn-id"]),
    (0x34, "transactional-state", &["txn-id", "outcome"]),
    (0x40, "sasl-mechanisms", &["sasl-server-mechanisms"]),
    (0x41, "sasl-init", &["mechanism", "initial-response", "hostname"]),
    (0x42, "sasl-challenge", &["challenge"]),
    (0x43, "sasl-response", &["response"]),
    (0x44, "sasl-outcome", &["code", "additional-data"]),
];

/// Fields that may hold a password: only their length is shown.
const SECRETS: [&str; 4] = ["initial-response", "challenge", "response", "additional-data"];

/// A frame's body.
pub(super) struct Body<'b>(pub(super) &'b [u8]);

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("(empty)");
        }
        let mut cursor = Cursor::new(self.0);
        match Value::decode(&mut cursor, "performative") {
            Ok(value) => Shown(value).fmt(f)?,
            Err(malformed) => return write!(f, "({} bytes: {malformed})", self.0.len()),
        }
        match cursor.remaining().len() {
            0 => Ok(()),
            payload => write!(f, " ({payload} bytes)"),
        }
    }
}

/// A value, with the names of what it is made of. It recurses as deep as the codec lets values nest.
struct Shown<'b>(Value<'b>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let View::Described { descriptor, value } = self.0.view() else { return self.0.fmt(f) };
        let (Some((code, name, fields)), View::List(items)) = (composite(descriptor), value.view()) else {
            return self.0.fmt(f);
        };
        write!(f, "@{name}({code}) [")?;
        let mut comma = "";
        for (place, item) in items.enumerate().filter(|(_, item)| !item.is_null()) {
            f.write_str(comma)?;
            comma = ", ";
            let Some(field) = fields.get(place) else {
                write!(f, "{item}")?;
                continue;
            };
            write!(f, "{field}=")?;
            match (*field, item.view()) {
                ("role", View::Bool(true)) => f.write_str("receiver")?,
                ("role", View::Bool(false)) => f.write_str("sender")?,
                (field, View::Binary(bytes)) if SECRETS.contains(&field) => {
                    write!(f, "({} bytes)", bytes.len())?;
                }
                (..) => Shown(item).fmt(f)?,
            }
        }
        f.write_str("]")
    }
}

/// The composite type of a descriptor in either form, if it is one of AMQP's.
fn composite(descriptor: Value<'_>) -> Option<&'static Composite> {
    if let Some(code) = descriptor.as_u64() {
        return COMPOSITES.iter().find(|(known, ..)| *known == code);
    }
    let symbol = descriptor.as_symbol()?.0;
    let name = symbol.strip_prefix("amqp:")?.strip_suffix(":list")?;
    COMPOSITES.iter().find(|(_, known, _)| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    /// The composite types of a document of the specification: name, code, fields.
    fn composites(text: &str) -> BTreeMap<String, (u64, Vec<String>)> {
        let attribute = |tag: &str, name: &str| {
            let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let mut found = BTreeMap::new();
        for part in text.split("<type ").skip(1) {
            let head = format!(" {}", part.split('>').next().unwrap_or_default());
            let body = part.split("</type>").next().unwrap_or_default();
            let Some((_, descriptor)) = body.split_once("<descriptor") else { continue };
            if attribute(&head, "class").as_deref() != Some("composite") {
                continue;
            }
            let code = attribute(descriptor, "code").expect("a descriptor has a code");
            let (_, low) = code.split_once(":0x").expect("a code has two halves");
            let code = u64::from_str_radix(low, 16).expect("a code is hexadecimal");
            let fields = body.split("<field").skip(1);
            let fields = fields.map(|field| attribute(field, "name").expect("a field has a name")).collect();
            found.insert(attribute(&head, "name").expect("a type has a name"), (code, fields));
        }
        found
    }

    #[test]
    fn names_are_those_of_the_specification() {
        let folder = std::env::var_os("RINGMAIN_TESTDATA")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
        let mut specified = BTreeMap::new();
        for part in ["transport", "messaging", "transactions", "security"] {
            let path = folder.join(format!("spec/amqp-1.0-{part}.xml"));
            let Ok(text) = std::fs::read_to_string(&path) else {
                eprintln!("SKIPPED: no specification here: set RINGMAIN_TESTDATA to a folder with spec/");
                return;
            };
            specified.extend(composites(&text));
        }
        assert!(specified.len() >= COMPOSITES.len());
        for (code, name, fields) in COMPOSITES {
            let (specified_code, specified_fields) = &specified[*name];
            assert_eq!(
                (code, fields.to_vec()),
                (specified_code, specified_fields.iter().map(String::as_str).collect()),
                "{name}"
            );
        }
    }
}
