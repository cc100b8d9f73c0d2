//! The entities of which there may be very many, and which change all the time: connections, links and
//! addresses in use.
//!
//! Only the columns that were asked for are made, and only of the rows of the page.

use super::dialect::Dialect;
use super::field::Field;
use crate::routing::Treatment;
use crate::shard::survey::{AddressFacts, ConnectionFacts, LinkFacts};
use ringmain_codec::Value;
use std::borrow::Cow;

/// The priority that the links of clients are shown with: that of messages that say nothing (§3.2.1).
const LINK_PRIORITY: u32 = 4;

/// How a value is made from what a shard says.
pub(super) type Get<F> = for<'a> fn(&'a F, Dialect) -> Field<'a>;

/// An attribute of such an entity.
pub(super) struct Column<F: 'static> {
    pub(super) name: &'static str,
    /// Who has it; `None`: both.
    dialect: Option<Dialect>,
    get: Get<F>,
}

/// Something that a shard tells of.
pub(super) trait Observed: Sized + 'static {
    /// Its type's name without prefix.
    const TYPE: &'static str;

    /// Its attributes in the order in which all of them are shown.
    const COLUMNS: &'static [Column<Self>];

    /// By what READ and UPDATE find it.
    fn identity(&self, dialect: Dialect) -> Cow<'_, str>;

    /// Its name.
    fn name(&self, dialect: Dialect) -> Cow<'_, str>;
}

/// The columns that all attributes mean.
pub(super) fn all_columns<F: Observed>(dialect: Dialect) -> Vec<&'static str> {
    let shown = F::COLUMNS.iter().filter(|column| column.dialect.is_none_or(|only| only == dialect));
    shown.map(|column| column.name).collect()
}

/// How the values of these columns are made; of a name that it doesn't have, nulls.
pub(super) fn getters<F: Observed>(names: &[&str]) -> Vec<Option<Get<F>>> {
    let get = |name: &&str| F::COLUMNS.iter().find(|column| column.name == *name).map(|column| column.get);
    names.iter().map(get).collect()
}

/// The values of a row.
pub(super) fn row<'a, F: Observed>(
    fact: &'a F,
    getters: &[Option<Get<F>>],
    dialect: Dialect,
) -> Vec<Field<'a>> {
    getters.iter().map(|get| get.map_or(Field::Null, |get| get(fact, dialect))).collect()
}

/// All attributes of one entity.
pub(super) fn attributes<F: Observed>(fact: &F, dialect: Dialect) -> Field<'_> {
    let shown = F::COLUMNS.iter().filter(|column| column.dialect.is_none_or(|only| only == dialect));
    Field::Map(shown.map(|column| (Cow::Borrowed(column.name), (column.get)(fact, dialect))).collect())
}

const fn both<F>(name: &'static str, get: Get<F>) -> Column<F> {
    Column { name, dialect: None, get }
}

const fn dispatch<F>(name: &'static str, get: Get<F>) -> Column<F> {
    Column { name, dialect: Some(Dialect::Dispatch), get }
}

const fn skupper<F>(name: &'static str, get: Get<F>) -> Column<F> {
    Column { name, dialect: Some(Dialect::Skupper), get }
}

/// A duration in whole seconds.
fn seconds(duration: std::time::Duration) -> Field<'static> {
    Field::Uint(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX))
}

fn distribution(treatment: Treatment) -> &'static str {
    match treatment {
        Treatment::Multicast => "multicast",
        Treatment::Closest => "closest",
        Treatment::Balanced => "balanced",
        Treatment::Unavailable => "unavailable",
    }
}

fn count(number: u64) -> Field<'static> {
    Field::Uint(u32::try_from(number).unwrap_or(u32::MAX))
}

impl Observed for AddressFacts {
    const TYPE: &'static str = "router.address";

    const COLUMNS: &'static [Column<Self>] = &[
        both("name", |facts, dialect| dialect.address_key(&facts.key).into()),
        both("identity", |facts, dialect| dialect.address_key(&facts.key).into()),
        both("type", |_, dialect| dialect.full_name(Self::TYPE).into()),
        both("key", |facts, dialect| dialect.address_key(&facts.key).into()),
        both("distribution", |facts, _| Field::text(distribution(facts.settings.treatment))),
        both("inProcess", |facts, _| Field::Uint(facts.in_process)),
        both("subscriberCount", |facts, _| count(facts.subscribers)),
        both("remoteCount", |_, _| Field::Uint(0)),
        dispatch("containerCount", |_, _| Field::Uint(0)),
        both("remoteHostRouters", |_, _| Field::List(Vec::new())),
        both("deliveriesIngress", |facts, _| Field::Ulong(facts.counters.ingress)),
        both("deliveriesEgress", |facts, _| Field::Ulong(facts.counters.egress)),
        both("deliveriesTransit", |_, _| Field::Ulong(0)),
        both("deliveriesToContainer", |facts, _| Field::Ulong(facts.counters.to_container)),
        both("deliveriesFromContainer", |facts, _| Field::Ulong(facts.counters.from_container)),
        both("deliveriesEgressRouteContainer", |facts, _| {
            Field::Ulong(facts.counters.egress_route_container)
        }),
        both("deliveriesIngressRouteContainer", |facts, _| {
            Field::Ulong(facts.counters.ingress_route_container)
        }),
        skupper("deliveriesEgressInterNetwork", |_, _| Field::Ulong(0)),
        skupper("deliveriesIngressInterNetwork", |_, _| Field::Ulong(0)),
        both("transitOutstanding", |_, _| Field::Null),
        both("trackedDeliveries", |_, _| Field::Long(0)),
        both("priority", |facts, _| Field::Int(facts.settings.priority.map_or(-1, i32::from))),
        both("deliveriesRedirectedToFallback", |_, _| Field::Ulong(0)),
        skupper("watch", |_, _| Field::Bool(false)),
    ];

    fn identity(&self, dialect: Dialect) -> Cow<'_, str> {
        dialect.address_key(&self.key).into()
    }

    fn name(&self, dialect: Dialect) -> Cow<'_, str> {
        self.identity(dialect)
    }
}

impl Observed for LinkFacts {
    const TYPE: &'static str = "router.link";

    const COLUMNS: &'static [Column<Self>] = &[
        both("name", |facts, _| Field::text(&facts.name)),
        both("identity", |facts, _| facts.id.to_string().into()),
        both("type", |_, dialect| dialect.full_name(Self::TYPE).into()),
        both("linkName", |facts, _| Field::text(&facts.name)),
        both("linkType", |_, _| Field::text("endpoint")),
        both("linkDir", |facts, _| Field::text(if facts.is_incoming { "in" } else { "out" })),
        both("owningAddr", |facts, dialect| {
            facts.address.as_deref().map_or(Field::Null, |key| dialect.address_key(key).into())
        }),
        both("capacity", |facts, _| Field::Uint(facts.capacity)),
        dispatch("peer", |_, _| Field::Null),
        both("undeliveredCount", |facts, _| Field::Ulong(facts.undelivered.into())),
        both("unsettledCount", |facts, _| Field::Ulong(facts.unsettled.into())),
        both("deliveryCount", |facts, _| Field::Ulong(facts.counters.deliveries)),
        both("connectionId", |facts, _| facts.connection_id.to_string().into()),
        dispatch("adminStatus", |_, _| Field::text("enabled")),
        both("operStatus", |_, _| Field::text("up")),
        both("presettledCount", |facts, _| Field::Ulong(facts.counters.presettled)),
        both("droppedPresettledCount", |facts, _| Field::Ulong(facts.counters.dropped_presettled)),
        both("acceptedCount", |facts, _| Field::Ulong(facts.counters.accepted)),
        both("rejectedCount", |facts, _| Field::Ulong(facts.counters.rejected)),
        both("releasedCount", |facts, _| Field::Ulong(facts.counters.released)),
        both("modifiedCount", |facts, _| Field::Ulong(facts.counters.modified)),
        both("deliveriesDelayed1Sec", |facts, _| Field::Ulong(facts.counters.delayed[0])),
        both("deliveriesDelayed10Sec", |facts, _| Field::Ulong(facts.counters.delayed[1])),
        both("deliveriesStuck", |facts, _| Field::Ulong(facts.stuck)),
        skupper("openMovedStreams", |_, _| Field::Ulong(0)),
        both("ingressHistogram", |facts, _| {
            // All that goes out came into the network at this router, the only one.
            if facts.is_incoming {
                Field::Null
            } else {
                Field::List(vec![Field::Ulong(facts.counters.deliveries)])
            }
        }),
        both("priority", |_, _| Field::Uint(LINK_PRIORITY)),
        both("settleRate", |facts, _| Field::Uint(facts.settle_rate)),
        both("creditAvailable", |facts, _| Field::Uint(facts.credit)),
        both("zeroCreditSeconds", |facts, _| seconds(facts.without_credit)),
    ];

    fn identity(&self, _: Dialect) -> Cow<'_, str> {
        self.id.to_string().into()
    }

    fn name(&self, _: Dialect) -> Cow<'_, str> {
        Cow::Borrowed(&self.name)
    }
}

impl Observed for ConnectionFacts {
    const TYPE: &'static str = "connection";

    const COLUMNS: &'static [Column<Self>] = &[
        both("name", |facts, _| connection_name(facts).into()),
        both("identity", |facts, _| facts.id.to_string().into()),
        both("host", |facts, _| Field::text(&facts.host)),
        skupper("localSocket", |_, _| Field::Null),
        both("role", |facts, _| Field::text(facts.role.name())),
        both("protocol", |_, _| Field::text("amqp")),
        both("dir", |facts, _| Field::text(facts.direction)),
        both("container", |facts, _| Field::text(&facts.container)),
        both("sasl", |facts, _| facts.mechanism.map_or(Field::Null, Field::text)),
        both("isAuthenticated", |facts, _| Field::Bool(facts.mechanism.is_some())),
        both("user", |facts, _| Field::text(&facts.user)),
        both("isEncrypted", |facts, _| Field::Bool(facts.is_encrypted)),
        both("sslProto", |facts, _| facts.encryption.map_or(Field::Null, |tls| Field::text(tls.version))),
        both("sslCipher", |facts, _| facts.encryption.map_or(Field::Null, |tls| Field::text(tls.cipher))),
        both("properties", |facts, _| properties(&facts.properties)),
        both("sslSsf", |facts, _| Field::Long(facts.encryption.map_or(0, |tls| tls.key_bits.into()))),
        dispatch("tenant", |_, _| Field::Null),
        both("type", |_, dialect| dialect.full_name(Self::TYPE).into()),
        both("ssl", |facts, _| Field::Bool(facts.is_encrypted)),
        both("opened", |facts, _| Field::Bool(facts.is_open)),
        both("active", |_, _| Field::Bool(true)),
        both("adminStatus", |_, _| Field::text("enabled")),
        both("operStatus", |facts, _| Field::text(if facts.is_open { "up" } else { "closing" })),
        both("uptimeSeconds", |facts, _| seconds(facts.uptime)),
        both("lastDlvSeconds", |facts, _| facts.idle.map_or(Field::Null, seconds)),
        both("enableProtocolTrace", |facts, _| Field::Bool(facts.is_traced)),
        skupper("meshId", |_, _| Field::Null),
        skupper("tlsOrdinal", |facts, _| facts.tls_ordinal.map_or(Field::Null, Field::Ulong)),
        skupper("groupCorrelationId", |_, _| Field::Null),
        skupper("groupOrdinal", |_, _| Field::Null),
    ];

    fn identity(&self, _: Dialect) -> Cow<'_, str> {
        self.id.to_string().into()
    }

    fn name(&self, _: Dialect) -> Cow<'_, str> {
        connection_name(self).into()
    }
}

fn connection_name(facts: &ConnectionFacts) -> String {
    format!("connection/{}", facts.host)
}

/// The properties of an open: their keys are symbols there and strings here.
fn properties(encoded: &[u8]) -> Field<'_> {
    let entries = Value::from_encoded(encoded).ok().and_then(|value| value.entries());
    let named = entries.into_iter().flatten().filter_map(|(key, value)| {
        let key = key.as_symbol().map(|symbol| symbol.0).or_else(|| key.as_str())?;
        Some((Cow::Borrowed(key), Field::Encoded(value)))
    });
    Field::Map(named.collect())
}
