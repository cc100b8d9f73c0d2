//! Each connection's share of a turn.
//!
//! A peer that sends as fast as it can has many received buffers among the completions of a turn. It is heard for
//! [`CONNECTION_BYTES_PER_TURN_MAX`] in it; the rest waits for the next turns, in its order, while others have
//! theirs. One of which much waits isn't read until that is done, so that it can't have all buffers.
//!
//! # Cost
//! Two comparisons and an addition for each received buffer.

use super::slots::Slot;
use super::turn::Shard;
use crate::base::id::ConnectionKey;
use crate::base::limits::{BUFFERS_DEFERRED_MAX, CONNECTION_BYTES_PER_TURN_MAX};
use crate::io::driver::Driver;
use std::io;

/// What a connection has had of a turn, and what waits of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// The turn that `bytes` is of.
    turn: u32,
    /// What it was heard of in that turn.
    bytes: u32,
    /// How much of it waits for a later turn: buffers, and perhaps the end behind them.
    deferred: u16,
    /// Whether it isn't read because too much waits.
    behind: bool,
}

impl Share {
    /// Whether it may be heard now: it has something left of its share, and nothing waits that came before.
    fn is_open(&self, turn: u32) -> bool {
        self.deferred == 0 && self.is_left(turn)
    }

    fn is_left(&self, turn: u32) -> bool {
        self.turn != turn || self.bytes < CONNECTION_BYTES_PER_TURN_MAX
    }

    fn spend(&mut self, turn: u32, bytes: usize) {
        if self.turn != turn {
            (self.turn, self.bytes) = (turn, 0);
        }
        self.bytes = self.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Whether something waits: the peer isn't silent, whatever its clock says.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.deferred > 0
    }
}

/// What came of a connection that had its share.
#[derive(Debug)]
pub(super) enum Late<Received> {
    /// Bytes.
    Received(Received),
    /// The end of what the peer sends.
    Ended(Option<io::Error>),
}

impl Slot {
    /// Whether it is to be read.
    pub(super) fn is_read(&self) -> bool {
        !self.paused && !self.over_budget && !self.share.behind
    }
}

impl<D: Driver> Shard<D> {
    /// Hears bytes, now or in a later turn.
    pub(super) fn received(&mut self, connection: ConnectionKey, buffer: D::Received) {
        let turn = self.turn;
        match self.core.connections.get_mut(connection) {
            Some(slot) if !slot.share.is_open(turn) => self.defer(connection, Late::Received(buffer)),
            Some(_) | None => self.hear(connection, buffer),
        }
    }

    /// Takes the end of what the peer sends, behind what waits of it.
    pub(super) fn receive_ended(&mut self, connection: ConnectionKey, error: Option<io::Error>) {
        match self.core.connections.get_mut(connection) {
            Some(slot) if slot.share.is_waiting() => self.defer(connection, Late::Ended(error)),
            Some(_) | None => {
                if error.is_some() || self.core.recv_end(connection) {
                    self.core.receive_ended(connection, error.as_ref());
                }
                if error.is_some() {
                    self.close(connection);
                }
            }
        }
    }

    fn hear(&mut self, connection: ConnectionKey, buffer: D::Received) {
        let bytes = self.driver.bytes(&buffer);
        let mut only_beats = false;
        if let Some(slot) = self.core.connections.get_mut(connection) {
            slot.share.spend(self.turn, bytes.len());
            only_beats = slot.brings_only_beats(bytes, self.core.now);
        }
        self.core.recv_raw(connection, bytes);
        self.driver.release(buffer);
        self.rest_or_wake(connection, only_beats);
    }

    fn defer(&mut self, connection: ConnectionKey, late: Late<D::Received>) {
        self.deferred.push_back((connection, late));
        let Some(slot) = self.core.connections.get_mut(connection) else { return };
        slot.share.deferred += 1;
        if slot.share.deferred >= BUFFERS_DEFERRED_MAX && !slot.share.behind {
            let was_read = slot.is_read();
            slot.share.behind = true;
            if was_read {
                self.driver.pause_receiving(connection);
            }
        }
    }

    /// Goes once through what waits. What has no share of this turn left stays, in its order.
    pub(super) fn take_deferred(&mut self) {
        for _ in 0..self.deferred.len() {
            let Some((connection, late)) = self.deferred.pop_front() else { return };
            let slot = self.core.connections.get_mut(connection);
            // Of a connection that we close nothing more is heard.
            let Some(slot) = slot.filter(|slot| !slot.closing) else {
                if let Late::Received(buffer) = late {
                    self.driver.release(buffer);
                }
                continue;
            };
            if !slot.share.is_left(self.turn) {
                self.deferred.push_back((connection, late));
                continue;
            }
            slot.share.deferred -= 1;
            if slot.share.deferred == 0 && std::mem::take(&mut slot.share.behind) && slot.is_read() {
                slot.engine.heard(self.core.now);
                self.driver.resume_receiving(connection);
            }
            match late {
                Late::Received(buffer) => self.hear(connection, buffer),
                Late::Ended(error) => self.receive_ended(connection, error),
            }
        }
    }
}
