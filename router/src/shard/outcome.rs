//! Outcomes and settlement, from either end to the other (router-protocol reference §8.5).
//!
//! # Cost
//! A receiver's disposition of a delivery costs one entry in each of two sessions' maps. Outcomes that are the
//! same are put together in ranges by the engine.

use super::delay::Second;
use super::links::LinkCounters;
use super::slots::Slot;
use super::{Core, DeliveryRef, Peer, ShardCounters, Source};
use crate::base::id::{ConnectionKey, LinkKey};
use crate::engine::{Disposed, Unsettled};
use ringmain_codec::{DeliveryState, Modified, ReceiverSettleMode, Role};

/// The outcome of what a lost receiver had been sent, and what a receiver is told whose sender is lost.
pub(super) fn failed() -> DeliveryState<'static> {
    DeliveryState::Modified(Modified {
        delivery_failed: Some(true),
        undeliverable_here: None,
        message_annotations: None,
    })
}

/// Counts an outcome; of settlements without one nothing is counted.
macro_rules! count_outcome {
    ($counters:expr, $state:expr) => {
        match $state {
            Some(DeliveryState::Accepted) => $counters.accepted += 1,
            Some(DeliveryState::Rejected(_)) => $counters.rejected += 1,
            Some(DeliveryState::Released) => $counters.released += 1,
            Some(DeliveryState::Modified(_)) => $counters.modified += 1,
            Some(
                DeliveryState::Received(_)
                | DeliveryState::Declared(_)
                | DeliveryState::Transactional(_)
                | DeliveryState::Other(_),
            )
            | None => {}
        }
    };
}

impl LinkCounters {
    /// Counts a delivery that has come or gone.
    #[inline]
    pub(super) fn begin(&mut self, settled: bool, now: Second) {
        self.deliveries += 1;
        if settled {
            self.presettled += 1;
            self.rate.count(now);
        }
    }

    /// Counts an outcome.
    pub(super) fn count(&mut self, state: Option<&DeliveryState<'_>>) {
        count_outcome!(self, state);
    }
}

impl ShardCounters {
    fn count(&mut self, state: Option<&DeliveryState<'_>>) {
        count_outcome!(self, state);
    }
}

impl Core {
    /// Takes a disposition of a peer.
    pub(super) fn disposition(&mut self, connection: ConnectionKey, mut disposed: Disposed<'_>) {
        loop {
            let Some(slot) = self.connections.get_mut(connection) else { return };
            let Some(delivery) = slot.engine.next_disposed(&mut disposed) else { return };
            let Some(key) = delivery.user.map(LinkKey) else { continue };
            let end = DeliveryRef { connection, link: delivery.link, key, delivery_id: delivery.delivery_id };
            // A terminal state is final: of a later disposition only the settlement counts (§2.6.12).
            let state = disposed.state.as_ref().filter(|_| !delivery.was_terminal);
            match disposed.role {
                Role::Receiver => {
                    if disposed.settled {
                        self.measure_settled(end.key, Second(delivery.stamp));
                    }
                    self.receiver_says(&end, delivery.data, disposed.settled, disposed.batchable, state);
                }
                Role::Sender => self.sender_says(&end, delivery.data, disposed.settled, state),
            }
        }
    }

    /// A receiver has given a delivery a state, or settled it.
    #[inline]
    fn receiver_says(
        &mut self,
        end: &DeliveryRef,
        other: Peer,
        settled: bool,
        batchable: bool,
        state: Option<&DeliveryState<'_>>,
    ) {
        let mut is_under_way = false;
        if settled {
            is_under_way = self.count_settled(end.key, end.delivery_id);
            if let Some(link) = self.links.get_mut(end.key) {
                link.counters.count(state);
            }
        }
        // A receiver that settles second waits for its sender. Where that one is gone, has settled before, or
        // itself waits for the receiver because it settles first (§2.7.3), we answer in its place.
        let waits = !settled && state.is_some_and(DeliveryState::is_terminal);
        let second = waits && self.settles_second(end, batchable);
        let answered = match other {
            Peer::None | Peer::Queued(..) => true,
            Peer::Delivery(source) if self.links.get(source.key).is_none() => true,
            Peer::Delivery(source) => {
                if second && self.is_from_neighbour(&source) {
                    self.pass_on_waiting(&source, state);
                    return;
                }
                let first = second && self.settles_first(&source);
                self.settle_delivery(&source, state, settled || first);
                first
            }
            Peer::FanOut(fan_out, copy) => {
                let gone = self.fan_outs.get(fan_out).is_none();
                self.copy_outcome(fan_out, copy, state, settled || second);
                gone || second
            }
        };
        if is_under_way {
            self.cut_short(end.key, end.delivery_id);
        } else if waits && answered {
            self.settle_towards_receiver(end, state);
        }
    }

    /// Whether the receiver that a delivery went to settles second. Of one behind another shard that shard
    /// tells us, by the hint of its disposition, which has no other use between shards.
    fn settles_second(&self, end: &DeliveryRef, batchable: bool) -> bool {
        let Some(slot) = self.connections.get(end.connection) else { return false };
        if slot.is_neighbour() {
            return batchable;
        }
        slot.engine.link(end.link).is_some_and(|link| link.rcv_settle_mode == ReceiverSettleMode::Second)
    }

    /// Whether a delivery's sender expects its receiver to settle first.
    fn settles_first(&self, source: &DeliveryRef) -> bool {
        self.connections
            .get(source.connection)
            .and_then(|slot| slot.engine.incoming_settle_mode(source.link.channel, source.delivery_id))
            .is_some_and(|mode| mode == ReceiverSettleMode::First)
    }

    fn is_from_neighbour(&self, source: &DeliveryRef) -> bool {
        self.connections.get(source.connection).is_some_and(Slot::is_neighbour)
    }

    /// Tells the shard that a delivery came from of the state that a receiver gave it which settles second and
    /// waits.
    fn pass_on_waiting(&mut self, source: &DeliveryRef, state: Option<&DeliveryState<'_>>) {
        if let Some(slot) = self.connections.get_mut(source.connection) {
            let id = source.delivery_id;
            slot.engine.dispose_incoming_hinting(source.link, id, false, true, state, &mut slot.out);
            self.mark_dirty(source.connection);
        }
    }

    /// A sender has given one of its deliveries a state, or settled it.
    fn sender_says(
        &mut self,
        end: &DeliveryRef,
        other: Peer,
        settled: bool,
        state: Option<&DeliveryState<'_>>,
    ) {
        if settled {
            self.credit_due(end.key);
        }
        match other {
            // Its outcome was told and only this settlement was missing, or it hasn't been sent on yet.
            Peer::None => {}
            Peer::Delivery(out) if self.links.get(out.key).is_none() => {}
            Peer::Delivery(out) => {
                if settled && self.settle_under_way(out.key, out.delivery_id) {
                    return;
                }
                if let Some(slot) = self.connections.get_mut(out.connection) {
                    slot.engine.dispose_outgoing(
                        out.link.channel,
                        out.delivery_id,
                        settled,
                        state,
                        &mut slot.out,
                    );
                    self.mark_dirty(out.connection);
                }
                if settled {
                    self.count_settled(out.key, out.delivery_id);
                }
            }
            Peer::Queued(target, sequence) => {
                if settled {
                    self.settle_item(target, sequence);
                }
            }
            Peer::FanOut(fan_out, _) => {
                if settled {
                    self.settle_fan_out(fan_out, state);
                }
            }
        }
    }

    /// Tells a delivery's sender its outcome, which settles it.
    pub(super) fn settle_source(&mut self, source: &Source, state: Option<&DeliveryState<'_>>) {
        if !source.settled {
            self.settle_delivery(&source.delivery, state, true);
        }
    }

    /// Tells the sender of an unsettled delivery its state, and settles it if `settled`.
    pub(super) fn settle_delivery(
        &mut self,
        source: &DeliveryRef,
        state: Option<&DeliveryState<'_>>,
        settled: bool,
    ) {
        let Some(link) = self.links.get_mut(source.key) else { return };
        let Some(slot) = self.connections.get_mut(source.connection) else { return };
        slot.mark_dirty(source.connection, &mut self.dirty);
        let ended =
            slot.engine.dispose_incoming(source.link, source.delivery_id, settled, state, &mut slot.out);
        if !settled {
            return;
        }
        if !ended && let Some(peer) = slot.engine.incoming_mut(source.link.channel, source.delivery_id) {
            // The receiver's end is gone from now on, though the sender is to settle last.
            *peer = Peer::None;
        }
        link.counters.count(state);
        link.counters.rate.count(self.second);
        self.counters[link.party as usize].count(state);
        if let Some(ingress) = link.ingress_mut() {
            ingress.mark_due(source.key, &mut self.credit_due);
        }
        self.measure_settlement(source);
    }

    /// Settles a delivery towards its receiver, since its sender is gone or has settled it before.
    pub(super) fn settle_orphan(&mut self, out: &DeliveryRef, state: Option<&DeliveryState<'_>>) {
        if self.links.get(out.key).is_some() && !self.settle_under_way(out.key, out.delivery_id) {
            self.settle_towards_receiver(out, state);
        }
    }

    /// Settles a delivery towards its receiver.
    fn settle_towards_receiver(&mut self, out: &DeliveryRef, state: Option<&DeliveryState<'_>>) {
        let Some(slot) = self.connections.get_mut(out.connection) else { return };
        if slot.engine.outgoing_mut(out.link.channel, out.delivery_id).is_none() {
            return;
        }
        slot.engine.dispose_outgoing(out.link.channel, out.delivery_id, true, state, &mut slot.out);
        self.mark_dirty(out.connection);
        self.count_settled(out.key, out.delivery_id);
    }

    /// A receiver is gone that hadn't settled this delivery.
    pub(super) fn receiver_failed(&mut self, unsettled: &Unsettled<Peer>, counters: &mut LinkCounters) {
        // Of a terminal state the sender knows already; only its settlement is missing.
        let failed = failed();
        let state = (!unsettled.terminal).then_some(&failed);
        match unsettled.data {
            Peer::None | Peer::Queued(..) => {}
            Peer::Delivery(source) => {
                counters.count(state);
                self.settle_delivery(&source, state, true);
            }
            Peer::FanOut(fan_out, copy) => {
                counters.count(state);
                self.copy_outcome(fan_out, copy, state, true);
            }
        }
    }

    /// A sender is gone whose delivery this is: its other end is told.
    pub(super) fn sender_failed(&mut self, peer: Peer) {
        match peer {
            Peer::None => {}
            Peer::Delivery(out) => self.settle_orphan(&out, Some(&failed())),
            Peer::Queued(target, sequence) => self.settle_item(target, sequence),
            Peer::FanOut(fan_out, _) => self.forget_fan_out_source(fan_out),
        }
    }
}
