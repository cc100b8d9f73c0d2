//! What the hot path has to reach, and how far it is.

use super::table::Table;
use crate::metric::{Metric, short};
use crate::result::{Outcome, Report};

/// How a figure is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// As it is.
    Plain(Metric),
    /// As a multiple of the plain forwarder's, round by round.
    TimesForwarder(Metric),
    /// As a multiple of what the same target has in another scenario.
    TimesScenario(Metric, &'static str),
}

/// One target.
struct Aim {
    /// What is measured.
    title: &'static str,
    scenario: &'static str,
    /// The router as it was started, as the harness names it.
    target: &'static str,
    kind: Kind,
    unit: &'static str,
    must: f64,
    aim: f64,
    /// Whether more is better.
    is_floor: bool,
}

const fn most(
    title: &'static str,
    (scenario, target): (&'static str, &'static str),
    kind: Kind,
    unit: &'static str,
    (must, aim): (f64, f64),
) -> Aim {
    Aim { title, scenario, target, kind, unit, must, aim, is_floor: false }
}

use Kind::{Plain, TimesForwarder, TimesScenario};
use Metric::{
    AllocationsPerMessage, CpuPerMessage, LocksPerMessage, MemoryGrowth, Missing, P50, P99, Start,
    Throughput, Unaccounted,
};

/// The project's targets for one shard on one core.
const AIMS: [Aim; 17] = [
    most(
        "unsettled, 1 pair: CPU per message",
        ("pair-1", "ringmain"),
        Plain(CpuPerMessage),
        " µs",
        (0.6, 0.25),
    ),
    Aim {
        is_floor: true,
        ..most(
            "unsettled, 1 pair: throughput",
            ("pair-1", "ringmain"),
            Plain(Throughput),
            " msg/s",
            (1.5e6, 4e6),
        )
    },
    most(
        "64 pairs, 16 in flight: CPU",
        ("pairs-64", "ringmain"),
        TimesForwarder(CpuPerMessage),
        "x",
        (2.0, 1.3),
    ),
    most("ping-pong: p50", ("ping", "ringmain"), TimesForwarder(P50), "x", (1.15, 1.05)),
    most("ping-pong, spinning: p50", ("ping", "ringmain-spin"), TimesForwarder(P50), "x", (1.15, 1.05)),
    most("20 k msg/s, spinning: p99", ("open-20k", "ringmain-spin"), TimesForwarder(P99), "x", (1.5, 1.1)),
    most("64 KiB: CPU", ("pair-1-64k", "ringmain"), TimesForwarder(CpuPerMessage), "x", (1.5, 1.1)),
    most(
        "1:8 multicast: CPU per copy against a 1:1 message",
        ("fan-out-8", "ringmain"),
        TimesScenario(CpuPerMessage, "presettled"),
        "x",
        (0.6, 0.35),
    ),
    most(
        "allocations per message, 1 pair",
        ("pair-1", "ringmain-counted"),
        Plain(AllocationsPerMessage),
        "",
        (0.0, 0.0),
    ),
    most(
        "allocations per copy, 1:8 multicast",
        ("fan-out-8", "ringmain-counted"),
        Plain(AllocationsPerMessage),
        "",
        (0.0, 0.0),
    ),
    most("locks per message, 1 pair", ("pair-1", "ringmain-counted"), Plain(LocksPerMessage), "", (0.0, 0.0)),
    most(
        "10 k msg/s, sleeping: CPU",
        ("open-10k", "ringmain"),
        TimesForwarder(CpuPerMessage),
        "x",
        (1.3, 1.1),
    ),
    most("pre-settled, willing receiver: lost", ("presettled", "ringmain"), Plain(Missing), "", (0.0, 0.0)),
    most(
        "pre-settled, slow receiver: growth",
        ("slow-receiver", "ringmain"),
        Plain(MemoryGrowth),
        " MiB",
        (32.0, 32.0),
    ),
    most(
        "pre-settled, slow reader: growth",
        ("slow-reader", "ringmain"),
        Plain(MemoryGrowth),
        " MiB",
        (32.0, 32.0),
    ),
    most(
        "pre-settled, slow reader: unaccounted",
        ("slow-reader", "ringmain"),
        Plain(Unaccounted),
        "",
        (0.0, 0.0),
    ),
    most("exec to first AMQP open", ("start", "ringmain"), Plain(Start), " ms", (50.0, 10.0)),
];

/// The least difference that counts: a thousandth of an allocation per message is what the first messages took.
const NOISE: f64 = 0.001;

impl Aim {
    fn reached(&self, report: &Report) -> Option<f64> {
        let outcome = report.outcomes_of(self.scenario).find(|outcome| outcome.target == self.target)?;
        match self.kind {
            Plain(metric) => median(outcome, metric),
            TimesForwarder(metric) => Some(outcome.against_forwarder(metric, report)?.median),
            TimesScenario(metric, other) => {
                let other = report.outcomes_of(other).find(|other| other.target == self.target)?;
                Some(median(outcome, metric)? / median(other, metric)?)
            }
        }
    }

    fn verdict(&self, reached: f64) -> &'static str {
        let meets = |bound: f64| {
            if self.is_floor { reached >= bound } else { reached <= bound + NOISE }
        };
        match (meets(self.aim), meets(self.must)) {
            (true, _) => "aim",
            (false, true) => "must",
            (false, false) => "MISSED",
        }
    }
}

fn median(outcome: &Outcome, metric: Metric) -> Option<f64> {
    Some(outcome.spread(metric)?.median)
}

/// The targets that the report has figures for.
pub fn table(report: &Report) -> Table {
    let head = ["target of the hot path", "must", "aim", "reached", "meets"];
    let bound = |aim: &Aim, value: f64| {
        format!("{} {}{}", if aim.is_floor { "≥" } else { "≤" }, short(value), aim.unit)
    };
    let rows = AIMS.iter().filter_map(|aim| {
        let reached = aim.reached(report)?;
        Some(vec![
            aim.title.to_owned(),
            bound(aim, aim.must),
            bound(aim, aim.aim),
            format!("{}{}", short(reached), aim.unit),
            aim.verdict(reached).to_owned(),
        ])
    });
    Table { head: head.map(str::to_owned).to_vec(), rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::table;
    use crate::result::tests::report;

    #[test]
    fn each_target_is_held_against_its_bounds() {
        for (cpu, verdict) in [(0.2, "aim"), (0.5, "must"), (0.7, "MISSED")] {
            let table = table(&report(&[("ringmain", &[cpu, cpu, 9.0]), ("forwarder-epoll", &[0.1])]));
            let cells: Vec<&str> = table.rows[0].iter().map(String::as_str).collect();
            let reached = format!("{cpu:.2} µs");
            assert_eq!(
                cells,
                ["unsettled, 1 pair: CPU per message", "≤ 0.60 µs", "≤ 0.25 µs", &reached, verdict]
            );
            assert_eq!(table.rows.len(), 1, "what wasn't measured isn't there");
        }
    }
}
