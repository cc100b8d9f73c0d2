//! Connections at rest: their empty frames wake nobody.
//!
//! A peer that has nothing to say says that now and then, for its own sake or for our idle time-out (AMQP 1.0 §2.4.5).
//! Ten thousand of them would wake their shard more than a thousand times a second, each time for eight bytes, and to
//! wake up costs several times what those cost. So of a connection that has said nothing else for a while, the driver
//! reports nothing until more is there than one empty frame has. Every other frame has more, so it comes as ever. What
//! lies there unreported is looked at in time for the idle time-out, for many connections in one turn.
//!
//! Our own empty frames to such a peer go along with the looks where they can, or a little later than they would otherwise
//! (after three quarters of its time-out instead of half, if that is a long one).
//!
//! A peer that dies is noticed later by one such look at the most: a little more than half of the time-out.
//!
//! # Cost
//! For each received buffer a comparison of its length, and of a state. A look at a connection is one operation of the
//! turn's submission, which brings what is there; each change between rest and work is a system call.

use super::slots::Slot;
use super::turn::Shard;
use crate::base::buffer::EMPTY_FRAME;
use crate::base::id::ConnectionKey;
use crate::base::time::Instant;
use crate::io::driver::Driver;
use std::time::Duration;

/// An empty frame but for its channel, which says nothing (AMQP 1.0 §2.3.1).
const BEAT: &[u8] = EMPTY_FRAME.split_at(6).0;

/// The bytes of which a connection at rest is reported: those of an empty frame, and one of anything else.
const REST_MARK: u32 = EMPTY_FRAME.len() as u32 + 1;

/// More than a peer says in empty frames at a time, unless nobody has looked for long.
const BEATS_BYTES_MAX: usize = 8 * EMPTY_FRAME.len();

/// How long nothing has come when a beat may be the beginning of rest.
const QUIET: Duration = Duration::from_secs(1);

/// The thirty-seconds of our idle time-out after which a connection at rest is looked at. We announce half of the time-out,
/// so a peer that keeps to that has said something; one that hasn't rests no more, and there is time left to hear it.
const LOOK_AFTER_32NDS: u32 = 17;

/// The part of our idle time-out by which a look may be later, to share its moment with others, as its inverse.
const LATENESS_PARTS: u64 = 64;

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
    /// It rests, and the driver was asked for what there is.
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

    /// Whether the driver was asked for what there is, and hasn't had a turn for the answer.
    pub(super) fn is_being_looked_at(self) -> bool {
        self == Self::Looked
    }
}

impl Slot {
    /// Whether `bytes`, which have just come, are empty frames and nothing else, of a peer that isn't saying anything.
    #[inline]
    pub(super) fn brings_only_beats(&self, bytes: &[u8], now: Instant) -> bool {
        // What makes most buffers something else comes first.
        if bytes.len() > BEATS_BYTES_MAX
            || !self.partial.is_empty()
            || self.tls.is_some()
            || !self.engine.is_open()
        {
            return false;
        }
        let (beats, rest) = bytes.as_chunks::<{ EMPTY_FRAME.len() }>();
        let is_quiet = match self.rest {
            Rest::Awake => now.since(self.engine.last_heard()) >= QUIET,
            Rest::Resting { .. } | Rest::Looked => true,
        };
        is_quiet && rest.is_empty() && beats.iter().all(|beat| beat.starts_with(BEAT))
    }

    /// When it is to be looked at if it rests from now on. A connection that may be silent for ever isn't looked at, so
    /// it doesn't rest.
    fn look_at(&self, now: Instant) -> Option<Instant> {
        self.engine.idle_timeout().map(|limit| common_look(now, limit))
    }

    /// Sends what would have to be said before it is looked at again: once at a connection, both cost less.
    pub(super) fn beat_before_next_look(&mut self, now: Instant) {
        if let Some(next) = self.look_at(now) {
            self.engine.beat_ahead(next, now, &mut self.out);
        }
    }
}

/// When to look at a connection that rests from now on and may be silent for `limit`: a little late, at a moment that
/// others share.
fn common_look(now: Instant, limit: Duration) -> Instant {
    let earliest = now + limit / 32 * LOOK_AFTER_32NDS;
    let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let grid = (limit / LATENESS_PARTS).checked_ilog2().map_or(1, |bits| 1 << bits);
    Instant(earliest.0.checked_next_multiple_of(grid).unwrap_or(earliest.0))
}

impl<D: Driver> Shard<D> {
    /// Something has come: `only_beats`, or more than that.
    #[inline]
    pub(super) fn rest_or_wake(&mut self, connection: ConnectionKey, only_beats: bool) {
        if only_beats {
            self.rest(connection);
        } else {
            self.wake(connection);
        }
    }

    /// Everything of the connection is reported from now on.
    fn wake(&mut self, connection: ConnectionKey) {
        let Some(slot) = self.core.connections.get_mut(connection) else { return };
        match std::mem::take(&mut slot.rest) {
            Rest::Awake => {}
            Rest::Resting { .. } | Rest::Looked => {
                slot.engine.set_at_rest(false);
                self.core.mark_dirty(connection);
                self.driver.set_receive_mark(connection, 1);
            }
        }
    }

    fn rest(&mut self, connection: ConnectionKey) {
        let now = self.core.now;
        let Some(slot) = self.core.connections.get_mut(connection) else { return };
        let Some(look_at) = slot.look_at(now).filter(|_| !slot.closing) else { return };
        match std::mem::replace(&mut slot.rest, Rest::Resting { look_at }) {
            Rest::Awake => {
                slot.engine.set_at_rest(true);
                self.driver.set_receive_mark(connection, REST_MARK);
            }
            Rest::Resting { .. } | Rest::Looked => {}
        }
        self.core.mark_dirty(connection);
    }

    /// Looks at the connections at rest whose time it is, and ends the rest of those that were looked at before and had
    /// said nothing: what they say next counts from the moment that it comes.
    pub(super) fn look_at_resting(&mut self) {
        // The lists' memory is used again, the one's for the other.
        let mut looked_at = std::mem::take(&mut self.looked_at);
        for connection in looked_at.drain(..) {
            if self.core.connections.get_mut(connection).is_some_and(|slot| slot.rest == Rest::Looked) {
                self.wake(connection);
            }
        }
        for &connection in &self.core.looks {
            if let Some(slot) = self.core.connections.get_mut(connection) {
                slot.rest = Rest::Looked;
                self.driver.look(connection);
            }
        }
        self.looked_at = std::mem::replace(&mut self.core.looks, looked_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_meet_and_are_late_by_less_than_a_sixty_fourth_of_the_time_out() {
        let now = Instant(123_456_789_123);
        for limit in [0, 1, 127, 1_000_000, 2_000_000_000, 16_000_000_000, 86_400_000_000_000] {
            let limit = Duration::from_nanos(limit);
            let (at, earliest) = (common_look(now, limit), now + limit / 32 * LOOK_AFTER_32NDS);
            assert!(earliest <= at && at.since(earliest) * 64 <= limit, "{limit:?}: {:?}", at.since(now));
        }
        // A thousand connections with a time-out of 16 s, one each 8 ms.
        let mut moments: Vec<Instant> = (0..1000)
            .map(|number| common_look(now + Duration::from_millis(8) * number, Duration::from_secs(16)))
            .collect();
        moments.dedup();
        assert!(moments.len() <= 80, "{} turns", moments.len());
    }
}
