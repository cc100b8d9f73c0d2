//! Attaching and losing links: which address they use, and who counts as a destination.

use super::delay::SettleRate;
use super::forward::Current;
use super::queue::Egress;
use super::slots::Slot;
use super::{Core, Party, Peer};
use crate::base::id::{AddressKey, AutoLinkKey, Channel, ConnectionKey, LinkKey, Serial};
use crate::base::limits::LINKS_PER_CONNECTION_MAX;
use crate::engine::{Attachment, Cause, Fault, LinkRef, Unsettled};
use crate::log;
use crate::log::{Level, Module};
use crate::routing::{Address, AddressSettings, Class, MANAGEMENT_NODE, PHASE_MAX, Treatment, Use};
use ringmain_codec::{Attach, Condition, Role, Source, Symbols, Target, TargetNode};
use std::time::Duration;

/// How long a receiver may take to grant its first credit before it counts as a destination without.
///
/// Senders get credit for an address when somebody there wants messages (case F-07 b). A receiver that
/// waits for messages before it asks for any would wait for ever, if nothing came for it to see: after
/// this time it is treated as the existing routers treat it from the start.
pub const FIRST_CREDIT_GRACE: Duration = Duration::from_secs(3);

/// The condition for an address that leads nowhere.
pub(super) const NO_ROUTE: Condition = Condition("qd:no-route-to-dest");

/// A link as the shard sees it.
pub struct RouterLink {
    /// Its number in logs, unique in the life of the router.
    pub id: u64,
    /// Its connection.
    pub connection: ConnectionKey,
    /// The link in the engine's numbers.
    pub link: LinkRef,
    /// Its address; anonymous senders have none.
    pub address: Option<AddressKey>,
    /// Whether it leads to another shard's receivers.
    pub remote: bool,
    /// Who is at its other end.
    pub party: Party,
    /// The auto-link that it was attached for.
    pub auto_link: Option<AutoLinkKey>,
    /// Its place among the address's receivers or senders.
    pub place: usize,
    /// As receiver, the largest message that the peer takes; 0: any.
    pub max_message_size: u64,
    /// The credit or the outstanding deliveries that are reasonable for it.
    pub capacity: u32,
    /// What only one direction has.
    pub direction: Direction,
    /// What it counts.
    pub counters: LinkCounters,
}

/// What only one direction has.
pub enum Direction {
    /// The peer sends.
    In(Ingress),
    /// The peer receives.
    Out(Egress),
}

impl Direction {
    /// What the peer does on such a link.
    #[must_use]
    pub const fn peer_role(&self) -> Role {
        match self {
            Self::In(_) => Role::Sender,
            Self::Out(_) => Role::Receiver,
        }
    }
}

/// A link on which the peer sends.
#[derive(Default)]
pub struct Ingress {
    /// The delivery of which not all has come.
    pub current: Option<Current>,
    /// Settled deliveries that count against the link's capacity because they still wait here.
    pub charges: u32,
    /// Whether the sender was asked to give up its credit since the address has no destination.
    pub draining: bool,
    /// Whether the link is in the list of those whose credit is to be looked at.
    pub credit_due: bool,
    /// Whether the policy looks at its messages.
    pub is_governed: bool,
    /// Whether its messages are logged.
    pub is_logged: bool,
}

impl Ingress {
    /// Puts the link into the list of those whose credit is to be looked at, at the end of the turn.
    #[inline]
    pub(super) fn mark_due(&mut self, key: LinkKey, list: &mut Vec<LinkKey>) {
        if !self.credit_due {
            self.credit_due = true;
            list.push(key);
        }
    }
}

/// What a link counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkCounters {
    /// All deliveries.
    pub deliveries: u64,
    /// Those that were settled from the start.
    pub presettled: u64,
    /// Settled ones that were dropped.
    pub dropped_presettled: u64,
    /// By outcome.
    pub accepted: u64,
    /// By outcome.
    pub rejected: u64,
    /// By outcome.
    pub released: u64,
    /// By outcome.
    pub modified: u64,
    /// Those that took more than a second to be settled, and those that took more than ten.
    pub delayed: [u64; 2],
    /// How many were settled in the last seconds.
    pub rate: SettleRate,
}

impl RouterLink {
    /// What an incoming link has.
    pub fn ingress_mut(&mut self) -> Option<&mut Ingress> {
        match &mut self.direction {
            Direction::In(ingress) => Some(ingress),
            Direction::Out(_) => None,
        }
    }

    /// What an outgoing link has.
    #[inline]
    pub fn egress(&self) -> Option<&Egress> {
        match &self.direction {
            Direction::In(_) => None,
            Direction::Out(egress) => Some(egress),
        }
    }

    /// What an outgoing link has.
    #[inline]
    pub fn egress_mut(&mut self) -> Option<&mut Egress> {
        match &mut self.direction {
            Direction::In(_) => None,
            Direction::Out(egress) => Some(egress),
        }
    }
}

/// The address that a terminus asks for.
enum Wanted<'a> {
    /// None: an anonymous sender.
    Anonymous,
    /// One that the router makes up.
    Dynamic,
    /// This one.
    Named(&'a str),
}

fn wanted(address: Option<&str>, dynamic: bool) -> Wanted<'_> {
    match address {
        _ if dynamic => Wanted::Dynamic,
        None | Some("") => Wanted::Anonymous,
        Some(address) => Wanted::Named(address),
    }
}

/// The phase to which a waypoint sends that says of its terminus that it is one: `qd.waypoint`, or
/// `qd.waypoint.N` for phase N (router-protocol reference §8.10). The first such capability holds.
fn waypoint(capabilities: &Symbols<'_>) -> Option<u8> {
    let phase = capabilities.iter().find_map(|capability| capability.strip_prefix("qd.waypoint"))?;
    if phase.is_empty() {
        return Some(1);
    }
    phase.strip_prefix('.')?.parse().ok().filter(|phase| (1..=PHASE_MAX).contains(phase))
}

/// A name that nobody guesses: 15 letters and digits.
pub(super) fn random_name() -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(15).collect()
}

impl Core {
    /// Answers a peer's attach.
    pub(super) fn attach_requested(&mut self, key: ConnectionKey, link: LinkRef, attach: &Attach<'_>) {
        if self.connections.get(key).is_some_and(Slot::is_neighbour) {
            self.attach_neighbour(key, link, attach);
            return;
        }
        let full = self.connections.get(key).is_some_and(|slot| slot.links >= LINKS_PER_CONNECTION_MAX);
        let answer = match attach.role {
            _ if full => Err(Fault::new(
                Condition::RESOURCE_LIMIT_EXCEEDED,
                "this connection has as many links as a connection may have",
            )),
            Role::Sender | Role::Receiver => self.may_attach(key, attach).and_then(|()| match attach.role {
                Role::Sender => self.attach_sender(key, link, attach),
                Role::Receiver => self.attach_receiver(key, link, attach),
            }),
        };
        let Err(fault) = answer else { return };
        let Some(slot) = self.connections.get_mut(key) else { return };
        log!(
            Module::RouterCore,
            Level::Info,
            "[C{}] Link '{}' refused: dir={} address={}: {fault}",
            slot.id,
            attach.name,
            direction_name(attach.role),
            terminus_address(attach).unwrap_or("(none)")
        );
        let refused = slot.engine.refuse_link(link, attach, &fault, &mut slot.out);
        slot.engine.clear_link(link);
        if let Err(fault) = refused {
            self.end_session(key, link.channel, fault);
        }
    }

    /// Ends a session that can't go on.
    pub(super) fn end_session(&mut self, key: ConnectionKey, channel: Channel, fault: Fault) {
        if let Some(slot) = self.connections.get_mut(key) {
            slot.engine.send_end(channel, Some(&fault), &mut slot.out);
        }
        self.session_lost(key, channel, &Cause::Ours(fault));
    }

    fn attach_sender(&mut self, key: ConnectionKey, link: LinkRef, attach: &Attach<'_>) -> Result<(), Fault> {
        let node = match attach.target {
            None => TargetNode::default(),
            Some(Target::Node(node)) => node,
            Some(Target::Coordinator(_)) => {
                return Err(Fault::new(
                    Condition::PRECONDITION_FAILED,
                    "transactions need a link route to a broker's coordinator, and this router has none",
                ));
            }
        };
        let generated;
        let (address, node) = match wanted(node.address, node.dynamic) {
            Wanted::Anonymous => (None, node),
            Wanted::Dynamic => {
                generated = format!("amqp:/_$temp.{}", random_name());
                let address = self.use_address(&generated, |settings| settings.ingress_phase)?;
                (Some(address), TargetNode { address: Some(&generated), ..node })
            }
            Wanted::Named(text) => {
                let waypoint = waypoint(&node.capabilities);
                let phase = |settings: &AddressSettings| waypoint.unwrap_or(settings.ingress_phase);
                (Some(self.use_address(text, phase)?), node)
            }
        };
        let attachment = |max_message_size| Attachment {
            source: attach.source,
            target: Some(Target::Node(node)),
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            max_message_size,
        };
        let governed = self.connections.get(key).and_then(|slot| slot.governed.as_ref());
        let is_governed = governed
            .is_some_and(|governed| address.is_none() || !governed.permissions().allows_user_id_proxy);
        let direction = Direction::In(Ingress { is_governed, ..Ingress::default() });
        let Some(link_key) = self.add_link(key, link, attach, address, direction, attachment) else {
            return Ok(());
        };
        if let Some(address) = address {
            self.add_sender(address, link_key);
            self.want_remotes(address);
        }
        self.credit_due(link_key);
        Ok(())
    }

    fn attach_receiver(
        &mut self,
        key: ConnectionKey,
        link: LinkRef,
        attach: &Attach<'_>,
    ) -> Result<(), Fault> {
        let no_route = Fault::new(NO_ROUTE, "No route to the destination node");
        let Some(source) = attach.source else { return Err(no_route) };
        let generated;
        let (text, source) = match wanted(source.address, source.dynamic) {
            Wanted::Anonymous => return Err(no_route),
            Wanted::Dynamic => {
                generated = format!("amqp:/_topo/0/{}/temp.{}", self.router_id, random_name());
                (generated.as_str(), Source { address: Some(&generated), ..source })
            }
            Wanted::Named(text) => (text, source),
        };
        match Address::parse(text, &self.router_id).class {
            Class::Router | Class::Edge | Class::Area => return Err(no_route),
            Class::Mobile | Class::Phase(_) | Class::Local | Class::Topological => {}
        }
        if self.agent != Some(key) && Address::parse(text, &self.router_id).text == MANAGEMENT_NODE {
            return Err(Fault::new(
                Condition::NOT_ALLOWED,
                "the router itself receives from its management node",
            ));
        }
        // A waypoint takes what is in the phase before the one that it sends to.
        let waypoint = waypoint(&source.capabilities).map(|phase| phase - 1);
        let address = self.use_address(text, |settings| waypoint.unwrap_or(settings.egress_phase))?;
        let attachment = |_| Attachment {
            source: Some(source),
            target: Some(attach.target.unwrap_or(Target::Node(TargetNode::default()))),
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            max_message_size: 0,
        };
        let mut egress = Egress::new(attach.snd_settle_mode);
        egress.progress = self.now;
        let direction = Direction::Out(egress);
        let Some(link_key) = self.add_link(key, link, attach, Some(address), direction, attachment) else {
            return Ok(());
        };
        if self.add_receiver(address, link_key) {
            self.hold_until_reported(key);
        }
        Ok(())
    }

    /// Puts a receiver among those of its address: from now on deliveries may go to it. Tells whether it is the
    /// first of this shard.
    pub(super) fn add_receiver(&mut self, address: AddressKey, key: LinkKey) -> bool {
        let mut first = false;
        if let Some(used) = self.addresses.get_mut(address) {
            let place = used.receivers.len();
            used.receivers.push(key);
            first = place == 0;
            if let Some(link) = self.links.get_mut(key) {
                if link.party == Party::Agent {
                    used.in_process += 1;
                }
                link.place = place;
            }
            self.report_receivers(address);
            if first {
                // Other shards' links to this address may be drained so far.
                self.senders_due(Some(address));
            }
        }
        self.graces.push_back((self.now + FIRST_CREDIT_GRACE, key));
        first
    }

    /// The address of that text, in the phase that `phase` chooses by what is configured for it, if it may be
    /// used.
    pub(super) fn use_address(
        &mut self,
        text: &str,
        phase: impl FnOnce(&AddressSettings) -> u8,
    ) -> Result<AddressKey, Fault> {
        let snapshot = self.routes.load();
        let address = Address::parse(text, &snapshot.router_id);
        let settings = snapshot.settings(address);
        if settings.treatment == Treatment::Unavailable {
            return Err(Fault::new(Condition::NOT_FOUND, "Node not found"));
        }
        Ok(self.addresses.find_or_insert(address.in_phase(phase(&settings)), snapshot))
    }

    pub(super) fn add_link<'a>(
        &mut self,
        key: ConnectionKey,
        link: LinkRef,
        attach: &Attach<'_>,
        address: Option<AddressKey>,
        direction: Direction,
        attachment: impl FnOnce(u64) -> Attachment<'a>,
    ) -> Option<LinkKey> {
        let slot = self.connections.get_mut(key)?;
        let attachment = attachment(slot.max_message_size);
        if let Err(fault) = slot.engine.accept_link(link, &attachment, &mut slot.out) {
            self.end_session(key, link.channel, fault);
            if let Some(address) = address {
                // It may have been put in for this link.
                self.addresses.forget_unused(address);
            }
            return None;
        }
        let (id, link_key) = self.insert_link(key, |id, slot| RouterLink {
            id,
            connection: key,
            link,
            address,
            remote: false,
            party: slot.party,
            auto_link: None,
            place: 0,
            max_message_size: attach.max_message_size.unwrap_or(0),
            capacity: slot.listener.link_capacity,
            direction,
            counters: LinkCounters::default(),
        })?;
        let slot = self.connections.get(key)?;
        if slot.is_internal() {
            return Some(link_key);
        }
        log!(
            Module::RouterCore,
            Level::Info,
            "[C{}][L{id}] Link attached: dir={} source={} target={}",
            slot.id,
            direction_name(attach.role),
            describe_source(attachment.source),
            describe_target(attachment.target)
        );
        Some(link_key)
    }

    /// Puts a link of a connection in, which counts it. Returns its number in logs, which `make` is told, and its key.
    pub(super) fn insert_link(
        &mut self,
        connection: ConnectionKey,
        make: impl FnOnce(u64, &Slot) -> RouterLink,
    ) -> Option<(u64, LinkKey)> {
        let slot = self.connections.get_mut(connection)?;
        let id = self.next_link_id;
        self.next_link_id += self.id_step;
        let mut made = make(id, slot);
        made.direction.set_logged(slot.logs_messages());
        let (link, role) = (made.link, made.direction.peer_role());
        let key = self.links.insert(made);
        if let Some(governed) = &mut slot.governed {
            governed.count_link(role, true);
        }
        slot.engine.set_user(link, Some(key.into()));
        slot.links += 1;
        self.outside_links += usize::from(slot.party.is_outside());
        Some((id, key))
    }

    /// Counts a receiver as a destination of its address, if it isn't yet. (Those of other shards are counted
    /// there, and known from the snapshot.)
    pub(super) fn become_destination(&mut self, key: LinkKey) {
        let Some(link) = self.links.get_mut(key).filter(|link| !link.remote) else { return };
        let address = link.address;
        let Some(egress) = link.egress_mut() else { return };
        if std::mem::replace(&mut egress.destination, true) {
            return;
        }
        let Some((key, used)) = address.and_then(|key| Some((key, self.addresses.get_mut(key)?))) else {
            return;
        };
        used.destinations += 1;
        if used.destinations == 1 {
            self.senders_due(address);
            self.report_receivers(key);
        }
    }

    /// The credit of all senders to an address is to be looked at.
    pub(super) fn senders_due(&mut self, address: Option<AddressKey>) {
        let senders =
            address.and_then(|address| self.addresses.get(address)).map(|address| address.senders.clone());
        for sender in senders.unwrap_or_default() {
            self.credit_due(sender);
        }
    }

    pub(super) fn expire_graces(&mut self) {
        while let Some(&(deadline, key)) = self.graces.front()
            && deadline <= self.now
        {
            self.graces.pop_front();
            self.become_destination(key);
        }
    }

    /// Puts a sender among those of its address.
    pub(super) fn add_sender(&mut self, address: AddressKey, key: LinkKey) {
        if let Some(address) = self.addresses.get_mut(address) {
            if let Some(link) = self.links.get_mut(key) {
                link.place = address.senders.len();
            }
            address.senders.push(key);
        }
    }

    /// Deals with a link that is gone and the deliveries that it leaves behind.
    pub(super) fn link_lost(
        &mut self,
        key: LinkKey,
        unsettled: Vec<(Serial, Unsettled<Peer>)>,
        cause: &Cause<'_>,
    ) {
        let Some(mut link) = self.links.remove(key) else { return };
        self.outside_links -= usize::from(link.party.is_outside());
        if let Some(slot) = self.connections.get_mut(link.connection) {
            slot.links = slot.links.saturating_sub(1);
            if let Some(governed) = &mut slot.governed {
                governed.count_link(link.direction.peer_role(), false);
            }
        }
        match &mut link.direction {
            Direction::In(ingress) => {
                let current = ingress.current.take();
                self.give_up_current(current);
                for (_, unsettled) in unsettled {
                    self.sender_failed(unsettled.data);
                }
            }
            Direction::Out(egress) => {
                let egress = std::mem::take(egress);
                let counted = egress.destination;
                self.receiver_lost(key, egress, unsettled, &mut link.counters);
                if counted {
                    self.destination_lost(link.address);
                }
            }
        }
        if let Some(address) = link.address {
            let role = match link.direction {
                Direction::In(_) => Use::Sender,
                Direction::Out(_) if link.remote => Use::Remote,
                Direction::Out(_) => Use::Receiver,
            };
            if role == Use::Receiver {
                if link.party == Party::Agent
                    && let Some(used) = self.addresses.get_mut(address)
                {
                    used.in_process -= 1;
                }
                self.report_receiver_gone(address);
            }
            let moved = self.addresses.remove_link(address, key, role, link.place);
            if let Some(moved) = moved.and_then(|moved| self.links.get_mut(moved)) {
                moved.place = link.place;
            }
            let was_last = self.addresses.get(address).is_some_and(|address| address.receivers.is_empty());
            if role == Use::Receiver && was_last {
                self.senders_due(Some(address));
            }
        }
        self.log_link_lost(&link, cause);
        if let Some(auto_link) = link.auto_link {
            self.auto_link_lost(auto_link, cause);
        }
    }

    fn destination_lost(&mut self, address: Option<AddressKey>) {
        let Some(used) = address.and_then(|address| self.addresses.get_mut(address)) else { return };
        used.destinations -= 1;
        if used.destinations == 0 {
            self.senders_due(address);
        }
    }

    fn log_link_lost(&self, link: &RouterLink, cause: &Cause<'_>) {
        let Some(slot) = self.connections.get(link.connection).filter(|slot| !slot.is_internal()) else {
            return;
        };
        let LinkCounters {
            deliveries,
            presettled,
            dropped_presettled,
            accepted,
            rejected,
            released,
            modified,
            delayed: _,
            rate: _,
        } = link.counters;
        log!(
            Module::RouterCore,
            Level::Info,
            "[C{}][L{}] Link {}: del={deliveries} presett={presettled} psdrop={dropped_presettled} \
             acc={accepted} rej={rejected} rel={released} mod={modified}{}",
            slot.id,
            link.id,
            if slot.over { "lost" } else { "detached" },
            cause.describe().map_or_else(String::new, |error| format!(" error={error}"))
        );
    }
}

fn direction_name(peer_role: Role) -> &'static str {
    match peer_role {
        Role::Sender => "in",
        Role::Receiver => "out",
    }
}

fn terminus_address<'a>(attach: &Attach<'a>) -> Option<&'a str> {
    match attach.role {
        Role::Receiver => attach.source?.address,
        Role::Sender => match attach.target? {
            Target::Node(node) => node.address,
            Target::Coordinator(_) => Some("$coordinator"),
        },
    }
}

pub(super) fn describe_source(source: Option<Source<'_>>) -> String {
    source.map_or_else(
        || "{<none>}".to_owned(),
        |source| {
            let dynamic = if source.dynamic { "(dyn)" } else { "" };
            format!("{{{dynamic}{} expire:{}}}", source.address.unwrap_or("<none>"), source.expiry_policy.0)
        },
    )
}

pub(super) fn describe_target(target: Option<Target<'_>>) -> String {
    match target {
        None => "{<none>}".to_owned(),
        Some(Target::Coordinator(_)) => "{$coordinator}".to_owned(),
        Some(Target::Node(node)) => {
            let dynamic = if node.dynamic { "(dyn)" } else { "" };
            format!("{{{dynamic}{} expire:{}}}", node.address.unwrap_or("<none>"), node.expiry_policy.0)
        }
    }
}
