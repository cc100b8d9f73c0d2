//! What the user sees while a run takes its time, on standard error.

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

use crate::metric::{Figures, Metric, short};

/// The figures that a line shows, at most three of them.
const SHOWN: [Metric; 8] = [
    Metric::Throughput,
    Metric::P50,
    Metric::P99,
    Metric::CpuPerMessage,
    Metric::BytesPerConnection,
    Metric::MemoryGrowth,
    Metric::Unaccounted,
    Metric::Start,
];

/// One line for each measurement, and how long it will go on.
pub struct Progress {
    steps: usize,
    done: usize,
    started: Instant,
    is_terminal: bool,
    current: String,
}

impl Progress {
    /// Of `steps` measurements, skipped ones included.
    pub fn new(steps: usize) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { steps, done: 0, started: Instant::now(), is_terminal, current: String::new() }
    }

    /// A measurement begins.
    pub fn begin(&mut self, scenario: &str, target: &str, round: usize, rounds: usize) {
        let round = if target == "itself" { "-".to_owned() } else { format!("{}/{rounds}", round + 1) };
        self.current = format!("{:>3} %  {round:>4}  {scenario:<14} {target:<16}", self.percent());
        if self.is_terminal {
            write(&format!("\r\x1b[K{}{}", self.current, self.remaining()));
        }
    }

    /// It has given figures.
    pub fn end(&mut self, figures: &Figures) {
        let shown: Vec<String> = SHOWN
            .iter()
            .filter_map(|metric| Some(format!("{} {}", short(*figures.get(metric)?), metric.title())))
            .take(4)
            .collect();
        self.finish(&shown.join("  "));
    }

    /// It has failed.
    pub fn fail(&mut self, why: &str) {
        self.finish(&format!("failed: {}", why.lines().next().unwrap_or_default()));
    }

    /// A measurement that isn't made.
    pub fn skip(&mut self) {
        self.done += 1;
    }

    /// Something else that is worth a line.
    pub fn say(&mut self, text: &str) {
        let erase = if self.is_terminal { "\r\x1b[K" } else { "" };
        write(&format!("{erase}{text}\n"));
    }

    fn finish(&mut self, text: &str) {
        self.done += 1;
        let line = format!("{} {text}", self.current);
        self.say(&line);
    }

    fn percent(&self) -> usize {
        self.done * 100 / self.steps.max(1)
    }

    fn remaining(&self) -> String {
        if self.done == 0 {
            return String::new();
        }
        let elapsed = self.started.elapsed().as_secs_f64();
        let left = elapsed / self.done as f64 * self.steps.saturating_sub(self.done) as f64;
        format!("  about {} s left", left.round())
    }
}

fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    // Nobody may be reading; the run goes on all the same.
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
