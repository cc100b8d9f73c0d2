//! TLS (AMQP 1.0 §5.2) as others speak it: Python's ssl and the command line of OpenSSL, Proton and rhea.
//!
//! `listeners` has clients of the router, `connectors` servers that it connects to, `renewal` certificates that change
//! while it runs (case C-08), `clients` AMQP clients. The certificates are made by each test.

#[path = "../support/mod.rs"]
mod support;

mod certificates;
mod clients;
mod connectors;
mod listeners;
mod python;
mod renewal;
