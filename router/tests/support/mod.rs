//! What the tests against the running router share: the router as a child process, and a scripted peer.
//!
//! The peer knows the bytes of AMQP from `ringmain-codec` and nothing else of the project: what it keeps
//! count of (windows, credit, numbers of deliveries) it does by AMQP 1.0 part 2 on its own, so that the
//! router's engine is tested against something that isn't itself.
#![allow(dead_code, unused_imports, reason = "every test program uses another part of it")]

mod account;
mod broker;
mod expect;
mod frame;
mod link;
pub mod message;
mod peer;
mod router;
mod script;
mod session;

pub use broker::BrokerSocket;
pub use frame::Frame;
pub use link::{Delivery, Link, LinkId, Outcomes};
pub use peer::{OpenOptions, PATIENCE, Peer, frame_bytes};
pub use router::{Router, Setup};
pub use script::{first_transfer, is_condition, receiver, sender};
pub use session::Session;
