//! `listener` and `connector`.

use std::collections::HashMap;
use std::path::PathBuf;

use super::super::error::{BY_MANAGEMENT, Findings, place};
use super::super::features::Feature;
use super::super::json::Member;
use super::super::record::Record;
use super::RouterMode;
use super::security::Secret;
use crate::sasl::Mechanism;
use crate::shard::guard::HalfOpenLimits;

/// How many bytes of transfer frames a session may have in flight: the protocol's windows count frames,
/// and `qdrouterd` keeps their product with the frame size within a signed 32-bit number.
const SESSION_BYTES_MAX: u32 = 0x7fff_ffff;

/// Sessions of a connection where `maxSessions` is 0.
const MAX_SESSIONS_DEFAULT: u32 = 32768;

/// Deliveries in flight on a link where `linkCapacity` is 0.
const LINK_CAPACITY_DEFAULT: u32 = 250;

/// Names of our open's properties that a file can't set: the router sets them itself.
const RESERVED_PROPERTIES: [&str; 7] =
    ["product", "version", "failover-server-list", "network-host", "port", "scheme", "hostname"];

/// A family of socket addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddressFamily {
    /// `IPv4`
    IPv4,
    /// `IPv6`
    IPv6,
}

/// What a peer is to the router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// `normal`: anything that speaks AMQP.
    Normal,
    /// `inter-router`: a router of the same network.
    InterRouter,
    /// `route-container`: a broker or other container, with auto-links and link routes to it.
    RouteContainer,
    /// `edge`: an edge router, or the router that this edge router belongs to.
    Edge,
    /// `inter-edge`: an edge router beside this one (skupper's).
    InterEdge,
    /// `inter-network`: a router of another network (skupper's).
    InterNetwork,
}

impl Role {
    /// The role of this name; every name that the schema allows is known.
    fn from_name(name: &str) -> Option<Self> {
        [
            Self::Normal,
            Self::InterRouter,
            Self::RouteContainer,
            Self::Edge,
            Self::InterEdge,
            Self::InterNetwork,
        ]
        .into_iter()
        .find(|role| role.name() == name)
    }

    /// The name, as files and management have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::InterRouter => "inter-router",
            Self::RouteContainer => "route-container",
            Self::Edge => "edge",
            Self::InterEdge => "inter-edge",
            Self::InterNetwork => "inter-network",
        }
    }

    /// Whether the peer is a router.
    #[must_use]
    pub const fn is_router(self) -> bool {
        match self {
            Self::Normal | Self::RouteContainer => false,
            Self::InterRouter | Self::Edge | Self::InterEdge | Self::InterNetwork => true,
        }
    }
}

/// Where the routers' own annotations are taken out of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripAnnotations {
    /// As they come in.
    In,
    /// As they go out.
    Out,
    /// Both.
    Both,
    /// Nowhere.
    No,
}

/// What a listener serves over HTTP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HttpConfig {
    /// `healthz`
    pub has_healthz: bool,
    /// `metrics`
    pub has_metrics: bool,
    /// `websockets`: AMQP over WebSocket.
    pub has_websockets: bool,
    /// `httpRootDir`: the files to serve; `None`: none.
    pub root_dir: Option<PathBuf>,
}

/// An address on which the router accepts connections (section `listener`).
#[derive(Clone, PartialEq, Debug)]
pub struct ListenerConfig {
    /// The line of its section, for messages about it.
    pub line: u32,
    /// `name`
    pub name: Option<String>,
    /// `host`, an IPv6 literal without brackets; empty: all local addresses.
    pub host: String,
    /// `port`; 0: a free one.
    pub port: u16,
    /// `socketAddressFamily`: listen on addresses of this family only.
    pub socket_address_family: Option<AddressFamily>,
    /// `role`: who connects here.
    pub role: Role,
    /// `cost` of the way to a router that connects here; from 1.
    pub cost: u32,
    /// `sslProfile`: the name of one that there is.
    pub ssl_profile: Option<String>,
    /// `saslMechanisms`; empty: all that can be used.
    pub sasl_mechanisms: Vec<String>,
    /// `authenticatePeer`: a client must go through SASL.
    pub is_authentication_required: bool,
    /// `saslPlugin`: the name of an `authServicePlugin` that there is.
    pub sasl_plugin: Option<String>,
    /// `requireEncryption`: connections that aren't encrypted are refused.
    pub is_encryption_required: bool,
    /// `requireSsl`: connections that don't begin with TLS are refused.
    pub is_tls_required: bool,
    /// `trustedCertsFile`
    pub trusted_certs_file: Option<PathBuf>,
    /// `maxFrameSize`, in bytes: from 512.
    pub max_frame_size: u32,
    /// `maxSessions` of a connection: from 1 to 32768.
    pub max_sessions: u32,
    /// `maxSessionFrames`: the incoming window of a session in frames, from 1; `None`: the router's own
    /// choice. Its product with [`Self::max_frame_size`] is at most 2^31 - 1.
    pub max_session_frames: Option<u32>,
    /// `shard`: which one serves the connections; `None`: the one with the fewest.
    pub shard: Option<u16>,
    /// `maxMessageSize`, in bytes; 0: no limit.
    pub max_message_size: u64,
    /// `saslMaxFrameSize`, in bytes: from 512.
    pub sasl_max_frame_size: u32,
    /// `maxHalfOpen` and `maxHalfOpenPerNetwork`, from 1.
    pub half_open: HalfOpenLimits,
    /// `idleTimeoutSeconds`; 0: never.
    pub idle_timeout_seconds: u32,
    /// `initialHandshakeTimeoutSeconds`; 0: never; `None`: the router's own limit.
    pub initial_handshake_timeout_seconds: Option<u32>,
    /// `stripAnnotations`
    pub strip_annotations: StripAnnotations,
    /// `linkCapacity`: deliveries in flight on a link, and the credit of a sender; from 1.
    pub link_capacity: u32,
    /// `multiTenant`: every virtual host has an address space of its own.
    pub is_multi_tenant: bool,
    /// `failoverUrls`, in the order of the file.
    pub failover_urls: Vec<String>,
    /// `http`, or `httpRootDir` is set: what is served over HTTP; `None`: the listener speaks AMQP.
    pub http: Option<HttpConfig>,
    /// `policyVhost`
    pub policy_vhost: Option<String>,
    /// `messageLoggingComponents`; empty: none.
    pub message_logging_components: Vec<String>,
    /// `openProperties`, in the order of the file.
    pub open_properties: Vec<Member>,
    /// `enableProtocolTrace`: log the frames of its connections.
    pub is_traced: bool,
}

/// A connection that the router opens (section `connector`).
#[derive(Clone, PartialEq, Debug)]
pub struct ConnectorConfig {
    /// The line of its section, for messages about it.
    pub line: u32,
    /// `name`
    pub name: Option<String>,
    /// `host`, an IPv6 literal without brackets; never empty.
    pub host: String,
    /// `port`, from 1.
    pub port: u16,
    /// `protocolFamily`: connect to addresses of this family only.
    pub protocol_family: Option<AddressFamily>,
    /// `role`: what is there.
    pub role: Role,
    /// `cost` of the way to a router there; from 1.
    pub cost: u32,
    /// `sslProfile`: the name of one that there is.
    pub ssl_profile: Option<String>,
    /// `verifyHostname`: with TLS, the certificate must name the host.
    pub is_hostname_verified: bool,
    /// `saslMechanisms` that may be used; empty: any.
    pub sasl_mechanisms: Vec<String>,
    /// `saslUsername`
    pub sasl_username: Option<String>,
    /// `saslPassword`
    pub sasl_password: Option<Secret>,
    /// `maxFrameSize`, in bytes: from 512.
    pub max_frame_size: u32,
    /// `maxSessions` of the connection: from 1 to 32768.
    pub max_sessions: u32,
    /// `maxSessionFrames`: the incoming window of a session in frames, from 1; `None`: the router's own
    /// choice. Its product with [`Self::max_frame_size`] is at most 2^31 - 1.
    pub max_session_frames: Option<u32>,
    /// `idleTimeoutSeconds`; 0: never.
    pub idle_timeout_seconds: u32,
    /// `stripAnnotations`
    pub strip_annotations: StripAnnotations,
    /// `linkCapacity`: deliveries in flight on a link, and the credit of a sender; from 1.
    pub link_capacity: u32,
    /// `messageLoggingComponents`; empty: none.
    pub message_logging_components: Vec<String>,
    /// `policyVhost`: its group `$connector` limits what the peer may do; `None`: nothing does.
    pub policy_vhost: Option<String>,
    /// `openProperties`, in the order of the file.
    pub open_properties: Vec<Member>,
    /// `enableProtocolTrace`: log the frames of its connections.
    pub is_traced: bool,
}

impl ListenerConfig {
    /// `HOST:PORT`, with an IPv6 literal in brackets.
    #[must_use]
    pub fn host_port(&self) -> String {
        host_port(&self.host, self.port)
    }

    /// Those of its SASL mechanisms that the router has.
    #[must_use]
    pub fn known_mechanisms(&self) -> Vec<Mechanism> {
        self.sasl_mechanisms.iter().filter_map(|name| Mechanism::from_name(name)).collect()
    }

    /// Whether this version can serve what the listener asks for; if not, it isn't opened, since it would
    /// let in whom the file keeps out, or take one kind of peer for another.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let needs_tls = self.is_tls_required || self.is_encryption_required;
        let has_mechanism = self.sasl_mechanisms.is_empty() || !self.known_mechanisms().is_empty();
        (!self.role.is_router() || Feature::Network.is_served())
            && (self.http.is_none() || Feature::Http.is_served())
            && (!needs_tls || Feature::Tls.is_served())
            && (!self.is_authentication_required || has_mechanism)
    }
}

impl ConnectorConfig {
    /// `HOST:PORT`, with an IPv6 literal in brackets.
    #[must_use]
    pub fn host_port(&self) -> String {
        host_port(&self.host, self.port)
    }

    /// Whether this version can open what the connector asks for.
    #[must_use]
    pub fn is_served(&self) -> bool {
        Feature::Connectors.is_served()
            && (!self.role.is_router() || Feature::Network.is_served())
            && (self.ssl_profile.is_none() || Feature::Tls.is_served())
    }
}

fn host_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The listener of a record.
pub(super) fn listener_config(record: &Record, mode: RouterMode, findings: &mut Findings) -> ListenerConfig {
    let max_frame_size = record.unsigned("maxFrameSize").unwrap_or(512);
    let is_authentication_required = record.boolean("authenticatePeer");
    let role = role(record);
    role_fits_mode(record, role, mode, findings);
    let socket_address_family = family(record, "socketAddressFamily");
    let host = record.owned("host").unwrap_or_default();
    host_of_family(record, &host, "socketAddressFamily", socket_address_family, findings);
    let http_root_dir = record.text("httpRootDir").map(PathBuf::from);
    let is_http = record.boolean("http") || http_root_dir.is_some();
    if is_http && role != Role::Normal {
        let message = format!("listener: 'http' can't be combined with role '{}'", role.name());
        findings.error(record.line_of("http").max(record.line_of("httpRootDir")), message);
    }
    ListenerConfig {
        line: record.line(),
        name: record.owned("name"),
        host,
        port: record.port("port"),
        socket_address_family,
        role,
        cost: record.unsigned("cost").unwrap_or(1),
        ssl_profile: record.owned("sslProfile"),
        sasl_mechanisms: record.words("saslMechanisms").unwrap_or_default().to_vec(),
        is_authentication_required,
        sasl_plugin: record.owned("saslPlugin"),
        is_encryption_required: record.boolean("requireEncryption"),
        is_tls_required: record.boolean("requireSsl"),
        trusted_certs_file: record.text("trustedCertsFile").map(PathBuf::from),
        max_frame_size,
        max_sessions: max_sessions(record),
        max_session_frames: max_session_frames(record, max_frame_size, findings),
        shard: record.unsigned("shard").and_then(|shard| u16::try_from(shard).ok()),
        max_message_size: record.size("maxMessageSize").unwrap_or(0),
        sasl_max_frame_size: record.unsigned("saslMaxFrameSize").unwrap_or(512),
        half_open: HalfOpenLimits {
            listener: record.unsigned("maxHalfOpen").unwrap_or(u32::MAX),
            block: record.unsigned("maxHalfOpenPerNetwork").unwrap_or(u32::MAX),
        },
        idle_timeout_seconds: record.unsigned("idleTimeoutSeconds").unwrap_or_default(),
        initial_handshake_timeout_seconds: record.unsigned("initialHandshakeTimeoutSeconds"),
        strip_annotations: strip_annotations(record),
        link_capacity: link_capacity(record),
        is_multi_tenant: record.boolean("multiTenant"),
        failover_urls: failover_urls(record),
        http: is_http.then(|| HttpConfig {
            has_healthz: record.boolean("healthz"),
            has_metrics: record.boolean("metrics"),
            has_websockets: record.boolean("websockets"),
            root_dir: http_root_dir,
        }),
        policy_vhost: record.owned("policyVhost"),
        message_logging_components: message_logging_components(record, findings),
        open_properties: open_properties(record, role, findings),
        is_traced: record.boolean("enableProtocolTrace"),
    }
}

/// The connector of a record.
pub(super) fn connector_config(
    record: &Record,
    mode: RouterMode,
    findings: &mut Findings,
) -> ConnectorConfig {
    let max_frame_size = record.unsigned("maxFrameSize").unwrap_or(512);
    let role = role(record);
    role_fits_mode(record, role, mode, findings);
    let host = record.owned("host").unwrap_or_default();
    if host.is_empty() {
        findings.error(record.line_of("host"), "connector: 'host' is '', expected a host to connect to");
    }
    let port = record.port("port");
    if port == 0 {
        findings.error(record.line_of("port"), "connector: 'port' is '0', expected a port from 1 to 65535");
    }
    // skupper-router calls it otherwise.
    let family_name =
        if record.is_set("socketAddressFamily") { "socketAddressFamily" } else { "protocolFamily" };
    let protocol_family = family(record, family_name);
    host_of_family(record, &host, family_name, protocol_family, findings);
    ConnectorConfig {
        line: record.line(),
        name: record.owned("name"),
        host,
        port,
        protocol_family,
        role,
        cost: record.unsigned("cost").unwrap_or(1),
        ssl_profile: record.owned("sslProfile"),
        is_hostname_verified: record.boolean("verifyHostname"),
        sasl_mechanisms: record.words("saslMechanisms").unwrap_or_default().to_vec(),
        sasl_username: record.owned("saslUsername"),
        sasl_password: record.owned("saslPassword").map(Secret::new),
        max_frame_size,
        max_sessions: max_sessions(record),
        max_session_frames: max_session_frames(record, max_frame_size, findings),
        idle_timeout_seconds: record.unsigned("idleTimeoutSeconds").unwrap_or_default(),
        strip_annotations: strip_annotations(record),
        link_capacity: link_capacity(record),
        message_logging_components: message_logging_components(record, findings),
        policy_vhost: record.owned("policyVhost"),
        open_properties: open_properties(record, role, findings),
        is_traced: record.boolean("enableProtocolTrace"),
    }
}

fn role(record: &Record) -> Role {
    record.text("role").and_then(Role::from_name).expect("the schema's words are roles")
}

/// Which roles a router of each mode may have, in the words that scripts look for.
fn role_fits_mode(record: &Record, role: Role, mode: RouterMode, findings: &mut Findings) {
    let is_listener = record.entity_name() == "listener";
    let fault = match (mode, role) {
        (_, Role::Normal | Role::RouteContainer) => return,
        (RouterMode::Standalone, Role::InterRouter | Role::Edge | Role::InterEdge | Role::InterNetwork) => {
            "role='standalone' not allowed to connect to or accept connections from other routers."
        }
        (RouterMode::Edge, Role::InterRouter) => {
            "role='inter-router' only allowed with router mode='interior'"
        }
        (RouterMode::Edge, Role::Edge) if is_listener => {
            "role='edge' only allowed with router mode='interior'"
        }
        (RouterMode::Interior, Role::Edge) if !is_listener => {
            "role='edge' of a connector only allowed with router mode='edge'"
        }
        (RouterMode::Interior, Role::InterEdge) => "role='inter-edge' only allowed with router mode='edge'",
        (RouterMode::Edge, Role::InterNetwork) => {
            "role='inter-network' only allowed with router mode='interior'"
        }
        (RouterMode::Interior, Role::InterRouter | Role::Edge | Role::InterNetwork)
        | (RouterMode::Edge, Role::Edge | Role::InterEdge) => return,
    };
    let written = format!(
        "{}: {fault} (here it is role '{}' with mode '{}')",
        record.entity_name(),
        role.name(),
        mode.name()
    );
    findings.error(record.line_of("role"), written);
}

fn family(record: &Record, name: &str) -> Option<AddressFamily> {
    record.text(name).map(|family| match family {
        "IPv4" => AddressFamily::IPv4,
        "IPv6" => AddressFamily::IPv6,
        other => unreachable!("the schema refuses the family {other}"),
    })
}

fn max_sessions(record: &Record) -> u32 {
    record.unsigned("maxSessions").filter(|max| *max > 0).unwrap_or(MAX_SESSIONS_DEFAULT)
}

fn link_capacity(record: &Record) -> u32 {
    record.unsigned("linkCapacity").filter(|capacity| *capacity > 0).unwrap_or(LINK_CAPACITY_DEFAULT)
}

fn strip_annotations(record: &Record) -> StripAnnotations {
    match record.text("stripAnnotations") {
        Some("in") => StripAnnotations::In,
        Some("out") => StripAnnotations::Out,
        Some("both") => StripAnnotations::Both,
        Some("no") => StripAnnotations::No,
        other => unreachable!("the schema refuses stripAnnotations {other:?}"),
    }
}

fn failover_urls(record: &Record) -> Vec<String> {
    let urls = record.text("failoverUrls").unwrap_or_default();
    urls.split(',').map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect()
}

fn message_logging_components(record: &Record, findings: &mut Findings) -> Vec<String> {
    let components = record.words("messageLoggingComponents").unwrap_or_default();
    if components.len() > 1 && components.iter().any(|word| matches!(word.as_str(), "none" | "all")) {
        let message = format!(
            "{}: 'messageLoggingComponents' has 'none' or 'all' beside other components",
            record.entity_name()
        );
        findings.error(record.line_of("messageLoggingComponents"), message);
    }
    components.iter().filter(|word| *word != "none").cloned().collect()
}

/// A literal of one family isn't one of the other.
fn host_of_family(
    record: &Record,
    host: &str,
    attribute: &str,
    family: Option<AddressFamily>,
    findings: &mut Findings,
) {
    let is_contradiction = match family {
        Some(AddressFamily::IPv4) => host.contains(':'),
        Some(AddressFamily::IPv6) => host.parse::<core::net::Ipv4Addr>().is_ok(),
        None => false,
    };
    if is_contradiction {
        let message = format!(
            "{}: 'host' is '{host}', which isn't of the family that '{attribute}' demands",
            record.entity_name()
        );
        findings.error(record.line_of("host"), message);
    }
}

fn max_session_frames(record: &Record, max_frame_size: u32, findings: &mut Findings) -> Option<u32> {
    let frames = record.unsigned("maxSessionFrames").filter(|frames| *frames > 0)?;
    let most = (SESSION_BYTES_MAX / max_frame_size).max(1);
    if frames > most {
        let message = format!(
            "{}: 'maxSessionFrames' is reduced from {frames} to {most}: its product with 'maxFrameSize' \
             ({max_frame_size}) may not exceed 2^31 - 1",
            record.entity_name()
        );
        findings.warning(record.line_of("maxSessionFrames"), message);
    }
    Some(frames.min(most))
}

fn open_properties(record: &Record, role: Role, findings: &mut Findings) -> Vec<Member> {
    let members = record.map("openProperties");
    if role.is_router() && !members.is_empty() {
        let message = format!(
            "{}: 'openProperties' can't be set with role '{}', whose properties are the routers' own",
            record.entity_name(),
            role.name()
        );
        findings.error(record.line_of("openProperties"), message);
    }
    for (index, member) in members.iter().enumerate() {
        let key = member.key.as_str();
        let fault = if !key.is_ascii() || key.is_empty() {
            "a name consists of ASCII characters".to_owned()
        } else if RESERVED_PROPERTIES.contains(&key) || key.starts_with("qd.") || key.starts_with("x-opt-qd.")
        {
            "the name is reserved for the router's own properties".to_owned()
        } else if let Some(earlier) = members[..index].iter().find(|earlier| earlier.key == key) {
            match earlier.line {
                BY_MANAGEMENT => "it is set twice".to_owned(),
                line => format!("it is set twice, first at line {line}"),
            }
        } else {
            continue;
        };
        findings
            .error(member.line, format!("{}: 'openProperties' has \"{key}\": {fault}", record.entity_name()));
    }
    members.to_vec()
}

/// Two listeners on one port of one address: the second couldn't be opened.
pub(super) fn unique_ports(listeners: &[ListenerConfig], findings: &mut Findings) {
    let mut seen: HashMap<_, u32> = HashMap::new();
    for listener in listeners.iter().filter(|listener| listener.port != 0) {
        let key = (listener.host.as_str(), listener.port, listener.socket_address_family);
        if let Some(earlier) = seen.get(&key) {
            let message = format!(
                "listener: {} is listened on already, by the listener {}",
                listener.host_port(),
                place(*earlier)
            );
            findings.error(listener.line, message);
        } else {
            seen.insert(key, listener.line);
        }
    }
}
