//! What code between threads is made of: the standard library's, or loom's where its schedules are explored.
//!
//! `scripts/loom` builds the library's tests with `--cfg ringmain_loom`; nothing else sees loom.

#[cfg(all(test, ringmain_loom))]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::Arc,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};
#[cfg(not(all(test, ringmain_loom)))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

/// A place without any protection of its own, with loom's way of getting at it: loom notes each access
/// and reports two that no order keeps apart.
#[cfg(not(all(test, ringmain_loom)))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(all(test, ringmain_loom)))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// For reading.
    #[inline]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// For writing.
    #[inline]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A value that shares no cache line with its neighbours: what one thread writes often mustn't slow the
/// others down. Two lines wide, since x86-64 processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CacheLine<T>(pub(crate) T);
