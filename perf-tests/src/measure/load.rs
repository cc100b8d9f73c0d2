//! Throughput at a window, ping-pong, and the open loop.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{Context, Measured, add_latencies};
use crate::generator::topology::LoadSpec;
use crate::generator::{Counters, Generator};
use crate::metric::{Figures, Metric};
use crate::process::{Usage, resident_bytes};
use crate::syscalls::{Counting, Event};
use crate::target::{Kind, Target, counted as counts};

/// How long the last messages may take.
const DRAIN: Duration = Duration::from_secs(3);

/// How long the target may take to close.
const CLOSE: Duration = Duration::from_secs(1);

/// What target and generator did in a stretch of time.
struct Stretch {
    nanos: u64,
    counters: Counters,
    cpu_nanos: Option<u64>,
    switches: Option<u64>,
}

/// Runs for `time`, and says what happened in it.
fn stretch(generator: &mut Generator, target: &Target, time: Duration) -> Result<Stretch> {
    let usage = |pids: &[u32]| if pids.is_empty() { Ok(None) } else { Usage::read(pids).map(Some) };
    let (counters, start, before) = (generator.counters, generator.now(), usage(&target.pids)?);
    generator.run_for(time)?;
    let (nanos, after) = (generator.now() - start, usage(&target.pids)?);
    let used = before.zip(after);
    Ok(Stretch {
        nanos,
        counters: generator.counters.since(&counters),
        cpu_nanos: used.as_ref().map(|(before, after)| after.cpu_nanos_since(before)),
        switches: used.as_ref().map(|(before, after)| after.switches_since(before)),
    })
}

impl Stretch {
    fn figures(&self, target: &Target) -> Result<Figures> {
        let messages = self.counters.received as f64;
        if messages == 0.0 {
            bail!("not one message arrived");
        }
        let seconds = self.nanos as f64 / 1e9;
        let mut figures = Figures::new();
        figures.insert(Metric::Throughput, messages / seconds);
        if let Some(nanos) = self.cpu_nanos {
            figures.insert(Metric::CpuPerMessage, nanos as f64 / 1e3 / messages);
            figures.insert(Metric::CpuShare, nanos as f64 / self.nanos as f64 * 100.0);
            figures.insert(Metric::Resident, resident_bytes(&target.pids) as f64 / 1_048_576.0);
        }
        if let Some(switches) = self.switches {
            figures.insert(Metric::SwitchesPerMessage, switches as f64 / messages);
        }
        if self.counters.not_accepted > 0 {
            figures.insert(Metric::NotAccepted, self.counters.not_accepted as f64);
        }
        Ok(figures)
    }
}

/// System calls per message, under the load that is running.
fn system_calls(generator: &mut Generator, target: &Target, context: &Context<'_>) -> Result<Option<f64>> {
    if !context.counts_system_calls || target.pids.is_empty() {
        return Ok(None);
    }
    counted(Event::SystemCalls, &target.pids, generator, context)
}

/// Calls per message, of what `event` says.
fn counted(
    event: Event,
    ids: &[u32],
    generator: &mut Generator,
    context: &Context<'_>,
) -> Result<Option<f64>> {
    let counting = Counting::start(event, ids, &context.folder)?;
    let (before, start) = (generator.counters, generator.now());
    generator.run_for(context.times.counting)?;
    let messages = generator.counters.since(&before).received as f64;
    let seconds = (generator.now() - start) as f64 / 1e9;
    let rate = counting.finish()?;
    Ok((messages > 0.0).then(|| rate / (messages / seconds)))
}

fn connect(spec: &LoadSpec, target: &Target, context: &Context<'_>) -> Result<Generator> {
    let address = |index| target.kind.address(spec, &context.run, index);
    let mut generator = Generator::connect(&target.endpoint, spec, &address)?;
    generator.set_blocking(context.is_generator_blocking);
    Ok(generator)
}

/// As many messages as window and credit allow.
pub fn throughput(spec: &LoadSpec, target: &Target, context: &Context<'_>) -> Result<Measured> {
    let mut generator = connect(spec, target, context)?;
    generator.drive_window();
    generator.run_for(context.times.warm_up)?;
    if target.kind == Kind::Counted {
        return counted_figures(generator, target, context);
    }
    let stretch = stretch(&mut generator, target, context.times.measure)?;
    let mut figures = stretch.figures(target)?;
    if let Some(calls) = system_calls(&mut generator, target, context)? {
        figures.insert(Metric::SystemCallsPerMessage, calls);
    }
    generator.drain(DRAIN)?;
    let missing =
        (generator.counters.sent * spec.copies() as u64).saturating_sub(generator.counters.received);
    if missing > 0 || spec.is_presettled {
        figures.insert(Metric::Missing, missing as f64);
    }
    generator.check_links()?;
    generator.close(CLOSE);
    Ok(Measured { figures, latencies: None })
}

/// What the shards allocate, what they lock and where they wait for others, in steady state.
fn counted_figures(mut generator: Generator, target: &Target, context: &Context<'_>) -> Result<Measured> {
    let socket = counts::socket(&context.folder);
    let before = counts::counts(&socket)?;
    let stretch = stretch(&mut generator, target, context.times.measure)?;
    let after = counts::counts(&socket)?;
    let messages = stretch.counters.received;
    if messages == 0 {
        bail!("not one message arrived");
    }
    let per_message = |after: u64, before: u64| (after - before) as f64 / messages as f64;
    let mut figures: Figures = [
        (Metric::AllocationsPerMessage, per_message(after.0, before.0)),
        (Metric::LocksPerMessage, per_message(after.1, before.1)),
    ]
    .into();
    if context.counts_system_calls {
        let shards: Vec<u32> = target.pids.iter().flat_map(|pid| counts::shards(*pid)).collect();
        if let Some(calls) = counted(Event::FutexCalls, &shards, &mut generator, context)? {
            figures.insert(Metric::FutexCallsPerMessage, calls);
        }
    }
    generator.drain(DRAIN)?;
    generator.close(CLOSE);
    Ok(Measured { figures, latencies: None })
}

/// One message at a time.
pub fn ping(spec: &LoadSpec, target: &Target, context: &Context<'_>) -> Result<Measured> {
    let mut generator = connect(spec, target, context)?;
    generator.drive_window();
    generator.run_for(context.times.warm_up)?;
    generator.record();
    let stretch = stretch(&mut generator, target, context.times.measure)?;
    let latencies = generator.take_latencies();
    let mut figures = stretch.figures(target)?;
    figures.remove(&Metric::Throughput);
    add_latencies(&mut figures, &latencies);
    if let Some(calls) = system_calls(&mut generator, target, context)? {
        figures.insert(Metric::SystemCallsPerMessage, calls);
    }
    generator.drain(DRAIN)?;
    generator.close(CLOSE);
    Ok(Measured { figures, latencies: Some(latencies) })
}

/// A fixed rate, timed from when each message was to be sent.
pub fn open(spec: &LoadSpec, target: &Target, context: &Context<'_>, rate: f64) -> Result<Measured> {
    let mut generator = connect(spec, target, context)?;
    generator.drive_paced(rate);
    generator.run_for(context.times.warm_up)?;
    let from = generator.record();
    let stretch = stretch(&mut generator, target, context.times.open)?;
    let due = generator.finish_paced(from, DRAIN)?;
    let latencies = generator.take_latencies();
    let mut figures = stretch.figures(target)?;
    add_latencies(&mut figures, &latencies);
    // They would belong at the end of the histogram: a run with missing messages has no honest tail.
    figures.insert(Metric::Missing, due.saturating_sub(latencies.len()) as f64);
    if context.counts_system_calls && !target.pids.is_empty() {
        generator.drive_paced(rate);
        if let Some(calls) = system_calls(&mut generator, target, context)? {
            figures.insert(Metric::SystemCallsPerMessage, calls);
        }
        let now = generator.now();
        generator.finish_paced(now, DRAIN)?;
    }
    generator.close(CLOSE);
    Ok(Measured { figures, latencies: Some(latencies) })
}
