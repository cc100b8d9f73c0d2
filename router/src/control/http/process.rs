//! What the system knows of this process (proc(5)), by the names that Prometheus's clients have for it.

use nix::unistd::{SysconfVar, sysconf};
use std::fs;

/// What is known of the process. What can't be read is zero.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Process {
    /// Memory in use, in bytes.
    pub(super) resident_bytes: u64,
    /// Descriptors that are open.
    pub(super) descriptors: u64,
    /// The most that may be.
    pub(super) descriptors_max: u64,
    /// Time on CPUs, in seconds.
    pub(super) cpu_seconds: f64,
    /// When it was started, in seconds since 1970.
    pub(super) started: f64,
}

/// Reads it.
pub(super) fn read() -> Process {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten().filter(|ticks| *ticks > 0).unwrap_or(100);
    let whole = fs::read_to_string("/proc/stat").unwrap_or_default();
    let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let times = times(&stat);
    #[allow(clippy::cast_precision_loss, reason = "ticks since the start of the machine fit 52 bits")]
    let seconds = |ticks_there: u64| ticks_there as f64 / ticks as f64;
    Process {
        resident_bytes: resident_bytes(&status).unwrap_or_default(),
        descriptors: descriptors as u64,
        descriptors_max: limit.current.unwrap_or(u64::MAX),
        cpu_seconds: times.map_or(0.0, |(used, _)| seconds(used)),
        started: times.zip(boot_time(&whole)).map_or(0.0, |((_, started), boot)| boot + seconds(started)),
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Ticks on CPUs, and from the start of the machine to that of the process: fields 14, 15 and 22 of the line.
fn times(stat: &str) -> Option<(u64, u64)> {
    // The name of the program, field 2, may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let field = |number: usize| rest.split(' ').nth(number - 3)?.trim().parse::<u64>().ok();
    Some((field(14)? + field(15)?, field(22)?))
}

/// When the machine was started, in seconds since 1970.
fn boot_time(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_process_is_read_whatever_it_is_called() {
        let line =
            "1493 (a) b) R 1444 1444 19002 0 -1 4194304 121 0 0 0 70 8 0 0 20 0 1 0 1756002 3133440 390";
        assert_eq!(times(line), Some((78, 1_756_002)));
        assert_eq!(times("nonsense"), None);
        assert_eq!(resident_bytes("VmPeak:\t 1 kB\nVmRSS:\t  12 kB\n"), Some(12 * 1024));
        assert_eq!(boot_time("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000.0));
    }

    #[test]
    fn this_process_has_memory_and_descriptors() {
        let process = read();
        assert!(process.resident_bytes > 0 && process.descriptors > 0 && process.started > 0.0);
    }
}
