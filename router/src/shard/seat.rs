//! What a shard is given before it starts: its place among the others.

use super::activity::Activity;
use crate::base::buffer::Chunk;
use crate::base::id::ShardId;
use crate::base::limits::HAND_OFFS_MAX;
use crate::base::time::Instant;
use crate::mem::doorbell::Sleeper;
use crate::mem::ring::{Consumer, Producer, ring};
use crate::rcu::{Publisher, Reader, cell};
use crate::routing::Snapshot;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};

/// What one shard gives another.
#[derive(Debug)]
pub enum HandOff {
    /// Frames of the connection between the two, and when the turn began that pushed them.
    Frames(Chunk, Instant),
    /// A chunk that was taken, for its owner to use again.
    Returned(Chunk),
}

/// The rings between a shard and one other.
pub struct Rings {
    /// To the other shard.
    pub to: Producer<HandOff>,
    /// From the other shard.
    pub from: Consumer<HandOff>,
    /// Whether we wait for room in `to`.
    pub to_is_full: Arc<AtomicBool>,
    /// Whether the other shard waits for room in `from`.
    pub from_is_full: Arc<AtomicBool>,
}

/// What all shards see of one of them.
#[derive(Debug, Default)]
pub struct Presence {
    /// Whether it sleeps.
    pub sleeper: Sleeper,
    /// Its connections, those on their way to it included.
    pub connections: AtomicU32,
    /// What it is doing.
    pub activity: Activity,
    /// Whether the watchdog has found it stuck. It alone writes this.
    pub is_stuck: AtomicBool,
}

/// A shard's place among the others.
pub struct Seat {
    /// Which one it is.
    pub id: ShardId,
    /// What all see of each, by its number.
    pub presences: Arc<[Presence]>,
    /// The rings to each other shard; none to itself.
    pub rings: Vec<Option<Rings>>,
    /// The routing snapshot.
    pub routes: Reader<Snapshot>,
}

impl Seat {
    /// The only seat, for a shard without others.
    #[must_use]
    pub fn alone(snapshot: Snapshot) -> (Publisher<Snapshot>, Self) {
        let (publisher, mut seats) = seats(1, snapshot);
        (publisher, seats.remove(0))
    }
}

/// Seats for `count` shards, each connected with each other, and the writer's end of their snapshot.
///
/// # Panics
/// If there are more than 2^16 shards.
#[must_use]
pub fn seats(count: usize, snapshot: Snapshot) -> (Publisher<Snapshot>, Vec<Seat>) {
    let (publisher, readers) = cell(snapshot, count);
    let presences: Arc<[Presence]> = (0..count).map(|_| Presence::default()).collect();
    let mut seats: Vec<Seat> = readers
        .into_iter()
        .enumerate()
        .map(|(index, routes)| Seat {
            id: ShardId(u16::try_from(index).expect("at most 2^16 shards")),
            presences: presences.clone(),
            rings: (0..count).map(|_| None).collect(),
            routes,
        })
        .collect();
    for low in 0..count {
        for high in low + 1..count {
            let (to_high, from_low) = ring(HAND_OFFS_MAX);
            let (to_low, from_high) = ring(HAND_OFFS_MAX);
            let upward_is_full = Arc::new(AtomicBool::new(false));
            let downward_is_full = Arc::new(AtomicBool::new(false));
            seats[low].rings[high] = Some(Rings {
                to: to_high,
                from: from_high,
                to_is_full: upward_is_full.clone(),
                from_is_full: downward_is_full.clone(),
            });
            seats[high].rings[low] = Some(Rings {
                to: to_low,
                from: from_low,
                to_is_full: downward_is_full,
                from_is_full: upward_is_full,
            });
        }
    }
    (publisher, seats)
}
