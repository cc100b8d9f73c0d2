//! The measurements: a scenario, a target, figures.

mod idle;
mod load;
mod slow_receiver;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hdrhistogram::Histogram;

use crate::metric::{Figures, Metric};
use crate::scenario::{Measure, Scenario, Times};
use crate::stats::{PERCENTILES, Spread, micros_at};
use crate::target::{Settings, Target};

/// How often the start of a process is measured for one figure.
const STARTS: usize = 5;

/// What one measurement gave.
#[derive(Default)]
pub struct Measured {
    /// The figures.
    pub figures: Figures,
    /// Latencies in nanoseconds, where they were recorded.
    pub latencies: Option<Histogram<u64>>,
}

/// What measurements need to know beside the scenario.
pub struct Context<'a> {
    /// How long they take.
    pub times: Times,
    /// Whether system calls are counted this time.
    pub counts_system_calls: bool,
    /// Where files may go.
    pub folder: PathBuf,
    /// How targets are started.
    pub settings: &'a Settings,
    /// Tells addresses of this measurement from those of others.
    pub run: String,
    /// Messages per second that this target took in the scenario that this one builds on.
    pub capacity: Option<f64>,
    /// Whether the generator sleeps when it has nothing to do.
    pub is_generator_blocking: bool,
}

/// Measures a target in a scenario.
///
/// # Errors
/// The target refuses something, or is lost.
pub fn measure(scenario: &Scenario, target: &Target, context: &Context<'_>) -> Result<Measured> {
    match &scenario.measure {
        Measure::Throughput => load::throughput(&scenario.spec, target, context),
        Measure::Ping => load::ping(&scenario.spec, target, context),
        Measure::Open { rate: Some(rate), .. } => load::open(&scenario.spec, target, context, *rate),
        Measure::Open { rate: None, percent, capacity } => {
            let found =
                context.capacity.with_context(|| format!("its capacity ('{capacity}') isn't known"))?;
            load::open(&scenario.spec, target, context, found * f64::from(*percent) / 100.0)
        }
        Measure::SlowReceiver { capacity } => {
            let found =
                context.capacity.with_context(|| format!("its full speed ('{capacity}') isn't known"))?;
            slow_receiver::measure(&scenario.spec, target, context, found)
        }
        Measure::Idle => idle::measure(&scenario.spec, target, context),
        Measure::Start => start(target, context),
    }
}

/// From the start of the process to the answer to the first open.
fn start(target: &Target, context: &Context<'_>) -> Result<Measured> {
    let first = target.start_time.context("it was running already")?;
    // What takes seconds isn't started again.
    let again = if first < Duration::from_millis(500) { STARTS - 1 } else { 0 };
    let settings = Settings { folder: context.folder.join("start"), ..context.settings.clone() };
    let mut times = vec![first.as_secs_f64() * 1e3];
    for _ in 0..again {
        let other = Target::start(&target.kind, &settings)?;
        times.extend(other.start_time.map(|time| time.as_secs_f64() * 1e3));
    }
    let median = Spread::of(times).context("no start was timed")?.median;
    Ok(Measured { figures: [(Metric::Start, median)].into(), latencies: None })
}

/// The percentiles of latencies, as figures.
fn add_latencies(figures: &mut Figures, latencies: &Histogram<u64>) {
    if latencies.is_empty() {
        return;
    }
    for (percentile, name) in PERCENTILES {
        if let Some(metric) = Metric::of_percentile(name) {
            figures.insert(metric, micros_at(latencies, percentile));
        }
    }
    figures.insert(Metric::Max, latencies.max() as f64 / 1e3);
}
