//! What every layer may use: keys with generations, serial numbers, time, limits.

pub mod id;
pub mod limits;
pub mod serial_map;
pub mod slab;
pub mod time;
