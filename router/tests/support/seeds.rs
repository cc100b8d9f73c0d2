//! Runs of a test, each from a seed.

/// Prints the seed of a run that panics.
struct Named(&'static str, u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} failed; run it again with RINGMAIN_SEED={} RINGMAIN_TRACE=1", self.0, self.1);
        }
    }
}

/// Runs `test` once for each seed below `count`, or only for the one in `RINGMAIN_SEED`. For a long search,
/// `RINGMAIN_SEEDS` is the count instead.
pub fn for_seeds(name: &'static str, count: u64, test: impl FnMut(u64)) {
    let more =
        std::env::var("RINGMAIN_SEEDS").ok().map(|count| count.parse().expect("a number in RINGMAIN_SEEDS"));
    for_each_seed_in(name, 0..more.unwrap_or(count), test);
}

/// The same for a range of seeds.
pub fn for_each_seed_in(name: &'static str, seeds: std::ops::Range<u64>, mut test: impl FnMut(u64)) {
    let only =
        std::env::var("RINGMAIN_SEED").ok().map(|seed| seed.parse().expect("a number in RINGMAIN_SEED"));
    let seeds = only.map_or(seeds, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let _named = Named(name, seed);
        test(seed);
    }
}

/// Whether the run is to be told step by step.
pub fn is_traced() -> bool {
    static TRACED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *TRACED.get_or_init(|| std::env::var_os("RINGMAIN_TRACE").is_some())
}

/// Prints a step of the run, if it is to be told.
macro_rules! trace {
    ($($part:tt)*) => {
        if $crate::seeds::is_traced() {
            eprintln!($($part)*);
        }
    };
}
pub(crate) use trace;
