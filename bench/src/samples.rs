//! Measured times, and what is said of them.
//!
//! A mean over a machine that others use says how busy they were. So each event is timed by itself, and the
//! median counts; the ends of the distribution are shown beside it.

use std::time::{Duration, Instant};

/// Times of single events.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<u64>);

impl Samples {
    /// Adds the time of one event.
    pub fn push(&mut self, time: Duration) {
        self.0.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds those of `other`.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The time, in nanoseconds, that `part` of the events (0.0 to 1.0) didn't exceed; 0 without any.
    #[must_use]
    pub fn quantile_ns(&mut self, part: f64) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        let last = self.0.len() - 1;
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
        let place = (last as f64 * part.clamp(0.0, 1.0)).round() as usize;
        *self.0.select_nth_unstable(place).1
    }

    /// The median in nanoseconds.
    #[must_use]
    pub fn median_ns(&mut self) -> u64 {
        self.quantile_ns(0.5)
    }

    /// What to tell Criterion that `iterations` took: each as long as the median one, so that a
    /// pre-empted one doesn't count for a thousand others.
    #[must_use]
    pub fn typical(&mut self, iterations: u64) -> Duration {
        Duration::from_nanos(self.median_ns().saturating_mul(iterations))
    }

    /// One line of a table: number of events, and quantiles in nanoseconds, each divided by `parts`.
    #[must_use]
    pub fn line(&mut self, name: &str, parts: u64) -> String {
        let [low, half, high, tail] = [0.1, 0.5, 0.9, 0.99].map(|part| self.quantile_ns(part) / parts);
        format!("{name:<34} {:>9} {low:>9} {half:>9} {high:>9} {tail:>9}", self.len())
    }

    /// The head of a table of such lines.
    #[must_use]
    pub fn head() -> String {
        format!("{:<34} {:>9} {:>9} {:>9} {:>9} {:>9}", "ns", "events", "p10", "p50", "p90", "p99")
    }
}

/// What reading the clock costs, in nanoseconds: contained in each sample once.
#[must_use]
pub fn clock_ns() -> u64 {
    let mut samples = Samples::default();
    let mut before = Instant::now();
    for _ in 0..10_000 {
        let now = Instant::now();
        samples.push(now - before);
        before = now;
    }
    samples.median_ns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let mut samples = Samples::default();
        assert_eq!(samples.median_ns(), 0);
        for time in [5, 1, 4, 2, 3] {
            samples.push(Duration::from_nanos(time));
        }
        assert_eq!([0.0, 0.5, 1.0].map(|part| samples.quantile_ns(part)), [1, 3, 5]);
        assert_eq!(samples.typical(7), Duration::from_nanos(21));
    }
}
