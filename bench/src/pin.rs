//! Threads that stay on one CPU.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this thread may run on.
///
/// # Panics
/// If the system doesn't say.
#[must_use]
pub fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).expect("the affinity of this thread");
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Keeps this thread on the CPU in place `place` of those that it may run on, counted round and round.
///
/// # Panics
/// If the system refuses.
pub fn to_place(allowed: &[usize], place: usize) {
    let mut set = CpuSet::new();
    set.set(allowed[place % allowed.len()]);
    sched_setaffinity(None, &set).expect("a CPU that this thread may run on");
}
