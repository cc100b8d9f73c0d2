//! Settled deliveries that wait for a receiver who takes nothing (router-protocol reference §8.4).
//!
//! Settled deliveries wait like others while the receiver takes some now and then. When it has taken
//! nothing for [`CONGESTION_AFTER`], the link is congested: then they no longer count against their
//! senders' credit, and the oldest are dropped in favour of the newest. However that may be, never more than a
//! few times the link's capacity of them wait.

use super::Core;
use super::links::RouterLink;
use super::payload::Charge;
use crate::base::id::LinkKey;
use crate::base::limits::{CONGESTED_BYTES_MAX, WAITING_SETTLED_CAPACITIES_MAX};
use std::time::Duration;

/// How long a receiver takes nothing before its link is congested.
pub const CONGESTION_AFTER: Duration = Duration::from_millis(250);

impl Core {
    /// Watches a link on which a settled delivery waits, and drops what is too much.
    pub(super) fn watch(&mut self, key: LinkKey) {
        let now = self.now;
        let Some(link) = self.links.get_mut(key) else { return };
        let most = link.capacity.saturating_mul(WAITING_SETTLED_CAPACITIES_MAX);
        let Some(egress) = link.egress_mut() else { return };
        if egress.waiting_settled == 0 {
            return;
        }
        let too_many = egress.waiting_settled > most || egress.waiting_settled_bytes > CONGESTED_BYTES_MAX;
        let relieve = egress.congested || too_many;
        if !std::mem::replace(&mut egress.watched, true) {
            self.stalls.push_back((now + CONGESTION_AFTER, key));
        }
        if relieve {
            self.relieve(key);
        }
    }

    /// Looks at the links whose settled deliveries may have waited for too long.
    pub(super) fn expire_stalls(&mut self) {
        let now = self.now;
        while let Some(&(deadline, key)) = self.stalls.front()
            && deadline <= now
        {
            self.stalls.pop_front();
            let Some(egress) = self.links.get_mut(key).and_then(RouterLink::egress_mut) else { continue };
            egress.watched = egress.waiting_settled > 0;
            if !egress.watched {
                continue;
            }
            let stalled = egress.progress + CONGESTION_AFTER <= now;
            egress.congested |= stalled;
            self.stalls.push_back((now + CONGESTION_AFTER, key));
            if stalled {
                self.relieve(key);
            }
        }
    }

    /// Gives senders back the credit of settled deliveries that wait, and drops the oldest of them beyond the
    /// link's capacity.
    fn relieve(&mut self, key: LinkKey) {
        let Some(link) = self.links.get_mut(key) else { return };
        let capacity = link.capacity;
        let Some(egress) = link.egress_mut() else { return };
        let mut dropped = Vec::new();
        while egress.waiting_settled > capacity || egress.waiting_settled_bytes > CONGESTED_BYTES_MAX {
            let Some(item) = egress.take_oldest_settled() else { break };
            dropped.push(item);
        }
        let mut charges: Vec<Charge> = Vec::new();
        for (_, lane) in &mut egress.lanes {
            for item in lane.iter_mut().rev().filter(|item| item.outgoing.source.settled) {
                match item.charge.take() {
                    Some(charge) => charges.push(charge),
                    // Those before it were seen to already.
                    None => break,
                }
            }
        }
        for charge in charges {
            self.discharge(Some(charge));
        }
        for item in dropped {
            if !item.complete {
                self.stop_streaming(&item.outgoing.source, key);
            }
            self.count_drop(&item.outgoing.source, Some(key));
            self.end_item(item);
        }
    }
}
