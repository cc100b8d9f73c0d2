//! The driver on io_uring (Linux 6.1 and newer).
//!
//! The one folder of `io` with unsafe code: what the kernel reads and writes behind the compiler's back
//! is kept alive here until the kernel is done with it.
//!
//! # Cost
//! A turn is one system call. A receive costs no submission (multishot), a send one. Nothing is
//! allocated per receive or send.
#![allow(unsafe_code)]
#![deny(clippy::undocumented_unsafe_blocks)]

mod accept;
mod buffers;
mod clock;
mod completions;
mod connection;
mod op;
mod probe;
mod ring;
mod send;
#[cfg(test)]
mod tests;
mod wake;

pub use buffers::ReceivedBuffer;
pub use probe::{Unsupported, probe};

use self::accept::Listener;
use self::buffers::BufferRing;
use self::connection::{Connection, Look, Phase, Receive, Scratch};
use self::op::{INDEX_MAX, Kind, Op};
use self::ring::{Ring, Wait};
use self::send::{Messages, Sending};
use self::wake::EventWaker;
use super::driver::{Chunks, Completion, Driver, Wake};
use crate::base::id::{ConnectionKey, Key, ListenerId};
use crate::base::limits::{DESCRIPTORS_KEPT_MAX, DESCRIPTORS_KEPT_PART};
use crate::base::time::Instant;
use io_uring::{opcode, types};
use rustix::process::{Resource, getrlimit};
use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// How long closing may take at most: for the peer to end its direction after we ended ours. When it is
/// over, bytes that the kernel has not sent yet may be lost.
pub const LINGER: Duration = Duration::from_secs(1);

/// How long the driver waits, when it is dropped, for the kernel to give up what is under way.
const DROP_PATIENCE: Duration = Duration::from_secs(5);

/// The sizes of a driver's rings. The defaults take 8 MiB of buffers and 256 KiB of rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UringSizes {
    /// Entries of the submission queue (64 bytes each; a power of two, at most 32,768). When it is full,
    /// the driver submits and goes on.
    pub submission_entries: u32,
    /// Entries of the completion queue (16 bytes each; a power of two, at most 65,536, at least as many as of
    /// submissions): the most completions that one turn can find.
    pub completion_entries: u32,
    /// Bytes of a receive buffer: the most that one `Received` brings.
    pub buffer_size: u32,
    /// Receive buffers of the shard (a power of two, at most 32,768).
    pub buffer_count: u16,
}

impl Default for UringSizes {
    fn default() -> Self {
        Self { submission_entries: 2048, completion_entries: 8192, buffer_size: 16 * 1024, buffer_count: 512 }
    }
}

/// A connected socket that isn't a connection of a driver yet. Dropping it closes it.
#[derive(Debug)]
pub struct UringSocket(OwnedFd);

impl TryFrom<TcpStream> for UringSocket {
    type Error = io::Error;

    /// Prepares a socket that the driver didn't accept itself, one that was dialled, say.
    fn try_from(stream: TcpStream) -> io::Result<Self> {
        // The ring does the waiting; on a non-blocking descriptor it would return at once instead.
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        Ok(Self(stream.into()))
    }
}

impl TryFrom<UnixStream> for UringSocket {
    type Error = io::Error;

    /// Prepares one end of a pair of sockets whose other end is in this process.
    fn try_from(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        Ok(Self(stream.into()))
    }
}

/// A descriptor of a shard's ring, to which other rings send messages.
#[derive(Clone, Debug)]
pub struct UringDoorbell(Arc<OwnedFd>);

/// Moves the bytes of one shard through an io_uring. It stays on the thread that made it.
pub struct UringDriver {
    ring: Ring,
    /// After `ring`, so that it is dropped after it.
    buffers: BufferRing,
    /// By the index of their keys.
    connections: Vec<Option<Connection>>,
    listeners: Vec<Option<Listener>>,
    /// Connections whose receive ended for lack of a buffer, in order.
    starved: VecDeque<ConnectionKey>,
    /// Connections being closed, with the end of their [`LINGER`], in order.
    lingering: VecDeque<(Instant, ConnectionKey)>,
    /// Completions that needed no kernel.
    ready: VecDeque<Completion<UringSocket, ReceivedBuffer>>,
    messages: Messages,
    scratch: Scratch,
    waker: Arc<EventWaker>,
    now: Instant,
}

/// The connection of `key`, unless it has gone. (A function of the field alone, so that the ring can be used
/// with it.)
fn find(connections: &mut [Option<Connection>], key: ConnectionKey) -> Option<&mut Connection> {
    connections.get_mut(key.0.index as usize)?.as_mut().filter(|connection| connection.key == key)
}

impl UringDriver {
    /// Makes a driver for this thread, and touches all of its memory.
    ///
    /// # Errors
    /// When the kernel lacks something ([`probe`] says what), refuses the sizes, or has no memory left.
    pub fn new(sizes: UringSizes) -> io::Result<Self> {
        let ring = Ring::new(sizes.submission_entries, sizes.completion_entries)?;
        let buffers = BufferRing::new(&ring, sizes.buffer_size, sizes.buffer_count)?;
        let mut driver = Self {
            ring,
            buffers,
            connections: Vec::new(),
            listeners: Vec::new(),
            starved: VecDeque::new(),
            lingering: VecDeque::new(),
            ready: VecDeque::new(),
            messages: Messages::default(),
            scratch: Scratch::default(),
            waker: Arc::new(EventWaker::new()?),
            now: clock::monotonic(),
        };
        driver.arm_waker();
        Ok(driver)
    }

    fn arm_waker(&mut self) {
        let entry =
            opcode::PollAdd::new(types::Fd(self.waker.descriptor()), libc::POLLIN as u32).multi(true).build();
        // SAFETY: the descriptor lives as long as the driver, which ends all operations before it goes.
        unsafe { self.ring.push(entry, Op::global(Kind::Wake)) };
    }

    /// Starts what the connection's state asks for.
    fn advance(&mut self, key: ConnectionKey) {
        if let Some(connection) = find(&mut self.connections, key) {
            connection.advance(&mut self.ring, &mut self.scratch);
        }
    }

    /// Lets the kernel poll the queues of the network devices, for `limit` at the most, before a wait blocks.
    ///
    /// # Errors
    /// When the kernel can't: before Linux 6.9, or built without `CONFIG_NET_RX_BUSY_POLL`.
    pub fn busy_poll_devices(&mut self, limit: Duration) -> io::Result<()> {
        let microseconds = u32::try_from(limit.as_micros()).unwrap_or(u32::MAX);
        self.ring.submitter().register_napi(&mut types::Napi::new().set_busy_poll_timeout(microseconds))
    }

    /// Decides whether to wait, and how long. A deadline that has passed costs no look at the clock: a shard
    /// that spins asks for nothing else.
    fn plan_wait(&self, until: Option<Instant>) -> Wait {
        if !self.ready.is_empty() || self.ring.has_completions() {
            return Wait::Poll;
        }
        match until {
            None => Wait::Block(None),
            Some(until) if until <= self.now => Wait::Poll,
            Some(until) => Wait::Block(Some(until)),
        }
    }

    /// Stops the listeners that `is_it` holds for. Their places are free once the kernel has given them up.
    fn stop_listeners(&mut self, is_it: impl Fn(ListenerId) -> bool) {
        for (index, place) in (0..).zip(&mut self.listeners) {
            if let Some(listener) = place
                && is_it(listener.id)
            {
                listener.stop();
                listener.advance(index, &mut self.ring);
            }
            place.take_if(|listener| listener.is_gone());
        }
    }

    /// When the driver itself has something to do.
    fn next_own_deadline(&self) -> Option<Instant> {
        let retry = self.listeners.iter().flatten().filter_map(|listener| listener.retry_at).min();
        let linger = self.lingering.front().map(|&(until, _)| until);
        retry.into_iter().chain(linger).min()
    }

    /// Does what the time asks for.
    fn expire(&mut self, now: Instant) {
        for (index, listener) in (0..).zip(&mut self.listeners) {
            if let Some(listener) = listener
                && listener.retry_at.take_if(|at| *at <= now).is_some()
            {
                listener.advance(index, &mut self.ring);
            }
        }
        while let Some(&(until, key)) = self.lingering.front() {
            match find(&mut self.connections, key) {
                Some(connection) if until <= now => connection.hurry(&mut self.ring),
                Some(_) => break,
                None => {}
            }
            self.lingering.pop_front();
        }
    }

    /// Starts receiving again where buffers had run out: as many connections as there are buffers, so
    /// that a crowd doesn't run for one buffer.
    fn feed_starved(&mut self) {
        let mut free = self.buffers.free();
        while free > 0
            && let Some(key) = self.starved.pop_front()
        {
            let Some(connection) = find(&mut self.connections, key) else {
                continue;
            };
            connection.is_queued = false;
            if connection.phase != Phase::Open {
                continue;
            }
            // A receive that begins takes what a look would.
            let is_look_due = connection.look == Look::Starved;
            if is_look_due {
                connection.look = Look::Idle;
            }
            if connection.receive == Receive::Starved {
                connection.receive = Receive::Idle;
                connection.advance(&mut self.ring, &mut self.scratch);
                free -= 1;
            } else if is_look_due {
                connection.start_look(&mut self.ring);
                free -= 1;
            }
        }
    }

    fn start_sending(&mut self, key: ConnectionKey, mut sending: Sending) {
        let connection = find(&mut self.connections, key);
        let connection = connection.expect("a send names an open connection");
        assert!(connection.sending.is_none(), "one send at a time");
        if connection.phase != Phase::Open || sending.is_complete() {
            let result = match connection.phase {
                Phase::Open => Ok(()),
                Phase::Stopping | Phase::Draining(_) | Phase::Releasing => {
                    Err(io::ErrorKind::NotConnected.into())
                }
            };
            let chunks = sending.into_chunks(&mut self.messages);
            self.ready.push_back(Completion::Sent { connection: key, chunks, result });
            return;
        }
        sending.start(key, connection.descriptor.as_raw_fd(), &mut self.ring, &mut self.messages);
        connection.sending = Some(sending);
    }
}

impl Driver for UringDriver {
    type Socket = UringSocket;
    type Received = ReceivedBuffer;
    type Listener = TcpListener;
    type Doorbell = UringDoorbell;

    fn now(&self) -> Instant {
        self.now
    }

    fn read_clock(&self) -> Instant {
        clock::monotonic()
    }

    fn listen(&mut self, listener: ListenerId, socket: TcpListener) -> io::Result<()> {
        let place = self.listeners.iter().position(Option::is_none).unwrap_or(self.listeners.len());
        let index = u32::try_from(place).ok().filter(|&index| index <= INDEX_MAX);
        let index = index.ok_or(io::ErrorKind::QuotaExceeded)?;
        let mut listener = Listener::new(listener, socket)?;
        listener.advance(index, &mut self.ring);
        if place == self.listeners.len() {
            self.listeners.push(None);
        }
        self.listeners[place] = Some(listener);
        Ok(())
    }

    fn pause_accepting(&mut self) {
        for (index, listener) in (0..).zip(&mut self.listeners) {
            if let Some(listener) = listener {
                listener.pause();
                listener.advance(index, &mut self.ring);
            }
        }
    }

    fn resume_accepting(&mut self) {
        for (index, listener) in (0..).zip(&mut self.listeners) {
            if let Some(listener) = listener {
                listener.resume();
                listener.advance(index, &mut self.ring);
            }
        }
    }

    fn stop_listening(&mut self) {
        self.stop_listeners(|_| true);
    }

    fn stop_listening_on(&mut self, listener: ListenerId) {
        self.stop_listeners(|id| id == listener);
    }

    /// The kernel gives the lowest number that is free, so a socket's number says how many are in use. The limit may be
    /// changed while the process runs.
    fn is_last_descriptor(&self, socket: &Self::Socket) -> bool {
        let Some(limit) = getrlimit(Resource::Nofile).current else { return false };
        let kept = (limit / DESCRIPTORS_KEPT_PART).min(DESCRIPTORS_KEPT_MAX);
        u64::try_from(socket.0.as_raw_fd()).is_ok_and(|number| number >= limit - kept)
    }

    fn open(&mut self, key: ConnectionKey, socket: UringSocket) {
        let Key { index, generation: _ } = key.0;
        assert!(index <= INDEX_MAX, "a shard has at most 2^24 connections");
        if self.connections.len() <= index as usize {
            self.connections.resize_with(index as usize + 1, || None);
        }
        let place = &mut self.connections[index as usize];
        assert!(place.is_none(), "a key's place is used again only after Closed");
        let connection = place.insert(Connection::new(key, socket.0));
        connection.advance(&mut self.ring, &mut self.scratch);
    }

    fn pause_receiving(&mut self, key: ConnectionKey) {
        if let Some(connection) = find(&mut self.connections, key) {
            connection.paused = true;
            self.advance(key);
        }
    }

    fn resume_receiving(&mut self, key: ConnectionKey) {
        if let Some(connection) = find(&mut self.connections, key) {
            connection.paused = false;
            self.advance(key);
        }
    }

    fn set_receive_mark(&mut self, key: ConnectionKey, bytes: u32) {
        if let Some(connection) = find(&mut self.connections, key)
            && connection.phase == Phase::Open
        {
            connection.set_receive_mark(bytes);
        }
    }

    fn look(&mut self, key: ConnectionKey) {
        if let Some(connection) = find(&mut self.connections, key)
            && connection.phase == Phase::Open
        {
            connection.start_look(&mut self.ring);
        }
    }

    fn send(&mut self, key: ConnectionKey, chunks: Chunks) {
        self.start_sending(key, Sending::new(chunks));
    }

    fn send_static(&mut self, key: ConnectionKey, bytes: &'static [u8]) {
        self.start_sending(key, Sending::of_static(bytes));
    }

    fn close(&mut self, key: ConnectionKey) {
        let until = self.now + LINGER;
        let Some(connection) = find(&mut self.connections, key) else { return };
        if connection.phase == Phase::Open {
            connection.phase = Phase::Stopping;
            self.advance(key);
            self.lingering.push_back((until, key));
        }
    }

    fn submit_and_wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        loop {
            self.expire(self.now);
            self.feed_starved();
            self.buffers.offer();
            let until = deadline.into_iter().chain(self.next_own_deadline()).min();
            self.ring.submit_and_wait(self.plan_wait(until))?;
            self.now = clock::monotonic();
            let is_due = deadline.is_some_and(|deadline| deadline <= self.now);
            if is_due || !self.ready.is_empty() || self.ring.has_completions() {
                return Ok(());
            }
        }
    }

    fn next_completion(&mut self) -> Option<Completion<UringSocket, ReceivedBuffer>> {
        if let Some(completion) = self.ready.pop_front() {
            return Some(completion);
        }
        loop {
            let entry = self.ring.pop()?;
            if let Some(completion) = self.translate(&entry) {
                return Some(completion);
            }
        }
    }

    fn bytes<'a>(&'a self, buffer: &'a ReceivedBuffer) -> &'a [u8] {
        self.buffers.bytes(buffer)
    }

    fn release(&mut self, buffer: ReceivedBuffer) {
        self.buffers.release(buffer);
    }

    fn doorbell(&self) -> io::Result<UringDoorbell> {
        Ok(UringDoorbell(Arc::new(self.ring.descriptor()?)))
    }

    fn ring_doorbell(&mut self, other: &UringDoorbell) {
        self.ring.ring_doorbell(other.0.as_fd());
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.waker) as Arc<dyn Wake>
    }
}

impl Drop for UringDriver {
    /// Waits until the kernel is done with all memory and descriptors.
    fn drop(&mut self) {
        self.ring.cancel_all();
        let give_up = clock::monotonic() + DROP_PATIENCE;
        while self.ring.in_flight() > 0 {
            let is_over = give_up <= clock::monotonic();
            if is_over || self.ring.submit_and_wait(Wait::Block(Some(give_up))).is_err() {
                break;
            }
            while let Some(entry) = self.ring.pop() {
                self.forget(&entry);
            }
        }
        if self.ring.in_flight() > 0 {
            // Better to lose the memory than to have it written to after it was given away.
            std::mem::forget(std::mem::take(&mut self.connections));
            std::mem::forget(std::mem::take(&mut self.listeners));
            std::mem::forget(std::mem::take(&mut self.scratch));
            std::mem::forget(Arc::clone(&self.waker));
            self.buffers.leak();
        }
    }
}
