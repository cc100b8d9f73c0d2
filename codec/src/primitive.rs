//! The primitive types in Rust: [`Decode`] accepts every encoding of a type, [`Encode`] writes the shortest
//! (AMQP 1.0 §1.6).

use core::fmt;

use crate::constructor::{Constructor, Type, code};
use crate::cursor::Cursor;
use crate::error::{Full, Malformed, MalformedKind};
use crate::writer::Writer;

/// Something that can be read off the wire.
pub trait Decode<'b>: Sized {
    /// Reads one value at the cursor. `field` names it in errors.
    ///
    /// # Errors
    /// The bytes are no value of this type.
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed>;
}

/// Something that can be written to the wire.
pub trait Encode {
    /// Writes one value in its shortest form.
    ///
    /// # Errors
    /// [`Full`] when the buffer is too small; what is written of it then is of no use
    /// ([`Writer::put`] takes it back).
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full>;
}

/// A value that can be an array's element, where one constructor serves all (§1.6.24).
pub trait Element: Sized {
    /// The narrowest format code that fits all `items`. Codes without data (`uint0` …) are not used: an
    /// array's elements have at least one byte each, null apart.
    fn array_code<'i>(items: impl Iterator<Item = &'i Self>) -> u8
    where
        Self: 'i;

    /// Writes the value's data for `format_code`, without the code.
    ///
    /// # Errors
    /// [`Full`] when the buffer is too small.
    fn encode_bare(&self, format_code: u8, writer: &mut Writer<'_>) -> Result<(), Full>;
}

/// A symbol: ASCII from a constrained domain (§1.6.21).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Symbol<'b>(
    /// The text; ASCII if it was decoded.
    pub &'b str,
);

/// Milliseconds since the Unix epoch, negative before it (§1.6.17).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(
    /// Milliseconds.
    pub i64,
);

/// A universally unique id, in network order (§1.6.18).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Uuid(
    /// The 16 bytes.
    pub [u8; 16],
);

/// An IEEE 754 decimal32, as the bytes on the wire (§1.6.13).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decimal32(
    /// The 4 bytes.
    pub [u8; 4],
);

/// An IEEE 754 decimal64, as the bytes on the wire (§1.6.14).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decimal64(
    /// The 8 bytes.
    pub [u8; 8],
);

/// An IEEE 754 decimal128, as the bytes on the wire (§1.6.15).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decimal128(
    /// The 16 bytes.
    pub [u8; 16],
);

impl fmt::Display for Symbol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// What is wrong at the cursor, where a value of `primitive` was expected.
#[cold]
fn mismatch(cursor: Cursor<'_>, primitive: Type, field: &'static str) -> Malformed {
    let kind = match cursor.peek() {
        None => MalformedKind::UnexpectedEnd,
        Some(found) => match Constructor::of(found) {
            Some(constructor) if constructor.primitive == primitive => MalformedKind::UnexpectedEnd,
            Some(_) | None => MalformedKind::UnexpectedType { expected: primitive.name(), found },
        },
    };
    cursor.fail(kind, field)
}

impl Decode<'_> for bool {
    #[inline(always)]
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        let (value, rest) = match cursor.rest {
            [code::TRUE, rest @ ..] | [code::BOOLEAN, 1, rest @ ..] => (true, rest),
            [code::FALSE, rest @ ..] | [code::BOOLEAN, 0, rest @ ..] => (false, rest),
            [code::BOOLEAN, byte, ..] => {
                return Err(cursor.fail(MalformedKind::InvalidBoolean(*byte), field));
            }
            _ => return Err(mismatch(*cursor, Type::Boolean, field)),
        };
        cursor.rest = rest;
        Ok(value)
    }
}

impl Encode for bool {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.push(if *self { code::TRUE } else { code::FALSE })
    }
}

impl Element for bool {
    fn array_code<'i>(_items: impl Iterator<Item = &'i Self>) -> u8 {
        code::BOOLEAN
    }

    fn encode_bare(&self, _format_code: u8, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.push(u8::from(*self))
    }
}

impl Decode<'_> for u32 {
    #[inline(always)]
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        let (value, rest) = match cursor.rest {
            [code::SMALLUINT, value, rest @ ..] => (u32::from(*value), rest),
            [code::UINT0, rest @ ..] => (0, rest),
            [code::UINT, b0, b1, b2, b3, rest @ ..] => (u32::from_be_bytes([*b0, *b1, *b2, *b3]), rest),
            _ => return Err(mismatch(*cursor, Type::Uint, field)),
        };
        cursor.rest = rest;
        Ok(value)
    }
}

impl Encode for u32 {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match (*self, u8::try_from(*self)) {
            (0, _) => writer.push(code::UINT0),
            (_, Ok(small)) => writer.extend_array([code::SMALLUINT, small]),
            (value, Err(_)) => {
                let [b0, b1, b2, b3] = value.to_be_bytes();
                writer.extend_array([code::UINT, b0, b1, b2, b3])
            }
        }
    }
}

impl Decode<'_> for u64 {
    #[inline]
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        let (value, rest) = match cursor.rest {
            [code::SMALLULONG, value, rest @ ..] => (u64::from(*value), rest),
            [code::ULONG0, rest @ ..] => (0, rest),
            [code::ULONG, rest @ ..] => match rest.split_first_chunk::<8>() {
                Some((bytes, rest)) => (u64::from_be_bytes(*bytes), rest),
                None => return Err(mismatch(*cursor, Type::Ulong, field)),
            },
            _ => return Err(mismatch(*cursor, Type::Ulong, field)),
        };
        cursor.rest = rest;
        Ok(value)
    }
}

impl Encode for u64 {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match (*self, u8::try_from(*self)) {
            (0, _) => writer.push(code::ULONG0),
            (_, Ok(small)) => writer.extend_array([code::SMALLULONG, small]),
            (value, Err(_)) => writer.atomically(|writer| {
                writer.push(code::ULONG)?;
                writer.extend_array(value.to_be_bytes())
            }),
        }
    }
}

impl Decode<'_> for i32 {
    #[inline]
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        let (value, rest) = match cursor.rest {
            [code::SMALLINT, value, rest @ ..] => (i32::from(value.cast_signed()), rest),
            [code::INT, b0, b1, b2, b3, rest @ ..] => (i32::from_be_bytes([*b0, *b1, *b2, *b3]), rest),
            _ => return Err(mismatch(*cursor, Type::Int, field)),
        };
        cursor.rest = rest;
        Ok(value)
    }
}

impl Encode for i32 {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match i8::try_from(*self) {
            Ok(small) => writer.extend_array([code::SMALLINT, small.cast_unsigned()]),
            Err(_) => {
                let [b0, b1, b2, b3] = self.to_be_bytes();
                writer.extend_array([code::INT, b0, b1, b2, b3])
            }
        }
    }
}

impl Decode<'_> for i64 {
    #[inline]
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        let (value, rest) = match cursor.rest {
            [code::SMALLLONG, value, rest @ ..] => (i64::from(value.cast_signed()), rest),
            [code::LONG, rest @ ..] => match rest.split_first_chunk::<8>() {
                Some((bytes, rest)) => (i64::from_be_bytes(*bytes), rest),
                None => return Err(mismatch(*cursor, Type::Long, field)),
            },
            _ => return Err(mismatch(*cursor, Type::Long, field)),
        };
        cursor.rest = rest;
        Ok(value)
    }
}

impl Encode for i64 {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match i8::try_from(*self) {
            Ok(small) => writer.extend_array([code::SMALLLONG, small.cast_unsigned()]),
            Err(_) => writer.atomically(|writer| {
                writer.push(code::LONG)?;
                writer.extend_array(self.to_be_bytes())
            }),
        }
    }
}

/// Types that have a byte form beside the full one; `zero` forms are left to single values.
macro_rules! narrow_element {
    ($($rust:ty, $small:ty, $narrow:path, $wide:path;)+) => {$(
        impl Element for $rust {
            fn array_code<'i>(mut items: impl Iterator<Item = &'i Self>) -> u8 {
                if items.all(|item| <$small>::try_from(*item).is_ok()) { $narrow } else { $wide }
            }

            fn encode_bare(&self, format_code: u8, writer: &mut Writer<'_>) -> Result<(), Full> {
                match <$small>::try_from(*self) {
                    Ok(small) if format_code == $narrow => writer.extend_array(small.to_be_bytes()),
                    _ => writer.extend_array(self.to_be_bytes()),
                }
            }
        }
    )+};
}

narrow_element! {
    u32, u8, code::SMALLUINT, code::UINT;
    u64, u8, code::SMALLULONG, code::ULONG;
    i32, i8, code::SMALLINT, code::INT;
    i64, i8, code::SMALLLONG, code::LONG;
}

/// Types with one encoding of a fixed width.
macro_rules! fixed {
    ($($rust:ty, $type:path, $code:path, $width:literal, $from:expr, $to:expr;)+) => {$(
        impl Decode<'_> for $rust {
            #[inline]
            fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
                if let [$code, rest @ ..] = cursor.rest
                    && let Some((bytes, rest)) = rest.split_first_chunk::<$width>()
                {
                    cursor.rest = rest;
                    return Ok($from(*bytes));
                }
                Err(mismatch(*cursor, $type, field))
            }
        }

        impl Encode for $rust {
            #[inline]
            fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
                let mut encoded = [$code; 1 + $width];
                encoded[1..].copy_from_slice(&$to(*self));
                writer.extend_array(encoded)
            }
        }

        impl Element for $rust {
            fn array_code<'i>(_items: impl Iterator<Item = &'i Self>) -> u8 {
                $code
            }

            fn encode_bare(&self, _format_code: u8, writer: &mut Writer<'_>) -> Result<(), Full> {
                writer.extend_array::<$width>($to(*self))
            }
        }
    )+};
}

fixed! {
    u8, Type::Ubyte, code::UBYTE, 1, u8::from_be_bytes, u8::to_be_bytes;
    u16, Type::Ushort, code::USHORT, 2, u16::from_be_bytes, u16::to_be_bytes;
    i8, Type::Byte, code::BYTE, 1, i8::from_be_bytes, i8::to_be_bytes;
    i16, Type::Short, code::SHORT, 2, i16::from_be_bytes, i16::to_be_bytes;
    f32, Type::Float, code::FLOAT, 4, f32::from_be_bytes, f32::to_be_bytes;
    f64, Type::Double, code::DOUBLE, 8, f64::from_be_bytes, f64::to_be_bytes;
    Timestamp, Type::Timestamp, code::TIMESTAMP, 8,
        |bytes| Timestamp(i64::from_be_bytes(bytes)), |Timestamp(ms): Timestamp| ms.to_be_bytes();
    Uuid, Type::Uuid, code::UUID, 16, Uuid, |Uuid(bytes)| bytes;
    Decimal32, Type::Decimal32, code::DECIMAL32, 4, Decimal32, |Decimal32(bytes)| bytes;
    Decimal64, Type::Decimal64, code::DECIMAL64, 8, Decimal64, |Decimal64(bytes)| bytes;
    Decimal128, Type::Decimal128, code::DECIMAL128, 16, Decimal128, |Decimal128(bytes)| bytes;
}

impl Decode<'_> for char {
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        let [code::CHAR, b0, b1, b2, b3, rest @ ..] = cursor.rest else {
            return Err(mismatch(*cursor, Type::Char, field));
        };
        let scalar = u32::from_be_bytes([*b0, *b1, *b2, *b3]);
        let value =
            char::from_u32(scalar).ok_or_else(|| cursor.fail(MalformedKind::InvalidChar(scalar), field))?;
        cursor.rest = rest;
        Ok(value)
    }
}

impl Encode for char {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let [b0, b1, b2, b3] = u32::from(*self).to_be_bytes();
        writer.extend_array([code::CHAR, b0, b1, b2, b3])
    }
}

impl Element for char {
    fn array_code<'i>(_items: impl Iterator<Item = &'i Self>) -> u8 {
        code::CHAR
    }

    fn encode_bare(&self, _format_code: u8, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.extend_array(u32::from(*self).to_be_bytes())
    }
}

/// The bytes of a variable-width value with one of the two codes; the cursor then stands after them.
#[inline(always)]
fn variable<'b>(
    cursor: &mut Cursor<'b>,
    primitive: Type,
    short: u8,
    long: u8,
    field: &'static str,
) -> Result<&'b [u8], Malformed> {
    let split = match cursor.rest {
        [found, size, rest @ ..] if *found == short => rest.split_at_checked(usize::from(*size)),
        [found, b0, b1, b2, b3, rest @ ..] if *found == long => {
            rest.split_at_checked(u32::from_be_bytes([*b0, *b1, *b2, *b3]) as usize)
        }
        _ => None,
    };
    match split {
        Some((bytes, rest)) => {
            cursor.rest = rest;
            Ok(bytes)
        }
        None => Err(mismatch(*cursor, primitive, field)),
    }
}

/// Writes size and bytes with the shorter of the two codes that fits.
#[inline]
fn encode_variable(bytes: &[u8], short: u8, long: u8, writer: &mut Writer<'_>) -> Result<(), Full> {
    if let Ok(size) = u8::try_from(bytes.len()) {
        return writer.extend_sized([short, size], bytes);
    }
    let [b0, b1, b2, b3] = u32::try_from(bytes.len()).map_err(|_| Full)?.to_be_bytes();
    writer.extend_sized([long, b0, b1, b2, b3], bytes)
}

/// Writes size and bytes without the code, the size as wide as `format_code` has it.
fn encode_variable_bare(bytes: &[u8], format_code: u8, writer: &mut Writer<'_>) -> Result<(), Full> {
    match u8::try_from(bytes.len()) {
        Ok(size) if format_code >> 4 == 0xa => writer.push(size)?,
        _ => writer.extend_array(u32::try_from(bytes.len()).map_err(|_| Full)?.to_be_bytes())?,
    }
    writer.extend(bytes)
}

impl<'b> Decode<'b> for &'b [u8] {
    #[inline(always)]
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        variable(cursor, Type::Binary, code::VBIN8, code::VBIN32, field)
    }
}

impl<'b> Decode<'b> for &'b str {
    #[inline]
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        let bytes = variable(cursor, Type::String, code::STR8, code::STR32, field)?;
        core::str::from_utf8(bytes).map_err(|_| start.fail(MalformedKind::InvalidUtf8, field))
    }
}

impl<'b> Decode<'b> for Symbol<'b> {
    #[inline]
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        let bytes = variable(cursor, Type::Symbol, code::SYM8, code::SYM32, field)?;
        ascii(bytes).map(Symbol).ok_or_else(|| start.fail(MalformedKind::NonAsciiSymbol, field))
    }
}

/// The text of an ASCII symbol.
#[inline]
pub(crate) fn ascii(bytes: &[u8]) -> Option<&str> {
    if !bytes.is_ascii() {
        return None;
    }
    core::str::from_utf8(bytes).ok()
}

impl Encode for [u8] {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        encode_variable(self, code::VBIN8, code::VBIN32, writer)
    }
}

impl Encode for str {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        encode_variable(self.as_bytes(), code::STR8, code::STR32, writer)
    }
}

impl Encode for Symbol<'_> {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        encode_variable(self.0.as_bytes(), code::SYM8, code::SYM32, writer)
    }
}

/// Variable-width elements: the short code if every one fits it.
macro_rules! variable_element {
    ($($rust:ty, $short:path, $long:path, $bytes:expr;)+) => {$(
        impl Element for $rust {
            fn array_code<'i>(mut items: impl Iterator<Item = &'i Self>) -> u8
            where
                Self: 'i,
            {
                if items.all(|item| $bytes(item).len() <= usize::from(u8::MAX)) { $short } else { $long }
            }

            fn encode_bare(&self, format_code: u8, writer: &mut Writer<'_>) -> Result<(), Full> {
                encode_variable_bare($bytes(self), format_code, writer)
            }
        }
    )+};
}

variable_element! {
    &[u8], code::VBIN8, code::VBIN32, |item: &Self| -> &[u8] { item };
    &str, code::STR8, code::STR32, |item: &Self| item.as_bytes();
    Symbol<'_>, code::SYM8, code::SYM32, |item: &Self| item.0.as_bytes();
}

impl<T: Encode + ?Sized> Encode for &T {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        (**self).encode(writer)
    }
}

impl<T: Encode> Encode for Option<T> {
    /// `None` is null.
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Some(value) => value.encode(writer),
            None => writer.push(code::NULL),
        }
    }
}
