//! Memory that is used again, so that a shard in steady state allocates nothing.
//!
//! What waits, is copied to several receivers or comes in pieces needs lists and buffers for a moment. They are kept, as far as
//! they aren't large and not too many, for the next delivery that needs one.

use super::fan_out::Copied;
use super::payload::{Payload, Piece};
use crate::base::limits::{SPARE_BYTES_MAX, SPARE_THING_BYTES_MAX};
use std::collections::VecDeque;
use std::rc::Rc;

/// Lists and buffers without anything in them.
#[derive(Default)]
pub(super) struct Spare {
    payloads: Kept<Rc<Payload>>,
    pieces: Kept<VecDeque<Piece>>,
    copies: Kept<Vec<Copied>>,
    buffers: Kept<Vec<u8>>,
}

/// Things of one kind.
struct Kept<T> {
    things: Vec<T>,
    /// The memory of all of them.
    bytes: usize,
}

/// Something that has memory of its own.
trait Thing {
    /// How many bytes.
    fn bytes(&self) -> usize;
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { things: Vec::new(), bytes: 0 }
    }
}

impl<T: Thing> Kept<T> {
    fn take(&mut self) -> Option<T> {
        let thing = self.things.pop()?;
        self.bytes -= thing.bytes();
        Some(thing)
    }

    fn keep(&mut self, thing: T) {
        let bytes = thing.bytes();
        if (1..=SPARE_THING_BYTES_MAX).contains(&bytes) && self.bytes + bytes <= SPARE_BYTES_MAX {
            self.bytes += bytes;
            self.things.push(thing);
        }
    }
}

impl<T> Thing for Vec<T> {
    fn bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl<T> Thing for VecDeque<T> {
    fn bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl Thing for Rc<Payload> {
    fn bytes(&self) -> usize {
        size_of::<Payload>() + self.bytes.capacity()
    }
}

impl Spare {
    /// A payload with these bytes; what else is in it is the caller's to set.
    pub(super) fn payload(&mut self, make: impl Fn(Vec<u8>) -> Payload, bytes: &[u8]) -> Rc<Payload> {
        let mut spare = self.payloads.take();
        if let Some(payload) = spare.as_mut().and_then(Rc::get_mut) {
            let mut room = std::mem::take(&mut payload.bytes);
            room.extend_from_slice(bytes);
            *payload = make(room);
        }
        spare.unwrap_or_else(|| Rc::new(make(bytes.to_vec())))
    }

    /// Keeps a payload that nobody else has.
    pub(super) fn keep_payload(&mut self, mut payload: Rc<Payload>) {
        if let Some(alone) = Rc::get_mut(&mut payload) {
            alone.bytes.clear();
            self.payloads.keep(payload);
        }
    }

    /// An empty list of pieces.
    pub(super) fn pieces(&mut self) -> VecDeque<Piece> {
        self.pieces.take().unwrap_or_default()
    }

    /// Keeps a list of pieces, which is empty.
    pub(super) fn keep_pieces(&mut self, pieces: VecDeque<Piece>) {
        debug_assert!(pieces.is_empty(), "pieces are let go before their list is");
        self.pieces.keep(pieces);
    }

    /// An empty list of copies.
    pub(super) fn copies(&mut self) -> Vec<Copied> {
        self.copies.take().unwrap_or_default()
    }

    /// Keeps a list of copies, which are done with.
    pub(super) fn keep_copies(&mut self, mut copies: Vec<Copied>) {
        copies.clear();
        self.copies.keep(copies);
    }

    /// An empty buffer.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.buffers.take().unwrap_or_default()
    }

    /// Keeps a buffer, whose bytes are done with.
    pub(super) fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffers.keep(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let mut spare = Spare::default();
        spare.keep_buffer(Vec::new());
        spare.keep_buffer(Vec::with_capacity(SPARE_THING_BYTES_MAX + 1));
        assert_eq!(spare.buffer().capacity(), 0, "nothing, or too large");
        for _ in 0..2 * SPARE_BYTES_MAX / 1024 {
            spare.keep_buffer(Vec::with_capacity(1024));
        }
        assert!(spare.buffers.bytes <= SPARE_BYTES_MAX);
        let kept = std::iter::from_fn(|| spare.buffers.take()).count();
        assert_eq!((kept, spare.buffers.bytes), (SPARE_BYTES_MAX / 1024, 0));
    }
}
