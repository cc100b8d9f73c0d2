//! Outcomes and settlement, from either end to the other (router-protocol reference §8.5).
//!
//! # Cost
//! A receiver's disposition of a delivery costs one entry in each of two sessions' maps. Outcomes without
//! data are put together in ranges by the engine.

use super::links::LinkCounters;
use super::{Core, DeliveryRef, Peer, Source};
use crate::base::id::{ConnectionKey, LinkKey};
use crate::engine::Disposed;
use ringmain_codec::{DeliveryState, Role};

impl LinkCounters {
    fn count(&mut self, state: Option<&DeliveryState<'_>>) {
        match state {
            Some(DeliveryState::Accepted) => self.accepted += 1,
            Some(DeliveryState::Rejected(_)) => self.rejected += 1,
            Some(DeliveryState::Released) => self.released += 1,
            Some(DeliveryState::Modified(_)) => self.modified += 1,
            Some(
                DeliveryState::Received(_)
                | DeliveryState::Declared(_)
                | DeliveryState::Transactional(_)
                | DeliveryState::Other(_),
            )
            | None => {}
        }
    }
}

impl Core {
    /// Takes a disposition of a peer.
    pub(super) fn disposition(&mut self, connection: ConnectionKey, mut disposed: Disposed<'_>) {
        loop {
            let Some(slot) = self.connections.get_mut(connection) else { return };
            let Some(delivery) = slot.engine.next_disposed(&mut disposed) else { return };
            let Some(key) = slot.engine.link(delivery.link).and_then(|link| link.user).map(LinkKey) else {
                continue;
            };
            let end = DeliveryRef { connection, link: delivery.link, key, delivery_id: delivery.delivery_id };
            match disposed.role {
                Role::Receiver => {
                    self.receiver_says(&end, delivery.data, disposed.settled, disposed.state.as_ref())
                }
                Role::Sender => {
                    self.sender_says(&end, delivery.data, disposed.settled, disposed.state.as_ref())
                }
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
        state: Option<&DeliveryState<'_>>,
    ) {
        if settled {
            self.count_settled(end.key, end.delivery_id);
            if let Some(link) = self.links.get_mut(end.key) {
                link.counters.count(state);
            }
        }
        match other {
            Peer::None | Peer::Queued(..) => {}
            Peer::Delivery(source) => self.settle_delivery(&source, state, settled),
            Peer::FanOut(fan_out) => self.copy_outcome(fan_out, end.key, state, settled),
        }
        if settled {
            self.cut_short(end.key, end.delivery_id);
        }
        // A receiver that settles second waits for its sender, also where that one is gone or has settled
        // before: then we answer in its place.
        if !settled && other == Peer::None && state.is_some_and(DeliveryState::is_terminal) {
            self.settle_towards_receiver(end, state);
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
        match other {
            // Either its outcome was told and only this settlement was missing, or nothing is known of it.
            Peer::None => {
                if settled {
                    self.delivery_closed(end.key);
                }
            }
            Peer::Delivery(out) => {
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
                    if !self.settle_under_way(out.key, out.delivery_id) {
                        self.delivery_closed(end.key);
                    }
                }
            }
            Peer::Queued(target, sequence) => {
                if settled {
                    self.settle_item(target, sequence);
                }
            }
            Peer::FanOut(fan_out) => {
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
        let Some(slot) = self.connections.get_mut(source.connection) else { return };
        if settled && let Some(peer) = slot.engine.incoming_mut(source.link.channel, source.delivery_id) {
            // The receiver's end is gone from now on, also where the sender is to settle last.
            *peer = Peer::None;
        }
        let gone =
            slot.engine.dispose_incoming(source.link, source.delivery_id, settled, state, &mut slot.out);
        self.mark_dirty(source.connection);
        if settled {
            self.count_outcome(source.key, state);
        }
        if gone {
            self.delivery_closed(source.key);
        }
    }

    fn count_outcome(&mut self, key: LinkKey, state: Option<&DeliveryState<'_>>) {
        match state {
            Some(DeliveryState::Accepted) => self.counters.accepted += 1,
            Some(DeliveryState::Rejected(_)) => self.counters.rejected += 1,
            Some(DeliveryState::Released) => self.counters.released += 1,
            Some(DeliveryState::Modified(_)) => self.counters.modified += 1,
            Some(
                DeliveryState::Received(_)
                | DeliveryState::Declared(_)
                | DeliveryState::Transactional(_)
                | DeliveryState::Other(_),
            )
            | None => {}
        }
        if let Some(link) = self.links.get_mut(key) {
            link.counters.count(state);
        }
    }

    /// Settles a delivery towards its receiver, since its sender is gone or has settled it before.
    pub(super) fn settle_orphan(&mut self, out: &DeliveryRef, state: Option<&DeliveryState<'_>>) {
        if !self.settle_under_way(out.key, out.delivery_id) {
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
}
