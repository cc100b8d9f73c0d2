//! What is in SASL frames: the mechanisms that the router knows, on either side, and the users of its listeners.
//!
//! The mechanisms are rsasl's; this is what stands between it and the engine. A peer's message is looked at
//! (`screen.rs`) before it gets there. Passwords are checked against salted keys (`users.rs`), for SCRAM at the cost of a
//! few hashes, for PLAIN at that of thousands, which is work for another thread
//! ([`Answer::Work`](crate::engine::sasl::Answer::Work)).
//!
//! | module | what |
//! |---|---|
//! | `mechanism` | their names, and how far each is trusted |
//! | `keys` | salted keys from passwords |
//! | `users` | the file of users |
//! | `server` | who a listener's clients are |
//! | `client` | as whom we introduce ourselves |
//! | `screen` | messages that rsasl may see |

pub mod client;
pub mod keys;
pub mod mechanism;
mod screen;
pub mod server;
pub mod users;

pub use client::{Identification, Password};
pub use mechanism::Mechanism;
pub use server::{ListenerAuthenticator, UserStore};
pub use users::Users;
