//! What a connection costs that does nothing.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{Context, Measured};
use crate::generator::Generator;
use crate::generator::topology::LoadSpec;
use crate::metric::{Figures, Metric};
use crate::process::{Usage, resident_bytes};
use crate::target::{Kind, Target};

/// How long the target has to come to rest.
const REST: Duration = Duration::from_millis(500);

/// Memory per connection, with its session, sender and receiver, and the CPU time of all of them at rest.
pub fn measure(spec: &LoadSpec, target: &Target, context: &Context<'_>) -> Result<Measured> {
    if target.pids.is_empty() {
        bail!("its process can't be looked into");
    }
    // A queue and several processes for each link: a tenth of the connections says as much.
    let count = match target.kind {
        Kind::RabbitMq | Kind::ActiveMq => spec.senders.div_ceil(10),
        Kind::Ringmain(_) | Kind::Counted | Kind::Forwarder(..) | Kind::Url(_) | Kind::Itself => spec.senders,
    };
    let spec = &LoadSpec { senders: count, receivers: count, addresses: count, ..spec.clone() };
    let before = resident_bytes(&target.pids);
    let address = |index| target.kind.address(spec, &context.run, index);
    let mut generator = Generator::connect(&target.endpoint, spec, &address)?;
    generator.drive_idle();
    generator.run_for(REST)?;
    let connections = spec.senders as f64;
    let growth = resident_bytes(&target.pids).saturating_sub(before) as f64;
    let usage = Usage::read(&target.pids)?;
    let start = generator.now();
    generator.run_for(context.times.measure)?;
    let share =
        Usage::read(&target.pids)?.cpu_nanos_since(&usage) as f64 / (generator.now() - start) as f64 * 100.0;
    generator.close(Duration::from_secs(5));
    let figures: Figures = [
        (Metric::Connections, connections),
        (Metric::BytesPerConnection, growth / connections),
        (Metric::CpuShare, share),
        (Metric::Resident, (before as f64 + growth) / 1_048_576.0),
    ]
    .into();
    Ok(Measured { figures, latencies: None })
}
