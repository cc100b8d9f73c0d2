//! How many system calls a target makes, counted by the kernel's tracepoint through `perf`.
//!
//! `/proc` doesn't count system calls (`/proc/PID/io` counts only read and write, and no socket's), and tracing
//! each of them would measure the tracer. A tracepoint counter costs the target little, yet something: so it
//! runs in a stretch of its own, after the measurement, under the same load. It counts calls, not work: one
//! `io_uring_enter` that does a hundred things is one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// A count under way.
pub struct Counting {
    child: Child,
    output: PathBuf,
}

/// How long an interval is: the last one, which is cut short, is left out.
const INTERVAL_MS: &str = "50";

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// All system calls of processes.
    SystemCalls,
    /// Futex calls of threads: locks that another thread holds, and wake-ups.
    FutexCalls,
}

impl Event {
    /// The tracepoint that they pass.
    const fn tracepoint(self) -> &'static str {
        match self {
            Self::SystemCalls => "raw_syscalls:sys_enter",
            Self::FutexCalls => "syscalls:sys_enter_futex",
        }
    }
}

/// Whether system calls can be counted here; why not, if not.
///
/// # Errors
/// `perf` isn't there, or we may not use the tracepoint.
pub fn check() -> Result<()> {
    const EVENT: &str = Event::SystemCalls.tracepoint();
    let output = Command::new("perf").args(["stat", "-x,", "-e", EVENT, "true"]).output();
    let output = output.context("system calls aren't counted: there is no 'perf' (Debian: linux-perf)")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if text
        .lines()
        .any(|line| line.contains(EVENT) && line.as_bytes().first().is_some_and(u8::is_ascii_digit))
    {
        return Ok(());
    }
    bail!("system calls aren't counted: 'perf' may not use the tracepoint {EVENT} (root can)")
}

impl Counting {
    /// Begins to count the calls of processes or threads, in intervals.
    ///
    /// # Errors
    /// `perf` doesn't start.
    pub fn start(event: Event, pids: &[u32], folder: &Path) -> Result<Self> {
        let output = folder.join("syscalls.csv");
        let list: Vec<String> = pids.iter().map(ToString::to_string).collect();
        let option = match event {
            Event::SystemCalls => "-p",
            Event::FutexCalls => "-t",
        };
        let child = Command::new("perf")
            .args(["stat", "-x,", "-I", INTERVAL_MS, "-e", event.tracepoint(), option, &list.join(","), "-o"])
            .arg(&output)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("can't start perf")?;
        Ok(Self { child, output })
    }

    /// Ends, and gives the calls per second.
    ///
    /// # Errors
    /// There is no complete interval.
    pub fn finish(mut self) -> Result<f64> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("no process id")?;
        kill_process(pid, Signal::INT)?;
        self.child.wait()?;
        let text = std::fs::read_to_string(&self.output)?;
        rate(&text).context("perf counted nothing")
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // Ended already, unless something failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls per second over the intervals of `perf stat -I -x,`, without the last, which is cut short.
fn rate(text: &str) -> Option<f64> {
    let mut counts: Vec<(f64, f64)> = Vec::new();
    for line in text.lines().filter(|line| line.contains("sys_enter")) {
        let mut fields = line.split(',');
        let at: f64 = fields.next()?.trim().parse().ok()?;
        let Ok(count) = fields.next()?.trim().parse::<f64>() else { continue };
        counts.push((at, count));
    }
    if counts.len() > 1 {
        counts.pop();
    }
    let (end, _) = *counts.last()?;
    (end > 0.0).then(|| counts.iter().map(|(_, count)| count).sum::<f64>() / end)
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn complete_intervals_count() {
        let text = "# started on Mon\n\n\
                    0.100,4000,,raw_syscalls:sys_enter,1,100.00,,\n\
                    0.200,6000,,raw_syscalls:sys_enter,1,100.00,,\n\
                    0.230,100,,raw_syscalls:sys_enter,1,100.00,,\n";
        assert_eq!(rate(text), Some(50_000.0));
        assert_eq!(rate("0.1,<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n"), None);
        assert_eq!(rate(""), None);
    }
}
