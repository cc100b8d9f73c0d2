//! Locks, such that the benchmark harness can count them.
//!
//! A shard takes none while messages flow (`router/tests/tidy.rs` sees to it that locks are made here, and
//! `scripts/bench` that none is taken). With the feature `count-locks`, which no release has, each one is told to an observer.

use std::sync::{LockResult, MutexGuard};

/// The standard library's mutex.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// A lock around `value`.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    ///
    /// # Errors
    /// As the standard library's: whoever had it panicked.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        #[cfg(feature = "count-locks")]
        counting::tell();
        self.0.lock()
    }
}

#[cfg(feature = "count-locks")]
pub use counting::observe;

#[cfg(feature = "count-locks")]
mod counting {
    use std::sync::OnceLock;

    static OBSERVER: OnceLock<fn()> = OnceLock::new();

    /// Calls `observer` on the thread that takes a lock, each time, from now on. Calls after the first do nothing.
    pub fn observe(observer: fn()) {
        // The first one stays, as documented.
        let _ = OBSERVER.set(observer);
    }

    pub(super) fn tell() {
        if let Some(observer) = OBSERVER.get() {
            observer();
        }
    }
}
