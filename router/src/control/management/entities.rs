//! The entities of which there are few: what is configured, and what the router as a whole reports.

use super::dialect::Dialect;
use super::field::Field;
use super::schema::is_known;
use super::shards::Gathered;
use crate::base::buffer::PoolUsage;
use crate::base::histogram::Histogram;
use crate::control::config::schema::EntityType;
use crate::control::config::{Json, Record, Value};
use crate::log;
use crate::log::{Level, Module};
use crate::shard::ShardCounters;
use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An entity with the attributes that have a value.
#[derive(Clone, Debug)]
pub(super) struct Entity {
    /// Its type.
    pub(super) of: &'static EntityType,
    /// By what it is found; unique among all entities of its type.
    pub(super) identity: String,
    /// The name that it was given, or else its identity.
    pub(super) name: String,
    /// What it has beside these and its type.
    pub(super) attributes: Vec<(&'static str, Field<'static>)>,
}

impl Entity {
    /// An entity that is called as it is found.
    pub(super) fn new(type_name: &str, identity: impl Into<String>) -> Option<Self> {
        let identity = identity.into();
        let of = EntityType::find_type(type_name)?;
        Some(Self { of, name: identity.clone(), identity, attributes: Vec::new() })
    }

    /// Sets an attribute.
    pub(super) fn set(&mut self, name: &'static str, value: Field<'static>) {
        match self.attributes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.attributes.push((name, value)),
        }
    }

    /// The same entity with this attribute.
    pub(super) fn with(mut self, name: &'static str, value: Field<'static>) -> Self {
        self.set(name, value);
        self
    }

    /// The value of an attribute; null if it has none.
    pub(super) fn value(&self, name: &str, dialect: Dialect) -> Field<'_> {
        match name {
            "name" => Field::text(&self.name),
            "identity" => Field::text(&self.identity),
            "type" => dialect.full_name(self.of.type_name).into(),
            other => {
                let found = self.attributes.iter().find(|(known, _)| *known == other);
                found.map_or(Field::Null, |(_, value)| value.clone())
            }
        }
    }

    /// All attributes that have a value.
    pub(super) fn map(&self, dialect: Dialect) -> Field<'_> {
        let mut all = vec![
            (Cow::Borrowed("type"), self.value("type", dialect)),
            (Cow::Borrowed("name"), Field::text(&self.name)),
            (Cow::Borrowed("identity"), Field::text(&self.identity)),
        ];
        let is_shown = |name: &str| {
            self.of.attribute(name).is_none_or(|(_, attribute)| is_known(attribute.origin, dialect))
        };
        let set = self.attributes.iter().filter(|(name, value)| !value.is_null() && is_shown(name));
        all.extend(set.map(|(name, value)| (Cow::Borrowed(*name), value.clone())));
        Field::Map(all)
    }
}

/// The entity of a record, the `index`th of its type.
pub(super) fn from_record(record: &Record, index: usize, router_id: &str) -> Entity {
    let of = record.entity();
    let text = |name| record.value(name).map(plain).and_then(|field| field.as_text().map(str::to_owned));
    let given = text("name");
    let rest = match of.type_name {
        "router" => router_id.to_owned(),
        "listener" | "connector" => {
            let place = format!("{}:{}", text("host").unwrap_or_default(), text("port").unwrap_or_default());
            given.as_ref().map_or_else(|| place.clone(), |name| format!("{place}:{name}"))
        }
        "vhost" => text("hostname").unwrap_or_default(),
        _ => given.clone().unwrap_or_else(|| index.to_string()),
    };
    let identity = format!("{}/{rest}", of.type_name);
    let name = given.unwrap_or_else(|| identity.clone());
    let attributes = record
        .values()
        .filter(|(attribute, _)| attribute.name != "name" && !attribute.is_secret)
        .filter_map(|(attribute, value)| Some((attribute.name, plain(value?))));
    Entity { of, identity, name, attributes: attributes.collect() }
}

/// A configured value as management shows it.
pub(super) fn plain(value: &Value) -> Field<'static> {
    match value {
        Value::Boolean(value) => Field::Bool(*value),
        Value::Integer(value) => integer(*value),
        Value::Text(text)
        | Value::Port { text, .. }
        | Value::Words { text, .. }
        | Value::Levels { text, .. } => Field::from(text.clone()),
        Value::Map(members) => Field::Map(
            members.iter().map(|member| (member.key.clone().into(), json(&member.value))).collect(),
        ),
        Value::Entities(parts) => {
            let part = |record: &Record| {
                let set = record
                    .values()
                    .filter_map(|(attribute, value)| Some((Cow::Borrowed(attribute.name), plain(value?))));
                Field::Map(set.collect())
            };
            Field::Map(parts.iter().map(|(name, record)| (name.clone().into(), part(record))).collect())
        }
        Value::List(items) => Field::List(items.iter().map(json).collect()),
    }
}

/// An int, or a long where it needs one.
fn integer(value: i64) -> Field<'static> {
    i32::try_from(value).map_or(Field::Long(value), Field::Int)
}

/// The depth of the recursion is that of the configuration, which the reader of it bounds.
fn json(value: &Json) -> Field<'static> {
    match value {
        Json::Null => Field::Null,
        Json::Boolean(value) => Field::Bool(*value),
        Json::Integer(value) => integer(*value),
        Json::Float(value) => Field::Double(*value),
        Json::String(text) => Field::from(text.clone()),
        Json::List(items) => Field::List(items.iter().map(json).collect()),
        Json::Map(members) => Field::Map(
            members.iter().map(|member| (member.key.clone().into(), json(&member.value))).collect(),
        ),
    }
}

/// What is known of the process from its start on.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) router_id: String,
    started: SystemTime,
    since: std::time::Instant,
}

impl Process {
    /// A process that starts now.
    pub(super) fn new(router_id: &str) -> Self {
        Self { router_id: router_id.to_owned(), started: SystemTime::now(), since: std::time::Instant::now() }
    }

    fn started_seconds(&self) -> i32 {
        let seconds = self.started.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        i32::try_from(seconds).unwrap_or(i32::MAX)
    }

    /// The entity `router.node` of this router, the only one that it knows.
    pub(super) fn node(&self) -> Option<Entity> {
        let id = &self.router_id;
        Some(
            Entity::new("router.node", format!("router.node/{id}"))?
                .with("id", Field::from(id.clone()))
                .with("protocolVersion", Field::Int(1))
                .with("instance", Field::Int(self.started_seconds()))
                .with("linkState", Field::List(Vec::new()))
                .with("nextHop", Field::text("(self)"))
                .with("validOrigins", Field::List(Vec::new()))
                .with("address", Field::from(format!("amqp:/_topo/0/{id}")))
                .with("lastTopoChange", Field::Int(self.started_seconds()))
                .with("index", Field::Int(0)),
        )
    }

    /// Adds what the router as a whole reports. `whole` has its addresses and links if `is_whole`.
    pub(super) fn report(&self, entity: &mut Entity, whole: &RouterFacts<'_>) {
        let memory = memory();
        let outside = |number: fn(&ShardCounters) -> u64| {
            Field::Ulong(whole.totals.sum(|totals| number(&totals.clients) + number(&totals.containers)))
        };
        let containers = |number: fn(&ShardCounters) -> u64| {
            Field::Ulong(whole.totals.sum(|totals| number(&totals.containers)))
        };
        let count = |gathered: Option<&Gathered>, number: fn(&Gathered) -> usize| {
            gathered.map_or(Field::Null, |gathered| Field::Ulong(number(gathered) as u64))
        };
        let values: [(&'static str, Field<'static>); 34] = [
            ("area", Field::text("0")),
            ("version", Field::text(env!("CARGO_PKG_VERSION"))),
            ("hostName", Field::from(host_name())),
            ("addrCount", count(whole.addresses, |gathered| gathered.addresses.len())),
            ("linkCount", Field::Ulong(whole.totals.sum(|totals| totals.links))),
            ("nodeCount", Field::Ulong(0)),
            ("linkRouteCount", Field::Ulong(0)),
            ("autoLinkCount", Field::Ulong(whole.auto_links)),
            ("connectionCount", Field::Ulong(whole.totals.sum(|totals| totals.connections))),
            ("blockedLinkCount", count(whole.links, blocked_links)),
            ("linksBlocked", count(whole.links, blocked_links)),
            ("presettledDeliveries", outside(|counters| counters.presettled)),
            (
                "droppedPresettledDeliveries",
                Field::Ulong(whole.totals.sum(|totals| totals.dropped_presettled)),
            ),
            ("acceptedDeliveries", outside(|counters| counters.accepted)),
            ("rejectedDeliveries", outside(|counters| counters.rejected)),
            ("releasedDeliveries", outside(|counters| counters.released)),
            ("modifiedDeliveries", outside(|counters| counters.modified)),
            ("deliveriesDelayed1Sec", Field::Ulong(whole.totals.sum(|totals| totals.delayed[0]))),
            ("deliveriesDelayed10Sec", Field::Ulong(whole.totals.sum(|totals| totals.delayed[1]))),
            ("deliveriesStuck", count(whole.links, stuck_deliveries)),
            ("deliveriesIngress", outside(|counters| counters.ingress)),
            ("deliveriesEgress", outside(|counters| counters.egress)),
            ("deliveriesTransit", Field::Ulong(0)),
            ("deliveriesIngressRouteContainer", containers(|counters| counters.ingress)),
            ("deliveriesEgressRouteContainer", containers(|counters| counters.egress)),
            ("deliveriesRedirectedToFallback", Field::Ulong(0)),
            ("deliveriesIngressInterNetwork", Field::Ulong(0)),
            ("deliveriesEgressInterNetwork", Field::Ulong(0)),
            (
                "authenticationFailures",
                Field::Ulong(whole.totals.sum(|totals| totals.authentication_failures)),
            ),
            ("connectionsRefused", Field::Ulong(whole.totals.sum(|totals| totals.refused_half_open))),
            ("uptimeSeconds", Field::Ulong(self.since.elapsed().as_secs())),
            ("memoryUsage", memory.map_or(Field::Null, |(size, _)| Field::Ulong(size))),
            ("residentMemoryUsage", memory.map_or(Field::Null, |(_, resident)| Field::Ulong(resident))),
            ("id", Field::from(self.router_id.clone())),
        ];
        for (name, value) in values {
            if entity.of.attribute(name).is_some() {
                entity.set(name, value);
            }
        }
    }
}

/// What the shards say of the router as a whole. Addresses and links are there only if they were asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouterFacts<'g> {
    pub(super) totals: &'g Gathered,
    pub(super) addresses: Option<&'g Gathered>,
    pub(super) links: Option<&'g Gathered>,
    /// How many auto-links there are.
    pub(super) auto_links: u64,
}

fn blocked_links(gathered: &Gathered) -> usize {
    gathered.links.iter().filter(|link| link.is_blocked).count()
}

fn stuck_deliveries(gathered: &Gathered) -> usize {
    usize::try_from(gathered.links.iter().map(|link| link.stuck).sum::<u64>()).unwrap_or(usize::MAX)
}

/// The name of the machine.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

/// The address space and the resident part of it, in bytes.
fn memory() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    };
    Some((bytes("VmSize:")?, bytes("VmRSS:")?))
}

/// The management node itself.
pub(super) fn management() -> Option<Entity> {
    Entity::new("management", "self")
}

/// How many lines each module of the log has.
pub(super) fn log_stats() -> Vec<Entity> {
    const COUNTS: [&str; Level::ALL.len()] = [
        "traceCount",
        "debugCount",
        "infoCount",
        "noticeCount",
        "warningCount",
        "errorCount",
        "criticalCount",
    ];
    let entity = |module: &Module| {
        let mut entity = Entity::new("logStats", format!("logStats/{module}"))?;
        module.name().clone_into(&mut entity.name);
        for (name, count) in COUNTS.into_iter().zip(log::counts(*module)) {
            entity.set(name, Field::Ulong(count));
        }
        Some(entity)
    };
    Module::ALL.iter().filter_map(entity).collect()
}

/// How long deliveries take, on all shards together.
pub(super) fn latencies(gathered: &Gathered) -> Vec<Entity> {
    let (mut forward, mut settle) = (Histogram::default(), Histogram::default());
    for meters in &gathered.meters {
        forward.add(&meters.forward);
        settle.add(&meters.settle);
    }
    let entity = |name: &str, histogram: &Histogram| {
        let mut entity = Entity::new("latency", format!("latency/{name}"))?;
        name.clone_into(&mut entity.name);
        let quantile = |of| Field::Ulong(histogram.quantile(of));
        let bounds = histogram.buckets().filter_map(|(bound, _)| bound);
        Some(
            entity
                .with("deliveries", Field::Ulong(histogram.count()))
                .with("p50", quantile(500))
                .with("p90", quantile(900))
                .with("p99", quantile(990))
                .with("p999", quantile(999))
                .with("bounds", Field::List(bounds.map(Field::Ulong).collect()))
                .with(
                    "counts",
                    Field::List(histogram.buckets().map(|(_, count)| Field::Ulong(count)).collect()),
                ),
        )
    };
    [("forward", &forward), ("settle", &settle)]
        .into_iter()
        .filter_map(|(name, histogram)| entity(name, histogram))
        .collect()
}

/// The shards' buffers, those of one size together.
pub(super) fn allocators(gathered: &Gathered) -> Vec<Entity> {
    let mut sizes: Vec<PoolUsage> = Vec::new();
    for usage in gathered.totals.iter().flat_map(|totals| totals.pools).flatten() {
        match sizes.iter_mut().find(|known| known.bytes == usage.bytes) {
            Some(known) => {
                known.allocated += usage.allocated;
                known.freed += usage.freed;
                known.kept += usage.kept;
            }
            None => sizes.push(usage),
        }
    }
    let number = |number: usize| Field::Int(i32::try_from(number).unwrap_or(i32::MAX));
    let entity = |usage: &PoolUsage| {
        let name = format!("output_buffer_{}", usage.bytes);
        Some(
            Entity::new("allocator", format!("allocator/{name}"))?
                .with("typeName", Field::from(name))
                .with("typeSize", number(usage.bytes))
                .with("transferBatchSize", Field::Int(1))
                .with("localFreeListMax", number(usage.kept_max))
                // Shards keep their buffers for themselves.
                .with("globalFreeListMax", Field::Int(0))
                .with("totalAllocFromHeap", Field::Ulong(usage.allocated))
                .with("totalFreeToHeap", Field::Ulong(usage.freed))
                .with("heldByThreads", Field::Ulong(usage.allocated.saturating_sub(usage.freed)))
                .with("batchesRebalancedToThreads", Field::Ulong(0))
                .with("batchesRebalancedToGlobal", Field::Ulong(0)),
        )
    };
    sizes.iter().filter_map(entity).collect()
}
