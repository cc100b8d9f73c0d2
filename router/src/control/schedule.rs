//! Whom a connector dials next, and when: the servers that it knows in turn, and pauses that grow.

use std::time::Duration;

/// The first pause after a failure, and the longest one. The pauses between double.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How often one server is tried before the next has its turn (router-protocol reference §1.2).
const TRIES_OF_ONE: u32 = 2;

/// A connection that was open for so long was a success: what follows it begins anew.
const STEADY: Duration = Duration::from_secs(5);

/// The tries of one connector.
///
/// It never gives up. While there are several servers, all of them are tried at short intervals before the pauses
/// grow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Schedule {
    /// The server whose turn it is.
    current: usize,
    /// How often it has been tried in this turn of its.
    tries: u32,
    /// How often any has been tried since the last success.
    failures: u32,
}

impl Schedule {
    /// The place of the server whose turn it is, of so many (at least one).
    pub(super) fn current(&self, servers: usize) -> usize {
        self.current.min(servers.saturating_sub(1))
    }

    /// Notes that the connection to the current server was open for that long. It is the first to be tried
    /// again.
    pub(super) fn was_open(&mut self, time: Duration) {
        self.tries = 0;
        if time >= STEADY {
            self.failures = 0;
        }
    }

    /// The list of servers has changed, and the current one is at this place of it.
    pub(super) fn move_to(&mut self, current: usize) {
        self.current = current;
    }

    /// Notes a failure, of a try or of an open connection, and returns how long to wait before the next try.
    /// `random` is between 0 and 1: connectors that lost the same peer don't come back all at once.
    pub(super) fn failed(&mut self, servers: usize, random: f64) -> Duration {
        let tries_of_all = TRIES_OF_ONE.saturating_mul(u32::try_from(servers).unwrap_or(u32::MAX));
        let doublings = if servers > 1 { self.failures / tries_of_all } else { self.failures };
        self.failures = self.failures.saturating_add(1);
        self.tries += 1;
        if self.tries >= TRIES_OF_ONE {
            self.tries = 0;
            self.current = (self.current(servers) + 1) % servers.max(1);
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings.min(10)).min(LONGEST_PAUSE);
        pause.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_a_success() {
        let mut schedule = Schedule::default();
        let pauses: Vec<u64> = (0..7).map(|_| schedule.failed(1, 1.0).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 15, 15, 15]);
        schedule.was_open(Duration::from_secs(1));
        assert_eq!(schedule.failed(1, 1.0), LONGEST_PAUSE, "a connection that ends at once is no success");
        schedule.was_open(Duration::from_secs(60));
        assert_eq!(schedule.failed(1, 1.0), FIRST_PAUSE);
    }

    #[test]
    fn jitter_takes_up_to_half() {
        for random in [0.0, 0.3, 1.0] {
            let pause = Schedule::default().failed(1, random);
            assert!((FIRST_PAUSE / 2..=FIRST_PAUSE).contains(&pause), "{pause:?}");
        }
    }

    #[test]
    fn never_gives_up() {
        let mut schedule = Schedule { failures: u32::MAX, ..Schedule::default() };
        assert_eq!(schedule.failed(1, 1.0), LONGEST_PAUSE);
        assert_eq!(schedule.failed(3, 1.0), LONGEST_PAUSE);
    }

    /// Router-protocol reference §1.2: each entry is tried twice before the next, round robin, a second apart.
    #[test]
    fn servers_have_their_turns() {
        let mut schedule = Schedule::default();
        let mut order = Vec::new();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            order.push(schedule.current(3));
            pauses.push(schedule.failed(3, 1.0).as_secs());
        }
        assert_eq!(order, [0, 0, 1, 1, 2, 2, 0, 0]);
        assert_eq!(pauses, [1, 1, 1, 1, 1, 1, 2, 2]);
        // A list that has become shorter.
        schedule.move_to(2);
        assert_eq!(schedule.current(1), 0);
    }
}
