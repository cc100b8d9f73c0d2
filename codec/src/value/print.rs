//! Printing a value in a notation for humans.

use core::fmt;

use crate::primitive::{Decimal32, Decimal64, Decimal128, Symbol, Timestamp, Uuid};
use crate::value::{MapEntries, Value, View};

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Value<'_> {
    /// `{"key"=1, :symbol=[true, null]}`, `@:descriptor value`, `#[1, 2]` for arrays, `b"\x00"` for binaries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.view(), f)
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Ubyte(value) => write!(f, "{value}"),
            Self::Ushort(value) => write!(f, "{value}"),
            Self::Uint(value) => write!(f, "{value}"),
            Self::Ulong(value) => write!(f, "{value}"),
            Self::Byte(value) => write!(f, "{value}"),
            Self::Short(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Long(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Double(value) => write!(f, "{value:?}"),
            Self::Decimal32(Decimal32(bytes)) => hex(f, "decimal32 ", bytes),
            Self::Decimal64(Decimal64(bytes)) => hex(f, "decimal64 ", bytes),
            Self::Decimal128(Decimal128(bytes)) => hex(f, "decimal128 ", bytes),
            Self::Char(value) => write!(f, "{value:?}"),
            Self::Timestamp(Timestamp(ms)) => write!(f, "timestamp {ms}"),
            Self::Uuid(Uuid(bytes)) => hex(f, "uuid ", bytes),
            Self::Binary(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
            Self::Str(text) => write!(f, "{text:?}"),
            Self::Symbol(Symbol(text)) => write!(f, ":{}", text.escape_default()),
            Self::List(items) => {
                f.write_str("[")?;
                separated(f, *items)?;
                f.write_str("]")
            }
            Self::Map(items) => {
                f.write_str("{")?;
                for (index, (key, value)) in (MapEntries { items: *items }).enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{key}={value}")?;
                }
                f.write_str("}")
            }
            Self::Array(items) => {
                for descriptor in items.descriptors() {
                    write!(f, "@{descriptor} ")?;
                }
                f.write_str("#[")?;
                separated(f, *items)?;
                f.write_str("]")
            }
            Self::Described { descriptor, value } => write!(f, "@{descriptor} {value}"),
        }
    }
}

fn separated(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = impl fmt::Display>) -> fmt::Result {
    for (index, item) in items.enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{item}")?;
    }
    Ok(())
}

fn hex(f: &mut fmt::Formatter<'_>, name: &str, bytes: &[u8]) -> fmt::Result {
    f.write_str(name)?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
