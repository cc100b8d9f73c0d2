//! What every layer may use: keys with generations, serial numbers, time, buffers, limits.

pub mod buffer;
pub mod histogram;
pub mod id;
pub mod limits;
pub mod lock;
pub mod serial_map;
pub mod slab;
pub mod sparse;
pub(crate) mod sync;
pub mod time;
