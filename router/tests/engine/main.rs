//! The engine without a network: two connections face to face, and one against hostile input.
//!
//! Everything is drawn from a seed. A failure prints it; `RINGMAIN_SEED=n` runs only that one, and
//! `RINGMAIN_TRACE=1` prints what happens.

mod delivery;
mod end;
mod face_to_face;
mod hostile;
mod pair;
#[path = "../support/seeds.rs"]
mod seeds;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../support/state.rs"]
mod state;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../support/wire.rs"]
mod wire;
