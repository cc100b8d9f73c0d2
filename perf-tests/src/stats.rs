//! Medians, spreads, and percentiles.

use hdrhistogram::Histogram;

/// The middle of several runs, and how far they lie apart.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The median; of an even number of runs the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// How many runs.
    pub runs: usize,
}

impl Spread {
    /// Of some runs; `None` if there are none. What isn't a number doesn't count.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, min, max, runs: values.len() })
    }

    /// The range as a share of the median, half of it to each side: 0.05 stands for ±5 %.
    pub fn relative(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.max - self.min) / 2.0 / self.median.abs() }
    }

    /// Whether the ranges of two have something in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}

/// The percentiles that reports show, with their names.
pub const PERCENTILES: [(f64, &str); 5] =
    [(50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9"), (99.99, "p99.99")];

/// A percentile of nanoseconds, in microseconds.
pub fn micros_at(histogram: &Histogram<u64>, percentile: f64) -> f64 {
    histogram.value_at_percentile(percentile) as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::{Spread, micros_at};
    use crate::generator::latency_histogram;

    #[test]
    fn medians_of_odd_and_even_numbers_of_runs() {
        let odd = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.median, odd.min, odd.max, odd.runs), (2.0, 1.0, 3.0, 3));
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of([7.0]).unwrap().median, 7.0);
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN, 5.0]).unwrap().median, 5.0);
    }

    #[test]
    fn a_spread_is_relative_to_the_median() {
        assert_eq!(Spread::of([95.0, 100.0, 105.0]).unwrap().relative(), 0.05);
        assert_eq!(Spread::of([0.0]).unwrap().relative(), 0.0);
        let (low, high) = (Spread::of([1.0, 2.0]).unwrap(), Spread::of([3.0, 4.0]).unwrap());
        assert!(!low.overlaps(&high) && !high.overlaps(&low));
        assert!(low.overlaps(&Spread::of([2.0, 9.0]).unwrap()));
    }

    #[test]
    fn percentiles_are_exact_to_three_digits() {
        let mut histogram = latency_histogram();
        for micros in 1..=10_000_u64 {
            histogram.record(micros * 1000).unwrap();
        }
        for (percentile, expected) in [(50.0, 5000.0), (99.0, 9900.0), (99.99, 9999.0), (100.0, 10_000.0)] {
            let found = micros_at(&histogram, percentile);
            assert!((found - expected).abs() <= expected / 1000.0, "{percentile}: {found}");
        }
    }
}
