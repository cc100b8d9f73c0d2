//! What a process costs, from `/proc`: CPU time, memory, context switches, over all threads of it and of the
//! processes that it started.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// What a tree of processes has used so far.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Usage {
    /// Nanoseconds on a CPU, by thread.
    threads: BTreeMap<(u32, u32), u64>,
    /// Nanoseconds on a CPU of whole processes, ended threads included; to 10 ms.
    processes: BTreeMap<u32, u64>,
    /// Context switches of its own accord and forced ones.
    switches: u64,
}

impl Usage {
    /// Reads what the processes have used.
    ///
    /// # Errors
    /// One of them doesn't exist any more.
    pub fn read(pids: &[u32]) -> Result<Self> {
        let mut usage = Self::default();
        for &pid in pids {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"))
                .with_context(|| format!("process {pid} of the target has ended"))?;
            usage.processes.insert(pid, parse_stat(&stat).context("unknown format of /proc/PID/stat")?);
            for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
                // A thread may end while we look.
                let Ok(entry) = entry else { continue };
                let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                    continue;
                };
                let path = entry.path();
                let Ok(nanos) = read_schedstat(&path) else { continue };
                usage.threads.insert((pid, thread), nanos);
                usage.switches += read_switches(&path).unwrap_or(0);
            }
        }
        Ok(usage)
    }

    /// Nanoseconds on a CPU since `earlier`.
    ///
    /// To the nanosecond, from the scheduler's account of each thread. If a thread has ended since, its
    /// account is gone with it, so that the process's takes its place.
    pub fn cpu_nanos_since(&self, earlier: &Self) -> u64 {
        let is_complete = earlier.threads.keys().all(|thread| self.threads.contains_key(thread));
        if is_complete {
            let used = |(thread, nanos): (&(u32, u32), &u64)| {
                nanos.saturating_sub(earlier.threads.get(thread).copied().unwrap_or(0))
            };
            self.threads.iter().map(used).sum()
        } else {
            let used = |(pid, nanos): (&u32, &u64)| {
                nanos.saturating_sub(earlier.processes.get(pid).copied().unwrap_or(0))
            };
            self.processes.iter().map(used).sum()
        }
    }

    /// Context switches since `earlier`.
    pub fn switches_since(&self, earlier: &Self) -> u64 {
        self.switches.saturating_sub(earlier.switches)
    }
}

/// Resident memory of the processes, in bytes.
pub fn resident_bytes(pids: &[u32]) -> u64 {
    let resident = |pid: &u32| {
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        statm.split(' ').nth(1)?.parse::<u64>().ok()
    };
    pids.iter().filter_map(resident).sum::<u64>() * rustix::param::page_size() as u64
}

/// A process and all that it started, directly or not.
pub fn tree(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some(parent) = after_name(&stat).and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok()) {
            parents.push((pid, parent));
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found
}

/// The process that listens on a TCP port of this machine.
///
/// # Errors
/// Nobody does, or it is somebody else's process.
pub fn listener_on(port: u16) -> Result<u32> {
    let mut inodes = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        inodes.extend(text.lines().filter_map(|line| listening_inode(line, port)).map(str::to_owned));
    }
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        for file in fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten() {
            let Ok(link) = fs::read_link(file.path()) else { continue };
            if inodes.iter().any(|inode| link.as_os_str() == format!("socket:[{inode}]").as_str()) {
                return Ok(pid);
            }
        }
    }
    bail!("no process that we may look into listens on port {port}")
}

/// The inode of a listening socket on `port`, if the line of `/proc/net/tcp` shows one.
fn listening_inode(line: &str, port: u16) -> Option<&str> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(local_port, 16) == Ok(port) && fields.get(3) == Some(&LISTEN);
    if is_it { fields.get(9).copied() } else { None }
}

/// What follows the name in `/proc/PID/stat`: the name stands in parentheses and may hold anything.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(") ").map(|(_, rest)| rest)
}

/// CPU time in nanoseconds from `/proc/PID/stat` (proc(5): fields 14 and 15, in ticks).
fn parse_stat(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = after_name(stat)?.split(' ').collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

fn read_schedstat(task: &Path) -> Result<u64> {
    let text = fs::read_to_string(task.join("schedstat"))?;
    text.split(' ').next().and_then(|nanos| nanos.parse().ok()).context("unknown format of schedstat")
}

fn read_switches(task: &Path) -> Option<u64> {
    parse_switches(&fs::read_to_string(task.join("status")).ok()?)
}

fn parse_switches(status: &str) -> Option<u64> {
    let field = |name: &str| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix(name))?.trim_start_matches(':').trim().parse().ok()
    };
    Some(field("voluntary_ctxt_switches")? + field("nonvoluntary_ctxt_switches")?)
}

#[cfg(test)]
mod tests {
    use super::{Usage, listening_inode, parse_stat, parse_switches, resident_bytes, tree};

    #[test]
    fn a_name_with_parentheses_is_no_trouble() {
        let stat = "42 (a b) c) S 1 42 42 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 3 0 12345 1000000 200";
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        assert_eq!(parse_stat(stat), Some(200 * tick));
        assert_eq!(parse_stat("42"), None);
    }

    #[test]
    fn both_kinds_of_switches_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(parse_switches(status), Some(157));
    }

    #[test]
    fn a_listener_is_found_by_its_port() {
        let line = "   0: 0100007F:1628 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 34567 1";
        assert_eq!(listening_inode(line, 0x1628), Some("34567"));
        assert_eq!(listening_inode(line, 80), None);
        assert_eq!(listening_inode(&line.replace(" 0A ", " 01 "), 0x1628), None);
    }

    #[test]
    fn a_thread_that_ended_is_not_forgotten() {
        let usage = |threads: &[(u32, u64)], process| Usage {
            threads: threads.iter().map(|(thread, nanos)| ((1, *thread), *nanos)).collect(),
            processes: [(1, process)].into(),
            switches: 0,
        };
        let before = usage(&[(1, 100), (2, 50)], 0);
        assert_eq!(usage(&[(1, 130), (2, 60), (3, 5)], 1000).cpu_nanos_since(&before), 45);
        assert_eq!(usage(&[(1, 130)], 1000).cpu_nanos_since(&before), 1000);
    }

    #[test]
    fn this_process_has_used_something() {
        let pids = tree(std::process::id());
        assert_eq!(pids.first(), Some(&std::process::id()));
        let before = Usage::read(&pids[..1]).unwrap();
        let mut sum = 0_u64;
        while Usage::read(&pids[..1]).unwrap().cpu_nanos_since(&before) < 1_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(resident_bytes(&pids[..1]) > 100_000);
    }
}
