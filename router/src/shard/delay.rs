//! Deliveries that take long, links that are stuck or blocked, and how fast links settle (router-protocol reference
//! §8.13).
//!
//! # Cost
//! The second of the turn goes with each unsettled delivery, in two bytes that are free anyway, and is compared when
//! it is settled. Once in a while the shard is told to look for what is stuck: it looks at deliveries only as far as
//! they are old.

use super::links::{Direction, RouterLink};
use super::{Core, Peer};
use crate::base::id::LinkKey;
use crate::base::time::Instant;
use crate::engine::Unsettled;
use crate::log;
use crate::log::{Level, Module};
use std::time::Duration;

/// How long a delivery is unsettled, or waits, before it counts as stuck; a receiver that has had no credit for so
/// long is blocked.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(10);

/// How many seconds a delivery takes before it counts as delayed, and as delayed for long.
const DELAYS: [u16; 2] = [1, 10];

/// Over how many seconds a rate of settlements is taken.
const RATE_SECONDS: usize = 5;

/// The note is free: without it a delivery would be as large.
const _: () = assert!(size_of::<Unsettled<Peer>>() == size_of::<(Peer, u32, u32)>());

/// A second of the driver's clock. It comes again after 18 hours; what is older than that looks young for some
/// seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Second(pub(super) u16);

impl Second {
    /// The second of a moment.
    pub(super) fn of(moment: Instant) -> Self {
        // Only the lowest bits count.
        Self((moment.0 / 1_000_000_000) as u16)
    }

    /// Seconds from `earlier` to this one.
    fn since(self, earlier: Self) -> u16 {
        self.0.wrapping_sub(earlier.0)
    }
}

/// What was last said of an outgoing link, so that it is said once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Told {
    /// That deliveries are stuck.
    stuck: bool,
    /// That there is no credit.
    blocked: bool,
}

/// How many deliveries of a link were settled in each of the last seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct SettleRate {
    last: Second,
    counts: [u32; RATE_SECONDS],
}

impl SettleRate {
    /// Forgets the seconds that are over.
    fn advance(&mut self, now: Second) {
        let gone = usize::from(now.since(self.last)).min(RATE_SECONDS);
        for back in 0..gone {
            self.counts[(usize::from(now.0) + RATE_SECONDS - back) % RATE_SECONDS] = 0;
        }
        self.last = now;
    }

    /// Counts a settlement.
    #[inline]
    pub(super) fn count(&mut self, now: Second) {
        if self.last != now {
            self.advance(now);
        }
        let place = usize::from(now.0) % RATE_SECONDS;
        self.counts[place] = self.counts[place].saturating_add(1);
    }

    /// Settlements in a second, over the last ones.
    pub(super) fn per_second(mut self, now: Second) -> u32 {
        self.advance(now);
        let all: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        u32::try_from(all / RATE_SECONDS as u64).unwrap_or(u32::MAX)
    }
}

impl Core {
    /// It is this moment now.
    #[inline]
    pub(super) fn set_now(&mut self, now: Instant) {
        self.now = now;
        self.second = Second::of(now);
    }

    /// A receiver has settled a delivery that came in a second.
    #[inline]
    pub(super) fn measure_settled(&mut self, key: LinkKey, came: Second) {
        let second = self.second;
        if let Some(link) = self.links.get_mut(key) {
            link.counters.rate.count(second);
        }
        if second.since(came) > DELAYS[0] {
            self.count_delay(key, came);
        }
    }

    /// Counts a delivery that has taken long, if its link leads to the outside: within the router it is counted once.
    #[cold]
    pub(super) fn count_delay(&mut self, key: LinkKey, came: Second) {
        let took = self.second.since(came);
        let Some(place) = DELAYS.iter().rposition(|limit| took > *limit) else { return };
        let Some(link) = self.links.get_mut(key).filter(|link| link.party.is_outside()) else { return };
        link.counters.delayed[place] += 1;
        self.delayed[place] += 1;
    }

    /// Deliveries of a link that have waited or been unsettled for too long.
    pub(super) fn stuck(&self, link: &RouterLink) -> u64 {
        let Direction::Out(egress) = &link.direction else { return 0 };
        let waiting = egress.waiting_since(self.now - self.stuck_after);
        let limit = u16::try_from(self.stuck_after.as_secs()).unwrap_or(u16::MAX);
        let is_old = |stamp| self.second.since(Second(stamp)) >= limit;
        let slot = self.connections.get(link.connection).filter(|_| egress.unsettled > 0);
        let unsettled = slot.map_or(0, |slot| slot.engine.count_outgoing(link.link, is_old));
        (waiting + unsettled) as u64
    }

    /// For how long a receiver has given no credit.
    pub(super) fn without_credit(&self, link: &RouterLink) -> Duration {
        let Direction::Out(egress) = &link.direction else { return Duration::ZERO };
        let has_credit =
            self.connections.get(link.connection).is_none_or(|slot| slot.engine.has_credit(link.link));
        if has_credit { Duration::ZERO } else { self.now.since(egress.progress) }
    }

    /// Says in the log what is stuck or blocked among the links at these places of the table, and what isn't any more.
    pub(super) fn tell_stuck(&mut self, places: core::ops::Range<usize>) {
        let keys: Vec<LinkKey> = self
            .links
            .at_places(places)
            .filter(|(_, link)| link.party.is_outside() && link.egress().is_some())
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            let Some(link) = self.links.get(key) else { continue };
            let (stuck, without_credit) = (self.stuck(link), self.without_credit(link));
            let (id, connection) = (link.id, link.connection);
            let blocked = without_credit >= self.stuck_after;
            let connection = self.connections.get(connection).map_or(0, |slot| slot.id);
            let Some(egress) = self.links.get_mut(key).and_then(RouterLink::egress_mut) else { continue };
            let told = Told { stuck: stuck > 0, blocked };
            let before = std::mem::replace(&mut egress.told, told);
            let waiting = egress.available();
            let seconds = self.stuck_after.as_secs();
            let said = match (before.stuck, told.stuck) {
                (false, true) => Some(format!(
                    "Stuck: {stuck} of its deliveries have waited or been unsettled for more than {seconds} s"
                )),
                (true, false) => Some("No delivery is stuck any more".to_owned()),
                (false, false) | (true, true) => None,
            };
            let also = match (before.blocked, told.blocked) {
                (false, true) => Some(format!(
                    "Blocked: its receiver has given no credit for {} s, and {waiting} deliveries wait",
                    without_credit.as_secs()
                )),
                (true, false) => Some("Not blocked any more".to_owned()),
                (false, false) | (true, true) => None,
            };
            for text in said.into_iter().chain(also) {
                log!(Module::RouterCore, Level::Info, "[C{connection}][L{id}] {text}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Second, SettleRate};

    #[test]
    fn rates_are_those_of_the_last_seconds() {
        let mut rate = SettleRate::default();
        for second in 65_530..65_535 {
            for _ in 0..10 {
                rate.count(Second(second));
            }
        }
        assert_eq!(rate.per_second(Second(65_534)), 10);
        // The clock wraps; two of the five seconds are left.
        assert_eq!(rate.per_second(Second(65_535)), 8);
        assert_eq!(rate.per_second(Second(1)), 4);
        assert_eq!(rate.per_second(Second(3)), 0);
        assert_eq!(rate.per_second(Second(30_000)), 0);
    }
}
