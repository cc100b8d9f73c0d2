//! Where a run took place.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// What is worth knowing of a machine when its figures are read elsewhere.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: String,
    /// The kernel.
    pub kernel: String,
    /// Whether it is a virtual machine, as far as the processor says.
    pub is_virtual: bool,
    /// The load average of the last minute, before the run.
    pub load: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let info = text("/proc/cpuinfo");
        let field = |name: &str| {
            let line = info.lines().find(|line| line.starts_with(name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        Self {
            cpu: field("model name").unwrap_or_else(|| "unknown".to_owned()),
            cpus: crate::pin::allowed().map(|cpus| cpus.to_string()).unwrap_or_default(),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            is_virtual: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            load: text("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

/// The time, in UTC, as `2026-01-31 23:59:59`.
pub fn now_utc() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    utc(seconds)
}

/// Seconds since 1970, by the Gregorian calendar.
fn utc(seconds: u64) -> String {
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::{Machine, utc};

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(utc(1_704_067_199), "2023-12-31 23:59:59");
        assert_eq!(utc(1_735_689_599), "2024-12-31 23:59:59");
    }

    #[test]
    fn this_machine_has_a_kernel() {
        assert!(!Machine::here().kernel.is_empty());
    }
}
