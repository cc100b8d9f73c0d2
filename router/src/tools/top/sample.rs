//! What a router says at one time, as far as the view shows it.

use std::time::Instant;

use serde_json::Value as Json;

use crate::client::management::Entity;
use crate::tools::problem::Problem;
use crate::tools::router::Router;
use crate::tools::table::Cell;
use crate::tools::views::address_text;

/// The router as a whole.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Whole {
    pub(super) id: String,
    pub(super) version: String,
    pub(super) mode: String,
    pub(super) uptime_seconds: u64,
    /// In bytes: the resident part where the router tells it.
    pub(super) memory: u64,
    pub(super) connections: u64,
    pub(super) links: u64,
    pub(super) addresses: u64,
    pub(super) blocked_links: u64,
    pub(super) stuck: u64,
    /// Counters, in the order of [`COUNTERS`].
    pub(super) counters: [u64; COUNTERS.len()],
}

/// The router's counters that are shown as rates: what they are called, the same for narrow
/// terminals, and their attribute.
pub(super) const COUNTERS: [(&str, &str, &str); 8] = [
    ("in", "in", "deliveriesIngress"),
    ("out", "out", "deliveriesEgress"),
    ("accepted", "acc", "acceptedDeliveries"),
    ("rejected", "rej", "rejectedDeliveries"),
    ("released", "rel", "releasedDeliveries"),
    ("modified", "mod", "modifiedDeliveries"),
    ("presettled", "presett", "presettledDeliveries"),
    ("dropped", "drop", "droppedPresettledDeliveries"),
];

/// An address in use.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Address {
    pub(super) key: String,
    pub(super) address: String,
    pub(super) distribution: String,
    pub(super) receivers: u64,
    pub(super) ingress: u64,
    pub(super) egress: u64,
}

/// A link.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Link {
    pub(super) id: String,
    pub(super) connection: String,
    /// `in` or `out`.
    pub(super) direction: String,
    pub(super) address: String,
    pub(super) deliveries: u64,
    pub(super) undelivered: u64,
    pub(super) unsettled: u64,
    pub(super) credit: u64,
    /// For how long it has been without credit.
    pub(super) blocked_seconds: u64,
    pub(super) delayed: u64,
    pub(super) stuck: u64,
}

/// A connection.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Connection {
    pub(super) id: String,
    pub(super) host: String,
    pub(super) container: String,
    pub(super) role: String,
    pub(super) direction: String,
    pub(super) uptime_seconds: u64,
    /// Since the last delivery; `None`: there was none.
    pub(super) idle_seconds: Option<u64>,
}

/// All of it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) whole: Whole,
    pub(super) addresses: Vec<Address>,
    pub(super) links: Vec<Link>,
    pub(super) connections: Vec<Connection>,
    /// How long deliveries took since the start; empty where the router doesn't tell.
    pub(super) latencies: Vec<Latency>,
}

/// How many deliveries took how long.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Latency {
    /// `forward` or `settle`.
    pub(super) name: String,
    /// By upper bound in microseconds (the last class has none).
    pub(super) classes: Vec<(Option<u64>, u64)>,
}

fn latency(entity: &Entity) -> Latency {
    let list = |name: &str| -> Vec<u64> {
        entity.get(name).and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_u64).collect()
    };
    let bounds = list("bounds").into_iter().map(Some).chain([None]);
    Latency { name: text(entity, "name"), classes: bounds.zip(list("counts")).collect() }
}

fn number(entity: &Entity, name: &str) -> u64 {
    entity.get(name).and_then(Json::as_u64).unwrap_or(0)
}

fn text(entity: &Entity, name: &str) -> String {
    entity.get(name).and_then(Json::as_str).unwrap_or("").to_owned()
}

fn address(entity: &Entity, name: &str) -> String {
    match address_text(entity, name) {
        Cell::Text(text) => text,
        _ => String::new(),
    }
}

impl Sample {
    /// Asks the router.
    pub(super) fn take(router: &mut Router) -> Result<Self, Problem> {
        const ADDRESS: [&str; 6] =
            ["name", "type", "distribution", "subscriberCount", "deliveriesIngress", "deliveriesEgress"];
        const LINK: [&str; 13] = [
            "identity",
            "type",
            "connectionId",
            "linkDir",
            "owningAddr",
            "deliveryCount",
            "undeliveredCount",
            "unsettledCount",
            "creditAvailable",
            "zeroCreditSeconds",
            "deliveriesDelayed1Sec",
            "deliveriesDelayed10Sec",
            "deliveriesStuck",
        ];
        const CONNECTION: [&str; 7] =
            ["identity", "host", "container", "role", "dir", "uptimeSeconds", "lastDlvSeconds"];
        let whole = router.whole()?;
        let addresses = router.query(Some("router.address"), &ADDRESS, None)?;
        let links = router.query(Some("router.link"), &LINK, None)?;
        let connections = router.query(Some("connection"), &CONNECTION, None)?;
        // Only Ringmain has it.
        let latencies = router.query_if_known("latency", None)?;
        let sample = Self::of(Instant::now(), &whole, &addresses, &links, &connections);
        Ok(Self { latencies: latencies.iter().map(latency).collect(), ..sample })
    }

    /// What these entities say.
    pub(super) fn of(
        at: Instant,
        whole: &Entity,
        addresses: &[Entity],
        links: &[Entity],
        connections: &[Entity],
    ) -> Self {
        Self {
            at,
            whole: Whole {
                id: text(whole, "id"),
                version: text(whole, "version"),
                mode: text(whole, "mode"),
                uptime_seconds: number(whole, "uptimeSeconds"),
                memory: number(
                    whole,
                    if whole.contains_key("residentMemoryUsage") {
                        "residentMemoryUsage"
                    } else {
                        "memoryUsage"
                    },
                ),
                connections: number(whole, "connectionCount"),
                links: number(whole, "linkCount"),
                addresses: number(whole, "addrCount"),
                blocked_links: number(whole, "linksBlocked").max(number(whole, "blockedLinkCount")),
                stuck: number(whole, "deliveriesStuck"),
                counters: COUNTERS.map(|(_, _, name)| number(whole, name)),
            },
            addresses: addresses
                .iter()
                .map(|entity| Address {
                    key: text(entity, "name"),
                    address: address(entity, "name"),
                    distribution: text(entity, "distribution"),
                    receivers: number(entity, "subscriberCount"),
                    ingress: number(entity, "deliveriesIngress"),
                    egress: number(entity, "deliveriesEgress"),
                })
                .collect(),
            links: links
                .iter()
                .map(|entity| Link {
                    id: text(entity, "identity"),
                    connection: text(entity, "connectionId"),
                    direction: text(entity, "linkDir"),
                    address: address(entity, "owningAddr"),
                    deliveries: number(entity, "deliveryCount"),
                    undelivered: number(entity, "undeliveredCount"),
                    unsettled: number(entity, "unsettledCount"),
                    credit: number(entity, "creditAvailable"),
                    blocked_seconds: number(entity, "zeroCreditSeconds"),
                    delayed: number(entity, "deliveriesDelayed1Sec")
                        + number(entity, "deliveriesDelayed10Sec"),
                    stuck: number(entity, "deliveriesStuck"),
                })
                .collect(),
            connections: connections
                .iter()
                .map(|entity| Connection {
                    id: text(entity, "identity"),
                    host: text(entity, "host"),
                    container: text(entity, "container"),
                    role: text(entity, "role"),
                    direction: text(entity, "dir"),
                    uptime_seconds: number(entity, "uptimeSeconds"),
                    idle_seconds: entity.get("lastDlvSeconds").and_then(Json::as_u64),
                })
                .collect(),
            latencies: Vec::new(),
        }
    }
}
