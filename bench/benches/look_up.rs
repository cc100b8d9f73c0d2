//! Look-ups: what a message of an anonymous sender costs before its address is known, and what the first link
//! of an address costs. With 1,000 and 1,000,000 addresses in use.
//!
//! "in use" finds an address in the shard's own table, as each message of an anonymous sender does;
//! "consumers" asks the snapshot for the shards that have receivers; "exact", "prefix" and "pattern" find
//! what the configuration says of an address, as the first use of one does. The addresses are asked for in
//! random order: a table of a million isn't in the nearest cache, and shouldn't seem to be.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ringmain::base::id::ShardId;
use ringmain::routing::{Address, AddressSettings, AddressTable, Consumer, Snapshot, Treatment};
use std::hint::black_box;

const SIZES: [usize; 2] = [1_000, 1_000_000];

/// Entries in the configuration beside the one that is found.
const CONFIGURED: usize = 100;

/// Addresses that are asked for: more than the nearest cache has lines.
const ASKED: usize = 1 << 16;

/// Adds what the addresses asked for are to find.
type Configure<'a> = &'a dyn Fn(&mut Snapshot);

fn settings(treatment: Treatment) -> AddressSettings {
    AddressSettings::of(treatment)
}

fn name(number: usize) -> String {
    format!("market.prices.{number}")
}

/// Numbers below `size` in an order that no prefetcher guesses, the same in each run.
fn order(size: usize) -> impl Iterator<Item = usize> {
    // A linear congruential generator with Knuth's multiplier.
    let mut state = 1u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        #[allow(clippy::cast_possible_truncation)]
        let number = (state >> 33) as usize % size;
        number
    })
}

fn asked(size: usize, name: impl Fn(usize) -> String) -> Vec<String> {
    order(size).take(ASKED).map(name).collect()
}

fn in_use(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("look-up");
    for size in SIZES {
        let snapshot = Snapshot::new("R", Treatment::Balanced);
        let mut table = AddressTable::default();
        for number in 0..size {
            table.find_or_insert(Address::parse(&name(number), "R"), &snapshot);
        }
        let texts = asked(size, name);
        let mut next = texts.iter().cycle();
        group.bench_function(BenchmarkId::new("in use", size), |bencher| {
            bencher.iter(|| {
                let text = next.next().expect("it goes round");
                table.find(black_box(Address::parse(text, "R"))).expect("it is in use")
            });
        });
    }
    for size in SIZES {
        let mut snapshot = Snapshot::new("R", Treatment::Balanced);
        let consumer = Consumer { shard: ShardId(1), receivers: 1, destinations: 1 };
        for number in 0..size {
            snapshot.set_consumer(&format!("M{}", name(number)), consumer);
        }
        let keys = asked(size, |number| format!("M{}", name(number)));
        let mut next = keys.iter().cycle();
        group.bench_function(BenchmarkId::new("consumers", size), |bencher| {
            bencher.iter(|| {
                let key = next.next().expect("it goes round");
                assert_eq!(snapshot.consumers(black_box(key)).len(), 1);
            });
        });
    }
    group.finish();
}

fn configured(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("look-up");
    for size in SIZES {
        let cases: [(&str, Configure<'_>); 3] = [
            ("exact", &|snapshot| {
                for number in 0..size {
                    snapshot.configure(&name(number), settings(Treatment::Closest));
                }
            }),
            ("prefix", &|snapshot| {
                snapshot.configure("market.#", settings(Treatment::Closest));
            }),
            ("pattern", &|snapshot| {
                snapshot.configure("*.prices.*", settings(Treatment::Closest));
            }),
        ];
        for (kind, configure) in cases {
            let mut snapshot = Snapshot::new("R", Treatment::Balanced);
            for number in 0..CONFIGURED {
                snapshot.configure(&format!("other.{number}.#"), settings(Treatment::Multicast));
                snapshot.configure(&format!("*.other.{number}"), settings(Treatment::Multicast));
            }
            configure(&mut snapshot);
            let texts = asked(size, name);
            let mut next = texts.iter().cycle();
            group.bench_function(BenchmarkId::new(kind, size), |bencher| {
                bencher.iter(|| {
                    let text = next.next().expect("it goes round");
                    let found = snapshot.settings(black_box(Address::parse(text, "R")));
                    assert_eq!(found.treatment, Treatment::Closest);
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, in_use, configured);
criterion_main!(benches);
