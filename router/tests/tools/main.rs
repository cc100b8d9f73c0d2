//! The operator's tools against a running router: what they print is what was attached and sent, whatever they are
//! called by, and others can read it.

#[path = "../support/mod.rs"]
mod support;

mod generated;
mod manage;
mod program;
mod recorded;
mod save;
mod stat;
mod top;
