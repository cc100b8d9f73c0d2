//! A shard on the simulated driver, with clients that talk to it over the simulated network.
//!
//! Everything is drawn from a seed. A failure prints it; `RINGMAIN_SEED=n` runs only that one,
//! `RINGMAIN_TRACE=1` prints what happens, and `RINGMAIN_SEEDS=n` makes a long search of it.

mod auto_links;
mod broker;
mod client;
mod exchange;
mod fair;
mod hostile;
#[path = "../support/hostile.rs"]
mod hostile_peer;
mod message;
mod placing;
mod resets;
mod rest;
#[path = "../support/seeds.rs"]
mod seeds;
mod slow;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../support/state.rs"]
mod state;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../support/wire.rs"]
mod wire;
mod world;
