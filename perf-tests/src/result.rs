//! What a run found, as it is written to and read from JSON.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::metric::{Figures, Metric};
use crate::scenario::Times;
use crate::stats::Spread;
use crate::target::About;

/// The version of the JSON: it grows when old readers would misunderstand new files.
pub const FORMAT: u32 = 1;

/// A whole run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// When it began, in UTC.
    pub started: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Its command line.
    pub command: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// The CPUs of the targets.
    pub target_cpus: String,
    /// The CPUs of the generator.
    pub generator_cpus: String,
    /// How long things were measured.
    pub times: Times,
    /// What was measured.
    pub targets: Vec<About>,
    /// What was left out, and why.
    pub left_out: Vec<(String, String)>,
    /// What else readers have to know.
    pub notes: Vec<String>,
    /// The figures.
    pub outcomes: Vec<Outcome>,
}

/// A target in a scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The scenario's name.
    pub scenario: String,
    /// What the scenario is.
    pub title: String,
    /// The target's name.
    pub target: String,
    /// Figures by round; empty for a round in which it wasn't measured or failed.
    pub rounds: Vec<Figures>,
    /// What went wrong.
    pub failures: Vec<String>,
    /// The latencies of all rounds together: percentile and microseconds.
    #[serde(default)]
    pub curve: Vec<(f64, f64)>,
}

impl Outcome {
    /// The median of a figure over the rounds, with its spread.
    pub fn spread(&self, metric: Metric) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(|figures| figures.get(&metric).copied()))
    }

    /// Whether there is any figure.
    pub fn has_figures(&self) -> bool {
        self.rounds.iter().any(|figures| !figures.is_empty())
    }

    /// How a figure compares with the best one of the forwarders that wait in the same way, round by round.
    pub fn against_forwarder(&self, metric: Metric, report: &Report) -> Option<Spread> {
        if !self.target_is_ours() {
            return None;
        }
        let forwarders: Vec<&Outcome> =
            report.outcomes_of(&self.scenario).filter(|other| other.is_forwarder_like(self)).collect();
        let ratio = |(round, figures): (usize, &Figures)| {
            let best = forwarders
                .iter()
                .filter_map(|other| other.rounds.get(round)?.get(&metric).copied())
                .min_by(f64::total_cmp)?;
            (best > 0.0).then_some(figures.get(&metric)? / best)
        };
        Spread::of(self.rounds.iter().enumerate().filter_map(ratio))
    }

    /// Whether it is the plain limit.
    pub fn is_forwarder(&self) -> bool {
        self.target.starts_with("forwarder")
    }

    /// Whether it is the plain limit, waiting as `other` does.
    fn is_forwarder_like(&self, other: &Self) -> bool {
        self.is_forwarder() && self.target.ends_with("-spin") == other.target.ends_with("-spin")
    }

    fn target_is_ours(&self) -> bool {
        !self.is_forwarder() && self.target != "itself"
    }
}

impl Report {
    /// The outcomes of a scenario.
    pub fn outcomes_of<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a Outcome> {
        self.outcomes.iter().filter(move |outcome| outcome.scenario == scenario)
    }

    /// The scenarios, in the order in which they were run, with their titles.
    pub fn scenarios(&self) -> Vec<(&str, &str)> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for outcome in &self.outcomes {
            if found.iter().all(|(name, _)| *name != outcome.scenario) {
                found.push((&outcome.scenario, &outcome.title));
            }
        }
        found
    }

    /// Reads a report.
    ///
    /// # Errors
    /// It isn't there, isn't a report, or is of another version.
    pub fn read(path: &Path) -> Result<Self> {
        let path = if path.is_dir() { path.join("report.json") } else { path.to_owned() };
        let text = fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
        let report: Self =
            serde_json::from_str(&text).with_context(|| format!("{} is no report", path.display()))?;
        if report.format != FORMAT {
            bail!("{} has format {}, this program knows {FORMAT}", path.display(), report.format);
        }
        Ok(report)
    }
}

/// The points of a percentile curve, in microseconds: ever denser towards 100 %, as in `.hgrm` files.
pub fn curve(latencies: &Histogram<u64>) -> Vec<(f64, f64)> {
    latencies
        .iter_quantiles(5)
        .map(|step| (step.quantile_iterated_to() * 100.0, step.value_iterated_to() as f64 / 1e3))
        .collect()
}

/// The percentile distribution in HdrHistogram's text format, in microseconds.
pub fn hgrm(latencies: &Histogram<u64>) -> String {
    use std::fmt::Write as _;
    let mut text =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    for step in latencies.iter_quantiles(5) {
        let (value, quantile) = (step.value_iterated_to() as f64 / 1e3, step.quantile_iterated_to());
        let count = latencies.count_between(0, step.value_iterated_to());
        // Writing to a string can't fail.
        let _ = if quantile < 1.0 {
            writeln!(text, "{value:12.3} {quantile:2.12} {count:10} {:14.2}", 1.0 / (1.0 - quantile))
        } else {
            writeln!(text, "{value:12.3} {quantile:2.12} {count:10}")
        };
    }
    let (mean, deviation) = (latencies.mean() / 1e3, latencies.stdev() / 1e3);
    let (max, count) = (latencies.max() as f64 / 1e3, latencies.len());
    let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
    let _ = writeln!(text, "#[Max     = {max:12.3}, Total count    = {count:12}]");
    let _ = writeln!(text, "#[Buckets = {:12}, SubBuckets     = {:12}]", latencies.buckets(), 2048);
    text
}

#[cfg(test)]
pub mod tests {
    use super::{FORMAT, Outcome, Report, curve, hgrm};
    use crate::generator::latency_histogram;
    use crate::machine::Machine;
    use crate::metric::{Figures, Metric};
    use crate::scenario::Times;

    /// A report of one scenario with CPU times per round for each target.
    pub fn report(targets: &[(&str, &[f64])]) -> Report {
        let outcome = |(target, values): &(&str, &[f64])| Outcome {
            scenario: "pair-1".to_owned(),
            title: "1 pair".to_owned(),
            target: (*target).to_owned(),
            rounds: values.iter().map(|value| Figures::from([(Metric::CpuPerMessage, *value)])).collect(),
            failures: Vec::new(),
            curve: Vec::new(),
        };
        Report {
            format: FORMAT,
            started: "2026-01-01 00:00:00".to_owned(),
            seconds: 1.0,
            command: vec!["ringmain-perf".to_owned()],
            machine: Machine::default(),
            target_cpus: "0".to_owned(),
            generator_cpus: "1".to_owned(),
            times: Times::QUICK,
            targets: Vec::new(),
            left_out: Vec::new(),
            notes: Vec::new(),
            outcomes: targets.iter().map(outcome).collect(),
        }
    }

    #[test]
    fn ratios_are_taken_round_by_round_against_the_better_forwarder() {
        // The machine got twice as slow in the second round; the ratio didn't.
        let report = report(&[
            ("ringmain", &[3.0, 6.0, 3.3]),
            ("forwarder-epoll", &[1.5, 4.0, 2.0]),
            ("forwarder-uring", &[2.0, 3.0, 1.1]),
        ]);
        let ratio = report.outcomes[0].against_forwarder(Metric::CpuPerMessage, &report).unwrap();
        assert_eq!((ratio.median, ratio.min), (2.0, 2.0));
        assert!((ratio.max - 3.0).abs() < 1e-9);
        assert_eq!(report.outcomes[1].against_forwarder(Metric::CpuPerMessage, &report), None);
        assert_eq!(report.outcomes[0].against_forwarder(Metric::P50, &report), None);
    }

    #[test]
    fn who_spins_is_compared_with_who_spins() {
        let report = report(&[
            ("ringmain-spin", &[3.0]),
            ("rabbitmq", &[8.0]),
            ("forwarder-uring", &[4.0]),
            ("forwarder-uring-spin", &[2.0]),
        ]);
        let ratio =
            |at: usize| report.outcomes[at].against_forwarder(Metric::CpuPerMessage, &report).unwrap().median;
        assert_eq!((ratio(0), ratio(1)), (1.5, 2.0));
    }

    #[test]
    fn a_report_survives_json() {
        let report = report(&[("ringmain", &[1.0, 2.0])]);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn percentiles_are_written_as_hdrhistogram_does() {
        let mut latencies = latency_histogram();
        for micros in 1..=1000_u64 {
            latencies.record(micros * 1000).unwrap();
        }
        let text = hgrm(&latencies);
        assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"));
        assert!(text.contains("Total count    =         1000]"));
        let median = text.lines().find(|line| line.contains(" 0.500000000000 ")).unwrap();
        let fields: Vec<&str> = median.split_whitespace().collect();
        assert_eq!(fields[2..], ["500", "2.00"]);
        let points = curve(&latencies);
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!(points.last().unwrap().0, 100.0);
    }
}
