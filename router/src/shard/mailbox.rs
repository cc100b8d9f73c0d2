//! Messages between a shard and the control thread, and sockets from one shard to another.

use super::auto_links::AutoLink;
use super::guard::HalfOpen;
use super::slots::ListenerSettings;
use super::survey::Survey;
use crate::base::id::{ConnectionKey, ListenerId, ShardId};
use crate::base::limits::MESSAGES_MAX;
use crate::io::driver::{Driver, Wake};
use crate::tls::Profile;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

/// What another thread tells a shard.
pub enum Message<D: Driver> {
    /// Stop accepting, close all connections, then end.
    Shutdown,
    /// The snapshot says something new of the addresses with these keys.
    Changed(Arc<[Arc<str>]>),
    /// Start accepting on this socket: all shards know each other.
    Listen {
        /// The listener that it belongs to.
        listener: ListenerId,
        /// The socket.
        socket: D::Listener,
    },
    /// All reports of the shard up to this number are in the snapshot.
    Published(u64),
    /// A connection that another shard accepted for this one.
    Adopt {
        /// The listener that it came through.
        listener: ListenerId,
        /// The socket.
        socket: D::Socket,
        /// The address of the peer.
        peer: SocketAddr,
        /// Counts it until it is open.
        half_open: Option<HalfOpen>,
    },
    /// The management agent's connection.
    Agent(D::Socket),
    /// Tell management of yourself.
    Survey(Survey),
    /// Close this client's connection.
    Close {
        /// The connection.
        connection: ConnectionKey,
        /// Is told whether it was there.
        reply: oneshot::Sender<bool>,
    },
    /// Log the frames of this connection, or do so no more.
    Trace {
        /// The connection.
        connection: ConnectionKey,
        /// Whether they are to be logged.
        is_on: bool,
        /// Is told whether it was there.
        reply: oneshot::Sender<bool>,
    },
    /// Another listener, whose connections may be handed here from now on.
    AddListener {
        /// Its number.
        listener: ListenerId,
        /// What holds for its connections.
        settings: Arc<ListenerSettings>,
    },
    /// Accept nobody on this listener any more. Its connections stay.
    RemoveListener(ListenerId),
    /// A connection that was dialled for this shard.
    Dialled {
        /// What holds for it.
        settings: Box<ListenerSettings>,
        /// The connected socket.
        socket: D::Socket,
        /// The address of the peer.
        peer: SocketAddr,
        /// Who dialled. A channel with room for [`DIALLED_EVENTS_MAX`] is never full.
        dialler: Sender<DialledEvent>,
    },
    /// Close this connection, since its connector was deleted.
    HangUp(ConnectionKey),
    /// Close the connections whose TLS was made with a version of this profile before `oldest`.
    RetireTls {
        /// The profile.
        profile: Arc<Profile>,
        /// The oldest version that is still good (`oldestValidOrdinal`).
        oldest: u64,
    },
    /// Another auto-link.
    AddAutoLink(Arc<AutoLink>),
    /// Give this auto-link up.
    RemoveAutoLink(Arc<AutoLink>),
}

/// How many events of one dialled connection there are at the most.
pub const DIALLED_EVENTS_MAX: usize = 2;

/// What the control thread is told of a connection that it dialled: that it was opened, if it was, then that it
/// ended. (It ended as well, for no reason that could be told, if the channel closes.)
#[derive(Clone, Debug)]
pub enum DialledEvent {
    /// Both opens were exchanged.
    Opened {
        /// The connection on its shard.
        connection: ConnectionKey,
        /// Its number in logs.
        id: u64,
        /// The SASL mechanism by which we introduced ourselves.
        mechanism: Option<&'static str>,
        /// The version of TLS, or `no`.
        encryption: &'static str,
        /// The peer's container-id.
        container: Box<str>,
        /// Other servers that the peer tells of (`failover-server-list`); `None`: it says nothing of them.
        failover: Option<Vec<FailoverServer>>,
    },
    /// It is over: why.
    Ended(String),
}

/// A server that may be dialled in another's place (router-protocol reference §1.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailoverServer {
    /// `amqp`, or `amqps` for one that wants TLS.
    pub scheme: String,
    /// The host to dial.
    pub host: String,
    /// The port, by number or by a service's name.
    pub port: String,
    /// The hostname for the open, if it is another one than `host`.
    pub hostname: Option<String>,
}

/// What a shard tells the control thread: which receivers addresses have there now.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The shard.
    pub shard: ShardId,
    /// The number of the report; they count up by one.
    pub sequence: u64,
    /// What has changed. Of several entries for one address the last holds.
    pub changes: Vec<Change>,
}

/// The receivers of an address on one shard.
#[derive(Clone, Debug)]
pub struct Change {
    /// The address's key.
    pub key: Box<str>,
    /// How many there are.
    pub receivers: u32,
    /// How many of them count as destinations.
    pub destinations: u32,
}

/// The sending end of a shard's mailbox.
pub struct Mailbox<D: Driver> {
    messages: SyncSender<Message<D>>,
    wake: Arc<dyn Wake>,
}

impl<D: Driver> Clone for Mailbox<D> {
    fn clone(&self) -> Self {
        Self { messages: self.messages.clone(), wake: self.wake.clone() }
    }
}

impl<D: Driver> Mailbox<D> {
    /// A mailbox, and the shard's end of it.
    #[must_use]
    pub fn new(wake: Arc<dyn Wake>) -> (Self, Receiver<Message<D>>) {
        let (messages, receiver) = sync_channel(MESSAGES_MAX);
        (Self { messages, wake }, receiver)
    }

    /// What wakes the shard.
    pub(super) fn waker(&self) -> Arc<dyn Wake> {
        self.wake.clone()
    }

    /// Puts a message in and wakes the shard.
    ///
    /// # Errors
    /// The message comes back if the mailbox is full, or the shard gone.
    pub fn send(&self, message: Message<D>) -> Result<(), Message<D>> {
        match self.messages.try_send(message) {
            Ok(()) => {
                self.wake.wake();
                Ok(())
            }
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => Err(message),
        }
    }
}
