//! The clock of the machine.

use crate::base::time::Instant;

/// CLOCK_MONOTONIC: the same zero for all shards, so that their times compare.
pub(super) fn monotonic() -> Instant {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    Instant(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
