//! A shard on the simulated driver, with clients that talk to it over the simulated network.
//!
//! Everything is drawn from a seed. A failure prints it; `RINGMAIN_SEED=n` runs only that one, and
//! `RINGMAIN_TRACE=1` prints what happens.

mod client;
mod exchange;
mod message;
mod resets;
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
