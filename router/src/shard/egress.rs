//! What leaves on an outgoing link.
//!
//! A delivery goes straight to its receiver's connection if nothing waits before it, the receiver has
//! credit, the session's window is open and the connection's output isn't backed up. Otherwise it waits
//! in the link's queue, its payload copied once (for all copies of a multicast), and the session that it came
//! on is charged for the bytes, so that its window closes before memory grows.

use super::delay::Second;
use super::forward::Outgoing;
use super::links::{LinkCounters, RouterLink};
use super::message_log::Way;
use super::outcome::failed;
use super::payload::Piece;
use super::queue::{Active, Egress, Item};
use super::{Core, DeliveryRef, Party, Peer, Source};
use crate::base::id::{ConnectionKey, LinkKey, Serial};
use crate::base::limits::{OUTPUT_BACKLOG_MAX, PUMP_BYTES_MAX, UNSETTLED_PER_LINK_MAX};
use crate::base::time::Instant;
use crate::engine::{Credit, Fault, Unsettled};
use ringmain_codec::{Condition, DeliveryState, Rejected};

/// What became of an attempt to send what waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pumped {
    /// All that could be sent by the receiver's leave has gone.
    Dry,
    /// The output is backed up, the window is closed, or others are to have their turn: the link waits in its
    /// connection's list.
    Blocked,
}

impl Core {
    /// Sends a delivery, or what has come of it, on an outgoing link, or lets it wait there. Returns the
    /// number under which the rest follows, unless the link won't have it.
    #[inline]
    pub(super) fn send(
        &mut self,
        target: LinkKey,
        outgoing: Outgoing,
        payload: &[u8],
        more: bool,
    ) -> Option<u64> {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let link = self.links.get_mut(target)?;
        let (connection, link_ref, limit) = (link.connection, link.link, link.max_message_size);
        let party = link.party;
        if limit != 0 && payload.len() as u64 > limit {
            self.refuse_oversize(target, &outgoing, limit);
            return None;
        }
        let egress = link.egress_mut()?;
        let is_logged = egress.is_logged;
        let slot = self.connections.get_mut(connection)?;
        let straight = egress.active.is_none()
            && egress.waiting == 0
            && egress.unsettled < UNSETTLED_PER_LINK_MAX
            && slot.out.pending() < OUTPUT_BACKLOG_MAX;
        let new = egress.new_delivery(&outgoing, self.next_tag, self.second);
        let settled = new.settled;
        let sent = if straight {
            slot.engine.send_delivery(link_ref, new, payload, more, &mut slot.out)
        } else {
            None
        };
        let Some((delivery_id, sent)) = sent else {
            if is_logged {
                self.log_message(target, Way::Sent, payload);
            }
            self.enqueue(target, sequence, outgoing, payload, more);
            return Some(sequence);
        };
        slot.mark_dirty(connection, &mut self.dirty);
        slot.last_delivery = self.now;
        egress.begin(settled, self.now);
        link.counters.begin(settled, self.second);
        if is_logged {
            self.log_message(target, Way::Sent, payload);
        }
        let delivery = DeliveryRef { connection, link: link_ref, key: target, delivery_id };
        self.begun(&outgoing, delivery, settled, party);
        if sent.complete && !more {
            self.gone(&outgoing, settled);
            return Some(sequence);
        }
        let unsettled = !settled;
        let mut item = self.new_item(sequence, outgoing, payload, more);
        if !sent.complete {
            let payload = self.hold(&outgoing, payload);
            item.pieces.push_back(Piece { payload, gone: sent.consumed });
        }
        let waits = !item.pieces.is_empty();
        if let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) {
            egress.active = Some(Active { item, delivery_id, settled: !unsettled, unsettled });
        }
        if waits {
            self.block(target);
        }
        Some(sequence)
    }

    fn new_item(&mut self, sequence: u64, outgoing: Outgoing, payload: &[u8], more: bool) -> Item {
        let charge = outgoing.source.settled.then(|| self.charge(&outgoing));
        Item {
            sequence,
            since: self.now,
            outgoing,
            pieces: self.spare.pieces(),
            bytes: payload.len() as u64,
            complete: !more,
            aborted: false,
            charge,
        }
    }

    /// Begins a delivery that waited: it has a number from now on, and its two ends know each other. Returns the
    /// number and whether its receiver is to settle it.
    fn begin(
        &mut self,
        target: LinkKey,
        outgoing: &Outgoing,
        since: Instant,
        credit: Credit,
    ) -> Option<(Serial, bool)> {
        let link = self.links.get_mut(target)?;
        let (connection, link_ref) = (link.connection, link.link);
        let party = link.party;
        let slot = self.connections.get_mut(connection)?;
        let egress = link.egress_mut()?;
        let new = egress.new_delivery(outgoing, self.next_tag, Second::of(since));
        let settled = new.settled;
        let delivery_id = slot.engine.begin_delivery(link_ref, credit, new)?;
        slot.last_delivery = self.now;
        egress.begin(settled, self.now);
        link.counters.begin(settled, self.second);
        let delivery = DeliveryRef { connection, link: link_ref, key: target, delivery_id };
        self.begun(outgoing, delivery, settled, party);
        Some((delivery_id, !settled))
    }

    /// A delivery has a number on its outgoing link: its tag is used up, it is counted, and its source is told.
    #[inline]
    fn begun(&mut self, outgoing: &Outgoing, delivery: DeliveryRef, settled: bool, party: Party) {
        self.next_tag += 1;
        self.counters[party as usize].egress += 1;
        if party == Party::Container {
            self.count_container_egress(delivery.key);
        }
        match outgoing.fan_out {
            Some((fan_out, copy)) => self.copy_begun(fan_out, copy, delivery.delivery_id),
            None if settled => self.set_peer(&outgoing.source, Peer::None),
            None => self.set_peer(&outgoing.source, Peer::Delivery(delivery)),
        }
    }

    /// Deals with a delivery that has left the router whole; `settled` says how it went.
    #[inline]
    fn gone(&mut self, outgoing: &Outgoing, settled: bool) {
        if settled && !outgoing.source.settled {
            // The receiver wants to say nothing of it, so this is the last that is known.
            self.tell_source(outgoing, &DeliveryState::Accepted);
        }
    }

    /// Tells a delivery's sender what became of it on a link, for good.
    fn tell_source(&mut self, outgoing: &Outgoing, state: &DeliveryState<'_>) {
        match outgoing.fan_out {
            Some((fan_out, copy)) => self.copy_outcome(fan_out, copy, Some(state), true),
            None => self.settle_source(&outgoing.source, Some(state)),
        }
    }

    fn refuse_oversize(&mut self, target: LinkKey, outgoing: &Outgoing, limit: u64) {
        let fault = Fault::describe(
            Condition::MESSAGE_SIZE_EXCEEDED,
            format!("the receiver takes no message larger than {limit} bytes"),
        );
        let state = DeliveryState::Rejected(Rejected { error: Some(fault.error()) });
        self.not_sent(target, outgoing, &state);
    }

    /// Tells a delivery's sender that it wasn't sent on a link (any more), and why; a settled one is counted
    /// as dropped.
    fn not_sent(&mut self, target: LinkKey, outgoing: &Outgoing, state: &DeliveryState<'_>) {
        if outgoing.source.settled {
            self.count_drop(&outgoing.source, Some(target));
        } else {
            self.tell_source(outgoing, state);
        }
    }

    /// Releases all that waits on a link and hasn't been begun.
    pub(super) fn release_waiting(&mut self, key: LinkKey) {
        while let Some(item) = self.links.get_mut(key).and_then(RouterLink::egress_mut).and_then(Egress::pop)
        {
            self.release_item(key, item);
        }
    }

    fn release_item(&mut self, key: LinkKey, item: Item) {
        if !item.complete {
            self.stop_streaming(&item.outgoing.source, key);
        }
        self.not_sent(key, &item.outgoing, &DeliveryState::Released);
        self.end_item(item);
    }

    /// Gives back what a delivery took of the router that waits or is sent no longer.
    pub(super) fn end_item(&mut self, mut item: Item) {
        for piece in item.pieces.drain(..) {
            self.let_go(Some(piece.payload));
        }
        self.spare.keep_pieces(item.pieces);
        self.discharge(item.charge);
    }

    fn enqueue(&mut self, target: LinkKey, sequence: u64, outgoing: Outgoing, payload: &[u8], more: bool) {
        let mut item = self.new_item(sequence, outgoing, payload, more);
        let payload = self.hold(&outgoing, payload);
        item.pieces.push_back(Piece { payload, gone: 0 });
        if outgoing.fan_out.is_none() {
            self.set_peer(&outgoing.source, Peer::Queued(target, sequence));
        }
        let now = self.now;
        let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) else {
            self.end_item(item);
            return;
        };
        if egress.waiting == 0 && egress.active.is_none() {
            egress.progress = now;
        }
        egress.push(item);
        self.watch(target);
        self.block(target);
    }

    /// Counts a delivery for a broker with its address.
    #[cold]
    fn count_container_egress(&mut self, key: LinkKey) {
        let address = self.links.get(key).and_then(|link| link.address);
        if let Some(address) = address.and_then(|address| self.addresses.get_mut(address)) {
            address.counters.egress_route_container += 1;
        }
    }

    /// Puts a link into its connection's list of those that wait, unless it only lacks its receiver's
    /// credit.
    fn block(&mut self, key: LinkKey) {
        let Some(link) = self.links.get_mut(key) else { return };
        let (connection, link_ref) = (link.connection, link.link);
        let Some(slot) = self.connections.get_mut(connection) else { return };
        let Some(egress) = link.egress_mut() else { return };
        let can_begin = egress.unsettled < UNSETTLED_PER_LINK_MAX && slot.engine.has_credit(link_ref);
        if (egress.active.is_some() || can_begin) && !egress.blocked {
            egress.blocked = true;
            slot.blocked.push_back(key);
        }
    }

    /// Lets the links of a connection go on that waited for its output or for a window: each for a while in
    /// turn, until the output is backed up or none gets any further.
    pub(super) fn unblock(&mut self, connection: ConnectionKey) {
        let mut idle = 0;
        while let Some(slot) = self.connections.get_mut(connection) {
            if slot.out.pending() >= OUTPUT_BACKLOG_MAX || idle >= slot.blocked.len() {
                return;
            }
            let before = slot.out.pending();
            let Some(key) = slot.blocked.pop_front() else { return };
            if let Some(egress) = self.links.get_mut(key).and_then(RouterLink::egress_mut) {
                egress.blocked = false;
                self.pump(key);
            }
            let moved = self.connections.get(connection).is_some_and(|slot| slot.out.pending() != before);
            idle = if moved { 0 } else { idle + 1 };
        }
    }

    /// Deals with a receiver's flow: more credit, or a drain.
    pub(super) fn receiver_flow(&mut self, key: LinkKey) {
        let Some(link) = self.links.get(key) else { return };
        let (connection, link_ref) = (link.connection, link.link);
        let counts = link.egress().is_some_and(|egress| egress.destination);
        let wants = self
            .connections
            .get(connection)
            .and_then(|slot| slot.engine.link(link_ref))
            .is_some_and(|link| link.credit > 0 || link.drain);
        if wants && !counts {
            self.become_destination(key);
        }
        self.pump(key);
    }

    /// Sends what waits on a link, as far as credit, window and output allow, but no more than its share.
    pub(super) fn pump(&mut self, key: LinkKey) {
        loop {
            let pumped = self.pump_items(key);
            let Some(link) = self.links.get_mut(key) else { return };
            let (connection, link_ref) = (link.connection, link.link);
            let Some(egress) = link.egress_mut() else { return };
            egress.shrink();
            let available = egress.available();
            if egress.retiring {
                self.retired.push(key);
            }
            let Some(slot) = self.connections.get_mut(connection) else { return };
            let has_fresh_credit = slot.engine.answer_flow(link_ref, available, &mut slot.out);
            self.mark_dirty(connection);
            match pumped {
                // Once more for what waits and may go behind a drain.
                Pumped::Dry if has_fresh_credit && available > 0 => {}
                Pumped::Dry => return,
                Pumped::Blocked => {
                    self.block(key);
                    return;
                }
            }
        }
    }

    fn pump_items(&mut self, key: LinkKey) -> Pumped {
        let Some(connection) = self.links.get(key).map(|link| link.connection) else { return Pumped::Dry };
        let Some(before) = self.connections.get(connection).map(|slot| slot.out.pending()) else {
            return Pumped::Dry;
        };
        loop {
            let Some(link) = self.links.get_mut(key) else { return Pumped::Dry };
            let (link_ref, party) = (link.link, link.party);
            let Some(egress) = link.egress_mut() else { return Pumped::Dry };
            let Some(slot) = self.connections.get_mut(connection) else { return Pumped::Dry };
            if let Some(active) = egress.active.take() {
                let Some(active) = self.pump_active(key, active) else { continue };
                let waits_for_sender = active.item.pieces.is_empty() && !active.item.aborted;
                if let Some(egress) = self.links.get_mut(key).and_then(RouterLink::egress_mut) {
                    egress.active = Some(active);
                }
                return if waits_for_sender { Pumped::Dry } else { Pumped::Blocked };
            }
            if egress.waiting == 0 || egress.unsettled >= UNSETTLED_PER_LINK_MAX {
                return Pumped::Dry;
            }
            let pending = slot.out.pending();
            if pending >= OUTPUT_BACKLOG_MAX || pending.saturating_sub(before) >= PUMP_BYTES_MAX {
                return Pumped::Blocked;
            }
            let Some(credit) = slot.engine.take_credit(link_ref) else {
                return if slot.engine.has_credit(link_ref) { Pumped::Blocked } else { Pumped::Dry };
            };
            let Some(item) = egress.pop() else { return Pumped::Dry };
            let Some((delivery_id, unsettled)) = self.begin(key, &item.outgoing, item.since, credit) else {
                self.end_item(item);
                return Pumped::Dry;
            };
            if !unsettled {
                self.count_delay(key, Second::of(item.since));
            }
            self.measure_wait(item.since, party);
            if let Some(egress) = self.links.get_mut(key).and_then(RouterLink::egress_mut) {
                egress.active = Some(Active { item, delivery_id, settled: !unsettled, unsettled });
            }
        }
    }

    /// Sends the delivery under way. Returns it if it isn't through.
    fn pump_active(&mut self, key: LinkKey, mut active: Active) -> Option<Active> {
        let link = self.links.get(key)?;
        let (connection, link_ref) = (link.connection, link.link);
        if active.item.aborted {
            while let Some(piece) = active.item.pieces.pop_front() {
                self.let_go(Some(piece.payload));
            }
            let slot = self.connections.get_mut(connection)?;
            if !slot.engine.abort_delivery(link_ref, &mut slot.out) {
                return Some(active);
            }
            self.mark_dirty(connection);
            if active.unsettled {
                self.count_settled(key, active.delivery_id);
            }
            self.end_item(active.item);
            return None;
        }
        loop {
            let slot = self.connections.get_mut(connection)?;
            let Some(piece) = active.item.pieces.front() else { return Some(active) };
            if slot.out.pending() >= OUTPUT_BACKLOG_MAX {
                return Some(active);
            }
            let rest = &piece.payload.bytes[piece.gone..];
            let more = !(active.item.complete && active.item.pieces.len() == 1);
            let sent = slot.engine.send_payload(link_ref, rest, more, &mut slot.out);
            self.mark_dirty(connection);
            if !sent.complete {
                if let Some(piece) = active.item.pieces.front_mut() {
                    piece.gone += sent.consumed;
                }
                return Some(active);
            }
            if let Some(piece) = active.item.pieces.pop_front() {
                self.let_go(Some(piece.payload));
            }
            if !more {
                self.gone(&active.item.outgoing, active.settled);
                self.end_item(active.item);
                return None;
            }
        }
    }

    /// Takes more of a delivery that was begun with `send`. `false`: the link won't have the rest of it.
    pub(super) fn append(
        &mut self,
        target: LinkKey,
        sequence: u64,
        source: &Source,
        payload: &[u8],
        more: bool,
    ) -> bool {
        if source.settled {
            self.settle_item(target, sequence);
        }
        let Some(link) = self.links.get_mut(target) else { return false };
        let (connection, link_ref, limit) = (link.connection, link.link, link.max_message_size);
        let Some(egress) = link.egress_mut() else { return false };
        let is_active = egress.active_mut(sequence).is_some();
        let Some(item) = egress.item_mut(sequence).filter(|item| !item.aborted) else { return false };
        item.bytes += payload.len() as u64;
        let outgoing = item.outgoing;
        if limit != 0 && item.bytes > limit {
            self.refuse_oversize(target, &outgoing, limit);
            self.abort(target, sequence);
            return false;
        }
        item.complete = !more;
        if payload.is_empty() && more {
            return true;
        }
        let next_in_line = is_active && item.pieces.is_empty();
        let Some(slot) = self.connections.get_mut(connection) else { return false };
        let mut gone = 0;
        if next_in_line && slot.out.pending() < OUTPUT_BACKLOG_MAX {
            let sent = slot.engine.send_payload(link_ref, payload, more, &mut slot.out);
            gone = sent.consumed;
            self.mark_dirty(connection);
            if sent.complete {
                if !more {
                    self.end_active(target);
                }
                return true;
            }
        }
        let piece = Piece { payload: self.hold(&outgoing, payload), gone };
        let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) else { return false };
        let held = piece.payload.charge();
        if let Some(item) = egress.item_mut(sequence) {
            item.pieces.push_back(piece);
        }
        if is_active {
            self.block(target);
            return true;
        }
        if outgoing.source.settled {
            egress.waiting_settled_bytes += held;
            self.watch(target);
        }
        // That may have dropped this very delivery.
        let egress = self.links.get_mut(target).and_then(RouterLink::egress_mut);
        egress.is_some_and(|egress| egress.find(sequence).is_some())
    }

    /// The last frame of the delivery under way has gone straight.
    fn end_active(&mut self, key: LinkKey) {
        let egress = self.links.get_mut(key).and_then(RouterLink::egress_mut);
        if let Some(active) = egress.and_then(|egress| egress.active.take()) {
            self.gone(&active.item.outgoing, active.settled);
            self.end_item(active.item);
            self.pump(key);
        }
    }

    /// Gives up a delivery that was begun with `send` and hasn't come whole.
    pub(super) fn abort(&mut self, target: LinkKey, sequence: u64) {
        let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) else { return };
        if let Some(active) = egress.active_mut(sequence) {
            active.item.aborted = true;
            self.pump(target);
        } else if let Some(item) = egress.take(sequence) {
            self.end_item(item);
        }
    }

    /// Cuts short a delivery whose receiver has settled it before all of it has gone.
    pub(super) fn cut_short(&mut self, target: LinkKey, delivery_id: Serial) {
        let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) else { return };
        let Some(active) = egress.active.as_mut().filter(|active| active.delivery_id == delivery_id) else {
            return;
        };
        active.item.aborted = true;
        let source = active.item.outgoing.source;
        self.stop_streaming(&source, target);
        self.pump(target);
    }

    /// Counts out a delivery that its receiver (or its sender) has settled. Tells whether some of it is still to go.
    #[inline]
    pub(super) fn count_settled(&mut self, target: LinkKey, delivery_id: Serial) -> bool {
        let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) else { return false };
        let was_full = egress.unsettled >= UNSETTLED_PER_LINK_MAX;
        egress.unsettled = egress.unsettled.saturating_sub(1);
        let active = egress.active.as_mut().filter(|active| active.delivery_id == delivery_id);
        let is_under_way = active.is_some();
        if let Some(active) = active {
            active.unsettled = false;
        }
        if egress.retiring {
            self.retired.push(target);
        }
        if was_full {
            self.pump(target);
        }
        is_under_way
    }

    /// The sender of a delivery that waits, or is under way, has settled it or is gone: it goes on as a
    /// settled one.
    pub(super) fn settle_item(&mut self, target: LinkKey, sequence: u64) {
        let Some(link) = self.links.get_mut(target) else { return };
        let (connection, link_ref) = (link.connection, link.link);
        let Some(egress) = link.egress_mut() else { return };
        let delivery_id = egress.active_mut(sequence).map(|active| active.delivery_id);
        let Some(item) = egress.item_mut(sequence) else { return };
        if std::mem::replace(&mut item.outgoing.source.settled, true) {
            return;
        }
        let (outgoing, held) = (item.outgoing, item.held());
        if let Some(delivery_id) = delivery_id {
            // Its receiver's outcome is nobody's any more.
            let slot = self.connections.get_mut(connection);
            if let Some(peer) = slot.and_then(|slot| slot.engine.outgoing_mut(link_ref.channel, delivery_id))
            {
                *peer = Peer::None;
            }
        } else {
            egress.waiting_settled += 1;
            egress.waiting_settled_bytes += held;
        }
        let charge = self.charge(&outgoing);
        let egress = self.links.get_mut(target).and_then(RouterLink::egress_mut);
        match egress.and_then(|egress| egress.item_mut(sequence)) {
            Some(item) => item.charge = Some(charge),
            None => self.discharge(Some(charge)),
        }
        self.watch(target);
    }

    /// The sender of a delivery has settled it or is gone. If some of it is still to go, it goes on as a
    /// settled one, which tells true.
    pub(super) fn settle_under_way(&mut self, target: LinkKey, delivery_id: Serial) -> bool {
        let egress = self.links.get_mut(target).and_then(RouterLink::egress_mut);
        let active = egress.and_then(|egress| egress.active.as_ref());
        match active.filter(|active| active.delivery_id == delivery_id).map(|active| active.item.sequence) {
            Some(sequence) => {
                self.settle_item(target, sequence);
                true
            }
            None => false,
        }
    }

    /// Deals with what a lost receiver leaves behind: what waited is released, what it had not settled is
    /// modified (router-protocol reference §8.5).
    pub(super) fn receiver_lost(
        &mut self,
        key: LinkKey,
        mut egress: Egress,
        unsettled: Vec<(Serial, Unsettled<Peer>)>,
        counters: &mut LinkCounters,
    ) {
        if let Some(active) = egress.active.take() {
            let outgoing = active.item.outgoing;
            self.stop_streaming(&outgoing.source, key);
            if outgoing.source.settled {
                counters.dropped_presettled += 1;
            }
            // If its receiver was to settle it, it is among the unsettled ones below.
            if outgoing.source.settled || !active.unsettled {
                self.not_sent(key, &outgoing, &failed());
            }
            self.end_item(active.item);
        }
        while let Some(item) = egress.pop() {
            if item.outgoing.source.settled {
                counters.dropped_presettled += 1;
            }
            self.release_item(key, item);
        }
        for (_, unsettled) in unsettled {
            self.receiver_failed(&unsettled, counters);
        }
    }
}
