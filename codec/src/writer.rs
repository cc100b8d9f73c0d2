//! Encoding into the caller's slice.
//!
//! # Cost
//! A value of fixed width is one bounds check and one store. A list or map is written behind three bytes kept
//! free for the short header; only one that outgrows the short form (254 bytes, 255 elements) is moved, once.

use crate::constructor::code;
use crate::descriptor::Descriptor;
use crate::error::Full;
use crate::primitive::{Element, Encode, Symbol};

/// Writes forward into a borrowed slice.
#[derive(Debug)]
pub struct Writer<'o> {
    buffer: &'o mut [u8],
    length: usize,
    /// Values written so far into the list or map that is open: its count.
    elements: u32,
}

/// Bytes of a short compound header: format code, size, count.
const SHORT_HEADER: usize = 3;
/// Bytes of a long compound header: format code, size, count.
const LONG_HEADER: usize = 9;

impl<'o> Writer<'o> {
    /// A writer at the start of `buffer`.
    #[inline]
    pub const fn new(buffer: &'o mut [u8]) -> Self {
        Self { buffer, length: 0, elements: 0 }
    }

    /// Bytes written.
    #[inline]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing is written.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bytes that still fit.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.buffer.len() - self.length
    }

    /// What is written.
    #[inline]
    pub fn written(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// What is written, for as long as the buffer lives.
    #[inline]
    pub fn into_written(self) -> &'o [u8] {
        let Self { buffer, length, .. } = self;
        &buffer[..length]
    }

    /// Forgets everything after the first `length` bytes; does nothing if there are no more than that.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Appends one byte as it is.
    ///
    /// # Errors
    /// [`Full`]; nothing is written then.
    #[inline]
    pub fn push(&mut self, byte: u8) -> Result<(), Full> {
        let slot = self.buffer.get_mut(self.length).ok_or(Full)?;
        *slot = byte;
        self.length += 1;
        Ok(())
    }

    /// Appends bytes as they are.
    ///
    /// # Errors
    /// [`Full`]; nothing is written then.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let room = self.buffer[self.length..].get_mut(..bytes.len()).ok_or(Full)?;
        room.copy_from_slice(bytes);
        self.length += bytes.len();
        Ok(())
    }

    /// Appends a format code and its fixed data with one bounds check.
    #[inline]
    pub(crate) fn extend_array<const N: usize>(&mut self, bytes: [u8; N]) -> Result<(), Full> {
        let room = self.buffer[self.length..].first_chunk_mut::<N>().ok_or(Full)?;
        *room = bytes;
        self.length += N;
        Ok(())
    }

    /// Appends a format code, a size and that many bytes with one bounds check.
    #[inline]
    pub(crate) fn extend_sized<const N: usize>(&mut self, head: [u8; N], bytes: &[u8]) -> Result<(), Full> {
        let room = self.buffer[self.length..].get_mut(..N + bytes.len()).ok_or(Full)?;
        let (front, back) = room.split_at_mut(N);
        front.copy_from_slice(&head);
        back.copy_from_slice(bytes);
        self.length += N + bytes.len();
        Ok(())
    }

    /// Overwrites four written bytes at `at` with `value` in network order.
    ///
    /// # Errors
    /// [`Full`] when the four bytes are not all written yet.
    #[inline]
    pub fn patch_u32(&mut self, at: usize, value: u32) -> Result<(), Full> {
        self.patch(at, value.to_be_bytes())
    }

    #[inline]
    fn patch<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> Result<(), Full> {
        let written = &mut self.buffer[..self.length];
        let room = written.get_mut(at..).and_then(|tail| tail.first_chunk_mut::<N>()).ok_or(Full)?;
        *room = bytes;
        Ok(())
    }

    /// Runs `write`, which writes one value; on [`Full`] the writer is as before.
    #[inline]
    pub(crate) fn atomically(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let (length, elements) = (self.length, self.elements);
        let result = write(self);
        match result {
            Ok(()) => self.elements = elements + 1,
            Err(Full) => {
                self.length = length;
                self.elements = elements;
            }
        }
        result
    }

    /// Appends a value. Inside [`list`](Self::list) and [`map`](Self::map) it is their next element.
    ///
    /// # Errors
    /// [`Full`]; the writer is as before then.
    #[inline]
    pub fn put<T: Encode + ?Sized>(&mut self, value: &T) -> Result<(), Full> {
        self.atomically(|writer| value.encode(writer))
    }

    /// Appends a null.
    ///
    /// # Errors
    /// [`Full`]; the writer is as before then.
    #[inline]
    pub fn null(&mut self) -> Result<(), Full> {
        self.push(code::NULL)?;
        self.elements += 1;
        Ok(())
    }

    /// Appends a list of the values that `body` writes: list0, list8 or list32, whichever is the shortest.
    ///
    /// `body` adds elements with [`put`](Self::put), [`null`](Self::null), `list`, [`map`](Self::map),
    /// [`array`](Self::array) and [`described`](Self::described), which count themselves.
    ///
    /// # Errors
    /// [`Full`]; the writer is as before then.
    #[inline]
    pub fn list(&mut self, body: impl FnOnce(&mut Self) -> Result<(), Full>) -> Result<(), Full> {
        self.atomically(|writer| {
            let start = writer.open()?;
            writer.elements = 0;
            body(writer)?;
            writer.close(start, writer.elements, code::LIST8, code::LIST32)
        })
    }

    /// Appends a map of the keys and values that `body` writes in turn: map8 or map32, whichever is the
    /// shortest.
    ///
    /// # Errors
    /// [`Full`]; the writer is as before then.
    ///
    /// # Panics
    /// When `body` writes an odd number of values: a key without its value is a fault of the caller.
    #[inline]
    pub fn map(&mut self, body: impl FnOnce(&mut Self) -> Result<(), Full>) -> Result<(), Full> {
        self.atomically(|writer| {
            let start = writer.open()?;
            writer.elements = 0;
            body(writer)?;
            assert!(writer.elements.is_multiple_of(2), "a map needs a value for every key");
            writer.close(start, writer.elements, code::MAP8, code::MAP32)
        })
    }

    /// Appends a described value: the numeric `descriptor`, then the one value that `body` writes.
    ///
    /// # Errors
    /// [`Full`]; the writer is as before then.
    #[inline]
    pub fn described(
        &mut self,
        descriptor: u64,
        body: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.atomically(|writer| {
            writer.push(code::DESCRIBED)?;
            descriptor.encode(writer)?;
            body(writer)
        })
    }

    /// Appends a described value with a symbolic descriptor.
    ///
    /// # Errors
    /// [`Full`]; the writer is as before then.
    pub fn described_as(
        &mut self,
        descriptor: Symbol<'_>,
        body: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.atomically(|writer| {
            writer.push(code::DESCRIBED)?;
            descriptor.encode(writer)?;
            body(writer)
        })
    }

    /// Appends an array with the narrowest constructor that fits all `items`, array8 or array32.
    ///
    /// # Errors
    /// [`Full`]; the writer is as before then.
    pub fn array<T: Element>(&mut self, items: &[T]) -> Result<(), Full> {
        let format_code = T::array_code(items.iter());
        let count = u32::try_from(items.len()).map_err(|_| Full)?;
        self.array_of(count, |writer| {
            writer.push(format_code)?;
            items.iter().try_for_each(|item| item.encode_bare(format_code, writer))
        })
    }

    /// Appends an array of `count` elements; `body` writes the constructor and the elements.
    pub(crate) fn array_of(
        &mut self,
        count: u32,
        body: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.atomically(|writer| {
            let start = writer.open()?;
            body(writer)?;
            writer.close(start, count, code::ARRAY8, code::ARRAY32)
        })
    }

    /// Appends size, count and body of a long compound without its format code: an element of an array.
    pub(crate) fn bare_compound(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<u32, Full>,
    ) -> Result<(), Full> {
        let start = self.length;
        self.extend_array([0; LONG_HEADER - 1])?;
        let count = body(self)?;
        let size = u32::try_from(self.length - start - 4).map_err(|_| Full)?;
        self.patch_u32(start, size)?;
        self.patch_u32(start + 4, count)
    }

    /// Appends a composite: the descriptor and a list of what `fields` writes, without trailing nulls.
    ///
    /// # Errors
    /// [`Full`]; the writer is as before then.
    #[inline]
    pub fn composite(
        &mut self,
        descriptor: Descriptor,
        fields: impl FnOnce(&mut FieldWriter<'_>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        // A writer of its own, which the compiler can keep in registers; and on an error there is nothing to
        // undo.
        let mut writer = Writer { buffer: &mut *self.buffer, length: self.length, elements: 0 };
        match u8::try_from(descriptor.code) {
            Ok(small) => writer.extend_array([code::DESCRIBED, code::SMALLULONG, small])?,
            Err(_) => {
                writer.push(code::DESCRIBED)?;
                descriptor.code.encode(&mut writer)?;
            }
        }
        let start = writer.open()?;
        let mut list = FieldWriter { writer, count: 0, nulls: 0 };
        fields(&mut list)?;
        let FieldWriter { mut writer, count, nulls: _ } = list;
        writer.close(start, count, code::LIST8, code::LIST32)?;
        self.length = writer.length;
        self.elements += 1;
        Ok(())
    }

    /// Keeps room for a short compound header and gives its position back.
    #[inline]
    fn open(&mut self) -> Result<usize, Full> {
        let start = self.length;
        // With less room than a header nothing but a list0 can fit: let that through, its header is one byte.
        let kept = SHORT_HEADER.min(self.remaining());
        if kept == 0 {
            return Err(Full);
        }
        self.length += kept;
        Ok(start)
    }

    /// Fills in the header at `start`, now that size and count are known.
    #[inline]
    fn close(&mut self, start: usize, count: u32, short: u8, long: u8) -> Result<(), Full> {
        if count == 0 && short == code::LIST8 {
            self.length = start;
            return self.push(code::LIST0);
        }
        let body = start + SHORT_HEADER;
        let Some(body_length) = self.length.checked_sub(body) else {
            // `open` found room for less than a header, and this isn't a list0.
            return Err(Full);
        };
        match (u8::try_from(body_length + 1), u8::try_from(count)) {
            (Ok(size), Ok(count)) => self.patch(start, [short, size, count]),
            _ => self.close_long(start, body_length, count, long),
        }
    }

    /// Moves the body up to make room for a long header.
    #[cold]
    fn close_long(&mut self, start: usize, body_length: usize, count: u32, long: u8) -> Result<(), Full> {
        let size = u32::try_from(body_length + 4).map_err(|_| Full)?;
        if self.remaining() < LONG_HEADER - SHORT_HEADER {
            return Err(Full);
        }
        let body = start + SHORT_HEADER;
        self.buffer.copy_within(body..body + body_length, start + LONG_HEADER);
        self.length += LONG_HEADER - SHORT_HEADER;
        self.patch(start, [long])?;
        self.patch_u32(start + 1, size)?;
        self.patch_u32(start + 5, count)
    }
}

/// Writes the fields of a composite in order (§1.4). Nulls wait until a value follows them, so that trailing
/// ones are left out.
#[derive(Debug)]
pub struct FieldWriter<'o> {
    writer: Writer<'o>,
    count: u32,
    nulls: u32,
}

impl FieldWriter<'_> {
    /// A field that is present.
    ///
    /// # Errors
    /// [`Full`].
    #[inline(always)]
    pub fn field<T: Encode + ?Sized>(&mut self, value: &T) -> Result<(), Full> {
        while self.nulls > 0 {
            self.writer.push(code::NULL)?;
            self.nulls -= 1;
            self.count += 1;
        }
        self.count += 1;
        // Moved out and back, so that an encoder that isn't inlined doesn't force the writer into memory.
        let Writer { buffer, length, elements } = &mut self.writer;
        let mut writer = Writer { buffer: core::mem::take(buffer), length: *length, elements: *elements };
        let result = value.encode(&mut writer);
        self.writer = writer;
        result
    }

    /// A field that may be absent.
    ///
    /// # Errors
    /// [`Full`].
    #[inline(always)]
    pub fn optional<T: Encode>(&mut self, value: &Option<T>) -> Result<(), Full> {
        match value {
            Some(value) => self.field(value),
            None => self.absent(),
        }
    }

    /// A field with a default: absent when it equals that.
    ///
    /// # Errors
    /// [`Full`].
    #[inline(always)]
    pub fn defaulted<T: Encode + PartialEq>(&mut self, value: &T, default: &T) -> Result<(), Full> {
        if value == default { self.absent() } else { self.field(value) }
    }

    /// A field that is absent.
    ///
    /// # Errors
    /// None now; the room for its null is only needed once a value follows.
    #[inline(always)]
    pub fn absent(&mut self) -> Result<(), Full> {
        self.nulls += 1;
        Ok(())
    }
}
