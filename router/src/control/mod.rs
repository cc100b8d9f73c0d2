//! The control thread's part: configuration now, management later.

pub mod config;
