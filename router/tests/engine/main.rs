//! The engine without a network: two connections face to face, and one against hostile input.
//!
//! Everything is drawn from a seed. A failure prints it; `RINGMAIN_SEED=n` runs only that one,
//! `RINGMAIN_TRACE=1` prints what happens, and `RINGMAIN_SEEDS=n` makes a long search of it.

mod delivery;
mod end;
mod face_to_face;
mod hostile;
#[path = "../support/hostile.rs"]
mod hostile_peer;
mod orders;
mod pair;
#[path = "../support/seeds.rs"]
mod seeds;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../support/state.rs"]
mod state;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../support/wire.rs"]
mod wire;
