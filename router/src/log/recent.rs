//! The lines that were logged last, for management to show.

use super::format::Record;
use super::level::{Level, Module};
use crate::base::lock::Mutex;
use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Lines that are kept: with the longest text of each, 4 MiB.
const RECENT_LINES_MAX: usize = 1000;

/// A line that was logged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecentLine {
    /// What it is about.
    pub module: Module,
    /// How much it matters.
    pub level: Level,
    /// When it was logged.
    pub at: SystemTime,
    /// Where in the source it comes from, as `file!()` says.
    pub file: &'static str,
    /// The line there.
    pub line: u32,
    /// The text.
    pub text: String,
}

/// The lines that were logged last. The writer's thread alone adds to them.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<VecDeque<Record>>);

impl Recent {
    /// Keeps a line.
    pub(super) fn keep(&self, record: Record) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == RECENT_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(record);
    }

    /// The last lines, at most `limit`, the oldest first.
    pub(super) fn last(&self, limit: usize) -> Vec<RecentLine> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = lines.len().saturating_sub(limit);
        let shown = lines.iter().skip(skipped).map(|record| RecentLine {
            module: record.module,
            level: record.level,
            at: record.at,
            file: record.source.file,
            line: record.source.line,
            text: record.text.clone(),
        });
        shown.collect()
    }
}

/// How many lines were logged, by module and level.
#[derive(Debug)]
pub(super) struct Counts([[AtomicU64; Level::ALL.len()]; Module::COUNT]);

impl Counts {
    pub(super) const fn new() -> Self {
        Self([const { [const { AtomicU64::new(0) }; Level::ALL.len()] }; Module::COUNT])
    }

    /// Counts a line.
    pub(super) fn count(&self, module: Module, level: Level) {
        self.0[module.index()][level as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The lines of a module, by level, the least first.
    pub(super) fn of(&self, module: Module) -> [u64; Level::ALL.len()] {
        self.0[module.index()].each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}
