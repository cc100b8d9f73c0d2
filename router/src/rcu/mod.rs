//! Publication in the manner of read-copy-update: one writer replaces a value as a whole, and each reader
//! sees one version of it per turn without a lock.
//!
//! # Cost
//! A turn in which nothing was published costs its reader one load of a line that nobody writes, and no
//! store. The first turn after a publication adds one store to a line of the reader's own. Only waking up
//! from sleep has a fence. Publishing costs the writer an allocation and two stores; reclaiming, a fence
//! and one load per reader.
#![allow(unsafe_code)]
#![deny(clippy::undocumented_unsafe_blocks)]

mod cell;
#[cfg(all(test, ringmain_loom))]
mod model;
#[cfg(all(test, not(ringmain_loom)))]
mod tests;

pub use cell::{Publisher, Reader, cell};
