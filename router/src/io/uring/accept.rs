//! Listeners: one multishot accept each.

use super::connection::Under;
use super::op::{Kind, Op};
use super::ring::Ring;
use crate::base::id::{Key, ListenerId};
use crate::base::time::Instant;
use io_uring::{opcode, types};
use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd;

/// A listener.
pub(super) struct Listener {
    pub(super) id: ListenerId,
    socket: TcpListener,
    accept: Under,
    /// When to try again after a failure.
    pub(super) retry_at: Option<Instant>,
}

impl Listener {
    pub(super) fn new(id: ListenerId, socket: TcpListener) -> io::Result<Self> {
        // The ring does the waiting; on a non-blocking descriptor it would return at once instead.
        socket.set_nonblocking(false)?;
        // Accepted sockets inherit it, which saves a system call for each.
        rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
        Ok(Self { id, socket, accept: Under::Idle, retry_at: None })
    }

    fn op(index: u32) -> Op {
        Op::new(Kind::Accept, Key { index, generation: 0 })
    }

    /// Starts accepting, if that isn't under way. `index` is the listener's place in the driver.
    pub(super) fn arm(&mut self, index: u32, ring: &mut Ring) {
        if self.accept != Under::Idle {
            return;
        }
        let entry =
            opcode::AcceptMulti::new(types::Fd(self.socket.as_raw_fd())).flags(libc::SOCK_CLOEXEC).build();
        // SAFETY: the descriptor is closed only once the accept has ended.
        unsafe { ring.push(entry, Self::op(index)) };
        self.accept = Under::Way;
        self.retry_at = None;
    }

    /// Asks the kernel to end accepting. Returns whether it has ended already.
    pub(super) fn stop(&mut self, index: u32, ring: &mut Ring) -> bool {
        self.retry_at = None;
        match self.accept {
            Under::Idle => true,
            Under::Way => {
                ring.cancel(Self::op(index));
                self.accept = Under::Cancelled;
                false
            }
            Under::Cancelled => false,
        }
    }

    /// Whether `stop` was called.
    pub(super) fn is_stopping(&self) -> bool {
        self.accept == Under::Cancelled
    }

    /// The multishot accept has ended, for whatever reason.
    pub(super) fn ended(&mut self) {
        self.accept = Under::Idle;
    }
}
