//! Deliveries with several copies: multicast.
//!
//! The sender hears of an unsettled one when every copy has a terminal state, by the strongest of them:
//! rejected before accepted before modified before released; and it is settled when every copy is
//! (router-protocol reference §8.5). The data of the state that decides goes with it.

use super::outcome::failed;
use super::payload::Payload;
use super::{Core, Source};
use crate::base::id::{FanOutKey, LinkKey, Serial};
use crate::engine::KeptState;
use ringmain_codec::{DeliveryState, Modified, Rejected};
use std::rc::Rc;

/// A delivery that goes to several receivers.
pub struct FanOut {
    source: Source,
    copies: Vec<Copied>,
    /// Copies without a terminal state, and copies that aren't settled.
    undecided: usize,
    unsettled: usize,
    /// The strongest terminal state so far.
    outcome: Option<(Rank, KeptState)>,
    /// What the copies share while they are made.
    pub(super) held: Option<Rc<Payload>>,
    /// The charge that they share.
    pub(super) charge: Option<Rc<LinkKey>>,
}

/// One copy.
pub(super) struct Copied {
    target: LinkKey,
    /// Its number in the target's queue, if it went there.
    sequence: Option<u64>,
    /// Its number on the target's link, once it is begun.
    delivery_id: Option<Serial>,
    decided: bool,
    settled: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rank {
    Released,
    Modified,
    Accepted,
    Rejected,
}

/// What a copy's state counts for; states that aren't terminal count for nothing. There is no transaction
/// that several receivers could take part in, so what belongs to one counts as a refusal.
fn rank(state: &DeliveryState<'_>) -> Option<Rank> {
    match state {
        DeliveryState::Accepted => Some(Rank::Accepted),
        DeliveryState::Rejected(_) | DeliveryState::Declared(_) => Some(Rank::Rejected),
        DeliveryState::Released => Some(Rank::Released),
        DeliveryState::Modified(_) => Some(Rank::Modified),
        DeliveryState::Received(_) | DeliveryState::Transactional(_) | DeliveryState::Other(_) => None,
    }
}

/// The state as it is kept: with its data, unless they are too long.
fn keep(state: &DeliveryState<'_>) -> KeptState {
    let rejected = DeliveryState::Rejected(Rejected { error: None });
    let (whole, short) = match state {
        DeliveryState::Declared(_) => (rejected, rejected),
        DeliveryState::Rejected(_) => (*state, rejected),
        DeliveryState::Modified(modified) => {
            (*state, DeliveryState::Modified(Modified { message_annotations: None, ..*modified }))
        }
        DeliveryState::Accepted
        | DeliveryState::Released
        | DeliveryState::Received(_)
        | DeliveryState::Transactional(_)
        | DeliveryState::Other(_) => (*state, *state),
    };
    KeptState::keep(Some(&whole)).or_else(|| KeptState::keep(Some(&short))).unwrap_or(KeptState::None)
}

impl FanOut {
    /// A delivery that goes to `receivers`; `copies` is an empty list for them.
    pub(super) fn new(source: Source, receivers: &[LinkKey], mut copies: Vec<Copied>) -> Self {
        copies.extend(receivers.iter().map(|&target| Copied {
            target,
            sequence: None,
            delivery_id: None,
            decided: false,
            settled: false,
        }));
        Self {
            source,
            undecided: copies.len(),
            unsettled: copies.len(),
            copies,
            outcome: None,
            held: None,
            charge: None,
        }
    }
}

impl Core {
    /// A copy was given to its receiver's link, under this number in its queue.
    pub(super) fn copy_sent(&mut self, key: FanOutKey, copy: u32, sequence: Option<u64>) {
        if let Some(copy) =
            self.fan_outs.get_mut(key).and_then(|fan_out| fan_out.copies.get_mut(copy as usize))
        {
            copy.sequence = sequence;
        }
    }

    /// A copy has a number on its receiver's link.
    pub(super) fn copy_begun(&mut self, key: FanOutKey, copy: u32, delivery_id: Serial) {
        if let Some(copy) =
            self.fan_outs.get_mut(key).and_then(|fan_out| fan_out.copies.get_mut(copy as usize))
        {
            copy.delivery_id = Some(delivery_id);
        }
    }

    /// A copy has a state, or is settled.
    pub(super) fn copy_outcome(
        &mut self,
        key: FanOutKey,
        copy: u32,
        state: Option<&DeliveryState<'_>>,
        settled: bool,
    ) {
        let Some(fan_out) = self.fan_outs.get_mut(key) else { return };
        let Some(copy) = fan_out.copies.get_mut(copy as usize) else { return };
        let rank = state.and_then(rank).filter(|_| !copy.decided);
        let decides = (rank.is_some() || settled) && !copy.decided;
        let settles = settled && !copy.settled;
        copy.decided |= decides;
        copy.settled |= settles;
        fan_out.undecided -= usize::from(decides);
        fan_out.unsettled -= usize::from(settles);
        if let (Some(rank), Some(state)) = (rank, state)
            && fan_out.outcome.as_ref().is_none_or(|(strongest, _)| rank > *strongest)
        {
            fan_out.outcome = Some((rank, keep(state)));
        }
        let all_settled = fan_out.unsettled == 0;
        let newly_decided = decides && fan_out.undecided == 0;
        if !(all_settled || newly_decided) {
            return;
        }
        let source = fan_out.source;
        let outcome = fan_out.outcome.as_ref().map_or(KeptState::None, |(_, state)| state.clone());
        if all_settled {
            self.end_fan_out(key);
        }
        self.settle_delivery(&source.delivery, outcome.state().as_ref(), all_settled);
    }

    /// The record of a delivery's copies isn't needed any more.
    pub(super) fn end_fan_out(&mut self, key: FanOutKey) {
        self.end_sharing(key);
        if let Some(fan_out) = self.fan_outs.remove(key) {
            self.spare.keep_copies(fan_out.copies);
        }
    }

    /// Whether the sender of a delivery with copies has settled it: then only what is shared is in its record.
    pub(super) fn is_fan_out_settled(&self, key: FanOutKey) -> bool {
        self.fan_outs.get(key).is_none_or(|fan_out| fan_out.source.settled)
    }

    /// The sender of a delivery with copies has settled it.
    pub(super) fn settle_fan_out(&mut self, key: FanOutKey, state: Option<&DeliveryState<'_>>) {
        let Some(fan_out) = self.fan_outs.get_mut(key) else { return };
        fan_out.source.settled = true;
        let copies = std::mem::take(&mut fan_out.copies);
        for copy in copies.iter().filter(|copy| !copy.settled) {
            match (copy.delivery_id, copy.sequence) {
                (Some(delivery_id), _) => self.settle_copy(copy.target, delivery_id, state),
                (None, Some(sequence)) => self.settle_item(copy.target, sequence),
                (None, None) => {}
            }
        }
        if let Some(fan_out) = self.fan_outs.get_mut(key) {
            fan_out.copies = copies;
        }
        self.end_fan_out(key);
    }

    fn settle_copy(&mut self, target: LinkKey, delivery_id: Serial, state: Option<&DeliveryState<'_>>) {
        if self.settle_under_way(target, delivery_id) {
            return;
        }
        let Some(link) = self.links.get(target) else { return };
        let (connection, link_ref) = (link.connection, link.link);
        if let Some(slot) = self.connections.get_mut(connection) {
            slot.engine.dispose_outgoing(link_ref.channel, delivery_id, true, state, &mut slot.out);
            self.mark_dirty(connection);
        }
        self.count_settled(target, delivery_id);
    }

    /// The sender of a delivery with copies is gone.
    pub(super) fn forget_fan_out_source(&mut self, key: FanOutKey) {
        self.settle_fan_out(key, Some(&failed()));
    }
}
