//! `sslProfile`, `authServicePlugin`, `policy`, `vhost`.

use core::fmt;
use std::collections::HashMap;
use std::path::PathBuf;

use super::super::error::Findings;
use super::super::record::Record;

/// A password as a file has it: itself, or where it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    /// Doesn't show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// What a file has.
    pub(super) const fn new(text: String) -> Self {
        Self(text)
    }

    /// The password: of `env:NAME` an environment variable's value, of `file:PATH` the first line of a file,
    /// of `pass:TEXT` and `literal:TEXT` the text; anything else is the password itself.
    ///
    /// # Errors
    /// There is no such variable, or no such file: a sentence for the user, without the password.
    pub fn reveal(&self) -> Result<String, String> {
        let text = self.0.as_str();
        if let Some(name) = text.strip_prefix("env:") {
            return std::env::var(name).map_err(|_| format!("there is no environment variable {name}"));
        }
        if let Some(path) = text.strip_prefix("file:") {
            let content =
                std::fs::read_to_string(path).map_err(|error| format!("can't read {path}: {error}"))?;
            return Ok(content.lines().next().unwrap_or_default().to_owned());
        }
        let literal = text.strip_prefix("pass:").or_else(|| text.strip_prefix("literal:"));
        Ok(literal.unwrap_or(text).to_owned())
    }
}

/// Certificates and settings of TLS (section `sslProfile`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SslProfileConfig {
    /// The line of its section, for messages about it.
    pub line: u32,
    /// `name`, by which listeners and connectors call it.
    pub name: String,
    /// `ciphers`, in OpenSSL's notation.
    pub ciphers: Option<String>,
    /// `protocols`; empty: all that are deemed safe.
    pub protocols: Vec<String>,
    /// `caCertFile`
    pub ca_cert_file: Option<PathBuf>,
    /// `certFile`
    pub cert_file: Option<PathBuf>,
    /// `privateKeyFile`
    pub private_key_file: Option<PathBuf>,
    /// `password`, or `passwordFile`.
    pub password: Option<Secret>,
    /// `uidFormat`; letters out of `csloun125`, each once.
    pub uid_format: Option<String>,
    /// `uidNameMappingFile`
    pub uid_name_mapping_file: Option<PathBuf>,
    /// `ordinal`
    pub ordinal: u64,
    /// `oldestValidOrdinal`
    pub oldest_valid_ordinal: u64,
}

/// A remote service that authenticates clients (section `authServicePlugin`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthServiceConfig {
    /// The line of its section, for messages about it.
    pub line: u32,
    /// `name`, by which listeners call it.
    pub name: String,
    /// `host`
    pub host: String,
    /// `port`
    pub port: u16,
    /// `realm`
    pub realm: Option<String>,
    /// `sslProfile`: the name of one that there is.
    pub ssl_profile: Option<String>,
}

/// Limits for all clients together (section `policy`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyConfig {
    /// `maxConnections`; 65535: no limit.
    pub max_connections: u32,
    /// `maxMessageSize`, in bytes; 0: no limit.
    pub max_message_size: u64,
    /// `enableVhostPolicy`
    pub is_vhost_policy_enabled: bool,
    /// `enableVhostNamePatterns`
    pub has_vhost_name_patterns: bool,
    /// `policyDir`
    pub policy_dir: Option<PathBuf>,
    /// `defaultVhost`; empty: there is none.
    pub default_vhost: String,
}

/// Who may do what on a virtual host (section `vhost`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VhostConfig {
    /// The line of its section, for messages about it.
    pub line: u32,
    /// `hostname`
    pub hostname: String,
    /// `aliases`
    pub aliases: Vec<String>,
    /// `maxConnections`; 65535: no limit.
    pub max_connections: u32,
    /// `maxMessageSize`, in bytes; 0: no limit; `None`: as the policy says.
    pub max_message_size: Option<u64>,
    /// `maxConnectionsPerUser`; 65535: no limit.
    pub max_connections_per_user: u32,
    /// `maxConnectionsPerHost`; 65535: no limit.
    pub max_connections_per_host: u32,
    /// `allowUnknownUser`
    pub is_unknown_user_allowed: bool,
    /// `groups`, in the order of the file; each name occurs once, and each user in one group only.
    pub groups: Vec<VhostGroupConfig>,
}

/// What the users of a group may do. Limits of 0 and `None` are as the vhost or the listener says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VhostGroupConfig {
    /// The line of its name, for messages about it.
    pub line: u32,
    /// The group's name.
    pub name: String,
    /// `users`; `*`: all.
    pub users: Vec<String>,
    /// `remoteHosts`; `*`: all.
    pub remote_hosts: Vec<String>,
    /// `maxConnectionsPerUser`
    pub max_connections_per_user: Option<u32>,
    /// `maxConnectionsPerHost`
    pub max_connections_per_host: Option<u32>,
    /// `maxMessageSize`, in bytes; `Some(0)`: no limit.
    pub max_message_size: Option<u64>,
    /// `maxFrameSize`, in bytes; 0: as the listener says.
    pub max_frame_size: u32,
    /// `maxSessionWindow`, in bytes; 0: as the listener says.
    pub max_session_window: u32,
    /// `maxSessions`; 0: as the listener says.
    pub max_sessions: u32,
    /// `maxSenders`; 0: any number.
    pub max_senders: u32,
    /// `maxReceivers`; 0: any number.
    pub max_receivers: u32,
    /// `allowDynamicSource`
    pub is_dynamic_source_allowed: bool,
    /// `allowAnonymousSender`
    pub is_anonymous_sender_allowed: bool,
    /// `allowUserIdProxy`
    pub is_user_id_proxy_allowed: bool,
    /// `allowWaypointLinks`
    pub are_waypoint_links_allowed: bool,
    /// `allowFallbackLinks`
    pub are_fallback_links_allowed: bool,
    /// `allowDynamicLinkRoutes`
    pub are_dynamic_link_routes_allowed: bool,
    /// `allowAdminStatusUpdate`
    pub is_admin_status_update_allowed: bool,
    /// `sources` or `sourcePattern`: what they may receive from.
    pub sources: Names,
    /// `targets` or `targetPattern`: what they may send to.
    pub targets: Names,
}

/// Addresses that a group may use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Names {
    /// A list: a `*` at an end stands for any rest, `${user}` for the user's name. Empty: none.
    List(Vec<String>),
    /// Address patterns; `${user}` may be the first or the last token.
    Patterns(Vec<String>),
}

/// The profile of a record; `None` without a name, which is reported.
pub(super) fn ssl_profile_config(record: &Record, findings: &mut Findings) -> Option<SslProfileConfig> {
    if record.is_set("password") && record.is_set("passwordFile") {
        let message = "Both 'passwordFile' and 'password' cannot be specified for entity 'sslProfile': remove 'passwordFile', the older name";
        findings.error(record.line_of("passwordFile"), message);
    }
    let uid_format = record.owned("uidFormat");
    if let Some(format) = &uid_format
        && let Some(fault) = uid_format_fault(format)
    {
        let message = format!(
            "sslProfile: 'uidFormat' is '{format}', expected letters out of c, s, l, o, u, n and at most \
             one of 1, 2, 5: {fault}"
        );
        findings.error(record.line_of("uidFormat"), message);
    }
    let (ordinal, oldest_valid_ordinal) =
        (record.size("ordinal").unwrap_or(0), record.size("oldestValidOrdinal").unwrap_or(0));
    if oldest_valid_ordinal > ordinal {
        let message = format!(
            "sslProfile: 'oldestValidOrdinal' is {oldest_valid_ordinal}, expected at most 'ordinal', which is {ordinal}"
        );
        findings.error(record.line_of("oldestValidOrdinal"), message);
    }
    let path = |name: &str| record.text(name).map(PathBuf::from);
    let password_file = || record.text("passwordFile").map(|path| Secret(format!("file:{path}")));
    Some(SslProfileConfig {
        line: record.line(),
        name: required_name(record, findings)?,
        ciphers: record.owned("ciphers"),
        protocols: record.words("protocols").unwrap_or_default().to_vec(),
        ca_cert_file: path("caCertFile"),
        cert_file: path("certFile"),
        private_key_file: path("privateKeyFile"),
        password: record.owned("password").map(Secret).or_else(password_file),
        uid_format,
        uid_name_mapping_file: path("uidNameMappingFile"),
        ordinal,
        oldest_valid_ordinal,
    })
}

fn uid_format_fault(format: &str) -> Option<String> {
    let mut fingerprints = 0;
    for (index, letter) in format.char_indices() {
        if !"csloun125".contains(letter) {
            return Some(format!("'{letter}' is none of them"));
        }
        if format[..index].contains(letter) {
            return Some(format!("'{letter}' occurs twice"));
        }
        fingerprints += u32::from(letter.is_ascii_digit());
    }
    (fingerprints > 1).then(|| "there is more than one fingerprint".to_owned())
}

fn required_name(record: &Record, findings: &mut Findings) -> Option<String> {
    let name = record.owned("name");
    if name.is_none() {
        let message = format!("{}: 'name' is missing (others refer to it)", record.entity_name());
        findings.error(record.line(), message);
    }
    name
}

/// The service of a record; `None` without a name or a host, which is reported.
pub(super) fn auth_service_config(record: &Record, findings: &mut Findings) -> Option<AuthServiceConfig> {
    let name = required_name(record, findings);
    let (host, port) = match (record.text("host"), record.text("authService")) {
        (Some(host), None) => (host.to_owned(), record.port("port")),
        (None, Some(service)) => {
            let (host, port) = service.rsplit_once(':').unwrap_or((service, "5672"));
            let Ok(port) = port.parse() else {
                let message = format!("authServicePlugin: 'authService' is '{service}', expected HOST:PORT");
                findings.error(record.line_of("authService"), message);
                return None;
            };
            (host.to_owned(), port)
        }
        (Some(_), Some(_)) => {
            let message = "Both 'authService' and 'host' cannot be specified for entity 'authServicePlugin': remove 'authService', the older name";
            findings.error(record.line_of("authService"), message);
            return None;
        }
        (None, None) => {
            findings.error(record.line(), "authServicePlugin: 'host' is missing (it is required)");
            return None;
        }
    };
    Some(AuthServiceConfig {
        line: record.line(),
        name: name?,
        host,
        port,
        realm: record.owned("realm"),
        ssl_profile: record.owned("sslProfile"),
    })
}

/// The policy of its record.
pub(super) fn policy_config(record: &Record, findings: &mut Findings) -> PolicyConfig {
    let policy_dir = record.text("policyDir").map(PathBuf::from);
    if let Some(path) = policy_dir.as_ref().filter(|path| !path.is_absolute()) {
        let message = format!("policy: 'policyDir' is '{}', expected an absolute path", path.display());
        findings.error(record.line_of("policyDir"), message);
    }
    PolicyConfig {
        max_connections: record.unsigned("maxConnections").unwrap_or_default(),
        max_message_size: record.size("maxMessageSize").unwrap_or(0),
        is_vhost_policy_enabled: record.boolean("enableVhostPolicy"),
        has_vhost_name_patterns: record.boolean("enableVhostNamePatterns"),
        policy_dir,
        default_vhost: record.owned("defaultVhost").unwrap_or_default(),
    }
}

/// The vhost of a record; `None` without a host name, which has been reported.
pub(in crate::control::config) fn vhost_config(
    record: &Record,
    findings: &mut Findings,
) -> Option<VhostConfig> {
    let groups: Vec<_> =
        record.entities("groups").iter().map(|(name, group)| group_config(name, group, findings)).collect();
    let mut seen: HashMap<&str, &VhostGroupConfig> = HashMap::new();
    for group in &groups {
        for user in &group.users {
            if let Some(earlier) = seen.insert(user, group) {
                let message = format!(
                    "vhost group '{}': user '{user}' is in group '{}' as well; a user can be in one only",
                    group.name, earlier.name
                );
                findings.error(group.line, message);
            }
        }
    }
    Some(VhostConfig {
        line: record.line(),
        hostname: record.owned("hostname")?,
        aliases: record.words("aliases").unwrap_or_default().to_vec(),
        max_connections: record.unsigned("maxConnections").unwrap_or_default(),
        max_message_size: record.size("maxMessageSize"),
        max_connections_per_user: record.unsigned("maxConnectionsPerUser").unwrap_or_default(),
        max_connections_per_host: record.unsigned("maxConnectionsPerHost").unwrap_or_default(),
        is_unknown_user_allowed: record.boolean("allowUnknownUser"),
        groups,
    })
}

fn group_config(name: &str, record: &Record, findings: &mut Findings) -> VhostGroupConfig {
    let words = |name: &str| record.words(name).unwrap_or_default().to_vec();
    VhostGroupConfig {
        line: record.line(),
        name: name.to_owned(),
        users: words("users"),
        remote_hosts: words("remoteHosts"),
        max_connections_per_user: record.unsigned("maxConnectionsPerUser"),
        max_connections_per_host: record.unsigned("maxConnectionsPerHost"),
        max_message_size: record.size("maxMessageSize"),
        max_frame_size: record.unsigned("maxFrameSize").unwrap_or_default(),
        max_session_window: record.unsigned("maxSessionWindow").unwrap_or_default(),
        max_sessions: record.unsigned("maxSessions").unwrap_or_default(),
        max_senders: record.unsigned("maxSenders").unwrap_or_default(),
        max_receivers: record.unsigned("maxReceivers").unwrap_or_default(),
        is_dynamic_source_allowed: record.boolean("allowDynamicSource"),
        is_anonymous_sender_allowed: record.boolean("allowAnonymousSender"),
        is_user_id_proxy_allowed: record.boolean("allowUserIdProxy"),
        are_waypoint_links_allowed: record.boolean("allowWaypointLinks"),
        are_fallback_links_allowed: record.boolean("allowFallbackLinks"),
        are_dynamic_link_routes_allowed: record.boolean("allowDynamicLinkRoutes"),
        is_admin_status_update_allowed: record.boolean("allowAdminStatusUpdate"),
        sources: names(name, record, "sources", "sourcePattern", findings),
        targets: names(name, record, "targets", "targetPattern", findings),
    }
}

/// A list or patterns, not both.
fn names(group: &str, record: &Record, list: &str, pattern: &str, findings: &mut Findings) -> Names {
    match (record.words(list), record.words(pattern)) {
        (Some(_), Some(_)) => {
            let message =
                format!("vhost group '{group}': '{list}' and '{pattern}' can't both be set: leave one out");
            findings.error(record.line_of(list).max(record.line_of(pattern)), message);
            Names::List(Vec::new())
        }
        (None, Some(patterns)) => {
            for text in patterns {
                if !has_user_at_an_end(text) {
                    let message = format!(
                        "vhost group '{group}': '{pattern}' has '{text}', where ${{user}} isn't the whole first or last token"
                    );
                    findings.error(record.line_of(pattern), message);
                }
            }
            Names::Patterns(patterns.to_vec())
        }
        (list, None) => Names::List(list.unwrap_or_default().to_vec()),
    }
}

/// Whether `${user}`, if it occurs, is the whole of the first or of the last token.
fn has_user_at_an_end(pattern: &str) -> bool {
    let tokens: Vec<&str> = pattern.split(['.', '/']).collect();
    let last = tokens.len() - 1;
    tokens.iter().enumerate().all(|(index, token)| {
        !token.contains("${user}") || (*token == "${user}" && (index == 0 || index == last))
    })
}

/// No host name belongs to two vhosts. Each vhost comes with the name of its file.
pub(in crate::control::config) fn unique_vhosts<'v>(
    vhosts: impl IntoIterator<Item = &'v VhostConfig>,
    mut fault: impl FnMut(&'v VhostConfig, &'v VhostConfig, &'v str),
) {
    let mut seen: HashMap<&str, &VhostConfig> = HashMap::new();
    for vhost in vhosts {
        for name in core::iter::once(&vhost.hostname).chain(&vhost.aliases) {
            if let Some(earlier) = seen.insert(name, vhost) {
                fault(vhost, earlier, name);
            }
        }
    }
}
