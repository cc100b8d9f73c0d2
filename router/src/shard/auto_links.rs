//! Links that the router attaches by itself, to the nodes of a broker (router-protocol reference §8.11).
//!
//! An auto-link is active while a connection is open that it is for. To the rest of the shard the link is like
//! one that the broker attached: messages that come on it are those of a sender to the auto-link's address,
//! and one that goes out is a receiver of it. It becomes so when the broker has answered the attach.
//!
//! Each link has a session of its own as long as the broker's channel-max has room for one, since a broker may
//! end the whole session over a node that it lacks, and a receiver that takes nothing closes its session's
//! window. The session ends with its link: RabbitMQ before 4.0 keeps what wasn't settled on a detached link until then
//! (rabbitmq-server#9022, point 27).

use super::Core;
use super::links::{Direction, Ingress, LinkCounters, NO_ROUTE, RouterLink, random_name};
use super::links::{describe_source, describe_target};
use super::queue::Egress;
use super::slots::{ConnectionRole, Slot};
use crate::base::id::{AutoLinkKey, Channel, ConnectionKey, LinkKey};
use crate::base::limits::LINKS_PER_CONNECTION_MAX;
use crate::base::lock::Mutex;
use crate::base::slab::KeyedSlab;
use crate::base::time::Instant;
use crate::engine::{Attachment, Cause, Fault, LinkRef};
use crate::log;
use crate::log::{Level, Module};
use crate::routing::{Address, Class};
use ringmain_codec::{Attach, ReceiverSettleMode, Role, SenderSettleMode, Source, Target, TargetNode};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How long after its end a link is attached again, and how long after each further one.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_secs(5);

/// Which way the messages of an auto-link go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AutoLinkDirection {
    /// From the broker's node to the router.
    In,
    /// From the router to the broker's node.
    Out,
}

impl AutoLinkDirection {
    /// The name that the configuration and management have for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

/// Which connections an auto-link is for: of those in the role route-container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AutoLinkPeer {
    /// Those whose peer has this container-id.
    Container(String),
    /// Those of the listener or connector with this name.
    Connection(String),
}

/// An auto-link as it is configured, and what has become of it. All shards share it.
#[derive(Debug)]
pub struct AutoLink {
    /// Its name in logs.
    pub name: String,
    /// Which way its messages go.
    pub direction: AutoLinkDirection,
    /// The address in the router; `None` (only `In`): that in the `to` of each message.
    pub address: Option<String>,
    /// The address in the broker, if it is another one.
    pub external_address: Option<String>,
    /// The phase of the address in the router: 0 to 9.
    pub phase: u8,
    /// The connections that it is for; `None`: no connection.
    pub peer: Option<AutoLinkPeer>,
    /// A link for each open connection that it is for, whichever shard serves it. Locked for a moment where a
    /// link's state changes, and where somebody asks.
    links: Mutex<Links>,
}

/// The links of an auto-link.
#[derive(Debug, Default)]
struct Links {
    links: Vec<AutoLinkLink>,
    last_error: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct AutoLinkLink {
    connection: u64,
    link: u64,
    state: AutoLinkState,
}

/// What has become of an auto-link (the attribute `operStatus`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum AutoLinkState {
    /// No connection is open that it is for.
    #[default]
    Inactive,
    /// The broker refused the link or gave it up; it will be tried again.
    Failed,
    /// The broker's answer is due.
    Attaching,
    /// Messages can go.
    Active,
}

impl AutoLinkState {
    /// The name that management has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Failed => "failed",
            Self::Attaching => "attaching",
            Self::Active => "active",
        }
    }
}

/// What management is told of an auto-link.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AutoLinkStatus {
    /// Of several connections that it is for, the best.
    pub state: AutoLinkState,
    /// The number of the link (the attribute `linkRef`), if there is one.
    pub link: Option<u64>,
    /// Why the link was last lost; `None` once it is active.
    pub last_error: Option<String>,
}

impl AutoLink {
    /// An auto-link that isn't active.
    #[must_use]
    pub fn new(
        name: String,
        direction: AutoLinkDirection,
        address: Option<String>,
        external_address: Option<String>,
        phase: u8,
        peer: Option<AutoLinkPeer>,
    ) -> Self {
        Self { name, direction, address, external_address, phase, peer, links: Mutex::default() }
    }

    /// The address of the broker's node; empty if neither address is configured.
    fn node(&self) -> &str {
        self.external_address.as_deref().or(self.address.as_deref()).unwrap_or_default()
    }

    /// What has become of it.
    #[must_use]
    pub fn status(&self) -> AutoLinkStatus {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let best = links.links.iter().max_by_key(|link| link.state);
        let state = best.map(|link| link.state).unwrap_or_default();
        AutoLinkStatus {
            state,
            link: best.map(|link| link.link).filter(|_| state >= AutoLinkState::Attaching),
            last_error: links.last_error.clone().filter(|_| state != AutoLinkState::Active),
        }
    }

    /// Notes what has become of the link on a connection. Tells whether a failure is news.
    fn note(&self, connection: u64, link: u64, state: AutoLinkState, error: Option<String>) -> bool {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.links.retain(|link| link.connection != connection);
        if state != AutoLinkState::Inactive {
            links.links.push(AutoLinkLink { connection, link, state });
        }
        match state {
            AutoLinkState::Active => links.last_error = None,
            AutoLinkState::Failed => {
                let is_new = links.last_error != error;
                links.last_error = error;
                return is_new;
            }
            AutoLinkState::Inactive | AutoLinkState::Attaching => {}
        }
        false
    }

    fn is_for(&self, slot: &Slot) -> bool {
        slot.listener.role == ConnectionRole::RouteContainer
            && match &self.peer {
                Some(AutoLinkPeer::Container(id)) => **id == *slot.container,
                Some(AutoLinkPeer::Connection(name)) => *name == slot.listener.name,
                None => false,
            }
    }
}

/// The auto-links of a shard.
#[derive(Default)]
pub(super) struct AutoLinks {
    configured: Vec<Arc<AutoLink>>,
    attempts: KeyedSlab<AutoLinkKey, Attempt>,
    retries: BinaryHeap<Reverse<(Instant, AutoLinkKey)>>,
    /// Sessions to be ended at the end of the turn, since their links are gone.
    ending: Vec<(ConnectionKey, (Channel, u32))>,
}

/// An auto-link on one of the connections that it is for.
struct Attempt {
    auto_link: Arc<AutoLink>,
    connection: ConnectionKey,
    /// The session that its link has, and that session's generation.
    session: Option<(Channel, u32)>,
    progress: Progress,
    /// How often it has failed since it was last active.
    failures: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The broker's answer is due.
    Attaching(LinkKey),
    /// Messages can go.
    Active(LinkKey),
    /// It is tried again then.
    Waiting(Instant),
}

impl Progress {
    fn link(self) -> Option<LinkKey> {
        match self {
            Self::Attaching(link) | Self::Active(link) => Some(link),
            Self::Waiting(_) => None,
        }
    }
}

impl AutoLinks {
    /// When a link is to be attached again.
    pub(super) fn next_retry(&self) -> Option<Instant> {
        self.retries.peek().map(|Reverse((at, _))| *at)
    }

    /// The attempts on a connection.
    fn of(&self, connection: ConnectionKey) -> Vec<AutoLinkKey> {
        let of_it = |(_, attempt): &(AutoLinkKey, &Attempt)| attempt.connection == connection;
        self.attempts.iter().filter(of_it).map(|(key, _)| key).collect()
    }
}

impl Core {
    /// Takes an auto-link over, and attaches it on the connections that it is for.
    pub(super) fn add_auto_link(&mut self, auto_link: &Arc<AutoLink>) {
        self.auto_links.configured.push(auto_link.clone());
        for connection in self.connections.keys() {
            let slot = self.connections.get(connection);
            if slot.is_some_and(|slot| !slot.over && slot.engine.is_open() && auto_link.is_for(slot)) {
                self.begin_auto_link(auto_link.clone(), connection);
            }
        }
    }

    /// Gives an auto-link up: its links are detached.
    pub(super) fn remove_auto_link(&mut self, auto_link: &Arc<AutoLink>) {
        self.auto_links.configured.retain(|other| !Arc::ptr_eq(other, auto_link));
        for key in self.auto_links.attempts.keys() {
            let is_it = |attempt: &Attempt| Arc::ptr_eq(&attempt.auto_link, auto_link);
            if !self.auto_links.attempts.get(key).is_some_and(is_it) {
                continue;
            }
            let Some(attempt) = self.auto_links.attempts.remove(key) else { continue };
            self.end_attempt(&attempt);
        }
    }

    /// Attaches the auto-links of a connection that has opened.
    pub(super) fn attach_auto_links(&mut self, connection: ConnectionKey) {
        if self.auto_links.configured.is_empty() {
            return;
        }
        let Some(slot) = self.connections.get(connection) else { return };
        let its: Vec<Arc<AutoLink>> =
            self.auto_links.configured.iter().filter(|auto_link| auto_link.is_for(slot)).cloned().collect();
        for auto_link in its {
            self.begin_auto_link(auto_link, connection);
        }
    }

    /// Forgets the auto-links of a connection that is over.
    pub(super) fn forget_auto_links_of(&mut self, connection: ConnectionKey) {
        if self.auto_links.attempts.is_empty() {
            return;
        }
        let id = self.connections.get(connection).map_or(0, |slot| slot.id);
        for key in self.auto_links.of(connection) {
            if let Some(attempt) = self.auto_links.attempts.remove(key) {
                attempt.auto_link.note(id, 0, AutoLinkState::Inactive, None);
            }
        }
    }

    /// Attaches again what is due.
    pub(super) fn retry_auto_links(&mut self) {
        while let Some(&Reverse((at, key))) = self.auto_links.retries.peek()
            && at <= self.now
        {
            self.auto_links.retries.pop();
            let attempt = self.auto_links.attempts.get(key);
            if attempt.is_some_and(|attempt| attempt.progress == Progress::Waiting(at)) {
                self.attach_auto_link(key);
            }
        }
    }

    fn begin_auto_link(&mut self, auto_link: Arc<AutoLink>, connection: ConnectionKey) {
        let key = self.auto_links.attempts.insert(Attempt {
            auto_link,
            connection,
            session: None,
            progress: Progress::Waiting(self.now),
            failures: 0,
        });
        self.attach_auto_link(key);
    }

    /// Attaches the link of an auto-link, or notes why it can't be.
    fn attach_auto_link(&mut self, key: AutoLinkKey) {
        if let Err(fault) = self.try_attach_auto_link(key) {
            self.auto_link_failed(key, &fault.to_string());
        }
    }

    fn try_attach_auto_link(&mut self, key: AutoLinkKey) -> Result<(), Fault> {
        let Some(attempt) = self.auto_links.attempts.get(key) else { return Ok(()) };
        let (auto_link, connection) = (attempt.auto_link.clone(), attempt.connection);
        self.check_auto_link(&auto_link)?;
        let channel = self.session_for_auto_link(key)?;
        let Some(slot) = self.connections.get_mut(connection) else { return Ok(()) };
        let node = Some(auto_link.node()).filter(|node| !node.is_empty());
        let (role, direction) = match auto_link.direction {
            AutoLinkDirection::In => (Role::Receiver, Direction::In(Ingress::default())),
            AutoLinkDirection::Out => (Role::Sender, Direction::Out(Egress::new(SenderSettleMode::Mixed))),
        };
        let (source, target) = match auto_link.direction {
            AutoLinkDirection::In => (Source { address: node, ..Source::default() }, TargetNode::default()),
            AutoLinkDirection::Out => {
                (Source::default(), TargetNode { address: node, ..TargetNode::default() })
            }
        };
        let attachment = Attachment {
            source: Some(source),
            target: Some(Target::Node(target)),
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            max_message_size: slot.max_message_size,
        };
        let name = format!("auto-link.{}", random_name());
        let Some(link) = slot.engine.send_attach(channel, &name, role, &attachment, &mut slot.out) else {
            return Err(Fault::new(
                ringmain_codec::Condition::RESOURCE_LIMIT_EXCEEDED,
                "the peer's handle-max leaves no handle, or its max-frame-size no room for the address",
            ));
        };
        let inserted = self.insert_link(connection, |id, slot| RouterLink {
            id,
            connection,
            link,
            // Both come when the peer has answered: until then nobody sends to it, and it gets no credit.
            address: None,
            capacity: 0,
            remote: false,
            party: slot.party,
            auto_link: Some(key),
            place: 0,
            max_message_size: 0,
            direction,
            counters: LinkCounters::default(),
        });
        let (Some((id, link_key)), Some(slot)) = (inserted, self.connections.get(connection)) else {
            return Ok(());
        };
        auto_link.note(slot.id, id, AutoLinkState::Attaching, None);
        if let Some(attempt) = self.auto_links.attempts.get_mut(key) {
            attempt.progress = Progress::Attaching(link_key);
        }
        self.mark_dirty(connection);
        Ok(())
    }

    /// Whether the address of an auto-link may be used.
    fn check_auto_link(&mut self, auto_link: &AutoLink) -> Result<(), Fault> {
        let Some(text) = &auto_link.address else { return Ok(()) };
        match (Address::parse(text, &self.router_id).class, auto_link.direction) {
            (Class::Router | Class::Edge | Class::Area, AutoLinkDirection::Out) => {
                return Err(Fault::new(
                    NO_ROUTE,
                    "no auto-link can receive from the address of another router",
                ));
            }
            (Class::Router | Class::Edge | Class::Area, AutoLinkDirection::In)
            | (Class::Mobile | Class::Phase(_) | Class::Local | Class::Topological, _) => {}
        }
        let address = self.use_address(text, |_| auto_link.phase)?;
        self.addresses.forget_unused(address);
        Ok(())
    }

    /// The session for the link of an auto-link: a new one, or where the peer allows no more, that of another
    /// auto-link on the connection.
    fn session_for_auto_link(&mut self, key: AutoLinkKey) -> Result<Channel, Fault> {
        let none_left = || {
            Fault::new(
                ringmain_codec::Condition::RESOURCE_LIMIT_EXCEEDED,
                "the peer's channel-max leaves no channel for a session",
            )
        };
        let attempt = self.auto_links.attempts.get(key).ok_or_else(none_left)?;
        let connection = attempt.connection;
        let others: Vec<(Channel, u32)> = self
            .auto_links
            .attempts
            .iter()
            .filter(|(_, attempt)| attempt.connection == connection)
            .filter_map(|(_, attempt)| attempt.session)
            .collect();
        let slot = self.connections.get_mut(connection).ok_or_else(none_left)?;
        if slot.links >= LINKS_PER_CONNECTION_MAX {
            return Err(Fault::new(
                ringmain_codec::Condition::RESOURCE_LIMIT_EXCEEDED,
                "this connection has as many links as a connection may have",
            ));
        }
        let lives = |slot: &Slot, (channel, generation): (Channel, u32)| {
            slot.engine.lives(channel, generation).then_some(channel)
        };
        let channel = match slot.engine.send_begin(&mut slot.out) {
            Some(channel) => channel,
            None => others.iter().find_map(|session| lives(slot, *session)).ok_or_else(none_left)?,
        };
        let generation = slot.engine.session(channel).map_or(0, |session| session.generation);
        if let Some(attempt) = self.auto_links.attempts.get_mut(key) {
            attempt.session = Some((channel, generation));
        }
        self.mark_dirty(connection);
        Ok(channel)
    }

    /// The peer has answered an attach of ours. (Links to other shards need no more than their credit.)
    ///
    /// A terminus on the peer's side says that it takes the link; a refusal has none, and a detach follows it.
    pub(super) fn auto_link_answered(
        &mut self,
        connection: ConnectionKey,
        link: LinkRef,
        attach: &Attach<'_>,
    ) {
        let Some(slot) = self.connections.get(connection) else { return };
        let user = slot.engine.link(link).and_then(|link| link.user).map(LinkKey);
        let Some((link_key, key)) = user.and_then(|user| Some((user, self.links.get(user)?.auto_link?)))
        else {
            return;
        };
        let is_taken = match attach.role {
            Role::Sender => attach.source.is_some(),
            Role::Receiver => attach.target.is_some(),
        };
        if !is_taken {
            return;
        }
        let Some(attempt) = self.auto_links.attempts.get_mut(key) else { return };
        attempt.progress = Progress::Active(link_key);
        attempt.failures = 0;
        let auto_link = attempt.auto_link.clone();
        let address = match &auto_link.address {
            None => None,
            Some(text) => match self.use_address(text, |_| auto_link.phase) {
                Ok(address) => Some(address),
                Err(fault) => {
                    self.detach_auto_link(link_key, &Cause::Ours(fault));
                    return;
                }
            },
        };
        let Some(slot) = self.connections.get_mut(connection) else { return };
        let Some(link) = self.links.get_mut(link_key) else { return };
        link.address = address;
        link.capacity = slot.listener.link_capacity;
        // RabbitMQ before 4.0 doesn't count what is on its way from a queue to a link when it takes over new credit
        // (rabbitmq-server#2597). That is no more than it had credit for.
        slot.engine.allow_overdraft(link.link, link.capacity);
        link.max_message_size = attach.max_message_size.unwrap_or(0);
        auto_link.note(slot.id, link.id, AutoLinkState::Active, None);
        log!(
            Module::RouterCore,
            Level::Info,
            "[C{}][L{}] Auto-link '{}' is active: dir={} source={} target={} phase={}",
            slot.id,
            link.id,
            auto_link.name,
            auto_link.direction.name(),
            describe_source(attach.source),
            describe_target(attach.target),
            auto_link.phase
        );
        match (auto_link.direction, address) {
            (AutoLinkDirection::In, Some(address)) => {
                self.add_sender(address, link_key);
                self.want_remotes(address);
                self.credit_due(link_key);
            }
            (AutoLinkDirection::In, None) => self.credit_due(link_key),
            (AutoLinkDirection::Out, Some(address)) => {
                self.add_receiver(address, link_key);
            }
            // The configuration asks for an address where messages go out.
            (AutoLinkDirection::Out, None) => {}
        }
    }

    /// Detaches the link of an auto-link from our side.
    fn detach_auto_link(&mut self, link_key: LinkKey, cause: &Cause<'_>) {
        let Some(link) = self.links.get(link_key) else { return };
        let (connection, link) = (link.connection, link.link);
        let Some(slot) = self.connections.get_mut(connection) else { return };
        let fault = match cause {
            Cause::Ours(fault) => Some(fault),
            Cause::Peer(_) => None,
        };
        let unsettled = slot.engine.take_unsettled_of(link);
        slot.engine.send_detach(link, true, fault, &mut slot.out);
        self.link_lost(link_key, unsettled, cause);
        if let Some(slot) = self.connections.get_mut(connection) {
            slot.engine.clear_link(link);
        }
        self.mark_dirty(connection);
    }

    /// Ends the link and the session of an auto-link that was given up.
    fn end_attempt(&mut self, attempt: &Attempt) {
        let connection = attempt.connection;
        if let Some(link) = attempt.progress.link() {
            self.detach_auto_link(link, &Cause::Peer(None));
        }
        if let Some(slot) = self.connections.get(connection) {
            attempt.auto_link.note(slot.id, 0, AutoLinkState::Inactive, None);
        }
        if let Some(session) = attempt.session {
            self.end_session_of_auto_link(connection, session);
        }
    }

    /// Ends a session that had the link of an auto-link, if nothing else uses it.
    fn end_session_of_auto_link(&mut self, connection: ConnectionKey, session: (Channel, u32)) {
        let (channel, generation) = session;
        let Some(slot) = self.connections.get_mut(connection).filter(|slot| !slot.over) else { return };
        let is_shared = self
            .auto_links
            .attempts
            .iter()
            .any(|(_, other)| other.connection == connection && other.session == Some(session));
        // The peer may have attached a link of its own to it.
        let is_used = slot.engine.users(channel).iter().any(|(_, user)| user.is_some());
        if !is_shared && !is_used && slot.engine.lives(channel, generation) {
            slot.engine.send_end(channel, None, &mut slot.out);
            slot.engine.clear_session(channel);
            self.mark_dirty(connection);
        }
    }

    /// Ends the sessions of auto-links whose links are gone, once the links have been dealt with.
    pub(super) fn end_sessions_of_auto_links(&mut self) {
        for (connection, session) in std::mem::take(&mut self.auto_links.ending) {
            self.end_session_of_auto_link(connection, session);
        }
    }

    /// The link of an auto-link is gone.
    pub(super) fn auto_link_lost(&mut self, key: AutoLinkKey, cause: &Cause<'_>) {
        let Some(attempt) = self.auto_links.attempts.get(key) else { return };
        if self.connections.get(attempt.connection).is_none_or(|slot| slot.over) {
            // The connection's end says all.
            return;
        }
        let reason = cause.describe().unwrap_or_else(|| "the peer detached the link".to_owned());
        self.auto_link_failed(key, &reason);
    }

    /// Notes that an auto-link failed, and when it is tried again.
    fn auto_link_failed(&mut self, key: AutoLinkKey, reason: &str) {
        let Some(attempt) = self.auto_links.attempts.get_mut(key) else { return };
        let pause = if attempt.failures == 0 { FIRST_RETRY } else { RETRY };
        let at = self.now + pause;
        attempt.failures = attempt.failures.saturating_add(1);
        attempt.progress = Progress::Waiting(at);
        if let Some(session) = attempt.session.take() {
            self.auto_links.ending.push((attempt.connection, session));
        }
        self.auto_links.retries.push(Reverse((at, key)));
        let Some(slot) = self.connections.get(attempt.connection) else { return };
        let auto_link = &attempt.auto_link;
        let is_new = auto_link.note(slot.id, 0, AutoLinkState::Failed, Some(reason.to_owned()));
        // The same failure each few seconds is no news.
        log!(
            Module::RouterCore,
            if is_new { Level::Warning } else { Level::Debug },
            "[C{}] Auto-link '{}' ({} '{}' of container '{}') failed, and is tried again in {} s: {reason}",
            slot.id,
            auto_link.name,
            match auto_link.direction {
                AutoLinkDirection::In => "from",
                AutoLinkDirection::Out => "to",
            },
            auto_link.node(),
            slot.container,
            pause.as_secs()
        );
    }
}
