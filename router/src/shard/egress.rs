//! What goes into the queue of an outgoing link, and what leaves it.
//!
//! A delivery goes straight to its receiver's connection if nothing waits before it, the receiver has
//! credit, the session's window is open and the connection's output isn't backed up. Otherwise it waits
//! here, its payload copied once (for all copies of a multicast), and the session that it came on is
//! charged for the bytes, so that its window closes before memory grows.
//!
//! Settled deliveries wait like others while the receiver takes some now and then. When it has taken
//! nothing for [`CONGESTION_AFTER`], the link is congested: then they no longer count against their
//! senders' credit, and the oldest are dropped in favour of the newest (router-protocol reference §8.4).

use super::forward::Outgoing;
use super::links::RouterLink;
use super::queue::{Active, Egress, Item, Payload, Piece, Settle};
use super::{Core, DeliveryRef, Peer, Source};
use crate::base::id::{ConnectionKey, FanOutKey, LinkKey, Serial};
use crate::base::limits::{CONGESTED_BYTES_MAX, OUTPUT_BACKLOG_MAX, PIECE_OVERHEAD_BYTES};
use crate::engine::{Credit, Fault, NewDelivery};
use ringmain_codec::{Condition, DeliveryState, Rejected};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

/// How long a receiver takes nothing before its link is congested.
pub const CONGESTION_AFTER: Duration = Duration::from_millis(250);

/// What became of an attempt to send.
enum Pumped {
    /// All that was there has gone.
    Dry,
    /// The output is backed up or the window closed: the link waits in its connection's list.
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
        let Some(link) = self.links.get_mut(target) else { return None };
        let (connection, link_ref) = (link.connection, link.link);
        let Some(egress) = link.egress_mut() else { return None };
        let Some(slot) = self.connections.get_mut(connection) else { return None };
        let limit = slot.engine.link(link_ref).map_or(0, |link| link.max_message_size);
        if limit != 0 && payload.len() as u64 > limit {
            self.refuse_oversize(target, &outgoing, true, limit);
            return None;
        }
        let straight =
            egress.active.is_none() && egress.waiting == 0 && slot.out.pending() < OUTPUT_BACKLOG_MAX;
        let credit = if straight { slot.engine.take_credit(link_ref) } else { None };
        let Some(credit) = credit else {
            self.enqueue(target, sequence, outgoing, payload, more);
            return Some(sequence);
        };
        let (delivery_id, unsettled) = self.begin(target, &outgoing, credit)?;
        let slot = self.connections.get_mut(connection)?;
        let sent = slot.engine.send_payload(link_ref, payload, more, &mut slot.out);
        self.mark_dirty(connection);
        if sent.complete && !more {
            self.gone(target, &outgoing, true);
            return Some(sequence);
        }
        let mut item = Item {
            sequence,
            outgoing,
            pieces: VecDeque::new(),
            bytes: payload.len() as u64,
            complete: !more,
            aborted: false,
            charged: true,
        };
        if !sent.complete {
            let payload = self.hold_for(&outgoing, payload);
            item.pieces.push_back(Piece { payload, gone: sent.consumed });
        }
        let waits = !item.pieces.is_empty();
        if let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) {
            egress.active = Some(Active { item, delivery_id, unsettled });
        }
        if waits {
            self.block(target);
        }
        Some(sequence)
    }

    /// Begins a delivery: it has a number from now on, and its two ends know each other. Returns the number
    /// and whether its receiver is to settle it.
    #[inline]
    fn begin(&mut self, target: LinkKey, outgoing: &Outgoing, credit: Credit) -> Option<(Serial, bool)> {
        let now = self.now;
        let tag = self.next_tag.to_be_bytes();
        self.next_tag += 1;
        let link = self.links.get_mut(target)?;
        let (connection, link_ref) = (link.connection, link.link);
        let source = outgoing.source;
        link.counters.deliveries += 1;
        self.counters.egress += 1;
        let egress = link.egress_mut()?;
        egress.progress = now;
        egress.congested = false;
        let settled = match egress.settle {
            Settle::Always => true,
            Settle::Never => false,
            Settle::AsSent => source.settled,
        };
        if settled {
            link.counters.presettled += 1;
        } else {
            egress.unsettled += 1;
        }
        let data = match outgoing.fan_out {
            _ if source.settled || settled => Peer::None,
            Some(fan_out) => Peer::FanOut(fan_out),
            None => Peer::Delivery(source.delivery),
        };
        let slot = self.connections.get_mut(connection)?;
        let new = NewDelivery { message_format: source.message_format, settled, tag, data };
        let delivery_id = slot.engine.begin_delivery(link_ref, credit, new)?;
        match outgoing.fan_out {
            Some(fan_out) => self.copy_begun(fan_out, target, delivery_id),
            None if settled => self.set_peer(&source, Peer::None),
            None => {
                let delivery = DeliveryRef { connection, link: link_ref, key: target, delivery_id };
                self.set_peer(&source, Peer::Delivery(delivery));
            }
        }
        Some((delivery_id, !settled))
    }

    /// Deals with a delivery that has left the router whole. `charged` says whether it still counts against
    /// its sender's capacity.
    #[inline]
    fn gone(&mut self, target: LinkKey, outgoing: &Outgoing, charged: bool) {
        let source = outgoing.source;
        if source.settled {
            if charged {
                self.close_charge(target, outgoing);
            }
            return;
        }
        let settled_here = self
            .links
            .get(target)
            .and_then(RouterLink::egress)
            .is_some_and(|egress| egress.settle == Settle::Always);
        if settled_here {
            // The receiver wants to say nothing of it, so this is the last that is known.
            match outgoing.fan_out {
                Some(fan_out) => self.copy_outcome(fan_out, target, Some(&DeliveryState::Accepted), true),
                None => self.settle_source(&source, Some(&DeliveryState::Accepted)),
            }
        }
    }

    fn refuse_oversize(&mut self, target: LinkKey, outgoing: &Outgoing, charged: bool, limit: u64) {
        let fault = Fault::describe(
            Condition::MESSAGE_SIZE_EXCEEDED,
            format!("the receiver takes no message larger than {limit} bytes"),
        );
        let state = DeliveryState::Rejected(Rejected { error: Some(fault.error()) });
        self.not_sent(target, outgoing, charged, &state);
    }

    /// Tells a delivery's sender that it wasn't sent on a link (any more), and why; a settled one is counted
    /// as dropped.
    fn not_sent(&mut self, target: LinkKey, outgoing: &Outgoing, charged: bool, state: &DeliveryState<'_>) {
        let source = outgoing.source;
        if source.settled {
            self.count_drop(&source, Some(target));
            if charged {
                self.close_charge(target, outgoing);
            }
            return;
        }
        match outgoing.fan_out {
            Some(fan_out) => self.copy_outcome(fan_out, target, Some(state), true),
            None => self.settle_source(&source, Some(state)),
        }
    }

    /// Copies payload that must stay for now, at the charge of the session that it came on.
    fn hold(&mut self, source: &Source, payload: &[u8]) -> Rc<Payload> {
        let (connection, channel) = (source.delivery.connection, source.delivery.link.channel);
        if let Some(slot) = self.connections.get_mut(connection) {
            slot.engine.hold(channel, payload.len() + PIECE_OVERHEAD_BYTES);
        }
        Rc::new(Payload { bytes: payload.to_vec(), connection, channel })
    }

    /// The same, but what several copies of a delivery wait with is held once for all of them.
    fn hold_for(&mut self, outgoing: &Outgoing, payload: &[u8]) -> Rc<Payload> {
        let Some(fan_out) = outgoing.fan_out else { return self.hold(&outgoing.source, payload) };
        let held = self.fan_outs.get(fan_out).and_then(|fan_out| fan_out.held.clone());
        // A copy whose annotations were stripped is shorter than one with them.
        if let Some(held) = held.filter(|held| held.bytes.len() == payload.len()) {
            return held;
        }
        let held = self.hold(&outgoing.source, payload);
        let before = self.fan_outs.get_mut(fan_out).and_then(|fan_out| fan_out.held.replace(held.clone()));
        self.let_payload_go(before);
        held
    }

    /// Forgets what the copies of a delivery share, once each has been given its part.
    pub(super) fn end_sharing(&mut self, fan_out: FanOutKey) {
        let held = self.fan_outs.get_mut(fan_out).and_then(|fan_out| fan_out.held.take());
        self.let_payload_go(held);
    }

    /// Lets payload go; with its last copy the session that was charged for it has room again.
    fn let_payload_go(&mut self, payload: Option<Rc<Payload>>) {
        if let Some(payload) = payload.and_then(Rc::into_inner)
            && let Some(slot) = self.connections.get_mut(payload.connection)
        {
            slot.engine.release(payload.channel, payload.charge());
            self.mark_dirty(payload.connection);
        }
    }

    fn let_all_go(&mut self, item: &mut Item) {
        for piece in std::mem::take(&mut item.pieces) {
            self.let_payload_go(Some(piece.payload));
        }
    }

    fn enqueue(&mut self, target: LinkKey, sequence: u64, outgoing: Outgoing, payload: &[u8], more: bool) {
        let piece = Piece { payload: self.hold_for(&outgoing, payload), gone: 0 };
        let item = Item {
            sequence,
            outgoing,
            pieces: VecDeque::from([piece]),
            bytes: payload.len() as u64,
            complete: !more,
            aborted: false,
            charged: true,
        };
        if outgoing.fan_out.is_none() {
            self.set_peer(&outgoing.source, Peer::Queued(target, sequence));
        }
        let now = self.now;
        let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) else { return };
        if egress.waiting == 0 && egress.active.is_none() {
            egress.progress = now;
        }
        egress.push(item);
        let watch = egress.waiting_settled > 0 && !egress.watched;
        egress.watched |= watch;
        let congested = egress.congested;
        if watch {
            self.watch_stall(target, now);
        }
        if congested {
            self.relieve(target);
        }
        self.block(target);
    }

    /// Puts a link into its connection's list of those that wait, unless it only lacks its receiver's
    /// credit.
    fn block(&mut self, key: LinkKey) {
        let Some(link) = self.links.get_mut(key) else { return };
        let (connection, link_ref) = (link.connection, link.link);
        let Some(slot) = self.connections.get_mut(connection) else { return };
        let Some(egress) = link.egress_mut() else { return };
        let can_begin = slot.engine.has_credit(link_ref);
        if (egress.active.is_some() || can_begin) && !egress.blocked {
            egress.blocked = true;
            slot.blocked.push(key);
        }
    }

    /// Lets the links of a connection go on that waited for its output or for a window.
    pub(super) fn unblock(&mut self, connection: ConnectionKey) {
        let Some(slot) = self.connections.get_mut(connection) else { return };
        for key in std::mem::take(&mut slot.blocked) {
            if let Some(egress) = self.links.get_mut(key).and_then(RouterLink::egress_mut) {
                egress.blocked = false;
                self.pump(key);
            }
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

    /// Sends what waits on a link, as far as credit, window and output allow.
    pub(super) fn pump(&mut self, key: LinkKey) {
        loop {
            let pumped = self.pump_items(key);
            let Some(link) = self.links.get(key) else { return };
            let Some(egress) = link.egress() else { return };
            let available = egress.available();
            let (connection, link_ref) = (link.connection, link.link);
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
        loop {
            let Some(link) = self.links.get_mut(key) else { return Pumped::Dry };
            let (connection, link_ref) = (link.connection, link.link);
            let Some(egress) = link.egress_mut() else { return Pumped::Dry };
            if let Some(active) = egress.active.take() {
                match self.pump_active(key, active) {
                    Some(active) => {
                        let waits_for_sender = active.item.pieces.is_empty() && !active.item.aborted;
                        if let Some(egress) = self.links.get_mut(key).and_then(RouterLink::egress_mut) {
                            egress.active = Some(active);
                        }
                        return if waits_for_sender { Pumped::Dry } else { Pumped::Blocked };
                    }
                    None => continue,
                }
            }
            if egress.waiting == 0 {
                return Pumped::Dry;
            }
            let Some(slot) = self.connections.get_mut(connection) else { return Pumped::Dry };
            if slot.out.pending() >= OUTPUT_BACKLOG_MAX {
                return Pumped::Blocked;
            }
            let Some(credit) = slot.engine.take_credit(link_ref) else {
                return if slot.engine.has_credit(link_ref) { Pumped::Blocked } else { Pumped::Dry };
            };
            let Some(item) = egress.pop() else { return Pumped::Dry };
            let Some((delivery_id, unsettled)) = self.begin(key, &item.outgoing, credit) else {
                return Pumped::Dry;
            };
            if let Some(egress) = self.links.get_mut(key).and_then(RouterLink::egress_mut) {
                egress.active = Some(Active { item, delivery_id, unsettled });
            }
        }
    }

    /// Sends the delivery under way. Returns it if it isn't through.
    fn pump_active(&mut self, key: LinkKey, mut active: Active) -> Option<Active> {
        let link = self.links.get(key)?;
        let (connection, link_ref) = (link.connection, link.link);
        if active.item.aborted {
            self.let_all_go(&mut active.item);
            let slot = self.connections.get_mut(connection)?;
            if !slot.engine.abort_delivery(link_ref, &mut slot.out) {
                return Some(active);
            }
            self.mark_dirty(connection);
            if active.unsettled {
                self.count_settled(key, active.delivery_id);
            }
            return None;
        }
        loop {
            let slot = self.connections.get_mut(connection)?;
            if slot.out.pending() >= OUTPUT_BACKLOG_MAX && !active.item.pieces.is_empty() {
                return Some(active);
            }
            let last = active.item.pieces.len() <= 1;
            let more = !(active.item.complete && last);
            let rest = active.item.pieces.front().map_or(&[][..], |piece| &piece.payload.bytes[piece.gone..]);
            if rest.is_empty() && more && active.item.pieces.is_empty() {
                return Some(active);
            }
            let sent = slot.engine.send_payload(link_ref, rest, more, &mut slot.out);
            self.mark_dirty(connection);
            if !sent.complete {
                if let Some(piece) = active.item.pieces.front_mut() {
                    piece.gone += sent.consumed;
                }
                return Some(active);
            }
            if let Some(piece) = active.item.pieces.pop_front() {
                self.let_payload_go(Some(piece.payload));
            }
            if !more {
                self.gone(key, &active.item.outgoing, active.item.charged);
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
        let (connection, link_ref) = (link.connection, link.link);
        let Some(egress) = link.egress_mut() else { return false };
        let is_active = egress.active.as_ref().is_some_and(|active| active.item.sequence == sequence);
        let Some(item) = egress.item_mut(sequence).filter(|item| !item.aborted) else { return false };
        item.bytes += payload.len() as u64;
        item.complete = !more;
        let (outgoing, charged, bytes) = (item.outgoing, item.charged, item.bytes);
        let next_in_line = is_active && item.pieces.is_empty();
        let Some(slot) = self.connections.get_mut(connection) else { return false };
        let limit = slot.engine.link(link_ref).map_or(0, |link| link.max_message_size);
        if limit != 0 && bytes > limit {
            self.refuse_oversize(target, &outgoing, charged, limit);
            self.abort(target, sequence);
            return false;
        }
        let mut gone = 0;
        if next_in_line && slot.out.pending() < OUTPUT_BACKLOG_MAX {
            let sent = slot.engine.send_payload(link_ref, payload, more, &mut slot.out);
            gone = sent.consumed;
            self.mark_dirty(connection);
            if sent.complete {
                if !more {
                    if let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) {
                        egress.active = None;
                    }
                    self.gone(target, &outgoing, charged);
                    self.pump(target);
                }
                return true;
            }
        }
        let piece = Piece { payload: self.hold_for(&outgoing, payload), gone };
        let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) else { return false };
        let held = piece.payload.charge();
        if let Some(item) = egress.item_mut(sequence) {
            item.pieces.push_back(piece);
        }
        if is_active {
            self.block(target);
        } else if outgoing.source.settled {
            egress.waiting_settled_bytes += held;
            if egress.congested {
                self.relieve(target);
            }
            // Relief may have dropped this very delivery.
            let egress = self.links.get_mut(target).and_then(RouterLink::egress_mut);
            return egress.is_some_and(|egress| egress.find(sequence).is_some());
        }
        true
    }

    /// Gives up a delivery that was begun with `send` and hasn't come whole.
    pub(super) fn abort(&mut self, target: LinkKey, sequence: u64) {
        let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) else { return };
        if let Some(active) = egress.active.as_mut().filter(|active| active.item.sequence == sequence) {
            active.item.aborted = true;
            self.pump(target);
        } else if let Some(mut item) = egress.take(sequence) {
            self.let_all_go(&mut item);
        }
    }

    /// Cuts short a delivery whose receiver has settled it before all of it has gone.
    pub(super) fn cut_short(&mut self, target: LinkKey, delivery_id: Serial) {
        let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) else { return };
        let Some(active) = egress.active.as_mut().filter(|active| active.delivery_id == delivery_id) else {
            return;
        };
        active.item.aborted = true;
        let outgoing = active.item.outgoing;
        let charged = std::mem::take(&mut active.item.charged);
        if outgoing.source.settled && charged {
            // Its sender hears nothing of it, so nothing else counts it out.
            self.close_charge(target, &outgoing);
        }
        self.stop_streaming(&outgoing.source, target);
        self.pump(target);
    }

    /// Counts out a delivery that its receiver (or its sender) has settled.
    #[inline]
    pub(super) fn count_settled(&mut self, target: LinkKey, delivery_id: Serial) {
        if let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) {
            egress.unsettled = egress.unsettled.saturating_sub(1);
            if let Some(active) = egress.active.as_mut().filter(|active| active.delivery_id == delivery_id) {
                active.unsettled = false;
            }
        }
    }

    /// The sender of a delivery that waits, or is under way, has settled it or is gone: it goes on as a
    /// settled one.
    pub(super) fn settle_item(&mut self, target: LinkKey, sequence: u64) {
        let now = self.now;
        let Some(egress) = self.links.get_mut(target).and_then(RouterLink::egress_mut) else { return };
        if let Some(active) = egress.active.as_mut().filter(|active| active.item.sequence == sequence) {
            if !std::mem::replace(&mut active.item.outgoing.source.settled, true) {
                let delivery_id = active.delivery_id;
                self.forget_sender_of(target, delivery_id);
            }
            return;
        }
        let Some(item) = egress.find(sequence) else { return };
        if std::mem::replace(&mut item.outgoing.source.settled, true) {
            return;
        }
        let held = item.held();
        egress.waiting_settled += 1;
        egress.waiting_settled_bytes += held;
        if !std::mem::replace(&mut egress.watched, true) {
            self.watch_stall(target, now);
        }
    }

    /// The same for the copy of a delivery that waits on a link.
    pub(super) fn settle_copy_waiting(&mut self, target: LinkKey, fan_out: FanOutKey) {
        let sequence = self.links.get(target).and_then(RouterLink::egress).and_then(|egress| {
            let mut items = egress.lanes.iter().flat_map(|(_, lane)| lane);
            items.find(|item| item.outgoing.fan_out == Some(fan_out)).map(|item| item.sequence)
        });
        if let Some(sequence) = sequence {
            self.settle_item(target, sequence);
        }
    }

    /// The sender of a delivery under way has settled it: what its receiver says of it concerns us alone.
    fn forget_sender_of(&mut self, target: LinkKey, delivery_id: Serial) {
        let Some(link) = self.links.get(target) else { return };
        if let Some(slot) = self.connections.get_mut(link.connection)
            && let Some(peer) = slot.engine.outgoing_mut(link.link.channel, delivery_id)
        {
            *peer = Peer::None;
        }
    }

    /// The sender of a delivery has settled it or is gone. If some of it is still to go, it goes on as a
    /// settled one, which tells true.
    pub(super) fn settle_under_way(&mut self, target: LinkKey, delivery_id: Serial) -> bool {
        let active = self
            .links
            .get_mut(target)
            .and_then(RouterLink::egress_mut)
            .and_then(|egress| egress.active.as_mut().filter(|active| active.delivery_id == delivery_id));
        match active {
            Some(active) => {
                active.item.outgoing.source.settled = true;
                true
            }
            None => false,
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
            egress.watched = false;
            if egress.waiting_settled == 0 {
                continue;
            }
            egress.watched = true;
            let progress = egress.progress;
            if progress + CONGESTION_AFTER <= now {
                egress.congested = true;
                self.watch_stall(key, now);
                self.relieve(key);
            } else {
                self.watch_stall(key, progress);
            }
        }
    }

    /// On a congested link: gives senders back the credit of settled deliveries that wait, and drops the
    /// oldest of them beyond the link's capacity.
    fn relieve(&mut self, key: LinkKey) {
        let Some(link) = self.links.get_mut(key) else { return };
        let capacity = link.capacity;
        let Some(egress) = link.egress_mut() else { return };
        let mut dropped = Vec::new();
        while egress.waiting_settled > capacity || egress.waiting_settled_bytes > CONGESTED_BYTES_MAX {
            let Some(item) = egress.take_oldest_settled() else { break };
            dropped.push(item);
        }
        let mut returned = Vec::new();
        for (_, lane) in &mut egress.lanes {
            for item in lane.iter_mut().rev() {
                if item.outgoing.source.settled {
                    if !item.charged {
                        // Those before it were seen to already.
                        break;
                    }
                    if item.complete {
                        item.charged = false;
                        returned.push(item.outgoing);
                    }
                }
            }
        }
        for outgoing in returned {
            self.close_charge(key, &outgoing);
        }
        for mut item in dropped {
            self.let_all_go(&mut item);
            let source = item.outgoing.source;
            self.count_drop(&source, Some(key));
            if item.charged {
                self.close_charge(key, &item.outgoing);
            }
            if !item.complete {
                self.stop_streaming(&source, key);
            }
        }
    }

    fn close_charge(&mut self, target: LinkKey, outgoing: &Outgoing) {
        match outgoing.fan_out {
            Some(fan_out) => self.copy_closed(fan_out, target),
            None => self.delivery_closed(outgoing.source.delivery.key),
        }
    }

    /// Deals with what a lost receiver leaves behind: what waited is released, what it had not settled is
    /// modified (router-protocol reference §8.5).
    pub(super) fn receiver_lost(&mut self, link: &mut RouterLink, key: LinkKey, mut egress: Egress) {
        if let Some(mut active) = egress.active.take() {
            self.let_all_go(&mut active.item);
            let outgoing = active.item.outgoing;
            self.stop_streaming(&outgoing.source, key);
            if outgoing.source.settled {
                link.counters.dropped_presettled += 1;
            }
            // If its receiver was to settle it, it is among the unsettled ones below.
            if outgoing.source.settled || !active.unsettled {
                self.not_sent(key, &outgoing, active.item.charged, &failed());
            }
        }
        while let Some(mut item) = egress.pop() {
            self.let_all_go(&mut item);
            if !item.complete {
                self.stop_streaming(&item.outgoing.source, key);
            }
            if item.outgoing.source.settled {
                link.counters.dropped_presettled += 1;
            }
            self.not_sent(key, &item.outgoing, item.charged, &DeliveryState::Released);
        }
        let Some(slot) = self.connections.get_mut(link.connection) else { return };
        for (_, peer) in slot.engine.take_outgoing_of(link.link) {
            match peer {
                Peer::None | Peer::Queued(..) => {}
                Peer::Delivery(source) => {
                    link.counters.modified += 1;
                    self.settle_delivery(&source, Some(&failed()), true);
                }
                Peer::FanOut(fan_out) => {
                    link.counters.modified += 1;
                    self.copy_outcome(fan_out, key, Some(&failed()), true);
                }
            }
        }
    }
}

/// The outcome of what a lost receiver had been sent.
pub(super) fn failed() -> DeliveryState<'static> {
    DeliveryState::Modified(ringmain_codec::Modified {
        delivery_failed: Some(true),
        undeliverable_here: None,
        message_annotations: None,
    })
}
