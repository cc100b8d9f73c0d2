//! Composites: described lists whose fields are read in order (AMQP 1.0 §1.4).
//!
//! # Cost
//! A field is one comparison of the count, one of the format code, and its decoding; nothing is looked up by
//! name.

use crate::constructor::{Type, code};
use crate::cursor::Cursor;
use crate::descriptor::{self, Descriptor};
use crate::error::{Malformed, MalformedKind};
use crate::primitive::Decode;
use crate::value::Value;

/// Reads the fields of one composite in the specification's order.
///
/// Fields beyond the last one read are ignored, after a check that they are well-formed values:
/// [`finish`](Self::finish).
#[derive(Clone, Copy, Debug)]
pub struct Fields<'b> {
    cursor: Cursor<'b>,
    /// Fields that the list has and that are not read yet.
    remaining: u32,
}

impl<'b> Fields<'b> {
    /// Opens the composite at the cursor, which then stands behind the whole of it.
    ///
    /// # Errors
    /// Not described as `expected`, or not a list.
    #[inline]
    pub fn open(
        cursor: &mut Cursor<'b>,
        expected: Descriptor,
        field: &'static str,
    ) -> Result<Self, Malformed> {
        let start = *cursor;
        match descriptor::read(cursor, expected.name, field)? {
            Some(number) if number == expected.code => Self::list(cursor, field),
            Some(_) | None => {
                let kind = MalformedKind::UnknownDescriptor { expected: expected.name };
                Err(start.fail(kind, field))
            }
        }
    }

    /// Opens the list at the cursor, behind a descriptor that is read already.
    ///
    /// # Errors
    /// Not a list, or its size or count can't be true.
    #[inline(always)]
    pub fn list(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        let (remaining, size, width) = match cursor.rest {
            [code::LIST8, size, count, rest @ ..] => {
                cursor.rest = rest;
                (u32::from(*count), usize::from(*size), 1)
            }
            [code::LIST0, rest @ ..] => {
                cursor.rest = rest;
                (0, 0, 0)
            }
            [code::LIST32, s0, s1, s2, s3, c0, c1, c2, c3, rest @ ..] => {
                cursor.rest = rest;
                let size = u32::from_be_bytes([*s0, *s1, *s2, *s3]);
                (u32::from_be_bytes([*c0, *c1, *c2, *c3]), size as usize, 4)
            }
            [code::LIST8 | code::LIST32, ..] | [] => {
                return Err(start.fail(MalformedKind::UnexpectedEnd, field));
            }
            [found, ..] => {
                let kind = MalformedKind::UnexpectedType { expected: "list", found: *found };
                return Err(start.fail(kind, field));
            }
        };
        let Some(size) = size.checked_sub(width) else {
            return Err(start.fail(MalformedKind::SizeTooSmall, field));
        };
        let body = cursor.enter(size).map_err(|malformed| malformed.in_field(field))?;
        if remaining as usize > size {
            return Err(start.fail(MalformedKind::CountBeyondBytes, field));
        }
        Ok(Self { cursor: body, remaining })
    }

    /// The next field, which must be there.
    ///
    /// # Errors
    /// [`MalformedKind::MandatoryFieldAbsent`], or the field isn't a `T`.
    #[inline(always)]
    pub fn required<T: Decode<'b>>(&mut self, field: &'static str) -> Result<T, Malformed> {
        match self.optional(field)? {
            Some(value) => Ok(value),
            None => Err(self.absent(field)),
        }
    }

    /// The next field; `None` when it is null or the list ends before it.
    ///
    /// # Errors
    /// The field isn't a `T`.
    #[inline(always)]
    pub fn optional<T: Decode<'b>>(&mut self, field: &'static str) -> Result<Option<T>, Malformed> {
        if self.is_absent() {
            return Ok(None);
        }
        // A copy, so that a decoder that isn't inlined doesn't force this cursor into memory.
        let mut cursor = self.cursor;
        let value = T::decode(&mut cursor, field)?;
        self.cursor = cursor;
        Ok(Some(value))
    }

    /// The next field, or its default.
    ///
    /// # Errors
    /// The field isn't a `T`.
    #[inline(always)]
    pub fn defaulted<T: Decode<'b>>(&mut self, field: &'static str, default: T) -> Result<T, Malformed> {
        Ok(self.optional(field)?.unwrap_or(default))
    }

    /// The next field, which is a map if it is there. Its keys may be of any type, though the specification
    /// wants symbols in most maps (`fields`, §2.8.13): who looks into the map decides what to do about
    /// others.
    ///
    /// # Errors
    /// The field isn't a well-formed map.
    #[inline(always)]
    pub fn map(&mut self, field: &'static str) -> Result<Option<Value<'b>>, Malformed> {
        self.value_that(field, "map", |value| value.primitive() == Some(Type::Map))
    }

    /// The next field, which is a described value if it is there.
    ///
    /// # Errors
    /// The field isn't a well-formed described value.
    #[inline(always)]
    pub fn described(
        &mut self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<Option<Value<'b>>, Malformed> {
        self.value_that(field, expected, Value::is_described)
    }

    /// The next field, which satisfies `accepts` if it is there.
    #[inline(always)]
    fn value_that(
        &mut self,
        field: &'static str,
        expected: &'static str,
        accepts: impl FnOnce(&Value<'b>) -> bool,
    ) -> Result<Option<Value<'b>>, Malformed> {
        if self.is_absent() {
            return Ok(None);
        }
        let mut after = self.cursor;
        let value = Value::decode(&mut after, field)?;
        if !accepts(&value) {
            let found = value.encoded()[0];
            return Err(self.cursor.fail(MalformedKind::UnexpectedType { expected, found }, field));
        }
        self.cursor = after;
        Ok(Some(value))
    }

    /// Steps over the next field, whatever it is.
    ///
    /// # Errors
    /// The field isn't a well-formed value.
    #[inline]
    pub fn skip(&mut self, field: &'static str) -> Result<(), Malformed> {
        self.optional::<Value<'b>>(field).map(|_| ())
    }

    /// Ends the composite named `field`: what follows the fields that are known is ignored if it is well
    /// formed.
    ///
    /// # Errors
    /// An unknown field is malformed, or bytes are left that the count doesn't cover.
    #[inline(always)]
    pub fn finish(&mut self, field: &'static str) -> Result<(), Malformed> {
        if self.remaining > 0 {
            *self = self.skip_unknown(field)?;
        }
        if self.cursor.is_empty() {
            Ok(())
        } else {
            Err(self.cursor.fail(MalformedKind::TrailingBytes, field))
        }
    }

    #[cold]
    fn skip_unknown(mut self, field: &'static str) -> Result<Self, Malformed> {
        // Every field has at least one byte, so this ends with the bytes whatever the count says.
        while self.remaining > 0 {
            self.skip(field)?;
        }
        Ok(self)
    }

    /// Counts the next field off, and says whether there is no value for it.
    #[inline(always)]
    fn is_absent(&mut self) -> bool {
        if self.remaining == 0 {
            return true;
        }
        self.remaining -= 1;
        if let [code::NULL, rest @ ..] = self.cursor.rest {
            self.cursor.rest = rest;
            return true;
        }
        false
    }

    #[cold]
    pub(crate) fn absent(self, field: &'static str) -> Malformed {
        self.cursor.fail(MalformedKind::MandatoryFieldAbsent, field)
    }
}
