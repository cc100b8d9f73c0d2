//! Payload that stays in the router for now, and what it costs those who sent it.

use super::forward::Outgoing;
use super::{Core, Party, Source};
use crate::base::id::{Channel, ConnectionKey, FanOutKey, LinkKey};
use crate::base::limits::PIECE_OVERHEAD_BYTES;
use std::rc::Rc;

/// Payload that stays in the router, shared by all copies of its delivery.
pub(super) struct Payload {
    pub(super) bytes: Vec<u8>,
    session: HeldFor,
}

/// The session that is charged for bytes that stay in the router.
#[derive(Clone, Copy)]
pub(super) struct HeldFor {
    connection: ConnectionKey,
    channel: Channel,
    /// Tells the session from a later one on the same channel; `None`: its window is left as it is.
    generation: Option<u32>,
}

/// Some payload of one delivery, in the order in which it came.
pub(super) struct Piece {
    pub(super) payload: Rc<Payload>,
    /// How much of it has gone.
    pub(super) gone: usize,
}

/// The place that a settled delivery takes in its sender's capacity while it waits here. Copies of a delivery
/// share one. (An unsettled delivery takes its place by being unsettled.)
#[must_use = "a charge that is dropped, and not discharged, is credit lost for ever"]
pub(super) enum Charge {
    /// Of a delivery without copies.
    Own(LinkKey),
    /// Of one copy among several.
    Shared(Rc<LinkKey>),
}

impl Payload {
    /// What its session is charged for it.
    pub(super) fn charge(&self) -> usize {
        self.bytes.len() + PIECE_OVERHEAD_BYTES
    }
}

impl Core {
    /// Charges a session for bytes that stay in the router.
    ///
    /// The management agent's window isn't closed for them: a client that takes no replies would keep them
    /// from all others. What waits for such a client is bounded as for any receiver (`congestion`).
    pub(super) fn hold_bytes(&mut self, source: &Source, bytes: usize) -> HeldFor {
        let (connection, channel) = (source.delivery.connection, source.delivery.link.channel);
        let generation = self.connections.get_mut(connection).and_then(|slot| {
            slot.held_bytes += bytes;
            (source.party != Party::Agent).then(|| slot.engine.hold(channel, bytes))
        });
        self.held_bytes += bytes;
        HeldFor { connection, channel, generation }
    }

    /// Tells that bytes no longer stay in the router.
    pub(super) fn release_bytes(&mut self, session: HeldFor, bytes: usize) {
        self.held_bytes -= bytes;
        if let Some(slot) = self.connections.get_mut(session.connection) {
            slot.held_bytes -= bytes;
            if let Some(generation) = session.generation {
                slot.engine.release(session.channel, generation, bytes);
            }
            self.mark_dirty(session.connection);
        }
    }

    /// Copies payload that must stay. What several copies of a delivery wait with is held once for all.
    pub(super) fn hold(&mut self, outgoing: &Outgoing, payload: &[u8]) -> Rc<Payload> {
        let fan_out = outgoing.fan_out.map(|(fan_out, _)| fan_out);
        let held = fan_out.and_then(|fan_out| self.fan_outs.get(fan_out)?.held.clone());
        // A copy whose annotations were stripped is shorter than one with them.
        if let Some(held) = held.filter(|held| held.bytes.len() == payload.len()) {
            return held;
        }
        let session = self.hold_bytes(&outgoing.source, payload.len() + PIECE_OVERHEAD_BYTES);
        let held = self.spare.payload(|bytes| Payload { bytes, session }, payload);
        if let Some(fan_out) = fan_out.and_then(|fan_out| self.fan_outs.get_mut(fan_out)) {
            let before = fan_out.held.replace(held.clone());
            self.let_go(before);
        }
        held
    }

    /// Lets payload go; with its last copy the session that was charged for it has room again.
    pub(super) fn let_go(&mut self, payload: Option<Rc<Payload>>) {
        let Some(mut payload) = payload else { return };
        if let Some(last) = Rc::get_mut(&mut payload) {
            let (session, charge) = (last.session, last.charge());
            self.release_bytes(session, charge);
            self.spare.keep_payload(payload);
        }
    }

    /// The charge of a settled delivery that must wait.
    pub(super) fn charge(&mut self, outgoing: &Outgoing) -> Charge {
        let fan_out = outgoing.fan_out.map(|(fan_out, _)| fan_out);
        if let Some(shared) = fan_out.and_then(|fan_out| self.fan_outs.get(fan_out)?.charge.clone()) {
            return Charge::Shared(shared);
        }
        let key = outgoing.source.delivery.key;
        if let Some(ingress) = self.links.get_mut(key).and_then(|link| link.ingress_mut()) {
            ingress.charges += 1;
        }
        let Some(fan_out) = fan_out.and_then(|fan_out| self.fan_outs.get_mut(fan_out)) else {
            return Charge::Own(key);
        };
        let shared = Rc::new(key);
        fan_out.charge = Some(shared.clone());
        Charge::Shared(shared)
    }

    /// Ends a charge; with the last of those that share it the sender has its place back.
    pub(super) fn discharge(&mut self, charge: Option<Charge>) {
        let key = match charge {
            None => None,
            Some(Charge::Own(key)) => Some(key),
            Some(Charge::Shared(key)) => Rc::into_inner(key),
        };
        let Some(key) = key else { return };
        if let Some(ingress) = self.links.get_mut(key).and_then(|link| link.ingress_mut()) {
            ingress.charges -= 1;
            self.credit_due(key);
        }
    }

    /// Forgets what the copies of a delivery share, once each has been given its part of this frame.
    pub(super) fn end_sharing(&mut self, key: FanOutKey) {
        let Some(fan_out) = self.fan_outs.get_mut(key) else { return };
        let held = fan_out.held.take();
        let charge = fan_out.charge.take();
        self.let_go(held);
        self.discharge(charge.map(Charge::Shared));
    }
}
