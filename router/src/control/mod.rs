//! The control thread: configuration, the life of the router, the routing snapshot. Management comes later.

pub mod config;
pub mod daemon;
mod open_properties;
mod registry;
mod reload;
pub mod router;
mod shards;
mod watchdog;
