//! Starting the router from its configuration, and stopping it on a signal.
//!
//! The calling thread becomes the control thread, a `tokio-uring` runtime. Nothing of it runs on a shard, so
//! it can't add to a message's latency.

use super::config::{BindAddress, Config, Distribution, ListenerConfig, Member, Role, StripAnnotations};
use super::endpoints::{Endpoints, for_http};
use super::http::Http;
use super::management::{self, Management};
use super::open_properties;
use super::policy::policy;
use super::service_manager;
use super::shards::{self, Idling, Shards};
use super::stuck;
use super::tls::TlsProfiles;
use super::users::RouterUsers;
use super::watchdog;
use super::workers::WorkerThreads;
use crate::base::id::{ListenerId, ShardId};
use crate::base::limits::HANDSHAKE_TIMEOUT_DEFAULT;
use crate::engine::Settings;
use crate::engine::settings::SaslPolicy;
use crate::io::uring::probe;
use crate::log;
use crate::log::{Level, Module};
use crate::routing::policy::counts::Counts;
use crate::routing::{AddressSettings, Snapshot, Treatment};
use crate::sasl::{ListenerAuthenticator, UserStore};
use crate::shard::slots::{ConnectionRole, ListenerSettings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Connections that the kernel completes before we accept them.
const BACKLOG: i32 = 4096;

/// A signal that follows another so soon is the same one: `timeout`, for one, sends it to a process and again to
/// the process's group.
const SAME_SIGNAL: Duration = Duration::from_millis(100);

/// Open files without which not even an idle router gets by.
const OPEN_FILES_MIN: u64 = 64;

/// What we offer and ask for in each open (router-protocol reference §1.2).
pub(super) const CAPABILITIES: &[&str] = &["ANONYMOUS-RELAY"];

/// Runs the router until it is told to stop. `operational` is called once clients can connect; with `test_hooks` what
/// is stuck is looked for often, and soon taken for that.
///
/// # Errors
/// Why it can't start, or why it had to stop: a sentence for the user.
pub fn run(config: &Config, test_hooks: bool, operational: impl FnOnce()) -> Result<ExitCode, String> {
    raise_file_limit()?;
    probe().map_err(|unsupported| unsupported.to_string())?;
    let id = config.router.id.clone().unwrap_or_else(generated_id);
    let cpus = cpus(config)?;
    let counts = Arc::new(Counts::default());
    let mut snapshot = snapshot(config, &id);
    snapshot.policy = Arc::new(policy(config, &counts));
    let idling = Idling { idle: config.router.idle, napi: config.router.napi };
    let users = RouterUsers::read(config)?;
    let tls = TlsProfiles::new(config);
    let settings: Vec<ListenerSettings> = config
        .served_listeners()
        .map(|listener| {
            listener_settings(listener, &id, cpus.len(), &users.store(), &tls)
                .map_err(|message| format!("{}:{}: listener: {message}", config.file, listener.line))
        })
        .collect::<Result<_, _>>()?;
    let mut sockets = Vec::new();
    for (index, listener) in config.served_listeners().enumerate() {
        let listener_id = ListenerId(u32::try_from(index).map_err(|_| "too many listeners".to_owned())?);
        let at = format!("{}:{}", config.file, listener.line);
        for socket in bind(listener).map_err(|message| format!("{at}: listener: {message}"))? {
            sockets.push((listener_id, socket));
        }
    }
    let addresses: Vec<(ListenerId, SocketAddr)> = sockets
        .iter()
        .filter_map(|(listener, socket)| Some((*listener, socket.local_addr().ok()?)))
        .collect();
    log!(Module::Router, Level::Info, "Router started in Standalone mode, id={id}");
    let runtime_ring = {
        let mut builder = tokio_uring::uring_builder();
        builder.setup_single_issuer().setup_coop_taskrun();
        builder
    };
    tokio_uring::builder().uring_builder(&runtime_ring).start(async move {
        let no_signals = |error| format!("can't handle signals: {error}");
        let mut signals = Signals::new().map_err(no_signals)?;
        let hang_up = signal(SignalKind::hangup()).map_err(no_signals)?;
        let (mut shards, registry) =
            shards::start(snapshot, &settings, &cpus, idling, Arc::new(WorkerThreads::default()))?;
        let registry = tokio_uring::spawn(registry.run());
        let watchdog = tokio_uring::spawn(watchdog::run(shards.presences()));
        let looking = tokio_uring::spawn(stuck::run(shards.handle(), stuck::Pace::new(test_hooks)));
        let (http, questions) = Http::new(shards.handle(), &id);
        let endpoints = Endpoints::new(&id, shards.handle(), http.clone(), users, tls.clone());
        let watching = tokio_uring::spawn(tls.clone().watch(shards.handle()));
        let questions = tokio_uring::spawn(questions.answer(endpoints.clone()));
        start_endpoints(&endpoints, config, &addresses);
        let setup = management::Setup {
            config,
            router_id: &id,
            mailboxes: shards.mailboxes(),
            reconfigure: shards.reconfigure(),
            endpoints: endpoints.clone(),
            counts,
        };
        let management = Management::start(setup, hang_up);
        let management = tokio_uring::spawn(management.await?.run());
        // Last of all: whoever can connect finds a router that is ready.
        shards.listen(serve_http(&http, config, sockets, &tls)?);
        for (id, address) in &addresses {
            let listener = config.served_listeners().nth(id.0 as usize);
            let what = listener.map_or("", for_http);
            log!(Module::Server, Level::Notice, "Listening{what} on {address}");
        }
        http.set_ready(true);
        log!(
            Module::Server,
            Level::Notice,
            "Operational, {} Threads Running (process ID {})",
            cpus.len(),
            std::process::id()
        );
        let listening: Vec<SocketAddr> = addresses.iter().map(|(_, address)| *address).collect();
        service_manager::ready(&listening, cpus.len());
        operational();
        let ended = supervise(&mut signals, &mut shards, &endpoints, &http).await;
        questions.abort();
        registry.abort();
        watchdog.abort();
        looking.abort();
        watching.abort();
        management.abort();
        ended
    })
}

/// Gives the sockets of HTTP listeners to the HTTP thread, and returns the others.
///
/// # Errors
/// The thread can't be started: a sentence for the user.
fn serve_http(
    http: &Http,
    config: &Config,
    sockets: Vec<(ListenerId, TcpListener)>,
    tls: &TlsProfiles,
) -> Result<Vec<(ListenerId, TcpListener)>, String> {
    let mut others = sockets;
    for (id, listener) in (0..).map(ListenerId).zip(config.served_listeners()) {
        let Some(settings) = &listener.http else { continue };
        let (its, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|(other, _)| *other == id);
        others = rest;
        let its = its.into_iter().map(|(_, socket)| socket).collect();
        http.serve(id, settings, tls.of_listener(listener)?, its)?;
    }
    Ok(others)
}

/// Makes what the file asks for beside listeners, which are there already.
fn start_endpoints(endpoints: &Endpoints, config: &Config, addresses: &[(ListenerId, SocketAddr)]) {
    for (listener_id, listener) in (0..).map(ListenerId).zip(config.served_listeners()) {
        let its =
            addresses.iter().filter(|(id, _)| *id == listener_id).map(|(_, address)| *address).collect();
        endpoints.add_started_listener(listener_id, listener.clone(), its);
    }
    for auto_link in &config.auto_links {
        if let Err(reason) = endpoints.create_auto_link(auto_link.clone()) {
            let line = auto_link.line;
            log!(Module::ConnMgr, Level::Error, "{}:{line}: autoLink: {reason}", config.file);
        }
    }
    for connector in &config.connectors {
        endpoints.create_connector(connector.clone());
    }
}

/// The CPU of each shard; `None`: not pinned, since there are more shards than CPUs.
fn cpus(config: &Config) -> Result<Vec<Option<usize>>, String> {
    let allowed = shards::allowed_cpus().map_err(|error| format!("can't read the CPU affinity: {error}"))?;
    if let Some(chosen) = &config.router.cpus {
        if let Some(missing) = chosen.iter().find(|cpu| !allowed.contains(cpu)) {
            return Err(format!(
                "{}:{}: router: 'cpus' names CPU {missing}, which this process may not run on (it may on {allowed:?})",
                config.file, config.router.line
            ));
        }
        return Ok(chosen.iter().copied().map(Some).collect());
    }
    let count = match config.router.worker_threads {
        None => allowed.len(),
        Some(count) => count as usize,
    };
    if count > allowed.len() {
        log!(
            Module::Server,
            Level::Warning,
            "{count} shards on {} CPUs: they aren't pinned, and share them",
            allowed.len()
        );
        return Ok(vec![None; count]);
    }
    Ok(allowed.into_iter().take(count).map(Some).collect())
}

/// Raises the limit of open files as far as the system lets us: each connection takes one, and the usual soft
/// limit of 1024 is for programs that use `select`.
///
/// # Errors
/// If that isn't enough for the router itself.
fn raise_file_limit() -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    if let Some(most) = limit.maximum.filter(|most| *most < OPEN_FILES_MIN) {
        return Err(format!(
            "the limit of open files is {most}, and the router takes {OPEN_FILES_MIN} for itself: raise it (ulimit -n)"
        ));
    }
    if limit.current == limit.maximum {
        return Ok(());
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        log!(Module::Router, Level::Warning, "Can't raise the limit of open files: {error}");
    }
    Ok(())
}

/// A name for a router whose configuration gives it none.
fn generated_id() -> String {
    let suffix: String = std::iter::repeat_with(fastrand::alphanumeric).take(15).collect();
    format!("Standalone_{suffix}")
}

fn snapshot(config: &Config, id: &str) -> Snapshot {
    let mut snapshot = Snapshot::new(id, treatment(config.router.default_distribution));
    for address in &config.addresses {
        let settings = AddressSettings {
            treatment: treatment(address.distribution),
            priority: address.priority,
            ingress_phase: address.ingress_phase,
            egress_phase: address.egress_phase,
        };
        snapshot.configure(&address.matching.pattern(), settings);
    }
    snapshot
}

/// What the routing table knows a distribution as.
pub(super) fn treatment(distribution: Distribution) -> Treatment {
    match distribution {
        Distribution::Multicast => Treatment::Multicast,
        Distribution::Closest => Treatment::Closest,
        Distribution::Balanced => Treatment::Balanced,
        Distribution::Unavailable => Treatment::Unavailable,
    }
}

pub(super) fn listener_settings(
    listener: &ListenerConfig,
    id: &str,
    shards: usize,
    users: &Arc<UserStore>,
    tls: &TlsProfiles,
) -> Result<ListenerSettings, String> {
    let tls = tls.of_listener(listener)?;
    let shard = listener.shard.map(|shard| {
        if usize::from(shard) < shards {
            return Ok(ShardId(shard));
        }
        Err(format!("'shard' is {shard}, but there are only shards 0 to {}", shards - 1))
    });
    let seconds = |seconds: u32| (seconds > 0).then(|| Duration::from_secs(seconds.into()));
    let authenticator = ListenerAuthenticator {
        mechanisms: (!listener.sasl_mechanisms.is_empty()).then(|| listener.known_mechanisms()),
        is_authentication_required: listener.is_authentication_required,
        users: users.clone(),
    };
    let engine = Settings {
        container_id: id.to_owned(),
        hostname: None,
        max_frame_size: listener.max_frame_size,
        channel_max: u16::try_from(listener.max_sessions - 1).unwrap_or(u16::MAX),
        idle_timeout: seconds(listener.idle_timeout_seconds),
        handshake_timeout: match listener.initial_handshake_timeout_seconds {
            None => Some(HANDSHAKE_TIMEOUT_DEFAULT),
            Some(limit) => seconds(limit),
        },
        session_frames_max: listener.max_session_frames.unwrap_or(u32::MAX >> 1),
        sasl: if listener.is_authentication_required { SaslPolicy::Required } else { SaslPolicy::Optional },
        offered_capabilities: CAPABILITIES,
        desired_capabilities: CAPABILITIES,
        authenticator: Some(Arc::new(authenticator)),
        sasl_frame_max: listener.sasl_max_frame_size,
        is_encryption_required: listener.is_encryption_required,
        ..Settings::default()
    };
    let role = match listener.role {
        Role::Normal => ConnectionRole::Normal,
        Role::RouteContainer => ConnectionRole::RouteContainer,
        Role::InterRouter | Role::Edge | Role::InterEdge | Role::InterNetwork => {
            return Err(format!("role '{}' comes with a later version", listener.role.name()));
        }
    };
    let mut properties = listener.open_properties.clone();
    if !listener.failover_urls.is_empty() {
        // In front: some peers read only the first properties that they know.
        let value = open_properties::failover_servers(&listener.failover_urls);
        let key = open_properties::FAILOVER_SERVERS.to_owned();
        properties.insert(0, Member { key, line: listener.line, value });
    }
    Ok(ListenerSettings {
        name: listener.name.clone().unwrap_or_default(),
        role,
        shard: shard.transpose()?,
        link_capacity: listener.link_capacity,
        max_message_size: listener.max_message_size,
        trace: listener.is_traced,
        half_open: listener.half_open,
        policy_vhost: listener.policy_vhost.clone(),
        logged_components: listener.message_logging_components.clone(),
        // What comes over WebSocket was decrypted by the HTTP thread.
        is_encrypted_outside: listener.http.is_some() && tls.is_some(),
        tls: tls.filter(|_| listener.http.is_none()),
        ..connection_settings(engine, listener.strip_annotations, &properties)
    })
}

/// What listeners and connectors have in common, and nothing of what they don't.
pub(super) fn connection_settings(
    engine: Settings,
    strip_annotations: StripAnnotations,
    properties: &[Member],
) -> ListenerSettings {
    let (strip_in, strip_out) = match strip_annotations {
        StripAnnotations::In => (true, false),
        StripAnnotations::Out => (false, true),
        StripAnnotations::Both => (true, true),
        StripAnnotations::No => (false, false),
    };
    ListenerSettings {
        engine,
        strip_in,
        strip_out,
        open_properties: properties
            .iter()
            .map(|member| (member.key.clone(), open_properties::encode(&member.value)))
            .collect(),
        ..ListenerSettings::default()
    }
}

/// Binds a listener's sockets: one for each address of its host.
pub(super) fn bind(listener: &ListenerConfig) -> Result<Vec<TcpListener>, String> {
    let what = listener.host_port();
    let addresses =
        listener.bind_addresses().map_err(|error| format!("can't find the address of {what}: {error}"))?;
    addresses
        .iter()
        .map(|address| {
            bind_one(*address).map_err(|error| {
                let hint = match error.kind() {
                    io::ErrorKind::AddrInUse => {
                        " (another program listens there: stop it, or choose another port in the configuration)"
                    }
                    io::ErrorKind::PermissionDenied => " (ports below 1024 need root or CAP_NET_BIND_SERVICE)",
                    _ => "",
                };
                format!("can't listen on {}: {error}{hint}", address.address)
            })
        })
        .collect()
}

fn bind_one(address: BindAddress) -> io::Result<TcpListener> {
    let domain = Domain::for_address(address.address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if address.address.is_ipv6() {
        socket.set_only_v6(address.is_v6_only)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The signals that stop a router. SIGHUP is management's.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for a signal that means to stop, and returns its name.
    async fn stop(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.quit.recv() => "SIGQUIT",
        }
    }
}

/// Waits for the end: a signal, or a shard that fails.
async fn supervise(
    signals: &mut Signals,
    shards: &mut Shards,
    endpoints: &Endpoints,
    http: &Http,
) -> Result<ExitCode, String> {
    tokio::select! {
        name = signals.stop() => {
            log!(Module::Server, Level::Notice, "{name}: shutting down; a second signal ends at once");
        }
        () = shards.first_ended() => {}
    }
    service_manager::stopping();
    http.set_ready(false);
    endpoints.stop();
    shards.shut_down();
    let told = Instant::now();
    loop {
        tokio::select! {
            name = signals.stop() => {
                if told.elapsed() >= SAME_SIGNAL {
                    log!(Module::Server, Level::Notice, "{name} again: ending at once");
                    log::flush(Duration::from_millis(100));
                    std::process::exit(1);
                }
            }
            () = shards.all_ended() => break,
        }
    }
    http.finish().await;
    shards.join()?;
    log!(Module::Server, Level::Notice, "Stopped");
    Ok(ExitCode::SUCCESS)
}
