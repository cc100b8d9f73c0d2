//! What a shard measures of itself, for whoever watches the router.
//!
//! # Cost
//! A turn that forwarded something reads the clock once more when it ends; nothing is read or written for a
//! delivery that goes straight. One delivery in [`SAMPLE_EVERY`] is followed to its settlement, the others
//! cost a comparison when they come and one when they are settled.

use super::{Core, DeliveryRef, Party};
use crate::base::histogram::Histogram;
use crate::base::id::{Channel, ConnectionKey, Serial};
use crate::base::time::Instant;

/// Of the deliveries of a session, one in so many is followed to its settlement. A power of two.
pub const SAMPLE_EVERY: u32 = 64;

/// Deliveries that are followed at a time: 10 KiB a shard. Beyond that a new one takes the place of an old one.
const SAMPLES_MAX: usize = 256;

const _: () = assert!(SAMPLE_EVERY.is_power_of_two() && SAMPLES_MAX.is_power_of_two());

/// What a shard has measured so far. Plain numbers: only its own thread touches them.
#[derive(Clone, Debug, Default)]
pub struct Meters {
    /// Completions that one turn dealt with, of turns that had any.
    pub batches: Histogram,
    /// How long deliveries were in the router until they went to a client or broker: from the beginning of the turn
    /// that took them, on whichever shard they came in, to the end of the one that sent them. What waited for its
    /// receiver after it had come from another shard is measured from when it was there.
    pub forward: Histogram,
    /// How long it took until their senders, clients or brokers, were told their outcome: of one in
    /// [`SAMPLE_EVERY`] that came unsettled.
    pub settle: Histogram,
    /// Chunks of frames that came from other shards.
    pub taken_over: u64,
    /// Chunks of frames that went to other shards.
    pub handed_over: u64,
}

/// What the measuring itself needs.
#[derive(Default)]
pub(super) struct Measuring {
    pub(super) meters: Meters,
    /// Deliveries that had waited here before they went to a client or broker.
    waited: u64,
    /// Deliveries of which the time is in [`Meters::forward`], those of `crossed` included.
    measured: u64,
    /// What went straight in this turn and had come from other shards: since when, and how many. One entry for each
    /// chunk of a turn.
    crossed: Vec<(Instant, u64)>,
    /// Those that are followed, each at a place by its number.
    samples: Vec<Option<Sample>>,
}

/// A delivery that is followed to its settlement.
#[derive(Clone, Copy)]
struct Sample {
    connection: ConnectionKey,
    channel: Channel,
    delivery_id: Serial,
    since: Instant,
}

/// Whether a delivery is one of those that are followed.
#[inline]
fn is_sampled(delivery_id: Serial) -> bool {
    delivery_id.0.is_multiple_of(SAMPLE_EVERY)
}

/// Where a followed delivery is kept.
fn sample_place(delivery: &DeliveryRef) -> usize {
    let session =
        delivery.connection.0.index.wrapping_mul(31).wrapping_add(u32::from(delivery.link.channel.0));
    (session.wrapping_mul(0x9e37_79b1) ^ (delivery.delivery_id.0 / SAMPLE_EVERY)) as usize % SAMPLES_MAX
}

impl Core {
    /// An unsettled delivery comes from this kind of party.
    #[inline]
    pub(super) fn follow_to_settlement(&mut self, delivery: &DeliveryRef, party: Party) {
        if is_sampled(delivery.delivery_id) && party.is_outside() {
            self.begin_sample(delivery);
        }
    }

    #[cold]
    fn begin_sample(&mut self, delivery: &DeliveryRef) {
        let samples = &mut self.measuring.samples;
        samples.resize(SAMPLES_MAX, None);
        samples[sample_place(delivery)] = Some(Sample {
            connection: delivery.connection,
            channel: delivery.link.channel,
            delivery_id: delivery.delivery_id,
            since: self.now,
        });
    }

    /// A delivery's sender is told its outcome.
    #[inline]
    pub(super) fn measure_settlement(&mut self, delivery: &DeliveryRef) {
        if is_sampled(delivery.delivery_id) {
            self.end_sample(delivery);
        }
    }

    #[cold]
    fn end_sample(&mut self, delivery: &DeliveryRef) {
        let is_it = |sample: &mut Sample| {
            sample.connection == delivery.connection
                && sample.channel == delivery.link.channel
                && sample.delivery_id == delivery.delivery_id
        };
        let place = self.measuring.samples.get_mut(sample_place(delivery));
        if let Some(sample) = place.and_then(|place| place.take_if(is_it)) {
            self.measuring.meters.settle.record_time(self.now.since(sample.since), 1);
        }
    }

    /// A delivery goes to this kind of party that has waited here.
    pub(super) fn measure_wait(&mut self, since: Instant, party: Party) {
        if party.is_outside() {
            self.measuring.waited += 1;
            self.measuring.meters.forward.record_time(self.now.since(since), 1);
        }
    }

    /// How many deliveries went straight to clients and brokers in this turn.
    pub(super) fn forwarded_in_turn(&self) -> u64 {
        let went: u64 = [Party::Client, Party::Container]
            .map(|party| self.counters[party as usize].egress)
            .into_iter()
            .sum();
        went.saturating_sub(self.measuring.waited).saturating_sub(self.measuring.measured)
    }

    /// So many of these went straight, which another shard took in the turn that began at `since`.
    #[inline]
    pub(super) fn note_crossing(&mut self, since: Instant, forwarded: u64) {
        if forwarded > 0 {
            self.measuring.measured += forwarded;
            self.measuring.crossed.push((since, forwarded));
        }
    }

    /// Whether something went straight in this turn.
    #[inline]
    pub(super) fn has_forwarded(&self) -> bool {
        self.forwarded_in_turn() > 0 || !self.measuring.crossed.is_empty()
    }

    /// The turn ends at this moment: what went straight in it is measured.
    pub(super) fn measure_turn(&mut self, end: Instant) {
        let forwarded = self.forwarded_in_turn();
        self.measuring.measured += forwarded;
        for (since, crossed) in self.measuring.crossed.drain(..) {
            self.measuring.meters.forward.record_time(end.since(since), crossed);
        }
        self.measuring.meters.forward.record_time(end.since(self.now), forwarded);
    }
}

#[cfg(test)]
mod tests {
    use crate::base::time::Instant;
    use crate::io::driver::Driver as _;
    use crate::io::sim::SimNetwork;
    use crate::routing::{Snapshot, Treatment};
    use crate::shard::mailbox::Mailbox;
    use crate::shard::turn::Shard;

    #[test]
    fn what_came_from_another_shard_is_measured_from_when_that_one_took_it() {
        let network = SimNetwork::new(1);
        let driver = network.driver();
        let (_mailbox, letters) = Mailbox::new(driver.waker());
        let mut shard = Shard::alone(driver, Snapshot::new("R", Treatment::Balanced), Vec::new(), letters);
        let core = &mut shard.core;
        core.set_now(Instant(5_000_000));
        core.note_crossing(Instant(1_000_000), 2);
        assert!(core.has_forwarded());
        core.measure_turn(Instant(6_000_000));
        let forward = &core.measuring.meters.forward;
        assert_eq!((forward.count(), forward.sum()), (2, 2 * 5_000_000));
        assert!(!core.has_forwarded());
    }
}
