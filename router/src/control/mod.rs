//! The control thread: configuration, the life of the router, the routing snapshot, management.

pub mod config;
pub mod daemon;
mod management;
mod open_properties;
mod registry;
pub mod router;
mod shards;
mod watchdog;
