//! From the configuration's sections `policy` and `vhost` to the policy that shards ask.

use super::config::{Config, Names, VhostConfig, VhostGroupConfig};
use crate::log;
use crate::log::{Level, Module};
use crate::routing::policy::counts::{ConnectionLimits, Counts};
use crate::routing::policy::hosts::Hosts;
use crate::routing::policy::{Group, Naming, Permissions, Policy, Vhost, limit, names};
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;

/// The policy of a configuration, counted in `counts`. Names of hosts are looked up now: those that can't be found are named in
/// the log, and nobody comes from there.
pub(super) fn policy(config: &Config, counts: &Arc<Counts>) -> Policy {
    let settings = &config.policy;
    let mut policy = Policy::default();
    policy.max_connections = limit(settings.max_connections);
    policy.max_message_size = settings.max_message_size;
    policy.counts = counts.clone();
    if settings.is_vhost_policy_enabled {
        let naming =
            Naming { has_patterns: settings.has_vhost_name_patterns, default_vhost: &settings.default_vhost };
        let vhosts = config.vhosts.iter().map(|config| vhost(config, settings.max_message_size));
        policy.enforce(vhosts, naming);
    }
    policy
}

fn vhost(config: &VhostConfig, max_message_size: u64) -> Vhost {
    let max_message_size = config.max_message_size.unwrap_or(max_message_size);
    Vhost {
        name: config.hostname.as_str().into(),
        aliases: config.aliases.clone(),
        limits: ConnectionLimits {
            vhost: limit(config.max_connections),
            user: limit(config.max_connections_per_user),
            host: limit(config.max_connections_per_host),
        },
        allows_unknown_user: config.is_unknown_user_allowed,
        groups: config.groups.iter().map(|config| group(config, max_message_size)).collect(),
    }
}

fn group(config: &VhostGroupConfig, max_message_size: u64) -> Group {
    let permissions = Permissions {
        max_frame_size: config.max_frame_size,
        max_session_window: config.max_session_window,
        max_sessions: config.max_sessions,
        max_senders: config.max_senders,
        max_receivers: config.max_receivers,
        max_message_size: config.max_message_size.unwrap_or(max_message_size),
        allows_dynamic_source: config.is_dynamic_source_allowed,
        allows_anonymous_sender: config.is_anonymous_sender_allowed,
        allows_user_id_proxy: config.is_user_id_proxy_allowed,
        allows_waypoint_links: config.are_waypoint_links_allowed,
        allows_fallback_links: config.are_fallback_links_allowed,
        sources: addresses(&config.sources),
        targets: addresses(&config.targets),
    };
    Group {
        name: config.name.clone(),
        users: config.users.clone(),
        hosts: hosts(&config.name, &config.remote_hosts),
        max_connections_per_user: config.max_connections_per_user,
        max_connections_per_host: config.max_connections_per_host,
        permissions: Arc::new(permissions),
    }
}

fn addresses(config: &Names) -> names::Names {
    match config {
        Names::List(list) => names::Names::list(list.iter().map(String::as_str)),
        Names::Patterns(patterns) => names::Names::patterns(patterns.iter().map(String::as_str)),
    }
}

fn hosts(group: &str, texts: &[String]) -> Hosts {
    let mut hosts = Hosts::default();
    for text in texts {
        if text == "*" {
            hosts.add_any();
        } else if let Some((first, last)) = range(text) {
            hosts.add_range(first, last);
        } else {
            match resolve(text) {
                Ok(addresses) => addresses.into_iter().for_each(|host| hosts.add_range(host, host)),
                Err(reason) => log!(
                    Module::Policy,
                    Level::Error,
                    "vhost group '{group}': 'remoteHosts' has '{text}', whose address can't be found: {reason}"
                ),
            }
        }
    }
    hosts
}

/// `10.0.0.1-10.0.0.9`. (A host's name may have a hyphen, too.)
fn range(text: &str) -> Option<(IpAddr, IpAddr)> {
    let (first, last) = text.split_once('-')?;
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

fn resolve(text: &str) -> Result<Vec<IpAddr>, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(vec![address]);
    }
    let found = (text, 0).to_socket_addrs().map_err(|error| error.to_string())?;
    Ok(found.map(|address| address.ip()).collect())
}
