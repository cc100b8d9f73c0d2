//! Connections that the router opens (section `connector`).
//!
//! Each connector has a task on the control thread: it finds the server's address, connects, hands the socket to
//! a shard, which speaks AMQP on it, and waits to hear how that ends. Then it tries again, for ever.

use super::config::{AddressFamily, ConnectorConfig, Role};
use super::handle::ShardsHandle;
use super::router::{CAPABILITIES, connection_settings};
use super::schedule::Schedule;
use super::tls::TlsProfiles;
use crate::base::id::{ConnectionKey, ShardId};
use crate::base::limits::HANDSHAKE_TIMEOUT_DEFAULT;
use crate::engine::Settings;
use crate::engine::settings::SaslPolicy;
use crate::io::uring::UringSocket;
use crate::log;
use crate::log::{Level, Module};
use crate::sasl::{Identification, Mechanism, Password};
use crate::shard::mailbox::{DIALLED_EVENTS_MAX, DialledEvent, FailoverServer, Message};
use crate::shard::slots::{ConnectionRole, ListenerSettings};
use std::cell::RefCell;
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long each address of a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Addresses of one server that are tried.
const ADDRESSES_MAX: usize = 8;

/// What has become of a connector (the attribute `connectionStatus`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectorState {
    /// It is dialling, or the opens haven't been exchanged.
    Connecting,
    /// Its connection is open.
    Success,
    /// It has no connection. It will try again, unless its configuration asks for what this version can't do.
    Failed,
}

impl ConnectorState {
    /// The name that management has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connecting => "CONNECTING",
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
        }
    }
}

/// What management is told of a connector.
#[derive(Clone, Debug)]
pub struct ConnectorStatus {
    /// The attribute `connectionStatus`.
    pub state: ConnectorState,
    /// The attribute `connectionMsg`: what happened last.
    pub message: String,
    /// The attribute `failoverUrls`: the servers that it knows, its own first, as `amqp://HOST:PORT`.
    pub failover_urls: Vec<String>,
    /// The number of its connection in logs, while there is one.
    pub connection_id: Option<u64>,
}

/// A server that a connector may dial.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Server {
    scheme: String,
    host: String,
    port: String,
    /// What our open calls the host.
    hostname: String,
}

impl Server {
    fn host_port(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host_port())
    }
}

impl From<FailoverServer> for Server {
    fn from(server: FailoverServer) -> Self {
        let FailoverServer { scheme, host, port, hostname } = server;
        Self { scheme, hostname: hostname.unwrap_or_else(|| host.clone()), host, port }
    }
}

/// A connector that exists.
pub(super) struct Connector {
    config: ConnectorConfig,
    state: Rc<RefCell<State>>,
    task: Option<JoinHandle<()>>,
    shards: ShardsHandle,
}

/// What the task of a connector has come to.
struct State {
    status: ConnectorState,
    message: String,
    servers: Vec<Server>,
    schedule: Schedule,
    connection: Option<(ShardId, ConnectionKey, u64)>,
}

impl Connector {
    /// Starts a connector. What it can't do at all it says in its status.
    pub(super) fn start(
        config: ConnectorConfig,
        router_id: &str,
        shards: ShardsHandle,
        tls: &TlsProfiles,
    ) -> Self {
        let host = config.host.clone();
        let own = Server {
            scheme: if config.ssl_profile.is_some() { "amqps" } else { "amqp" }.to_owned(),
            host: host.clone(),
            port: config.port.to_string(),
            hostname: host,
        };
        let mut state = State {
            status: ConnectorState::Connecting,
            message: String::new(),
            servers: vec![own],
            schedule: Schedule::default(),
            connection: None,
        };
        let settings = settings(&config, router_id, tls);
        if let Err(reason) = &settings {
            log!(Module::Server, Level::Error, "Connection to {} failed: {reason}", config.host_port());
            state.status = ConnectorState::Failed;
            state.message.clone_from(reason);
        }
        let state = Rc::new(RefCell::new(state));
        let task = settings.ok().map(|settings| {
            let dialler = Dialler {
                settings,
                family: config.protocol_family,
                state: state.clone(),
                shards: shards.clone(),
            };
            tokio_uring::spawn(dialler.run())
        });
        Self { config, state, task, shards }
    }

    /// Its configuration.
    pub(super) fn config(&self) -> &ConnectorConfig {
        &self.config
    }

    /// What has become of it.
    pub(super) fn status(&self) -> ConnectorStatus {
        let state = self.state.borrow();
        ConnectorStatus {
            state: state.status,
            message: state.message.clone(),
            failover_urls: state.servers.iter().map(ToString::to_string).collect(),
            connection_id: state.connection.map(|(.., id)| id),
        }
    }

    /// Ends it, and its connection. (One that isn't open yet ends by finding its connector gone.)
    pub(super) fn delete(self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        let connection = self.state.borrow_mut().connection.take();
        if let Some((shard, connection, _)) = connection {
            self.shards.send(shard, Message::HangUp(connection));
        }
    }

    /// Dials no more. Its connection is the shards' to close.
    pub(super) fn stop(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// What holds for a connector's connections, whichever server they lead to.
///
/// # Errors
/// It asks for what this version can't do: a sentence for the user.
fn settings(
    config: &ConnectorConfig,
    router_id: &str,
    tls: &TlsProfiles,
) -> Result<ListenerSettings, String> {
    let role = match config.role {
        Role::Normal => ConnectionRole::Normal,
        Role::RouteContainer => ConnectionRole::RouteContainer,
        Role::InterRouter | Role::Edge | Role::InterEdge | Role::InterNetwork => {
            return Err(format!(
                "connections in the role '{}' come with a later version: this router works on its own",
                config.role.name()
            ));
        }
    };
    let tls = tls.of_connector(config)?;
    let identification = identification(config)?;
    let engine = Settings {
        container_id: router_id.to_owned(),
        hostname: None,
        max_frame_size: config.max_frame_size,
        channel_max: u16::try_from(config.max_sessions - 1).unwrap_or(u16::MAX),
        idle_timeout: (config.idle_timeout_seconds > 0)
            .then(|| Duration::from_secs(config.idle_timeout_seconds.into())),
        handshake_timeout: Some(HANDSHAKE_TIMEOUT_DEFAULT),
        session_frames_max: config.max_session_frames.unwrap_or(u32::MAX >> 1),
        sasl: SaslPolicy::Required,
        offered_capabilities: CAPABILITIES,
        desired_capabilities: CAPABILITIES,
        credentials: Some(Arc::new(identification)),
        ..Settings::default()
    };
    Ok(ListenerSettings {
        link_capacity: config.link_capacity,
        trace: config.is_traced,
        name: config.name.clone().unwrap_or_default(),
        policy_vhost: config.policy_vhost.clone(),
        logged_components: config.message_logging_components.clone(),
        role,
        tls,
        ..connection_settings(engine, config.strip_annotations, &config.open_properties)
    })
}

/// As whom a connector introduces itself.
///
/// # Errors
/// What it asks for can't be done: a sentence for the user.
fn identification(config: &ConnectorConfig) -> Result<Identification, String> {
    let names = &config.sasl_mechanisms;
    let mechanisms: Vec<_> = names.iter().filter_map(|name| Mechanism::from_name(name)).collect();
    if mechanisms.is_empty() && !names.is_empty() {
        let known = Mechanism::ALL.map(Mechanism::name).join(" ");
        return Err(format!("'saslMechanisms' is '{}': the router has {known}", names.join(" ")));
    }
    let user = match (&config.sasl_username, &config.sasl_password) {
        (None, None) => None,
        (None, Some(_)) => return Err("'saslPassword' is set without 'saslUsername'".to_owned()),
        (Some(_), None) => return Err("'saslUsername' is set without 'saslPassword'".to_owned()),
        (Some(user), Some(password)) => {
            let password = password.reveal().map_err(|reason| format!("'saslPassword': {reason}"))?;
            Some((user.clone(), Password::new(password)))
        }
    };
    let mechanisms = (!names.is_empty()).then_some(mechanisms);
    Identification::new(mechanisms, user)
        .map_err(|reason| format!("'saslUsername', 'saslPassword': {reason}"))
}

/// The task of a connector.
struct Dialler {
    settings: ListenerSettings,
    family: Option<AddressFamily>,
    state: Rc<RefCell<State>>,
    shards: ShardsHandle,
}

/// How a try ended.
enum End {
    /// It never came to an open.
    NotOpened(String),
    /// It was open for a while.
    Lost { container: Box<str>, time: Duration, reason: String },
}

impl Dialler {
    async fn run(self) {
        loop {
            let (place, server) = {
                let mut state = self.state.borrow_mut();
                state.status = ConnectorState::Connecting;
                let place = state.schedule.current(state.servers.len());
                (place, state.servers[place].clone())
            };
            let end = match self.connect(&server).await {
                Ok((stream, peer)) => self.serve(place, &server, stream, peer).await,
                Err(reason) => End::NotOpened(reason),
            };
            let pause = self.note(&server, end);
            tokio::time::sleep(pause).await;
        }
    }

    /// Notes how a try ended. Returns how long to wait before the next.
    fn note(&self, server: &Server, end: End) -> Duration {
        let mut state = self.state.borrow_mut();
        state.connection = None;
        let message = match end {
            End::NotOpened(reason) => format!("Connection to {} failed: {reason}", server.host_port()),
            End::Lost { container, time, reason } => {
                state.schedule.was_open(time);
                format!("Connection to {} (container '{container}') lost: {reason}", server.host_port())
            }
        };
        let servers = state.servers.len();
        let pause = state.schedule.failed(servers, fastrand::f64());
        log!(Module::Server, Level::Warning, "{message}; the next try is in {:.1} s", pause.as_secs_f64());
        state.status = ConnectorState::Failed;
        state.message = message;
        pause
    }

    /// Connects to a server.
    async fn connect(&self, server: &Server) -> Result<(TcpStream, SocketAddr), String> {
        match server.scheme.as_str() {
            "amqp" => {}
            "amqps" if self.settings.tls.is_some() => {}
            "amqps" => {
                return Err("it wants TLS ('amqps'), for which the connector needs 'sslProfile'".to_owned());
            }
            other => {
                return Err(format!("its scheme is '{other}', and the router speaks 'amqp' and 'amqps'"));
            }
        }
        let port = match server.port.as_str() {
            "amqp" => 5672,
            "amqps" => 5671,
            number => number.parse().map_err(|_| format!("'{number}' isn't a port"))?,
        };
        let mut reason = "it has no address of the family demanded".to_owned();
        let addresses = resolve(&server.host, port).await?;
        for address in addresses.into_iter().filter(|address| self.is_wanted(*address)).take(ADDRESSES_MAX) {
            match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok((stream, address)),
                Ok(Err(error)) => reason = error.to_string(),
                Err(_) => reason = format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()),
            }
        }
        Err(reason)
    }

    fn is_wanted(&self, address: SocketAddr) -> bool {
        match self.family {
            None => true,
            Some(AddressFamily::IPv4) => address.is_ipv4(),
            Some(AddressFamily::IPv6) => address.is_ipv6(),
        }
    }

    /// Has a shard serve a connected socket, and waits until that has ended.
    async fn serve(&self, place: usize, server: &Server, stream: TcpStream, peer: SocketAddr) -> End {
        let socket = match stream.into_std().and_then(UringSocket::try_from) {
            Ok(socket) => socket,
            Err(error) => return End::NotOpened(error.to_string()),
        };
        let mut settings = Box::new(self.settings.clone());
        settings.engine.hostname = Some(server.hostname.clone());
        settings.dialled = Some(server.host_port());
        settings.tls = self.settings.tls.as_ref().map(|tls| Arc::new(tls.to_host(&server.host)));
        let (dialler, mut events) = mpsc::channel(DIALLED_EVENTS_MAX);
        let shard = self.shards.hand_over(|| Message::Dialled { settings, socket, peer, dialler }).await;
        let Some(shard) = shard else {
            return End::NotOpened("no shard could take it".to_owned());
        };
        let mut opened: Option<(Instant, Box<str>)> = None;
        loop {
            let reason = match events.recv().await {
                Some(DialledEvent::Opened { connection, id, mechanism, encryption, container, failover }) => {
                    let how = format!("encrypted={encryption} auth={}", mechanism.unwrap_or("no"));
                    self.opened(place, server, (shard, connection, id), &how, &container, failover);
                    opened = Some((Instant::now(), container));
                    continue;
                }
                Some(DialledEvent::Ended(reason)) => reason,
                None => "its shard had no room for it, or has ended".to_owned(),
            };
            return match opened {
                None => End::NotOpened(reason),
                Some((since, container)) => End::Lost { container, time: since.elapsed(), reason },
            };
        }
    }

    fn opened(
        &self,
        place: usize,
        server: &Server,
        connection: (ShardId, ConnectionKey, u64),
        how: &str,
        container: &str,
        failover: Option<Vec<FailoverServer>>,
    ) {
        let mut state = self.state.borrow_mut();
        state.status = ConnectorState::Success;
        state.message = format!(
            "[C{}] Connection Opened: dir=out host={} {how} container_id={container}",
            connection.2,
            server.host_port()
        );
        state.connection = Some(connection);
        if let Some(others) = failover {
            let (servers, current) = merge(&state.servers, place, others);
            state.servers = servers;
            state.schedule.move_to(current);
        }
    }
}

/// The servers that are known when the one at `place` has told of others: the connector's own, the one that told,
/// and those. Returns the place of the one that told as well.
fn merge(known: &[Server], place: usize, others: Vec<FailoverServer>) -> (Vec<Server>, usize) {
    let mut servers: Vec<Server> = known.first().cloned().into_iter().collect();
    let mut current = 0;
    if place > 0
        && let Some(server) = known.get(place)
    {
        current = servers.len();
        servers.push(server.clone());
    }
    for other in others.into_iter().map(Server::from) {
        if !servers.iter().any(|server| server.host == other.host && server.port == other.port) {
            servers.push(other);
        }
    }
    (servers, current)
}

/// The addresses of a host.
///
/// The system's resolver blocks, for as long as it likes. It gets a thread that nobody waits for when the router
/// stops; a connector waits for its resolver, so that each has one at the most.
async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (tell, told) = oneshot::channel();
    let name = host.to_owned();
    std::thread::Builder::new()
        .name("resolver".to_owned())
        .spawn(move || {
            let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect);
            // Nobody may want it any more.
            let _ = tell.send(found);
        })
        .map_err(|error| format!("can't start a thread to find its address: {error}"))?;
    match told.await {
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(format!("can't find the address of '{host}': {error}")),
        Err(_) => Err(format!("can't find the address of '{host}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str) -> Server {
        let text = |text: &str| text.to_owned();
        Server { scheme: text("amqp"), host: text(host), port: text("5672"), hostname: text(host) }
    }

    fn told(host: &str) -> FailoverServer {
        let text = |text: &str| text.to_owned();
        FailoverServer { scheme: text("amqp"), host: text(host), port: text("5672"), hostname: None }
    }

    fn hosts(servers: &[Server]) -> Vec<&str> {
        servers.iter().map(|server| server.host.as_str()).collect()
    }

    /// Router-protocol reference §1.2: an empty list leaves the connector's own server and the current one; any
    /// other list replaces all but those, and nothing stands in it twice.
    #[test]
    fn a_peers_list_of_servers_replaces_what_was_known() {
        let known = [server("own"), server("a"), server("b")];
        let (servers, current) = merge(&known, 2, Vec::new());
        assert_eq!((hosts(&servers), current), (vec!["own", "b"], 1));
        let (servers, current) = merge(&known, 0, vec![told("c"), told("own"), told("c")]);
        assert_eq!((hosts(&servers), current), (vec!["own", "c"], 0));
        let (servers, current) = merge(&known, 1, vec![told("b"), told("a")]);
        assert_eq!((hosts(&servers), current), (vec!["own", "a", "b"], 1));
    }
}
