//! Sessions (AMQP 1.0 §2.5): channels, handles, the deliveries that aren't settled.

use super::connection::Connection;
use super::delivery::{PendingDisposition, Unsettled};
use super::event::{Cause, Event, LinkRef};
use super::flow::{OUTGOING_WINDOW, SessionFlow};
use super::link::{Link, LinkState};
use super::violation::{Fault, Violation};
use super::write;
use crate::base::buffer::Output;
use crate::base::id::{Channel, Handle, Serial};
use crate::base::limits::LINKS_PER_SESSION_MAX;
use crate::base::serial_map::SerialMap;
use crate::base::sparse::SparseMap;
use ringmain_codec::{Begin, Condition, End, Flow, Role, Transfer};
use smallvec::SmallVec;
use std::rc::Rc;

/// The life of a session endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionState {
    /// Our begin went; the peer's is due.
    BeginSent,
    /// Both begins were exchanged.
    Mapped,
    /// Our end went; the peer's is due. Until then its frames are ignored.
    EndSent,
}

/// One end of a session.
#[derive(Debug)]
pub struct Session<D> {
    /// Where it is in its life.
    pub state: SessionState,
    /// Tells it from earlier sessions on the same channel.
    pub generation: u32,
    /// The channel that the peer sends on, once its begin has come.
    pub remote_channel: Option<u16>,
    /// Whether the peer's end has come: it says nothing more in this session.
    pub end_received: bool,
    /// Windows and transfer-ids.
    pub flow: SessionFlow,
    /// The highest handle that the peer takes.
    pub remote_handle_max: u32,
    /// The links, by our handle.
    links: Vec<Option<Box<Link>>>,
    /// No handle below this one is free.
    free_from: usize,
    /// Our handles, by the peer's.
    pub handles: SparseMap<Handle>,
    /// Handles that the peer once had attached.
    former_handles: SparseMap<()>,
    /// What came and isn't settled.
    pub incoming: SerialMap<Unsettled<D>>,
    /// Whether a first delivery has fixed the peer's numbering.
    pub incoming_numbered: bool,
    /// What went and isn't settled.
    pub outgoing: SerialMap<Unsettled<D>>,
    /// Dispositions of incoming deliveries (ours is the receiver's role) that aren't sent yet.
    pub pending_as_receiver: Option<PendingDisposition>,
    /// Dispositions of outgoing deliveries that aren't sent yet.
    pub pending_as_sender: Option<PendingDisposition>,
    /// Whether the session is in the connection's list of those with something to flush.
    pub dirty: bool,
    /// Whether a send found the window closed, so that its opening must be told.
    pub window_wanted: bool,
}

impl<D> Session<D> {
    pub(super) fn new(state: SessionState, generation: u32, flow: SessionFlow) -> Self {
        Self {
            state,
            generation,
            remote_channel: None,
            end_received: false,
            flow,
            remote_handle_max: u32::MAX,
            links: Vec::new(),
            free_from: 0,
            handles: SparseMap::default(),
            former_handles: SparseMap::default(),
            incoming: SerialMap::starting_at(Serial(0)),
            incoming_numbered: false,
            outgoing: SerialMap::starting_at(Serial(0)),
            pending_as_receiver: None,
            pending_as_sender: None,
            dirty: false,
            window_wanted: false,
        }
    }

    /// The session part of a flow, which tells the peer of the window as it is now.
    fn send_flow(&mut self) -> Flow<'static> {
        let flow = self.flow.send_flow();
        // Before the peer's begin there is no transfer-id to expect (§2.7.4).
        Flow { next_incoming_id: flow.next_incoming_id.filter(|_| self.remote_channel.is_some()), ..flow }
    }

    /// The link with our handle.
    #[inline]
    #[must_use]
    pub fn link(&self, handle: Handle) -> Option<&Link> {
        self.links.get(handle.0 as usize)?.as_deref()
    }

    /// The link with our handle.
    #[inline]
    pub fn link_mut(&mut self, handle: Handle) -> Option<&mut Link> {
        self.links.get_mut(handle.0 as usize)?.as_deref_mut()
    }

    /// All links, by our handle.
    pub fn links(&self) -> impl Iterator<Item = (Handle, &Link)> {
        self.links.iter().enumerate().filter_map(|(index, link)| {
            let index = u32::try_from(index).ok()?;
            link.as_deref().map(|link| (Handle(index), link))
        })
    }

    /// Adds a link under the lowest free handle; `None` if there are too many, or the peer's handle-max
    /// leaves none.
    pub(super) fn add_link(&mut self, link: Link) -> Option<Handle> {
        let taken = self.links[self.free_from..].iter().take_while(|link| link.is_some()).count();
        let index = self.free_from + taken;
        if index >= LINKS_PER_SESSION_MAX || index as u64 > u64::from(self.remote_handle_max) {
            return None;
        }
        if index == self.links.len() {
            self.links.push(None);
        }
        self.links[index] = Some(Box::new(link));
        self.free_from = index + 1;
        Some(Handle(u32::try_from(index).ok()?))
    }

    /// Removes a link, and frees its handles.
    pub(super) fn remove_link(&mut self, handle: Handle) -> Option<Box<Link>> {
        let link = self.links.get_mut(handle.0 as usize)?.take()?;
        if let Some(remote) = link.remote_handle {
            self.free_remote_handle(remote);
        }
        self.free_from = self.free_from.min(handle.0 as usize);
        while let Some(None) = self.links.last() {
            self.links.pop();
        }
        Some(link)
    }

    /// Notes that the peer's handle is free again.
    pub(super) fn free_remote_handle(&mut self, remote: u32) {
        self.handles.remove(remote);
        self.former_handles.insert(remote, ());
    }

    /// Our handle for the peer's.
    ///
    /// # Errors
    /// If no link is attached there (§2.8.17).
    #[inline]
    pub(super) fn handle_of(
        &self,
        channel: Channel,
        remote: u32,
        performative: &str,
    ) -> Result<Handle, Violation> {
        self.handles.get(remote).ok_or_else(|| {
            Violation::session(
                channel,
                Condition::UNATTACHED_HANDLE,
                format!("{performative}.handle: no link is attached at handle {remote}"),
            )
        })
    }

    /// Checks the delivery-id of a delivery's first frame: they follow one another within the session,
    /// whichever link a delivery comes on (§2.6.12). The first of all may be any.
    #[inline]
    pub(super) fn recv_delivery_id(
        &mut self,
        channel: Channel,
        transfer: &Transfer<'_>,
    ) -> Result<(), Violation> {
        let Some(delivery_id) = transfer.delivery_id.map(Serial) else {
            return Err(Violation::session(
                channel,
                Condition::INVALID_FIELD,
                "transfer.delivery-id is missing in the first frame of a delivery",
            ));
        };
        if !self.incoming_numbered {
            self.incoming = SerialMap::starting_at(delivery_id);
            self.incoming_numbered = true;
        }
        let expected = self.incoming.next();
        if delivery_id != expected {
            return Err(Violation::session(
                channel,
                Condition::INVALID_FIELD,
                format!("transfer.delivery-id: expected {expected}, got {delivery_id}"),
            ));
        }
        Ok(())
    }

    /// Takes the number of a delivery that nobody will look at.
    pub(super) fn pass_over_delivery_id(&mut self, transfer: &Transfer<'_>) {
        let Some(delivery_id) = transfer.delivery_id.map(Serial) else { return };
        if !self.incoming_numbered {
            self.incoming = SerialMap::starting_at(delivery_id);
            self.incoming_numbered = true;
        }
        // A frame that goes on with a delivery may repeat its number.
        if delivery_id == self.incoming.next() {
            self.incoming.skip();
        }
    }

    /// Takes the unsettled deliveries of one link out, in the order of their numbers.
    pub(super) fn take_unsettled(&mut self, link: LinkRef) -> Vec<(Serial, Unsettled<D>)> {
        let sends = self.link(link.handle).is_some_and(|link| link.role == Role::Sender);
        let map = if sends { &mut self.outgoing } else { &mut self.incoming };
        let ids: Vec<Serial> =
            map.iter().filter(|(_, unsettled)| unsettled.handle == link.handle).map(|(id, _)| id).collect();
        ids.into_iter().filter_map(|id| map.remove(id).map(|unsettled| (id, unsettled))).collect()
    }

    /// Puts it into the list of those that have something to flush.
    #[inline]
    pub(super) fn mark_dirty(&mut self, channel: Channel, list: &mut SmallVec<[Channel; 4]>) {
        if !self.dirty {
            self.dirty = true;
            list.push(channel);
        }
    }

    /// A link on which deliveries come, and where they are noted while they aren't settled.
    #[inline]
    pub(super) fn receiver_mut(
        &mut self,
        handle: Handle,
    ) -> Option<(&mut Link, &mut SerialMap<Unsettled<D>>)> {
        let link = self.links.get_mut(handle.0 as usize)?.as_deref_mut()?;
        Some((link, &mut self.incoming))
    }

    /// Removes a delivery that came, which is settled now.
    #[inline]
    pub(super) fn remove_incoming(&mut self, delivery_id: Serial) -> Option<Unsettled<D>> {
        let unsettled = self.incoming.remove(delivery_id)?;
        if let Some(link) = self.link_mut(unsettled.handle) {
            link.unsettled -= 1;
        }
        Some(unsettled)
    }
}

impl<D: Copy + Default> Connection<D> {
    /// The session on our channel.
    #[inline]
    #[must_use]
    pub fn session(&self, channel: Channel) -> Option<&Session<D>> {
        self.sessions.get(usize::from(channel.0))?.as_deref()
    }

    /// Whether a session that was begun with that generation can still be used.
    #[must_use]
    pub fn lives(&self, channel: Channel, generation: u32) -> bool {
        self.session(channel)
            .is_some_and(|session| session.generation == generation && session.state != SessionState::EndSent)
    }

    #[inline]
    pub(super) fn session_mut(&mut self, channel: Channel) -> Option<&mut Session<D>> {
        self.sessions.get_mut(usize::from(channel.0))?.as_deref_mut()
    }

    /// Our channel for the peer's; `None` if the session is ending on our side, so that the frame is to
    /// be ignored.
    #[inline]
    pub(super) fn mapped(&self, remote: u16, performative: &str) -> Result<Option<Channel>, Violation> {
        let Some(channel) = self.channels.get(remote.into()) else {
            return Err(Violation::connection(
                Condition::NOT_ALLOWED,
                format!("{performative} came on channel {remote}, where no session is mapped"),
            ));
        };
        let ending = self.session(channel).is_none_or(|session| session.state == SessionState::EndSent);
        Ok((!ending).then_some(channel))
    }

    /// Whether frames of a session may still be written: after our end, or our close, none is (§2.5.5).
    #[inline]
    pub(super) fn may_write(&self, channel: Channel) -> bool {
        !self.is_silent()
            && self.session(channel).is_some_and(|session| session.state != SessionState::EndSent)
    }

    /// The session, if frames of it may still be written.
    #[inline]
    pub(super) fn writable_mut(&mut self, channel: Channel) -> Option<&mut Session<D>> {
        let silent = self.is_silent();
        self.session_mut(channel).filter(|session| !silent && session.state != SessionState::EndSent)
    }

    /// Notes that a session has something to flush.
    #[inline]
    pub(super) fn mark_dirty(&mut self, channel: Channel) {
        if let Some(session) = self.sessions.get_mut(usize::from(channel.0)).and_then(Option::as_deref_mut) {
            session.mark_dirty(channel, &mut self.dirty);
        }
    }

    fn new_session(&mut self, state: SessionState) -> Option<Channel> {
        let index = self.sessions.iter().position(Option::is_none).unwrap_or(self.sessions.len());
        let channel = u16::try_from(index).ok().filter(|&channel| channel <= self.peer.channel_max)?;
        let flow = SessionFlow::new(self.settings.max_frame_size, self.settings.session_frames_max);
        self.sessions_begun = self.sessions_begun.wrapping_add(1);
        let session = Some(Box::new(Session::new(state, self.sessions_begun, flow)));
        if index == self.sessions.len() {
            self.sessions.push(session);
        } else {
            self.sessions[index] = session;
        }
        Some(Channel(channel))
    }

    fn write_begin(&mut self, channel: Channel, remote_channel: Option<u16>, out: &mut Output) {
        let handle_max = u32::try_from(LINKS_PER_SESSION_MAX - 1).unwrap_or(u32::MAX);
        let frame_max = self.peer.max_frame_size;
        let Some(session) = self.session(channel) else { return };
        let begin = Begin {
            remote_channel,
            next_outgoing_id: session.flow.next_outgoing_id.0,
            incoming_window: session.flow.incoming_window,
            outgoing_window: OUTGOING_WINDOW,
            handle_max,
            ..Begin::default()
        };
        write::amqp(out, channel.0, frame_max, &begin).expect("our begin fits the smallest frame");
    }

    /// Begins a session of ours. `None` if the peer's channel-max leaves no channel.
    pub fn send_begin(&mut self, out: &mut Output) -> Option<Channel> {
        let channel = self.new_session(SessionState::BeginSent)?;
        self.write_begin(channel, None, out);
        Some(channel)
    }

    pub(super) fn recv_begin<'b>(
        &mut self,
        remote: u16,
        begin: &Begin<'b>,
        out: &mut Output,
    ) -> Result<Option<Event<'b>>, Violation> {
        if remote > self.settings.channel_max {
            return Err(Violation::connection(
                Condition::FRAMING_ERROR,
                format!("begin came on channel {remote}; channel-max is {}", self.settings.channel_max),
            ));
        }
        if self.channels.get(remote.into()).is_some() {
            return Err(Violation::connection(
                Condition::ILLEGAL_STATE,
                format!("begin came on channel {remote}, where a session is mapped already"),
            ));
        }
        let (channel, answer_due) = match begin.remote_channel {
            None => {
                let channel = self.new_session(SessionState::Mapped).ok_or_else(|| {
                    Violation::connection(
                        Condition::RESOURCE_LIMIT_EXCEEDED,
                        format!(
                            "the peer's own channel-max {} leaves no channel for a session",
                            self.peer.channel_max
                        ),
                    )
                })?;
                (channel, true)
            }
            Some(ours) => {
                let channel = Channel(ours);
                let ours = self
                    .session(channel)
                    .filter(|session| session.remote_channel.is_none() && !session.end_received);
                if ours.is_none() {
                    return Err(Violation::connection(
                        Condition::INVALID_FIELD,
                        format!("begin.remote-channel {}: no begin of ours waits for an answer", channel.0),
                    ));
                }
                (channel, false)
            }
        };
        self.channels.insert(remote.into(), channel);
        let Some(session) = self.session_mut(channel) else { return Ok(None) };
        session.remote_channel = Some(remote);
        session.remote_handle_max = begin.handle_max;
        session.flow.recv_begin(begin);
        if session.state == SessionState::EndSent {
            return Ok(None);
        }
        session.state = SessionState::Mapped;
        if answer_due {
            self.write_begin(channel, Some(remote), out);
        }
        Ok(Some(Event::Begun(channel)))
    }

    pub(super) fn recv_flow<'b>(
        &mut self,
        remote: u16,
        flow: &Flow<'b>,
        out: &mut Output,
    ) -> Result<Option<Event<'b>>, Violation> {
        let Some(channel) = self.mapped(remote, "flow")? else { return Ok(None) };
        let Some(session) = self.session_mut(channel) else { return Ok(None) };
        session.flow.recv_flow(flow);
        let opened = session.window_wanted && session.flow.remote_incoming_window > 0;
        let Some(remote_handle) = flow.handle else {
            if flow.echo {
                self.write_session_flow(channel, out);
            }
            return Ok(opened.then_some(Event::WindowOpened(channel)));
        };
        if session.handles.get(remote_handle).is_none() && session.former_handles.get(remote_handle).is_some()
        {
            // Clients answer our flow though their detach has crossed it. Its session part holds all the same.
            return Ok(opened.then_some(Event::WindowOpened(channel)));
        }
        let handle = session.handle_of(channel, remote_handle, "flow")?;
        let Some(link) = session.link_mut(handle) else { return Ok(None) };
        if link.state == LinkState::DetachSent {
            // Its session part holds all the same (§2.7.4).
            return Ok(opened.then_some(Event::WindowOpened(channel)));
        }
        let user = link.user;
        let link_ref = LinkRef { channel, handle };
        match link.role {
            Role::Sender => {
                link.recv_receiver_flow(flow);
                Ok(Some(Event::Flow { link: link_ref, user }))
            }
            Role::Receiver => {
                link.recv_sender_flow(link_ref, flow)?;
                if std::mem::take(&mut link.echo) {
                    self.write_link_flow(link_ref, 0, out);
                }
                Ok(Some(Event::SenderFlow { link: link_ref, user }))
            }
        }
    }

    /// Whether a session's window has opened after a send had found it closed. Asking takes the answer back.
    pub fn take_window_opened(&mut self, channel: Channel) -> bool {
        self.session_mut(channel).is_some_and(|session| {
            let opened = session.window_wanted && session.flow.remote_incoming_window > 0;
            if opened {
                session.window_wanted = false;
            }
            opened
        })
    }

    fn write_session_flow(&mut self, channel: Channel, out: &mut Output) {
        let frame_max = self.peer.max_frame_size;
        if let Some(session) = self.writable_mut(channel) {
            let flow = session.send_flow();
            write::amqp(out, channel.0, frame_max, &flow).expect("a flow fits the smallest frame");
        }
    }

    /// Writes the flow state of a link as it is; `available` is what waits to be sent on it.
    pub(super) fn write_link_flow(&mut self, link: LinkRef, available: u32, out: &mut Output) {
        let frame_max = self.peer.max_frame_size;
        let Some(session) = self.writable_mut(link.channel) else { return };
        let session_part = session.send_flow();
        let Some(state) = session.link(link.handle) else { return };
        match state.state {
            LinkState::AttachSent | LinkState::Attached => {}
            // The handle means nothing to the peer yet, or no longer.
            LinkState::AttachReceived | LinkState::DetachSent => return,
        }
        // A receiver that hasn't seen the sender's attach can't know its delivery-count (§2.7.4).
        let counts = state.role == Role::Sender || state.remote_handle.is_some();
        let flow = Flow {
            handle: Some(link.handle.0),
            delivery_count: counts.then_some(state.delivery_count.0),
            link_credit: Some(state.credit),
            available: (state.role == Role::Sender).then_some(available),
            drain: state.drain,
            ..session_part
        };
        write::amqp(out, link.channel.0, frame_max, &flow).expect("a flow fits the smallest frame");
    }

    /// Notes that `bytes` of a session's payload stay in the router for now: the session's window shrinks.
    /// Returns the session's generation, for `release`.
    pub fn hold(&mut self, channel: Channel, bytes: usize) -> u32 {
        self.session_mut(channel).map_or(0, |session| {
            session.flow.hold(bytes);
            session.generation
        })
    }

    /// Notes that `bytes` of a session's payload have gone on; the window is refreshed with the next flush.
    /// A later session on the same channel has nothing to do with it.
    pub fn release(&mut self, channel: Channel, generation: u32, bytes: usize) {
        if let Some(session) = self.session_mut(channel).filter(|session| session.generation == generation) {
            session.flow.release(bytes);
            if session.flow.wants_refresh() {
                self.mark_dirty(channel);
            }
        }
    }

    /// Writes what was put together during the turn: dispositions in ranges, refreshed windows.
    pub fn flush(&mut self, out: &mut Output) {
        for channel in std::mem::take(&mut self.dirty) {
            self.flush_session(channel, out);
        }
    }

    pub(super) fn flush_session(&mut self, channel: Channel, out: &mut Output) {
        let frame_max = self.peer.max_frame_size;
        let Some(session) = self.writable_mut(channel) else { return };
        session.dirty = false;
        for (pending, role) in [
            (session.pending_as_receiver.take(), Role::Receiver),
            (session.pending_as_sender.take(), Role::Sender),
        ] {
            if let Some(pending) = pending {
                write::amqp(out, channel.0, frame_max, &pending.disposition(role))
                    .expect("a plain disposition fits the smallest frame");
            }
        }
        if session.state == SessionState::Mapped && session.flow.wants_refresh() {
            self.write_session_flow(channel, out);
        }
    }

    pub(super) fn recv_end<'b>(
        &mut self,
        remote: u16,
        end: &End<'b>,
        out: &mut Output,
    ) -> Result<Option<Event<'b>>, Violation> {
        let Some(channel) = self.channels.remove(remote.into()) else {
            return Err(Violation::connection(
                Condition::NOT_ALLOWED,
                format!("end came on channel {remote}, where no session is mapped"),
            ));
        };
        let Some(session) = self.session_mut(channel) else { return Ok(None) };
        if session.state == SessionState::EndSent {
            self.forget_session(channel);
            return Ok(None);
        }
        // The session's memory goes with `forget_session`, which its user calls when it has dealt with the
        // session's links and deliveries.
        session.end_received = true;
        self.send_end(channel, None, out);
        Ok(Some(Event::Ended { channel, cause: Cause::Peer(end.error) }))
    }

    /// Ends a session. Tells whether there was one to end.
    pub fn send_end(&mut self, channel: Channel, fault: Option<&Fault>, out: &mut Output) -> bool {
        let frame_max = self.peer.max_frame_size;
        if self.is_silent()
            || self.session(channel).is_none_or(|session| session.state == SessionState::EndSent)
        {
            return false;
        }
        self.flush_session(channel, out);
        let end = End { error: fault.map(Fault::error) };
        if write::amqp(out, channel.0, frame_max, &end).is_err() {
            let _ = write::amqp(out, channel.0, frame_max, &End { error: None });
        }
        if let Some(session) = self.session_mut(channel) {
            session.state = SessionState::EndSent;
        }
        true
    }

    /// Drops what is left of a session after [`Event::Ended`] (or a `send_end` of our own): its links and
    /// unsettled deliveries. Its channel stays in use until both ends have been exchanged.
    pub fn clear_session(&mut self, channel: Channel) {
        let Some(session) = self.session_mut(channel) else { return };
        let ended_by_peer = session.end_received;
        let names: Vec<(Role, Rc<str>)> =
            session.links().map(|(_, link)| (link.role, link.name.clone())).collect();
        session.links.clear();
        session.free_from = 0;
        session.incoming = SerialMap::starting_at(Serial(0));
        session.outgoing = SerialMap::starting_at(Serial(0));
        session.pending_as_receiver = None;
        session.pending_as_sender = None;
        for (role, name) in names {
            if self.names_of(role).get(&name).is_some_and(|link| link.channel == channel) {
                self.names_of(role).remove(&name);
            }
        }
        if ended_by_peer {
            self.forget_session(channel);
        }
    }

    fn forget_session(&mut self, channel: Channel) {
        if let Some(place) = self.sessions.get_mut(usize::from(channel.0)) {
            *place = None;
        }
        while let Some(None) = self.sessions.last() {
            self.sessions.pop();
        }
    }
}
