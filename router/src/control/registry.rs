//! The one writer of the routing snapshot.
//!
//! Shards report how many receivers addresses have there; what has come is put into one new snapshot, which
//! is published, and the shards are told which addresses it concerns. A storm of attaches is so many fewer
//! snapshots.

use crate::base::id::ShardId;
use crate::io::uring::UringDriver;
use crate::rcu::Publisher;
use crate::routing::policy::Policy;
use crate::routing::{AddressSettings, Consumer, Snapshot};
use crate::shard::mailbox::{self, Mailbox, Message, Report};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::sync::oneshot;

/// Reports put into one snapshot at the most.
const REPORTS_PER_SNAPSHOT_MAX: usize = 256;

/// How soon a full mailbox is tried again, and old snapshots that a shard may still look at.
const RETRY: Duration = Duration::from_millis(1);

/// A change of the configuration that shards see in the snapshot.
#[derive(Debug)]
pub(super) struct Reconfigure {
    /// What changes.
    pub(super) change: Change,
    /// Is told when the shards can see it.
    pub(super) done: oneshot::Sender<()>,
}

/// What changes of the configuration.
#[derive(Debug)]
pub(super) enum Change {
    /// Some addresses. It holds for those that come into use after it.
    Addresses {
        /// The pattern that says which.
        pattern: String,
        /// What applies to them from now on; `None`: nothing of its own any more.
        settings: Option<AddressSettings>,
    },
    /// Who may connect, and what they may do. It holds for connections that are opened after it.
    Policy(Arc<Policy>),
}

/// What a shard hasn't been told yet.
#[derive(Default)]
struct Untold {
    keys: Vec<Arc<str>>,
    published: Option<u64>,
}

/// The writer of the snapshot.
pub(super) struct Registry {
    snapshot: Snapshot,
    publisher: Publisher<Snapshot>,
    reports: Receiver<Report>,
    reconfigurations: UnboundedReceiver<Reconfigure>,
    mailboxes: Vec<Mailbox<UringDriver>>,
    untold: Vec<Untold>,
}

impl Registry {
    pub(super) fn new(
        snapshot: Snapshot,
        publisher: Publisher<Snapshot>,
        reports: Receiver<Report>,
        reconfigurations: UnboundedReceiver<Reconfigure>,
        mailboxes: Vec<Mailbox<UringDriver>>,
    ) -> Self {
        let untold = mailboxes.iter().map(|_| Untold::default()).collect();
        Self { snapshot, publisher, reports, reconfigurations, mailboxes, untold }
    }

    /// Takes reports for ever.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            let settled = self.tell() && self.publisher.reclaim() == 0;
            tokio::select! {
                came = self.reports.recv_many(&mut batch, REPORTS_PER_SNAPSHOT_MAX) => {
                    if came == 0 {
                        // Every shard is gone.
                        return;
                    }
                    self.publish(&mut batch);
                }
                Some(change) = self.reconfigurations.recv() => self.reconfigure(change),
                () = tokio::time::sleep(RETRY), if !settled => {}
            }
        }
    }

    fn reconfigure(&mut self, change: Reconfigure) {
        let Reconfigure { change, done } = change;
        match change {
            Change::Addresses { pattern, settings: Some(settings) } => {
                self.snapshot.configure(&pattern, settings);
            }
            Change::Addresses { pattern, settings: None } => {
                self.snapshot.unconfigure(&pattern);
            }
            Change::Policy(policy) => self.snapshot.policy = policy,
        }
        self.publisher.publish(self.snapshot.clone());
        // Whoever asked may have stopped waiting.
        let _gone = done.send(());
    }

    fn publish(&mut self, batch: &mut Vec<Report>) {
        let mut keys: Vec<Arc<str>> = Vec::new();
        for report in batch.drain(..) {
            for mailbox::Change { key, receivers, destinations } in report.changes {
                self.snapshot.set_consumer(&key, Consumer { shard: report.shard, receivers, destinations });
                keys.push(key.into());
            }
            if let Some(untold) = self.untold.get_mut(usize::from(report.shard.0)) {
                untold.published = Some(report.sequence);
            }
        }
        self.publisher.publish(self.snapshot.clone());
        for untold in &mut self.untold {
            untold.keys.extend(keys.iter().cloned());
        }
    }

    /// Tells the shards what is new. Tells whether all could be told.
    fn tell(&mut self) -> bool {
        let mut all = true;
        for (untold, mailbox) in self.untold.iter_mut().zip(&self.mailboxes) {
            if !untold.keys.is_empty() {
                let keys: Arc<[Arc<str>]> = untold.keys.as_slice().into();
                if mailbox.send(Message::Changed(keys)).is_err() {
                    all = false;
                    continue;
                }
                untold.keys.clear();
            }
            if let Some(sequence) = untold.published
                && mailbox.send(Message::Published(sequence)).is_err()
            {
                all = false;
                continue;
            }
            untold.published = None;
        }
        all
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("shards", &self.untold.len()).finish_non_exhaustive()
    }
}

/// Where a shard's thread is in the list of all.
pub(super) fn shard_name(shard: ShardId) -> String {
    format!("shard-{}", shard.0)
}
