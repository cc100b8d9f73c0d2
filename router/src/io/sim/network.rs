//! The test's handle on the simulated network.

use super::SimOptions;
use super::driver::{SimDriver, SimListener, SimSocket, SimWaker};
use super::peer::SimPeer;
use super::world::{Event, Stage, World};
use crate::base::id::ListenerId;
use crate::base::time::Instant;
use core::time::Duration;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A simulated network around one shard. Clones are handles on the same network.
///
/// A socket that its driver accepted may be opened by the driver of another network, as one shard hands it to
/// another: the connection goes on there, by that network's clock and options, and its [`SimPeer`] follows.
#[derive(Clone)]
pub struct SimNetwork {
    world: Rc<RefCell<World>>,
    waker: Arc<SimWaker>,
    has_driver: Rc<Cell<bool>>,
}

impl SimNetwork {
    /// A network with the default [`SimOptions`], whose whims come from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_options(seed, SimOptions::default())
    }

    /// A network that behaves as `options` say.
    #[must_use]
    pub fn with_options(seed: u64, options: SimOptions) -> Self {
        Self {
            world: Rc::new(RefCell::new(World::new(seed, options))),
            waker: Arc::default(),
            has_driver: Rc::default(),
        }
    }

    /// The driver for the shard.
    ///
    /// # Panics
    /// If there is one already: the driver moves the clock, so that there can be but one.
    #[must_use]
    pub fn driver(&self) -> SimDriver {
        assert!(!self.has_driver.replace(true), "a network has one driver");
        SimDriver::new(Rc::clone(&self.world), Arc::clone(&self.waker))
    }

    /// What [`Driver::listen`](crate::io::driver::Driver::listen) takes.
    #[must_use]
    pub fn listener(&self) -> SimListener {
        SimListener(())
    }

    /// A peer that connects to `listener`, now or as soon as that listens.
    pub fn connect(&self, listener: ListenerId) -> SimPeer {
        let mut world = self.world.borrow_mut();
        let line = world.add_line(Some(listener), Stage::Backlog);
        world.schedule(Event::Accept(line));
        SimPeer::new(Rc::clone(&self.world), line)
    }

    /// A connected socket that the shard didn't accept (it was dialled, say), and the peer at its other end.
    #[must_use]
    pub fn socket(&self) -> (SimSocket, SimPeer) {
        let line = self.world.borrow_mut().add_line(None, Stage::Socket);
        (SimSocket::new(Rc::clone(&self.world), line), SimPeer::new(Rc::clone(&self.world), line))
    }

    /// Makes the next accept of `listener` fail with `error`.
    pub fn fail_accept(&self, listener: ListenerId, error: io::Error) {
        self.world.borrow_mut().listeners.entry(listener).or_default().failures.push_back(error);
    }

    /// The virtual time. It starts at one second.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.world.borrow().now
    }

    /// Moves the clock on. What becomes due meanwhile happens in the shard's next wait.
    pub fn advance(&self, time: Duration) {
        let mut world = self.world.borrow_mut();
        world.now = world.now + time;
    }

    /// Whether a wait with nothing else to do jumps to its deadline (`false`, the default) or returns at
    /// once (`true`), so that only [`SimNetwork::advance`] lets timers run out.
    pub fn hold_clock(&self, is_held: bool) {
        self.world.borrow_mut().is_clock_held = is_held;
    }

    /// Whether nothing is under way: the next wait would end with its deadline only.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let world = self.world.borrow();
        !world.has_events() && world.happened.is_empty() && !self.waker.is_pending.load(Ordering::Acquire)
    }

    /// How many received buffers the shard has not released.
    #[must_use]
    pub fn buffers_held(&self) -> usize {
        self.world.borrow().buffers_held
    }

    /// How many connections the shard has opened and whose `Closed` has not come.
    #[must_use]
    pub fn connections(&self) -> usize {
        let is_connection = |stage| match stage {
            Stage::Open(_) | Stage::Closing(_) => true,
            Stage::Backlog | Stage::Socket | Stage::Gone => false,
        };
        self.world.borrow().lines.iter().filter(|line| is_connection(line.stage)).count()
    }
}
