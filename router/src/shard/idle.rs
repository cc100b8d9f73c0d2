//! What a shard does while there is nothing to do: it blocks, or it goes on turning.
//!
//! A shard that spins makes whole turns that don't wait. So it sees completions, hand-offs and timers as always,
//! begins a turn on the snapshot each time (nothing that was replaced is held back), and isn't asleep for the
//! other shards: nobody rings its doorbell.
//!
//! # Cost
//! A turn of nothing is a clock read and a few loads, without a system call. It takes the whole CPU all the
//! same.

use std::time::Duration;

/// What a shard does while there is nothing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Idle {
    /// It blocks in the kernel until something comes.
    #[default]
    Block,
    /// It never blocks: the least latency, and a CPU that is always busy.
    Spin,
    /// It spins for so long after something came, then it blocks.
    SpinThenBlock(Duration),
}

impl Idle {
    /// Whether a shard spins to which nothing has come for `quiet`.
    #[inline]
    #[must_use]
    pub fn spins(self, quiet: Duration) -> bool {
        match self {
            Self::Block => false,
            Self::Spin => true,
            Self::SpinThenBlock(limit) => quiet < limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::ListenerId;
    use crate::io::driver::Driver as _;
    use crate::io::sim::{SimDriver, SimNetwork};
    use crate::routing::{Snapshot, Treatment};
    use crate::shard::mailbox::Mailbox;
    use crate::shard::seat::{Presence, seats};
    use crate::shard::turn::{Others, Shard};
    use std::sync::Arc;

    const LIMIT: Duration = Duration::from_micros(50);

    /// Two shards, of which only the second turns by itself, with `idle`.
    struct Pair {
        network: SimNetwork,
        first: Shard<SimDriver>,
        second: Shard<SimDriver>,
        presences: Arc<[Presence]>,
        publisher: crate::rcu::Publisher<Snapshot>,
        _reports: tokio::sync::mpsc::Receiver<crate::shard::mailbox::Report>,
    }

    impl Pair {
        fn new(idle: Idle) -> Self {
            // One network is one driver's: the other shard has a network that nobody connects to.
            let (network, other_network) = (SimNetwork::new(1), SimNetwork::new(2));
            for network in [&network, &other_network] {
                network.hold_clock(true);
            }
            let drivers = [other_network.driver(), network.driver()];
            let doorbells: Vec<_> = drivers.iter().map(|driver| driver.doorbell().unwrap()).collect();
            let (mailboxes, mut letters): (Vec<_>, Vec<_>) =
                drivers.iter().map(|driver| Mailbox::new(driver.waker())).unzip();
            let (reports, reported) = tokio::sync::mpsc::channel(16);
            let (publisher, seats) = seats(2, Snapshot::new("R", Treatment::Balanced));
            let presences = seats[0].presences.clone();
            let mut shards: Vec<_> = drivers
                .into_iter()
                .zip(seats)
                .map(|(driver, seat)| {
                    let others = Others {
                        doorbells: doorbells.clone(),
                        mailboxes: mailboxes.clone(),
                        reports: reports.clone(),
                    };
                    Shard::new(driver, seat, others, Vec::new(), letters.remove(0))
                })
                .collect();
            let second = shards.pop().unwrap().with_idle(idle);
            let first = shards.pop().unwrap();
            let mut pair = Self { network, first, second, presences, publisher, _reports: reported };
            // What links them comes through the rings.
            for _ in 0..20 {
                pair.first.turn().unwrap();
                pair.second.turn().unwrap();
            }
            assert!(pair.first.is_linked() && pair.second.is_linked());
            pair
        }

        /// Whether somebody who has something for the second shard would ring its doorbell now.
        fn must_ring(&self) -> bool {
            self.presences[1].sleeper.must_ring()
        }

        /// The second shard's wait, without what comes after it.
        fn prepare(&mut self) -> Option<crate::base::time::Instant> {
            self.second.prepare_wait()
        }
    }

    #[test]
    fn a_blocking_shard_sleeps_without_a_deadline_and_has_its_doorbell_rung() {
        let mut pair = Pair::new(Idle::Block);
        assert_eq!(pair.prepare(), None);
        assert!(pair.must_ring());
    }

    #[test]
    fn a_spinning_shard_never_waits_and_its_doorbell_stays_quiet() {
        let mut pair = Pair::new(Idle::Spin);
        for _ in 0..3 {
            pair.network.advance(Duration::from_secs(1));
            assert!(pair.prepare().is_some_and(|deadline| deadline <= pair.network.now()));
            assert!(!pair.must_ring());
            pair.second.turn().unwrap();
        }
    }

    #[test]
    fn a_spinning_shard_holds_no_snapshot_back() {
        let mut pair = Pair::new(Idle::Spin);
        for _ in 0..3 {
            pair.publisher.publish(Snapshot::new("R", Treatment::Closest));
            pair.first.turn().unwrap();
            pair.second.turn().unwrap();
            assert_eq!(pair.publisher.reclaim(), 0, "each turn begins on the newest snapshot");
        }
    }

    #[test]
    fn a_shard_that_spins_for_a_while_blocks_after_it_and_spins_again_when_something_came() {
        let mut pair = Pair::new(Idle::SpinThenBlock(LIMIT));
        pair.network.advance(LIMIT);
        pair.second.turn().unwrap();
        assert_eq!(pair.prepare(), None, "nothing has come for so long");
        assert!(pair.must_ring());
        // Now something comes.
        pair.second.listen(ListenerId(0), pair.network.listener()).unwrap();
        let _peer = pair.network.connect(ListenerId(0));
        while pair.network.connections() == 0 && !pair.network.is_idle() {
            pair.network.advance(Duration::from_micros(10));
            pair.second.turn().unwrap();
        }
        assert!(pair.prepare().is_some());
        assert!(!pair.must_ring());
        pair.network.advance(LIMIT - Duration::from_micros(1));
        pair.second.turn().unwrap();
        assert!(pair.prepare().is_some(), "not for so long yet");
        pair.network.advance(Duration::from_micros(1));
        pair.second.turn().unwrap();
        assert_eq!(pair.prepare(), None);
    }
}
