//! The driver over the simulated network.

use super::world::{Happening, LineId, Sending, World};
use crate::base::id::{ConnectionKey, ListenerId};
use crate::base::time::Instant;
use crate::io::driver::{Chunks, Completion, Driver, Wake};
use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A simulated listener; see [`SimNetwork::listener`](super::SimNetwork::listener).
#[derive(Debug)]
pub struct SimListener(pub(super) ());

/// A simulated socket. Dropping it closes it.
pub struct SimSocket {
    world: Rc<RefCell<World>>,
    line: LineId,
}

impl SimSocket {
    pub(super) fn new(world: Rc<RefCell<World>>, line: LineId) -> Self {
        Self { world, line }
    }
}

impl core::fmt::Debug for SimSocket {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SimSocket({})", self.line)
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        self.world.borrow_mut().abandon(self.line);
    }
}

/// Received bytes, until [`Driver::release`] takes them back.
#[derive(Debug)]
#[must_use = "a buffer that is not released is missing for ever"]
pub struct SimBuffer(Box<[u8]>);

/// Wakes the simulated shard.
#[derive(Debug, Default)]
pub(super) struct SimWaker {
    pub(super) is_pending: AtomicBool,
}

impl Wake for SimWaker {
    fn wake(&self) {
        self.is_pending.store(true, Ordering::Release);
    }
}

/// Wakes a simulated shard from another one.
#[derive(Clone, Debug)]
pub struct SimDoorbell(Arc<SimWaker>);

/// The simulated driver. A wait moves the clock to the next event, or to its deadline, and returns at once.
pub struct SimDriver {
    world: Rc<RefCell<World>>,
    waker: Arc<SimWaker>,
    now: Instant,
}

impl SimDriver {
    pub(super) fn new(world: Rc<RefCell<World>>, waker: Arc<SimWaker>) -> Self {
        let now = world.borrow().now;
        Self { world, waker, now }
    }

    /// The socket's line in this network. One that was accepted in another comes here, and its peer follows.
    fn line_of_socket(&self, socket: &SimSocket) -> LineId {
        if Rc::ptr_eq(&self.world, &socket.world) {
            return socket.line;
        }
        let line = socket.world.borrow_mut().take_line(socket.line);
        let here = self.world.borrow_mut().adopt_line(line);
        socket.world.borrow_mut().lines[socket.line].moved = Some((Rc::downgrade(&self.world), here));
        here
    }

    fn with_line(&self, key: ConnectionKey, act: impl FnOnce(&mut World, LineId)) {
        let mut world = self.world.borrow_mut();
        if let Some(line) = world.line_of(key) {
            act(&mut world, line);
        }
    }
}

impl Driver for SimDriver {
    type Socket = SimSocket;
    type Received = SimBuffer;
    type Listener = SimListener;
    type Doorbell = SimDoorbell;

    fn now(&self) -> Instant {
        self.now
    }

    fn listen(&mut self, listener: ListenerId, _socket: SimListener) -> io::Result<()> {
        let mut world = self.world.borrow_mut();
        world.listeners.entry(listener).or_default().is_open = true;
        world.kick_backlog();
        Ok(())
    }

    fn pause_accepting(&mut self) {
        self.world.borrow_mut().is_accepting = false;
    }

    fn resume_accepting(&mut self) {
        let mut world = self.world.borrow_mut();
        world.is_accepting = true;
        world.kick_backlog();
    }

    fn stop_listening(&mut self) {
        let mut world = self.world.borrow_mut();
        for listener in world.listeners.values_mut() {
            listener.is_open = false;
            listener.is_stopped = true;
        }
        world.kick_backlog();
    }

    fn stop_listening_on(&mut self, listener: ListenerId) {
        let mut world = self.world.borrow_mut();
        let listener = world.listeners.entry(listener).or_default();
        listener.is_open = false;
        listener.is_stopped = true;
        world.kick_backlog();
    }

    fn open(&mut self, key: ConnectionKey, socket: SimSocket) {
        let line = self.line_of_socket(&socket);
        self.world.borrow_mut().open(line, key);
    }

    fn pause_receiving(&mut self, key: ConnectionKey) {
        self.with_line(key, World::pause);
    }

    fn resume_receiving(&mut self, key: ConnectionKey) {
        self.with_line(key, World::resume);
    }

    fn set_receive_mark(&mut self, key: ConnectionKey, bytes: u32) {
        self.with_line(key, |world, line| world.set_receive_mark(line, bytes));
    }

    fn look(&mut self, key: ConnectionKey) {
        self.with_line(key, World::look);
    }

    fn send(&mut self, key: ConnectionKey, chunks: Chunks) {
        let mut world = self.world.borrow_mut();
        let line = world.line_of(key).expect("a send names an open connection");
        world.send(line, key, Sending::new(chunks, &[]));
    }

    fn send_static(&mut self, key: ConnectionKey, bytes: &'static [u8]) {
        let mut world = self.world.borrow_mut();
        let line = world.line_of(key).expect("a send names an open connection");
        world.send(line, key, Sending::new(Chunks::new(), bytes));
    }

    fn close(&mut self, key: ConnectionKey) {
        self.with_line(key, World::close);
    }

    fn submit_and_wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let mut world = self.world.borrow_mut();
        loop {
            if self.waker.is_pending.swap(false, Ordering::AcqRel) {
                world.happened.push_back(Happening::Woken);
            }
            world.run_due_events();
            if !world.happened.is_empty() {
                break;
            }
            match (world.next_event_at(), deadline) {
                (Some(at), deadline) if deadline.is_none_or(|deadline| at <= deadline) => {
                    // A little later than the event, so that a turn finds several now and then.
                    let later = at + world.latency();
                    world.now = deadline.map_or(later, |deadline| later.min(deadline));
                }
                (_, Some(deadline)) => {
                    if !world.is_clock_held {
                        world.now = world.now.max(deadline);
                    }
                    break;
                }
                (_, None) => break,
            }
        }
        self.now = world.now;
        Ok(())
    }

    fn next_completion(&mut self) -> Option<Completion<SimSocket, SimBuffer>> {
        let mut world = self.world.borrow_mut();
        loop {
            return Some(match world.happened.pop_front()? {
                Happening::Accepted { listener, line } => {
                    let socket = SimSocket::new(Rc::clone(&self.world), line);
                    let port = u16::try_from(line % 65_535).unwrap_or(0) + 1;
                    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                    Completion::Accepted { listener, socket, peer }
                }
                Happening::AcceptFailed { listener, error } => Completion::AcceptFailed { listener, error },
                Happening::Received { connection, bytes } => {
                    if !world.is_open(connection) {
                        world.release_buffer();
                        continue;
                    }
                    Completion::Received { connection, buffer: SimBuffer(bytes) }
                }
                Happening::ReceiveEnded { connection, error } => {
                    if !world.is_open(connection) {
                        continue;
                    }
                    Completion::ReceiveEnded { connection, error }
                }
                Happening::Sent { connection, chunks, result } => {
                    Completion::Sent { connection, chunks, result }
                }
                Happening::Closed { connection } => Completion::Closed { connection },
                Happening::Woken => Completion::Woken,
            });
        }
    }

    fn bytes<'a>(&'a self, buffer: &'a SimBuffer) -> &'a [u8] {
        &buffer.0
    }

    fn release(&mut self, buffer: SimBuffer) {
        drop(buffer);
        self.world.borrow_mut().release_buffer();
    }

    fn doorbell(&self) -> io::Result<SimDoorbell> {
        Ok(SimDoorbell(Arc::clone(&self.waker)))
    }

    fn ring_doorbell(&mut self, other: &SimDoorbell) {
        other.0.wake();
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::clone(&self.waker) as Arc<dyn Wake>
    }
}
