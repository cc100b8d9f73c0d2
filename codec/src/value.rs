//! Values whose type only the wire knows: checked once when decoded, looked into on demand (AMQP 1.0 §1.2,
//! §1.6).

use core::fmt;
use core::iter::FusedIterator;

use crate::constructor::{Category, Constructor, Type, code, layout};
use crate::cursor::Cursor;
use crate::error::{Full, Malformed, MalformedKind};
use crate::primitive::{
    Decimal32, Decimal64, Decimal128, Decode, Element, Encode, Symbol, Timestamp, Uuid, ascii,
};
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

/// The elements of a list, or the keys and values of a map in turn.
#[derive(Clone, Copy)]
pub struct Items<'b> {
    rest: &'b [u8],
    remaining: u32,
}

impl<'b> Iterator for Items<'b> {
    type Item = Value<'b>;

    fn next(&mut self) -> Option<Value<'b>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let (value, rest) = Value::split_checked(self.rest);
        self.rest = rest;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining as usize, Some(self.remaining as usize))
    }
}

impl ExactSizeIterator for Items<'_> {}
impl FusedIterator for Items<'_> {}

/// The entries of a map, in its order.
#[derive(Clone, Copy)]
pub struct MapEntries<'b> {
    items: Items<'b>,
}

impl<'b> Iterator for MapEntries<'b> {
    type Item = (Value<'b>, Value<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.items.next()?, self.items.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let entries = self.items.len() / 2;
        (entries, Some(entries))
    }
}

impl ExactSizeIterator for MapEntries<'_> {}
impl FusedIterator for MapEntries<'_> {}

/// The elements of an array. They share one constructor, so they are no [`Value`]s of their own but
/// [`View`]s; the descriptors of an array of described values stand beside them, in
/// [`descriptors`](Self::descriptors).
#[derive(Clone, Copy)]
pub struct ArrayItems<'b> {
    /// `0x00 descriptor` as often as elements are described.
    descriptors: &'b [u8],
    format_code: u8,
    rest: &'b [u8],
    remaining: u32,
}

impl<'b> ArrayItems<'b> {
    /// From the checked bytes after an array's count.
    fn new(remaining: u32, content: &'b [u8]) -> Self {
        let mut at = 0;
        while content[at] == code::DESCRIBED {
            at += 1;
            at += skip::span(&content[at..]);
        }
        let (descriptors, elements) = content.split_at(at);
        Self { descriptors, format_code: elements[0], rest: &elements[1..], remaining }
    }

    /// The type of all elements.
    pub fn primitive(&self) -> Type {
        Constructor::of(self.format_code).expect("checked when the value was decoded").primitive
    }

    /// What describes each of the elements, outermost first; nothing for most arrays.
    pub fn descriptors(&self) -> impl Iterator<Item = Value<'b>> + use<'b> {
        let mut rest = self.descriptors;
        core::iter::from_fn(move || {
            let (_, descriptor) = rest.split_first()?;
            let (value, after) = Value::split_checked(descriptor);
            rest = after;
            Some(value)
        })
    }

    /// The narrowest format code that fits every element that is left.
    fn shortest_code(&self) -> u8 {
        let (narrow, wide) = match self.primitive() {
            Type::Boolean => return code::BOOLEAN,
            // Elements of one array differ in size: whether all of them fit the short form is not worth two
            // passes.
            Type::List => return code::LIST32,
            Type::Map => return code::MAP32,
            Type::Array => return code::ARRAY32,
            Type::Uint => (code::SMALLUINT, code::UINT),
            Type::Ulong => (code::SMALLULONG, code::ULONG),
            Type::Int => (code::SMALLINT, code::INT),
            Type::Long => (code::SMALLLONG, code::LONG),
            Type::Binary => (code::VBIN8, code::VBIN32),
            Type::String => (code::STR8, code::STR32),
            Type::Symbol => (code::SYM8, code::SYM32),
            Type::Null
            | Type::Ubyte
            | Type::Ushort
            | Type::Byte
            | Type::Short
            | Type::Float
            | Type::Double
            | Type::Decimal32
            | Type::Decimal64
            | Type::Decimal128
            | Type::Char
            | Type::Timestamp
            | Type::Uuid => return self.format_code,
        };
        let mut elements = *self;
        if elements.all(|element| element.fits_byte()) { narrow } else { wide }
    }
}

impl<'b> Iterator for ArrayItems<'b> {
    type Item = View<'b>;

    fn next(&mut self) -> Option<View<'b>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let view = view_bare(self.format_code, self.rest);
        self.rest = &self.rest[skip::bare_span(self.format_code, self.rest)..];
        Some(view)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining as usize, Some(self.remaining as usize))
    }
}

impl ExactSizeIterator for ArrayItems<'_> {}
impl FusedIterator for ArrayItems<'_> {}

impl View<'_> {
    /// Whether the number, or the size of the text, fits the one-byte form of its type.
    fn fits_byte(&self) -> bool {
        match *self {
            Self::Uint(number) => u8::try_from(number).is_ok(),
            Self::Ulong(number) => u8::try_from(number).is_ok(),
            Self::Int(number) => i8::try_from(number).is_ok(),
            Self::Long(number) => i8::try_from(number).is_ok(),
            Self::Binary(bytes) => u8::try_from(bytes.len()).is_ok(),
            Self::Str(text) => u8::try_from(text.len()).is_ok(),
            Self::Symbol(Symbol(text)) => u8::try_from(text.len()).is_ok(),
            _ => false,
        }
    }

    /// Writes the data of an array element without its constructor. `format_code` is what
    /// [`ArrayItems::shortest_code`] chose.
    fn encode_bare(&self, format_code: u8, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Null => Ok(()),
            Self::Bool(value) => value.encode_bare(format_code, writer),
            Self::Ubyte(value) => value.encode_bare(format_code, writer),
            Self::Ushort(value) => value.encode_bare(format_code, writer),
            Self::Uint(value) => value.encode_bare(format_code, writer),
            Self::Ulong(value) => value.encode_bare(format_code, writer),
            Self::Byte(value) => value.encode_bare(format_code, writer),
            Self::Short(value) => value.encode_bare(format_code, writer),
            Self::Int(value) => value.encode_bare(format_code, writer),
            Self::Long(value) => value.encode_bare(format_code, writer),
            Self::Float(value) => value.encode_bare(format_code, writer),
            Self::Double(value) => value.encode_bare(format_code, writer),
            Self::Decimal32(value) => value.encode_bare(format_code, writer),
            Self::Decimal64(value) => value.encode_bare(format_code, writer),
            Self::Decimal128(value) => value.encode_bare(format_code, writer),
            Self::Char(value) => value.encode_bare(format_code, writer),
            Self::Timestamp(value) => value.encode_bare(format_code, writer),
            Self::Uuid(value) => value.encode_bare(format_code, writer),
            Self::Binary(value) => value.encode_bare(format_code, writer),
            Self::Str(value) => value.encode_bare(format_code, writer),
            Self::Symbol(value) => value.encode_bare(format_code, writer),
            Self::List(items) | Self::Map(items) => writer.bare_compound(|writer| {
                items.clone().try_for_each(|item| item.view().encode(writer))?;
                Ok(items.remaining)
            }),
            Self::Array(items) => writer.bare_compound(|writer| {
                items.encode_content(writer)?;
                Ok(items.remaining)
            }),
            Self::Described { .. } => unreachable!("an array's elements are described by its constructor"),
        }
    }
}

impl ArrayItems<'_> {
    /// Writes descriptors, constructor and elements.
    fn encode_content(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        for descriptor in self.descriptors() {
            writer.push(code::DESCRIBED)?;
            descriptor.view().encode(writer)?;
        }
        let format_code = self.shortest_code();
        writer.push(format_code)?;
        let mut elements = *self;
        elements.try_for_each(|element| element.encode_bare(format_code, writer))
    }
}

impl Encode for View<'_> {
    /// The shortest form of the value and of everything in it. Two things stay long: lists, maps and arrays
    /// as *elements of an array*, and array elements without bytes other than null.
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Null => writer.push(code::NULL),
            Self::Bool(value) => value.encode(writer),
            Self::Ubyte(value) => value.encode(writer),
            Self::Ushort(value) => value.encode(writer),
            Self::Uint(value) => value.encode(writer),
            Self::Ulong(value) => value.encode(writer),
            Self::Byte(value) => value.encode(writer),
            Self::Short(value) => value.encode(writer),
            Self::Int(value) => value.encode(writer),
            Self::Long(value) => value.encode(writer),
            Self::Float(value) => value.encode(writer),
            Self::Double(value) => value.encode(writer),
            Self::Decimal32(value) => value.encode(writer),
            Self::Decimal64(value) => value.encode(writer),
            Self::Decimal128(value) => value.encode(writer),
            Self::Char(value) => value.encode(writer),
            Self::Timestamp(value) => value.encode(writer),
            Self::Uuid(value) => value.encode(writer),
            Self::Binary(value) => value.encode(writer),
            Self::Str(value) => value.encode(writer),
            Self::Symbol(value) => value.encode(writer),
            Self::List(items) => {
                writer.list(|writer| items.clone().try_for_each(|item| writer.put(&item.view())))
            }
            Self::Map(items) => {
                writer.map(|writer| items.clone().try_for_each(|item| writer.put(&item.view())))
            }
            Self::Array(items) => writer.array_of(items.remaining, |writer| items.encode_content(writer)),
            Self::Described { descriptor, value } => writer.atomically(|writer| {
                writer.push(code::DESCRIBED)?;
                descriptor.view().encode(writer)?;
                value.view().encode(writer)
            }),
        }
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

impl fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

impl fmt::Debug for MapEntries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(*self).finish()
    }
}

impl fmt::Debug for ArrayItems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}
