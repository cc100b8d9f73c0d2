//! How much a sender may send (router-protocol reference §8.3).
//!
//! A link's capacity is shared out between the credit that its sender holds and its deliveries that aren't
//! settled, or are settled and still wait here. Credit goes out in flows at the end of a turn, and only when there is
//! enough of it, or when the sender has none left: no flow is sent per message.

use super::Core;
use super::links::{Direction, RouterLink};
use super::slots::Slot;
use crate::base::id::LinkKey;

/// A flow is worth sending when it grants at least one part in this many of the capacity.
const GRANT_PARTS: u32 = 4;

/// The same for a sender that has none left.
const GRANT_PARTS_WHEN_DRY: u32 = 16;

impl Core {
    /// Notes that a sender's credit is to be looked at, at the end of the turn.
    #[inline]
    pub(super) fn credit_due(&mut self, key: LinkKey) {
        if let Some(ingress) = self.links.get_mut(key).and_then(RouterLink::ingress_mut) {
            ingress.mark_due(key, &mut self.credit_due);
        }
    }

    /// Grants the credit that has become due.
    pub(super) fn grant_credit(&mut self) {
        let mut due = std::mem::take(&mut self.credit_due);
        for key in due.drain(..) {
            self.grant_credit_to(key);
        }
        // The list's memory is used again.
        if self.credit_due.is_empty() {
            self.credit_due = due;
        }
    }

    fn grant_credit_to(&mut self, key: LinkKey) {
        let Some(link) = self.links.get_mut(key) else { return };
        let Direction::In(ingress) = &mut link.direction else { return };
        ingress.credit_due = false;
        let reachable = match link.address {
            None => true,
            Some(address) => self.addresses.get(address).is_some_and(|address| {
                if self.connections.get(link.connection).is_some_and(Slot::is_neighbour) {
                    // What comes from another shard is for the receivers here; whether its senders get credit for
                    // them is that shard's to say, by the snapshot.
                    !address.receivers.is_empty()
                } else {
                    address.destinations > 0 || address.has_remote_destinations()
                }
            }),
        };
        let (connection, link_ref, is_auto_link) = (link.connection, link.link, link.auto_link.is_some());
        let Some(slot) = self.connections.get_mut(connection) else { return };
        let Some((credit, unsettled)) = slot.engine.link(link_ref).map(|link| (link.credit, link.unsettled))
        else {
            return;
        };
        let granted = if reachable {
            let open = unsettled + ingress.charges;
            let allowed = link.capacity.saturating_sub(open).max(credit);
            let more = allowed - credit;
            let some = more >= (link.capacity / GRANT_PARTS_WHEN_DRY).max(1) || open == 0;
            let worth = more >= (link.capacity / GRANT_PARTS).max(1) || (credit == 0 && some);
            let resumed = std::mem::take(&mut ingress.draining) && allowed > 0;
            ((more > 0 && worth) || resumed).then_some((allowed, false))
        } else {
            let ask = !ingress.draining && credit > 0;
            ingress.draining |= ask;
            // A client is asked to use its credit or give it up (F-07 d). From a broker it is just taken back,
            // since a drain crashes RabbitMQ 3.10.8, Debian 12's (rabbitmq-server#7119); what still comes is released.
            ask.then_some(if is_auto_link { (0, false) } else { (credit, true) })
        };
        if let Some((credit, drain)) = granted {
            slot.engine.send_credit(link_ref, credit, drain, &mut slot.out);
            self.mark_dirty(connection);
        }
    }
}
