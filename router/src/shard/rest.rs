//! Connections at rest: their empty frames wake nobody.
//!
//! A peer that has nothing to say says that now and then, for its own sake or for our idle time-out (AMQP 1.0 §2.4.5).
//! Ten thousand of them would wake their shard more than a thousand times a second, each time for eight bytes, and to
//! wake up costs several times what those cost. So of a connection that has said nothing else for a while, the driver
//! reports nothing until more is there than one empty frame has. Every other frame has more, so it comes as ever. What
//! lies there unreported is looked at in time for the idle time-out, for many connections in one turn.
//!
//! A peer that dies is noticed later by one such look at the most: a quarter of the time-out.
//!
//! # Cost
//! For each received buffer a comparison of its length, and of a state. Each look at a connection is two system
//! calls, and so is each change between rest and work one.

use super::slots::Slot;
use super::turn::Shard;
use crate::base::id::ConnectionKey;
use crate::base::time::Instant;
use crate::io::driver::Driver;
use std::time::Duration;

/// The beginning of an empty frame: its size, data offset and type (AMQP 1.0 §2.3.1). A channel follows, which says
/// nothing.
const EMPTY_FRAME: [u8; 6] = [0, 0, 0, 8, 2, 0];

/// The length of an empty frame.
const EMPTY_FRAME_BYTES: usize = 8;

/// The bytes of which a connection at rest is reported: those of an empty frame, and one of anything else.
const REST_MARK: u32 = EMPTY_FRAME_BYTES as u32 + 1;

/// More than a peer says in empty frames at a time, unless nobody has looked for long.
const BEATS_BYTES_MAX: usize = 8 * EMPTY_FRAME_BYTES;

/// How long nothing has come when a beat may be the beginning of rest.
const QUIET: Duration = Duration::from_secs(1);

/// The part of our idle time-out after which a connection at rest is looked at, as its inverse.
const LOOKS_PER_TIME_OUT: u32 = 4;

/// Whether a connection only keeps alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Rest {
    /// Everything of it is reported.
    #[default]
    Awake,
    /// An empty frame of it isn't reported.
    Resting {
        /// When it is looked at.
        look_at: Instant,
    },
    /// It rested, and everything is reported until the next turn has seen what there is.
    Looked,
}

impl Rest {
    /// When the connection is to be looked at, if it rests.
    pub(super) fn look_at(self) -> Option<Instant> {
        match self {
            Self::Resting { look_at } => Some(look_at),
            Self::Awake | Self::Looked => None,
        }
    }
}

impl Slot {
    /// Whether `bytes`, which have just come, are empty frames and nothing else, of a peer that isn't saying anything.
    #[inline]
    pub(super) fn brings_only_beats(&self, bytes: &[u8], now: Instant) -> bool {
        // What makes most buffers something else comes first.
        if bytes.len() > BEATS_BYTES_MAX || !self.partial.is_empty() || !self.engine.is_open() {
            return false;
        }
        let (beats, rest) = bytes.as_chunks::<EMPTY_FRAME_BYTES>();
        let is_quiet = match self.rest {
            Rest::Awake => now.since(self.engine.last_heard()) >= QUIET,
            Rest::Resting { .. } | Rest::Looked => true,
        };
        is_quiet && rest.is_empty() && beats.iter().all(|beat| beat.starts_with(&EMPTY_FRAME))
    }

    /// Whether it has been silent for half of our time-out: what it says next counts from the moment that it comes.
    fn is_late(&self, now: Instant) -> bool {
        self.engine.idle_timeout().is_some_and(|limit| now.since(self.engine.last_heard()) >= limit / 2)
    }

    /// When it is to be looked at if it rests from now on. A connection that may be silent for ever isn't looked at, so
    /// it doesn't rest.
    fn look_at(&self, now: Instant) -> Option<Instant> {
        self.engine.idle_timeout().map(|limit| now + limit / LOOKS_PER_TIME_OUT)
    }
}

impl<D: Driver> Shard<D> {
    /// Something has come: `only_beats`, or more than that.
    #[inline]
    pub(super) fn rest_or_wake(&mut self, connection: ConnectionKey, only_beats: bool) {
        let Some(slot) = self.core.connections.get_mut(connection) else { return };
        if only_beats {
            self.rest(connection);
        } else if slot.rest != Rest::Awake {
            if matches!(slot.rest, Rest::Resting { .. }) {
                self.driver.set_receive_mark(connection, 1);
            }
            slot.rest = Rest::Awake;
        }
    }

    fn rest(&mut self, connection: ConnectionKey) {
        let now = self.core.now;
        let Some(slot) = self.core.connections.get_mut(connection) else { return };
        let Some(look_at) = slot.look_at(now).filter(|_| !slot.closing) else { return };
        match std::mem::replace(&mut slot.rest, Rest::Resting { look_at }) {
            Rest::Awake | Rest::Looked => self.driver.set_receive_mark(connection, REST_MARK),
            Rest::Resting { .. } => {}
        }
        self.core.mark_dirty(connection);
    }

    /// Looks at the connections at rest whose time it is, and lets those rest again that were looked at before and had
    /// said nothing.
    pub(super) fn look_at_resting(&mut self) {
        let now = self.core.now;
        for connection in std::mem::take(&mut self.looked_at) {
            let Some(slot) = self.core.connections.get_mut(connection) else { continue };
            if slot.rest != Rest::Looked {
                continue;
            }
            if slot.is_late(now) {
                slot.rest = Rest::Awake;
            } else {
                self.rest(connection);
            }
        }
        // The lists' memory is used again, the one's for the other.
        let mut looks = std::mem::take(&mut self.core.looks);
        for &connection in &looks {
            if let Some(slot) = self.core.connections.get_mut(connection) {
                slot.rest = Rest::Looked;
                self.driver.set_receive_mark(connection, 1);
            }
        }
        std::mem::swap(&mut self.looked_at, &mut looks);
    }
}
