//! Which CPUs the target and the generator run on.

use anyhow::{Context as _, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs, in ascending order, written as `0`, `0,2` or `2-5,8`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cpus(pub Vec<usize>);

impl std::str::FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.trim().parse::<usize>() {
            Ok(cpu) if cpu < CpuSet::MAX_CPU => Ok(cpu),
            Ok(_) | Err(_) => Err(format!("'{text}' isn't the number of a CPU")),
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                Some((first, last)) => cpus.extend(number(first)?..=number(last)?),
                None => cpus.push(number(part)?),
            }
        }
        cpus.sort_unstable();
        cpus.dedup();
        if cpus.is_empty() { Err("no CPU is named".to_owned()) } else { Ok(Self(cpus)) }
    }
}

impl std::fmt::Display for Cpus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}

/// The CPUs that this process may use.
///
/// # Errors
/// The system doesn't say.
pub fn allowed() -> Result<Cpus> {
    let set = sched_getaffinity(None).context("can't read the CPU affinity")?;
    Ok(Cpus((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()))
}

/// Binds the calling thread to `cpus`. Threads and processes that it starts later are bound as well.
///
/// # Errors
/// There are no such CPUs, or we may not use them.
pub fn pin(cpus: &Cpus) -> Result<()> {
    let mut set = CpuSet::new();
    for cpu in &cpus.0 {
        set.set(*cpu);
    }
    sched_setaffinity(None, &set).with_context(|| format!("can't run on CPU {cpus}"))
}

/// The CPUs for target and generator where the user doesn't say: the first allowed one, and the last.
///
/// # Errors
/// There is only one, so that the generator would take from the target what it measures.
pub fn default_cpus() -> Result<(Cpus, Cpus)> {
    match allowed()?.0.as_slice() {
        [target, .., generator] => Ok((Cpus(vec![*target]), Cpus(vec![*generator]))),
        _ => bail!("two CPUs are needed: one for the target, one for the generator"),
    }
}

#[cfg(test)]
mod tests {
    use super::Cpus;

    #[test]
    fn lists_and_ranges_of_cpus() {
        assert_eq!("0".parse::<Cpus>().unwrap().0, [0]);
        assert_eq!("8,2-5,3".parse::<Cpus>().unwrap().0, [2, 3, 4, 5, 8]);
        assert_eq!("2-3".parse::<Cpus>().unwrap().to_string(), "2,3");
        for wrong in ["", "a", "1-", "-1", "99999", "3-2"] {
            assert!(wrong.parse::<Cpus>().is_err(), "{wrong}");
        }
    }
}
