//! Resets.
