//! A bounds-checked reader over received bytes.

use crate::error::{Malformed, MalformedKind};

/// Reads forward through borrowed bytes and knows how far it is.
///
/// A read that fails leaves the cursor where it was.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'b> {
    pub(crate) rest: &'b [u8],
    /// Offset of the end of `rest`. Counting from the end lets a read touch one variable instead of two.
    end: usize,
}

impl<'b> Cursor<'b> {
    /// A cursor at the start of `bytes`.
    #[inline]
    pub const fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes, end: bytes.len() }
    }

    /// A cursor over `bytes` that lie at `base` in what was given to decode.
    #[inline]
    pub(crate) const fn at(base: usize, bytes: &'b [u8]) -> Self {
        Self { rest: bytes, end: base + bytes.len() }
    }

    /// Bytes read so far, counted from the start of what was given to decode.
    #[inline]
    pub const fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    /// The bytes that are not read yet.
    #[inline]
    pub const fn remaining(&self) -> &'b [u8] {
        self.rest
    }

    /// Whether everything is read.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte, without moving.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`MalformedKind::UnexpectedEnd`] when nothing is left.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// Reads two bytes in network order.
    ///
    /// # Errors
    /// [`MalformedKind::UnexpectedEnd`] when fewer are left.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads four bytes in network order.
    ///
    /// # Errors
    /// [`MalformedKind::UnexpectedEnd`] when fewer are left.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads eight bytes in network order.
    ///
    /// # Errors
    /// [`MalformedKind::UnexpectedEnd`] when fewer are left.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Takes the next `length` bytes.
    ///
    /// # Errors
    /// [`MalformedKind::UnexpectedEnd`] when fewer are left.
    #[inline]
    pub fn take(&mut self, length: usize) -> Result<&'b [u8], Malformed> {
        match self.rest.split_at_checked(length) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.fail(MalformedKind::UnexpectedEnd, "")),
        }
    }

    /// Takes the next `length` bytes as a cursor of their own.
    #[inline]
    pub(crate) fn enter(&mut self, length: usize) -> Result<Cursor<'b>, Malformed> {
        let base = self.offset();
        Ok(Cursor::at(base, self.take(length)?))
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        match self.rest.split_first_chunk::<N>() {
            Some((chunk, rest)) => {
                self.rest = rest;
                Ok(*chunk)
            }
            None => Err(self.fail(MalformedKind::UnexpectedEnd, "")),
        }
    }

    /// What is wrong with the bytes at the cursor.
    ///
    /// By value: a reference would make the compiler keep the cursor of the whole decoder in memory.
    #[cold]
    pub(crate) fn fail(self, kind: MalformedKind, field: &'static str) -> Malformed {
        Malformed { kind, offset: self.offset(), field }
    }
}
