//! Who clients are, and who the router is to others: SASL (AMQP 1.0 §5.3) on listeners and connectors, and those who don't
//! get as far as an open.
//!
//! `scripted` has frames right and wrong, as a scripted peer sends them; `clients` has clients that others wrote (Proton
//! with Cyrus SASL, rhea); `connector` has the router as client, of a scripted server, of another router and of RabbitMQ;
//! `external` has what depends on TLS;
//! `attack` has those who only mean to disturb.

#[path = "../support/mod.rs"]
mod support;

#[path = "../broker/rabbitmq.rs"]
#[allow(dead_code, reason = "one that isn't killed and started again")]
mod rabbitmq;

mod attack;
mod clients;
mod connector;
mod external;
mod program;
mod scripted;
mod users;

use std::time::Duration;

/// How long a broker may take to come up.
const BROKER_PATIENCE: Duration = Duration::from_secs(120);
