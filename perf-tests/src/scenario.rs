//! What the standard set consists of.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::generator::topology::{LoadSpec, Settle, Slow};
use crate::target::Kind;

/// A load, and what is measured under it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name on the command line and in files.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// The load.
    pub spec: LoadSpec,
    /// What is measured.
    pub measure: Measure,
}

/// What is measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Measure {
    /// As many messages as window and credit allow.
    Throughput,
    /// One message at a time; from sent to received.
    Ping,
    /// A fixed rate, timed from when each message was to be sent.
    Open {
        /// Messages per second over all senders; `None` for a share of the capacity.
        rate: Option<f64>,
        /// Percent of what the target took in the scenario named `capacity`.
        percent: u32,
        /// The scenario that finds the capacity.
        capacity: String,
    },
    /// Settled messages at full speed to a receiver that takes a tenth of them.
    SlowReceiver {
        /// The scenario that finds the full speed.
        capacity: String,
    },
    /// Connections with a session, a sender and a receiver each, that do nothing.
    Idle,
    /// From the start of the process to the answer to the first open.
    Start,
}

/// How long things are measured.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Times {
    /// Before a measurement, so that buffers and caches are as they will be.
    pub warm_up: Duration,
    /// Throughput and ping-pong.
    pub measure: Duration,
    /// Open loops, which need many messages for their tails.
    pub open: Duration,
    /// The receiver that is slow with its credit.
    pub slow_receiver: Duration,
    /// The one that is slow with reading.
    pub slow_reader: Duration,
    /// Counting system calls.
    pub counting: Duration,
}

impl Times {
    /// Those of the standard set.
    pub const STANDARD: Self = Self {
        warm_up: Duration::from_millis(400),
        measure: Duration::from_millis(1000),
        open: Duration::from_millis(1500),
        // Where credit alone keeps the sender back, there is little to be seen.
        slow_receiver: Duration::from_secs(15),
        slow_reader: Duration::from_secs(60),
        counting: Duration::from_millis(500),
    };

    /// Those of `--quick`.
    pub const QUICK: Self = Self {
        warm_up: Duration::from_millis(100),
        measure: Duration::from_millis(300),
        open: Duration::from_millis(500),
        slow_receiver: Duration::from_secs(1),
        slow_reader: Duration::from_secs(2),
        counting: Duration::from_millis(220),
    };
}

/// The scenario that a command line describes.
pub const LOAD: &str = "load";

/// The scenario of 64 pairs, whose throughput is the capacity of the open loops.
const CAPACITY: &str = "pairs-64";

/// The scenario whose throughput is the full speed of the slow receiver's sender.
const PRESETTLED: &str = "presettled";

impl Scenario {
    fn new(name: &str, title: &str, spec: LoadSpec, measure: Measure) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), spec, measure }
    }

    /// Whether a target can be measured in it.
    pub fn fits(&self, kind: &Kind) -> bool {
        let is_ours = match kind {
            Kind::Ringmain(_) | Kind::Url(_) => true,
            Kind::Counted | Kind::RabbitMq | Kind::ActiveMq | Kind::Forwarder(..) | Kind::Itself => false,
        };
        match self.measure {
            // Where there is always work, nobody waits, in whatever way.
            Measure::Throughput
            | Measure::Open { rate: None, .. }
            | Measure::SlowReceiver { .. }
            | Measure::Idle
            | Measure::Start
                if kind.spins() && self.name != LOAD =>
            {
                false
            }
            // It is there for its counts, not for its speed.
            Measure::Ping
            | Measure::Open { .. }
            | Measure::SlowReceiver { .. }
            | Measure::Idle
            | Measure::Start
                if *kind == Kind::Counted =>
            {
                false
            }
            // A share of what the generator can do alone says nothing about anybody.
            Measure::Open { rate: None, .. } if *kind == Kind::Itself => false,
            Measure::Throughput | Measure::Ping | Measure::Open { .. } => {
                kind.has_protocol() || self.spec.is_plain_pairs()
            }
            // A broker would only fill its queues, for as long as its memory lasts.
            Measure::SlowReceiver { .. } => is_ours,
            Measure::Idle => kind.has_protocol(),
            Measure::Start => kind.has_protocol() && !matches!(kind, Kind::Url(_)),
        }
    }

    /// Whether one run is enough: it takes long, or says the same each time.
    pub fn is_once(&self, kind: &Kind) -> bool {
        let says_the_same = match self.measure {
            Measure::SlowReceiver { .. } | Measure::Idle => true,
            Measure::Throughput | Measure::Ping | Measure::Open { .. } | Measure::Start => false,
        };
        says_the_same || *kind == Kind::Counted
    }
}

/// The standard set, in the order in which it is run. `connections` is how many idle ones are made.
pub fn standard(connections: usize) -> Vec<Scenario> {
    let one = LoadSpec::pairs(1);
    let many = LoadSpec { in_flight: 16, ..LoadSpec::pairs(64) };
    let throughput = |name, title, spec| Scenario::new(name, title, spec, Measure::Throughput);
    let open = |name: &str, title: &str, spec: &LoadSpec, rate, percent| {
        let measure = Measure::Open { rate, percent, capacity: CAPACITY.to_owned() };
        Scenario::new(name, title, spec.clone(), measure)
    };
    vec![
        Scenario::new("start", "start: exec to first AMQP open", one.clone(), Measure::Start),
        // Before the loads: memory that those have left behind would be used first.
        Scenario::new(
            "idle",
            "idle connections with a session, a sender and a receiver",
            LoadSpec { is_mixed: true, ..LoadSpec::pairs(connections) },
            Measure::Idle,
        ),
        throughput("pair-1", "1 pair, unsettled, credit 1000, 100 B", one.clone()),
        throughput(
            "pair-1-ranges",
            "the same, the receiver settles in ranges",
            LoadSpec { settle: Settle::Range, ..one.clone() },
        ),
        throughput("pair-1-1k", "1 pair, unsettled, 1 KiB", LoadSpec { body_bytes: 1024, ..one.clone() }),
        throughput(
            "pair-1-64k",
            "1 pair, unsettled, 64 KiB, 64 in flight",
            LoadSpec { body_bytes: 65_536, credit: 64, in_flight: 64, ..one.clone() },
        ),
        throughput(CAPACITY, "64 pairs, unsettled, 16 in flight each, 100 B", many.clone()),
        throughput(
            PRESETTLED,
            "1 pair, pre-settled, willing receiver, 100 B",
            LoadSpec { is_presettled: true, ..one.clone() },
        ),
        throughput(
            "fan-out-8",
            "1 sender to 8 receivers, multicast, pre-settled (figures per copy)",
            LoadSpec { receivers: 8, is_multicast: true, is_presettled: true, ..one.clone() },
        ),
        throughput(
            "fan-in-8",
            "8 senders to 1 receiver, unsettled",
            LoadSpec { senders: 8, in_flight: 125, ..one.clone() },
        ),
        throughput(
            "anonymous",
            "1 pair, unsettled, anonymous sender",
            LoadSpec { is_anonymous: true, ..one.clone() },
        ),
        throughput(
            "requests",
            "8 clients and services, 16 requests in flight each (figures per round trip)",
            LoadSpec { is_request_response: true, in_flight: 16, ..LoadSpec::pairs(8) },
        ),
        Scenario::new(
            "ping",
            "ping: one message at a time, one traversal, 100 B",
            LoadSpec { in_flight: 1, ..one.clone() },
            Measure::Ping,
        ),
        open("open-10k", "open loop, 10 k msg/s, 1 pair", &one, Some(10e3), 0),
        open("open-20k", "open loop, 20 k msg/s, 64 pairs", &many, Some(20e3), 0),
        open("open-30", "open loop, 30 % of capacity, 64 pairs", &many, None, 30),
        open("open-50", "open loop, 50 % of capacity, 64 pairs", &many, None, 50),
        open("open-70", "open loop, 70 % of capacity, 64 pairs", &many, None, 70),
        Scenario::new(
            "slow-receiver",
            "pre-settled at full speed, receiver 10x too slow with its credit",
            LoadSpec { is_presettled: true, slow: Slow::Credit, ..one.clone() },
            Measure::SlowReceiver { capacity: PRESETTLED.to_owned() },
        ),
        Scenario::new(
            "slow-reader",
            "pre-settled at full speed, receiver 10x too slow with reading its socket",
            LoadSpec { is_presettled: true, slow: Slow::Reading, credit: 100_000, ..one },
            Measure::SlowReceiver { capacity: PRESETTLED.to_owned() },
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Measure, standard};
    use crate::target::Kind;

    #[test]
    fn the_standard_set_fits_together() {
        let set = standard(100);
        for (at, scenario) in set.iter().enumerate() {
            assert!(scenario.spec.check().is_ok(), "{}", scenario.name);
            assert!(set[..at].iter().all(|other| other.name != scenario.name), "{}", scenario.name);
            // What a scenario builds on was measured before it.
            let needed = match &scenario.measure {
                Measure::Open { capacity, .. } | Measure::SlowReceiver { capacity } => Some(capacity),
                Measure::Throughput | Measure::Ping | Measure::Idle | Measure::Start => None,
            };
            if let Some(needed) = needed {
                assert!(set[..at].iter().any(|other| other.name == *needed), "{}", scenario.name);
            }
        }
    }

    #[test]
    fn a_forwarder_gets_only_what_it_can_do() {
        let forwarder = &Kind::parse("forwarder").unwrap()[0];
        let fitting: Vec<String> =
            standard(100).into_iter().filter(|it| it.fits(forwarder)).map(|it| it.name).collect();
        for name in ["pair-1", "pairs-64", "pair-1-64k", "presettled", "ping", "open-20k"] {
            assert!(fitting.iter().any(|it| it == name), "{name}");
        }
        for name in ["fan-out-8", "fan-in-8", "anonymous", "requests", "slow-receiver", "idle", "start"] {
            assert!(fitting.iter().all(|it| it != name), "{name}");
        }
    }
}
