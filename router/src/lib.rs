//! Ringmain: an AMQP 1.0 message router.
#![deny(unsafe_code)]

pub mod base;
pub mod cli;
pub mod client;
pub mod control;
pub mod engine;
pub mod io;
pub mod log;
pub mod mem;
pub mod rcu;
pub mod routing;
pub mod sasl;
pub mod shard;
pub mod tls;
pub mod tools;
