//! TLS (AMQP 1.0 §5.2), by rustls: from a section `sslProfile` to what protects a connection.
//!
//! | file | what |
//! |---|---|
//! | `profile` | the files of a profile, read, checked, and read again |
//! | `ciphers` | OpenSSL's names of protocols and cipher suites |
//! | `identity` | who a peer is by its certificate (`uidFormat`) |
//! | `session` | one connection's records: bytes in, bytes out |
//!
//! There is no cryptography of our own here, and no socket, clock or thread.

pub mod ciphers;
pub mod identity;
pub mod profile;
pub mod session;

pub use profile::{Material, Peers, Profile, ProfileFiles, ProfileStatus};
pub use session::{Facts, Received, Session};
