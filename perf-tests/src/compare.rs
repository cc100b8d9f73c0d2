//! Before and after: two reports side by side.

use std::fmt::Write as _;

use crate::metric::{Better, Metric, short};
use crate::result::Report;
use crate::stats::Spread;

/// Changes below this are none, whatever the spread says.
const NOISE: f64 = 0.02;

/// How a figure has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// For the better, by more than the runs differ among themselves.
    Better,
    /// For the worse, likewise.
    Worse,
    /// Not by more than the runs differ.
    Same,
}

/// One line of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The scenario.
    pub scenario: String,
    /// The target.
    pub target: String,
    /// The figure.
    pub metric: Metric,
    /// Before.
    pub old: Spread,
    /// After.
    pub new: Spread,
    /// What to think of it.
    pub verdict: Verdict,
}

impl Change {
    /// The change as a share of the old median: 0.1 is 10 % more. Infinite if there was nothing before.
    pub fn relative(&self) -> f64 {
        if self.old.median == self.new.median { 0.0 } else { self.new.median / self.old.median - 1.0 }
    }
}

/// Compares what both reports have, figure by figure.
pub fn compare(old: &Report, new: &Report) -> Vec<Change> {
    let mut changes = Vec::new();
    for after in &new.outcomes {
        let Some(before) =
            old.outcomes.iter().find(|it| it.scenario == after.scenario && it.target == after.target)
        else {
            continue;
        };
        let mut metrics: Vec<Metric> =
            after.rounds.iter().flat_map(|figures| figures.keys().copied()).collect();
        metrics.sort_unstable();
        metrics.dedup();
        for metric in metrics {
            let (Some(old), Some(new)) = (before.spread(metric), after.spread(metric)) else { continue };
            if metric.better() == Better::Neither {
                continue;
            }
            let verdict = verdict(metric, &old, &new);
            let (scenario, target) = (after.scenario.clone(), after.target.clone());
            changes.push(Change { scenario, target, metric, old, new, verdict });
        }
    }
    changes
}

/// A change counts when the ranges of the runs have nothing in common.
fn verdict(metric: Metric, old: &Spread, new: &Spread) -> Verdict {
    let change = new.median - old.median;
    let is_small = change.abs() <= NOISE * old.median.abs();
    if is_small || old.overlaps(new) {
        return Verdict::Same;
    }
    let is_better = match metric.better() {
        Better::Higher => change > 0.0,
        Better::Lower => change < 0.0,
        Better::Neither => return Verdict::Same,
    };
    if is_better { Verdict::Better } else { Verdict::Worse }
}

/// The comparison as text. `all` shows what hasn't changed, too.
pub fn text(changes: &[Change], old: &Report, new: &Report, all: bool) -> String {
    let mut out = format!("old: {} UTC, new: {} UTC\n", old.started, new.started);
    // Writing to a string can't fail.
    if old.machine.cpu != new.machine.cpu || old.machine.kernel != new.machine.kernel {
        let _ = writeln!(
            out,
            "They ran on different machines or kernels: only ratios within one of them mean anything."
        );
    }
    let few = changes.iter().any(|change| change.old.runs < 3 || change.new.runs < 3);
    if few {
        let _ = writeln!(out, "Some figures are of fewer than 3 runs: their spread isn't known.");
    }
    let _ = writeln!(
        out,
        "\n{:<15} {:<16} {:<15} {:>16} {:>16} {:>9}",
        "scenario", "target", "figure", "old", "new", "change"
    );
    let cell = |spread: &Spread| format!("{} ±{:.0}%", short(spread.median), spread.relative() * 100.0);
    let mut hidden = 0;
    for change in changes {
        let mark = match change.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "WORSE",
            Verdict::Same if all => "",
            Verdict::Same => {
                hidden += 1;
                continue;
            }
        };
        let _ = writeln!(
            out,
            "{:<15} {:<16} {:<15} {:>16} {:>16} {:>+8.1}% {mark}",
            change.scenario,
            change.target,
            change.metric.title(),
            cell(&change.old),
            cell(&change.new),
            change.relative() * 100.0
        );
    }
    if hidden > 0 {
        let _ =
            writeln!(out, "\n{hidden} figures changed by less than their runs differ (--all shows them).");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Verdict, compare, text, verdict};
    use crate::metric::Metric;
    use crate::result::tests::report;
    use crate::stats::Spread;

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values.iter().copied()).unwrap()
    }

    #[test]
    fn a_change_counts_only_beyond_the_spread() {
        let old = spread(&[100.0, 104.0, 96.0]);
        let cases: [(&[f64], Verdict); 4] = [
            (&[90.0, 91.0, 92.0], Verdict::Better),
            (&[110.0, 111.0, 112.0], Verdict::Worse),
            (&[103.0, 110.0, 120.0], Verdict::Same),
            (&[95.0, 90.0, 97.0], Verdict::Same),
        ];
        for (new, expected) in cases {
            assert_eq!(verdict(Metric::CpuPerMessage, &old, &spread(new)), expected, "{new:?}");
        }
        assert_eq!(verdict(Metric::Throughput, &old, &spread(&[110.0, 111.0])), Verdict::Better);
        assert_eq!(verdict(Metric::CpuShare, &old, &spread(&[1.0])), Verdict::Same);
        // Single runs have no spread, and still differ by a little each time.
        assert_eq!(verdict(Metric::P50, &spread(&[100.0]), &spread(&[101.0])), Verdict::Same);
    }

    #[test]
    fn only_what_both_have_is_compared() {
        let old = report(&[("ringmain", &[1.0, 1.0, 1.0]), ("rabbitmq", &[9.0])]);
        let new = report(&[("ringmain", &[2.0, 2.0, 2.0]), ("forwarder-epoll", &[1.0])]);
        let changes = compare(&old, &new);
        let [change] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!((change.verdict, change.relative()), (Verdict::Worse, 1.0));
        let shown = text(&changes, &old, &new, false);
        assert!(shown.contains("+100.0% WORSE"), "{shown}");
        let same = text(&compare(&old, &old), &old, &old, false);
        assert!(same.contains("2 figures changed by less"), "{same}");
    }
}
