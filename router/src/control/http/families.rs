//! The names of what is measured, and how they come from what is known.
//!
//! `qdr_…` are `qdrouterd`'s names, with its types and meaning. (There a gauge may end in `_total`, too.)
//! `process_…` are those that Prometheus's own clients have. The others are ours.

use super::facts::{ControlFacts, ProfileFacts};
use super::process::Process;
use crate::base::buffer::PoolUsage;
use crate::base::histogram::Histogram;
use crate::base::limits::COMPLETIONS_PER_TURN_MAX;
use crate::log;
use crate::log::{Level, Module};
use crate::routing::{Address, Class};
use crate::shard::ShardCounters;
use crate::shard::survey::{AddressFacts, Findings, Load, Totals};
use std::borrow::Cow;

/// What a family's numbers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// They only grow.
    Counter,
    /// They go up and down.
    Gauge,
    /// How many there were of each size.
    Histogram,
}

/// One value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Sample {
    /// A whole number.
    Whole(u64),
    /// Any number.
    Real(f64),
    /// Of a histogram.
    Buckets {
        /// The sum of all that was counted.
        sum: f64,
        /// How many were counted.
        count: u64,
        /// The upper bound of each bucket, and how many are in that one alone; the last has `f64::INFINITY`.
        buckets: Vec<(f64, u64)>,
    },
}

/// What tells the values of a family apart.
pub(super) type Labels = Vec<(&'static str, String)>;

/// What is measured under one name.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Family {
    /// The name; that of a counter without its `_total`.
    pub(super) name: Cow<'static, str>,
    /// What it is.
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    pub(super) samples: Vec<(Labels, Sample)>,
}

/// What is known of a shard.
pub(super) struct ShardFacts<'f> {
    /// What it has answered last.
    pub(super) findings: &'f Findings,
    /// The turns that it has begun.
    pub(super) turns: u64,
    /// Whether the watchdog has found it stuck.
    pub(super) is_stuck: bool,
}

/// All that is known.
pub(super) struct Facts<'f> {
    pub(super) router_id: &'f str,
    pub(super) shards: Vec<ShardFacts<'f>>,
    pub(super) control: &'f ControlFacts,
    pub(super) addresses_in_use: usize,
    /// Those with values of their own.
    pub(super) addresses: Vec<&'f AddressFacts>,
    pub(super) addresses_left_out: usize,
    pub(super) websockets: usize,
    pub(super) process: Process,
}

impl Facts<'_> {
    fn sum(&self, number: impl Fn(&Totals) -> u64) -> u64 {
        self.shards.iter().map(|shard| number(&shard.findings.totals)).sum()
    }

    /// Of clients and brokers together.
    fn outside(&self, number: fn(&ShardCounters) -> u64) -> u64 {
        self.sum(|totals| number(&totals.clients) + number(&totals.containers))
    }

    fn containers(&self, number: fn(&ShardCounters) -> u64) -> u64 {
        self.sum(|totals| number(&totals.containers))
    }

    fn load(&self) -> Load {
        let mut load = Load::default();
        self.shards.iter().for_each(|shard| load.add(shard.findings.load));
        load
    }
}

/// All families.
pub(super) fn all(facts: &Facts<'_>) -> Vec<Family> {
    let mut families = of_dispatch(facts);
    families.extend(of_allocators(facts));
    families.extend(of_router(facts));
    families.extend(of_deliveries(facts));
    families.extend(of_shards(facts));
    families.extend(of_buffers(facts));
    families.extend(of_addresses(facts));
    families.extend(of_log());
    families.extend(of_process(&facts.process));
    families
}

fn family(name: &'static str, help: &'static str, kind: Kind, samples: Vec<(Labels, Sample)>) -> Family {
    Family { name: name.into(), help, kind, samples }
}

fn counter(name: &'static str, help: &'static str, number: u64) -> Family {
    family(name, help, Kind::Counter, vec![(Vec::new(), Sample::Whole(number))])
}

fn gauge(name: &'static str, help: &'static str, number: u64) -> Family {
    family(name, help, Kind::Gauge, vec![(Vec::new(), Sample::Whole(number))])
}

/// Those that `qdrouterd` has.
fn of_dispatch(facts: &Facts<'_>) -> Vec<Family> {
    let load = facts.load();
    vec![
        gauge("qdr_connections_total", "Connections.", facts.sum(|totals| totals.connections)),
        gauge("qdr_links_total", "Links.", facts.sum(|totals| totals.links)),
        gauge("qdr_addresses_total", "Addresses in use.", facts.addresses_in_use as u64),
        gauge("qdr_routers_total", "Other routers of the network.", 0),
        gauge("qdr_link_routes_total", "Link routes.", 0),
        gauge("qdr_auto_links_total", "Auto-links.", facts.control.auto_links),
        counter(
            "qdr_presettled_deliveries",
            "Deliveries that came settled.",
            facts.outside(|counters| counters.presettled),
        ),
        counter(
            "qdr_dropped_presettled_deliveries",
            "Settled deliveries that were dropped, since nobody took them in time.",
            facts.sum(|totals| totals.dropped_presettled),
        ),
        counter(
            "qdr_accepted_deliveries",
            "Deliveries that ended accepted.",
            facts.outside(|counters| counters.accepted),
        ),
        counter(
            "qdr_released_deliveries",
            "Deliveries that ended released.",
            facts.outside(|counters| counters.released),
        ),
        counter(
            "qdr_rejected_deliveries",
            "Deliveries that ended rejected.",
            facts.outside(|counters| counters.rejected),
        ),
        counter(
            "qdr_modified_deliveries",
            "Deliveries that ended modified.",
            facts.outside(|counters| counters.modified),
        ),
        counter(
            "qdr_deliveries_ingress",
            "Deliveries that came from clients and brokers.",
            facts.outside(|counters| counters.ingress),
        ),
        counter(
            "qdr_deliveries_egress",
            "Deliveries that went to clients and brokers, each copy counted.",
            facts.outside(|counters| counters.egress),
        ),
        counter("qdr_deliveries_transit", "Deliveries that went from one other router to another.", 0),
        counter(
            "qdr_deliveries_ingress_route_container",
            "Deliveries that came from brokers (role route-container).",
            facts.containers(|counters| counters.ingress),
        ),
        counter(
            "qdr_deliveries_egress_route_container",
            "Deliveries that went to brokers (role route-container).",
            facts.containers(|counters| counters.egress),
        ),
        counter(
            "qdr_deliveries_delayed_1sec",
            "Deliveries that waited for more than a second, and not for ten.",
            facts.sum(|totals| totals.delayed[0]),
        ),
        counter(
            "qdr_deliveries_delayed_10sec",
            "Deliveries that waited for more than ten seconds.",
            facts.sum(|totals| totals.delayed[1]),
        ),
        gauge(
            "qdr_deliveries_stuck_total",
            "Deliveries that have waited for more than ten seconds.",
            load.stuck,
        ),
        gauge(
            "qdr_links_blocked_total",
            "Links whose receiver has given no credit for more than ten seconds.",
            load.blocked_links,
        ),
        counter(
            "qdr_deliveries_redirected_to_fallback",
            "Deliveries that went to the fallback of their address.",
            0,
        ),
    ]
}

/// The buffers of all shards by their size, as `qdrouterd` has its allocators. (The names say bytes, there as here,
/// and mean pieces.)
fn of_allocators(facts: &Facts<'_>) -> Vec<Family> {
    let mut pools: Vec<PoolUsage> = Vec::new();
    for usage in facts.shards.iter().flat_map(|shard| shard.findings.totals.pools).flatten() {
        match pools.iter_mut().find(|known| known.bytes == usage.bytes) {
            Some(known) => {
                known.allocated += usage.allocated;
                known.freed += usage.freed;
            }
            None => pools.push(usage),
        }
    }
    let of_pool = |pool: &PoolUsage| {
        let bytes = pool.bytes;
        let value = |what: &str, help, number| Family {
            name: format!("qdr_allocator_output_buffer_{bytes}:{what}_bytes").into(),
            help,
            kind: Kind::Gauge,
            samples: vec![(Vec::new(), Sample::Whole(number))],
        };
        [
            value("total_alloc_from_heap", "Output buffers that were allocated so far.", pool.allocated),
            value("total_free_to_heap", "Output buffers that were freed so far.", pool.freed),
            value(
                "held_by_threads",
                "Output buffers that are there now.",
                pool.allocated.saturating_sub(pool.freed),
            ),
            value("batches_rebalanced_to_threads", "Always 0: shards keep their buffers.", 0),
            value("batches_rebalanced_to_global", "Always 0: shards keep their buffers.", 0),
        ]
    };
    pools.iter().flat_map(of_pool).collect()
}

/// The router as a whole.
fn of_router(facts: &Facts<'_>) -> Vec<Family> {
    let version =
        vec![("version", env!("CARGO_PKG_VERSION").to_owned()), ("router", facts.router_id.to_owned())];
    let connectors = facts.control.connectors.iter().map(|connector| {
        let labels = vec![("connector", connector.name.clone()), ("address", connector.address.clone())];
        (labels, Sample::Whole(connector.is_up.into()))
    });
    // Several connectors may be called the same and lead to the same place.
    let mut known = Vec::new();
    let connectors = connectors.filter(|(labels, _)| {
        let is_new = !known.contains(labels);
        known.push(labels.clone());
        is_new
    });
    let of_profiles = |value: fn(&ProfileFacts) -> u64| -> Vec<_> {
        let of_one =
            |profile: &ProfileFacts| (vec![("profile", profile.name.clone())], Sample::Whole(value(profile)));
        facts.control.profiles.iter().map(of_one).collect()
    };
    vec![
        family(
            "ringmain_build_info",
            "1; the labels say which router this is, and its version.",
            Kind::Gauge,
            vec![(version, Sample::Whole(1))],
        ),
        family(
            "ringmain_connector_up",
            "1 if the connector's connection is open, 0 if it isn't.",
            Kind::Gauge,
            connectors.collect(),
        ),
        family(
            "ringmain_tls_profile_load_failures",
            "How often the files of an sslProfile couldn't be read again; those before stay in use.",
            Kind::Counter,
            of_profiles(|profile| profile.failures),
        ),
        family(
            "ringmain_tls_certificate_expiry_seconds",
            "When the certificate of an sslProfile expires, in seconds since 1970.",
            Kind::Gauge,
            of_profiles(|profile| profile.not_after),
        ),
        counter(
            "ringmain_authentication_failures",
            "Clients that weren't who they said, or didn't keep to their SASL mechanism.",
            facts.sum(|totals| totals.authentication_failures),
        ),
        counter(
            "ringmain_tls_handshake_failures",
            "Connections whose TLS handshake came to nothing.",
            facts.sum(|totals| totals.handshake_failures),
        ),
        counter(
            "ringmain_connections_refused",
            "Connections closed as soon as they came, since there were too many.",
            facts.sum(|totals| totals.refused_half_open),
        ),
        gauge("ringmain_websockets", "Connections that came over WebSocket.", facts.websockets as u64),
    ]
}

/// How long deliveries take.
fn of_deliveries(facts: &Facts<'_>) -> Vec<Family> {
    let (mut forward, mut settle) = (Histogram::default(), Histogram::default());
    for meters in facts.shards.iter().filter_map(|shard| shard.findings.meters.as_ref()) {
        forward.add(&meters.forward);
        settle.add(&meters.settle);
    }
    vec![
        family(
            "ringmain_delivery_forward_seconds",
            "Time that deliveries spent in the router, until the end of the turn that sent them.",
            Kind::Histogram,
            vec![(Vec::new(), seconds(&forward))],
        ),
        family(
            "ringmain_delivery_settlement_seconds",
            "Time from the arrival of a delivery until its sender is told its outcome, of one in 64 unsettled ones.",
            Kind::Histogram,
            vec![(Vec::new(), seconds(&settle))],
        ),
    ]
}

/// Of each shard.
fn of_shards(facts: &Facts<'_>) -> Vec<Family> {
    let each = |number: &dyn Fn(&ShardFacts<'_>) -> u64| {
        let samples = facts.shards.iter().enumerate();
        samples.map(|(shard, known)| (of_shard(shard), Sample::Whole(number(known)))).collect::<Vec<_>>()
    };
    let directed = |inward: &dyn Fn(&ShardFacts<'_>) -> u64, outward: &dyn Fn(&ShardFacts<'_>) -> u64| {
        let directions = [("in", inward), ("out", outward)];
        let samples = facts.shards.iter().enumerate().flat_map(|(shard, known)| {
            directions.map(|(direction, number)| {
                let mut labels = of_shard(shard);
                labels.push(("direction", direction.to_owned()));
                (labels, Sample::Whole(number(known)))
            })
        });
        samples.collect::<Vec<_>>()
    };
    let outside = |shard: &ShardFacts<'_>, number: fn(&ShardCounters) -> u64| {
        number(&shard.findings.totals.clients) + number(&shard.findings.totals.containers)
    };
    let batches = facts.shards.iter().enumerate().filter_map(|(shard, known)| {
        Some((
            of_shard(shard),
            sizes(&known.findings.meters.as_ref()?.batches, COMPLETIONS_PER_TURN_MAX as u64),
        ))
    });
    use Kind::{Counter, Gauge};
    vec![
        family(
            "ringmain_shard_turns",
            "Turns that the shard has begun.",
            Counter,
            each(&|shard| shard.turns),
        ),
        family(
            "ringmain_shard_stuck",
            "1 if the watchdog has found the shard stuck: neither turning nor waiting.",
            Gauge,
            each(&|shard| shard.is_stuck.into()),
        ),
        family(
            "ringmain_shard_batch_completions",
            "Completions (receives, sends, accepts) that one turn dealt with, of turns that had any.",
            Kind::Histogram,
            batches.collect(),
        ),
        family(
            "ringmain_shard_connections",
            "Connections that the shard serves.",
            Gauge,
            each(&|shard| shard.findings.totals.connections),
        ),
        family("ringmain_shard_links", "Their links.", Gauge, each(&|shard| shard.findings.totals.links)),
        family(
            "ringmain_shard_deliveries",
            "Deliveries that came from and went to clients and brokers.",
            Counter,
            directed(&|shard| outside(shard, |counters| counters.ingress), &|shard| {
                outside(shard, |counters| counters.egress)
            }),
        ),
        family(
            "ringmain_shard_hand_offs",
            "Chunks of frames that came from and went to other shards.",
            Counter,
            directed(
                &|shard| shard.findings.meters.as_ref().map_or(0, |meters| meters.taken_over),
                &|shard| shard.findings.meters.as_ref().map_or(0, |meters| meters.handed_over),
            ),
        ),
        family(
            "ringmain_shard_deliveries_waiting",
            "Deliveries that wait for their receivers.",
            Gauge,
            each(&|shard| shard.findings.load.undelivered),
        ),
        family(
            "ringmain_shard_deliveries_unsettled",
            "Deliveries that receivers have been sent and haven't settled.",
            Gauge,
            each(&|shard| shard.findings.load.unsettled),
        ),
        family(
            "ringmain_shard_held_bytes",
            "Payload that waits for receivers.",
            Gauge,
            each(&|shard| shard.findings.totals.held_bytes),
        ),
    ]
}

/// The output buffers of each shard.
fn of_buffers(facts: &Facts<'_>) -> Vec<Family> {
    let each = |number: fn(&PoolUsage) -> u64| {
        let samples = facts.shards.iter().enumerate().flat_map(|(shard, known)| {
            known.findings.totals.pools.into_iter().flatten().map(move |pool| {
                let mut labels = of_shard(shard);
                labels.push(("size", pool.bytes.to_string()));
                (labels, Sample::Whole(number(&pool)))
            })
        });
        samples.collect::<Vec<_>>()
    };
    vec![
        family(
            "ringmain_shard_buffers_allocated",
            "Output buffers of this size that were allocated, since none was kept.",
            Kind::Counter,
            each(|pool| pool.allocated),
        ),
        family(
            "ringmain_shard_buffers_freed",
            "Output buffers that were freed, since enough were kept.",
            Kind::Counter,
            each(|pool| pool.freed),
        ),
        family(
            "ringmain_shard_buffers_kept",
            "Output buffers that are kept for the next use.",
            Kind::Gauge,
            each(|pool| pool.kept as u64),
        ),
    ]
}

/// Of the addresses that are shown.
fn of_addresses(facts: &Facts<'_>) -> Vec<Family> {
    let labels = |address: &AddressFacts| {
        let parsed = Address::from_key(&address.key);
        let phase = match parsed.map(|address| address.class) {
            Some(Class::Phase(phase)) => phase,
            Some(
                Class::Mobile | Class::Local | Class::Topological | Class::Router | Class::Edge | Class::Area,
            )
            | None => 0,
        };
        let name = parsed.map_or(&*address.key, |address| address.text);
        vec![("address", name.to_owned()), ("phase", phase.to_string())]
    };
    let deliveries = facts.addresses.iter().flat_map(|address| {
        [("in", address.counters.ingress), ("out", address.counters.egress)].map(|(direction, number)| {
            let mut labels = labels(address);
            labels.push(("direction", direction.to_owned()));
            (labels, Sample::Whole(number))
        })
    });
    let receivers =
        facts.addresses.iter().map(|address| (labels(address), Sample::Whole(address.subscribers)));
    vec![
        family(
            "ringmain_address_deliveries",
            "Deliveries to the address that came and went, of the 100 addresses that are shown.",
            Kind::Counter,
            deliveries.collect(),
        ),
        family(
            "ringmain_address_receivers",
            "Receivers of the address, of the 100 addresses that are shown.",
            Kind::Gauge,
            receivers.collect(),
        ),
        gauge(
            "ringmain_addresses_left_out",
            "Addresses in use beyond the 100 that are shown.",
            facts.addresses_left_out as u64,
        ),
    ]
}

fn of_log() -> Vec<Family> {
    let mut lines = [0; Level::ALL.len()];
    for counts in Module::ALL.iter().map(|module| log::counts(*module)) {
        for (sum, count) in lines.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let samples = Level::ALL.iter().zip(lines);
    let samples =
        samples.map(|(level, count)| (vec![("level", level.name().to_owned())], Sample::Whole(count)));
    vec![
        family("ringmain_log_lines", "Lines that were logged.", Kind::Counter, samples.collect()),
        counter(
            "ringmain_log_lines_dropped",
            "Lines that were lost, since more was logged than could be written.",
            log::dropped(),
        ),
    ]
}

fn of_process(process: &Process) -> Vec<Family> {
    let real = |number| vec![(Vec::new(), Sample::Real(number))];
    vec![
        family(
            "process_cpu_seconds",
            "Time that the process has spent on CPUs.",
            Kind::Counter,
            real(process.cpu_seconds),
        ),
        gauge("process_resident_memory_bytes", "Memory that the process has in use.", process.resident_bytes),
        gauge("process_open_fds", "Descriptors that the process has open.", process.descriptors),
        gauge("process_max_fds", "Descriptors that it may have open.", process.descriptors_max),
        family(
            "process_start_time_seconds",
            "When the process was started, in seconds since 1970.",
            Kind::Gauge,
            real(process.started),
        ),
    ]
}

fn of_shard(shard: usize) -> Labels {
    vec![("shard", shard.to_string())]
}

/// A histogram of times, in seconds.
#[allow(clippy::cast_precision_loss, reason = "sums of 52 bits of nanoseconds are months")]
fn seconds(histogram: &Histogram) -> Sample {
    Sample::Buckets {
        sum: histogram.sum() as f64 / 1e9,
        count: histogram.count(),
        buckets: histogram
            .buckets()
            .map(|(bound, count)| {
                (bound.map_or(f64::INFINITY, |microseconds| microseconds as f64 / 1e6), count)
            })
            .collect(),
    }
}

/// A histogram of whole numbers that are `most` at the most.
#[allow(clippy::cast_precision_loss, reason = "bounds are below 2^28")]
fn sizes(histogram: &Histogram, most: u64) -> Sample {
    let mut buckets: Vec<(f64, u64)> = histogram
        .buckets()
        .map_while(|(bound, count)| bound.filter(|bound| *bound <= most).map(|bound| (bound as f64, count)))
        .collect();
    let beyond = histogram.count() - buckets.iter().map(|(_, count)| count).sum::<u64>();
    buckets.push((f64::INFINITY, beyond));
    Sample::Buckets { sum: histogram.sum() as f64, count: histogram.count(), buckets }
}
