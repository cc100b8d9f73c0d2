//! Attaching and detaching links (AMQP 1.0 §2.6.1 to 2.6.6).

use super::connection::Connection;
use super::event::{Cause, Event, LinkRef};
use super::link::{Link, LinkState};
use super::session::SessionState;
use super::violation::{Fault, Violation};
use super::write;
use crate::base::buffer::Output;
use crate::base::id::{Channel, Key, Serial};
use crate::base::limits::{LINKS_PER_SESSION_MAX, SENT_FRAME_MAX};
use ringmain_codec::{
    Attach, Condition, Detach, ReceiverSettleMode, Role, SenderSettleMode, Source, Target, TargetNode,
};
use std::collections::HashMap;
use std::rc::Rc;

/// The other end's role.
fn opposite(role: Role) -> Role {
    match role {
        Role::Sender => Role::Receiver,
        Role::Receiver => Role::Sender,
    }
}

/// What an attach takes at the most beside its name, once all that can be left out is: frame header,
/// descriptor, list header, the name's own header, handle, role, settle modes, two empty termini, unsettled,
/// delivery-count and max-message-size. The codec writes less.
const BARE_ATTACH_BYTES_MAX: usize = 96;

/// What we say in an attach, beside the link's name, handle and role.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// The source; `None` refuses or says that there is none.
    pub source: Option<Source<'a>>,
    /// The target; `None` refuses or says that there is none.
    pub target: Option<Target<'a>>,
    /// The settle mode of the sender.
    pub snd_settle_mode: SenderSettleMode,
    /// The settle mode of the receiver.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// As receiver: the largest message that is taken; 0: any.
    pub max_message_size: u64,
}

impl<D: Copy + Default> Connection<D> {
    /// A link by our numbers.
    #[inline]
    #[must_use]
    pub fn link(&self, link: LinkRef) -> Option<&Link> {
        self.session(link.channel)?.link(link.handle)
    }

    #[inline]
    pub(super) fn link_mut(&mut self, link: LinkRef) -> Option<&mut Link> {
        self.session_mut(link.channel)?.link_mut(link.handle)
    }

    /// Keeps `user` with a link; it comes back with the link's events.
    pub fn set_user(&mut self, link: LinkRef, user: Option<Key>) {
        if let Some(link) = self.link_mut(link) {
            link.user = user;
        }
    }

    pub(super) fn names_of(&mut self, role: Role) -> &mut HashMap<Rc<str>, LinkRef> {
        match role {
            Role::Sender => &mut self.names[0],
            Role::Receiver => &mut self.names[1],
        }
    }

    /// Takes an attach. The flag says that the frame must be taken once more, since its link displaced
    /// another one, whose end the event tells.
    pub(super) fn recv_attach<'b>(
        &mut self,
        remote: u16,
        attach: Attach<'b>,
        out: &mut Output,
    ) -> Result<(Option<Event<'b>>, bool), Violation> {
        let Some(channel) = self.mapped(remote, "attach")? else { return Ok((None, false)) };
        let role = opposite(attach.role);
        let handle_max = u32::try_from(LINKS_PER_SESSION_MAX - 1).unwrap_or(u32::MAX);
        if attach.handle > handle_max {
            return Err(Violation::connection(
                Condition::FRAMING_ERROR,
                format!("attach.handle {} is beyond handle-max {handle_max}", attach.handle),
            ));
        }
        let Some(session) = self.session(channel) else { return Ok((None, false)) };
        if let Some(taken) = session.handles.get(attach.handle) {
            let name = session.link(taken).map_or("", |link| &link.name);
            return Err(Violation::session(
                channel,
                Condition::HANDLE_IN_USE,
                format!("attach.handle {} is the handle of link '{name}'", attach.handle),
            ));
        }
        if let Some(known) = self.names_of(role).get(attach.name).copied() {
            let state = self.link(known).map(|link| link.state);
            match state {
                Some(LinkState::AttachSent) if known.channel == channel => {
                    return Ok((self.recv_attach_answer(known, attach), false));
                }
                // The answer to an attach that we have taken back meanwhile; the peer's detach follows it.
                Some(LinkState::DetachSent) if known.channel == channel && self.awaits_attach(known) => {
                    self.recv_late_attach_answer(known, &attach);
                    return Ok((None, false));
                }
                // The name's earlier link is in the peer's way: it has been taken over (§2.6.1).
                Some(LinkState::AttachReceived | LinkState::Attached | LinkState::AttachSent) => {
                    let fault =
                        Fault::new(Condition::STOLEN, "another attach took over the name of this link");
                    let user = self.link(known).and_then(|link| link.user);
                    self.send_detach(known, true, Some(&fault), out);
                    self.names_of(role).remove(attach.name);
                    let event =
                        Event::Detached { link: known, user, closed: true, cause: Cause::Ours(fault) };
                    return Ok((Some(event), true));
                }
                Some(LinkState::DetachSent) | None => {}
            }
        }
        if !self.fits_attach(attach.name) {
            return Err(Violation::session(
                channel,
                Condition::FRAME_SIZE_TOO_SMALL,
                "attach.name: an answer with a name of that length doesn't fit the peer's own max-frame-size",
            ));
        }
        let mut link = Link::new(attach.name.into(), role, LinkState::AttachReceived);
        Self::take_over(&mut link, &attach);
        let name = link.name.clone();
        let Some(session) = self.session_mut(channel) else { return Ok((None, false)) };
        let Some(handle) = session.add_link(link) else {
            return Err(Violation::session(
                channel,
                Condition::RESOURCE_LIMIT_EXCEEDED,
                "no handle is left for another link in this session",
            ));
        };
        session.handles.insert(attach.handle, handle);
        let link = LinkRef { channel, handle };
        self.names_of(role).insert(name, link);
        Ok((Some(Event::AttachRequested { link, attach: Box::new(attach) }), false))
    }

    fn take_over(link: &mut Link, attach: &Attach<'_>) {
        link.remote_handle = Some(attach.handle);
        link.snd_settle_mode = attach.snd_settle_mode;
        link.rcv_settle_mode = attach.rcv_settle_mode;
        match link.role {
            Role::Receiver => {
                link.recv_initial_delivery_count(Serial(attach.initial_delivery_count.unwrap_or(0)));
            }
            Role::Sender => link.max_message_size = attach.max_message_size.unwrap_or(0),
        }
    }

    fn recv_attach_answer<'b>(&mut self, known: LinkRef, attach: Attach<'b>) -> Option<Event<'b>> {
        let session = self.session_mut(known.channel)?;
        session.handles.insert(attach.handle, known.handle);
        let link = session.link_mut(known.handle)?;
        Self::take_over(link, &attach);
        link.state = LinkState::Attached;
        Some(Event::Attached { link: known, attach: Box::new(attach) })
    }

    /// Whether an attach with that name fits the peer's largest frame.
    fn fits_attach(&self, name: &str) -> bool {
        name.len() + BARE_ATTACH_BYTES_MAX <= self.peer.max_frame_size.min(SENT_FRAME_MAX) as usize
    }

    /// Whether we detached a link before the peer's attach for it came.
    fn awaits_attach(&self, link: LinkRef) -> bool {
        self.link(link).is_some_and(|link| link.remote_handle.is_none() && !link.detach_received)
    }

    fn recv_late_attach_answer(&mut self, known: LinkRef, attach: &Attach<'_>) {
        let Some(session) = self.session_mut(known.channel) else { return };
        session.handles.insert(attach.handle, known.handle);
        if let Some(link) = session.link_mut(known.handle) {
            link.remote_handle = Some(attach.handle);
        }
    }

    /// Answers a peer's attach: the link is attached.
    ///
    /// What doesn't fit the peer's largest frame is left out of the answer's termini, but for their addresses.
    ///
    /// # Errors
    /// If not even that fits. The session can't go on then.
    pub fn accept_link(
        &mut self,
        link: LinkRef,
        attachment: &Attachment<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        self.write_attach(link, attachment, out)?;
        if let Some(link) = self.link_mut(link) {
            link.snd_settle_mode = attachment.snd_settle_mode;
            link.rcv_settle_mode = attachment.rcv_settle_mode;
            if link.role == Role::Receiver {
                link.max_message_size = attachment.max_message_size;
            }
            link.state = LinkState::Attached;
        }
        Ok(())
    }

    /// Answers a peer's attach with an attach that has no terminus of ours, then a detach (§2.6.3).
    ///
    /// # Errors
    /// If the answer doesn't fit the peer's largest frame. The session can't go on then.
    pub fn refuse_link(
        &mut self,
        link: LinkRef,
        attach: &Attach<'_>,
        fault: &Fault,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let attachment = Attachment {
            // The terminus on the refusing side is left out: the target where we would receive, the source
            // where we would send.
            source: attach.source.filter(|_| attach.role == Role::Sender),
            target: attach.target.filter(|_| attach.role == Role::Receiver),
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            max_message_size: 0,
        };
        self.write_attach(link, &attachment, out)?;
        self.send_detach(link, true, Some(fault), out);
        Ok(())
    }

    fn write_attach(
        &mut self,
        link: LinkRef,
        attachment: &Attachment<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        if !self.may_write(link.channel) {
            return Ok(());
        }
        let frame_max = self.peer.max_frame_size;
        let Some(state) = self.link(link) else { return Ok(()) };
        let attach = Attach {
            name: &state.name,
            handle: link.handle.0,
            role: state.role,
            snd_settle_mode: attachment.snd_settle_mode,
            rcv_settle_mode: attachment.rcv_settle_mode,
            source: attachment.source,
            target: attachment.target,
            initial_delivery_count: (state.role == Role::Sender).then_some(state.delivery_count.0),
            max_message_size: (attachment.max_message_size != 0).then_some(attachment.max_message_size),
            ..Attach::default()
        };
        if write::amqp(out, link.channel.0, frame_max, &attach).is_ok() {
            return Ok(());
        }
        let addresses_only = Attach {
            source: attach.source.map(|source| Source {
                address: source.address,
                dynamic: source.dynamic,
                ..Source::default()
            }),
            target: attach.target.map(|target| match target {
                Target::Node(node) => Target::Node(TargetNode {
                    address: node.address,
                    dynamic: node.dynamic,
                    ..TargetNode::default()
                }),
                Target::Coordinator(coordinator) => Target::Coordinator(coordinator),
            }),
            ..attach
        };
        if write::amqp(out, link.channel.0, frame_max, &addresses_only).is_ok() {
            return Ok(());
        }
        let is_dynamic = attach.source.is_some_and(|source| source.dynamic)
            || matches!(attach.target, Some(Target::Node(node)) if node.dynamic);
        if is_dynamic {
            // The address that was made up is all that such a link is for.
            return Err(Fault::describe(
                Condition::FRAME_SIZE_TOO_SMALL,
                format!("the answer to an attach doesn't fit the peer's max-frame-size, {frame_max} bytes"),
            ));
        }
        let bare = Attach {
            source: attach.source.map(|_| Source::default()),
            target: attach.target.map(|_| Target::Node(TargetNode::default())),
            ..attach
        };
        write::amqp(out, link.channel.0, frame_max, &bare).expect("the name's length was checked before");
        Ok(())
    }

    /// Attaches a link of ours. `None` if the session has no handle left, or the name is in use or doesn't
    /// fit the peer's largest frame.
    pub fn send_attach(
        &mut self,
        channel: Channel,
        name: &str,
        role: Role,
        attachment: &Attachment<'_>,
        out: &mut Output,
    ) -> Option<LinkRef> {
        if self.names_of(role).contains_key(name) || !self.fits_attach(name) {
            return None;
        }
        let mut link = Link::new(name.into(), role, LinkState::AttachSent);
        if role == Role::Receiver {
            link.max_message_size = attachment.max_message_size;
        }
        let name = link.name.clone();
        let session = self.session_mut(channel)?;
        if session.state == SessionState::EndSent {
            return None;
        }
        let handle = session.add_link(link)?;
        let link = LinkRef { channel, handle };
        self.names_of(role).insert(name, link);
        if self.write_attach(link, attachment, out).is_err() {
            self.forget_link(link);
            return None;
        }
        Some(link)
    }

    pub(super) fn recv_detach<'b>(
        &mut self,
        remote: u16,
        detach: &Detach<'b>,
        out: &mut Output,
    ) -> Result<Option<Event<'b>>, Violation> {
        let Some(channel) = self.mapped(remote, "detach")? else { return Ok(None) };
        let Some(session) = self.session_mut(channel) else { return Ok(None) };
        let handle = session.handle_of(channel, detach.handle, "detach")?;
        let Some(link) = session.link_mut(handle) else { return Ok(None) };
        let link_ref = LinkRef { channel, handle };
        if link.state == LinkState::DetachSent {
            self.forget_link(link_ref);
            return Ok(None);
        }
        let user = link.user;
        link.state = LinkState::DetachSent;
        self.flush_session(channel, out);
        let answer = Detach { handle: handle.0, closed: detach.closed, error: None };
        write::amqp(out, channel.0, self.peer.max_frame_size, &answer)
            .expect("a detach without error fits the smallest frame");
        // The handles are free now; the user still learns which link it was.
        let event =
            Event::Detached { link: link_ref, user, closed: detach.closed, cause: Cause::Peer(detach.error) };
        if let Some(link) = self.link_mut(link_ref) {
            link.remote_handle = None;
            link.detach_received = true;
        }
        if let Some(session) = self.session_mut(channel) {
            session.free_remote_handle(detach.handle);
        }
        Ok(Some(event))
    }

    /// Detaches a link. Tells whether there was one to detach. Its frames are ignored from now on, and its
    /// handle stays in use until the peer's detach.
    pub fn send_detach(
        &mut self,
        link: LinkRef,
        closed: bool,
        fault: Option<&Fault>,
        out: &mut Output,
    ) -> bool {
        let frame_max = self.peer.max_frame_size;
        if !self.may_write(link.channel)
            || self.link(link).is_none_or(|link| link.state == LinkState::DetachSent)
        {
            return false;
        }
        self.flush_session(link.channel, out);
        let detach = Detach { handle: link.handle.0, closed, error: fault.map(Fault::error) };
        if write::amqp(out, link.channel.0, frame_max, &detach).is_err() {
            let _ = write::amqp(out, link.channel.0, frame_max, &Detach { error: None, ..detach });
        }
        if let Some(link) = self.link_mut(link) {
            link.state = LinkState::DetachSent;
        }
        true
    }

    /// Drops what is left of a link after [`Event::Detached`] (or a `send_detach` of our own): the user
    /// calls it when it has dealt with the link's deliveries. The handle stays in use until both detaches
    /// have been exchanged.
    pub fn clear_link(&mut self, link: LinkRef) {
        let Some(state) = self.link_mut(link) else { return };
        state.user = None;
        state.receiving = None;
        state.sending = None;
        if state.detach_received {
            self.forget_link(link);
        }
    }

    fn forget_link(&mut self, link: LinkRef) {
        let Some(session) = self.session_mut(link.channel) else { return };
        let Some(removed) = session.remove_link(link.handle) else { return };
        if self.names_of(removed.role).get(&removed.name) == Some(&link) {
            self.names_of(removed.role).remove(&removed.name);
        }
    }
}
