//! The log, in `qdrouterd`'s line format.

mod level;

pub use level::{Level, Levels, Module};
