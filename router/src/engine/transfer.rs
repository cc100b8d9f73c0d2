//! Transfers and dispositions (AMQP 1.0 §2.6.12 to 2.7.6), in both directions.
//!
//! # Cost
//! Each frame costs two index look-ups (channel, handle), one entry of the session's map of unsettled
//! deliveries, and, when sending, one copy of the payload. Nothing is allocated but the growth of those.

use super::connection::Connection;
use super::delivery::{Disposed, DisposedDelivery, NewDelivery, PendingDisposition, Sent, Unsettled};
use super::event::{Arrived, LinkRef};
use super::link::{Credit, Link, LinkState, Sending};
use super::session::Session;
use super::violation::Violation;
use super::write;
use crate::base::buffer::Output;
use crate::base::id::{Channel, Handle, Serial};
use ringmain_codec::{
    Condition, DeliveryState, Disposition, Modified, ReceiverSettleMode, Rejected, Role, Transfer,
};
use std::collections::HashMap;

impl<D: Copy + Default> Connection<D> {
    #[inline]
    pub(super) fn recv_transfer<'b>(
        &mut self,
        remote: u16,
        transfer: &Transfer<'b>,
        payload: &'b [u8],
    ) -> Result<Option<Arrived<'b>>, Violation> {
        let Some(channel) = self.mapped(remote, "transfer")? else { return Ok(None) };
        let Some(session) = self.sessions.get_mut(usize::from(channel.0)).and_then(Option::as_deref_mut)
        else {
            return Ok(None);
        };
        if !session.flow.recv_transfer() {
            return Err(Violation::session(
                channel,
                Condition::WINDOW_VIOLATION,
                "a transfer came though the incoming-window is used up",
            ));
        }
        if session.flow.wants_refresh() {
            session.mark_dirty(channel, &mut self.dirty);
        }
        let handle = session.handle_of(channel, transfer.handle, "transfer")?;
        let link_ref = LinkRef { channel, handle };
        let Some(link) = session.link_mut(handle) else { return Ok(None) };
        if link.role == Role::Sender {
            return Err(Violation::session(
                channel,
                Condition::NOT_ALLOWED,
                format!("a transfer came on link '{}', whose sender we are", link.name),
            ));
        }
        let user = link.user;
        if link.state == LinkState::DetachSent {
            // The peer doesn't know of our detach yet: what it still sends is passed over (§2.6.4). Its
            // numbering goes on all the same.
            session.pass_over_delivery_id(transfer);
            return Ok(None);
        }
        let first = link.receiving.is_none();
        if first {
            session.recv_delivery_id(channel, transfer)?;
        }
        // From here on the delivery's number is taken, whatever becomes of it.
        let Some((link, incoming)) = session.receiver_mut(handle) else { return Ok(None) };
        let receiving = match link.recv_transfer(link_ref, transfer, payload.len()) {
            Ok(receiving) => receiving,
            Err(violation) => {
                if first {
                    incoming.skip();
                }
                return Err(violation);
            }
        };
        let settled = receiving.settled || transfer.aborted;
        match (first, settled) {
            (true, true) => incoming.skip(),
            (true, false) => {
                link.unsettled += 1;
                let rcv_settle_mode = receiving.rcv_settle_mode;
                incoming.push(Unsettled {
                    handle,
                    data: D::default(),
                    terminal: false,
                    rcv_settle_mode,
                    stamp: 0,
                });
            }
            (false, true) => {
                // Its entry is needed until the delivery's user has seen this frame.
                if transfer.aborted || !transfer.more {
                    session.remove_incoming(receiving.delivery_id);
                }
            }
            (false, false) => {}
        }
        Ok(Some(Arrived {
            link: link_ref,
            user,
            delivery_id: receiving.delivery_id,
            first,
            more: transfer.more && !transfer.aborted,
            settled: receiving.settled,
            aborted: transfer.aborted,
            message_format: receiving.message_format,
            payload,
        }))
    }

    /// When we, as receiver, settle an unsettled delivery that came.
    #[must_use]
    pub fn incoming_settle_mode(&self, channel: Channel, delivery_id: Serial) -> Option<ReceiverSettleMode> {
        self.session(channel)?.incoming.get(delivery_id).map(|unsettled| unsettled.rcv_settle_mode)
    }

    /// What is kept with an unsettled delivery that came.
    #[inline]
    pub fn incoming_mut(&mut self, channel: Channel, delivery_id: Serial) -> Option<&mut D> {
        self.session_mut(channel)?.incoming.get_mut(delivery_id).map(|unsettled| &mut unsettled.data)
    }

    /// What is kept with an unsettled delivery that went.
    #[inline]
    pub fn outgoing_mut(&mut self, channel: Channel, delivery_id: Serial) -> Option<&mut D> {
        self.session_mut(channel)?.outgoing.get_mut(delivery_id).map(|unsettled| &mut unsettled.data)
    }

    /// How many unsettled deliveries that went on a link have a stamp that `is_old`. Of the session's, in the order
    /// in which they were begun, those are looked at that come before the first that isn't.
    #[must_use]
    pub fn count_outgoing(&self, link: LinkRef, is_old: impl Fn(u16) -> bool) -> usize {
        let all = self.session(link.channel).into_iter().flat_map(|session| session.outgoing.iter());
        let old = all.take_while(|(_, unsettled)| is_old(unsettled.stamp));
        old.filter(|(_, unsettled)| unsettled.handle == link.handle).count()
    }

    /// As receiver: puts up with so many deliveries beyond the credit, each time that it is used up. That is for
    /// senders that are known to miscount; the session's window still holds for them.
    pub fn allow_overdraft(&mut self, link: LinkRef, deliveries: u32) {
        if let Some(link) = self.link_mut(link) {
            link.overdraft = deliveries;
        }
    }

    /// As receiver: sets the credit that the sender has from now on, and tells it.
    pub fn send_credit(&mut self, link: LinkRef, credit: u32, drain: bool, out: &mut Output) {
        if let Some(link) = self.link_mut(link) {
            link.promise(credit);
            link.drain = drain;
        }
        self.write_link_flow(link, 0, out);
    }

    /// As sender: answers the peer's flow, if it asked for an answer or for the end of its drain.
    ///
    /// `available` is what waits to be sent. A drain is answered, by giving up the credit that is left,
    /// only when nothing waits that could still use it and no delivery is half sent. Returns whether there is
    /// credit again, which the receiver had granted behind the drain.
    pub fn answer_flow(&mut self, link: LinkRef, available: u32, out: &mut Output) -> bool {
        let Some(state) = self.link_mut(link) else { return false };
        let drained = state.drain && state.sending.is_none() && (available == 0 || state.credit == 0);
        if drained {
            state.give_up_credit();
        }
        if drained || state.echo {
            state.echo = false;
            self.write_link_flow(link, available, out);
        }
        drained && self.link_mut(link).is_some_and(Link::end_drain)
    }

    /// As sender: takes the right to send one delivery, if the link has credit and no delivery under way,
    /// and the session's window is open.
    #[inline]
    pub fn take_credit(&mut self, link: LinkRef) -> Option<Credit> {
        self.writable_mut(link.channel)?.take_credit(link.handle)
    }

    /// Sends a delivery, or what has come of it: as `take_credit`, `begin_delivery` and `send_payload` do one after
    /// the other. `None`: nothing has gone, since the link has no credit or has a delivery under way, or the
    /// session's window is closed.
    #[inline]
    pub fn send_delivery(
        &mut self,
        link: LinkRef,
        delivery: NewDelivery<D>,
        payload: &[u8],
        more: bool,
        out: &mut Output,
    ) -> Option<(Serial, Sent)> {
        let frame_max = self.peer.max_frame_size;
        let session = self.writable_mut(link.channel)?;
        let credit = session.take_credit(link.handle)?;
        let mut sending = session.begin_delivery(link.handle, credit, delivery)?;
        let sent = session.send_frames(link, &mut sending, frame_max, payload, more, out);
        if more || !sent.complete {
            session.link_mut(link.handle)?.sending = Some(sending);
        }
        Some((sending.delivery_id, sent))
    }

    /// Whether the link may begin a delivery as far as its receiver is concerned.
    #[inline]
    #[must_use]
    pub fn has_credit(&self, link: LinkRef) -> bool {
        self.link(link).is_some_and(|link| link.credit > 0)
    }

    /// Begins a delivery, whose number is returned. Its payload follows with `send_payload`.
    #[inline]
    pub fn begin_delivery(
        &mut self,
        link: LinkRef,
        credit: Credit,
        delivery: NewDelivery<D>,
    ) -> Option<Serial> {
        let session = self.session_mut(link.channel)?;
        let sending = session.begin_delivery(link.handle, credit, delivery)?;
        session.link_mut(link.handle)?.sending = Some(sending);
        Some(sending.delivery_id)
    }

    /// Sends as much of `payload` as the session's window allows, `more` saying that further payload of
    /// the delivery under way will come.
    pub fn send_payload(&mut self, link: LinkRef, payload: &[u8], more: bool, out: &mut Output) -> Sent {
        let frame_max = self.peer.max_frame_size;
        let nothing = Sent { consumed: 0, complete: false };
        let Some(session) = self.writable_mut(link.channel) else { return nothing };
        let sending = session.link_mut(link.handle).and_then(|state| state.sending.take());
        let Some(mut sending) = sending else { return nothing };
        let sent = session.send_frames(link, &mut sending, frame_max, payload, more, out);
        if (more || !sent.complete)
            && let Some(state) = session.link_mut(link.handle)
        {
            state.sending = Some(sending);
        }
        sent
    }

    /// Gives the delivery under way up. If some of it has gone, the peer is told to forget it. Returns
    /// whether the frame for that has gone (or none was due); it needs the session's window like any other.
    pub fn abort_delivery(&mut self, link: LinkRef, out: &mut Output) -> bool {
        let frame_max = self.peer.max_frame_size;
        let Some(session) = self.writable_mut(link.channel) else { return true };
        let window_open = session.flow.remote_incoming_window > 0;
        let Some(state) = session.link_mut(link.handle) else { return true };
        let Some(sending) = state.sending else { return true };
        if !window_open {
            session.window_wanted = true;
            return false;
        }
        let transfer = Transfer { aborted: true, ..frame(link, &sending, false) };
        write::transfer(out, link.channel.0, frame_max, &transfer, &[]);
        state.sending = None;
        session.flow.send_transfer();
        session.outgoing.remove(sending.delivery_id);
        true
    }

    /// Tells the sender of a delivery its state, and settles it, or (where the link's receiver settles
    /// second, §2.7.3) leaves that to the sender. Returns whether it is settled now. States that are the same
    /// are put together in ranges and go with the next flush.
    pub fn dispose_incoming(
        &mut self,
        link: LinkRef,
        delivery_id: Serial,
        settled: bool,
        state: Option<&DeliveryState<'_>>,
        out: &mut Output,
    ) -> bool {
        self.dispose_incoming_hinting(link, delivery_id, settled, false, state, out)
    }

    /// The same with the disposition's hint `batchable`.
    pub fn dispose_incoming_hinting(
        &mut self,
        link: LinkRef,
        delivery_id: Serial,
        settled: bool,
        batchable: bool,
        state: Option<&DeliveryState<'_>>,
        out: &mut Output,
    ) -> bool {
        let Some(session) = self.session_mut(link.channel) else { return false };
        let Some(unsettled) = session.incoming.get(delivery_id) else { return false };
        let second = unsettled.rcv_settle_mode == ReceiverSettleMode::Second;
        let settled = settled && !(second && state.is_some());
        if settled {
            session.remove_incoming(delivery_id);
        }
        self.dispose(link.channel, Role::Receiver, (delivery_id, settled, batchable), state, out);
        settled
    }

    /// Tells the receiver of a delivery the sender's state for it, and settles it if `settled`.
    pub fn dispose_outgoing(
        &mut self,
        channel: Channel,
        delivery_id: Serial,
        settled: bool,
        state: Option<&DeliveryState<'_>>,
        out: &mut Output,
    ) {
        let Some(session) = self.session_mut(channel) else { return };
        let known = if settled {
            session.outgoing.remove(delivery_id).is_some()
        } else {
            session.outgoing.get(delivery_id).is_some()
        };
        if known {
            self.dispose(channel, Role::Sender, (delivery_id, settled, false), state, out);
        }
    }

    fn dispose(
        &mut self,
        channel: Channel,
        role: Role,
        (delivery_id, settled, batchable): (Serial, bool, bool),
        state: Option<&DeliveryState<'_>>,
        out: &mut Output,
    ) {
        let frame_max = self.peer.max_frame_size;
        let Some(session) = self.writable_mut(channel) else { return };
        let slot = match role {
            Role::Receiver => &mut session.pending_as_receiver,
            Role::Sender => &mut session.pending_as_sender,
        };
        // The usual case. What is pending is in the list to be flushed already.
        if let Some(pending) = slot
            && pending.extend_by(delivery_id, settled, batchable, state)
        {
            return;
        }
        let next = PendingDisposition::new(delivery_id, settled, batchable, state);
        let extended = match (&mut *slot, &next) {
            (Some(pending), Some(next)) => pending.extend(next),
            (Some(_) | None, Some(_) | None) => false,
        };
        if !extended && let Some(before) = std::mem::replace(slot, next.clone()) {
            write::amqp(out, channel.0, frame_max, &before.disposition(role))
                .expect("a short disposition fits the smallest frame");
        }
        if next.is_some() {
            self.mark_dirty(channel);
            return;
        }
        let disposition =
            Disposition { role, first: delivery_id.0, last: None, settled, state: state.copied(), batchable };
        // Data that are too large for the peer's largest frame are left out, so that the outcome gets there.
        for shorter in [state.copied(), state.map(without_data), state.and_then(kind_only)] {
            if write::amqp(out, channel.0, frame_max, &Disposition { state: shorter, ..disposition }).is_ok()
            {
                return;
            }
        }
    }

    #[inline]
    pub(super) fn recv_disposition<'b>(
        &mut self,
        remote: u16,
        disposition: &Disposition<'b>,
    ) -> Result<Option<Disposed<'b>>, Violation> {
        let Some(channel) = self.mapped(remote, "disposition")? else { return Ok(None) };
        if !disposition.settled && disposition.state.is_none() {
            // It says nothing.
            return Ok(None);
        }
        let first = Serial(disposition.first);
        Ok(Some(Disposed {
            channel,
            role: disposition.role,
            settled: disposition.settled,
            batchable: disposition.batchable,
            state: disposition.state,
            next: Some(first),
            last: disposition.last.map_or(first, Serial),
        }))
    }

    /// The next delivery that a disposition is about. Settled ones are forgotten by this. Deliveries that
    /// aren't known (any more) are passed over.
    #[inline]
    pub fn next_disposed(&mut self, disposed: &mut Disposed<'_>) -> Option<DisposedDelivery<D>> {
        let from = disposed.next?;
        let session = self.session_mut(disposed.channel)?;
        let map = match disposed.role {
            Role::Receiver => &mut session.outgoing,
            Role::Sender => &mut session.incoming,
        };
        let Some(delivery_id) = map.first_within(from, disposed.last) else {
            disposed.next = None;
            return None;
        };
        disposed.next = (delivery_id != disposed.last).then(|| delivery_id.next());
        let (handle, data, was_terminal, stamp) = if disposed.settled {
            let entry = map.remove(delivery_id)?;
            (entry.handle, entry.data, entry.terminal, entry.stamp)
        } else {
            let entry = map.get_mut(delivery_id)?;
            let was_terminal = entry.terminal;
            entry.terminal |= disposed.state.as_ref().is_some_and(DeliveryState::is_terminal);
            (entry.handle, entry.data, was_terminal, entry.stamp)
        };
        let link = session.link_mut(handle);
        let user = link.as_ref().and_then(|link| link.user);
        if let Some(link) = link.filter(|_| disposed.settled && disposed.role == Role::Sender) {
            link.unsettled -= 1;
            if let Some(receiving) =
                link.receiving.as_mut().filter(|under_way| under_way.delivery_id == delivery_id)
            {
                receiving.settled = true;
            }
        }
        let link = LinkRef { channel: disposed.channel, handle };
        Some(DisposedDelivery { link, user, delivery_id, data, was_terminal, stamp })
    }

    /// Takes all unsettled deliveries of a session out, by their links: the session is gone. Those that went
    /// on a link are those of a link on which we send.
    pub fn take_all_unsettled(&mut self, channel: Channel) -> HashMap<Handle, Vec<(Serial, Unsettled<D>)>> {
        let mut all: HashMap<Handle, Vec<(Serial, Unsettled<D>)>> = HashMap::new();
        if let Some(session) = self.session_mut(channel) {
            for map in [&mut session.outgoing, &mut session.incoming] {
                let ids: Vec<Serial> = map.iter().map(|(id, _)| id).collect();
                for id in ids {
                    if let Some(unsettled) = map.remove(id) {
                        all.entry(unsettled.handle).or_default().push((id, unsettled));
                    }
                }
            }
        }
        all
    }

    /// Takes the unsettled deliveries of a link out: it is gone.
    pub fn take_unsettled_of(&mut self, link: LinkRef) -> Vec<(Serial, Unsettled<D>)> {
        self.session_mut(link.channel).map_or_else(Vec::new, |session| session.take_unsettled(link))
    }
}

impl<D> Session<D> {
    /// As sender: takes the right to send one delivery on a link.
    #[inline]
    fn take_credit(&mut self, handle: Handle) -> Option<Credit> {
        if self.flow.remote_incoming_window == 0 {
            self.window_wanted = true;
            return None;
        }
        let link = self.link_mut(handle)?;
        if link.sending.is_some() || link.state != LinkState::Attached {
            return None;
        }
        link.take_credit()
    }

    /// Gives a delivery its number. What it returns is kept with the link while the delivery is under way.
    #[inline]
    fn begin_delivery(
        &mut self,
        handle: Handle,
        credit: Credit,
        delivery: NewDelivery<D>,
    ) -> Option<Sending> {
        let _spent = credit;
        let rcv_settle_mode = self.link(handle)?.rcv_settle_mode;
        let NewDelivery { message_format, settled, tag, data, stamp } = delivery;
        let delivery_id = self.outgoing.next();
        if settled {
            self.outgoing.skip();
        } else {
            self.outgoing.push(Unsettled { handle, data, terminal: false, rcv_settle_mode, stamp });
        }
        Some(Sending { delivery_id, settled, started: false, message_format, tag })
    }

    /// Sends as much of a delivery's `payload` as the window allows, `more` saying that further payload will come.
    #[inline]
    fn send_frames(
        &mut self,
        link: LinkRef,
        sending: &mut Sending,
        frame_max: u32,
        mut payload: &[u8],
        more: bool,
        out: &mut Output,
    ) -> Sent {
        let mut consumed = 0;
        loop {
            if self.flow.remote_incoming_window == 0 {
                self.window_wanted = true;
                return Sent { consumed, complete: false };
            }
            // The first frame goes even if it is empty: deliveries must come in the order of their numbers,
            // and another link may begin one before there is more of this.
            if payload.is_empty() && more && sending.started {
                return Sent { consumed, complete: true };
            }
            let gone = write::transfer(out, link.channel.0, frame_max, &frame(link, sending, more), payload);
            sending.started = true;
            self.flow.send_transfer();
            consumed += gone;
            payload = &payload[gone..];
            if payload.is_empty() {
                return Sent { consumed, complete: true };
            }
        }
    }
}

/// The performative for the next frame of a delivery; frames after the first leave out what is known (§2.7.5).
#[inline]
fn frame(link: LinkRef, sending: &Sending, more: bool) -> Transfer<'_> {
    if sending.started {
        return Transfer { handle: link.handle.0, more, ..Transfer::default() };
    }
    Transfer {
        handle: link.handle.0,
        delivery_id: Some(sending.delivery_id.0),
        delivery_tag: Some(&sending.tag),
        message_format: Some(sending.message_format),
        settled: sending.settled.then_some(true),
        more,
        ..Transfer::default()
    }
}

/// A state of the same kind without what may be long.
fn without_data<'a>(state: &DeliveryState<'a>) -> DeliveryState<'a> {
    match state {
        DeliveryState::Rejected(rejected) => DeliveryState::Rejected(Rejected {
            error: rejected.error.map(|error| ringmain_codec::Error {
                description: None,
                info: None,
                ..error
            }),
        }),
        DeliveryState::Modified(modified) => {
            DeliveryState::Modified(Modified { message_annotations: None, ..*modified })
        }
        DeliveryState::Received(_)
        | DeliveryState::Accepted
        | DeliveryState::Released
        | DeliveryState::Declared(_)
        | DeliveryState::Transactional(_)
        | DeliveryState::Other(_) => *state,
    }
}

/// What is left of a state whose data can't be told at all.
fn kind_only<'a>(state: &DeliveryState<'a>) -> Option<DeliveryState<'a>> {
    match state {
        DeliveryState::Rejected(_) => Some(DeliveryState::Rejected(Rejected { error: None })),
        DeliveryState::Modified(_) => Some(without_data(state)),
        DeliveryState::Accepted | DeliveryState::Released | DeliveryState::Received(_) => Some(*state),
        DeliveryState::Declared(_) | DeliveryState::Transactional(_) | DeliveryState::Other(_) => None,
    }
}
