//! The control thread: configuration, the life of the router, the routing snapshot, management.

pub mod config;
mod connectors;
pub mod daemon;
pub mod endpoints;
mod handle;
mod http;
mod management;
mod open_properties;
mod policy;
mod registry;
mod reload;
pub mod router;
mod schedule;
mod service_manager;
mod shards;
mod stuck;
mod tls;
mod users;
mod watchdog;
mod workers;
