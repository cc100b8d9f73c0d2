//! Counting numbers by their size.
//!
//! # Cost
//! Recording is a few shifts and two additions. The memory is fixed: [`BUCKETS`] numbers of 8 bytes.

use core::time::Duration;

/// Buckets of a histogram, the one for what is beyond all bounds included.
pub const BUCKETS: usize = 55;

/// How often numbers of each size came: two buckets for each power of two, up to 2^27.
///
/// ```text
/// upper bounds: 1 2 3 4 6 8 12 16 24 32 48 … 2^27, and one more bucket without
/// ```
///
/// So a quantile read off it is too large by a third at the most.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    sum: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], sum: 0 }
    }
}

impl Histogram {
    /// Counts a number, as if it had come so many `times`.
    #[inline]
    pub fn record(&mut self, number: u64, times: u64) {
        self.counts[place(number)] += times;
        self.sum += number * times;
    }

    /// Counts a time by its microseconds, begun ones included. The sum counts nanoseconds.
    #[inline]
    pub fn record_time(&mut self, time: Duration, times: u64) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts[place(nanoseconds.div_ceil(1000))] += times;
        self.sum = self.sum.saturating_add(nanoseconds.saturating_mul(times));
    }

    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How much came altogether: the sum of the numbers, or of the times in nanoseconds.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// How many came altogether.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The bound that a share of `of` 1000 doesn't exceed; 0 if nothing was counted. What is beyond all bounds counts as
    /// the last of them.
    #[must_use]
    pub fn quantile(&self, of: u64) -> u64 {
        quantile(self.buckets(), of)
    }

    /// The upper bound of each bucket (inclusive; `None`: without) and how many are in that bucket.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> + Clone + '_ {
        self.counts.iter().enumerate().map(|(place, count)| (bound(place), *count))
    }
}

/// As [`Histogram::quantile`], of any buckets in the order of their bounds.
pub fn quantile(buckets: impl Iterator<Item = (Option<u64>, u64)> + Clone, of: u64) -> u64 {
    let count: u64 = buckets.clone().map(|(_, count)| count).sum();
    // At least so many are to be below it.
    let wanted = u128::from(count) * u128::from(of.min(1000));
    let (mut below, mut last) = (0_u128, 0);
    for (bound, count) in buckets {
        below += u128::from(count) * 1000;
        last = bound.unwrap_or(last);
        if below >= wanted && below > 0 {
            return last;
        }
    }
    0
}

/// The bucket of a number: the one with the smallest bound that isn't less.
#[inline]
fn place(number: u64) -> usize {
    let below = number.saturating_sub(1);
    let Some(bits) = below.checked_ilog2() else { return 0 };
    if bits == 0 {
        return 1;
    }
    // Behind the highest bit of what is below, the next one says in which half it is.
    let half = (below >> (bits - 1)) & 1;
    (2 * bits as usize + usize::from(half == 1)).min(BUCKETS - 1)
}

/// The upper bound of a bucket.
fn bound(place: usize) -> Option<u64> {
    match place {
        _ if place >= BUCKETS - 1 => None,
        0 | 1 => Some(place as u64 + 1),
        _ if place.is_multiple_of(2) => Some(3 << (place / 2 - 1)),
        _ => Some(2 << (place / 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_go_up_by_a_half_or_a_third() {
        let bounds: Vec<_> = (0..BUCKETS).map_while(bound).collect();
        assert_eq!(bounds[..11], [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]);
        assert_eq!(bounds.last(), Some(&(1 << 27)));
        assert_eq!(bounds.len(), BUCKETS - 1);
    }

    #[test]
    fn a_number_is_in_the_first_bucket_whose_bound_is_not_less() {
        let numbers =
            (0..5000).chain((10..40).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]));
        for number in numbers.chain([u64::MAX]) {
            let wanted = (0..BUCKETS - 1).find(|place| bound(*place).is_some_and(|bound| bound >= number));
            assert_eq!(place(number), wanted.unwrap_or(BUCKETS - 1), "{number}");
        }
    }

    #[test]
    fn quantiles_are_bounds_that_so_many_do_not_exceed() {
        assert_eq!(Histogram::default().quantile(500), 0);
        let mut histogram = Histogram::default();
        histogram.record(10, 900);
        histogram.record(100, 99);
        histogram.record(u64::MAX >> 20, 1);
        assert_eq!([500, 900, 901, 990, 999].map(|of| histogram.quantile(of)), [12, 12, 128, 128, 128]);
        assert_eq!(histogram.quantile(1000), 1 << 27);
    }

    #[test]
    fn times_count_by_begun_microseconds() {
        let mut histogram = Histogram::default();
        histogram.record_time(Duration::from_nanos(1), 2);
        histogram.record_time(Duration::from_nanos(1001), 1);
        histogram.record_time(Duration::from_secs(10_000), 1);
        let filled: Vec<_> = histogram.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(Some(1), 2), (Some(2), 1), (None, 1)]);
        assert_eq!((histogram.count(), histogram.sum()), (4, 2 + 1001 + 10_000_000_000_000));
        let mut twice = histogram.clone();
        twice.add(&histogram);
        assert_eq!((twice.count(), twice.sum()), (8, 2 * histogram.sum()));
    }
}
