//! The shards, as those tasks of the control thread know them that tell them something now and then.

use crate::base::id::ShardId;
use crate::io::uring::UringDriver;
use crate::shard::mailbox::{Mailbox, Message};
use crate::shard::seat::Presence;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a full mailbox is tried again, and how soon. One that is full is emptied within a turn.
const MAILBOX_TRIES: u32 = 500;
const MAILBOX_PAUSE: Duration = Duration::from_millis(1);

/// The mailboxes of the shards, and what all see of each.
#[derive(Clone)]
pub(super) struct ShardsHandle {
    mailboxes: Arc<[Mailbox<UringDriver>]>,
    presences: Arc<[Presence]>,
}

impl ShardsHandle {
    pub(super) fn new(mailboxes: &[Mailbox<UringDriver>], presences: Arc<[Presence]>) -> Self {
        Self { mailboxes: mailboxes.into(), presences }
    }

    /// The mailbox of each shard, by its number.
    pub(super) fn mailboxes(&self) -> &[Mailbox<UringDriver>] {
        &self.mailboxes
    }

    /// What all see of each shard, by its number.
    pub(super) fn presences(&self) -> &[Presence] {
        &self.presences
    }

    /// How many shards there are.
    pub(super) fn count(&self) -> usize {
        self.mailboxes.len()
    }

    /// Puts a message into a shard's mailbox. A shard that is gone has nothing to be told.
    pub(super) fn send(&self, shard: ShardId, mut message: Message<UringDriver>) {
        let Some(mailbox) = self.mailboxes.get(usize::from(shard.0)) else { return };
        for _ in 0..MAILBOX_TRIES {
            match mailbox.send(message) {
                Ok(()) => return,
                Err(again) => message = again,
            }
            std::thread::sleep(MAILBOX_PAUSE);
        }
    }

    /// Puts a message into each shard's mailbox.
    pub(super) fn send_all(&self, message: impl Fn() -> Message<UringDriver>) {
        for (shard, _) in (0..).zip(self.mailboxes.iter()) {
            self.send(ShardId(shard), message());
        }
    }

    /// Gives a connection to the shard with the fewest, and counts it there. Returns which one it is, unless it
    /// can't take it.
    pub(super) async fn hand_over(&self, message: impl FnOnce() -> Message<UringDriver>) -> Option<ShardId> {
        let (number, presence) = (0..)
            .zip(self.presences.iter())
            .min_by_key(|(_, presence)| presence.connections.load(Ordering::Relaxed))?;
        let mailbox = self.mailboxes.get(usize::from(number))?;
        presence.connections.fetch_add(1, Ordering::Relaxed);
        let mut message = message();
        for _ in 0..MAILBOX_TRIES {
            match mailbox.send(message) {
                Ok(()) => return Some(ShardId(number)),
                Err(again) => message = again,
            }
            tokio::time::sleep(MAILBOX_PAUSE).await;
        }
        presence.connections.fetch_sub(1, Ordering::Relaxed);
        None
    }
}
