//! One connection: what is under way for it, and what to do next.
//!
//! A connection is changed by the shard's calls and by completions; after each change
//! [`Connection::advance`] starts whatever its state asks for. Closing goes through these phases:
//!
//! ```text
//!  Open --close()--> Stopping --all ended--> Draining --peer's end, or limit--> Releasing --> gone
//!                        |                                                          ^
//!                        +------------- the peer had ended already -----------------+
//! ```
//!
//! Draining is what keeps the promise that bytes already handed to the kernel are delivered: closing a
//! descriptor with unread bytes resets the connection (RFC 1122 §4.2.2.13), which makes the kernel drop what
//! it hasn't sent. So we end our direction, and throw the peer's bytes away until it ends its own.

use super::buffers;
use super::op::{Kind, Op};
use super::ring::Ring;
use super::send::Sending;
use crate::base::id::{ConnectionKey, Key};
use io_uring::{opcode, squeue, types};
use rustix::net::{Shutdown, shutdown};
use std::num::NonZeroI32;
use std::os::fd::{AsRawFd, OwnedFd};

/// The state of one operation that may be under way once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    /// Not under way.
    Idle,
    /// Under way.
    Active,
    /// Under way, and the kernel was asked to give it up.
    Cancelled,
}

/// The state of receiving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Receive {
    /// Not under way: paused, or not started.
    Idle,
    /// The multishot receive is under way.
    Armed,
    /// It is under way, and the kernel was asked to give it up.
    Cancelled,
    /// It ended because no buffer was free.
    Starved,
    /// The peer has ended, or receiving failed.
    Ended,
}

/// The state of looking at what is there, however little.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// Not under way.
    Idle,
    /// Under way. It ends by itself, in the wait that submits it.
    Active,
    /// It found no buffer free, and begins again when there is one.
    Starved,
}

/// How far closing has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Not closing.
    Open,
    /// What is under way is being given up.
    Stopping,
    /// Our direction is ended; the peer's bytes are thrown away until it ends its own.
    Draining(Operation),
    /// The descriptor is being closed.
    Releasing,
}

/// Where a connection being drained puts its bytes. Nobody ever reads them.
pub(super) struct Scratch(Box<[u8]>);

/// Bytes that one receive of a connection being drained takes at most.
const SCRATCH_BYTES: usize = 64 * 1024;

impl Default for Scratch {
    fn default() -> Self {
        Self(vec![0; SCRATCH_BYTES].into_boxed_slice())
    }
}

/// One connection.
pub(super) struct Connection {
    pub(super) key: ConnectionKey,
    pub(super) descriptor: OwnedFd,
    pub(super) phase: Phase,
    pub(super) receive: Receive,
    pub(super) look: Look,
    /// Why receiving failed, if a look was told: the kernel says that once.
    pub(super) failure: Option<NonZeroI32>,
    pub(super) paused: bool,
    /// Whether it stands in the queue for buffers.
    pub(super) is_queued: bool,
    /// The poll for hang-up. It starts with the first pause, and stays.
    pub(super) watch: Operation,
    pub(super) sending: Option<Sending>,
}

impl Connection {
    pub(super) fn new(key: ConnectionKey, descriptor: OwnedFd) -> Self {
        Self {
            key,
            descriptor,
            phase: Phase::Open,
            receive: Receive::Idle,
            look: Look::Idle,
            failure: None,
            paused: false,
            is_queued: false,
            watch: Operation::Idle,
            sending: None,
        }
    }

    fn op(&self, kind: Kind) -> Op {
        Op::new(kind, Key::from(self.key))
    }

    fn socket(&self) -> types::Fd {
        types::Fd(self.descriptor.as_raw_fd())
    }

    /// Starts what the state asks for.
    pub(super) fn advance(&mut self, ring: &mut Ring, scratch: &mut Scratch) {
        match self.phase {
            Phase::Open => self.advance_open(ring),
            Phase::Stopping => self.advance_stopping(ring, scratch),
            Phase::Draining(Operation::Idle) => self.release(ring),
            Phase::Draining(Operation::Active | Operation::Cancelled) | Phase::Releasing => {}
        }
    }

    fn advance_open(&mut self, ring: &mut Ring) {
        match (self.receive, self.paused) {
            // Not beside a look, which might take the earlier bytes and be reported later: the kernel reports what a
            // multishot receive finds at once, and what other operations do at the end of a submission.
            (Receive::Idle, false) if self.look == Look::Active => {}
            (Receive::Idle, false) => self.arm_receive(ring),
            (Receive::Armed, true) => {
                ring.cancel(self.op(Kind::Receive));
                self.receive = Receive::Cancelled;
            }
            (Receive::Starved, true) => self.receive = Receive::Idle,
            (Receive::Idle | Receive::Cancelled, true)
            | (Receive::Armed | Receive::Cancelled | Receive::Starved, false)
            | (Receive::Ended, true | false) => {}
        }
        if self.paused && self.receive != Receive::Ended && self.watch == Operation::Idle {
            // Errors and hang-up are always reported; an orderly end of the peer isn't, which is right,
            // because it may stand behind bytes that nobody wants yet.
            let entry = opcode::PollAdd::new(self.socket(), (libc::POLLERR | libc::POLLHUP) as u32).build();
            // SAFETY: the descriptor stays open until the watch has ended (`is_quiet`).
            unsafe { ring.push(entry, self.op(Kind::Watch)) };
            self.watch = Operation::Active;
        }
    }

    pub(super) fn arm_receive(&mut self, ring: &mut Ring) {
        let entry = opcode::RecvMulti::new(self.socket(), buffers::GROUP).build();
        // SAFETY: the descriptor stays open until the receive has ended (`is_quiet`); the buffers belong to
        // the ring.
        unsafe { ring.push(entry, self.op(Kind::Receive)) };
        self.receive = Receive::Armed;
    }

    /// Starts a look, unless receiving itself is about to take whatever is there.
    pub(super) fn start_look(&mut self, ring: &mut Ring) {
        if self.receive != Receive::Armed || self.look != Look::Idle || self.paused {
            return;
        }
        // The length is that of the buffer.
        let entry = opcode::Recv::new(self.socket(), std::ptr::null_mut(), 0)
            .flags(libc::MSG_DONTWAIT)
            .buf_group(buffers::GROUP)
            .build()
            .flags(squeue::Flags::BUFFER_SELECT);
        // SAFETY: the descriptor stays open until the look has ended (`is_quiet`); the buffers belong to the ring.
        unsafe { ring.push(entry, self.op(Kind::Look)) };
        self.look = Look::Active;
    }

    /// Sets how many bytes make the socket readable. The kernel looks at once whether as many are there.
    pub(super) fn set_receive_mark(&self, bytes: u32) {
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the descriptor is open, and the kernel reads the four bytes of `value` during the call.
        let _unchanged = unsafe {
            libc::setsockopt(
                self.descriptor.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVLOWAT,
                (&raw const value).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        };
    }

    fn is_quiet(&self) -> bool {
        let receiving = match self.receive {
            Receive::Armed | Receive::Cancelled => true,
            Receive::Idle | Receive::Starved | Receive::Ended => false,
        };
        !receiving && self.look != Look::Active && self.watch == Operation::Idle && self.sending.is_none()
    }

    fn advance_stopping(&mut self, ring: &mut Ring, scratch: &mut Scratch) {
        if self.receive == Receive::Armed {
            ring.cancel(self.op(Kind::Receive));
            self.receive = Receive::Cancelled;
        }
        if self.watch == Operation::Active {
            ring.cancel(self.op(Kind::Watch));
            self.watch = Operation::Cancelled;
        }
        let send = self.op(Kind::Send);
        if let Some(sending) = &mut self.sending
            && !sending.is_cancelled
        {
            ring.cancel(send);
            sending.is_cancelled = true;
        }
        if !self.is_quiet() {
            return;
        }
        if self.receive == Receive::Ended || shutdown(&self.descriptor, Shutdown::Write).is_err() {
            self.release(ring);
        } else {
            self.drain(ring, scratch);
        }
    }

    /// Throws away what the peer sends.
    pub(super) fn drain(&mut self, ring: &mut Ring, scratch: &mut Scratch) {
        // MSG_TRUNC: a TCP socket drops the bytes without copying them.
        let entry = opcode::Recv::new(self.socket(), scratch.0.as_mut_ptr(), SCRATCH_BYTES as u32)
            .flags(libc::MSG_TRUNC)
            .build();
        // SAFETY: the descriptor stays open until the drain has ended; the scratch memory lives as long as
        // the driver, which ends all operations before it goes, and nothing else uses it.
        unsafe { ring.push(entry, self.op(Kind::Drain)) };
        self.phase = Phase::Draining(Operation::Active);
    }

    fn release(&mut self, ring: &mut Ring) {
        let entry = opcode::Close::new(self.socket()).build();
        // SAFETY: nothing else is under way for the descriptor; the driver forgets it, without closing
        // it, when this completes.
        unsafe { ring.push(entry, self.op(Kind::Close)) };
        self.phase = Phase::Releasing;
    }

    /// Closing has taken long enough: ends whatever it still waits for.
    pub(super) fn hurry(&mut self, ring: &mut Ring) {
        match self.phase {
            Phase::Open | Phase::Releasing | Phase::Draining(Operation::Idle | Operation::Cancelled) => {}
            Phase::Stopping => {
                // Cancelling didn't help; a socket that is shut down ends everything that waits for it.
                let _unconnected = shutdown(&self.descriptor, Shutdown::Both);
            }
            Phase::Draining(Operation::Active) => {
                ring.cancel(self.op(Kind::Drain));
                self.phase = Phase::Draining(Operation::Cancelled);
            }
        }
    }
}
