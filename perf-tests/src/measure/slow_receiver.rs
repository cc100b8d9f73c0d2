//! Pre-settled overload: a sender at full speed, a receiver that takes a tenth of it. Memory has to stay
//! bounded, and what is dropped has to be counted.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::{Context, Measured};
use crate::generator::Generator;
use crate::generator::topology::{LoadSpec, Slow};
use crate::metric::{Figures, Metric};
use crate::process::resident_bytes;
use crate::target::Target;

/// How much slower the receiver is.
const SLOWER: f64 = 10.0;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How long nothing has to come for the rest to count as dropped.
const SILENCE: Duration = Duration::from_millis(1000);

/// Measures with a sender whose full speed is `full_speed` messages per second.
pub fn measure(spec: &LoadSpec, target: &Target, context: &Context<'_>, full_speed: f64) -> Result<Measured> {
    let spec = LoadSpec { receiver_rate: Some((full_speed / SLOWER).max(1.0) as u64), ..spec.clone() };
    let time = match spec.slow {
        Slow::Credit => context.times.slow_receiver,
        Slow::Reading => context.times.slow_reader,
    };
    let log_start = target.log.as_deref().map_or(0, log_length);
    let idle = resident_bytes(&target.pids);
    let address = |index| target.kind.address(&spec, &context.run, index);
    let mut generator = Generator::connect(&target.endpoint, &spec, &address)?;
    generator.drive_window();
    let mut most = idle;
    let end = generator.now() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    while generator.now() < end {
        generator.run_for(LOOK)?;
        most = most.max(resident_bytes(&target.pids));
    }
    generator.drive_idle();
    // What waits on its way comes at the receiver's rate, too.
    let mut received = u64::MAX;
    while generator.counters.received != received {
        received = generator.counters.received;
        generator.run_for(SILENCE)?;
    }
    let sent = generator.counters.sent;
    generator.close(Duration::from_secs(1));
    std::thread::sleep(Duration::from_millis(200));
    let mut figures: Figures = [(Metric::Sent, sent as f64), (Metric::Received, received as f64)].into();
    if !target.pids.is_empty() {
        figures.insert(Metric::MemoryGrowth, (most - idle) as f64 / 1_048_576.0);
    }
    let dropped = target.log.as_deref().and_then(|log| dropped_in_log(log, log_start));
    if let Some(dropped) = dropped {
        figures.insert(Metric::Dropped, dropped as f64);
        figures.insert(Metric::Unaccounted, sent as f64 - received as f64 - dropped as f64);
    }
    Ok(Measured { figures, latencies: None })
}

fn log_length(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |metadata| metadata.len())
}

fn dropped_in_log(log: &Path, start: u64) -> Option<u64> {
    let bytes = std::fs::read(log).ok()?;
    let text = String::from_utf8_lossy(bytes.get(usize::try_from(start).ok()?..)?).into_owned();
    dropped(&text)
}

/// The deliveries that were dropped on the senders' links, as the router says when they end (`psdrop=` in
/// qdrouterd's format). It counts a drop on the receiver's link as well.
fn dropped(log: &str) -> Option<u64> {
    let mut incoming = Vec::new();
    let mut sum = None;
    for line in log.lines() {
        let Some(link) = link_of(line) else { continue };
        if line.contains(" Link attached: dir=in") {
            incoming.push(link);
        } else if incoming.contains(&link)
            && let Some(count) =
                line.split(" psdrop=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok())
        {
            sum = Some(sum.unwrap_or(0) + count);
        }
    }
    sum
}

/// The `[C1][L2]` of a line.
fn link_of(line: &str) -> Option<&str> {
    let start = line.find("[C")?;
    let length = line[start..].find("] ")?;
    let link = &line[start..=start + length];
    link.contains("][L").then_some(link)
}

#[cfg(test)]
mod tests {
    use super::dropped;

    #[test]
    fn drops_count_once_for_each_sender() {
        let log = "\
2026-01-01 ROUTER_CORE (info) [C2][L1] Link attached: dir=out source={a} target={b}
2026-01-01 ROUTER_CORE (info) [C1][L2] Link attached: dir=in source={a} target={b}
2026-01-01 ROUTER_CORE (info) [C1][L2] Link detached: del=100 presett=100 psdrop=30 acc=0 rej=0 rel=0 mod=0
2026-01-01 ROUTER_CORE (info) [C2][L1] Link lost: del=70 presett=70 psdrop=30 acc=0 rej=0 rel=0 mod=0
2026-01-01 ROUTER_CORE (info) [C1] Connection Closed
";
        assert_eq!(dropped(log), Some(30));
        assert_eq!(dropped("nothing of the kind\n"), None);
    }
}
