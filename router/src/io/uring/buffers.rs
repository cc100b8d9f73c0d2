//! The receive buffers of one shard: one ring of buffers from which the kernel takes.
//!
//! # Cost
//! Giving a buffer back is one 16-byte entry and one store of the tail; no system call.

use super::ring::Ring;
use io_uring::types::BufRingEntry;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// The group of the one buffer ring that a shard has.
pub(super) const GROUP: u16 = 0;

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

/// Anonymous memory, whole pages of it.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
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
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { start, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and whoever had pointers into it is done (see `BufferRing`).
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// The buffers, and the ring in which free ones are offered to the kernel.
///
/// The kernel writes into a buffer from the moment it is offered until a completion names it. The
/// owner must not drop this before every receive of the ring is over, or must [`BufferRing::leak`] it.
pub(super) struct BufferRing {
    entries: Mapping,
    memory: Mapping,
    buffer_size: u32,
    count: u16,
    tail: u16,
    free: u32,
    owner: u32,
}

impl BufferRing {
    /// Maps `count` buffers (a power of two, at most 2^15) of `buffer_size` bytes, and offers them all.
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
        let mut buffers = Self { entries, memory, buffer_size, count, tail: 0, free: 0, owner };
        for id in 0..count {
            buffers.offer(id);
        }
        Ok(buffers)
    }

    /// How many buffers are offered, as far as the completions taken so far tell.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Takes over buffer `id`, into which the kernel has written `length` bytes.
    pub(super) fn take(&mut self, id: u16, length: u32) -> ReceivedBuffer {
        assert!(id < self.count && length <= self.buffer_size, "the kernel names a buffer that it was given");
        self.free -= 1;
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

    /// Offers `buffer` to the kernel again.
    pub(super) fn release(&mut self, buffer: ReceivedBuffer) {
        assert_eq!(buffer.owner, self.owner, "a buffer goes back to the driver that received it");
        self.offer(buffer.id);
    }

    fn offer(&mut self, id: u16) {
        let base: *mut BufRingEntry = self.entries.start.as_ptr().cast();
        let place = usize::from(self.tail & (self.count - 1));
        let address = self.memory.start.as_ptr() as u64 + u64::from(id) * u64::from(self.buffer_size);
        // SAFETY: `place` is inside of the mapping, which holds `count` entries. The kernel doesn't look at
        // this entry before the tail says so.
        let entry = unsafe { &mut *base.add(place) };
        entry.set_addr(address);
        entry.set_len(self.buffer_size);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        self.free += 1;
        // SAFETY: `base` is the start of the ring; its tail lies in the first entry, aligned, and only
        // this thread writes it.
        unsafe { AtomicU16::from_ptr(BufRingEntry::tail(base).cast_mut()) }
            .store(self.tail, Ordering::Release);
    }

    /// Gives the memory up for ever, because the kernel may still write into it.
    pub(super) fn leak(self) {
        std::mem::forget(self);
    }
}
