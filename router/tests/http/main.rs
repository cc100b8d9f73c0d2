//! HTTP on the running router: metrics, health, files, the way to AMQP over WebSocket; what the log says
//! beside; and the dashboard and alert rules of `deploy/`, held against what the router measures.

#[path = "../support/mod.rs"]
mod support;

mod client;
mod deploy;
mod health;
mod log;
mod metrics;
mod served;
mod websocket;
