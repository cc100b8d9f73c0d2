//! Fields that hold several symbols: capabilities, outcomes, locales, mechanisms (AMQP 1.0 §1.4,
//! `multiple="true"`).

use core::fmt;

use crate::constructor::{Type, code};
use crate::cursor::Cursor;
use crate::error::{Full, Malformed, MalformedKind};
use crate::primitive::{Decode, Element, Encode, Symbol};
use crate::value::{Value, View};
use crate::writer::Writer;

/// No symbol, one, or several.
///
/// On the wire: null or an array without elements, a bare symbol, or an array of symbols; all three are
/// accepted. Encoded, one symbol is bare (some peers look at nothing else), several are an array.
#[derive(Clone, Copy, Default)]
pub enum Symbols<'b> {
    /// The field is absent.
    #[default]
    None,
    /// As it came: a symbol or an array of symbols.
    Encoded(Value<'b>),
    /// Ours, to be encoded; ASCII.
    Slice(&'b [&'b str]),
}

impl<'b> Symbols<'b> {
    /// The symbols in their order.
    pub fn iter(&self) -> impl Iterator<Item = &'b str> + use<'b> {
        let (slice, array) = match *self {
            Self::None => (&[][..], None),
            Self::Slice(slice) => (slice, None),
            Self::Encoded(value) => (&[][..], Some(value)),
        };
        let (bare, items) = match array.map(|value| value.view()) {
            Some(View::Symbol(Symbol(text))) => (Some(text), None),
            Some(View::Array(items)) => (None, Some(items)),
            Some(_) | None => (None, None),
        };
        let encoded = items.into_iter().flatten().filter_map(|item| match item {
            View::Symbol(Symbol(text)) => Some(text),
            _ => None,
        });
        slice.iter().copied().chain(bare).chain(encoded)
    }

    /// Whether `symbol` is among them.
    pub fn contains(&self, symbol: &str) -> bool {
        self.iter().any(|each| each == symbol)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl PartialEq for Symbols<'_> {
    /// The same symbols in the same order, however they are held.
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Symbols<'_> {}

impl fmt::Debug for Symbols<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'b> Decode<'b> for Symbols<'b> {
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        let value = Value::decode(cursor, field)?;
        let fits = match value.view() {
            View::Null => return Ok(Self::None),
            View::Symbol(_) => true,
            View::Array(items) => items.primitive() == Type::Symbol && items.descriptors().next().is_none(),
            _ => false,
        };
        if fits {
            return Ok(Self::Encoded(value));
        }
        let found = value.encoded()[0];
        Err(start.fail(MalformedKind::UnexpectedType { expected: "symbol", found }, field))
    }
}

impl Encode for Symbols<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match *self {
            Self::None => writer.push(code::NULL),
            Self::Encoded(value) => value.encode(writer),
            Self::Slice([]) => writer.push(code::NULL),
            Self::Slice([symbol]) => Symbol(symbol).encode(writer),
            Self::Slice(symbols) => {
                let long = symbols.iter().any(|symbol| symbol.len() > usize::from(u8::MAX));
                let format_code = if long { code::SYM32 } else { code::SYM8 };
                let count = u32::try_from(symbols.len()).map_err(|_| Full)?;
                writer.array_of(count, |writer| {
                    writer.push(format_code)?;
                    symbols.iter().try_for_each(|symbol| Symbol(symbol).encode_bare(format_code, writer))
                })
            }
        }
    }
}
