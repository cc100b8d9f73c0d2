//! The contract between a shard and what moves its bytes: io_uring, or the simulator.
//!
//! A driver is completion-based. The shard asks (`open`, `send`, `close`, …), then waits once a turn
//! in [`Driver::submit_and_wait`] and takes what has happened with [`Driver::next_completion`].
//! Nothing runs inside a callback, and no call but `submit_and_wait` blocks.

pub use crate::base::buffer::Chunk;
use crate::base::id::{ConnectionKey, ListenerId};
use crate::base::limits::CHUNKS_PER_SEND_MAX;
use crate::base::time::Instant;
use core::time::Duration;
use smallvec::SmallVec;
use std::io;
use std::net::SocketAddr;

/// How long accepting rests after it failed: descriptors or memory have run out, and the connection that
/// couldn't be accepted is still waiting, so that trying at once would fail at once.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes to send on one connection, in order. Each chunk is a buffer and how much of it is filled.
pub type Chunks = SmallVec<[Chunk; CHUNKS_PER_SEND_MAX]>;

/// What has happened since the last turn.
#[derive(Debug)]
pub enum Completion<Socket, Received> {
    /// A listener accepted a connection. The shard calls [`Driver::open`] with the socket, or drops it.
    Accepted {
        /// The listener that accepted.
        listener: ListenerId,
        /// The accepted socket; dropping it closes it.
        socket: Socket,
        /// The address of the peer.
        peer: SocketAddr,
    },
    /// Accepting failed for now (descriptors ran out, say). The driver tries again by itself,
    /// after [`ACCEPT_PAUSE`].
    AcceptFailed {
        /// The listener concerned.
        listener: ListenerId,
        /// Why.
        error: io::Error,
    },
    /// Bytes have arrived. The buffer must go back with [`Driver::release`].
    Received {
        /// The connection that they arrived on.
        connection: ConnectionKey,
        /// Names the bytes; see [`Driver::bytes`].
        buffer: Received,
    },
    /// The peer sends nothing more: it closed its end (`error` is `None`), or receiving failed.
    /// Comes at most once for a connection.
    ReceiveEnded {
        /// The connection concerned.
        connection: ConnectionKey,
        /// Why, if it was not an orderly end.
        error: Option<io::Error>,
    },
    /// A `send` is done: all bytes were handed to the kernel, or sending failed. The buffers come back.
    Sent {
        /// The connection concerned.
        connection: ConnectionKey,
        /// The buffers that `send` was given.
        chunks: Chunks,
        /// Whether all was sent.
        result: io::Result<()>,
    },
    /// The connection is closed and its descriptor released. The last completion that names it; all
    /// received buffers and sent chunks were returned before.
    Closed {
        /// The connection concerned.
        connection: ConnectionKey,
    },
    /// Somebody called [`Wake::wake`]: look into the mailboxes.
    Woken,
}

/// Wakes a shard that waits in [`Driver::submit_and_wait`], from any thread.
pub trait Wake: Send + Sync {
    /// Makes the shard's next (or present) wait end with [`Completion::Woken`]. Calls may be merged.
    fn wake(&self);
}

/// Moves the bytes of one shard.
pub trait Driver {
    /// An accepted socket that isn't a connection yet.
    type Socket;
    /// Names received bytes that the driver still holds.
    type Received;
    /// What a listener is made of.
    type Listener;
    /// How another shard's driver wakes this one from its own ring.
    type Doorbell: Clone + Send;

    /// The time at which the last wait returned. Reads no clock.
    fn now(&self) -> Instant;

    /// The time now. A driver without a clock of its own says the same as [`Driver::now`].
    fn read_clock(&self) -> Instant {
        self.now()
    }

    /// Starts accepting on `socket`.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn listen(&mut self, listener: ListenerId, socket: Self::Listener) -> io::Result<()>;

    /// Accepts nobody for now, on all listeners (the shard is full); those under way still come. Others wait
    /// in the kernel.
    fn pause_accepting(&mut self);

    /// Ends [`Driver::pause_accepting`].
    fn resume_accepting(&mut self);

    /// Stops accepting on all listeners, for good, and closes them.
    fn stop_listening(&mut self);

    /// Stops accepting on the sockets of one listener, for good, and closes them. Connections that were
    /// accepted stay.
    fn stop_listening_on(&mut self, listener: ListenerId);

    /// Whether with `socket` so many descriptors are in use that the others are kept for the router's own needs.
    fn is_last_descriptor(&self, _socket: &Self::Socket) -> bool {
        false
    }

    /// Makes `socket` the connection `key`, and starts receiving on it.
    fn open(&mut self, key: ConnectionKey, socket: Self::Socket);

    /// Asks for no more `Received` of this connection (back-pressure); those under way still come. A reset by
    /// the peer still comes as `ReceiveEnded`; an orderly end may wait for the end of the pause.
    fn pause_receiving(&mut self, key: ConnectionKey);

    /// Ends a pause.
    fn resume_receiving(&mut self, key: ConnectionKey);

    /// Says how many bytes of this connection are worth a `Received`: with fewer there, none need come, until there
    /// are more (then all come), the peer ends, or this is called again. 1 at first. (`SO_RCVLOWAT`, socket(7); where the kernel
    /// refuses, it stays as it was.)
    fn set_receive_mark(&mut self, key: ConnectionKey, bytes: u32);

    /// Reports what is there of this connection though it is less than the mark of [`Driver::set_receive_mark`], as
    /// `Received` among the completions of the next wait or soon after; nothing, if nothing is there. Bytes keep their
    /// order, whichever way they come. Goes out with the next `submit_and_wait`. While the connection is paused, or is
    /// looked at already, a call does nothing.
    fn look(&mut self, key: ConnectionKey);

    /// Sends `chunks` in order. At most one `send` may be under way for a connection: the next one is
    /// allowed once [`Completion::Sent`] has come. After [`Driver::close`] it comes back with an error.
    ///
    /// # Panics
    /// If a `send` is under way, or `Closed` has come: mistakes of the shard.
    fn send(&mut self, key: ConnectionKey, chunks: Chunks);

    /// Sends bytes that are there for ever, under the rules of [`Driver::send`]. `Sent` brings no chunks.
    ///
    /// # Panics
    /// As [`Driver::send`].
    fn send_static(&mut self, key: ConnectionKey, bytes: &'static [u8]);

    /// Closes the connection: ends receiving, gives up a `send` under way (which then comes back as
    /// [`Completion::Sent`], with an error unless it was done), then reports `Closed`. From this call on no
    /// `Received` and no `ReceiveEnded` of the connection come; a buffer of it that the shard still holds
    /// stays valid until it is released. Bytes already handed to the kernel are still delivered, unless the
    /// peer takes longer than a second over them. Calls after the first do nothing.
    fn close(&mut self, key: ConnectionKey);

    /// Submits what was asked, then waits until a completion is there or `deadline` has passed
    /// (`None`: no deadline), and reads the clock.
    ///
    /// # Errors
    /// When the ring itself fails; the shard can't go on.
    fn submit_and_wait(&mut self, deadline: Option<Instant>) -> io::Result<()>;

    /// The next thing that has happened, if any.
    fn next_completion(&mut self) -> Option<Completion<Self::Socket, Self::Received>>;

    /// The bytes that `buffer` names.
    fn bytes<'a>(&'a self, buffer: &'a Self::Received) -> &'a [u8];

    /// Gives a received buffer back.
    fn release(&mut self, buffer: Self::Received);

    /// What other shards' drivers ring to wake this one.
    ///
    /// # Errors
    /// When there is no descriptor left for it.
    fn doorbell(&self) -> io::Result<Self::Doorbell>;

    /// Makes another shard's next (or present) wait end with [`Completion::Woken`]. It goes out with the
    /// next `submit_and_wait` of this driver.
    fn ring_doorbell(&mut self, other: &Self::Doorbell);

    /// A handle that other threads use to wake this shard.
    fn waker(&self) -> std::sync::Arc<dyn Wake>;
}
