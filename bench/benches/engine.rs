//! The engine's part of a delivery, over two connections in memory: forwarding it, and settling it.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ringmain_bench::pair::Pair;
use std::time::{Duration, Instant};

/// Deliveries between two flushes: what a busy turn finds on one connection.
const BATCH: u32 = 64;

fn deliveries(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine");
    group.throughput(Throughput::Elements(1));
    group.bench_function("forward one delivery", |bencher| {
        bencher.iter_custom(|iterations| {
            run(iterations, false, |pair, transfers, dispositions| {
                let start = Instant::now();
                pair.forward(transfers);
                let time = start.elapsed();
                pair.settle(dispositions);
                time
            })
        });
    });
    for (name, ranged) in [("settle one delivery", false), ("settle one delivery of a range", true)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                run(iterations, ranged, |pair, transfers, dispositions| {
                    pair.forward(transfers);
                    let start = Instant::now();
                    pair.settle(dispositions);
                    start.elapsed()
                })
            });
        });
    }
    group.finish();
}

/// Runs `batch` for at least `iterations` deliveries, and says how long so many of them took.
fn run(iterations: u64, ranged: bool, batch: impl Fn(&mut Pair, &[u8], &[u8]) -> Duration) -> Duration {
    let mut pair = Pair::new();
    let batches = iterations.div_ceil(u64::from(BATCH));
    let mut time = Duration::ZERO;
    for _ in 0..batches {
        let (transfers, dispositions) = (pair.transfers(BATCH), pair.dispositions(BATCH, ranged));
        time += batch(&mut pair, &transfers, &dispositions);
        pair.discard_output();
    }
    #[allow(clippy::cast_precision_loss)]
    time.mul_f64(iterations as f64 / (batches * u64::from(BATCH)) as f64)
}

criterion_group!(benches, deliveries);
criterion_main!(benches);
