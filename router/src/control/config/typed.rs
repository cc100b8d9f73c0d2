//! The configuration as types, and the checks that concern more than one attribute.

use core::fmt;
use core::time::Duration;

use super::Config;
use super::check::Record;
use super::error::Findings;
use super::json::Member;
use super::pattern::normal_form;
use crate::log::{Levels, Module};
use crate::shard::idle::Idle;

/// How many bytes of transfer frames a session may have in flight: the protocol's windows count frames,
/// and `qdrouterd` keeps their product with the frame size within a signed 32-bit number.
const SESSION_BYTES_MAX: u32 = 0x7fff_ffff;

/// The longest id of a router: as container-id it must fit the smallest frame, with the rest of an open.
const ID_BYTES_MAX: usize = 255;

/// The kernel's CPUs are numbered below this.
const CPUS_MAX: usize = 1024;

/// Sessions of a connection where `maxSessions` is 0.
const MAX_SESSIONS_DEFAULT: u32 = 32768;

/// Deliveries in flight on a link where `linkCapacity` is 0.
const LINK_CAPACITY_DEFAULT: u32 = 250;

/// Names of our open's properties that a file can't set: the router sets them itself.
const RESERVED_PROPERTIES: [&str; 7] =
    ["product", "version", "failover-server-list", "network-host", "port", "scheme", "hostname"];

/// The router as a whole (section `router`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouterConfig {
    /// `id`; `None`: the router makes one up.
    pub id: Option<String>,
    /// `mode`
    pub mode: RouterMode,
    /// `workerThreads`: the number of shards; `None`: one for each CPU.
    pub worker_threads: Option<u32>,
    /// The line of the section, for messages about it; 0 if there is none.
    pub line: u32,
    /// `cpus`: the CPUs to pin shards to, each once, in the order of the file; at least one.
    pub cpus: Option<Vec<usize>>,
    /// `idle` and `spinMicroseconds`: what shards do while there is nothing to do.
    pub idle: Idle,
    /// `napiMicroseconds`: how long the kernel polls devices before a shard sleeps; zero: not at all.
    pub napi: Duration,
    /// `timestampsInUTC`: of the log.
    pub is_log_in_utc: bool,
    /// `defaultDistribution`: for addresses that no `address` section matches.
    pub default_distribution: Distribution,
    /// `metadata`
    pub metadata: Option<String>,
}

/// Whether and how the router is part of a network of routers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouterMode {
    /// It is alone.
    Standalone,
}

/// How messages to an address reach its receivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distribution {
    /// A copy to each.
    Multicast,
    /// To the nearest.
    Closest,
    /// To the one with the least outstanding.
    Balanced,
    /// Links to it are refused.
    Unavailable,
}

impl Distribution {
    /// The distribution of this name; every name that the schema allows is known.
    fn from_name(name: &str) -> Option<Self> {
        [Self::Multicast, Self::Closest, Self::Balanced, Self::Unavailable]
            .into_iter()
            .find(|distribution| distribution.name() == name)
    }

    /// The name, as files and management have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Multicast => "multicast",
            Self::Closest => "closest",
            Self::Balanced => "balanced",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A family of socket addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressFamily {
    /// `IPv4`
    IPv4,
    /// `IPv6`
    IPv6,
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
    /// `saslMechanisms`; empty: the router's own choice, which is ANONYMOUS.
    pub sasl_mechanisms: Vec<String>,
    /// `authenticatePeer`: a client must go through SASL.
    pub is_authentication_required: bool,
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
    /// `idleTimeoutSeconds`; 0: never.
    pub idle_timeout_seconds: u32,
    /// `initialHandshakeTimeoutSeconds`; 0: never; `None`: the router's own limit.
    pub initial_handshake_timeout_seconds: Option<u32>,
    /// `stripAnnotations`
    pub strip_annotations: StripAnnotations,
    /// `linkCapacity`: deliveries in flight on a link, and the credit of a sender; from 1.
    pub link_capacity: u32,
    /// `messageLoggingComponents`; empty: none.
    pub message_logging_components: Vec<String>,
    /// `openProperties`, in the order of the file.
    pub open_properties: Vec<Member>,
}

impl ListenerConfig {
    /// `HOST:PORT`, with an IPv6 literal in brackets.
    #[must_use]
    pub fn host_port(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// How messages to some addresses are distributed (section `address`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressConfig {
    /// The line of its section, for messages about it.
    pub line: u32,
    /// `name`
    pub name: Option<String>,
    /// `prefix` or `pattern`: which addresses.
    pub matching: AddressMatch,
    /// `distribution`
    pub distribution: Distribution,
    /// `priority`: of messages that have none of their own, from 0 to 9; `None`: none.
    pub priority: Option<u8>,
}

/// Which addresses an `address` section means. Never empty, and not only separators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AddressMatch {
    /// Those that begin with these tokens.
    Prefix(String),
    /// Those that match this pattern: tokens between `.` or `/`, `*` for one, `#` for any number.
    Pattern(String),
}

/// What one part of the router logs, and where to (section `log`). `None`: as the module DEFAULT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogConfig {
    /// `module`
    pub module: Module,
    /// `enable`
    pub enable: Option<Levels>,
    /// `includeTimestamp`
    pub include_timestamp: Option<bool>,
    /// `includeSource`
    pub include_source: Option<bool>,
    /// `outputFile`: a path, or `stderr`, `stdout`, `syslog`.
    pub output_file: Option<String>,
}

/// Turns records into types. What they hold is right for itself; here it is held against the rest.
pub(super) fn build(records: &[Record], findings: &mut Findings) -> Config {
    let of = |name: &'static str| records.iter().filter(move |record| record.entity_name() == name);
    unique_names(records, findings);
    let router = of("router").next().expect("a singleton always has a record");
    let router = router_config(router, findings);
    let listeners: Vec<_> = of("listener").map(|record| listener_config(record, findings)).collect();
    unique_ports(&listeners, findings);
    let addresses: Vec<_> = of("address").filter_map(|record| address_config(record, findings)).collect();
    unique_patterns(&addresses, findings);
    let logs = log_configs(of("log"), findings);
    if listeners.is_empty() {
        findings.file_warning("no section 'listener': nobody can connect");
    }
    Config { file: String::new(), router, listeners, addresses, logs, warnings: Vec::new() }
}

fn unique_names(records: &[Record], findings: &mut Findings) {
    for (index, record) in records.iter().enumerate() {
        let Some(name) = record.text("name") else { continue };
        let is_same =
            |other: &&Record| other.entity_name() == record.entity_name() && other.text("name") == Some(name);
        if let Some(earlier) = records[..index].iter().find(is_same) {
            let message = format!(
                "{}: the name '{name}' is in use already, at line {}",
                record.entity_name(),
                earlier.line_of("name")
            );
            findings.error(record.line_of("name"), message);
        }
    }
}

fn router_config(record: &Record, findings: &mut Findings) -> RouterConfig {
    let id = record.text("id");
    if let Some(id) = id {
        let is_forbidden = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '|' | '$' | '/');
        if id.is_empty() || id.len() > ID_BYTES_MAX || id.contains(is_forbidden) {
            let message = format!(
                "router: 'id' is '{id}', expected a name of 1 to {ID_BYTES_MAX} bytes without blanks, control \
                 characters, '|', '$' and '/'"
            );
            findings.error(record.line_of("id"), message);
        }
    }
    let mode = match record.text("mode") {
        Some("standalone") => RouterMode::Standalone,
        other => unreachable!("the schema refuses mode {other:?}"),
    };
    let worker_threads = record.unsigned("workerThreads");
    let cpus = record.text("cpus").and_then(|text| match cpu_list(text) {
        Ok(cpus) => Some(cpus),
        Err(reason) => {
            let message =
                format!("router: 'cpus' is '{text}', expected numbers and ranges such as 2-5,8: {reason}");
            findings.error(record.line_of("cpus"), message);
            None
        }
    });
    if cpus.is_some() && worker_threads.is_some() {
        let message = "router: 'cpus' and 'workerThreads' are both given; leave one out".to_owned();
        findings.error(record.line_of("cpus"), message);
    }
    RouterConfig {
        id: id.map(str::to_owned),
        mode,
        line: record.line,
        worker_threads,
        cpus,
        idle: idle(record, findings),
        napi: microseconds(record, "napiMicroseconds"),
        is_log_in_utc: record.boolean("timestampsInUTC"),
        default_distribution: distribution(record, "defaultDistribution"),
        metadata: record.text("metadata").map(str::to_owned),
    }
}

fn microseconds(record: &Record, name: &str) -> Duration {
    Duration::from_micros(record.unsigned(name).unwrap_or(0).into())
}

/// What shards do while there is nothing to do. Settings that the others make useless give a warning.
fn idle(record: &Record, findings: &mut Findings) -> Idle {
    let idle = match record.text("idle") {
        Some("spin") => Idle::Spin,
        Some("spin-then-block") => Idle::SpinThenBlock(microseconds(record, "spinMicroseconds")),
        Some("block") => Idle::Block,
        other => unreachable!("the schema refuses idle {other:?}"),
    };
    let spins_for_a_while = matches!(idle, Idle::SpinThenBlock(_));
    if record.is_set("spinMicroseconds") && !spins_for_a_while {
        let message = "router: 'spinMicroseconds' changes nothing without 'idle: spin-then-block'".to_owned();
        findings.warning(record.line_of("spinMicroseconds"), message);
    }
    if idle == Idle::Spin && !microseconds(record, "napiMicroseconds").is_zero() {
        let message =
            "router: 'napiMicroseconds' changes nothing with 'idle: spin': the kernel polls devices \
                       only before a shard sleeps, and these never do"
                .to_owned();
        findings.warning(record.line_of("napiMicroseconds"), message);
    }
    idle
}

/// The CPUs of a list such as `2-5,8`.
fn cpu_list(text: &str) -> Result<Vec<usize>, String> {
    let number = |text: &str| {
        let number = text.trim().parse::<usize>().ok().filter(|&cpu| cpu < CPUS_MAX);
        number.ok_or_else(|| format!("'{text}' isn't a CPU's number below {CPUS_MAX}"))
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if last < first {
            return Err(format!("the range '{part}' runs backwards"));
        }
        for cpu in first..=last {
            if cpus.contains(&cpu) {
                return Err(format!("CPU {cpu} is named twice"));
            }
            cpus.push(cpu);
        }
    }
    Ok(cpus)
}

fn distribution(record: &Record, name: &str) -> Distribution {
    record.text(name).and_then(Distribution::from_name).expect("the schema's words are distributions")
}

fn listener_config(record: &Record, findings: &mut Findings) -> ListenerConfig {
    let max_frame_size = record.unsigned("maxFrameSize").unwrap_or(512);
    let mechanisms = record.words("saslMechanisms").unwrap_or_default();
    let is_authentication_required = record.boolean("authenticatePeer");
    if is_authentication_required && !record.is_set("saslMechanisms") {
        let message = "listener: 'authenticatePeer' needs a mechanism that isn't available yet in this version: \
                       set 'saslMechanisms: ANONYMOUS' to demand SASL only, or 'authenticatePeer: no'";
        findings.error(record.line_of("authenticatePeer"), message);
    }
    let components = record.words("messageLoggingComponents").unwrap_or_default();
    if components.len() > 1 && components.iter().any(|word| matches!(word.as_str(), "none" | "all")) {
        let message = "listener: 'messageLoggingComponents' has 'none' or 'all' beside other components";
        findings.error(record.line_of("messageLoggingComponents"), message);
    }
    let address_family = record.text("socketAddressFamily").map(|family| match family {
        "IPv4" => AddressFamily::IPv4,
        "IPv6" => AddressFamily::IPv6,
        other => unreachable!("the schema refuses the family {other}"),
    });
    let host = record.text("host").unwrap_or_default().to_owned();
    host_of_family(record, &host, address_family, findings);
    ListenerConfig {
        line: record.line,
        name: record.text("name").map(str::to_owned),
        host,
        port: record.integer("port").and_then(|port| u16::try_from(port).ok()).unwrap_or_default(),
        socket_address_family: address_family,
        sasl_mechanisms: mechanisms.to_vec(),
        is_authentication_required,
        max_frame_size,
        max_sessions: record.unsigned("maxSessions").filter(|max| *max > 0).unwrap_or(MAX_SESSIONS_DEFAULT),
        max_session_frames: max_session_frames(record, max_frame_size, findings),
        shard: record.unsigned("shard").and_then(|shard| u16::try_from(shard).ok()),
        max_message_size: record
            .integer("maxMessageSize")
            .and_then(|size| u64::try_from(size).ok())
            .unwrap_or(0),
        idle_timeout_seconds: record.unsigned("idleTimeoutSeconds").unwrap_or_default(),
        initial_handshake_timeout_seconds: record.unsigned("initialHandshakeTimeoutSeconds"),
        strip_annotations: match record.text("stripAnnotations") {
            Some("in") => StripAnnotations::In,
            Some("out") => StripAnnotations::Out,
            Some("both") => StripAnnotations::Both,
            Some("no") => StripAnnotations::No,
            other => unreachable!("the schema refuses stripAnnotations {other:?}"),
        },
        link_capacity: record
            .unsigned("linkCapacity")
            .filter(|capacity| *capacity > 0)
            .unwrap_or(LINK_CAPACITY_DEFAULT),
        message_logging_components: components.iter().filter(|word| *word != "none").cloned().collect(),
        open_properties: open_properties(record, findings),
    }
}

/// A literal of one family can't be listened on as the other.
fn host_of_family(record: &Record, host: &str, family: Option<AddressFamily>, findings: &mut Findings) {
    let is_contradiction = match family {
        Some(AddressFamily::IPv4) => host.contains(':'),
        Some(AddressFamily::IPv6) => host.parse::<core::net::Ipv4Addr>().is_ok(),
        None => false,
    };
    if is_contradiction {
        let message = format!(
            "listener: 'host' is '{host}', which isn't of the family that 'socketAddressFamily' demands"
        );
        findings.error(record.line_of("host"), message);
    }
}

fn max_session_frames(record: &Record, max_frame_size: u32, findings: &mut Findings) -> Option<u32> {
    let frames = record.unsigned("maxSessionFrames").filter(|frames| *frames > 0)?;
    let most = (SESSION_BYTES_MAX / max_frame_size).max(1);
    if frames > most {
        let message = format!(
            "listener: 'maxSessionFrames' is reduced from {frames} to {most}: its product with 'maxFrameSize' \
             ({max_frame_size}) may not exceed 2^31 - 1"
        );
        findings.warning(record.line_of("maxSessionFrames"), message);
    }
    Some(frames.min(most))
}

fn open_properties(record: &Record, findings: &mut Findings) -> Vec<Member> {
    let members = record.map("openProperties");
    for (index, member) in members.iter().enumerate() {
        let key = member.key.as_str();
        let fault = if !key.is_ascii() || key.is_empty() {
            "a name consists of ASCII characters".to_owned()
        } else if RESERVED_PROPERTIES.contains(&key) || key.starts_with("qd.") || key.starts_with("x-opt-qd.")
        {
            "the name is reserved for the router's own properties".to_owned()
        } else if let Some(earlier) = members[..index].iter().find(|earlier| earlier.key == key) {
            format!("it is set twice, first at line {}", earlier.line)
        } else {
            continue;
        };
        findings.error(member.line, format!("listener: 'openProperties' has \"{key}\": {fault}"));
    }
    members.to_vec()
}

/// Two listeners on one port of one address: the second couldn't be opened.
fn unique_ports(listeners: &[ListenerConfig], findings: &mut Findings) {
    for (index, listener) in listeners.iter().enumerate() {
        let is_same = |other: &&ListenerConfig| {
            other.host == listener.host
                && other.port == listener.port
                && other.socket_address_family == listener.socket_address_family
        };
        let earlier = listeners[..index].iter().find(is_same);
        if let Some(earlier) = earlier.filter(|_| listener.port != 0) {
            let message = format!(
                "listener: {} is listened on already, by the section at line {}",
                listener.host_port(),
                earlier.line
            );
            findings.error(listener.line, message);
        }
    }
}

fn address_config(record: &Record, findings: &mut Findings) -> Option<AddressConfig> {
    let (attribute, matching) = match (record.text("prefix"), record.text("pattern")) {
        (Some(prefix), None) => ("prefix", AddressMatch::Prefix(prefix.to_owned())),
        (None, Some(pattern)) => ("pattern", AddressMatch::Pattern(pattern.to_owned())),
        (Some(_), Some(_)) => {
            let line = record.line_of("prefix").max(record.line_of("pattern"));
            findings.error(line, "address: 'prefix' and 'pattern' can't both be set: leave one out");
            return None;
        }
        (None, None) => {
            findings
                .error(record.line, "address: 'prefix' or 'pattern' is missing (one of them is required)");
            return None;
        }
    };
    if matching.normal_form().is_empty() || matching.text().trim_matches(['.', '/']).is_empty() {
        let message = format!("address: '{attribute}' is '{}', which names no address", matching.text());
        findings.error(record.line_of(attribute), message);
        return None;
    }
    Some(AddressConfig {
        line: record.line,
        name: record.text("name").map(str::to_owned),
        matching,
        distribution: distribution(record, "distribution"),
        priority: record.integer("priority").and_then(|priority| u8::try_from(priority).ok()),
    })
}

impl AddressMatch {
    /// The prefix or pattern as written.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Prefix(text) | Self::Pattern(text) => text,
        }
    }

    /// The pattern that matches the same, in a form that is equal for patterns that match the same.
    fn normal_form(&self) -> String {
        match self {
            // A prefix P behaves as the pattern P/#.
            Self::Prefix(prefix) => normal_form(&format!("{}/#", prefix.trim_end_matches(['.', '/']))),
            Self::Pattern(pattern) => normal_form(pattern),
        }
    }
}

fn unique_patterns(addresses: &[AddressConfig], findings: &mut Findings) {
    let forms: Vec<_> = addresses.iter().map(|address| address.matching.normal_form()).collect();
    for (index, address) in addresses.iter().enumerate() {
        if let Some(earlier) = forms[..index].iter().position(|form| *form == forms[index]) {
            let message = format!(
                "address: pattern conflicts: '{}' matches the same addresses as '{}' at line {}",
                address.matching.text(),
                addresses[earlier].matching.text(),
                addresses[earlier].line
            );
            findings.error(address.line, message);
        }
    }
}

fn log_configs<'r>(records: impl Iterator<Item = &'r Record>, findings: &mut Findings) -> Vec<LogConfig> {
    let mut seen: Vec<(Module, u32)> = Vec::new();
    let mut logs = Vec::new();
    for record in records {
        // Missing or wrong: reported where the schema was checked.
        let Some(module) = record.text("module").and_then(Module::find) else { continue };
        if let Some((_, line)) = seen.iter().find(|(other, _)| *other == module) {
            let message = format!(
                "log: module {module} has a section already, at line {line}; what this one sets prevails"
            );
            findings.warning(record.line, message);
        } else {
            seen.push((module, record.line));
        }
        logs.push(LogConfig {
            module,
            enable: record.levels("enable"),
            include_timestamp: record.optional_boolean("includeTimestamp"),
            include_source: record.optional_boolean("includeSource"),
            output_file: record.text("outputFile").map(str::to_owned),
        });
    }
    logs
}
