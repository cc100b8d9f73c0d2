//! Waking a shard from another thread, through an event descriptor that its ring polls.

use crate::io::driver::Wake;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The event descriptor. It is written to but never read: the poll reports each write, not the level.
#[derive(Debug)]
pub(super) struct EventWaker {
    descriptor: OwnedFd,
    /// Whether a wake-up is on its way, so that further ones need no system call.
    pending: AtomicBool,
}

impl EventWaker {
    pub(super) fn new() -> io::Result<Self> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { descriptor, pending: AtomicBool::new(false) })
    }

    /// What the ring polls.
    pub(super) fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// From here on calls of `wake` write again. To be called before the mailboxes are looked into.
    pub(super) fn acknowledge(&self) {
        self.pending.swap(false, Ordering::AcqRel);
    }
}

impl Wake for EventWaker {
    fn wake(&self) {
        if self.pending.swap(true, Ordering::AcqRel) {
            return;
        }
        // It can fail only when the counter is full, after 2^64 - 1 writes.
        let _written = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
    }
}
