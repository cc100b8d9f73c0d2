//! The policy at run time: what `policy` and `vhost` entities count, and their changes on the way to the shards.

use super::entities::Entity;
use super::field::Field;
use crate::control::config::Config;
use crate::control::policy::policy;
use crate::control::registry::{Change, Reconfigure};
use crate::routing::policy::counts::{Counts, VhostCounts};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The type of a vhost's counts.
pub(super) const STATS_TYPE: &str = "vhostStats";

/// The types that make the policy.
const TYPES: [&str; 2] = ["policy", "vhost"];

/// Whether entities of that type make the policy.
pub(super) fn is_of_policy(type_name: &str) -> bool {
    TYPES.contains(&type_name)
}

/// The way to the routing snapshot, and what was counted.
pub(super) struct Policies {
    reconfigure: mpsc::UnboundedSender<Reconfigure>,
    counts: Arc<Counts>,
}

impl Policies {
    /// Those of a router whose shards count there.
    pub(super) fn new(reconfigure: mpsc::UnboundedSender<Reconfigure>, counts: Arc<Counts>) -> Self {
        Self { reconfigure, counts }
    }

    /// Lets the shards follow a configuration. Returns when every shard sees it.
    pub(super) async fn publish(&self, config: &Config) {
        let policy = Arc::new(policy(config, &self.counts));
        self.counts.retain(|name| config.vhosts.iter().any(|vhost| vhost.hostname == name));
        let (done, is_done) = oneshot::channel();
        // Without a registry there is no router any more.
        if self.reconfigure.send(Reconfigure { change: Change::Policy(policy), done }).is_ok() {
            let _gone = is_done.await;
        }
    }

    /// Adds what the router as a whole counts.
    pub(super) fn report(&self, entity: &mut Entity) {
        let counts = self.counts.router();
        for (name, value) in [
            ("connectionsProcessed", counts.processed),
            ("connectionsDenied", counts.denied),
            ("connectionsCurrent", counts.current),
            ("linksDenied", counts.links_denied),
            ("maxMessageSizeDenied", counts.max_message_size_denied),
            ("totalDenials", counts.total_denials),
        ] {
            entity.set(name, Field::Ulong(value));
        }
    }

    /// What each vhost counts.
    pub(super) fn stats(&self, config: &Config) -> Vec<Entity> {
        let vhosts = config.vhosts.iter();
        vhosts.filter_map(|vhost| stats(&vhost.hostname, &self.counts.vhost(&vhost.hostname))).collect()
    }
}

fn stats(hostname: &str, counts: &VhostCounts) -> Option<Entity> {
    let states = |connections: &BTreeMap<Box<str>, Vec<Box<str>>>| {
        let list = |all: &Vec<Box<str>>| {
            Field::List(all.iter().map(|connection| Field::from(connection.to_string())).collect())
        };
        let entries = connections.iter().map(|(key, all)| (Cow::Owned(key.to_string()), list(all)));
        Field::Map(entries.collect())
    };
    Some(
        Entity::new(STATS_TYPE, format!("{STATS_TYPE}/{hostname}"))?
            .with("id", Field::from(hostname.to_owned()))
            .with("hostname", Field::from(hostname.to_owned()))
            .with("connectionsApproved", Field::Ulong(counts.approved))
            .with("connectionsDenied", Field::Ulong(counts.denied))
            .with("connectionsCurrent", Field::Ulong(counts.current))
            .with("perUserState", states(&counts.users))
            .with("perHostState", states(&counts.hosts))
            .with("sessionDenied", Field::Ulong(counts.session_denied))
            .with("senderDenied", Field::Ulong(counts.sender_denied))
            .with("receiverDenied", Field::Ulong(counts.receiver_denied))
            .with("maxMessageSizeDenied", Field::Ulong(counts.max_message_size_denied)),
    )
}
