//! Values whose type only the wire knows: checked once when decoded, looked into on demand (AMQP 1.0 §1.2,
//! §1.6).

mod encode;
mod items;
mod print;

pub use items::{ArrayItems, Items, MapEntries};

use crate::constructor::{Category, Constructor, Type, code, layout};
use crate::cursor::Cursor;
use crate::error::{Full, Malformed, MalformedKind};
use crate::primitive::{Decimal32, Decimal64, Decimal128, Decode, Encode, Symbol, Timestamp, Uuid, ascii};
use crate::skip;
use crate::writer::Writer;

/// Compounds, arrays and described values that may lie inside one another. Deeper ones are refused: what
/// walks through values (comparison, printing, re-encoding) needs no more than this much stack.
pub const NESTING_MAX: usize = 32;

/// Elements without any bytes (null, true, uint0, list0 …) that one array may announce. Their number isn't
/// bounded by bytes received, so it is bounded by this: walking through an array stays in proportion to its
/// encoding.
pub const EMPTY_ELEMENTS_MAX: u32 = 256;

/// One complete encoded value, borrowed. It is known to be well formed, so looking into it can't fail.
///
/// Two values are equal when they *mean* the same: an `int` encoded short equals one encoded long, but an
/// `int` never equals a `long`. Maps are ordered (§1.6.23). Floating-point numbers are compared by their
/// bits.
#[derive(Clone, Copy)]
pub struct Value<'b> {
    encoded: &'b [u8],
}

/// What a [`Value`] is.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the variants are the specification's types by name")]
pub enum View<'b> {
    Null,
    Bool(bool),
    Ubyte(u8),
    Ushort(u16),
    Uint(u32),
    Ulong(u64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    Decimal32(Decimal32),
    Decimal64(Decimal64),
    Decimal128(Decimal128),
    Char(char),
    Timestamp(Timestamp),
    Uuid(Uuid),
    Binary(&'b [u8]),
    Str(&'b str),
    Symbol(Symbol<'b>),
    List(Items<'b>),
    Map(Items<'b>),
    Array(ArrayItems<'b>),
    Described { descriptor: Value<'b>, value: Value<'b> },
}

impl<'b> Value<'b> {
    /// The null value.
    pub const NULL: Self = Self { encoded: &[code::NULL] };

    /// A value that takes up the whole of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when `bytes` aren't exactly one well-formed value.
    pub fn from_encoded(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let length = skip::measure(bytes)?;
        if length < bytes.len() {
            return Err(Malformed { kind: MalformedKind::TrailingBytes, offset: length, field: "" });
        }
        Ok(Self { encoded: bytes })
    }

    /// The bytes as they came, constructor included.
    #[inline]
    pub const fn encoded(&self) -> &'b [u8] {
        self.encoded
    }

    /// Whether it is null.
    #[inline]
    pub fn is_null(&self) -> bool {
        self.encoded == [code::NULL]
    }

    /// What it is.
    pub fn view(&self) -> View<'b> {
        let (&format_code, data) = self.encoded.split_first().expect("a value has a constructor");
        if format_code == code::DESCRIBED {
            let (descriptor, value) = data.split_at(skip::span(data));
            View::Described { descriptor: Value { encoded: descriptor }, value: Value { encoded: value } }
        } else {
            view_bare(format_code, data)
        }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&'b str> {
        if let View::Str(text) = self.view() { Some(text) } else { None }
    }

    /// The symbol, if it is one.
    pub fn as_symbol(&self) -> Option<Symbol<'b>> {
        if let View::Symbol(symbol) = self.view() { Some(symbol) } else { None }
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let View::Bool(value) = self.view() { Some(value) } else { None }
    }

    /// The bytes, if it is a binary.
    pub fn as_binary(&self) -> Option<&'b [u8]> {
        if let View::Binary(bytes) = self.view() { Some(bytes) } else { None }
    }

    /// The number, if it is a ubyte, ushort, uint or ulong.
    pub fn as_u64(&self) -> Option<u64> {
        match self.primitive_at_front()? {
            View::Ubyte(number) => Some(number.into()),
            View::Ushort(number) => Some(number.into()),
            View::Uint(number) => Some(number.into()),
            View::Ulong(number) => Some(number),
            _ => None,
        }
    }

    /// The number, if it is of any integer type and fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self.primitive_at_front()? {
            View::Byte(number) => Some(number.into()),
            View::Short(number) => Some(number.into()),
            View::Int(number) => Some(number.into()),
            View::Long(number) => Some(number),
            _ => self.as_u64().and_then(|number| i64::try_from(number).ok()),
        }
    }

    /// The elements, if it is a list.
    pub fn items(&self) -> Option<Items<'b>> {
        if let View::List(items) = self.view() { Some(items) } else { None }
    }

    /// Keys and values, if it is a map.
    pub fn entries(&self) -> Option<MapEntries<'b>> {
        if let View::Map(items) = self.view() { Some(MapEntries { items }) } else { None }
    }

    /// The value behind a string or symbol key, if it is a map that has the key (the first one, if it has
    /// more).
    pub fn get(&self, key: &str) -> Option<Value<'b>> {
        self.entries()?.find_map(|(found, value)| {
            let text = found.as_symbol().map(|Symbol(text)| text).or_else(|| found.as_str());
            (text == Some(key)).then_some(value)
        })
    }

    /// The view, unless it is described.
    fn primitive_at_front(&self) -> Option<View<'b>> {
        let (&format_code, data) = self.encoded.split_first()?;
        (format_code != code::DESCRIBED).then(|| view_bare(format_code, data))
    }

    /// The type, unless it is described.
    pub(crate) fn primitive(&self) -> Option<Type> {
        Constructor::of(*self.encoded.first()?).map(|constructor| constructor.primitive)
    }

    /// Whether it is a described value.
    pub fn is_described(&self) -> bool {
        self.encoded.first() == Some(&code::DESCRIBED)
    }

    /// The next `length` bytes, which [`skip::measure`] has found to be one value.
    pub(crate) fn from_measured(cursor: &mut Cursor<'b>, length: usize) -> Result<Self, Malformed> {
        Ok(Self { encoded: cursor.take(length)? })
    }

    /// The value at the start of bytes that were checked as part of a larger one.
    fn split_checked(bytes: &'b [u8]) -> (Self, &'b [u8]) {
        let (encoded, rest) = bytes.split_at(skip::span(bytes));
        (Self { encoded }, rest)
    }
}

impl<'b> Decode<'b> for Value<'b> {
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let length = skip::measure(cursor.rest)
            .map_err(|malformed| malformed.at_base(cursor.offset()).in_field(field))?;
        Self::from_measured(cursor, length)
    }
}

impl Encode for Value<'_> {
    /// The bytes as they came: what passes through a router isn't rewritten. [`View`] encodes in the shortest
    /// form.
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.extend(self.encoded)
    }
}

/// Fixed-width data of a checked value.
fn chunk<const N: usize>(data: &[u8]) -> [u8; N] {
    *data.first_chunk().expect("checked when the value was decoded")
}

/// What a checked value is, from its format code and the bytes after it (which may go on beyond the value).
fn view_bare(format_code: u8, data: &[u8]) -> View<'_> {
    let (category, width) = layout(format_code).expect("checked when the value was decoded");
    let (size, body) = match category {
        Category::Fixed => (usize::from(width), data),
        Category::Variable | Category::Compound | Category::Array => {
            (skip::number(width, data) as usize, &data[usize::from(width)..])
        }
    };
    let body = &body[..size];
    match format_code {
        code::NULL => View::Null,
        code::TRUE => View::Bool(true),
        code::FALSE => View::Bool(false),
        code::BOOLEAN => View::Bool(body == [1]),
        code::UBYTE => View::Ubyte(body[0]),
        code::USHORT => View::Ushort(u16::from_be_bytes(chunk(body))),
        code::UINT => View::Uint(u32::from_be_bytes(chunk(body))),
        code::SMALLUINT => View::Uint(body[0].into()),
        code::UINT0 => View::Uint(0),
        code::ULONG => View::Ulong(u64::from_be_bytes(chunk(body))),
        code::SMALLULONG => View::Ulong(body[0].into()),
        code::ULONG0 => View::Ulong(0),
        code::BYTE => View::Byte(body[0].cast_signed()),
        code::SHORT => View::Short(i16::from_be_bytes(chunk(body))),
        code::INT => View::Int(i32::from_be_bytes(chunk(body))),
        code::SMALLINT => View::Int(body[0].cast_signed().into()),
        code::LONG => View::Long(i64::from_be_bytes(chunk(body))),
        code::SMALLLONG => View::Long(body[0].cast_signed().into()),
        code::FLOAT => View::Float(f32::from_be_bytes(chunk(body))),
        code::DOUBLE => View::Double(f64::from_be_bytes(chunk(body))),
        code::DECIMAL32 => View::Decimal32(Decimal32(chunk(body))),
        code::DECIMAL64 => View::Decimal64(Decimal64(chunk(body))),
        code::DECIMAL128 => View::Decimal128(Decimal128(chunk(body))),
        code::CHAR => {
            let scalar = u32::from_be_bytes(chunk(body));
            View::Char(char::from_u32(scalar).expect("checked when the value was decoded"))
        }
        code::TIMESTAMP => View::Timestamp(Timestamp(i64::from_be_bytes(chunk(body)))),
        code::UUID => View::Uuid(Uuid(chunk(body))),
        code::VBIN8 | code::VBIN32 => View::Binary(body),
        code::STR8 | code::STR32 => {
            View::Str(core::str::from_utf8(body).expect("checked when the value was decoded"))
        }
        code::SYM8 | code::SYM32 => {
            View::Symbol(Symbol(ascii(body).expect("checked when the value was decoded")))
        }
        code::LIST0 => View::List(Items { rest: &[], remaining: 0 }),
        code::LIST8 | code::LIST32 => {
            View::List(Items { rest: &body[usize::from(width)..], remaining: skip::number(width, body) })
        }
        code::MAP8 | code::MAP32 => {
            View::Map(Items { rest: &body[usize::from(width)..], remaining: skip::number(width, body) })
        }
        code::ARRAY8 | code::ARRAY32 => {
            View::Array(ArrayItems::new(skip::number(width, body), &body[usize::from(width)..]))
        }
        _ => unreachable!("checked when the value was decoded"),
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        // Most values that are equal are so byte by byte.
        self.encoded == other.encoded || self.view() == other.view()
    }
}

impl Eq for Value<'_> {}

impl PartialEq for View<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Ubyte(a), Self::Ubyte(b)) => a == b,
            (Self::Ushort(a), Self::Ushort(b)) => a == b,
            (Self::Uint(a), Self::Uint(b)) => a == b,
            (Self::Ulong(a), Self::Ulong(b)) => a == b,
            (Self::Byte(a), Self::Byte(b)) => a == b,
            (Self::Short(a), Self::Short(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Long(a), Self::Long(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::Decimal32(a), Self::Decimal32(b)) => a == b,
            (Self::Decimal64(a), Self::Decimal64(b)) => a == b,
            (Self::Decimal128(a), Self::Decimal128(b)) => a == b,
            (Self::Char(a), Self::Char(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Uuid(a), Self::Uuid(b)) => a == b,
            (Self::Binary(a), Self::Binary(b)) => a == b,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Symbol(a), Self::Symbol(b)) => a == b,
            (Self::List(a), Self::List(b)) | (Self::Map(a), Self::Map(b)) => a.len() == b.len() && a.eq(*b),
            (Self::Array(a), Self::Array(b)) => {
                a.len() == b.len()
                    && a.primitive() == b.primitive()
                    && a.descriptors().eq(b.descriptors())
                    && a.eq(*b)
            }
            (
                Self::Described { descriptor: descriptor_a, value: a },
                Self::Described { descriptor: descriptor_b, value: b },
            ) => descriptor_a == descriptor_b && a == b,
            _ => false,
        }
    }
}

impl Eq for View<'_> {}
