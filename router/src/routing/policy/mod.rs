//! Who may connect, and what they may do then (router-protocol reference §11).
//!
//! A policy is a part of the routing snapshot: shards ask it without a round trip. What all shards count together is in
//! [`counts`].

pub mod counts;
pub mod hosts;
pub mod names;

use self::counts::{ConnectionLimits, Counts, Exceeded, Ticket};
use self::hosts::Hosts;
use self::names::Names;
use super::pattern::PatternTree;
use core::net::SocketAddr;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The group of users that no other group names.
const DEFAULT_GROUP: &str = "$default";

/// The group of connections that this router opens.
const CONNECTOR_GROUP: &str = "$connector";

/// What the users of a group may do on a connection.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// The largest frame that we take, in bytes; 0: as the listener says.
    pub max_frame_size: u32,
    /// What may be in flight to us on a session, in bytes; 0: as the listener says.
    pub max_session_window: u32,
    /// How many sessions there may be; 0: as the listener says.
    pub max_sessions: u32,
    /// How many links the peer may send on; 0: any number.
    pub max_senders: u32,
    /// How many links the peer may receive on; 0: any number.
    pub max_receivers: u32,
    /// The largest message that the peer may send, in bytes; 0: any.
    pub max_message_size: u64,
    /// Whether receivers may ask for an address of their own.
    pub allows_dynamic_source: bool,
    /// Whether there may be senders without an address.
    pub allows_anonymous_sender: bool,
    /// Whether messages may name another user than the connection's.
    pub allows_user_id_proxy: bool,
    /// Whether links may be those of a waypoint.
    pub allows_waypoint_links: bool,
    /// Whether links may be those of a fallback destination.
    pub allows_fallback_links: bool,
    /// What the peer may receive from.
    pub sources: Names,
    /// What the peer may send to.
    pub targets: Names,
}

/// Users of a vhost.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its users; `*`: all.
    pub users: Vec<String>,
    /// From where they may connect.
    pub hosts: Hosts,
    /// The connections of one user; `None`: as the vhost says.
    pub max_connections_per_user: Option<u32>,
    /// The connections from one host; `None`: as the vhost says.
    pub max_connections_per_host: Option<u32>,
    /// What they may do.
    pub permissions: Arc<Permissions>,
}

/// A virtual host.
#[derive(Clone, Debug)]
pub struct Vhost {
    /// The host name that it is called by.
    pub name: Arc<str>,
    /// More host names.
    pub aliases: Vec<String>,
    /// How many connections it may have, in all, of one user and from one host.
    pub limits: ConnectionLimits,
    /// Whether users may connect that no group names.
    pub allows_unknown_user: bool,
    /// Its groups.
    pub groups: Vec<Group>,
}

impl Vhost {
    fn group_named(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    fn group_of(&self, user: &str) -> Option<&Group> {
        let lists = |name: &str| self.groups.iter().find(|group| group.users.iter().any(|user| user == name));
        lists(user)
            .or_else(|| lists("*"))
            .or_else(|| self.group_named(DEFAULT_GROUP).filter(|_| self.allows_unknown_user))
    }
}

/// Limits, and the vhosts if they are enforced.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How many clients may be connected to the router; `None`: any number.
    pub max_connections: Option<u32>,
    /// The largest message of clients whom no vhost says more of, in bytes; 0: any.
    pub max_message_size: u64,
    /// What is counted.
    pub counts: Arc<Counts>,
    vhosts: Option<Vhosts>,
}

#[derive(Clone, Debug)]
struct Vhosts {
    by_name: HashMap<Box<str>, Arc<Vhost>>,
    patterns: Option<PatternTree<Arc<Vhost>>>,
    default: Option<Arc<Vhost>>,
}

/// How names lead to vhosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Naming<'a> {
    /// Whether the names of vhosts are patterns, as those of addresses.
    pub has_patterns: bool,
    /// The vhost of clients who ask for one that there isn't; empty: none.
    pub default_vhost: &'a str,
}

impl Default for Policy {
    /// Everybody may do everything.
    fn default() -> Self {
        Self { max_connections: None, max_message_size: 0, counts: Arc::default(), vhosts: None }
    }
}

/// Who wants to connect.
#[derive(Clone, Copy, Debug)]
pub struct Applicant<'a> {
    /// The name that was authenticated.
    pub user: &'a str,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The vhost that it asks for, or that the listener chose.
    pub hostname: &'a str,
    /// Whether this router opened the connection.
    pub is_dialled: bool,
}

/// A connection that a vhost has let in. It counts there until this is dropped.
#[derive(Debug)]
pub struct Admission {
    /// The vhost.
    pub vhost: Arc<str>,
    /// What it may do.
    pub permissions: Arc<Permissions>,
    _ticket: Ticket,
}

/// Why a connection isn't let in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Denial {
    /// No vhost is called so, and there is no default.
    NoVhost,
    /// No group of the vhost has the user.
    NoGroup,
    /// Not from that host.
    Host,
    /// There are as many already as there may be.
    Exceeded(Exceeded),
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoVhost => "no vhost has that name, and there is no default vhost",
            Self::NoGroup => "no group of the vhost has that user",
            Self::Host => "the user's group may not connect from that host",
            Self::Exceeded(Exceeded::Vhost) => "the vhost has 'maxConnections' connections",
            Self::Exceeded(Exceeded::User) => "the user has 'maxConnectionsPerUser' connections",
            Self::Exceeded(Exceeded::Host) => "the host has 'maxConnectionsPerHost' connections",
        })
    }
}

impl Policy {
    /// Enforces these vhosts from now on.
    pub fn enforce(&mut self, vhosts: impl IntoIterator<Item = Vhost>, naming: Naming<'_>) {
        let mut by_name = HashMap::new();
        let mut patterns = naming.has_patterns.then(PatternTree::default);
        for vhost in vhosts {
            let vhost = Arc::new(vhost);
            for name in std::iter::once(&*vhost.name).chain(vhost.aliases.iter().map(String::as_str)) {
                by_name.insert(name.into(), vhost.clone());
                if let Some(patterns) = &mut patterns {
                    patterns.insert(name, vhost.clone());
                }
            }
        }
        let default = by_name.get(naming.default_vhost).filter(|_| !naming.default_vhost.is_empty()).cloned();
        self.vhosts = Some(Vhosts { by_name, patterns, default });
    }

    /// Whether vhosts are enforced.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.vhosts.is_some()
    }

    /// What a vhost allows to connections that this router opens.
    #[must_use]
    pub fn connector(&self, vhost: &str) -> Option<&Arc<Permissions>> {
        let group = self.vhosts.as_ref()?.find(vhost)?.group_named(CONNECTOR_GROUP)?;
        Some(&group.permissions)
    }

    /// Decides whether somebody may connect. `None`: vhosts aren't enforced.
    ///
    /// # Errors
    /// Why not; it was counted.
    pub fn admit(&self, applicant: &Applicant<'_>) -> Result<Option<Admission>, Denial> {
        let Some(vhosts) = &self.vhosts else { return Ok(None) };
        let vhost = vhosts.find(applicant.hostname);
        let admitted = vhost.map_or(Err(Denial::NoVhost), |vhost| self.admit_to(vhost, applicant));
        match admitted {
            Ok(admission) => Ok(Some(admission)),
            Err(denial) => {
                self.counts.denied(vhost.map(|vhost| &vhost.name));
                Err(denial)
            }
        }
    }

    fn admit_to(&self, vhost: &Vhost, applicant: &Applicant<'_>) -> Result<Admission, Denial> {
        let host = applicant.peer.ip().to_canonical();
        let group = if applicant.is_dialled {
            vhost.group_named(CONNECTOR_GROUP)
        } else {
            vhost.group_of(applicant.user)
        };
        let group = group.ok_or(Denial::NoGroup)?;
        if !applicant.is_dialled && !group.hosts.permits(host) {
            return Err(Denial::Host);
        }
        let limits = ConnectionLimits {
            vhost: vhost.limits.vhost,
            user: group.max_connections_per_user.map_or(vhost.limits.user, limit),
            host: group.max_connections_per_host.map_or(vhost.limits.host, limit),
        };
        let (host, connection) = (host.to_string(), applicant.peer.to_string());
        let ticket = self
            .counts
            .admit(&vhost.name, applicant.user, &host, &connection, limits)
            .map_err(Denial::Exceeded)?;
        Ok(Admission { vhost: vhost.name.clone(), permissions: group.permissions.clone(), _ticket: ticket })
    }
}

/// What stands for no limit of connections.
pub const CONNECTIONS_UNLIMITED: u32 = 65_535;

/// The limit that a number of connections stands for.
#[must_use]
pub fn limit(connections: u32) -> Option<u32> {
    (connections < CONNECTIONS_UNLIMITED).then_some(connections)
}

impl Vhosts {
    fn find(&self, name: &str) -> Option<&Arc<Vhost>> {
        let found = match &self.patterns {
            Some(patterns) => patterns.find(name),
            None => self.by_name.get(name),
        };
        found.or(self.default.as_ref())
    }
}

#[cfg(test)]
mod tests;
