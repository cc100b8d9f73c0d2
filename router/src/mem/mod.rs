//! Memory that threads hand to one another: the rings between shards, and the doorbell of a shard that
//! sleeps.
#![allow(unsafe_code)]
#![deny(clippy::undocumented_unsafe_blocks)]

pub mod doorbell;
#[cfg(all(test, ringmain_loom))]
mod model;
pub mod ring;
