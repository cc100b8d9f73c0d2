//! Slow.
