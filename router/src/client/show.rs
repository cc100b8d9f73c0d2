//! Messages as text.

use core::fmt::{self, Write as _};

use ringmain_codec::{SectionError, SectionKind, Sections, Value, View};

/// How much of a binary that isn't text is shown.
const BINARY_BYTES_SHOWN: usize = 32;

/// The fields of a header section, in order (AMQP 1.0 §3.2.1).
const HEADER_FIELDS: [&str; 5] = ["durable", "priority", "ttl", "first-acquirer", "delivery-count"];

/// The fields of a properties section, in order (AMQP 1.0 §3.2.4).
const PROPERTIES_FIELDS: [&str; 13] = [
    "message-id",
    "user-id",
    "to",
    "subject",
    "reply-to",
    "correlation-id",
    "content-type",
    "content-encoding",
    "absolute-expiry-time",
    "creation-time",
    "group-id",
    "group-sequence",
    "reply-to-group-id",
];

/// The body of a message, on one line: a text as it is, anything else in a readable notation. If the
/// message isn't one, that is said instead.
pub(super) fn body(message: &[u8]) -> String {
    let mut out = String::new();
    let result = each_section(message, |kind, value| {
        let is_first = out.is_empty();
        match kind {
            SectionKind::Data | SectionKind::AmqpSequence | SectionKind::AmqpValue => {
                if !is_first && kind == SectionKind::AmqpSequence {
                    out.push_str(", ");
                }
                match value.view() {
                    View::Str(text) => show_line(&mut out, text),
                    View::Binary(bytes) => match core::str::from_utf8(bytes) {
                        Ok(text) => show_line(&mut out, text),
                        Err(_) => show_value(&mut out, &value),
                    },
                    _other => show_value(&mut out, &value),
                }
            }
            SectionKind::Header
            | SectionKind::DeliveryAnnotations
            | SectionKind::MessageAnnotations
            | SectionKind::Properties
            | SectionKind::ApplicationProperties
            | SectionKind::Footer => {}
        }
    });
    finish(out, result)
}

/// Every section of a message, each on a line of its own.
pub(super) fn full(message: &[u8]) -> String {
    let mut out = String::new();
    let result = each_section(message, |kind, value| {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str("  ");
        out.push_str(kind.name());
        out.push(':');
        match kind {
            SectionKind::Header => show_fields(&mut out, &HEADER_FIELDS, &value),
            SectionKind::Properties => show_fields(&mut out, &PROPERTIES_FIELDS, &value),
            SectionKind::DeliveryAnnotations
            | SectionKind::MessageAnnotations
            | SectionKind::ApplicationProperties
            | SectionKind::Data
            | SectionKind::AmqpSequence
            | SectionKind::AmqpValue
            | SectionKind::Footer => {
                out.push(' ');
                show_value(&mut out, &value);
            }
        }
    });
    finish(out, result)
}

fn each_section(message: &[u8], mut each: impl FnMut(SectionKind, Value<'_>)) -> Result<(), SectionError> {
    let mut sections = Sections::new(message);
    while let Some(section) = sections.next()? {
        each(section.kind, section.value);
    }
    Ok(())
}

fn finish(mut out: String, result: Result<(), SectionError>) -> String {
    if let Err(error) = result {
        if !out.is_empty() {
            out.push(' ');
        }
        append(&mut out, format_args!("(not a message: {error})"));
    }
    out
}

/// ` name=value` for each field that is there.
fn show_fields(out: &mut String, names: &[&str], list: &Value<'_>) {
    for (name, value) in names.iter().zip(list.items().into_iter().flatten()) {
        if !value.is_null() {
            append(out, format_args!(" {name}="));
            show_value(out, &value);
        }
    }
}

/// A text on one line, its control characters escaped.
fn show_line(out: &mut String, text: &str) {
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
}

/// A value in a readable notation. Values are nested only so deeply as the codec lets them be.
fn show_value(out: &mut String, value: &Value<'_>) {
    show_view(out, &value.view());
}

fn show_view(out: &mut String, view: &View<'_>) {
    match view {
        View::Null => out.push_str("null"),
        View::Bool(value) => append(out, format_args!("{value}")),
        View::Ubyte(value) => append(out, format_args!("{value}")),
        View::Ushort(value) => append(out, format_args!("{value}")),
        View::Uint(value) => append(out, format_args!("{value}")),
        View::Ulong(value) => append(out, format_args!("{value}")),
        View::Byte(value) => append(out, format_args!("{value}")),
        View::Short(value) => append(out, format_args!("{value}")),
        View::Int(value) => append(out, format_args!("{value}")),
        View::Long(value) => append(out, format_args!("{value}")),
        View::Float(value) => append(out, format_args!("{value:?}")),
        View::Double(value) => append(out, format_args!("{value:?}")),
        View::Decimal32(value) => show_hex(out, "decimal32:", &value.0),
        View::Decimal64(value) => show_hex(out, "decimal64:", &value.0),
        View::Decimal128(value) => show_hex(out, "decimal128:", &value.0),
        View::Char(value) => append(out, format_args!("{value:?}")),
        View::Timestamp(value) => append(out, format_args!("timestamp:{}", value.0)),
        View::Uuid(value) => show_uuid(out, &value.0),
        View::Binary(bytes) => show_binary(out, bytes),
        View::Str(text) => append(out, format_args!("{text:?}")),
        View::Symbol(symbol) => append(out, format_args!(":{symbol}")),
        View::List(items) => show_items(out, '[', ']', items.map(|item| item.view())),
        View::Array(items) => show_items(out, '[', ']', *items),
        View::Map(items) => {
            out.push('{');
            for (index, item) in items.enumerate() {
                // Keys and values come in turn.
                out.push_str(match index {
                    0 => "",
                    odd if odd % 2 == 1 => ": ",
                    _even => ", ",
                });
                show_value(out, &item);
            }
            out.push('}');
        }
        View::Described { descriptor, value } => {
            out.push('@');
            show_value(out, descriptor);
            out.push('(');
            show_value(out, value);
            out.push(')');
        }
    }
}

fn show_items<'b>(out: &mut String, open: char, close: char, items: impl Iterator<Item = View<'b>>) {
    out.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        show_view(out, &item);
    }
    out.push(close);
}

/// Text in quotes after a `b`, or the first bytes in hexadecimal.
fn show_binary(out: &mut String, bytes: &[u8]) {
    if let Ok(text) = core::str::from_utf8(bytes)
        && !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t' && c != '\r')
    {
        append(out, format_args!("b{text:?}"));
        return;
    }
    let shown = &bytes[..bytes.len().min(BINARY_BYTES_SHOWN)];
    show_hex(out, "0x", shown);
    if shown.len() < bytes.len() {
        append(out, format_args!("… ({} bytes)", bytes.len()));
    }
}

fn show_hex(out: &mut String, before: &str, bytes: &[u8]) {
    out.push_str(before);
    for byte in bytes {
        append(out, format_args!("{byte:02x}"));
    }
}

fn show_uuid(out: &mut String, bytes: &[u8; 16]) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        append(out, format_args!("{byte:02x}"));
    }
}

fn append(out: &mut String, text: fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String can't fail");
}

#[cfg(test)]
mod tests {
    use super::{body, full};

    #[test]
    fn bodies_of_every_kind() {
        assert_eq!(body(b"\0\x53\x77\xa1\x05Hello"), "Hello");
        assert_eq!(body(b"\0\x53\x77\xa1\x03a\nb"), "a\\nb");
        assert_eq!(body(b"\0\x53\x75\xa0\x02ab\0\x53\x75\xa0\x02cd"), "abcd");
        assert_eq!(body(b"\0\x53\x75\xa0\x02\xff\x00"), "0xff00");
        // A list of the uint 1 and the boolean true, then the symbol `a` behind a ulong descriptor 5.
        assert_eq!(body(b"\0\x53\x77\xc0\x04\x02\x52\x01\x41"), "[1, true]");
        assert_eq!(body(b"\0\x53\x77\0\x53\x05\xa3\x01a"), "@5(:a)");
        assert_eq!(body(b"\0\x53\x76\x45\0\x53\x76\x45"), "[], []");
    }

    #[test]
    fn all_sections_by_name() {
        let message = b"\0\x53\x70\xc0\x03\x02\x41\x50\0\x53\x74\xc1\x07\x02\xa1\x01k\xa1\x01v\0\x53\x77\x40";
        let message = {
            // The header's list: durable true, priority (ubyte) 7.
            let mut bytes = message.to_vec();
            bytes.splice(3..8, [0xc0, 4, 2, 0x41, 0x50, 7]);
            bytes
        };
        assert_eq!(
            full(&message),
            "  header: durable=true priority=7\n  application-properties: {\"k\": \"v\"}\n  amqp-value: null"
        );
    }

    #[test]
    fn what_is_no_message_is_said() {
        assert!(body(b"hello").contains("not a message"));
        assert!(full(b"\0\x53\x77").contains("not a message"));
        assert_eq!(body(b""), "");
    }
}
