//! The receive buffers of one shard: one ring of buffers from which the kernel takes.
//!
//! # Cost
//! Giving a buffer back is a push on a stack; offering it again is one 16-byte entry. No system call.

use super::ring::Ring;
use io_uring::types::BufRingEntry;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// The group of the one buffer ring that a shard has.
pub(super) const GROUP: u16 = 0;

/// Buffers that are offered at least, if there are so many.
const OFFERED_MIN: u16 = 32;

/// Waits with bytes after which the number of offered buffers is fitted to what was used in them.
const FITTING_PERIOD: u16 = 4096;

/// Tells the buffers of several drivers apart.
static NEXT_OWNER: AtomicU32 = AtomicU32::new(0);

/// Received bytes: a buffer that the kernel has filled, until [`Driver::release`] gives it back.
///
/// [`Driver::release`]: crate::io::driver::Driver::release
#[derive(Debug)]
#[must_use = "a buffer that is not released is lost to its ring"]
pub struct ReceivedBuffer {
    owner: u32,
    length: u32,
    id: u16,
}

/// The size of a huge page, on x86-64 and on most others.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Anonymous memory, whole pages of it.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
    is_leaked: bool,
}

impl Mapping {
    /// Maps `length` bytes and touches them, so that they lie close to the thread that calls.
    fn new(length: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping touches no memory that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if length >= HUGE_PAGE_BYTES {
            // The address cache of a CPU holds all buffers then. Where huge pages are off, small ones do.
            // SAFETY: the range was just mapped, and advice changes nothing in it.
            let _advised = unsafe { libc::madvise(start, length, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: as above; what is made present are pages of zeros.
        if unsafe { libc::madvise(start, length, libc::MADV_POPULATE_WRITE) } != 0 {
            let error = io::Error::last_os_error();
            // SAFETY: nobody else knows the mapping.
            unsafe { libc::munmap(start, length) };
            return Err(error);
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { start, length, is_leaked: false })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.is_leaked {
            // SAFETY: the mapping is ours, and whoever had pointers into it is done (see `BufferRing`).
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}

/// The buffers, and the ring in which free ones are offered to the kernel.
///
/// The kernel takes buffers in the order in which they were offered. If all were offered, it would go
/// round through all of their memory, and find each one cold. So only about twice as many are offered as
/// one wait uses, those that were released last; the number doubles whenever a receive finds none.
///
/// The kernel writes into a buffer from the moment it is offered until a completion names it. The
/// owner must not drop this before every receive of the ring is over, or must have called [`BufferRing::leak`].
pub(super) struct BufferRing {
    entries: Mapping,
    memory: Mapping,
    buffer_size: u32,
    count: u16,
    tail: u16,
    /// Free and not offered, the one released last on top.
    spare: Vec<u16>,
    /// Offered, and not known to be taken.
    offered: u16,
    /// How many to offer.
    target: u16,
    /// Taken since the last wait, and the most that were taken in one wait of this period.
    taken: u16,
    taken_max: u16,
    waits: u16,
    was_starved: bool,
    owner: u32,
}

impl BufferRing {
    /// Maps `count` buffers (a power of two, at most 2^15) of `buffer_size` bytes. None is offered yet.
    pub(super) fn new(ring: &Ring, buffer_size: u32, count: u16) -> io::Result<Self> {
        if !count.is_power_of_two() || count > 1 << 15 || buffer_size == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the number of receive buffers must be a power of two of at most 32768, and their size positive",
            ));
        }
        let entries = Mapping::new(usize::from(count) * size_of::<BufRingEntry>())?;
        let memory = Mapping::new(usize::from(count) * buffer_size as usize)?;
        // SAFETY: the mapping is page-aligned, holds `count` entries, and outlives the registration: it
        // ends with the ring, which the driver drops first.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(entries.start.as_ptr() as u64, count, GROUP, 0)?;
        }
        let owner = NEXT_OWNER.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            entries,
            memory,
            buffer_size,
            count,
            tail: 0,
            spare: (0..count).rev().collect(),
            offered: 0,
            target: OFFERED_MIN.min(count),
            taken: 0,
            taken_max: 0,
            waits: 0,
            was_starved: false,
            owner,
        })
    }

    /// How many buffers are neither with the kernel's completions nor with the shard, as far as the
    /// completions taken so far tell.
    pub(super) fn free(&self) -> usize {
        usize::from(self.offered) + self.spare.len()
    }

    /// Offers as many buffers as the next wait is likely to use. To be called before each wait.
    pub(super) fn offer(&mut self) {
        // Waits that brought nothing don't count: a shard that spins has thousands of them in any lull.
        self.waits += u16::from(self.taken > 0);
        self.taken_max = self.taken_max.max(self.taken);
        self.taken = 0;
        if std::mem::take(&mut self.was_starved) {
            self.target = self.target.saturating_mul(2).min(self.count);
        }
        if self.waits == FITTING_PERIOD {
            let likely = (2 * u32::from(self.taken_max)).max(u32::from(OFFERED_MIN));
            self.target = u16::try_from(likely).unwrap_or(u16::MAX).min(self.count);
            (self.waits, self.taken_max) = (0, 0);
        }
        let tail = self.tail;
        while self.offered < self.target
            && let Some(id) = self.spare.pop()
        {
            self.write_entry(id);
            self.offered += 1;
        }
        if self.tail != tail {
            self.publish_tail();
        }
    }

    /// A receive found no buffer: offers more from the next wait on.
    pub(super) fn on_starvation(&mut self) {
        self.was_starved = true;
    }

    /// Takes over buffer `id`, into which the kernel has written `length` bytes.
    pub(super) fn take(&mut self, id: u16, length: u32) -> ReceivedBuffer {
        assert!(id < self.count && length <= self.buffer_size, "the kernel names a buffer that it was given");
        self.offered -= 1;
        self.taken += 1;
        ReceivedBuffer { owner: self.owner, length, id }
    }

    /// The bytes in `buffer`.
    pub(super) fn bytes<'a>(&'a self, buffer: &'a ReceivedBuffer) -> &'a [u8] {
        assert_eq!(buffer.owner, self.owner, "a buffer is read through the driver that received it");
        let offset = usize::from(buffer.id) * self.buffer_size as usize;
        // SAFETY: only `take` makes a `ReceivedBuffer`, with an id and a length inside of `memory`, for a
        // buffer that the kernel is done with; while the value exists it isn't offered again.
        unsafe { std::slice::from_raw_parts(self.memory.start.as_ptr().add(offset), buffer.length as usize) }
    }

    /// Takes `buffer` back.
    pub(super) fn release(&mut self, buffer: ReceivedBuffer) {
        assert_eq!(buffer.owner, self.owner, "a buffer goes back to the driver that received it");
        self.spare.push(buffer.id);
    }

    fn base(&self) -> *mut BufRingEntry {
        self.entries.start.as_ptr().cast()
    }

    /// Writes the entry that offers buffer `id`; the kernel sees it once the tail is published.
    fn write_entry(&mut self, id: u16) {
        let place = usize::from(self.tail & (self.count - 1));
        let address = self.memory.start.as_ptr() as u64 + u64::from(id) * u64::from(self.buffer_size);
        // SAFETY: `place` is inside of the mapping, which holds `count` entries. The kernel doesn't look at
        // this entry before the tail says so.
        let entry = unsafe { &mut *self.base().add(place) };
        entry.set_addr(address);
        entry.set_len(self.buffer_size);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish_tail(&mut self) {
        // SAFETY: the tail lies in the first entry of the ring, aligned, and only this thread writes it.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.base()).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// Gives the memory up for ever, because the kernel may still write into it.
    pub(super) fn leak(&mut self) {
        self.entries.is_leaked = true;
        self.memory.is_leaked = true;
    }
}
