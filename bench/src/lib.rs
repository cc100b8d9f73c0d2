//! What the benchmarks share: samples, pinned threads, frames, and two engines face to face.
//!
//! Nothing of this is part of the router. The figures are in `docs/performance.md`, and how to repeat them.

pub mod frames;
pub mod pair;
pub mod pin;
pub mod samples;
