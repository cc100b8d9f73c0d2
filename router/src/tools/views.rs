//! The views of `qdstat`: which entities each asks for, and the table that it makes of them. Titles and names of
//! columns are `qdstat`'s.

use serde_json::Value as Json;

use super::format;
use super::names::Called;
use super::problem::Problem;
use super::router::Router;
use super::table::{Cell, Head, Row, Table};
use crate::client::management::{Entity, Request};

/// What can be shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum View {
    General,
    Connections,
    Links,
    Nodes,
    Edges,
    Addresses,
    Memory,
    Policy,
    AutoLinks,
    LinkRoutes,
    Vhosts,
    VhostGroups,
    VhostStats,
    Log,
    All,
}

/// What `--all-entities` shows, in its order.
const ALL: [View; 12] = [
    View::Links,
    View::Addresses,
    View::Connections,
    View::AutoLinks,
    View::LinkRoutes,
    View::Nodes,
    View::Policy,
    View::Vhosts,
    View::VhostGroups,
    View::VhostStats,
    View::General,
    View::Memory,
];

impl View {
    /// The views that it consists of.
    pub(super) fn parts(self) -> &'static [Self] {
        match self {
            Self::All => &ALL,
            Self::General => &[Self::General],
            Self::Connections => &[Self::Connections],
            Self::Links => &[Self::Links],
            Self::Nodes => &[Self::Nodes],
            Self::Edges => &[Self::Edges],
            Self::Addresses => &[Self::Addresses],
            Self::Memory => &[Self::Memory],
            Self::Policy => &[Self::Policy],
            Self::AutoLinks => &[Self::AutoLinks],
            Self::LinkRoutes => &[Self::LinkRoutes],
            Self::Vhosts => &[Self::Vhosts],
            Self::VhostGroups => &[Self::VhostGroups],
            Self::VhostStats => &[Self::VhostStats],
            Self::Log => &[Self::Log],
        }
    }

    /// What JSON calls it: as the option.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Connections => "connections",
            Self::Links => "links",
            Self::Nodes => "nodes",
            Self::Edges => "edge",
            Self::Addresses => "address",
            Self::Memory => "memory",
            Self::Policy => "policy",
            Self::AutoLinks => "autolinks",
            Self::LinkRoutes => "linkroutes",
            Self::Vhosts => "vhosts",
            Self::VhostGroups => "vhostgroups",
            Self::VhostStats => "vhoststats",
            Self::Log => "log",
            Self::All => "all-entities",
        }
    }
}

/// How a view is to be shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// At most so many rows.
    pub(super) limit: Option<usize>,
    /// With more columns.
    pub(super) is_verbose: bool,
    pub(super) called: Called,
}

/// What the router says for a view, which has no parts.
pub(super) fn fetch(view: View, router: &mut Router, how: How) -> Result<Vec<Entity>, Problem> {
    match view {
        View::General => Ok(vec![router.whole()?]),
        View::Connections => router.query(Some("connection"), &[], how.limit),
        View::Edges => {
            let mut edges = router.query(Some("connection"), &[], None)?;
            edges.retain(|connection| connection.get("role").and_then(Json::as_str) == Some("edge"));
            edges.truncate(how.limit.unwrap_or(usize::MAX));
            Ok(edges)
        }
        View::Links => router.query(Some("router.link"), &[], how.limit),
        View::Addresses => router.query(Some("router.address"), &[], how.limit),
        View::Nodes => router.query_if_known("router.node", how.limit),
        View::Memory => router.query_if_known("allocator", how.limit),
        View::Policy => router.query_if_known("policy", None),
        View::AutoLinks => router.query_if_known("router.config.autoLink", how.limit),
        View::LinkRoutes => router.query_if_known("router.config.linkRoute", how.limit),
        View::Vhosts | View::VhostGroups => router.query_if_known("vhost", how.limit),
        View::VhostStats => router.query_if_known("vhostStats", how.limit),
        View::Log => log(router, how.limit),
        View::All => Ok(Vec::new()),
    }
}

/// The lines of the log as entities.
fn log(router: &mut Router, limit: Option<usize>) -> Result<Vec<Entity>, Problem> {
    const NAMES: [&str; 6] = ["module", "level", "text", "file", "line", "time"];
    let request = Request::new("GET-LOG").with("type", "org.amqp.management");
    let lines = router.call(&match limit {
        Some(limit) => request.with_number("limit", limit),
        None => request,
    })?;
    let entity = |line: &Json| -> Entity {
        let values = line.as_array().into_iter().flatten().cloned();
        NAMES
            .iter()
            .map(|name| (*name).to_owned())
            .zip(values)
            .filter(|(_, value)| !value.is_null())
            .collect()
    };
    Ok(lines.as_array().into_iter().flatten().map(entity).collect())
}

/// The tables that show it.
pub(super) fn tables(view: View, entities: &[Entity], whole: &Entity, how: How) -> Vec<Table> {
    match view {
        View::General => vec![pairs("Router Statistics", GENERAL, entities, "")],
        View::Policy => vec![pairs("Policy Statistics", POLICY, entities, "No policy statistics")],
        View::Connections => vec![listed("Connections", CONNECTIONS, entities, how, "")],
        View::Edges => {
            let none = "No Edge Router Connections";
            vec![listed("Edge Router Connections", EDGES, entities, how, none)]
        }
        View::Links => vec![listed("Router Links", LINKS, entities, how, "")],
        View::Nodes => {
            let mut table = listed(
                "Routers in the Network",
                NODES,
                entities,
                how,
                "Router is Standalone - No Router List",
            );
            sort(&mut table, 0);
            vec![table]
        }
        View::Addresses => {
            let mut table = listed("Router Addresses", ADDRESSES, entities, how, "");
            sort(&mut table, 1);
            vec![table]
        }
        View::Memory => memory(entities, whole, how),
        View::AutoLinks => {
            let mut table = listed("AutoLinks", AUTO_LINKS, entities, how, "AutoLinks\nNo AutoLinks found");
            sort(&mut table, 0);
            vec![table]
        }
        View::LinkRoutes => {
            let none = "Link Routes\nNo Link Routes found";
            let mut table = listed("Link Routes", LINK_ROUTES, entities, how, none);
            sort(&mut table, 0);
            vec![table]
        }
        View::Vhosts => vec![listed("Vhosts", VHOSTS, entities, how, "No Vhosts configured")],
        View::VhostGroups => {
            let groups = vhost_groups(entities);
            vec![listed("Vhost User Groups", VHOST_GROUPS, &groups, how, "No Vhost User Groups configured")]
        }
        View::VhostStats => vec![listed("Vhost Stats", VHOST_STATS, entities, how, "No Vhost Stats")],
        View::Log => vec![listed("Log", LOG, entities, how, "")],
        View::All => Vec::new(),
    }
}

/// A column: its head, who gets to see it, and its value.
struct Column {
    head: Head,
    seen: Seen,
    cell: fn(&Entity) -> Cell,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Always,
    Verbose,
    /// Where addresses have phases.
    WithPhases,
}

const fn text_column(name: &'static str, cell: fn(&Entity) -> Cell) -> Column {
    Column { head: Head::text(name), seen: Seen::Always, cell }
}

const fn wide_column(name: &'static str, cell: fn(&Entity) -> Cell) -> Column {
    Column { head: Head::wide(name), seen: Seen::Always, cell }
}

const fn number_column(name: &'static str, cell: fn(&Entity) -> Cell) -> Column {
    Column { head: Head::number(name), seen: Seen::Always, cell }
}

const fn count_column(name: &'static str, rate: &'static str, cell: fn(&Entity) -> Cell) -> Column {
    Column { head: Head::count(name, rate), seen: Seen::Always, cell }
}

impl Column {
    /// It is left out where there is too little width, those with the greatest number first.
    const fn spare(mut self, rank: u8) -> Self {
        self.head.spare = rank;
        self
    }

    const fn verbose(mut self) -> Self {
        self.seen = Seen::Verbose;
        self
    }
}

const CONNECTIONS: &[Column] = &[
    text_column("id", |it| text(it, "identity")),
    // Without its port it would say too little: it gives up no width.
    text_column("host", |it| text(it, "host")),
    wide_column("container", |it| text(it, "container")),
    text_column("role", |it| text(it, "role")).spare(1),
    text_column("dir", |it| text(it, "dir")),
    wide_column("security", security).spare(4),
    wide_column("authentication", authentication).spare(3),
    text_column("tenant", |it| {
        Cell::text(it.get("tenant").and_then(Json::as_str).unwrap_or("").trim_end_matches('/'))
    }),
    text_column("last dlv", last_delivery).spare(2),
    text_column("uptime", |it| lasting(it, "uptimeSeconds")),
    text_column("oper", |it| text(it, "operStatus")).verbose(),
    wide_column("properties", |it| shown(it, "properties")).verbose(),
];

const EDGES: &[Column] = &[
    text_column("id", |it| text(it, "identity")),
    wide_column("host", |it| text(it, "host")),
    wide_column("container", |it| text(it, "container")),
    text_column("role", |it| text(it, "role")),
    text_column("dir", |it| text(it, "dir")),
    wide_column("security", security),
    wide_column("authentication", authentication),
    text_column("tenant", |it| text(it, "tenant")),
    text_column("active", |it| yes_or_no(it, "active")),
];

const LINKS: &[Column] = &[
    text_column("type", |it| text(it, "linkType")).spare(15),
    text_column("dir", |it| text(it, "linkDir")),
    number_column("conn id", |it| text(it, "connectionId")).spare(3),
    number_column("id", |it| text(it, "identity")),
    text_column("peer", |it| text(it, "peer")),
    text_column("class", |it| address_class(it, "owningAddr")).spare(13),
    wide_column("addr", |it| address_text(it, "owningAddr")),
    Column { head: Head::text("phs"), seen: Seen::WithPhases, cell: |it| address_phase(it, "owningAddr") },
    number_column("cap", |it| number(it, "capacity")).spare(11),
    number_column("pri", |it| number(it, "priority")).spare(14),
    number_column("undel", |it| number(it, "undeliveredCount")),
    number_column("unsett", |it| number(it, "unsettledCount")),
    count_column("deliv", "deliv/s", |it| count(it, "deliveryCount")),
    number_column("presett", |it| count(it, "presettledCount")).spare(12),
    number_column("psdrop", |it| count(it, "droppedPresettledCount")).spare(10),
    number_column("acc", |it| count(it, "acceptedCount")).spare(4),
    number_column("rej", |it| count(it, "rejectedCount")).spare(5),
    number_column("rel", |it| count(it, "releasedCount")).spare(7),
    number_column("mod", |it| count(it, "modifiedCount")).spare(8),
    number_column("delay", delayed).spare(6),
    number_column("rate", |it| number(it, "settleRate")).spare(9),
    number_column("stuck", |it| number(it, "deliveriesStuck")).spare(2),
    number_column("cred", |it| number(it, "creditAvailable")),
    text_column("blkd", blocked).spare(1),
    text_column("admin", |it| text(it, "adminStatus")).verbose(),
    text_column("oper", |it| text(it, "operStatus")).verbose(),
    wide_column("name", |it| text(it, "linkName")).verbose(),
];

const NODES: &[Column] = &[
    text_column("router-id", |it| text(it, "id")),
    text_column("next-hop", |it| or_dash(text(it, "nextHop"))),
    text_column(
        "link",
        |it| if it.contains_key("nextHop") { Cell::text("-") } else { text(it, "routerLink") },
    ),
    number_column("ver", |it| number(it, "protocolVersion")).verbose(),
    number_column("cost", |it| number(it, "cost")).verbose(),
    wide_column("neighbors", |it| shown(it, "linkState")).verbose(),
    wide_column("valid-origins", |it| shown(it, "validOrigins")).verbose(),
];

const ADDRESSES: &[Column] = &[
    text_column("class", |it| address_class(it, "name")),
    wide_column("addr", |it| address_text(it, "name")),
    Column { head: Head::text("phs"), seen: Seen::WithPhases, cell: |it| address_phase(it, "name") },
    text_column("distrib", |it| text(it, "distribution")),
    number_column("pri", |it| match number(it, "priority") {
        Cell::Number(priority) if priority < 0 => Cell::text("-"),
        other => other,
    }),
    number_column("in-proc", |it| number(it, "inProcess")).verbose(),
    number_column("local", receivers),
    number_column("remote", |it| number(it, "remoteCount")),
    count_column("in", "in/s", |it| count(it, "deliveriesIngress")),
    count_column("out", "out/s", |it| count(it, "deliveriesEgress")),
    number_column("thru", |it| count(it, "deliveriesTransit")),
    number_column("fallback", |it| count(it, "deliveriesRedirectedToFallback")),
    number_column("to-proc", |it| count(it, "deliveriesToContainer")).verbose(),
    number_column("from-proc", |it| count(it, "deliveriesFromContainer")).verbose(),
];

const AUTO_LINKS: &[Column] = &[
    wide_column("addr", |it| text(it, "address")),
    text_column("dir", |it| text(it, "direction")),
    text_column("phs", |it| number(it, "phase")),
    wide_column("extAddr", |it| text(it, "externalAddress")),
    text_column("link", |it| text(it, "linkRef")),
    text_column("status", |it| text(it, "operStatus")),
    wide_column("lastErr", |it| text(it, "lastError")),
];

const LINK_ROUTES: &[Column] = &[
    wide_column("address", |it| {
        let prefix = text(it, "prefix");
        if prefix == Cell::Empty { text(it, "pattern") } else { prefix }
    }),
    text_column("dir", |it| text(it, "direction")),
    text_column("distrib", |it| text(it, "distribution")),
    text_column("status", |it| text(it, "operStatus")),
    text_column("add-ext-prefix", |it| text(it, "addExternalPrefix")).verbose(),
    text_column("del-ext-prefix", |it| text(it, "delExternalPrefix")).verbose(),
];

const ALLOCATORS: &[Column] = &[
    wide_column("type", |it| match text(it, "identity") {
        Cell::Text(identity) => {
            Cell::text(identity.split_once('/').map_or(identity.as_str(), |(_, name)| name))
        }
        other => other,
    }),
    number_column("size", |it| number(it, "typeSize")),
    number_column("batch", |it| number(it, "transferBatchSize")),
    number_column("thread-max", |it| number(it, "localFreeListMax")),
    number_column("total", |it| count(it, "totalAllocFromHeap")),
    number_column("in-threads", |it| count(it, "heldByThreads")),
    number_column("rebal-in", |it| count(it, "batchesRebalancedToThreads")),
    number_column("rebal-out", |it| count(it, "batchesRebalancedToGlobal")),
];

const VHOSTS: &[Column] = &[
    wide_column("hostname", |it| text(it, "hostname")),
    wide_column("aliases", |it| shown(it, "aliases")),
    number_column("maxConnections", |it| number(it, "maxConnections")),
    number_column("perUser", |it| number(it, "maxConnectionsPerUser")),
    number_column("perHost", |it| number(it, "maxConnectionsPerHost")),
    number_column("maxMessageSize", |it| number(it, "maxMessageSize")),
    text_column("allowUnknownUser", |it| yes_or_no(it, "allowUnknownUser")),
    wide_column("groups", |it| {
        let names = it.get("groups").and_then(Json::as_object).into_iter().flatten();
        Cell::text(format::list(names.map(|(name, _)| name.clone())))
    }),
];

const VHOST_GROUPS: &[Column] = &[
    wide_column("vhost", |it| text(it, "vhost")),
    wide_column("group", |it| text(it, "group")),
    wide_column("users", |it| shown(it, "users")),
    wide_column("remoteHosts", |it| shown(it, "remoteHosts")),
    wide_column("sources", |it| shown_either(it, "sources", "sourcePattern")),
    wide_column("targets", |it| shown_either(it, "targets", "targetPattern")),
    text_column("dynSource", |it| yes_or_no(it, "allowDynamicSource")),
    text_column("anonSender", |it| yes_or_no(it, "allowAnonymousSender")),
    text_column("userIdProxy", |it| yes_or_no(it, "allowUserIdProxy")).verbose(),
    number_column("maxFrameSize", |it| number(it, "maxFrameSize")).verbose(),
    number_column("maxMessageSize", |it| number(it, "maxMessageSize")).verbose(),
    number_column("maxSessions", |it| number(it, "maxSessions")).verbose(),
    number_column("maxSessionWindow", |it| number(it, "maxSessionWindow")).verbose(),
    number_column("maxSenders", |it| number(it, "maxSenders")).verbose(),
    number_column("maxReceivers", |it| number(it, "maxReceivers")).verbose(),
];

const VHOST_STATS: &[Column] = &[
    wide_column("hostname", |it| text(it, "hostname")),
    number_column("conns-ok", |it| count(it, "connectionsApproved")),
    number_column("conns-denied", |it| count(it, "connectionsDenied")),
    number_column("conns-now", |it| number(it, "connectionsCurrent")),
    number_column("sess-denied", |it| count(it, "sessionDenied")),
    number_column("snd-denied", |it| count(it, "senderDenied")),
    number_column("rcv-denied", |it| count(it, "receiverDenied")),
    number_column("size-denied", |it| count(it, "maxMessageSizeDenied")),
];

const LOG: &[Column] = &[
    text_column("time", |it| {
        Cell::text(it.get("time").and_then(Json::as_f64).map(format::log_time).unwrap_or_default())
    }),
    text_column("module", |it| text(it, "module")),
    text_column("level", |it| text(it, "level")),
    wide_column("text", |it| text(it, "text")),
];

/// A line of a view of pairs.
struct Pair {
    name: &'static str,
    cell: fn(&Entity) -> Cell,
}

const fn pair(name: &'static str, cell: fn(&Entity) -> Cell) -> Pair {
    Pair { name, cell }
}

const GENERAL: &[Pair] = &[
    pair("Version", |it| text(it, "version")),
    pair("Mode", |it| text(it, "mode")),
    pair("Router Id", |it| text(it, "id")),
    pair("Worker Threads", |it| number(it, "workerThreads")),
    pair("Uptime", |it| lasting(it, "uptimeSeconds")),
    pair("VmSize", |it| memory_size(it, "memoryUsage")),
    pair("RSS", |it| memory_size(it, "residentMemoryUsage")),
    pair("Area", |it| text(it, "area")),
    pair("Link Routes", |it| number(it, "linkRouteCount")),
    pair("Auto Links", |it| number(it, "autoLinkCount")),
    pair("Links", |it| number(it, "linkCount")),
    pair("Nodes", |it| number(it, "nodeCount")),
    pair("Addresses", |it| number(it, "addrCount")),
    pair("Connections", |it| number(it, "connectionCount")),
    pair("Presettled Count", |it| count(it, "presettledDeliveries")),
    pair("Dropped Presettled Count", |it| count(it, "droppedPresettledDeliveries")),
    pair("Accepted Count", |it| count(it, "acceptedDeliveries")),
    pair("Rejected Count", |it| count(it, "rejectedDeliveries")),
    pair("Released Count", |it| count(it, "releasedDeliveries")),
    pair("Modified Count", |it| count(it, "modifiedDeliveries")),
    pair("Deliveries Delayed > 1sec", |it| count(it, "deliveriesDelayed1Sec")),
    pair("Deliveries Delayed > 10sec", |it| count(it, "deliveriesDelayed10Sec")),
    pair("Deliveries Stuck > 10sec", |it| number(it, "deliveriesStuck")),
    pair("Deliveries to Fallback", |it| count(it, "deliveriesRedirectedToFallback")),
    // Whichever name the router's version has for it.
    pair("Links Blocked", |it| match number(it, "linksBlocked") {
        Cell::Empty => number(it, "blockedLinkCount"),
        known => known,
    }),
    pair("Ingress Count", |it| count(it, "deliveriesIngress")),
    pair("Egress Count", |it| count(it, "deliveriesEgress")),
    pair("Transit Count", |it| count(it, "deliveriesTransit")),
    pair("Deliveries from Route Container", |it| count(it, "deliveriesIngressRouteContainer")),
    pair("Deliveries to Route Container", |it| count(it, "deliveriesEgressRouteContainer")),
];

const POLICY: &[Pair] = &[
    pair("Maximum Concurrent Connections", |it| number(it, "maxConnections")),
    pair("Maximum Message Size", |it| number(it, "maxMessageSize")),
    pair("Enable Vhost Policy", |it| yes_or_no(it, "enableVhostPolicy")),
    pair("Enable Vhost Name Patterns", |it| yes_or_no(it, "enableVhostNamePatterns")),
    pair("Default Vhost", |it| text(it, "defaultVhost")),
    pair("Policy Directory", |it| text(it, "policyDir")),
    pair("Connections Processed", |it| count(it, "connectionsProcessed")),
    pair("Connections Denied", |it| count(it, "connectionsDenied")),
    pair("Connections Current", |it| number(it, "connectionsCurrent")),
    pair("Links Denied", |it| count(it, "linksDenied")),
    pair("Maximum Message Size Denied", |it| count(it, "maxMessageSizeDenied")),
    pair("Total Denials", |it| count(it, "totalDenials")),
];

/// A table with a row for each entity.
fn listed(title: &str, columns: &[Column], entities: &[Entity], how: How, none: &'static str) -> Table {
    let is_seen = |column: &&Column| match column.seen {
        Seen::Always => true,
        Seen::Verbose => how.is_verbose,
        Seen::WithPhases => how.called != Called::Skupper,
    };
    let columns: Vec<&Column> = columns.iter().filter(is_seen).collect();
    let row = |entity: &Entity| {
        let of = |name: &str| entity.get(name).and_then(Json::as_str).map(str::to_owned);
        Row {
            key: of("identity").or_else(|| of("name")).unwrap_or_default(),
            cells: columns.iter().map(|column| (column.cell)(entity)).collect(),
        }
    };
    Table {
        title: title.to_owned(),
        heads: columns.iter().map(|column| column.head).collect(),
        rows: entities.iter().map(row).collect(),
        none,
    }
}

/// A table with a row for each of the entity's attributes that it has.
fn pairs(title: &str, pairs: &[Pair], entities: &[Entity], none: &'static str) -> Table {
    let rows = entities.first().map(|entity| {
        let row = |pair: &Pair| {
            let cell = (pair.cell)(entity);
            (cell != Cell::Empty)
                .then(|| Row { key: pair.name.to_owned(), cells: vec![Cell::text(pair.name), cell] })
        };
        pairs.iter().filter_map(row).collect()
    });
    Table {
        title: title.to_owned(),
        heads: vec![
            Head::text("attr"),
            Head { text: "value", is_number: false, shrinks: true, rate: Some("per second"), spare: 0 },
        ],
        rows: rows.unwrap_or_default(),
        none,
    }
}

/// The pools, and what the process as a whole uses.
fn memory(entities: &[Entity], whole: &Entity, how: How) -> Vec<Table> {
    let mut types = listed("Types", ALLOCATORS, entities, how, "No memory statistics available");
    sort(&mut types, 0);
    let of = |entity: &Entity, name: &str| entity.get(name).and_then(Json::as_u64).unwrap_or(0);
    let pooled = entities
        .iter()
        .map(|entity| of(entity, "typeSize").saturating_mul(of(entity, "heldByThreads")))
        .fold(0, u64::saturating_add);
    let summary = Table {
        title: "Summary".to_owned(),
        heads: vec![Head::number("VmSize"), Head::number("RSS"), Head::number("Pooled")],
        rows: vec![Row {
            key: String::new(),
            cells: vec![
                memory_size(whole, "memoryUsage"),
                memory_size(whole, "residentMemoryUsage"),
                Cell::Bytes(pooled),
            ],
        }],
        none: "",
    };
    vec![types, summary]
}

/// Each group of each vhost as an entity with its vhost.
fn vhost_groups(vhosts: &[Entity]) -> Vec<Entity> {
    let groups = vhosts.iter().flat_map(|vhost| {
        let hostname = vhost.get("hostname").cloned().unwrap_or_default();
        let groups = vhost.get("groups").and_then(Json::as_object).into_iter().flatten();
        groups.map(move |(name, group)| {
            let mut entity = group.as_object().cloned().unwrap_or_default();
            entity.insert("vhost".to_owned(), hostname.clone());
            entity.insert("group".to_owned(), name.clone().into());
            entity
        })
    });
    groups.collect()
}

/// Sorts by the texts of a column.
fn sort(table: &mut Table, column: usize) {
    let key = |row: &Row| match row.cells.get(column) {
        Some(Cell::Text(text)) => text.clone(),
        Some(_) | None => String::new(),
    };
    table.rows.sort_by_cached_key(key);
}

/// The value as a text, whatever it is; nothing if it isn't there.
fn text(entity: &Entity, name: &str) -> Cell {
    match entity.get(name) {
        None | Some(Json::Null) => Cell::Empty,
        Some(Json::String(text)) => Cell::text(text.clone()),
        Some(other) => Cell::text(other.to_string()),
    }
}

fn number(entity: &Entity, name: &str) -> Cell {
    match entity.get(name) {
        Some(value) if value.is_i64() || value.is_u64() => Cell::Number(value.as_i64().unwrap_or(i64::MAX)),
        Some(_) | None => text(entity, name),
    }
}

fn count(entity: &Entity, name: &str) -> Cell {
    entity.get(name).and_then(Json::as_u64).map_or_else(|| number(entity, name), Cell::Count)
}

fn lasting(entity: &Entity, name: &str) -> Cell {
    entity.get(name).and_then(Json::as_u64).map_or(Cell::Empty, Cell::Lasting)
}

fn memory_size(entity: &Entity, name: &str) -> Cell {
    entity.get(name).and_then(Json::as_u64).map_or(Cell::Empty, Cell::Bytes)
}

fn yes_or_no(entity: &Entity, name: &str) -> Cell {
    match entity.get(name).and_then(Json::as_bool) {
        Some(true) => Cell::text("yes"),
        Some(false) => Cell::text("no"),
        None => text(entity, name),
    }
}

/// A list or map in one line.
fn shown(entity: &Entity, name: &str) -> Cell {
    fn one(value: &Json) -> String {
        match value {
            Json::String(text) => text.clone(),
            Json::Array(items) => format::list(items.iter().map(one)),
            Json::Object(entries) => {
                format::list(entries.iter().map(|(key, value)| format!("{key}={}", one(value))))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => value.to_string(),
        }
    }
    entity.get(name).map_or(Cell::Empty, |value| Cell::text(one(value)))
}

fn shown_either(entity: &Entity, name: &str, or: &str) -> Cell {
    match shown(entity, name) {
        Cell::Empty => shown(entity, or),
        Cell::Text(text) if text.is_empty() => shown(entity, or),
        other => other,
    }
}

fn or_dash(cell: Cell) -> Cell {
    if cell == Cell::Empty { Cell::text("-") } else { cell }
}

/// Who the peer is, as `qdstat` sums it up.
fn authentication(connection: &Entity) -> Cell {
    let of = |name: &str| connection.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
    if connection.get("isAuthenticated").and_then(Json::as_bool) != Some(true) {
        return Cell::text("no-auth");
    }
    let mechanism = match of("sasl") {
        Some("ANONYMOUS") => return Cell::text("anonymous-user"),
        Some("GSSAPI") => "Kerberos",
        Some("EXTERNAL") => "x.509",
        Some(other) => other,
        None => "",
    };
    match of("user") {
        Some(user) => Cell::text(format!("{user}({mechanism})")),
        None => Cell::text(mechanism),
    }
}

/// How the connection is protected.
fn security(connection: &Entity) -> Cell {
    let of = |name: &str| connection.get(name).and_then(Json::as_str).unwrap_or("");
    if connection.get("isEncrypted").and_then(Json::as_bool) != Some(true) {
        return Cell::text("no-security");
    }
    if of("sasl") == "GSSAPI" {
        return Cell::text("Kerberos");
    }
    Cell::text(format!("{}({})", of("sslProto"), of("sslCipher")))
}

fn last_delivery(connection: &Entity) -> Cell {
    or_dash(lasting(connection, "lastDlvSeconds"))
}

fn delayed(link: &Entity) -> Cell {
    let of = |name: &str| link.get(name).and_then(Json::as_u64);
    match (of("deliveriesDelayed1Sec"), of("deliveriesDelayed10Sec")) {
        (None, None) => Cell::Empty,
        (one, ten) => Cell::Count(one.unwrap_or(0) + ten.unwrap_or(0)),
    }
}

/// How long a link has been without credit.
fn blocked(link: &Entity) -> Cell {
    match link.get("zeroCreditSeconds").and_then(Json::as_u64) {
        None => Cell::Empty,
        Some(0) => Cell::text("-"),
        Some(seconds) => Cell::Short(seconds),
    }
}

/// Receivers, or for a link route the containers that it leads to.
fn receivers(address: &Entity) -> Cell {
    let key = address.get("name").and_then(Json::as_str).unwrap_or("");
    let is_route = key.starts_with(['C', 'D', 'E', 'F']);
    number(address, if is_route { "containerCount" } else { "subscriberCount" })
}

/// The class of an address by the first letter of its key (router-protocol reference §2).
fn address_class(entity: &Entity, name: &str) -> Cell {
    let Some(key) = entity.get(name).and_then(Json::as_str) else { return Cell::Empty };
    Cell::text(match key.chars().next() {
        None => "",
        Some('M' | '0'..='9') => "mobile",
        Some('R') => "router",
        Some('A') => "area",
        Some('L') => "local",
        Some('T') => "topo",
        Some('C' | 'E') => "link-in",
        Some('D' | 'F') => "link-out",
        Some('H') => "edge",
        Some(_) => "unknown",
    })
}

/// An address without what its key has in front.
pub(super) fn address_text(entity: &Entity, name: &str) -> Cell {
    let Some(key) = entity.get(name).and_then(Json::as_str) else { return Cell::Empty };
    let is_of_skupper = entity
        .get("type")
        .and_then(Json::as_str)
        .is_some_and(|of_type| of_type.starts_with(Called::Skupper.prefix()));
    let front = if key.starts_with('M') && !is_of_skupper { 2 } else { 1 };
    Cell::text(key.chars().skip(front).collect::<String>())
}

fn address_phase(entity: &Entity, name: &str) -> Cell {
    let key = entity.get(name).and_then(Json::as_str).unwrap_or("");
    match (key.chars().next(), key.chars().nth(1)) {
        (Some('M'), Some(phase)) => Cell::text(phase),
        (_, _) => Cell::Empty,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CONNECTIONS, Cell, Entity, address_class, address_phase, address_text, authentication, security,
    };
    use serde_json::json;

    fn entity(json: serde_json::Value) -> Entity {
        json.as_object().unwrap().clone()
    }

    /// Keys as in the recorded conversations with qdrouterd: `M0` and the address of a mobile one.
    #[test]
    fn keys_of_addresses() {
        let parts = |key: &str| {
            let entity = entity(json!({ "name": key }));
            [address_class(&entity, "name"), address_text(&entity, "name"), address_phase(&entity, "name")]
        };
        assert_eq!(parts("M0queue/a"), ["mobile", "queue/a", "0"].map(Cell::text));
        assert_eq!(parts("M1queue"), ["mobile", "queue", "1"].map(Cell::text));
        assert_eq!(parts("Lqdhello")[..2], ["local", "qdhello"].map(Cell::text));
        assert_eq!(parts("RR2")[..2], ["router", "R2"].map(Cell::text));
        assert_eq!(parts("Etopic")[..2], ["link-in", "topic"].map(Cell::text));
    }

    #[test]
    fn whose_connection_it_is() {
        let of = |json| authentication(&entity(json));
        let yes = true;
        assert_eq!(of(json!({"isAuthenticated": false})), Cell::text("no-auth"));
        assert_eq!(
            of(json!({"isAuthenticated": yes, "sasl": "ANONYMOUS", "user": "anonymous"})),
            Cell::text("anonymous-user")
        );
        assert_eq!(of(json!({"isAuthenticated": yes, "sasl": "PLAIN", "user": "u"})), Cell::text("u(PLAIN)"));
        assert_eq!(of(json!({"isAuthenticated": yes, "sasl": "EXTERNAL"})), Cell::text("x.509"));
        assert_eq!(security(&entity(json!({"isEncrypted": false}))), Cell::text("no-security"));
        let tls = json!({"isEncrypted": true, "sslProto": "TLSv1.3", "sslCipher": "AES"});
        assert_eq!(security(&entity(tls)), Cell::text("TLSv1.3(AES)"));
    }

    #[test]
    fn heads_are_told_apart() {
        let mut names: Vec<_> = CONNECTIONS.iter().map(|column| column.head.text).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CONNECTIONS.len());
    }
}
