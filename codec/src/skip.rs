//! Finds the end of a value and checks everything inside it, once, without recursion.

use crate::constructor::{Category, Constructor, Type, code, layout};
use crate::error::{Malformed, MalformedKind};
use crate::primitive::ascii;
use crate::value::{EMPTY_ELEMENTS_MAX, NESTING_MAX};

/// A compound, array or described value that is being walked through.
#[derive(Clone, Copy)]
struct Level {
    /// Where it ends: nothing inside may reach beyond.
    end: usize,
    /// Values still to come; in an array, from its count on.
    remaining: u32,
    next: Next,
    /// It has a size of its own, so its last value must end exactly at `end`.
    sized: bool,
    /// It, or something around it, has a size: running out of bytes isn't a matter of more to come.
    bounded: bool,
}

/// What lies at the front of a level.
#[derive(Clone, Copy)]
enum Next {
    /// A value with its own constructor.
    Value,
    /// The constructor of an array's elements.
    ArrayConstructor,
    /// An array element, for which this format code stands at the array's head.
    Bare(u8),
}

/// The length in bytes of the value that `bytes` begin with. All of it is checked: structure, nesting, text.
///
/// Offsets in errors count from the start of `bytes`. [`MalformedKind::UnexpectedEnd`] means that `bytes` are
/// too short but may be the beginning of a value.
pub(crate) fn measure(bytes: &[u8]) -> Result<usize, Malformed> {
    let mut walk = Walk { bytes, at: 0 };
    let outermost = Level { end: bytes.len(), remaining: 1, next: Next::Value, sized: false, bounded: false };
    // Most values are scalars, or lists and maps of scalars: they need no stack of levels.
    let Some(constructor) = bytes.first().and_then(|format_code| Constructor::of(*format_code)) else {
        return walk.nested(outermost, None);
    };
    match constructor.category {
        Category::Fixed | Category::Variable => {
            walk.at = 1;
            walk.scalar(constructor, &outermost)?;
            Ok(walk.at)
        }
        Category::Compound => {
            walk.at = 1;
            let mut level = walk.compound(constructor, &outermost)?;
            while level.remaining > 0 {
                let front = bytes[..level.end].get(walk.at);
                match front.and_then(|format_code| Constructor::of(*format_code)) {
                    Some(scalar) if matches!(scalar.category, Category::Fixed | Category::Variable) => {
                        walk.at += 1;
                        level.remaining -= 1;
                        walk.scalar(scalar, &level)?;
                    }
                    Some(_) | None => {
                        return walk.nested(Level { remaining: 0, ..outermost }, Some(level));
                    }
                }
            }
            walk.close(&level)?;
            Ok(walk.at)
        }
        Category::Array => walk.nested(outermost, None),
    }
}

struct Walk<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Walk<'_> {
    /// Walks on from inside `level`, or from the start, through whatever there is.
    fn nested(mut self, outermost: Level, level: Option<Level>) -> Result<usize, Malformed> {
        let mut enclosing = [outermost; NESTING_MAX];
        let mut depth = usize::from(level.is_some());
        let mut level = level.unwrap_or(outermost);
        loop {
            // The array's constructor comes before its first element.
            if let Next::ArrayConstructor = level.next {
                let format_code = self.byte(&level)?;
                if format_code == code::DESCRIBED {
                    // Its descriptor; then the constructor goes on, and this place is come to again.
                    let descriptor = Level { remaining: 1, next: Next::Value, sized: false, ..level };
                    self.push(&mut enclosing, &mut depth, level)?;
                    level = descriptor;
                } else {
                    level = self.array_elements(format_code, level)?;
                }
                continue;
            }
            if level.remaining == 0 {
                self.close(&level)?;
                if depth == 0 {
                    return Ok(self.at);
                }
                depth -= 1;
                level = enclosing[depth];
                continue;
            }
            level.remaining -= 1;
            let format_code = match level.next {
                Next::Value => self.byte(&level)?,
                Next::Bare(format_code) => format_code,
                Next::ArrayConstructor => unreachable!("handled above"),
            };
            let inner = if format_code == code::DESCRIBED {
                Level { remaining: 2, next: Next::Value, sized: false, ..level }
            } else {
                let constructor = self.constructor(format_code)?;
                match constructor.category {
                    Category::Fixed | Category::Variable => {
                        self.scalar(constructor, &level)?;
                        continue;
                    }
                    Category::Compound | Category::Array => self.compound(constructor, &level)?,
                }
            };
            self.push(&mut enclosing, &mut depth, level)?;
            level = inner;
        }
    }

    fn push(
        &self,
        enclosing: &mut [Level; NESTING_MAX],
        depth: &mut usize,
        level: Level,
    ) -> Result<(), Malformed> {
        let slot = enclosing.get_mut(*depth).ok_or(self.fail(MalformedKind::NestingTooDeep))?;
        *slot = level;
        *depth += 1;
        Ok(())
    }

    /// Nothing may be left of a level with a size when its last value is read.
    fn close(&self, level: &Level) -> Result<(), Malformed> {
        if level.sized && self.at != level.end {
            return Err(self.fail(MalformedKind::TrailingBytes));
        }
        Ok(())
    }

    /// Reads the header of a list, map or array and gives back the level of its content.
    fn compound(&mut self, constructor: Constructor, level: &Level) -> Result<Level, Malformed> {
        let size = self.number(constructor.width, level)?;
        let start = self.at;
        let end = self.end_of(size, level)?;
        if size < u32::from(constructor.width) {
            return Err(self.fail(MalformedKind::SizeTooSmall));
        }
        let inside = Level { end, remaining: 0, next: Next::Value, sized: true, bounded: true };
        let count = self.number(constructor.width, &inside)?;
        if constructor.category == Category::Array {
            return Ok(Level { remaining: count, next: Next::ArrayConstructor, ..inside });
        }
        // Every element has at least its format code.
        if count as usize > end - self.at {
            return Err(Malformed { kind: MalformedKind::CountBeyondBytes, offset: start, field: "" });
        }
        if constructor.primitive == Type::Map && !count.is_multiple_of(2) {
            return Err(Malformed { kind: MalformedKind::OddMapCount, offset: start, field: "" });
        }
        Ok(Level { remaining: count, ..inside })
    }

    /// Checks the elements of an array as far as that goes without opening levels for them.
    fn array_elements(&mut self, format_code: u8, level: Level) -> Result<Level, Malformed> {
        let constructor = self.constructor(format_code)?;
        let room = (level.end - self.at) as u64;
        // Without overflow: 2^32 elements of 16 bytes.
        let needed = u64::from(level.remaining) * u64::from(constructor.width);
        match constructor.category {
            Category::Fixed => {
                if constructor.width == 0 && level.remaining > EMPTY_ELEMENTS_MAX {
                    return Err(self.fail(MalformedKind::TooManyEmptyElements));
                }
                if needed != room {
                    return Err(self.fail(MalformedKind::ArraySizeMismatch));
                }
                if matches!(constructor.primitive, Type::Boolean | Type::Char) && constructor.width > 0 {
                    while self.at < level.end {
                        self.scalar(constructor, &level)?;
                    }
                }
                self.at = level.end;
                Ok(Level { remaining: 0, next: Next::Bare(format_code), ..level })
            }
            Category::Variable | Category::Compound | Category::Array => {
                // Every element has at least its size.
                if needed > room {
                    return Err(self.fail(MalformedKind::CountBeyondBytes));
                }
                Ok(Level { next: Next::Bare(format_code), ..level })
            }
        }
    }

    /// Steps over the data of a scalar and checks it.
    #[inline]
    fn scalar(&mut self, constructor: Constructor, level: &Level) -> Result<(), Malformed> {
        let size = match constructor.category {
            Category::Fixed => u32::from(constructor.width),
            Category::Variable => self.number(constructor.width, level)?,
            Category::Compound | Category::Array => unreachable!("compounds are levels"),
        };
        let start = self.at;
        let end = self.end_of(size, level)?;
        let data = &self.bytes[start..end];
        let wrong = match constructor.primitive {
            Type::Boolean => match data {
                [] | [0 | 1] => None,
                [byte, ..] => Some(MalformedKind::InvalidBoolean(*byte)),
            },
            Type::Char => {
                let scalar = data.iter().fold(0, |scalar, byte| scalar << 8 | u32::from(*byte));
                char::from_u32(scalar).is_none().then_some(MalformedKind::InvalidChar(scalar))
            }
            Type::String => core::str::from_utf8(data).is_err().then_some(MalformedKind::InvalidUtf8),
            Type::Symbol => ascii(data).is_none().then_some(MalformedKind::NonAsciiSymbol),
            Type::Null
            | Type::Ubyte
            | Type::Ushort
            | Type::Uint
            | Type::Ulong
            | Type::Byte
            | Type::Short
            | Type::Int
            | Type::Long
            | Type::Float
            | Type::Double
            | Type::Decimal32
            | Type::Decimal64
            | Type::Decimal128
            | Type::Timestamp
            | Type::Uuid
            | Type::Binary
            | Type::List
            | Type::Map
            | Type::Array => None,
        };
        if let Some(kind) = wrong {
            return Err(self.fail(kind));
        }
        self.at = end;
        Ok(())
    }

    fn constructor(&self, format_code: u8) -> Result<Constructor, Malformed> {
        Constructor::of(format_code).ok_or(Malformed {
            kind: MalformedKind::UnknownFormatCode(format_code),
            offset: self.at.saturating_sub(1),
            field: "",
        })
    }

    fn byte(&mut self, level: &Level) -> Result<u8, Malformed> {
        let end = self.end_of(1, level)?;
        let byte = self.bytes[self.at];
        self.at = end;
        Ok(byte)
    }

    /// Reads a size or count of 1 or 4 bytes.
    #[inline]
    fn number(&mut self, width: u8, level: &Level) -> Result<u32, Malformed> {
        let end = self.end_of(u32::from(width), level)?;
        let number = number(width, &self.bytes[self.at..end]);
        self.at = end;
        Ok(number)
    }

    /// Where `size` more bytes end, if they are inside the level.
    #[inline]
    fn end_of(&self, size: u32, level: &Level) -> Result<usize, Malformed> {
        let room = level.end - self.at;
        if size as usize <= room {
            Ok(self.at + size as usize)
        } else if level.bounded {
            Err(self.fail(MalformedKind::BeyondEnclosing))
        } else {
            Err(self.fail(MalformedKind::UnexpectedEnd))
        }
    }

    #[cold]
    fn fail(&self, kind: MalformedKind) -> Malformed {
        Malformed { kind, offset: self.at, field: "" }
    }
}

/// The length of the first value in bytes that [`measure`] has accepted: compounds are stepped over by their
/// size.
#[inline]
pub(crate) fn span(bytes: &[u8]) -> usize {
    let mut at = 0;
    let mut pending = 1;
    while pending > 0 {
        pending -= 1;
        let format_code = bytes[at];
        at += 1;
        if format_code == code::DESCRIBED {
            pending += 2;
        } else {
            at += bare_span(format_code, &bytes[at..]);
        }
    }
    at
}

/// The length of the data for `format_code` at the start of bytes that [`measure`] has accepted.
#[inline]
pub(crate) fn bare_span(format_code: u8, data: &[u8]) -> usize {
    match layout(format_code) {
        Some((Category::Fixed, width)) => usize::from(width),
        Some((Category::Variable | Category::Compound | Category::Array, width)) => {
            usize::from(width) + number(width, data) as usize
        }
        None => unreachable!("checked when the value was decoded"),
    }
}

/// The size or count of `width` bytes at the start of checked `data`.
#[inline]
pub(crate) fn number(width: u8, data: &[u8]) -> u32 {
    match (width, data) {
        (1, [byte, ..]) => u32::from(*byte),
        (_, [b0, b1, b2, b3, ..]) => u32::from_be_bytes([*b0, *b1, *b2, *b3]),
        _ => unreachable!("checked when the value was decoded"),
    }
}
