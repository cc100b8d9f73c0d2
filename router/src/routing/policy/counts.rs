//! How many connections there are, of whom and from where, for all shards together, and what was refused.
//!
//! # Cost
//! A lock for each connection that comes or goes, and for each refusal.

use crate::base::lock::Mutex;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, MutexGuard, PoisonError};

/// The counts of a router. They outlive the policy that they were counted by.
#[derive(Debug, Default)]
pub struct Counts(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    router: RouterCounts,
    vhosts: BTreeMap<Arc<str>, VhostCounts>,
}

/// What the router as a whole counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RouterCounts {
    /// Connections of clients that came.
    pub processed: u64,
    /// Those that were refused, for whatever reason.
    pub denied: u64,
    /// Those that are there.
    pub current: u64,
    /// Links that were refused.
    pub links_denied: u64,
    /// Messages that were refused because they were too large.
    pub max_message_size_denied: u64,
    /// All that was refused.
    pub total_denials: u64,
}

/// What a vhost counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VhostCounts {
    /// Connections that were allowed.
    pub approved: u64,
    /// Connections that were refused.
    pub denied: u64,
    /// Connections that are open.
    pub current: u64,
    /// Sessions that were refused.
    pub session_denied: u64,
    /// Senders that were refused.
    pub sender_denied: u64,
    /// Receivers that were refused.
    pub receiver_denied: u64,
    /// Messages that were too large.
    pub max_message_size_denied: u64,
    /// The connections of each user: HOST:PORT.
    pub users: BTreeMap<Box<str>, Vec<Box<str>>>,
    /// The connections from each host: HOST:PORT.
    pub hosts: BTreeMap<Box<str>, Vec<Box<str>>>,
}

/// What was refused to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// A session.
    Session,
    /// A link on which it would send.
    Sender,
    /// A link on which it would receive.
    Receiver,
    /// A message that is too large.
    MessageSize,
}

/// The limits of a vhost and of one of its groups, of connections; `None`: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionLimits {
    /// Of the vhost.
    pub vhost: Option<u32>,
    /// Of one user.
    pub user: Option<u32>,
    /// Of one host.
    pub host: Option<u32>,
}

/// Which limit a connection would exceed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exceeded {
    /// That of the vhost.
    Vhost,
    /// That of its user.
    User,
    /// That of its host.
    Host,
}

fn is_full(count: usize, limit: Option<u32>) -> bool {
    limit.is_some_and(|limit| count >= limit as usize)
}

/// Counts a connection with its vhost until it is dropped.
#[derive(Debug)]
pub struct Ticket {
    counts: Arc<Counts>,
    vhost: Arc<str>,
    user: Box<str>,
    host: Box<str>,
    connection: Box<str>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.counts.lock();
        let Some(counts) = state.vhosts.get_mut(&self.vhost) else { return };
        counts.current = counts.current.saturating_sub(1);
        let lists = [(&mut counts.users, &self.user), (&mut counts.hosts, &self.host)];
        for (list, key) in lists {
            let Entry::Occupied(mut entry) = list.entry(key.clone()) else { continue };
            if let Some(place) = entry.get().iter().position(|connection| *connection == self.connection) {
                entry.get_mut().swap_remove(place);
            }
            if entry.get().is_empty() {
                entry.remove();
            }
        }
    }
}

/// Counts a client's connection with the router until it is dropped.
#[derive(Debug)]
pub struct Presence(Arc<Counts>);

impl Drop for Presence {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.router.current = state.router.current.saturating_sub(1);
    }
}

impl Counts {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a client's connection, unless there are `limit` already.
    pub fn come(self: &Arc<Self>, limit: Option<u32>) -> Option<Presence> {
        let mut state = self.lock();
        state.router.processed += 1;
        if limit.is_some_and(|limit| state.router.current >= u64::from(limit)) {
            state.router.denied += 1;
            state.router.total_denials += 1;
            return None;
        }
        state.router.current += 1;
        Some(Presence(self.clone()))
    }

    /// Counts a connection with its vhost, unless that would exceed a limit.
    ///
    /// # Errors
    /// The limit.
    pub fn admit(
        self: &Arc<Self>,
        vhost: &Arc<str>,
        user: &str,
        host: &str,
        connection: &str,
        limits: ConnectionLimits,
    ) -> Result<Ticket, Exceeded> {
        let mut state = self.lock();
        let counts = state.vhosts.entry(vhost.clone()).or_default();
        let exceeded = if limits.vhost.is_some_and(|limit| counts.current >= u64::from(limit)) {
            Some(Exceeded::Vhost)
        } else if is_full(counts.users.get(user).map_or(0, Vec::len), limits.user) {
            Some(Exceeded::User)
        } else if is_full(counts.hosts.get(host).map_or(0, Vec::len), limits.host) {
            Some(Exceeded::Host)
        } else {
            None
        };
        if let Some(exceeded) = exceeded {
            return Err(exceeded);
        }
        counts.approved += 1;
        counts.current += 1;
        counts.users.entry(user.into()).or_default().push(connection.into());
        counts.hosts.entry(host.into()).or_default().push(connection.into());
        Ok(Ticket {
            counts: self.clone(),
            vhost: vhost.clone(),
            user: user.into(),
            host: host.into(),
            connection: connection.into(),
        })
    }

    /// Counts a connection that was refused, with its vhost if there is one.
    pub fn denied(&self, vhost: Option<&Arc<str>>) {
        let mut state = self.lock();
        state.router.denied += 1;
        state.router.total_denials += 1;
        if let Some(vhost) = vhost {
            state.vhosts.entry(vhost.clone()).or_default().denied += 1;
        }
    }

    /// Counts what was refused to a connection, with its vhost if it has one.
    pub fn refused(&self, vhost: Option<&Arc<str>>, what: Refused) {
        let mut state = self.lock();
        state.router.total_denials += 1;
        match what {
            Refused::Session => {}
            Refused::Sender | Refused::Receiver => state.router.links_denied += 1,
            Refused::MessageSize => state.router.max_message_size_denied += 1,
        }
        let Some(counts) = vhost.and_then(|vhost| state.vhosts.get_mut(vhost)) else { return };
        match what {
            Refused::Session => counts.session_denied += 1,
            Refused::Sender => counts.sender_denied += 1,
            Refused::Receiver => counts.receiver_denied += 1,
            Refused::MessageSize => counts.max_message_size_denied += 1,
        }
    }

    /// What the router counts.
    #[must_use]
    pub fn router(&self) -> RouterCounts {
        self.lock().router
    }

    /// What a vhost counts.
    #[must_use]
    pub fn vhost(&self, name: &str) -> VhostCounts {
        self.lock().vhosts.get(name).cloned().unwrap_or_default()
    }

    /// Forgets the vhosts without connections that `keep` doesn't name.
    pub fn retain(&self, keep: impl Fn(&str) -> bool) {
        self.lock().vhosts.retain(|name, counts| counts.current > 0 || keep(name));
    }
}
