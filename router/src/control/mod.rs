//! The control thread: configuration and the life of the router now, management later.

pub mod config;
mod open_properties;
pub mod router;
