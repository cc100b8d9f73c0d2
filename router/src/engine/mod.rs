//! The AMQP 1.0 engine: connections, sessions, links and deliveries, without input or output.
//!
//! A [`Connection`] is given the bytes that came and the time, and gives back [`Event`]s; what it has
//! to send it writes into an [`Output`](crate::base::buffer::Output). So it runs under a virtual clock,
//! in a fuzzer and on the ring alike, on either side of a connection.
//!
//! `recv_*` is the peer's input, `send_*` our decision. What the peer does wrong is a [`Violation`],
//! which says which endpoint is closed and with which condition; the engine closes it by itself and
//! tells its user with the event that an ordinary end of that endpoint has.

pub mod attach;
pub mod connection;
pub mod delivery;
pub mod event;
pub mod flow;
mod handshake;
pub mod link;
pub mod sasl;
pub mod session;
pub mod settings;
pub mod transfer;
pub mod violation;
mod write;

pub use attach::Attachment;
pub use connection::{Connection, Holdings};
pub use delivery::{Disposed, DisposedDelivery, KeptState, NewDelivery, Sent, Unsettled};
pub use event::{Arrived, Cause, Event, LinkRef, OfDelivery, Progress};
pub use link::Credit;
pub use settings::{Settings, Side};
pub use violation::{Fault, Violation};
