//! When messages are to be sent.
//!
//! An open loop sends by the clock, not by the answers: the k-th message is due at `start + k / rate`, whatever
//! happened to those before it. Its latency counts from that time. A generator that waited for a slow target
//! and then counted from when it really sent would leave out just the waiting that its users would have seen
//! (coordinated omission).

/// How the senders are driven.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Drive {
    /// Nothing is sent.
    Idle,
    /// As much as window and credit allow.
    Window,
    /// By the clock.
    Paced(Pace),
}

/// A fixed rate over a number of links that take turns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pace {
    /// When the first message is due, in nanoseconds.
    pub start: u64,
    /// Messages per second over all links.
    pub rate: f64,
    /// Links that take turns: the k-th message is due on link k modulo links.
    pub links: u64,
    /// What would be due from here on isn't sent.
    pub end: u64,
}

impl Pace {
    /// When message `index` of link `link` is due, in nanoseconds.
    #[inline]
    pub fn due(&self, link: u64, index: u64) -> u64 {
        self.at(index * self.links + link)
    }

    /// How many messages are due on all links before `time`.
    pub fn due_before(&self, time: u64) -> u64 {
        let elapsed = time.min(self.end).saturating_sub(self.start) as f64;
        // `due` rounds down, so a message may be due a nanosecond earlier than its share of the rate says.
        let about = (elapsed * self.rate / 1e9) as u64;
        let mut count = about.saturating_sub(1);
        while self.at(count) < time.min(self.end) {
            count += 1;
        }
        count
    }

    #[inline]
    fn at(&self, number: u64) -> u64 {
        self.start + (number as f64 * 1e9 / self.rate) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn links_take_turns_at_a_fixed_rate() {
        let pace = Pace { start: 1_000, rate: 1e6, links: 4, end: u64::MAX };
        let due: Vec<u64> = (0..8).map(|number| pace.due(number % 4, number / 4)).collect();
        assert_eq!(due, [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000]);
        assert_eq!([999, 1000, 1001, 2000, 2001, 9001].map(|time| pace.due_before(time)), [0, 0, 1, 1, 2, 9]);
        assert_eq!(Pace { end: 3_000, ..pace }.due_before(9_001), 2);
    }

    #[test]
    fn a_stall_shows_in_every_message_that_was_due_in_it() {
        // 10 messages a millisecond apart; the target stands still until 10 ms, then all go at once.
        let pace = Pace { start: 0, rate: 1e3, links: 1, end: u64::MAX };
        let latencies: Vec<u64> = (0..10).map(|index| 10_000_000 - pace.due(0, index)).collect();
        // Counted from the intended time: 10 ms, 9 ms ... 1 ms. Counted from the real one it would be ten zeros.
        assert_eq!(latencies.first(), Some(&10_000_000));
        assert_eq!(latencies.last(), Some(&1_000_000));
        assert_eq!(latencies.iter().sum::<u64>(), 55_000_000);
    }

    #[test]
    fn what_is_due_is_what_is_counted() {
        for rate in [1.0, 3.0, 7_000.0, 333_333.3, 1_234_567.0] {
            let pace = Pace { start: 5, rate, links: 3, end: u64::MAX };
            for time in (0..2_000_000_000).step_by(77_777_777) {
                let count = pace.due_before(time);
                assert!(count == 0 || pace.due((count - 1) % 3, (count - 1) / 3) < time);
                assert!(pace.due(count % 3, count / 3) >= time);
            }
        }
    }

    #[test]
    fn rates_that_divide_nothing_do_not_drift() {
        let pace = Pace { start: 0, rate: 30_000.0, links: 1, end: u64::MAX };
        assert_eq!(pace.due(0, 30_000), 1_000_000_000);
        assert_eq!(pace.due(0, 3_000_000), 100_000_000_000);
    }
}
