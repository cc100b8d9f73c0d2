//! The management node of the running router, asked by a scripted peer.
//!
//! `replay` sends the requests of a recorded conversation with `qdrouterd` and compares the replies field by
//! field; the others ask for what `reference` texts and the acceptance list say.

#[path = "../support/mod.rs"]
mod support;

mod changes;
mod datum;
mod load;
mod manager;
mod numbers;
mod operations;
mod policy;
mod replay;
mod trace;
