//! What can be wrong with bytes ([`Malformed`]) and with the caller's buffer ([`Full`]).

use core::fmt;

use crate::condition::Condition;

/// Bytes from the peer that are not what the specification allows there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// What is wrong.
    pub kind: MalformedKind,
    /// Where: bytes from the start of what was given to decode.
    pub offset: usize,
    /// In which field, as `composite.field` in the specification's spelling (`transfer.delivery-tag`); empty
    /// where no field is being decoded.
    pub field: &'static str,
}

/// The ways of being malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedKind {
    /// The bytes end inside a value. Where the bytes are the received part of something longer, more may
    /// complete it.
    UnexpectedEnd,
    /// A value reaches beyond the end of the list, map or array that holds it: more bytes can't complete it.
    BeyondEnclosing,
    /// Bytes are left after the last element that the count announced, or after the one value expected.
    TrailingBytes,
    /// A value of another type than the field has (§1.4).
    UnexpectedType {
        /// The specification's name of the type that the field has.
        expected: &'static str,
        /// The format code found.
        found: u8,
    },
    /// A format code that AMQP 1.0 doesn't assign (§1.6).
    UnknownFormatCode(u8),
    /// A size too small to hold the count that it covers (§1.2.3).
    SizeTooSmall,
    /// More elements than the bytes could hold.
    CountBeyondBytes,
    /// A map with an odd number of elements (§1.6.23).
    OddMapCount,
    /// Array elements that don't fill the array's size exactly (§1.6.24).
    ArraySizeMismatch,
    /// More elements without any bytes (null, true, list0 …) in one array than
    /// [`EMPTY_ELEMENTS_MAX`](crate::value::EMPTY_ELEMENTS_MAX).
    TooManyEmptyElements,
    /// Nested deeper than [`NESTING_MAX`](crate::value::NESTING_MAX).
    NestingTooDeep,
    /// A string that isn't UTF-8 (§1.6.20).
    InvalidUtf8,
    /// A symbol with a byte above 127 (§1.6.21).
    NonAsciiSymbol,
    /// A char that isn't a Unicode scalar value (§1.6.16).
    InvalidChar(u32),
    /// A boolean byte other than 0 and 1 (§1.6.2).
    InvalidBoolean(u8),
    /// A value outside the choices of its restricted type (§1.4).
    InvalidChoice(u64),
    /// A mandatory field that is null or left out (§1.4).
    MandatoryFieldAbsent,
    /// A frame body whose descriptor is no performative (§2.7) or, in a SASL frame, no SASL one (§5.3.3).
    UnknownPerformative,
    /// A described type that the field doesn't allow, or that this crate doesn't know there.
    UnknownDescriptor {
        /// The specification's name of what is expected there.
        expected: &'static str,
    },
    /// A message section with an unknown descriptor (§3.2).
    UnknownSection,
    /// A message section that may not follow the one before it (§3.2).
    SectionOrder,
    /// A frame's declared size is below its 8-byte header (§2.3.1).
    FrameSizeTooSmall(u32),
    /// A frame is larger than the maximum in force (§2.7.1).
    FrameTooLarge {
        /// The size that the frame declares, in bytes.
        size: u32,
        /// The maximum in force, in bytes.
        max: u32,
    },
    /// A frame's data offset (in 4-byte words) is below 2 or beyond the frame (§2.3.1).
    FrameDataOffset(u8),
    /// A frame type other than 0 (AMQP) and 1 (SASL).
    FrameType(u8),
    /// Not a protocol header that AMQP 1.0 defines (§2.2).
    ProtocolHeader,
}

impl Malformed {
    /// The error condition to close with (§2.8.15, §2.8.16).
    pub fn condition(&self) -> Condition {
        match self.kind {
            MalformedKind::UnexpectedEnd
            | MalformedKind::BeyondEnclosing
            | MalformedKind::TrailingBytes
            | MalformedKind::UnexpectedType { .. }
            | MalformedKind::UnknownFormatCode(_)
            | MalformedKind::SizeTooSmall
            | MalformedKind::CountBeyondBytes
            | MalformedKind::OddMapCount
            | MalformedKind::ArraySizeMismatch
            | MalformedKind::InvalidUtf8
            | MalformedKind::NonAsciiSymbol
            | MalformedKind::InvalidChar(_)
            | MalformedKind::InvalidBoolean(_)
            | MalformedKind::UnknownSection
            | MalformedKind::SectionOrder => Condition::DECODE_ERROR,
            MalformedKind::InvalidChoice(_) | MalformedKind::MandatoryFieldAbsent => Condition::INVALID_FIELD,
            MalformedKind::TooManyEmptyElements | MalformedKind::NestingTooDeep => {
                Condition::RESOURCE_LIMIT_EXCEEDED
            }
            MalformedKind::UnknownPerformative | MalformedKind::UnknownDescriptor { .. } => {
                Condition::NOT_IMPLEMENTED
            }
            MalformedKind::FrameSizeTooSmall(_)
            | MalformedKind::FrameTooLarge { .. }
            | MalformedKind::FrameDataOffset(_)
            | MalformedKind::FrameType(_)
            | MalformedKind::ProtocolHeader => Condition::FRAMING_ERROR,
        }
    }

    /// The same with the field named, unless a field inside it is named already.
    #[cold]
    pub(crate) fn in_field(self, field: &'static str) -> Self {
        if self.field.is_empty() { Self { field, ..self } } else { self }
    }

    /// The same with `base` added to the offset: what was decoded began there.
    #[cold]
    pub(crate) fn at_base(self, base: usize) -> Self {
        Self { offset: base + self.offset, ..self }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{} ", self.field)?;
        }
        write!(f, "at byte {}: {}", self.offset, self.kind)
    }
}

impl fmt::Display for MalformedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UnexpectedEnd => f.write_str("the bytes end inside a value"),
            Self::BeyondEnclosing => f.write_str("a value reaches beyond the compound that holds it"),
            Self::TrailingBytes => f.write_str("bytes are left after the last value"),
            Self::UnexpectedType { expected, found } => {
                write!(f, "expected {expected}, found format code {found:#04x}")
            }
            Self::UnknownFormatCode(code) => write!(f, "unknown format code {code:#04x}"),
            Self::SizeTooSmall => f.write_str("a size that doesn't cover its own count"),
            Self::CountBeyondBytes => f.write_str("a count of more elements than the bytes could hold"),
            Self::OddMapCount => f.write_str("a map with an odd number of elements"),
            Self::ArraySizeMismatch => f.write_str("array elements that don't fill the array's size"),
            Self::TooManyEmptyElements => f.write_str("too many array elements without bytes"),
            Self::NestingTooDeep => f.write_str("nested too deep"),
            Self::InvalidUtf8 => f.write_str("a string that isn't UTF-8"),
            Self::NonAsciiSymbol => f.write_str("a symbol that isn't ASCII"),
            Self::InvalidChar(scalar) => write!(f, "{scalar:#x} is no Unicode character"),
            Self::InvalidBoolean(byte) => write!(f, "boolean byte {byte:#04x} is neither 0 nor 1"),
            Self::InvalidChoice(value) => write!(f, "{value} is none of the values that the type allows"),
            Self::MandatoryFieldAbsent => f.write_str("mandatory field is absent"),
            Self::UnknownPerformative => f.write_str("not a known performative"),
            Self::UnknownDescriptor { expected } => write!(f, "not a known {expected}"),
            Self::UnknownSection => f.write_str("not a known message section"),
            Self::SectionOrder => f.write_str("message section out of order"),
            Self::FrameSizeTooSmall(size) => {
                write!(f, "frame size {size} is below the frame header's 8 bytes")
            }
            Self::FrameTooLarge { size, max } => write!(f, "frame size {size} exceeds the maximum of {max}"),
            Self::FrameDataOffset(words) => {
                write!(f, "frame data offset of {words} words is outside the frame")
            }
            Self::FrameType(kind) => write!(f, "unknown frame type {kind:#04x}"),
            Self::ProtocolHeader => f.write_str("not an AMQP protocol header"),
        }
    }
}

impl core::error::Error for Malformed {}

/// The caller's buffer has no room for the whole of what is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the buffer is too small for what is encoded")
    }
}

impl core::error::Error for Full {}
