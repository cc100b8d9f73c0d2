//! Messages between a shard and the control thread, and sockets from one shard to another.

use super::survey::Survey;
use crate::base::id::{ConnectionKey, ListenerId, ShardId};
use crate::base::limits::MESSAGES_MAX;
use crate::io::driver::{Driver, Wake};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
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
