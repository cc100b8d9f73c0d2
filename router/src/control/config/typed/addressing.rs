//! `address`, `autoLink`, `linkRoute`, `exchange`, `binding`.

use core::fmt;
use std::collections::HashMap;

use super::super::error::{Findings, place};
use super::super::record::Record;
use super::pattern::normal_form;

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
    pub(in crate::control) fn from_name(name: &str) -> Option<Self> {
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
    /// `ingressPhase`, from 0 to 9: the phase into which senders send.
    pub ingress_phase: u8,
    /// `egressPhase`, from 0 to 9: the phase from which receivers receive; 1 of a `waypoint`.
    pub egress_phase: u8,
    /// `enableFallback`
    pub has_fallback: bool,
}

/// Which addresses an `address` section means. Never empty, and not only separators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AddressMatch {
    /// Those that begin with these tokens.
    Prefix(String),
    /// Those that match this pattern: tokens between `.` or `/`, `*` for one, `#` for any number.
    Pattern(String),
}

/// Which way deliveries of an auto-link or a link route go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Into the router.
    In,
    /// Out of the router.
    Out,
}

/// The container that an auto-link or a link route is for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Container {
    /// `containerId`: the one whose open has this container-id.
    Id(String),
    /// `connection`: the one behind the listener or connector of this name.
    Connection(String),
}

/// A link that the router attaches to a container (section `autoLink`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AutoLinkConfig {
    /// The line of its section, for messages about it.
    pub line: u32,
    /// `name`
    pub name: Option<String>,
    /// `address`: in the network of routers; `None` (only with [`Direction::In`]): each message says itself
    /// where to.
    pub address: Option<String>,
    /// `direction`: In: the router attaches a receiver; Out: a sender.
    pub direction: Direction,
    /// `phase` of the address, from 0 to 9. By default 1 for In and 0 for Out.
    pub phase: u8,
    /// `containerId` or `connection`; `None`: it never becomes active.
    pub container: Option<Container>,
    /// `externalAddress`: in the container; `None`: the same as [`Self::address`].
    pub external_address: Option<String>,
    /// `fallback`: it serves the address as its fallback destination.
    pub is_fallback: bool,
}

/// Addresses whose links are passed on to a container (section `linkRoute`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkRouteConfig {
    /// The line of its section, for messages about it.
    pub line: u32,
    /// `name`
    pub name: Option<String>,
    /// `prefix` or `pattern`: which addresses.
    pub matching: AddressMatch,
    /// `direction`: In: links of clients that send; Out: links of clients that receive.
    pub direction: Direction,
    /// `addExternalPrefix`
    pub add_external_prefix: Option<String>,
    /// `delExternalPrefix`
    pub del_external_prefix: Option<String>,
    /// `containerId` or `connection`; `None`: the addresses are link-routed by other routers.
    pub container: Option<Container>,
}

/// An address whose messages are distributed by subject (section `exchange`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExchangeConfig {
    /// The line of its section, for messages about it.
    pub line: u32,
    /// `name`, by which bindings call it.
    pub name: String,
    /// `address`
    pub address: String,
    /// `phase`, from 0 to 9.
    pub phase: u8,
    /// `alternateAddress` and `alternatePhase`: for messages that no binding matches.
    pub alternate: Option<(String, u8)>,
    /// `matchMethod: mqtt`: binding keys are in MQTT's notation, else in AMQP's.
    pub is_mqtt: bool,
}

/// Which subjects of an exchange go where (section `binding`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindingConfig {
    /// The line of its section, for messages about it.
    pub line: u32,
    /// `name`
    pub name: Option<String>,
    /// `exchangeName`; there is such an exchange.
    pub exchange_name: String,
    /// `bindingKey`; `None`: every subject.
    pub binding_key: Option<String>,
    /// `nextHopAddress`
    pub next_hop_address: String,
    /// `nextHopPhase`, from 0 to 9.
    pub next_hop_phase: u8,
}

/// The distribution that an attribute names.
pub(super) fn distribution(record: &Record, name: &str) -> Distribution {
    record.text(name).and_then(Distribution::from_name).expect("the schema's words are distributions")
}

/// Prefix or pattern: one of them, and not nothing.
fn matching(record: &Record, findings: &mut Findings) -> Option<AddressMatch> {
    let section = record.entity_name();
    let (attribute, matching) = match (record.text("prefix"), record.text("pattern")) {
        (Some(prefix), None) => ("prefix", AddressMatch::Prefix(prefix.to_owned())),
        (None, Some(pattern)) => ("pattern", AddressMatch::Pattern(pattern.to_owned())),
        (Some(_), Some(_)) => {
            let line = record.line_of("prefix").max(record.line_of("pattern"));
            let message = format!("{section}: 'prefix' and 'pattern' can't both be set: leave one out");
            findings.error(line, message);
            return None;
        }
        (None, None) => {
            let message = format!("{section}: 'prefix' or 'pattern' is missing (one of them is required)");
            findings.error(record.line(), message);
            return None;
        }
    };
    if matching.names_nothing() {
        let message = format!("{section}: '{attribute}' is '{}', which names no address", matching.text());
        findings.error(record.line_of(attribute), message);
        return None;
    }
    Some(matching)
}

/// A phase that the schema keeps between 0 and 9.
fn phase(record: &Record, name: &str) -> u8 {
    record.integer(name).and_then(|phase| u8::try_from(phase).ok()).unwrap_or(0)
}

/// `containerId` or `connection`.
fn container(record: &Record, findings: &mut Findings) -> Option<Container> {
    match (record.owned("containerId"), record.owned("connection")) {
        (Some(_), Some(_)) => {
            let line = record.line_of("containerId").max(record.line_of("connection"));
            let message = format!(
                "{}: Both connection and containerId cannot be specified: leave one out",
                record.entity_name()
            );
            findings.error(line, message);
            None
        }
        (Some(id), None) => Some(Container::Id(id)),
        (None, Some(name)) => Some(Container::Connection(name)),
        (None, None) => None,
    }
}

/// The direction; `None` if the section says none, which has been reported.
fn direction(record: &Record) -> Option<Direction> {
    match record.text("direction") {
        Some("in") => Some(Direction::In),
        Some("out") => Some(Direction::Out),
        None => None,
        other => unreachable!("the schema refuses the direction {other:?}"),
    }
}

/// The address section of a record.
pub(super) fn address_config(record: &Record, findings: &mut Findings) -> Option<AddressConfig> {
    let matching = matching(record, findings)?;
    let is_waypoint = record.boolean("waypoint");
    let (ingress_phase, egress_phase) = (phase(record, "ingressPhase"), phase(record, "egressPhase"));
    let has_fallback = record.boolean("enableFallback");
    if has_fallback && (is_waypoint || ingress_phase != 0 || egress_phase != 0) {
        let message = "address: 'enableFallback' can't be combined with 'waypoint' and phases other than 0";
        findings.error(record.line_of("enableFallback"), message);
    }
    let sets_phases = record.is_set("ingressPhase") || record.is_set("egressPhase");
    Some(AddressConfig {
        line: record.line(),
        name: record.owned("name"),
        matching,
        distribution: distribution(record, "distribution"),
        priority: record.integer("priority").and_then(|priority| u8::try_from(priority).ok()),
        ingress_phase,
        egress_phase: if is_waypoint && !sets_phases { 1 } else { egress_phase },
        has_fallback,
    })
}

/// The auto-link of a record.
pub(super) fn auto_link_config(record: &Record, findings: &mut Findings) -> Option<AutoLinkConfig> {
    let container = container(record, findings);
    if !record.is_set("containerId") && !record.is_set("connection") {
        let message = "autoLink: neither 'connection' nor 'containerId' is set: it never becomes active";
        findings.warning(record.line(), message);
    }
    let direction = direction(record)?;
    let address = record.owned("address");
    if address.is_none() && direction == Direction::Out {
        let message = "autoLink: 'address' is missing (it is required with 'direction: out')";
        findings.error(record.line(), message);
    }
    if address.is_none() && direction == Direction::In && !record.is_set("externalAddress") {
        let message = "autoLink: 'address' or 'externalAddress' is missing (one of them is required)";
        findings.error(record.line(), message);
    }
    let default_phase = match direction {
        Direction::In => 1,
        Direction::Out => 0,
    };
    Some(AutoLinkConfig {
        line: record.line(),
        name: record.owned("name"),
        address,
        direction,
        phase: record.integer("phase").and_then(|phase| u8::try_from(phase).ok()).unwrap_or(default_phase),
        container,
        external_address: record.owned("externalAddress"),
        is_fallback: record.boolean("fallback"),
    })
}

/// The link route of a record.
pub(super) fn link_route_config(record: &Record, findings: &mut Findings) -> Option<LinkRouteConfig> {
    let container = container(record, findings);
    let matching = matching(record, findings)?;
    Some(LinkRouteConfig {
        line: record.line(),
        name: record.owned("name"),
        matching,
        direction: direction(record)?,
        add_external_prefix: record.owned("addExternalPrefix"),
        del_external_prefix: record.owned("delExternalPrefix"),
        container,
    })
}

/// The exchange of a record.
pub(super) fn exchange_config(record: &Record, findings: &mut Findings) -> Option<ExchangeConfig> {
    let Some(name) = record.owned("name") else {
        findings.error(record.line(), "exchange: 'name' is missing (bindings refer to it)");
        return None;
    };
    Some(ExchangeConfig {
        line: record.line(),
        name,
        address: record.owned("address")?,
        phase: phase(record, "phase"),
        alternate: record.owned("alternateAddress").map(|address| (address, phase(record, "alternatePhase"))),
        is_mqtt: record.text("matchMethod") == Some("mqtt"),
    })
}

/// The binding of a record.
pub(super) fn binding_config(record: &Record) -> Option<BindingConfig> {
    Some(BindingConfig {
        line: record.line(),
        name: record.owned("name"),
        exchange_name: record.owned("exchangeName")?,
        binding_key: record.owned("bindingKey"),
        next_hop_address: record.owned("nextHopAddress")?,
        next_hop_phase: phase(record, "nextHopPhase"),
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

    /// The pattern that matches the same addresses.
    #[must_use]
    pub fn pattern(&self) -> String {
        match self {
            Self::Prefix(prefix) => format!("{}/#", prefix.trim_end_matches(['.', '/'])),
            Self::Pattern(pattern) => pattern.clone(),
        }
    }

    /// The pattern that matches the same, in a form that is equal for patterns that match the same.
    pub(in crate::control) fn normal_form(&self) -> String {
        normal_form(&self.pattern())
    }

    /// Whether there is no address that it means.
    pub(in crate::control) fn names_nothing(&self) -> bool {
        self.normal_form().is_empty() || self.text().trim_matches(['.', '/']).is_empty()
    }
}

/// No two address sections mean the same addresses, and no two link routes of one direction and container.
pub(super) fn unique_patterns(
    addresses: &[AddressConfig],
    link_routes: &[LinkRouteConfig],
    findings: &mut Findings,
) {
    let mut seen: HashMap<String, &AddressConfig> = HashMap::new();
    for address in addresses {
        let form = address.matching.normal_form();
        match seen.get(&form) {
            Some(earlier) => {
                let message = pattern_conflict("address", &address.matching, &earlier.matching, earlier.line);
                findings.error(address.line, message);
            }
            None => {
                seen.insert(form, address);
            }
        }
    }
    let mut seen: HashMap<_, &LinkRouteConfig> = HashMap::new();
    for route in link_routes {
        let key = (route.matching.normal_form(), route.direction, &route.container);
        match seen.get(&key) {
            Some(earlier) => {
                let message = pattern_conflict("linkRoute", &route.matching, &earlier.matching, earlier.line);
                findings.error(route.line, message);
            }
            None => {
                seen.insert(key, route);
            }
        }
    }
}

fn pattern_conflict(section: &str, matching: &AddressMatch, earlier: &AddressMatch, line: u32) -> String {
    format!(
        "{section}: pattern conflicts: '{}' matches the same addresses as '{}' {}",
        matching.text(),
        earlier.text(),
        place(line)
    )
}
