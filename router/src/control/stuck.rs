//! Looking for deliveries that are stuck and links that are blocked, now and then (router-protocol reference §8.13).

use super::handle::ShardsHandle;
use crate::base::id::ShardId;
use crate::shard::mailbox::Message;
use crate::shard::survey::{Subject, Survey};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

/// How often the shards look, and after which time something is stuck.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    every: Duration,
    after: Duration,
}

impl Pace {
    /// As users know it, or shorter if `for_tests`: the option `-T` of the command line.
    pub(super) fn new(for_tests: bool) -> Self {
        let (every, after) = if for_tests { (1, 2) } else { (30, 10) };
        Self { every: Duration::from_secs(every), after: Duration::from_secs(after) }
    }
}

/// Lets the shards look for ever. What they find they say in the log.
pub(super) async fn run(shards: ShardsHandle, pace: Pace) {
    let mut looks = tokio::time::interval(pace.every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        for shard in (0..shards.count()).filter_map(|shard| u16::try_from(shard).ok()) {
            let (reply, looked) = oneshot::channel();
            let survey = Survey { subject: Subject::Stuck(pace.after), reply };
            shards.send(ShardId(shard), Message::Survey(survey));
            // One after the other. A shard that doesn't turn is the watchdog's.
            let _looked = tokio::time::timeout(pace.every, looked).await;
        }
    }
}
