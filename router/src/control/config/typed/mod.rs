//! The configuration as types, and the checks that concern more than one attribute.

mod addressing;
mod bind;
mod connections;
mod log;
mod pattern;
mod router;
mod security;

use std::collections::HashMap;

pub use addressing::{
    AddressConfig, AddressMatch, AutoLinkConfig, BindingConfig, Container, Direction, Distribution,
    ExchangeConfig, LinkRouteConfig,
};
pub use bind::BindAddress;
pub use connections::{AddressFamily, ConnectorConfig, HttpConfig, ListenerConfig, Role, StripAnnotations};
pub use log::LogConfig;
pub use router::{RouterConfig, RouterMode};
pub use security::{
    AuthServiceConfig, Names, PolicyConfig, Secret, SslProfileConfig, VhostConfig, VhostGroupConfig,
};

pub(super) use security::{unique_vhosts, vhost_config};

use super::Config;
use super::error::{Findings, place};
use super::nearest::did_you_mean;
use super::record::Record;

/// Turns records into types. What they hold is right for itself; here it is held against the rest.
pub(super) fn build(records: Vec<Record>, findings: &mut Findings) -> Config {
    let of = |name: &'static str| records.iter().filter(move |record| record.entity_name() == name);
    let singleton = |name| of(name).next().expect("a singleton always has a record");
    unique_names(&records, findings);
    let router = router::router_config(singleton("router"), findings);
    let policy = security::policy_config(singleton("policy"), findings);
    let ssl_profiles: Vec<_> =
        of("sslProfile").filter_map(|record| security::ssl_profile_config(record, findings)).collect();
    let auth_services: Vec<_> = of("authServicePlugin")
        .filter_map(|record| security::auth_service_config(record, findings))
        .collect();
    let addresses: Vec<_> =
        of("address").filter_map(|record| addressing::address_config(record, findings)).collect();
    let link_routes: Vec<_> =
        of("linkRoute").filter_map(|record| addressing::link_route_config(record, findings)).collect();
    addressing::unique_patterns(&addresses, &link_routes, findings);
    let auto_links =
        of("autoLink").filter_map(|record| addressing::auto_link_config(record, findings)).collect();
    let exchanges: Vec<_> =
        of("exchange").filter_map(|record| addressing::exchange_config(record, findings)).collect();
    let bindings = of("binding").filter_map(addressing::binding_config).collect();
    let vhosts: Vec<_> = of("vhost").filter_map(|record| security::vhost_config(record, findings)).collect();
    security::unique_vhosts(&vhosts, |vhost, earlier, name| {
        let message =
            format!("vhost: the host name '{name}' belongs to the vhost {} already", place(earlier.line));
        findings.error(vhost.line, message);
    });
    let connectors =
        of("connector").map(|record| connections::connector_config(record, router.mode, findings)).collect();
    let listeners: Vec<_> =
        of("listener").map(|record| connections::listener_config(record, router.mode, findings)).collect();
    connections::unique_ports(&listeners, findings);
    let logs = log::log_configs(of("log"), findings);
    references(&records, findings);
    if listeners.is_empty() {
        findings.file_warning("no section 'listener': nobody can connect");
    } else if !listeners.iter().any(ListenerConfig::is_served) {
        findings.file_warning("none of the listeners can be opened by this version: nobody can connect");
    }
    Config {
        file: String::new(),
        source: None,
        router,
        listeners,
        connectors,
        addresses,
        auto_links,
        link_routes,
        exchanges,
        bindings,
        ssl_profiles,
        auth_services,
        policy,
        vhosts,
        logs,
        records,
        warnings: Vec::new(),
    }
}

fn unique_names(records: &[Record], findings: &mut Findings) {
    let mut seen: HashMap<(&str, &str), u32> = HashMap::new();
    for record in records {
        let Some(name) = record.name() else { continue };
        let line = record.line_of("name");
        if let Some(earlier) = seen.get(&(record.entity_name(), name)) {
            let message =
                format!("{}: the name '{name}' is in use already, {}", record.entity_name(), place(*earlier));
            findings.error(line, message);
        } else {
            seen.insert((record.entity_name(), name), line);
        }
    }
}

/// Attributes that name another section: which section that is.
const REFERENCES: &[(&str, &str, &str)] = &[
    ("listener", "sslProfile", "sslProfile"),
    ("listener", "saslPlugin", "authServicePlugin"),
    ("connector", "sslProfile", "sslProfile"),
    ("connector", "proxyProfile", "proxyProfile"),
    ("authServicePlugin", "sslProfile", "sslProfile"),
    ("binding", "exchangeName", "exchange"),
    ("tcpListener", "sslProfile", "sslProfile"),
    ("tcpConnector", "sslProfile", "sslProfile"),
    ("httpListener", "sslProfile", "sslProfile"),
    ("listenerAddress", "listener", "tcpListener"),
];

/// What is named must be there.
fn references(records: &[Record], findings: &mut Findings) {
    for record in records {
        for (_, attribute, target) in REFERENCES.iter().filter(|(from, ..)| *from == record.entity_name()) {
            let Some(name) = record.text(attribute) else { continue };
            let known = || {
                let targets = records.iter().filter(|record| record.entity_name() == *target);
                targets.filter_map(Record::name)
            };
            if !known().any(|known| known == name) {
                let message = format!(
                    "{}: '{attribute}' is '{name}', but no section '{target}' has that name{}",
                    record.entity_name(),
                    did_you_mean(name, known())
                );
                findings.error(record.line_of(attribute), message);
            }
        }
    }
}
