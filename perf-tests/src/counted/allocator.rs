//! The system's allocator, with a count for each thread; and a count of its locks.
//!
//! # Cost
//! An addition to a number that only the thread itself writes.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// Threads that are told apart; those beyond share the last place.
const THREADS_MAX: usize = 256;

/// What one thread has done.
#[repr(align(64))]
struct Place {
    thread: AtomicI32,
    allocations: AtomicU64,
    locks: AtomicU64,
}

static PLACES: [Place; THREADS_MAX] =
    [const { Place { thread: AtomicI32::new(0), allocations: AtomicU64::new(0), locks: AtomicU64::new(0) } };
        THREADS_MAX];

/// Places that are taken.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's place. Without a destructor and without a lazy beginning, so that it can be used while
    /// allocating.
    static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Counts, and leaves the work to the system's allocator.
pub struct Counting;

/// This thread's place.
fn place() -> &'static Place {
    let at = PLACE.get();
    &PLACES[if at == usize::MAX { take_place() } else { at }]
}

fn count() {
    place().allocations.fetch_add(1, Ordering::Relaxed);
}

/// Counts a lock that this thread takes.
pub fn count_lock() {
    place().locks.fetch_add(1, Ordering::Relaxed);
}

#[cold]
fn take_place() -> usize {
    let at = TAKEN.fetch_add(1, Ordering::Relaxed).min(THREADS_MAX - 1);
    PLACES[at].thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    PLACE.set(at);
    at
}

// SAFETY: every call goes to the system's allocator as it is; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// The threads that have allocated or locked, with their allocations and locks.
pub fn counts() -> Vec<(i32, u64, u64)> {
    let taken = TAKEN.load(Ordering::Relaxed).min(THREADS_MAX);
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    PLACES[..taken]
        .iter()
        .map(|place| (place.thread.load(Ordering::Relaxed), load(&place.allocations), load(&place.locks)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{count_lock, counts};

    fn mine() -> (u64, u64) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let mine = counts().into_iter().find(|(of, ..)| *of == thread);
        mine.map_or((0, 0), |(_, allocations, locks)| (allocations, locks))
    }

    #[test]
    fn locks_of_this_thread_count() {
        let (_, before) = mine();
        ringmain::base::lock::observe(count_lock);
        let lock = ringmain::base::lock::Mutex::new(0);
        for _ in 0..10 {
            *lock.lock().unwrap() += 1;
        }
        assert_eq!(mine().1 - before, 10);
    }

    #[test]
    fn allocations_of_this_thread_count() {
        drop(std::hint::black_box(Box::new(1_u64)));
        // `counts` allocates once itself.
        let (before, _) = mine();
        for number in 0..100_u64 {
            drop(std::hint::black_box(Box::new(number)));
        }
        let (after, _) = mine();
        assert_eq!(after - before, 101);
    }
}
