//! Listeners: one multishot accept each.

use super::connection::Operation;
use super::op::{Kind, Op};
use super::ring::Ring;
use crate::base::id::{Key, ListenerId};
use crate::base::time::Instant;
use io_uring::{opcode, types};
use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd;

/// What is wanted of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    Accepting,
    Resting,
    Gone,
}

/// A listener.
pub(super) struct Listener {
    pub(super) id: ListenerId,
    socket: TcpListener,
    accept: Operation,
    wanted: Wanted,
    /// When to try again after a failure.
    pub(super) retry_at: Option<Instant>,
}

impl Listener {
    pub(super) fn new(id: ListenerId, socket: TcpListener) -> io::Result<Self> {
        // The ring does the waiting; on a non-blocking descriptor it would return at once instead.
        socket.set_nonblocking(false)?;
        // Accepted sockets inherit it, which saves a system call for each.
        rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
        Ok(Self { id, socket, accept: Operation::Idle, wanted: Wanted::Accepting, retry_at: None })
    }

    fn op(index: u32) -> Op {
        Op::new(Kind::Accept, Key { index, generation: 0 })
    }

    /// Starts or ends accepting, as is wanted. `index` is the listener's place in the driver.
    pub(super) fn advance(&mut self, index: u32, ring: &mut Ring) {
        match (self.accept, self.wanted) {
            (Operation::Idle, Wanted::Accepting) if self.retry_at.is_none() => {
                let socket = types::Fd(self.socket.as_raw_fd());
                let entry = opcode::AcceptMulti::new(socket).flags(libc::SOCK_CLOEXEC).build();
                // SAFETY: the descriptor is closed only once the accept has ended (`is_gone`).
                unsafe { ring.push(entry, Self::op(index)) };
                self.accept = Operation::Active;
            }
            (Operation::Active, Wanted::Resting | Wanted::Gone) => {
                ring.cancel(Self::op(index));
                self.accept = Operation::Cancelled;
            }
            (Operation::Idle | Operation::Cancelled, Wanted::Accepting | Wanted::Resting | Wanted::Gone)
            | (Operation::Active, Wanted::Accepting) => {}
        }
    }

    /// Rests until [`Listener::resume`].
    pub(super) fn pause(&mut self) {
        if self.wanted == Wanted::Accepting {
            self.wanted = Wanted::Resting;
        }
    }

    /// Accepts again.
    pub(super) fn resume(&mut self) {
        if self.wanted == Wanted::Resting {
            self.wanted = Wanted::Accepting;
        }
    }

    /// Ends accepting for good.
    pub(super) fn stop(&mut self) {
        self.wanted = Wanted::Gone;
        self.retry_at = None;
    }

    /// Whether `stop` was called.
    pub(super) fn is_stopping(&self) -> bool {
        self.wanted == Wanted::Gone
    }

    /// Whether `stop` was called and nothing is under way.
    pub(super) fn is_gone(&self) -> bool {
        self.is_stopping() && self.accept == Operation::Idle
    }

    /// The multishot accept has ended, for whatever reason.
    pub(super) fn ended(&mut self) {
        self.accept = Operation::Idle;
    }
}
