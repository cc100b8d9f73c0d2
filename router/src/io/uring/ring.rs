//! The io_uring of one shard: submission, waiting, completions.
//!
//! # Cost
//! One system call a turn (`io_uring_enter`) submits everything and waits. There is none when nothing
//! is to be submitted and completions are there already.
//!
//! A wait with a limit doesn't set a timer of its own and take it back: the next deadline of a busy shard moves on with each turn,
//! and programming a timer costs microseconds, most of all in a virtual machine. One alarm stays set instead, for the earliest
//! deadline so far, and is set anew when it has gone off or is too late.

use super::op::{Kind, Op};
use crate::base::time::Instant;
use io_uring::types::{SubmitArgs, TimeoutFlags, Timespec};
use io_uring::{EnterFlags, IoUring, Submitter, cqueue, opcode, squeue, types};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::time::Duration;

/// How long to wait for a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// Not at all: take what is there.
    Poll,
    /// Until there is one, but at most until then (`None`: without limit). It may end before.
    Block(Option<Instant>),
}

/// How long to wait before submitting again when the kernel is out of memory for requests.
const SUBMIT_RETRY: Duration = Duration::from_millis(1);

/// An io_uring that one thread uses: the one that created it.
pub(super) struct Ring {
    /// Borrows `*ring`. It knows the registered descriptor, which a fresh `Submitter` wouldn't.
    submitter: Submitter<'static>,
    /// Owned; made by `Box::into_raw`, and given back in `drop`.
    ring: NonNull<IoUring>,
    /// Operations that found the submission queue full, in order.
    backlog: VecDeque<squeue::Entry>,
    /// Operations that the kernel has, or will have, and that it will report the end of.
    in_flight: usize,
    /// Completions that the last wait found and that were not taken yet.
    visible: usize,
    /// Flags for a wait.
    wait_flags: EnterFlags,
    /// When the alarm goes off, if it is set.
    alarm: Option<Instant>,
    /// The same for the kernel, which reads it when the operation is submitted.
    alarm_time: Box<Timespec>,
}

impl Ring {
    /// Sets a ring up, for this thread only.
    pub(super) fn new(submission_entries: u32, completion_entries: u32) -> io::Result<Self> {
        let ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(completion_entries)
            .build(submission_entries)?;
        let ring = NonNull::from(Box::leak(Box::new(ring)));
        // SAFETY: the allocation lives until `drop` of this value, which is also the end of `submitter`;
        // only shared references to it are ever made.
        let mut submitter = unsafe { ring.as_ref() }.submitter();
        // The registered descriptor saves a look-up per enter; without it everything works as well.
        let _registered = submitter.register_ring_fd();
        // An idle router shouldn't look like one that waits for a disk, where the kernel can tell.
        // SAFETY: as above.
        let wait_flags = if unsafe { ring.as_ref() }.params().is_feature_no_iowait() {
            EnterFlags::NO_IOWAIT
        } else {
            EnterFlags::empty()
        };
        Ok(Self {
            submitter,
            ring,
            backlog: VecDeque::new(),
            in_flight: 0,
            visible: 0,
            wait_flags,
            alarm: None,
            alarm_time: Box::default(),
        })
    }

    /// For registrations.
    pub(super) fn submitter(&self) -> &Submitter<'static> {
        &self.submitter
    }

    /// How many operations the kernel has not reported the end of.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Adds an operation; it is submitted with the next wait, or at once if the queue is full.
    ///
    /// # Safety
    /// The memory and the descriptor that `entry` names must stay valid until its last completion.
    pub(super) unsafe fn push(&mut self, entry: squeue::Entry, op: Op) {
        self.in_flight += 1;
        // SAFETY: the caller's promise.
        unsafe { self.enqueue(entry.user_data(op.encode())) };
    }

    /// Asks the kernel to give up `op`, which then completes with ECANCELED (or otherwise, if it was
    /// just about to complete).
    pub(super) fn cancel(&mut self, op: Op) {
        let entry = opcode::AsyncCancel::new(op.encode()).build();
        self.push_cancel(entry, op);
    }

    /// Asks the kernel to give up everything.
    pub(super) fn cancel_all(&mut self) {
        for entry in self.backlog.drain(..) {
            if !is_uncounted(entry.get_user_data()) {
                self.in_flight -= 1;
            }
        }
        let entry = opcode::AsyncCancel2::new(types::CancelBuilder::any()).build();
        self.push_cancel(entry, Op::global(Kind::Cancel));
    }

    /// Sends a message to another ring: a completion of kind [`Kind::Doorbell`] there.
    pub(super) fn ring_doorbell(&mut self, other: BorrowedFd<'_>) {
        let message = Op::global(Kind::Doorbell).encode();
        let entry = opcode::MsgRingData::new(types::Fd(other.as_raw_fd()), 0, message, None).build();
        let entry = entry.flags(squeue::Flags::SKIP_SUCCESS).user_data(message);
        // SAFETY: the message names no memory. Its descriptor may be closed before the entry is submitted,
        // only when its shard has ended; then the message is lost or goes to a descriptor that isn't a ring,
        // and fails.
        unsafe { self.enqueue(entry) };
    }

    /// A descriptor of this ring, for other rings' messages.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the ring is alive.
        let ring = unsafe { self.ring.as_ref() };
        // SAFETY: the ring's descriptor is open as long as the ring is alive.
        unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }.try_clone_to_owned()
    }

    fn push_cancel(&mut self, entry: squeue::Entry, op: Op) {
        let op = Op { kind: Kind::Cancel, ..op };
        let entry = entry.flags(squeue::Flags::SKIP_SUCCESS).user_data(op.encode());
        // SAFETY: a cancellation names no memory, and no descriptor; an alarm's new time lives as long as the ring.
        unsafe { self.enqueue(entry) };
    }

    /// # Safety
    /// As [`Ring::push`].
    unsafe fn enqueue(&mut self, entry: squeue::Entry) {
        // SAFETY: the caller's promise.
        if self.backlog.is_empty() && unsafe { self.try_enqueue(&entry) } {
            return;
        }
        self.backlog.push_back(entry);
        // An error here comes again in the next wait, where it can be returned.
        let _later = self.submit_backlog();
    }

    /// # Safety
    /// As [`Ring::push`].
    unsafe fn try_enqueue(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: the ring is alive, and no other `SubmissionQueue` of it exists: each one lives for a
        // statement only. The entry is the caller's promise.
        unsafe { self.ring.as_ref().submission_shared().push(entry).is_ok() }
    }

    /// Moves the backlog into the submission queue, submitting whenever that is full.
    fn submit_backlog(&mut self) -> io::Result<()> {
        while let Some(entry) = self.backlog.front().cloned() {
            // SAFETY: whoever added the entry promised that what it names stays valid.
            if unsafe { self.try_enqueue(&entry) } {
                self.backlog.pop_front();
            } else if self.submitter.submit()? == 0 {
                return Err(io::Error::from_raw_os_error(libc::EAGAIN));
            }
        }
        Ok(())
    }

    /// Submits everything and waits. Afterwards [`Ring::has_completions`] tells whether there are any.
    ///
    /// It may return early (a signal, say).
    pub(super) fn submit_and_wait(&mut self, wait: Wait) -> io::Result<()> {
        if let Wait::Block(Some(until)) = wait {
            self.set_alarm(until);
        }
        let result = self.submit_backlog().and_then(|()| self.enter(wait));
        let result = match result {
            Ok(()) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR) => Ok(()),
                // Out of memory for requests, or a completion queue that has to be emptied first: what
                // was not submitted stays in the queue and goes with the next wait.
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => {
                    if self.count_completions() == 0 && wait != Wait::Poll {
                        std::thread::sleep(SUBMIT_RETRY);
                    }
                    Ok(())
                }
                Some(_) | None => Err(error),
            },
        };
        self.visible = self.count_completions();
        result
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        // The head of the completion queue was published when the last completion was taken.
        match wait {
            Wait::Poll => {
                // SAFETY: as in `try_enqueue`.
                let queue = unsafe { self.ring.as_ref().submission_shared() };
                if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
                    return Ok(());
                }
                self.submitter.submit()?;
            }
            Wait::Block(_) => {
                self.submitter.submit_with_args_and_flags(1, &SubmitArgs::new(), self.wait_flags)?;
            }
        }
        Ok(())
    }

    /// Makes sure that there is a completion at `until` at the latest.
    fn set_alarm(&mut self, until: Instant) {
        if self.alarm.is_some_and(|alarm| alarm <= until) {
            return;
        }
        let is_set = self.alarm.replace(until).is_some();
        let (seconds, nanoseconds) = (until.0 / 1_000_000_000, until.0 % 1_000_000_000);
        #[allow(clippy::cast_possible_truncation)] // below 2^30
        let time = Timespec::new().sec(seconds).nsec(nanoseconds as u32);
        *self.alarm_time = time;
        let time: *const Timespec = &raw const *self.alarm_time;
        let alarm = Op::global(Kind::Alarm);
        if is_set {
            // If it has just gone off, this fails, and the completion is there.
            let entry = opcode::TimeoutUpdate::new(alarm.encode(), time).flags(TimeoutFlags::ABS).build();
            self.push_cancel(entry, alarm);
        } else {
            let entry = opcode::Timeout::new(time).flags(TimeoutFlags::ABS).build();
            // SAFETY: the time lives as long as the ring. The kernel copies it when the entry is submitted; until then it
            // may be overwritten with an earlier one.
            unsafe { self.enqueue(entry.user_data(alarm.encode())) };
        }
    }

    fn count_completions(&self) -> usize {
        // SAFETY: the ring is alive, and no other `CompletionQueue` of it exists: each one lives for a
        // statement only.
        unsafe { self.ring.as_ref().completion_shared() }.len()
    }

    /// Whether completions are there that the next wait needn't wait for.
    pub(super) fn has_completions(&self) -> bool {
        self.visible > 0 || self.count_completions() > 0
    }

    /// The next completion that the last wait found.
    pub(super) fn pop(&mut self) -> Option<cqueue::Entry> {
        self.visible = self.visible.checked_sub(1)?;
        // SAFETY: as in `count_completions`.
        let entry = unsafe { self.ring.as_ref().completion_shared() }.next()?;
        if !is_uncounted(entry.user_data()) && !cqueue::more(entry.flags()) {
            self.in_flight -= 1;
        }
        if entry.user_data() == Op::global(Kind::Alarm).encode() {
            self.alarm = None;
        }
        Some(entry)
    }
}

/// Whether the end of such an operation isn't waited for: it names no memory of ours.
fn is_uncounted(user_data: u64) -> bool {
    Op::decode(user_data).is_some_and(|op| matches!(op.kind, Kind::Cancel | Kind::Doorbell | Kind::Alarm))
}

impl Drop for Ring {
    fn drop(&mut self) {
        let _unregistered = self.submitter.unregister_ring_fd();
        // SAFETY: made by leaking a `Box` in `new`; `submitter`, which borrows it, isn't used any more.
        drop(unsafe { Box::from_raw(self.ring.as_ptr()) });
    }
}
