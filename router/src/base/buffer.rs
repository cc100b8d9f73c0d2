//! Buffers for bytes on their way out, and the pool they come from.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::limits::{LARGE_CHUNK_BYTES, LARGE_CHUNKS_KEPT_MAX, SMALL_CHUNK_BYTES, SMALL_CHUNKS_KEPT_MAX};

/// A buffer on its way out.
#[derive(Debug)]
pub struct Chunk {
    /// The buffer. Its length is its capacity: bytes from `filled` on mean nothing.
    pub bytes: Box<[u8]>,
    /// How many bytes at the start of `bytes` are to be sent.
    pub filled: usize,
}

/// Buffers of two sizes, kept for the next use. One per shard; cloning it shares it.
#[derive(Clone, Debug, Default)]
pub struct BufferPool(Rc<RefCell<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    small: Vec<Box<[u8]>>,
    large: Vec<Box<[u8]>>,
    small_usage: Usage,
    large_usage: Usage,
}

#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    allocated: u64,
    freed: u64,
}

/// What a pool has done with buffers of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolUsage {
    /// The size of a buffer, in bytes.
    pub bytes: usize,
    /// Buffers that were allocated so far.
    pub allocated: u64,
    /// Buffers that were freed so far, since enough were kept.
    pub freed: u64,
    /// Buffers that are kept now for the next use.
    pub kept: usize,
    /// The most that are kept.
    pub kept_max: usize,
}

impl BufferPool {
    fn take(&self, large: bool) -> Chunk {
        let mut kept = self.0.borrow_mut();
        let kept = &mut *kept;
        let (list, usage, size) = if large {
            (&mut kept.large, &mut kept.large_usage, LARGE_CHUNK_BYTES)
        } else {
            (&mut kept.small, &mut kept.small_usage, SMALL_CHUNK_BYTES)
        };
        let bytes = list.pop().unwrap_or_else(|| {
            usage.allocated += 1;
            vec![0; size].into_boxed_slice()
        });
        Chunk { bytes, filled: 0 }
    }

    /// What was done with buffers of each size so far.
    #[must_use]
    pub fn usage(&self) -> [PoolUsage; 2] {
        let kept = self.0.borrow();
        let usage = |bytes, usage: Usage, list: &Vec<_>, kept_max| PoolUsage {
            bytes,
            allocated: usage.allocated,
            freed: usage.freed,
            kept: list.len(),
            kept_max,
        };
        [
            usage(SMALL_CHUNK_BYTES, kept.small_usage, &kept.small, SMALL_CHUNKS_KEPT_MAX),
            usage(LARGE_CHUNK_BYTES, kept.large_usage, &kept.large, LARGE_CHUNKS_KEPT_MAX),
        ]
    }

    /// Takes a buffer back. Those beyond what is worth keeping are freed.
    pub fn give_back(&self, chunk: Chunk) {
        let mut kept = self.0.borrow_mut();
        let kept = &mut *kept;
        let (list, usage, most) = if chunk.bytes.len() == LARGE_CHUNK_BYTES {
            (&mut kept.large, &mut kept.large_usage, LARGE_CHUNKS_KEPT_MAX)
        } else {
            (&mut kept.small, &mut kept.small_usage, SMALL_CHUNKS_KEPT_MAX)
        };
        if list.len() < most {
            list.push(chunk.bytes);
        } else {
            usage.freed += 1;
        }
    }
}

/// What one connection has to send: whole frames, in order, in chunks from the shard's pool.
///
/// A connection with nothing to send holds no buffer.
#[derive(Debug)]
pub struct Output {
    chunks: VecDeque<Chunk>,
    pending: usize,
    /// Whether all that waits is an empty frame, which needs no buffer. There is no chunk then.
    only_empty_frame: bool,
    pool: BufferPool,
}

/// An empty frame: size, data offset, type and channel (AMQP 1.0 §2.3.1, §2.4.5).
pub const EMPTY_FRAME: &[u8; 8] = &[0, 0, 0, 8, 2, 0, 0, 0];

impl Output {
    /// An empty output that takes its buffers from `pool`.
    #[must_use]
    pub fn new(pool: BufferPool) -> Self {
        Self { chunks: VecDeque::new(), pending: 0, only_empty_frame: false, pool }
    }

    /// How many bytes wait here (those that were taken for sending don't count).
    #[inline]
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Lets `write` fill a slice of at least `room` bytes, contiguous behind what is there, and keeps
    /// as many bytes as it returns. `room` may be at most [`LARGE_CHUNK_BYTES`].
    ///
    /// # Panics
    /// If `room` is larger, or `write` returns more than it was given: our own faults.
    #[inline]
    pub fn write<R>(&mut self, room: usize, write: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        let fits = self.chunks.back().is_some_and(|chunk| chunk.bytes.len() - chunk.filled >= room);
        if !fits {
            self.grow(room);
        }
        let chunk = self.chunks.back_mut().expect("a chunk with room was just made sure of");
        let (written, result) = write(&mut chunk.bytes[chunk.filled..]);
        assert!(written <= chunk.bytes.len() - chunk.filled);
        chunk.filled += written;
        self.pending += written;
        result
    }

    /// Adds an empty frame, unless something waits already: that shows as well that we live.
    pub fn put_empty_frame(&mut self) {
        if self.pending == 0 {
            self.clear();
            (self.only_empty_frame, self.pending) = (true, EMPTY_FRAME.len());
        }
    }

    /// Whether all that waited was an empty frame, which is taken then: [`EMPTY_FRAME`] is to be sent.
    pub fn take_empty_frame(&mut self) -> bool {
        let was_all = std::mem::take(&mut self.only_empty_frame);
        if was_all {
            self.pending = 0;
        }
        was_all
    }

    /// Adds a chunk: a small one to an empty output, large ones behind others.
    #[cold]
    fn grow(&mut self, room: usize) {
        assert!(room <= LARGE_CHUNK_BYTES, "a frame fits a chunk");
        // What is written now says as much.
        self.take_empty_frame();
        let large = !self.chunks.is_empty() || room > SMALL_CHUNK_BYTES;
        let chunk = self.pool.take(large);
        self.chunks.push_back(chunk);
    }

    /// Takes the oldest `most` chunks (or all there are) for sending.
    pub fn take_chunks(&mut self, most: usize) -> impl Iterator<Item = Chunk> + '_ {
        if self.take_empty_frame() {
            self.write(EMPTY_FRAME.len(), |slice| {
                slice[..EMPTY_FRAME.len()].copy_from_slice(EMPTY_FRAME);
                (EMPTY_FRAME.len(), ())
            });
        }
        let count = self.chunks.len().min(most);
        self.pending -= self.chunks.iter().take(count).map(|chunk| chunk.filled).sum::<usize>();
        self.chunks.drain(..count)
    }

    /// All bytes that wait, copied out; the output is empty afterwards. For command-line clients and tests.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.pending);
        if self.take_empty_frame() {
            bytes.extend_from_slice(EMPTY_FRAME);
        }
        while let Some(chunk) = self.chunks.pop_front() {
            bytes.extend_from_slice(&chunk.bytes[..chunk.filled]);
            self.pool.give_back(chunk);
        }
        self.pending = 0;
        bytes
    }

    /// Gives all buffers back; what waited is lost.
    pub fn clear(&mut self) {
        while let Some(chunk) = self.chunks.pop_front() {
            self.pool.give_back(chunk);
        }
        (self.only_empty_frame, self.pending) = (false, 0);
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_frame_takes_no_buffer_and_gives_way_to_others() {
        let pool = BufferPool::default();
        let mut output = Output::new(pool.clone());
        // Size, data offset in words, type, channel (§2.3.1).
        let frame = [&8_u32.to_be_bytes()[..], &[2], &[0], &0_u16.to_be_bytes()].concat();
        output.put_empty_frame();
        output.put_empty_frame();
        assert_eq!((output.pending(), pool.usage()[0].allocated), (8, 0));
        assert_eq!(output.take_bytes(), frame);
        output.put_empty_frame();
        let chunks: Vec<Chunk> = output.take_chunks(usize::MAX).collect();
        assert_eq!(
            chunks.iter().flat_map(|chunk| &chunk.bytes[..chunk.filled]).collect::<Vec<_>>(),
            frame.iter().collect::<Vec<_>>()
        );
        output.put_empty_frame();
        assert!(output.take_empty_frame() && !output.take_empty_frame());
        assert_eq!(output.pending(), 0);
        // Before and behind other bytes it isn't needed.
        for is_before in [true, false] {
            if is_before {
                output.put_empty_frame();
            }
            output.write(3, |slice| {
                slice[..3].copy_from_slice(b"abc");
                (3, ())
            });
            output.put_empty_frame();
            assert!(!output.take_empty_frame());
            assert_eq!(output.pending(), 3);
            assert_eq!(output.take_bytes(), b"abc");
        }
        output.put_empty_frame();
        output.clear();
        assert_eq!(output.take_bytes(), b"");
    }

    #[test]
    fn bytes_come_out_in_the_order_written_and_buffers_go_back() {
        let pool = BufferPool::default();
        let mut output = Output::new(pool.clone());
        let mut expected = Vec::new();
        for number in 0..20_000u32 {
            output.write(64, |slice| {
                slice[..4].copy_from_slice(&number.to_be_bytes());
                (4, ())
            });
            expected.extend_from_slice(&number.to_be_bytes());
        }
        assert_eq!(output.pending(), expected.len());
        let mut sent = Vec::new();
        while output.pending() > 0 {
            for chunk in output.take_chunks(1) {
                sent.extend_from_slice(&chunk.bytes[..chunk.filled]);
                pool.give_back(chunk);
            }
        }
        assert_eq!(sent, expected);
        assert_eq!(pool.0.borrow().small.len(), 1);
    }
}
