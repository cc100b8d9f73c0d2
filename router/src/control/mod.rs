//! The control thread: configuration, the life of the router, the routing snapshot. Management comes later.

pub mod config;
mod connectors;
pub mod endpoints;
mod handle;
mod open_properties;
mod registry;
pub mod router;
mod schedule;
mod shards;
mod watchdog;
