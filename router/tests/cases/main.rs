//! Cases: what users of routers, brokers and clients found broken, as inputs and right answers, tried on the
//! running router by a scripted peer.
//!
//! Each test is named after its case; a letter names one of its inputs. What is right follows from AMQP 1.0
//! (sections are cited) and, where that leaves a choice, from `docs/decisions.md`.

#[path = "../support/mod.rs"]
mod support;

mod address;
mod attach;
mod auto_link;
mod channels;
mod connector;
mod content;
mod credit;
mod flow;
mod framing;
mod idle;
mod outcome;
mod presettled;
mod shards;
mod size;
mod storm;
mod stream;
mod transfer;
