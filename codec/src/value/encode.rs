//! Encoding a value anew, in the shortest form of everything in it.

use crate::constructor::{Type, code};
use crate::error::Full;
use crate::primitive::{Element, Encode, Symbol};
use crate::value::{ArrayItems, View};
use crate::writer::Writer;

impl ArrayItems<'_> {
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
