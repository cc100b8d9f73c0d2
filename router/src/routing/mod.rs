//! Routing: addresses, their configuration, the table of those in use, and the choice of a destination.
//!
//! Pure: no bytes, no clock, no connection.

pub mod address;
pub mod choose;
pub mod pattern;
pub mod persistent;
pub mod policy;
pub mod snapshot;
pub mod table;

pub use address::{Address, Class, PHASE_MAX};
pub use snapshot::{AddressSettings, Consumer, MANAGEMENT_NODE, Snapshot, Treatment};
pub use table::{AddressCounters, AddressTable, LocalAddress, Remote, Use};
