//! Memory that is used again, so that a shard in steady state allocates nothing.
//!
//! What waits, is copied to several receivers or comes in pieces needs lists and buffers for a moment. They are kept, a
//! bounded number of bounded size, for the next delivery that needs one.

use super::fan_out::Copied;
use super::payload::{Payload, Piece};
use crate::base::limits::{
    SPARE_LIST_ENTRIES_MAX, SPARE_LISTS_MAX, SPARE_PAYLOAD_BYTES_MAX, SPARE_PAYLOADS_MAX,
};
use std::collections::VecDeque;
use std::rc::Rc;

/// Lists and buffers without anything in them.
#[derive(Default)]
pub(super) struct Spare {
    payloads: Vec<Rc<Payload>>,
    pieces: Vec<VecDeque<Piece>>,
    copies: Vec<Vec<Copied>>,
}

impl Spare {
    /// A payload with these bytes; what else is in it is the caller's to set.
    pub(super) fn payload(&mut self, make: impl Fn(Vec<u8>) -> Payload, bytes: &[u8]) -> Rc<Payload> {
        let mut spare = self.payloads.pop();
        if let Some(payload) = spare.as_mut().and_then(Rc::get_mut) {
            let mut room = std::mem::take(&mut payload.bytes);
            room.extend_from_slice(bytes);
            *payload = make(room);
        }
        spare.unwrap_or_else(|| Rc::new(make(bytes.to_vec())))
    }

    /// Keeps a payload that nobody else has.
    pub(super) fn keep_payload(&mut self, mut payload: Rc<Payload>) {
        if let Some(Payload { bytes, .. }) = Rc::get_mut(&mut payload)
            && bytes.capacity() <= SPARE_PAYLOAD_BYTES_MAX
            && self.payloads.len() < SPARE_PAYLOADS_MAX
        {
            bytes.clear();
            self.payloads.push(payload);
        }
    }

    /// An empty list of pieces.
    pub(super) fn pieces(&mut self) -> VecDeque<Piece> {
        self.pieces.pop().unwrap_or_default()
    }

    /// Keeps a list of pieces, which is empty.
    pub(super) fn keep_pieces(&mut self, pieces: VecDeque<Piece>) {
        debug_assert!(pieces.is_empty(), "pieces are let go before their list is");
        if is_worth_keeping(pieces.capacity()) && self.pieces.len() < SPARE_LISTS_MAX {
            self.pieces.push(pieces);
        }
    }

    /// An empty list of copies.
    pub(super) fn copies(&mut self) -> Vec<Copied> {
        self.copies.pop().unwrap_or_default()
    }

    /// Keeps a list of copies, which are done with.
    pub(super) fn keep_copies(&mut self, mut copies: Vec<Copied>) {
        copies.clear();
        if is_worth_keeping(copies.capacity()) && self.copies.len() < SPARE_LISTS_MAX {
            self.copies.push(copies);
        }
    }
}

fn is_worth_keeping(capacity: usize) -> bool {
    (1..=SPARE_LIST_ENTRIES_MAX).contains(&capacity)
}
