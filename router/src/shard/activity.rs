//! What a shard is doing, for the control thread to look at now and then.
//!
//! # Cost
//! A handful of plain stores a turn, to a line that somebody else reads once a second. No clock is read.

use crate::base::sync::CacheLine;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The parts of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Doing {
    /// Nothing: it waits in the kernel, or its thread isn't in a turn at all.
    #[default]
    Waiting,
    /// It deals with completions: frames that came, sends that are done, connections that come and go.
    Completions,
    /// It takes what other shards handed to it.
    HandOffs,
    /// It does what is due.
    Timers,
    /// It grants credit, and ends links to other shards.
    Credit,
    /// It gives what connections have to send to the kernel, and wakes other shards.
    Flush,
}

impl Doing {
    const ALL: [Self; 6] =
        [Self::Waiting, Self::Completions, Self::HandOffs, Self::Timers, Self::Credit, Self::Flush];

    /// The part of this number; what nobody stores means waiting.
    fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting => "waiting",
            Self::Completions => "dealing with completions",
            Self::HandOffs => "taking what other shards handed over",
            Self::Timers => "dealing with timers",
            Self::Credit => "granting credit",
            Self::Flush => "flushing connections",
        })
    }
}

/// What a shard was found to be doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// The turns that it has begun.
    pub turns: u64,
    /// The part of the turn that it is in.
    pub doing: Doing,
}

/// What a shard is doing. Only the shard writes it.
#[derive(Debug, Default)]
pub struct Activity(CacheLine<Written>);

#[derive(Debug, Default)]
struct Written {
    turns: AtomicU64,
    doing: AtomicU8,
}

impl Activity {
    /// A turn begins.
    #[inline]
    pub(super) fn begin_turn(&self) {
        let turns = &self.0.0.turns;
        // One writer: no need for an addition that is one step.
        turns.store(turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The shard turns to this.
    #[inline]
    pub(super) fn set(&self, doing: Doing) {
        self.0.0.doing.store(doing as u8, Ordering::Relaxed);
    }

    /// What it is doing now.
    #[must_use]
    pub fn sample(&self) -> Sample {
        Sample {
            turns: self.0.0.turns.load(Ordering::Relaxed),
            doing: Doing::from_number(self.0.0.doing.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_found() {
        let activity = Activity::default();
        assert_eq!(activity.sample(), Sample::default());
        for (turn, doing) in (1..).zip(Doing::ALL) {
            activity.begin_turn();
            activity.set(doing);
            assert_eq!(activity.sample(), Sample { turns: turn, doing });
        }
    }
}
