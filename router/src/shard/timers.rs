//! When a connection is to be seen to though nothing comes: idle time-outs, ours and the peer's (AMQP 1.0 §2.4.5), the
//! handshake's deadline, and looks at connections at rest.
//!
//! A connection has one entry that counts, at its earliest deadline. One that is later than it need be (something came
//! in between) is noticed when its moment comes. Deadlines are a little late, so that they meet: thousands of idle
//! connections then take one turn for many, and an entry among the others of its moment costs the same for any number
//! of connections.

use super::Core;
use crate::base::id::ConnectionKey;
use crate::base::time::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Lists that are kept to be used again.
const SPARE_LISTS_MAX: usize = 4;

/// The connections to be seen to, by moment.
#[derive(Debug, Default)]
pub(super) struct Timers {
    moments: BTreeMap<Instant, Vec<ConnectionKey>>,
    spare: Vec<Vec<ConnectionKey>>,
}

impl Timers {
    fn push(&mut self, at: Instant, connection: ConnectionKey) {
        let spare = &mut self.spare;
        self.moments.entry(at).or_insert_with(|| spare.pop().unwrap_or_default()).push(connection);
    }

    fn next(&self) -> Option<Instant> {
        self.moments.first_key_value().map(|(at, _)| *at)
    }

    fn take_due(&mut self, now: Instant) -> Option<(Instant, Vec<ConnectionKey>)> {
        let first = self.moments.first_entry().filter(|first| *first.key() <= now)?;
        Some(first.remove_entry())
    }

    fn give_back(&mut self, mut list: Vec<ConnectionKey>) {
        if self.spare.len() < SPARE_LISTS_MAX {
            list.clear();
            self.spare.push(list);
        }
    }
}

impl Core {
    /// Puts a connection's next deadline among the timers, unless an earlier one is there already.
    pub(super) fn arm(&mut self, key: ConnectionKey) {
        let Some(slot) = self.connections.get_mut(key) else { return };
        if slot.rest.is_being_looked_at() {
            // What the look brings decides about the deadline, in the next turn.
            return;
        }
        let timeout = slot.engine.poll_timeout().map(|deadline| common_deadline(deadline, self.now));
        let Some(deadline) = timeout.into_iter().chain(slot.rest.look_at()).min() else { return };
        if slot.armed.is_none_or(|armed| deadline < armed) {
            slot.armed = Some(deadline);
            self.timers.push(deadline, key);
        }
    }

    /// When the next timer is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let grace = self.graces.front().map(|(deadline, _)| *deadline);
        let stall = self.stalls.front().map(|(deadline, _)| *deadline);
        [self.timers.next(), grace, stall, self.auto_links.next_retry()].into_iter().flatten().min()
    }

    /// Does what is due.
    pub(super) fn expire_timers(&mut self) {
        while let Some((at, connections)) = self.timers.take_due(self.now) {
            for &connection in &connections {
                self.expire(connection, at);
            }
            self.timers.give_back(connections);
        }
        self.expire_graces();
        self.expire_stalls();
        self.retry_auto_links();
    }

    /// Sees to a connection whose moment has come.
    fn expire(&mut self, key: ConnectionKey, at: Instant) {
        let now = self.now;
        let Some(slot) = self.connections.get_mut(key) else { return };
        if slot.armed != Some(at) {
            return;
        }
        slot.armed = None;
        if slot.rest.look_at().is_some_and(|at| at <= now) {
            self.looks.push(key);
            slot.beat_before_next_look(now);
        }
        // A peer that isn't read isn't silent. It may still be gone, when it takes nothing for long.
        let patience = slot.engine.idle_timeout().unwrap_or(Duration::MAX);
        let stuck = slot.sending && now.since(slot.progress) > patience.saturating_mul(2);
        if (slot.paused || slot.over_budget || slot.share.is_waiting()) && !stuck {
            slot.engine.heard(now);
        }
        let event = slot.engine.handle_timeout(now, &mut slot.out);
        self.mark_dirty(key);
        if let Some(event) = event {
            self.handle_event(key, event);
        }
    }
}

/// The part of the time until a deadline by which it may be late, as its inverse.
const LATENESS_PARTS: u64 = 128;

/// A deadline a little later than this one, by less than 1 % of the time until then, at a moment that others
/// share: the beats of thousands of idle connections then take one turn for many, instead of one each.
fn common_deadline(deadline: Instant, now: Instant) -> Instant {
    let left = deadline.0.saturating_sub(now.0);
    let grid = (left / LATENESS_PARTS).checked_ilog2().map_or(1, |bits| 1 << bits);
    Instant(deadline.0.checked_next_multiple_of(grid).unwrap_or(deadline.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_meet_and_are_late_by_less_than_a_hundredth() {
        let now = Instant(123_456_789_123);
        for left in [0, 1, 127, 128, 1000, 50_000_000, 8_000_000_000, 86_400_000_000_000] {
            let left = Duration::from_nanos(left);
            let late = common_deadline(now + left, now).since(now + left);
            assert!(late * 100 <= left, "{left:?}: late by {late:?}");
        }
        // A thousand connections with a time-out of 8 s, one each 8 ms.
        let mut moments: Vec<Instant> = (0..1000)
            .map(|number| now + Duration::from_millis(8) * number)
            .map(|begun| common_deadline(begun + Duration::from_secs(8), begun))
            .collect();
        moments.dedup();
        assert!(moments.len() <= 300, "{} turns", moments.len());
        assert_eq!(common_deadline(Instant(u64::MAX), now), Instant(u64::MAX));
    }
}
