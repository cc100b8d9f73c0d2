//! Publication: a receiver attaches to the 1,000th, the 100,000th and the 1,000,000th distinct address.
//!
//! One event is what the control thread does for it: note the receiver in its own snapshot, clone that,
//! publish the clone, and (a reader having begun its next turn) free the version before. Each event concerns an
//! address that wasn't there. After a round of them they are taken off again, so that the size stays.
//!
//! The tables take turns, so that whatever else the machine does concerns all of them.

use criterion::Criterion;
use ringmain::base::id::ShardId;
use ringmain::rcu::{Publisher, Reader, cell};
use ringmain::routing::{Consumer, Snapshot, Treatment};
use ringmain_bench::pin;
use ringmain_bench::samples::{Samples, clock_ns};
use std::time::{Duration, Instant};

/// Attaches between two returns to the size before.
const ROUND: u64 = 64;

struct Table {
    size: u64,
    snapshot: Snapshot,
    publisher: Publisher<Snapshot>,
    reader: Reader<Snapshot>,
    next: u64,
    samples: Samples,
}

fn key(number: u64) -> String {
    format!("Mmarket.prices.{number}")
}

fn consumer(receivers: u32) -> Consumer {
    Consumer { shard: ShardId(0), receivers, destinations: receivers }
}

impl Table {
    fn new(size: u64) -> Self {
        let mut snapshot = Snapshot::new("R", Treatment::Balanced);
        for number in 0..size - ROUND / 2 {
            snapshot.set_consumer(&key(number), consumer(1));
        }
        let (publisher, mut readers) = cell(snapshot.clone(), 1);
        let mut reader = readers.remove(0);
        reader.begin_turn();
        Self { size, snapshot, publisher, reader, next: size, samples: Samples::default() }
    }

    fn publish(&mut self) {
        self.publisher.publish(self.snapshot.clone());
        self.reader.begin_turn();
        self.publisher.reclaim();
    }

    /// Attaches to addresses around the table's size, and detaches again. Only the former is timed.
    fn round(&mut self) -> Samples {
        let mut samples = Samples::default();
        let keys: Vec<String> = (self.next..self.next + ROUND).map(key).collect();
        self.next += ROUND;
        for key in &keys {
            let start = Instant::now();
            self.snapshot.set_consumer(key, consumer(1));
            self.publish();
            samples.push(start.elapsed());
        }
        for key in &keys {
            self.snapshot.set_consumer(key, consumer(0));
        }
        self.publish();
        samples
    }
}

fn main() {
    pin::to_place(&pin::allowed(), 0);
    let mut tables: Vec<Table> = [1_000, 100_000, 1_000_000].into_iter().map(Table::new).collect();
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let mut group = criterion.benchmark_group("publication");
    for table in &mut tables {
        group.bench_function(format!("attach to address {}", table.size), |bencher| {
            bencher.iter_custom(|iterations| {
                let mut samples = Samples::default();
                for _ in 0..iterations.div_ceil(ROUND) {
                    samples.extend(&table.round());
                }
                samples.typical(iterations)
            });
        });
    }
    group.finish();
    for _ in 0..500 {
        for table in &mut tables {
            let samples = table.round();
            table.samples.extend(&samples);
        }
    }
    report(&mut tables);
}

#[allow(clippy::cast_precision_loss)]
fn report(tables: &mut [Table]) {
    println!(
        "\nAll sizes in turn, after each other 500 times (reading the clock: {} ns of each):",
        clock_ns()
    );
    println!("{}", Samples::head());
    for table in &mut *tables {
        println!("{}", table.samples.line(&format!("attach to address {}", table.size), 1));
    }
    let medians: Vec<f64> = tables.iter_mut().map(|table| table.samples.median_ns() as f64).collect();
    if let [first, .., last] = medians[..] {
        println!(
            "ratio of the last size to the first: {:.2} (of this part; of a whole attach: --bench attach)",
            last / first
        );
    }
}
