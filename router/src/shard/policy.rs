//! What the policy means for connections, sessions, links and messages (router-protocol reference §11). The rules
//! themselves are in `routing/policy`.
//!
//! # Cost
//! Nothing for connections without a policy but a flag that is looked at with each delivery. With one, the properties of each
//! message are looked at, for the names in them.

use super::front::Found;
use super::slots::{Origin, Slot};
use super::{Core, Source};
use crate::base::id::{Channel, ConnectionKey};
use crate::engine::{Cause, Fault};
use crate::log;
use crate::log::{Level, Module};
use crate::routing::policy::counts::{Presence, Refused};
use crate::routing::policy::{Admission, Applicant, Permissions};
use ringmain_codec::{Attach, Condition, Role, Symbols, Target};
use std::net::SocketAddr;
use std::sync::Arc;

/// What a link says of its terminus that is to be a fallback destination (§8.9).
const FALLBACK: &str = "qd.fallback";

/// What a link says of its terminus that is a waypoint's (§8.10).
const WAYPOINT: &str = "qd.waypoint";

const CONNECTION_DISALLOWED: Fault =
    Fault::new(Condition::RESOURCE_LIMIT_EXCEEDED, "connection disallowed by local policy");
const SESSION_DISALLOWED: Fault =
    Fault::new(Condition::RESOURCE_LIMIT_EXCEEDED, "session disallowed by local policy");
const LINK_LIMITED: Fault = Fault::new(Condition::RESOURCE_LIMIT_EXCEEDED, "link disallowed by local policy");
const LINK_DISALLOWED: Fault = Fault::new(Condition::UNAUTHORIZED_ACCESS, "link disallowed by local policy");

/// A connection that a vhost has let in.
#[derive(Debug)]
pub struct Governed {
    admission: Admission,
    /// How many links the peer sends on, and receives on.
    links: [u32; 2],
}

impl Governed {
    /// The vhost.
    #[must_use]
    pub fn vhost(&self) -> &Arc<str> {
        &self.admission.vhost
    }

    /// What it may do.
    #[must_use]
    pub fn permissions(&self) -> &Permissions {
        &self.admission.permissions
    }

    /// Notes that a link came, or went, on which the peer has that role.
    pub(super) fn count_link(&mut self, role: Role, has_come: bool) {
        let count = &mut self.links[usize::from(role == Role::Receiver)];
        *count = if has_come { *count + 1 } else { count.saturating_sub(1) };
    }

    /// Whether the peer, by the name `user`, may attach a link.
    fn may_attach(&self, user: &str, attach: &Attach<'_>) -> Result<(), Fault> {
        let permissions = self.permissions();
        let (most, names, has) = match attach.role {
            Role::Sender => (permissions.max_senders, &permissions.targets, self.links[0]),
            Role::Receiver => (permissions.max_receivers, &permissions.sources, self.links[1]),
        };
        if most != 0 && has >= most {
            return Err(LINK_LIMITED);
        }
        let (address, is_dynamic, capabilities) = terminus(attach);
        let has_capability =
            |start: &str| capabilities.iter().any(|capability| capability.starts_with(start));
        let is_allowed = if is_dynamic {
            permissions.allows_dynamic_source
        } else if let Some(address) = address {
            (permissions.allows_waypoint_links || !has_capability(WAYPOINT))
                && (permissions.allows_fallback_links || !has_capability(FALLBACK))
                && names.permits(address, user)
        } else {
            attach.role == Role::Sender && permissions.allows_anonymous_sender
        };
        if is_allowed { Ok(()) } else { Err(LINK_DISALLOWED) }
    }
}

/// What a peer's terminus asks for: an address, whether it is one that the router makes up, and its capabilities.
fn terminus<'a>(attach: &Attach<'a>) -> (Option<&'a str>, bool, Symbols<'a>) {
    let (address, is_dynamic, capabilities) = match (attach.role, attach.source, attach.target) {
        (Role::Receiver, Some(source), _) => (source.address, source.dynamic, source.capabilities),
        (Role::Sender, _, Some(Target::Node(node))) => (node.address, node.dynamic, node.capabilities),
        (Role::Sender, _, Some(Target::Coordinator(coordinator))) => {
            (Some("$coordinator"), false, coordinator.capabilities)
        }
        (Role::Receiver, None, _) | (Role::Sender, _, None) => (None, false, Symbols::None),
    };
    (address.filter(|address| !address.is_empty()), is_dynamic, capabilities)
}

impl Slot {
    /// Whose user it is: the peer's; on a connection that we opened, ours.
    fn applicant<'a>(&'a self, peer: SocketAddr, asked: Option<&'a str>) -> Applicant<'a> {
        let hostname = self.listener.policy_vhost.as_deref().or(asked).unwrap_or_default();
        let is_dialled = matches!(self.origin, Origin::Connector(_));
        Applicant { user: self.user(), peer, hostname, is_dialled }
    }

    /// Keeps the peer to what it may do, before our open says so.
    fn restrict(&mut self, permissions: &Permissions) {
        self.engine.restrict(
            permissions.max_frame_size,
            permissions.max_session_window,
            u16::try_from(permissions.max_sessions).unwrap_or(u16::MAX),
        );
        self.limit_messages(permissions.max_message_size);
    }

    /// Keeps the peer's messages to a size; 0: any.
    fn limit_messages(&mut self, bytes: u64) {
        if bytes != 0 && (self.max_message_size == 0 || bytes < self.max_message_size) {
            self.max_message_size = bytes;
            self.closes_on_large_message = true;
        }
    }
}

impl Core {
    /// Counts a client that has come. `None`: there are as many as there may be, so it is closed without a word (§11.1).
    pub(super) fn count_client(&self, peer: SocketAddr) -> Option<Presence> {
        let policy = &self.routes.load().policy;
        let counted = policy.counts.come(policy.max_connections);
        if counted.is_none() {
            log!(
                Module::Policy,
                Level::Info,
                "DENY connection from {peer}: the router has {} connections ('maxConnections' of section policy)",
                policy.max_connections.unwrap_or_default()
            );
        }
        counted
    }

    /// Keeps a connection that this router opens to what its vhost allows, before it says anything.
    pub(super) fn govern_dialled(&mut self, key: ConnectionKey) {
        let Some(slot) = self.connections.get_mut(key) else { return };
        let Some(vhost) = slot.listener.policy_vhost.clone() else { return };
        if let Some(permissions) = self.routes.load().policy.connector(&vhost).cloned() {
            slot.restrict(&permissions);
        }
    }

    /// Asks the policy about a connection whose open has come. `false`: it isn't let in, and was told.
    pub(super) fn admit(&mut self, key: ConnectionKey, asked: Option<&str>) -> bool {
        let now = self.now;
        let policy = self.routes.load().policy.clone();
        let Some(slot) = self.connections.get_mut(key) else { return false };
        let peer = match slot.origin {
            Origin::Client(peer) => peer,
            // Of those that this router opens, the policy looks at those that name a vhost.
            Origin::Connector(peer) if slot.listener.policy_vhost.is_some() => peer,
            Origin::Connector(_) | Origin::Neighbour(_) | Origin::Agent => return true,
        };
        let admitted = policy.admit(&slot.applicant(peer, asked));
        match admitted {
            Ok(None) => {
                slot.limit_messages(policy.max_message_size);
                true
            }
            Ok(Some(admission)) => {
                slot.restrict(&admission.permissions.clone());
                slot.governed = Some(Box::new(Governed { admission, links: [0; 2] }));
                true
            }
            Err(denial) => {
                let hostname = slot.applicant(peer, asked).hostname.to_owned();
                log!(
                    Module::Policy,
                    Level::Info,
                    "[C{}] DENY AMQP Open for user '{}', rhost '{}', vhost '{hostname}': {denial}",
                    slot.id,
                    slot.user(),
                    peer.ip()
                );
                slot.engine.send_open(&mut slot.out);
                slot.engine.send_close(Some(&CONNECTION_DISALLOWED), now, &mut slot.out);
                self.connection_lost(key, &Cause::Ours(CONNECTION_DISALLOWED));
                false
            }
        }
    }

    /// Asks the policy about a session that has begun.
    pub(super) fn session_begun(&mut self, key: ConnectionKey, channel: Channel) {
        let Some(slot) = self.connections.get(key) else { return };
        let Some(governed) = &slot.governed else { return };
        let most = governed.permissions().max_sessions as usize;
        if most == 0 || slot.engine.holdings().sessions <= most {
            return;
        }
        self.routes.load().policy.counts.refused(Some(governed.vhost()), Refused::Session);
        log!(
            Module::Policy,
            Level::Info,
            "[C{}] DENY AMQP Begin Session for user '{}', vhost '{}': the connection has 'maxSessions' sessions",
            slot.id,
            slot.user(),
            governed.vhost()
        );
        self.end_session(key, channel, SESSION_DISALLOWED);
    }

    /// Asks the policy about a link that a peer attaches.
    pub(super) fn may_attach(&self, key: ConnectionKey, attach: &Attach<'_>) -> Result<(), Fault> {
        let Some(slot) = self.connections.get(key) else { return Ok(()) };
        let Some(governed) = &slot.governed else { return Ok(()) };
        let Err(fault) = governed.may_attach(slot.user(), attach) else { return Ok(()) };
        let (what, refused) = match attach.role {
            Role::Sender => ("sender", Refused::Sender),
            Role::Receiver => ("receiver", Refused::Receiver),
        };
        self.routes.load().policy.counts.refused(Some(governed.vhost()), refused);
        log!(
            Module::Policy,
            Level::Info,
            "[C{}] DENY AMQP Attach {what} link '{}' to '{}' for user '{}', vhost '{}': {fault}",
            slot.id,
            attach.name,
            terminus(attach).0.unwrap_or_default(),
            slot.user(),
            governed.vhost()
        );
        Err(fault)
    }

    /// Asks the policy about a message of a connection that it governs. `names_target`: the message says where it goes.
    pub(super) fn may_send(
        &self,
        source: &Source,
        found: &Found<'_>,
        names_target: bool,
    ) -> Result<(), Fault> {
        let Some(slot) = self.connections.get(source.delivery.connection) else { return Ok(()) };
        let Some(governed) = &slot.governed else { return Ok(()) };
        let (permissions, user) = (governed.permissions(), slot.user());
        let is_proxy = found.user_id.is_some_and(|id| !id.is_empty() && id != user.as_bytes());
        if is_proxy && !permissions.allows_user_id_proxy {
            return Err(Fault::new(Condition::UNAUTHORIZED_ACCESS, "user_id proxy violation"));
        }
        if names_target && !permissions.targets.permits(found.to.unwrap_or_default(), user) {
            return Err(Fault::new(Condition::UNAUTHORIZED_ACCESS, "policy violation on target"));
        }
        Ok(())
    }

    /// A link was detached since a message on it was too large. If that is the policy's limit, the connection goes, too (§8.7).
    pub(super) fn message_too_large(&mut self, key: ConnectionKey) {
        let now = self.now;
        let Some(slot) = self.connections.get_mut(key) else { return };
        if !slot.closes_on_large_message || slot.over {
            return;
        }
        let vhost = slot.governed.as_ref().map(|governed| governed.vhost().clone());
        self.routes.load().policy.counts.refused(vhost.as_ref(), Refused::MessageSize);
        log!(
            Module::Policy,
            Level::Info,
            "[C{}] DENY AMQP Transfer of user '{}': a message is larger than {} bytes",
            slot.id,
            slot.user(),
            slot.max_message_size
        );
        let fault = Fault::new(Condition::CONNECTION_FORCED, "Message size exceeded");
        slot.engine.send_close(Some(&fault), now, &mut slot.out);
        self.connection_lost(key, &Cause::Ours(fault));
    }
}
