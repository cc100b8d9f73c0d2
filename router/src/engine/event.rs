//! What a connection tells its user.

use super::delivery::Disposed;
use super::sasl::Duty;
use super::violation::Fault;
use crate::base::id::{Channel, Handle, Key, Serial};
use ringmain_codec::{Attach, Error, Open};

/// A link of a connection, by our numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LinkRef {
    /// The session.
    pub channel: Channel,
    /// The link within the session.
    pub handle: Handle,
}

/// What [`Connection::recv`](super::Connection::recv) did with its input.
#[derive(Debug)]
pub struct Progress<'b> {
    /// How many bytes are done with. With an event, call again with the rest; without one, the rest is
    /// the beginning of a frame that isn't complete yet.
    pub consumed: usize,
    /// What happened, if its user must know.
    pub event: Option<Event<'b>>,
}

/// What [`Connection::recv_delivery`](super::Connection::recv_delivery) found, and how many bytes it was.
#[derive(Debug)]
pub enum OfDelivery<'b> {
    /// A transfer frame.
    Transfer(Arrived<'b>, usize),
    /// A disposition.
    Disposition(Disposed<'b>, usize),
    /// One of the two that is passed over, or violates the protocol.
    Done(Progress<'b>),
    /// Anything else, or the beginning of a frame: nothing was taken. Call [`Connection::recv`](super::Connection::recv).
    Other,
}

/// Why an endpoint ended.
#[derive(Debug)]
pub enum Cause<'b> {
    /// The peer ended it, with or without an error.
    Peer(Option<Error<'b>>),
    /// We ended it, because of this.
    Ours(Fault),
}

impl Cause<'_> {
    /// The condition and description, if the end was not an orderly one.
    #[must_use]
    pub fn describe(&self) -> Option<String> {
        match self {
            Self::Peer(None) => None,
            Self::Peer(Some(error)) => {
                Some(format!("{}: {}", error.condition.0, error.description.unwrap_or("no description")))
            }
            Self::Ours(fault) => Some(fault.to_string()),
        }
    }
}

/// Something that the peer did, or that its fault made us do.
///
/// Performatives that come once in a link's or connection's life are boxed, so that those that come with every
/// delivery are small.
#[derive(Debug)]
pub enum Event<'b> {
    /// Something is to be done before it is known who the peer is.
    Sasl(Duty),
    /// The peer's open. As acceptor, answer with `send_open`.
    Opened(Box<Open<'b>>),
    /// A session is mapped, whoever began it.
    Begun(Channel),
    /// The peer attaches a link: answer with `accept_link` or `refuse_link`.
    AttachRequested {
        /// The link, with our handle for it.
        link: LinkRef,
        /// The peer's performative.
        attach: Box<Attach<'b>>,
    },
    /// The peer answered our attach.
    Attached {
        /// The link.
        link: LinkRef,
        /// The peer's performative.
        attach: Box<Attach<'b>>,
    },
    /// The peer's flow changed a link on which we send: its credit, a drain, or a request to answer. Like any
    /// flow it may have opened the session's window too: ask `take_window_opened`.
    Flow {
        /// The link.
        link: LinkRef,
        /// What its user stored with it.
        user: Option<Key>,
    },
    /// The peer, which sends on this link, has used or given up credit by a flow. Ask `take_window_opened`.
    SenderFlow {
        /// The link.
        link: LinkRef,
        /// What its user stored with it.
        user: Option<Key>,
    },
    /// The window of a session on which we send has opened. Ask `take_window_opened`.
    WindowOpened(Channel),
    /// A transfer frame.
    Transfer(Arrived<'b>),
    /// A disposition; its deliveries are taken one by one with `next_disposed`.
    Disposition(Disposed<'b>),
    /// A link is gone, on both sides as far as its user is concerned.
    Detached {
        /// The link.
        link: LinkRef,
        /// What its user stored with it.
        user: Option<Key>,
        /// Whether the peer closed it (or suspended it).
        closed: bool,
        /// Why.
        cause: Cause<'b>,
    },
    /// A session is gone with all of its links.
    Ended {
        /// The session.
        channel: Channel,
        /// Why.
        cause: Cause<'b>,
    },
    /// The connection is gone with all of its sessions. What it wrote last must still be sent.
    Closed(Cause<'b>),
}

/// One transfer frame (AMQP 1.0 §2.7.5), checked against the session and the link.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'b> {
    /// The link.
    pub link: LinkRef,
    /// What its user stored with it.
    pub user: Option<Key>,
    /// The delivery.
    pub delivery_id: Serial,
    /// Whether this is the delivery's first frame.
    pub first: bool,
    /// Whether further frames follow.
    pub more: bool,
    /// Whether the sender settled it, in this frame or an earlier one.
    pub settled: bool,
    /// Whether the sender gave it up: the delivery is over and has no outcome.
    pub aborted: bool,
    /// The message-format, if the sender gave one.
    pub message_format: u32,
    /// This frame's part of the message.
    pub payload: &'b [u8],
}
