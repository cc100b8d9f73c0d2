//! The cell, its writer and its readers.
//!
//! # Why a version that a reader can see is never freed
//!
//! Every version has a number, one more than the one before, and every reader an *announcement*: the
//! number of the version that it holds, or `ASLEEP`, or `WAKING`, which is less than any number. The writer
//! frees a version that has been replaced when its number is below all announcements. Three things have
//! to hold:
//!
//! 1. *A reader that announced `n` uses nothing older than `n`, and everything that it did with older ones
//!    happened before they are freed.* It loads the pointer, finds version `n` there (a pointer that is read
//!    again is never older than before), and then stores `n` with `Release`, after its last use of the
//!    older version. The writer loads the announcement with `Acquire`.
//! 2. *Between the load and the store, too.* The announcement still says the older number then, and
//!    that holds back everything newer as well, the version just found included.
//! 3. *A reader that wakes up isn't overlooked.* Its announcement says `ASLEEP`, which holds nothing back.
//!    Before it loads the pointer it stores `WAKING`, which holds everything back, and a fence stands
//!    between the two; one stands likewise in the writer between its replacing the pointer and its looking
//!    at the announcements. Both fences are `SeqCst`, so one of them is first. If it is the reader's, the
//!    writer sees `WAKING` (or what the reader stored later) and frees nothing. If it is the writer's, the
//!    reader finds the new pointer, and no use for the versions that are freed.
//!
//! Going to sleep is a store of `ASLEEP` with `Release`, after the last use: case 1.

use crate::base::sync::{Arc, AtomicPtr, AtomicU64, CacheLine, Ordering, UnsafeCell, fence};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::ptr::NonNull;

/// Announced by a reader that holds no version.
const ASLEEP: u64 = u64::MAX;

/// Announced by a reader that is about to look which version there is.
const WAKING: u64 = 0;

/// The number of the initial version. At a version per nanosecond, `ASLEEP` is 584 years away.
const FIRST: u64 = 1;

struct Version<T> {
    number: u64,
    value: T,
}

struct Shared<T> {
    /// The newest version. It came out of a box, as all versions do, and is never null.
    current: CacheLine<AtomicPtr<Version<T>>>,
    announcements: Box<[CacheLine<AtomicU64>]>,
    /// Versions that have been replaced, the oldest first. The publisher's, and `drop`'s.
    retired: UnsafeCell<VecDeque<NonNull<Version<T>>>>,
}

// SAFETY: values are dropped and read on whatever thread the halves are, hence `T: Send + Sync`.
// `retired` is touched by the only `Publisher`, through `&mut`, and by `drop`.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // The last of the publisher and the readers is gone: nobody holds a version.
        let current = self.current.0.load(Ordering::Relaxed);
        // SAFETY: it came out of a box, was never retired, and this is the last that is heard of it.
        drop(unsafe { Box::from_raw(current) });
        self.retired.with_mut(|retired| {
            // SAFETY: `&mut self`: no other reference to it exists.
            for version in unsafe { &mut *retired }.drain(..) {
                // SAFETY: it came out of a box and was put in here once.
                drop(unsafe { Box::from_raw(version.as_ptr()) });
            }
        });
    }
}

/// Makes a cell with an `initial` value, its writer, and as many readers as there will ever be.
///
/// The readers begin asleep. Costs 128 bytes a reader.
#[must_use]
pub fn cell<T: Send + Sync>(initial: T, readers: usize) -> (Publisher<T>, Vec<Reader<T>>) {
    let first = Box::into_raw(Box::new(Version { number: FIRST, value: initial }));
    let shared = Arc::new(Shared {
        current: CacheLine(AtomicPtr::new(first)),
        announcements: (0..readers).map(|_| CacheLine(AtomicU64::new(ASLEEP))).collect(),
        retired: UnsafeCell::new(VecDeque::new()),
    });
    let readers =
        (0..readers).map(|place| Reader { shared: shared.clone(), place, held: Cell::new(None) }).collect();
    (Publisher { shared, number: FIRST }, readers)
}

/// The one writer of a cell.
pub struct Publisher<T: Send + Sync> {
    shared: Arc<Shared<T>>,
    /// The number of the newest version.
    number: u64,
}

impl<T: Send + Sync> Publisher<T> {
    /// Replaces the value. Readers see `next` from their next turn on; the old value waits for
    /// [`reclaim`](Self::reclaim).
    ///
    /// Values wait as long as one reader stays in its turn. A caller that publishes without end should
    /// gather its changes instead while `reclaim` says that many wait.
    pub fn publish(&mut self, next: T) {
        self.number += 1;
        let next = Box::into_raw(Box::new(Version { number: self.number, value: next }));
        // Release: whoever loads the pointer sees what it points to. Acquire isn't needed: all pointers
        // came from this publisher.
        let old = self.shared.current.0.swap(next, Ordering::Release);
        let old = NonNull::new(old).expect("the current version is never null");
        // SAFETY: only this publisher, borrowed exclusively, and `drop` touch `retired`.
        self.shared.retired.with_mut(|retired| unsafe { &mut *retired }.push_back(old));
    }

    /// Frees the replaced values that no reader can see any more, and says how many others still wait.
    pub fn reclaim(&mut self) -> usize {
        // SAFETY: only this publisher, borrowed exclusively, and `drop` touch `retired`.
        let none = self.shared.retired.with(|retired| unsafe { &*retired }.is_empty());
        if none {
            return 0;
        }
        // Between the replaced pointer and the announcements: case 3 at the top of this file.
        fence(Ordering::SeqCst);
        let announced = self.shared.announcements.iter();
        let oldest = announced.map(|line| line.0.load(Ordering::Acquire)).min().unwrap_or(ASLEEP);
        while let Some(version) = self.next_below(oldest) {
            // SAFETY: it came out of a box, left `retired` just now, and no reader holds it or can get it
            // any more: cases 1 to 3 at the top of this file.
            drop(unsafe { Box::from_raw(version.as_ptr()) });
        }
        // SAFETY: as above.
        self.shared.retired.with(|retired| unsafe { &*retired }.len())
    }

    /// Takes the oldest of the replaced versions if its number is below `oldest`.
    fn next_below(&mut self, oldest: u64) -> Option<NonNull<Version<T>>> {
        self.shared.retired.with_mut(|retired| {
            // SAFETY: only this publisher, borrowed exclusively, and `drop` touch `retired`.
            let retired = unsafe { &mut *retired };
            // SAFETY: what is in `retired` hasn't been freed, and nobody changes it.
            let number = unsafe { retired.front()?.as_ref() }.number;
            if number < oldest { retired.pop_front() } else { None }
        })
    }

    /// The newest value.
    #[must_use]
    pub fn current(&self) -> &T {
        let current = self.shared.current.0.load(Ordering::Relaxed);
        // SAFETY: the newest version isn't freed before it is replaced, which takes `&mut self`.
        &unsafe { &*current }.value
    }
}

impl<T: Send + Sync> Drop for Publisher<T> {
    /// Frees what it can; the rest goes with the last reader.
    fn drop(&mut self) {
        self.reclaim();
    }
}

impl<T: Send + Sync> fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("number", &self.number).finish_non_exhaustive()
    }
}

/// One reader of a cell: one thread, which looks at the value turn by turn.
///
/// It sees the same version for the whole of a turn. One that neither begins turns nor sleeps keeps
/// everything alive that is published after its version.
pub struct Reader<T: Send + Sync> {
    shared: Arc<Shared<T>>,
    /// Which of the announcements is this reader's.
    place: usize,
    /// The version of this turn; `None` while asleep.
    held: Cell<Option<NonNull<Version<T>>>>,
}

// SAFETY: see `Shared`. The version that is held goes along with the announcement that keeps it alive.
// (Not `Sync`, by the `Cell`: a reader is one thread at a time.)
unsafe impl<T: Send + Sync> Send for Reader<T> {}

impl<T: Send + Sync> Reader<T> {
    /// Begins a turn, on the newest version. What was loaded before is not used any more.
    #[inline]
    pub fn begin_turn(&mut self) {
        let Some(held) = self.held.get() else {
            self.wake();
            return;
        };
        // Acquire: what the version holds is there before the pointer is.
        let current = self.shared.current.0.load(Ordering::Acquire);
        if current != held.as_ptr() {
            self.hold(current);
        }
    }

    /// The value of this turn. If the reader sleeps, a turn begins.
    #[inline]
    #[must_use]
    pub fn load(&self) -> &T {
        let held = self.held.get().unwrap_or_else(|| self.wake());
        // SAFETY: the announcement has held this version back since before it was loaded, and will until
        // `begin_turn`, `sleep` or `drop`, which the borrow of `self` doesn't outlast.
        &unsafe { &*held.as_ptr() }.value
    }

    /// Ends the turn without beginning another: until then, the reader holds nothing back.
    ///
    /// To be called before a wait whose end isn't known.
    #[inline]
    pub fn sleep(&mut self) {
        if self.held.take().is_some() {
            // Release: what was done with the version happened before.
            self.announcement().store(ASLEEP, Ordering::Release);
        }
    }

    #[inline]
    fn announcement(&self) -> &AtomicU64 {
        &self.shared.announcements[self.place].0
    }

    #[cold]
    fn wake(&self) -> NonNull<Version<T>> {
        // Relaxed: the fence orders it. Case 3 at the top of this file.
        self.announcement().store(WAKING, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.hold(self.shared.current.0.load(Ordering::Acquire))
    }

    /// Holds a version that was just loaded, while the announcement still holds it back as one newer than
    /// what is announced.
    fn hold(&self, current: *mut Version<T>) -> NonNull<Version<T>> {
        let current = NonNull::new(current).expect("the current version is never null");
        // SAFETY: the announcement holds it back: case 2 at the top of this file.
        let number = unsafe { current.as_ref() }.number;
        // Release: what was done with older versions happened before.
        self.announcement().store(number, Ordering::Release);
        self.held.set(Some(current));
        current
    }
}

impl<T: Send + Sync> Drop for Reader<T> {
    /// Holds nothing back any more.
    fn drop(&mut self) {
        self.sleep();
    }
}

impl<T: Send + Sync> fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("place", &self.place).finish_non_exhaustive()
    }
}
