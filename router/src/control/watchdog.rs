//! Noticing a shard that is stuck.
//!
//! A shard that neither waits nor turns serves nobody: a fault of the router, or a thread that the system
//! doesn't let run. It can't say so itself; the control thread looks at all of them now and then.

use super::service_manager::Heartbeat;
use crate::base::id::ShardId;
use crate::log;
use crate::log::{Level, Module};
use crate::shard::activity::{Doing, Sample};
use crate::shard::seat::Presence;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How often the shards are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// A shard that was found in the same place so many times after the first is stuck.
const LOOKS_MAX: u32 = 2;

/// What is to be told of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// It is stuck. Told once.
    Stuck(Doing),
    /// It was, for so many looks, and isn't any more.
    Turns(u32),
}

/// What is known of one shard.
///
/// Looks are counted, and no time measured: after the whole process was stopped for a while, a shard
/// has had no time either.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    last: Sample,
    /// How often `last` was found again.
    same: u32,
}

impl Watch {
    /// Whether it is stuck, as far as is known.
    fn is_stuck(&self) -> bool {
        self.same >= LOOKS_MAX
    }

    /// Takes the next sample.
    fn look(&mut self, sample: Sample) -> Option<Verdict> {
        if sample.doing == Doing::Waiting || sample.turns != self.last.turns {
            let same = std::mem::take(&mut self.same);
            self.last = sample;
            return (same >= LOOKS_MAX).then_some(Verdict::Turns(same));
        }
        // The part of the turn may have changed: it is the turn that doesn't end.
        self.last = sample;
        self.same = self.same.saturating_add(1);
        (self.same == LOOKS_MAX).then_some(Verdict::Stuck(sample.doing))
    }
}

/// Looks at the shards for ever. The service manager has signs of life while none of them is stuck.
pub(super) async fn run(presences: Arc<[Presence]>) {
    let mut heartbeat = Heartbeat::from_environment(PERIOD);
    watch(&presences, PERIOD, tell, |all_turn| heartbeat.looked(all_turn)).await;
}

/// Looks at the shards for ever; after each look `looked` is told whether all of them turn.
async fn watch(
    presences: &[Presence],
    period: Duration,
    mut tell: impl FnMut(ShardId, Verdict),
    mut looked: impl FnMut(bool),
) {
    let mut watches = vec![Watch::default(); presences.len()];
    let mut looks = tokio::time::interval(period);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        for ((number, presence), watch) in (0..).zip(presences).zip(&mut watches) {
            if let Some(verdict) = watch.look(presence.activity.sample()) {
                presence.is_stuck.store(matches!(verdict, Verdict::Stuck(_)), Ordering::Relaxed);
                tell(ShardId(number), verdict);
            }
        }
        looked(!watches.iter().any(Watch::is_stuck));
    }
}

fn tell(shard: ShardId, verdict: Verdict) {
    match verdict {
        Verdict::Stuck(doing) => log!(
            Module::Server,
            Level::Error,
            "Shard {} has been stuck for {} s while {doing}: its connections aren't served",
            shard.0,
            LOOKS_MAX
        ),
        Verdict::Turns(looks) => log!(
            Module::Server,
            Level::Error,
            "Shard {} turns again, after it was stuck for about {looks} s",
            shard.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::driver::Driver as _;
    use crate::io::sim::SimNetwork;
    use crate::routing::{Snapshot, Treatment};
    use crate::shard::mailbox::Mailbox;
    use crate::shard::seat::Seat;
    use crate::shard::turn::{Others, Shard};

    fn verdicts(samples: &[(u64, Doing)]) -> Vec<Option<Verdict>> {
        let mut watch = Watch::default();
        samples.iter().map(|&(turns, doing)| watch.look(Sample { turns, doing })).collect()
    }

    #[test]
    fn a_shard_that_turns_or_waits_is_not_stuck() {
        let busy: Vec<_> = (1..100).map(|turn| (turn, Doing::Completions)).collect();
        assert!(verdicts(&busy).iter().all(Option::is_none));
        let asleep = [(7, Doing::Waiting); 100];
        assert!(verdicts(&asleep).iter().all(Option::is_none));
        let just_found_busy = [(7, Doing::Flush), (7, Doing::Flush), (8, Doing::Flush), (8, Doing::Flush)];
        assert!(verdicts(&just_found_busy).iter().all(Option::is_none));
    }

    #[test]
    fn a_stuck_shard_is_told_of_once_and_again_when_it_turns() {
        let mut samples = vec![(7, Doing::Waiting), (8, Doing::Timers)];
        samples.extend([(8, Doing::Flush); 5]);
        samples.extend([(9, Doing::Flush), (10, Doing::Waiting)]);
        let mut expected = vec![None; samples.len()];
        expected[3] = Some(Verdict::Stuck(Doing::Flush));
        expected[7] = Some(Verdict::Turns(5));
        assert_eq!(verdicts(&samples), expected);
    }

    #[test]
    fn a_shard_that_ends_its_turn_by_waiting_turns_again() {
        let samples = [(8, Doing::HandOffs), (8, Doing::HandOffs), (8, Doing::HandOffs), (8, Doing::Waiting)];
        let expected = [None, None, Some(Verdict::Stuck(Doing::HandOffs)), Some(Verdict::Turns(2))];
        assert_eq!(verdicts(&samples), expected);
    }

    /// A shard that nobody turns any more, behind the end of a turn, is stuck there.
    #[test]
    fn a_shard_that_stops_turning_is_noticed() {
        let network = SimNetwork::new(1);
        network.hold_clock(true);
        let driver = network.driver();
        let (mailbox, letters) = Mailbox::new(driver.waker());
        let (reports, _reported) = tokio::sync::mpsc::channel(1);
        let others = Others { doorbells: Vec::new(), mailboxes: vec![mailbox], reports };
        let (_publisher, seat) = Seat::alone(Snapshot::new("R", Treatment::Balanced));
        let presences = seat.presences.clone();
        let mut shard = Shard::new(driver, seat, others, Vec::new(), letters);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let told = std::cell::RefCell::new(Vec::new());
        let all_turn = std::cell::Cell::new(true);
        let look = |times: u32| {
            let period = Duration::from_millis(5);
            let tell = |shard, verdict| told.borrow_mut().push((shard, verdict));
            let watching = watch(&presences, period, tell, |these| all_turn.set(these));
            let limit = period * times;
            assert!(runtime.block_on(async { tokio::time::timeout(limit, watching).await }).is_err());
            told.take()
        };
        assert_eq!(look(20), [], "it hasn't begun");
        assert!(all_turn.get());
        shard.turn().expect("the simulated driver doesn't fail");
        assert_eq!(look(20), [(ShardId(0), Verdict::Stuck(Doing::Flush))]);
        assert!(!all_turn.get(), "no sign of life for the service manager");
    }
}
