//! The management node (router-protocol reference §10): `$management`.
//!
//! ```text
//! client --> shard --\                       /--> request --> agent --> reply --\
//!                     > links as any other  <      survey of each shard, and back  > --> client
//! client --> shard --/                       \--- endpoint <--------------------/
//! ```
//!
//! The agent runs on the control thread and is a client of its own router: `endpoint` has the connection,
//! whose other end a shard serves like any other. So requests come from every shard, are answered to any
//! address, and neither costs a shard more than messages do. What the shards know is asked for when somebody
//! asks for it (`shards`).
//!
//! | module | what |
//! |---|---|
//! | `endpoint` | the connection with the router |
//! | `request`, `reply`, `field` | messages |
//! | `agent`, `query` | the operations |
//! | `dialect`, `schema` | names of types, and what is known of types |
//! | `shards`, `observed` | connections, links, addresses in use: asked of the shards |
//! | `configured` | what is configured; making and deleting listeners, connectors, auto-links |
//! | `addresses`, `logs` | what else can be changed |
//! | `follow` | what changes when the configuration file is read again |
//! | `entities` | the router as a whole, and what is shown of each entity |

mod addresses;
mod agent;
mod configured;
mod dialect;
mod endpoint;
mod entities;
mod field;
mod follow;
mod logs;
mod observed;
mod policies;
mod query;
mod reply;
mod request;
mod schema;
pub(super) mod shards;

use crate::io::uring::UringSocket;
use crate::log;
use crate::log::{Level, Module};
use agent::Agent;
pub(super) use agent::Setup;
use endpoint::Endpoint;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::signal::unix::Signal;

/// The management node, ready to answer.
pub(super) struct Management {
    agent: Agent,
    endpoint: Endpoint,
    router_id: String,
    hang_up: Signal,
}

/// How soon a lost connection with the router is made again. Longer than a router takes to stop.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

impl Management {
    /// Connects the agent with the router, and returns when requests reach it.
    ///
    /// # Errors
    /// Why it can't be: a sentence for the user.
    pub(super) async fn start(setup: Setup<'_>, hang_up: Signal) -> Result<Self, String> {
        let router_id = setup.router_id.to_owned();
        let agent = Agent::new(setup);
        let endpoint = connect(&agent, &router_id).await?;
        Ok(Self { agent, endpoint, router_id, hang_up })
    }

    /// Answers requests, and reads the configuration again on SIGHUP, for ever.
    pub(super) async fn run(mut self) {
        loop {
            let ended = self.serve().await;
            // A router that stops ends the connection, too. Then this is the end.
            tokio::time::sleep(RESTART_PAUSE).await;
            log!(
                Module::Agent,
                Level::Error,
                "The management node's connection has ended: {ended}; it is made again"
            );
            match connect(&self.agent, &self.router_id).await {
                Ok(endpoint) => self.endpoint = endpoint,
                Err(why) => log!(Module::Agent, Level::Error, "{why}"),
            }
        }
    }

    /// Answers requests until the router ends the connection, and returns why it did.
    async fn serve(&mut self) -> std::io::Error {
        loop {
            // What next_request has read it keeps, also if a signal comes first.
            let request = tokio::select! {
                request = self.endpoint.next_request() => request,
                Some(()) = self.hang_up.recv() => {
                    self.agent.reload().await;
                    continue;
                }
            };
            let request = match request {
                Ok(request) => request,
                Err(error) => return error,
            };
            if let Some(reply) = self.agent.answer(&request).await {
                self.endpoint.reply(reply);
            }
        }
    }
}

/// Connects the agent with the router, and returns when requests reach it.
///
/// # Errors
/// Why it can't be: a sentence for the user.
async fn connect(agent: &Agent, router_id: &str) -> Result<Endpoint, String> {
    let failed = |error: std::io::Error| format!("can't start the management node: {error}");
    let (ours, shards) = UnixStream::pair().map_err(failed)?;
    let mut endpoint = Endpoint::new(ours, router_id).map_err(failed)?;
    agent.shards().adopt(UringSocket::try_from(shards).map_err(failed)?).await?;
    endpoint.attach().await.map_err(failed)?;
    Ok(endpoint)
}
