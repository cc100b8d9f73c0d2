//! Deliveries with several copies: multicast.
//!
//! The sender hears of an unsettled one when every copy has a terminal state, by the strongest of them:
//! rejected before accepted before modified before released; and it is settled when every copy is
//! (router-protocol reference §8.5). The data of the state that decides goes with it.

use super::egress::failed;
use super::queue::Payload;
use super::{Core, Source};
use crate::base::id::{FanOutKey, LinkKey, Serial};
use ringmain_codec::{Cursor, Decode, DeliveryState, Encode, Modified, Writer};
use std::rc::Rc;

/// The most data of an outcome that is kept until the other copies have theirs.
const OUTCOME_BYTES_MAX: usize = 4096;

/// A delivery that went to several receivers.
pub struct FanOut {
    source: Source,
    copies: Vec<Copy>,
    /// The strongest terminal state so far: its rank and its encoding.
    outcome: Option<(Rank, Box<[u8]>)>,
    /// What the copies that wait share, while they are made.
    pub(super) held: Option<Rc<Payload>>,
}

struct Copy {
    target: LinkKey,
    delivery_id: Option<Serial>,
    terminal: bool,
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

/// The state's encoding, without its data if that is too long.
fn keep(state: &DeliveryState<'_>) -> Box<[u8]> {
    let mut room = [0; OUTCOME_BYTES_MAX];
    let plain = match state {
        DeliveryState::Rejected(_) | DeliveryState::Declared(_) => {
            DeliveryState::Rejected(ringmain_codec::Rejected { error: None })
        }
        DeliveryState::Modified(modified) => {
            DeliveryState::Modified(Modified { message_annotations: None, ..*modified })
        }
        DeliveryState::Accepted
        | DeliveryState::Released
        | DeliveryState::Received(_)
        | DeliveryState::Transactional(_)
        | DeliveryState::Other(_) => *state,
    };
    let whole = if matches!(state, DeliveryState::Declared(_)) { plain } else { *state };
    for state in [whole, plain] {
        let mut writer = Writer::new(&mut room);
        if state.encode(&mut writer).is_ok() {
            return writer.written().into();
        }
    }
    Box::default()
}

impl FanOut {
    pub(super) fn new(source: Source, receivers: &[LinkKey]) -> Self {
        let copies = receivers
            .iter()
            .map(|&target| Copy { target, delivery_id: None, terminal: false, settled: false })
            .collect();
        Self { source, copies, outcome: None, held: None }
    }

    fn copy_mut(&mut self, target: LinkKey) -> Option<&mut Copy> {
        self.copies.iter_mut().find(|copy| copy.target == target)
    }
}

impl Core {
    /// A copy has a number on its receiver's link.
    pub(super) fn copy_begun(&mut self, key: FanOutKey, target: LinkKey, delivery_id: Serial) {
        if let Some(copy) = self.fan_outs.get_mut(key).and_then(|fan_out| fan_out.copy_mut(target)) {
            copy.delivery_id = Some(delivery_id);
        }
    }

    /// A copy of a settled delivery has gone, or was dropped.
    pub(super) fn copy_closed(&mut self, key: FanOutKey, target: LinkKey) {
        let Some(fan_out) = self.fan_outs.get_mut(key) else { return };
        if let Some(copy) = fan_out.copy_mut(target) {
            copy.settled = true;
        }
        if fan_out.copies.iter().all(|copy| copy.settled) {
            let source = fan_out.source.delivery.key;
            self.fan_outs.remove(key);
            self.delivery_closed(source);
        }
    }

    /// A copy has a state, or is settled.
    pub(super) fn copy_outcome(
        &mut self,
        key: FanOutKey,
        target: LinkKey,
        state: Option<&DeliveryState<'_>>,
        settled: bool,
    ) {
        let Some(fan_out) = self.fan_outs.get_mut(key) else { return };
        let Some(copy) = fan_out.copy_mut(target) else { return };
        let rank = state.and_then(rank).filter(|_| !copy.terminal);
        copy.terminal |= rank.is_some();
        copy.settled |= settled;
        if let (Some(rank), Some(state)) = (rank, state)
            && fan_out.outcome.as_ref().is_none_or(|(strongest, _)| rank > *strongest)
        {
            fan_out.outcome = Some((rank, keep(state)));
        }
        let decided = fan_out.copies.iter().all(|copy| copy.terminal || copy.settled);
        let all_settled = fan_out.copies.iter().all(|copy| copy.settled);
        let newly_decided = decided && rank.is_some();
        if !(all_settled || newly_decided) {
            return;
        }
        let source = fan_out.source;
        let outcome = fan_out.outcome.as_ref().map_or(Box::default(), |(_, encoded)| encoded.clone());
        if all_settled {
            self.fan_outs.remove(key);
        }
        let state = DeliveryState::decode(&mut Cursor::new(&outcome), "outcome").ok();
        self.settle_delivery(&source.delivery, state.as_ref(), all_settled);
    }

    /// The sender of a delivery with copies has settled it.
    pub(super) fn settle_fan_out(&mut self, key: FanOutKey, state: Option<&DeliveryState<'_>>) {
        let Some(fan_out) = self.fan_outs.remove(key) else { return };
        for copy in &fan_out.copies {
            let Some(link) = self.links.get(copy.target) else { continue };
            let (connection, link_ref) = (link.connection, link.link);
            match copy.delivery_id {
                Some(_) if copy.settled => {}
                Some(delivery_id) => {
                    if self.settle_under_way(copy.target, delivery_id) {
                        continue;
                    }
                    if let Some(slot) = self.connections.get_mut(connection) {
                        slot.engine.dispose_outgoing(
                            link_ref.channel,
                            delivery_id,
                            true,
                            state,
                            &mut slot.out,
                        );
                        self.mark_dirty(connection);
                    }
                    self.count_settled(copy.target, delivery_id);
                }
                None => self.settle_copy_waiting(copy.target, key),
            }
        }
        self.delivery_closed(fan_out.source.delivery.key);
    }

    /// The sender of a delivery with copies is gone.
    pub(super) fn forget_fan_out_source(&mut self, key: FanOutKey) {
        self.settle_fan_out(key, Some(&failed()));
    }
}
