//! What a shard tells management of itself.
//!
//! Management asks over the mailbox and is answered with copies: what a shard counts, its connections, links
//! or addresses. A shard looks at a bounded number of places of its tables in a turn and goes on in the next
//! one, which doesn't block meanwhile; so a survey of a hundred thousand links delays no message by more than
//! a few microseconds. What is attached or goes while a survey is under way may be in it or not.
//!
//! # Cost
//! Nothing while nobody asks. A place costs about a tenth of a microsecond, and the copies of names.

use super::links::{Direction, LinkCounters, RouterLink};
use super::meters::Meters;
use super::neighbours::settings;
use super::slots::{ConnectionRole, ListenerSettings, Origin, SharedSettings, Slot};
use super::{Core, Party, ShardCounters};
use crate::base::buffer::PoolUsage;
use crate::base::id::{ConnectionKey, ShardId};
use crate::base::limits::{REPLIES_MAX, SURVEY_PLACES_PER_TURN_MAX};
use crate::base::time::Instant;
use crate::engine::sasl::Encryption;
use crate::engine::{Settings, Side};
use crate::routing::{AddressCounters, AddressSettings, LocalAddress};
use std::time::Duration;
use tokio::sync::oneshot;

/// What management asks a shard.
#[derive(Debug)]
pub struct Survey {
    /// What of.
    pub subject: Subject,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Findings>,
}

/// What a survey is about. [`Totals`] come with each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// The totals alone.
    Totals,
    /// Connections with clients and brokers.
    Connections,
    /// Their links.
    Links,
    /// Addresses in use.
    Addresses,
    /// What the shard measures of itself, and its links in numbers.
    Meters,
    /// Nothing but the totals: the log is told of links that are stuck or blocked. From now on they are after this
    /// time without settlement or credit.
    Stuck(Duration),
}

/// What a shard answers.
#[derive(Debug, Default)]
pub struct Findings {
    /// The shard.
    pub shard: ShardId,
    /// What it counts.
    pub totals: Totals,
    /// What was asked for of these, in no particular order.
    pub connections: Vec<ConnectionFacts>,
    /// The same.
    pub links: Vec<LinkFacts>,
    /// The same.
    pub addresses: Vec<AddressFacts>,
    /// What it measures; `None` unless that was asked for.
    pub meters: Option<Box<Meters>>,
    /// Its links in numbers; nothing unless that was asked for.
    pub load: Load,
}

/// What the links of a shard with the outside have at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// Deliveries that wait on outgoing links.
    pub undelivered: u64,
    /// Deliveries on outgoing links that aren't settled.
    pub unsettled: u64,
    /// Deliveries that wait, or aren't settled, for too long.
    pub stuck: u64,
    /// Links whose receiver has given no credit for long.
    pub blocked_links: u64,
}

impl Load {
    /// Counts a link.
    fn count(&mut self, link: &LinkState) {
        if !link.is_incoming {
            self.undelivered += u64::from(link.undelivered);
            self.unsettled += u64::from(link.unsettled);
        }
        self.stuck += link.stuck;
        self.blocked_links += u64::from(link.is_blocked);
    }

    /// Adds that of another shard.
    pub fn add(&mut self, other: Self) {
        let Self { undelivered, unsettled, stuck, blocked_links } = other;
        self.undelivered += undelivered;
        self.unsettled += unsettled;
        self.stuck += stuck;
        self.blocked_links += blocked_links;
    }
}

/// What a shard counts, and how much it has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Connections with clients and brokers.
    pub connections: u64,
    /// Their links.
    pub links: u64,
    /// Deliveries of clients and to them, with their outcomes.
    pub clients: ShardCounters,
    /// The same of brokers.
    pub containers: ShardCounters,
    /// Settled deliveries dropped, whoever sent them.
    pub dropped_presettled: u64,
    /// Deliveries that took more than a second to be settled, and those that took more than ten.
    pub delayed: [u64; 2],
    /// Peers that weren't who they said.
    pub authentication_failures: u64,
    /// TLS handshakes that came to nothing.
    pub handshake_failures: u64,
    /// Connections closed as soon as they came, since too many weren't open yet.
    pub refused_half_open: u64,
    /// Payload that stays here for now, in bytes.
    pub held_bytes: u64,
    /// Its buffers, by size.
    pub pools: [Option<PoolUsage>; 2],
}

/// A connection with a client or a broker.
#[derive(Clone, Debug)]
pub struct ConnectionFacts {
    /// The shard.
    pub shard: ShardId,
    /// By which the shard finds it.
    pub key: ConnectionKey,
    /// Its number.
    pub id: u64,
    /// The peer's address, HOST:PORT.
    pub host: Box<str>,
    /// Which side opened it: `in` or `out`.
    pub direction: &'static str,
    /// What it is for.
    pub role: ConnectionRole,
    /// The peer's container-id.
    pub container: Box<str>,
    /// The properties of the peer's open, encoded; empty: none.
    pub properties: Box<[u8]>,
    /// The SASL mechanism that the peers went through; `None`: none.
    pub mechanism: Option<&'static str>,
    /// The peer's name: `anonymous` if it showed none.
    pub user: Box<str>,
    /// Whether it is encrypted.
    pub is_encrypted: bool,
    /// How this router encrypts it; `None`: it doesn't.
    pub encryption: Option<Encryption>,
    /// The version of the sslProfile that it was made with.
    pub tls_ordinal: Option<u64>,
    /// Whether both have opened it.
    pub is_open: bool,
    /// How long ago the peer's open came.
    pub uptime: Duration,
    /// How long ago a delivery last came or went; `None`: none has.
    pub idle: Option<Duration>,
    /// Whether its frames are logged, whatever the log's levels are.
    pub is_traced: bool,
}

/// A link of such a connection.
#[derive(Clone, Debug)]
pub struct LinkFacts {
    /// Its number.
    pub id: u64,
    /// Its connection's number.
    pub connection_id: u64,
    /// Its name.
    pub name: Box<str>,
    /// Whether the peer sends on it.
    pub is_incoming: bool,
    /// Its address's key; `None`: an anonymous sender.
    pub address: Option<Box<str>>,
    /// Deliveries that are reasonable to be outstanding.
    pub capacity: u32,
    /// Deliveries that wait here.
    pub undelivered: u32,
    /// Deliveries that aren't settled.
    pub unsettled: u32,
    /// Deliveries that wait, or aren't settled, for too long.
    pub stuck: u64,
    /// The credit that the sending side has left.
    pub credit: u32,
    /// As receiver: for how long it has had no credit.
    pub without_credit: Duration,
    /// Whether its receiver has given no credit for so long that somebody should look at it.
    pub is_blocked: bool,
    /// Settlements in a second, lately.
    pub settle_rate: u32,
    /// What it counts.
    pub counters: LinkCounters,
}

/// An address in use on a shard.
#[derive(Clone, Debug)]
pub struct AddressFacts {
    /// The address with its class's letter.
    pub key: Box<str>,
    /// What the configuration says of it.
    pub settings: AddressSettings,
    /// Receivers here that are clients.
    pub subscribers: u64,
    /// Receivers here in this process.
    pub in_process: u32,
    /// What it counts.
    pub counters: AddressCounters,
}

/// What changes of a link all the time.
struct LinkState {
    is_incoming: bool,
    undelivered: u32,
    unsettled: u32,
    stuck: u64,
    credit: u32,
    without_credit: Duration,
    is_blocked: bool,
}

/// A survey under way.
pub(super) struct OngoingSurvey {
    survey: Survey,
    /// The place to go on at.
    place: usize,
    findings: Findings,
}

/// What the shard's end of the management agent's connection says and keeps to. Nobody times it out.
fn agent_settings(container_id: &str) -> SharedSettings {
    let neighbour = settings();
    SharedSettings::new(ListenerSettings {
        engine: Settings { container_id: container_id.to_owned(), ..(*neighbour.engine).clone() },
        link_capacity: REPLIES_MAX,
        ..(*neighbour.listener).clone()
    })
}

impl Core {
    /// Makes a slot for the management agent's connection.
    pub(super) fn accept_agent(&mut self) -> ConnectionKey {
        let settings = agent_settings(&self.router_id);
        let key = self.add_slot(Origin::Agent, &settings, Side::Acceptor);
        self.agent = Some(key);
        key
    }

    /// Takes a survey, which is done in this turn and the following ones.
    pub(super) fn begin_survey(&mut self, survey: Survey) {
        let findings = Findings { shard: self.shard, ..Findings::default() };
        self.surveys.push_back(OngoingSurvey { survey, place: 0, findings });
    }

    /// Whether a survey is under way.
    pub(super) fn is_surveying(&self) -> bool {
        !self.surveys.is_empty()
    }

    /// Goes on with the surveys, as far as this turn's share of places goes.
    pub(super) fn survey(&mut self) {
        let mut left = SURVEY_PLACES_PER_TURN_MAX;
        while left > 0
            && let Some(mut ongoing) = self.surveys.pop_front()
        {
            if ongoing.survey.reply.is_closed() {
                continue;
            }
            let start = ongoing.place;
            let end = start + left;
            let findings = &mut ongoing.findings;
            let places = match ongoing.survey.subject {
                Subject::Totals => 0,
                Subject::Connections => {
                    let found = self.connections.at_places(start..end);
                    findings
                        .connections
                        .extend(found.filter_map(|(key, slot)| self.connection_facts(key, slot)));
                    self.connections.places()
                }
                Subject::Links => {
                    let found = self.links.at_places(start..end);
                    findings.links.extend(found.filter_map(|(_, link)| self.link_facts(link)));
                    self.links.places()
                }
                Subject::Addresses => {
                    findings.addresses.extend(self.addresses.at_places(start..end).map(address_facts));
                    self.addresses.places()
                }
                Subject::Meters => {
                    for (_, link) in self.links.at_places(start..end) {
                        if let Some(state) = self.link_state(link) {
                            findings.load.count(&state);
                        }
                    }
                    self.links.places()
                }
                Subject::Stuck(after) => {
                    self.stuck_after = after;
                    self.tell_stuck(start..end);
                    self.links.places()
                }
            };
            ongoing.place = end;
            if end < places {
                self.surveys.push_front(ongoing);
                return;
            }
            left -= places.saturating_sub(start).min(left);
            let OngoingSurvey { survey, mut findings, .. } = ongoing;
            findings.totals = self.totals();
            match survey.subject {
                Subject::Meters => findings.meters = Some(Box::new(self.measuring.meters.clone())),
                Subject::Totals
                | Subject::Connections
                | Subject::Links
                | Subject::Addresses
                | Subject::Stuck(_) => {}
            }
            // Whoever asked may have stopped waiting.
            let _gone = survey.reply.send(findings);
        }
    }

    fn totals(&self) -> Totals {
        let internal = self.neighbours.iter().flatten().count() + usize::from(self.agent.is_some());
        Totals {
            connections: (self.connections.len() - internal) as u64,
            links: self.outside_links as u64,
            clients: self.counters(Party::Client),
            containers: self.counters(Party::Container),
            dropped_presettled: self.counters.iter().map(|counters| counters.dropped_presettled).sum(),
            delayed: self.delayed,
            authentication_failures: self.authentication_failures,
            handshake_failures: self.handshake_failures,
            refused_half_open: self.refused_half_open,
            held_bytes: self.held_bytes as u64,
            pools: self.pool.usage().map(Some),
        }
    }

    fn connection_facts(&self, key: ConnectionKey, slot: &Slot) -> Option<ConnectionFacts> {
        if slot.is_internal() || slot.over || !slot.engine.is_open_received() {
            return None;
        }
        let has_delivery = slot.last_delivery != Instant::default();
        Some(ConnectionFacts {
            shard: self.shard,
            key,
            id: slot.id,
            host: slot.host().into(),
            direction: slot.direction(),
            role: slot.listener.role,
            container: slot.container.clone(),
            properties: slot.properties.clone(),
            mechanism: slot.mechanism(),
            user: slot.user().into(),
            is_encrypted: slot.engine.transport().is_encrypted,
            encryption: slot.engine.transport().encryption,
            tls_ordinal: slot.tls_ordinal(),
            is_open: slot.engine.is_open(),
            uptime: self.now.since(slot.opened_at),
            idle: has_delivery.then(|| self.now.since(slot.last_delivery)),
            is_traced: slot.trace,
        })
    }

    fn link_facts(&self, link: &RouterLink) -> Option<LinkFacts> {
        if !link.party.is_outside() {
            return None;
        }
        let slot = self.connections.get(link.connection)?;
        let LinkState { is_incoming, undelivered, unsettled, stuck, credit, without_credit, is_blocked } =
            self.link_state(link)?;
        Some(LinkFacts {
            id: link.id,
            connection_id: slot.id,
            name: (&*slot.engine.link(link.link)?.name).into(),
            is_incoming,
            address: link.address.and_then(|key| self.addresses.get(key)).map(|address| address.key().into()),
            capacity: link.capacity,
            undelivered,
            unsettled,
            stuck,
            credit,
            without_credit,
            is_blocked,
            settle_rate: link.counters.rate.per_second(self.second),
            counters: link.counters,
        })
    }

    /// What a link with the outside has at the moment. Copies no name.
    fn link_state(&self, link: &RouterLink) -> Option<LinkState> {
        if !link.party.is_outside() {
            return None;
        }
        let state = self.connections.get(link.connection)?.engine.link(link.link)?;
        let (undelivered, unsettled) = match &link.direction {
            Direction::In(ingress) => (u32::from(ingress.current.is_some()), state.unsettled),
            Direction::Out(egress) => (egress.available(), egress.unsettled),
        };
        let without_credit = self.without_credit(link);
        Some(LinkState {
            is_incoming: matches!(link.direction, Direction::In(_)),
            undelivered,
            unsettled,
            stuck: self.stuck(link),
            credit: state.credit,
            without_credit,
            is_blocked: without_credit >= self.stuck_after,
        })
    }
}

/// What is told of an address.
fn address_facts(address: &LocalAddress) -> AddressFacts {
    AddressFacts {
        key: address.key().into(),
        settings: address.settings,
        subscribers: (address.receivers.len() as u64).saturating_sub(address.in_process.into()),
        in_process: address.in_process,
        counters: address.counters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::{Key, LinkKey};
    use crate::io::driver::Driver as _;
    use crate::io::sim::{SimDriver, SimNetwork};
    use crate::routing::{Address, Snapshot, Treatment};
    use crate::shard::mailbox::{Mailbox, Message};
    use crate::shard::turn::Shard;

    const ADDRESSES: usize = 3 * SURVEY_PLACES_PER_TURN_MAX + 10;

    /// A shard with many addresses, that a receiver each uses.
    fn crowded() -> (Shard<SimDriver>, Mailbox<SimDriver>) {
        let network = SimNetwork::new(1);
        network.hold_clock(true);
        let driver = network.driver();
        let (mailbox, letters) = Mailbox::new(driver.waker());
        let mut shard = Shard::alone(driver, Snapshot::new("R", Treatment::Balanced), Vec::new(), letters);
        shard.turn().expect("the simulated driver doesn't fail");
        for number in 0..ADDRESSES {
            let text = format!("q/{number}");
            let core = &mut shard.core;
            let key = core.addresses.find_or_insert(Address::parse(&text, "R"), core.routes.load());
            let link = LinkKey(Key { index: 0, generation: u32::MAX });
            core.addresses.get_mut(key).expect("just put in").receivers.push(link);
        }
        (shard, mailbox)
    }

    fn ask(mailbox: &Mailbox<SimDriver>, subject: Subject) -> oneshot::Receiver<Findings> {
        let (reply, answer) = oneshot::channel();
        assert!(mailbox.send(Message::Survey(Survey { subject, reply })).is_ok());
        answer
    }

    #[test]
    fn a_large_survey_takes_several_turns_that_do_not_wait() {
        let (mut shard, mailbox) = crowded();
        let mut answer = ask(&mailbox, Subject::Addresses);
        for turn in 1..=3 {
            shard.turn().expect("the simulated driver doesn't fail");
            assert!(answer.try_recv().is_err(), "turn {turn}");
            assert!(shard.prepare_wait().is_some(), "there is more to do after turn {turn}");
        }
        shard.turn().expect("the simulated driver doesn't fail");
        let findings = answer.try_recv().expect("all is looked at");
        assert_eq!(findings.addresses.len(), ADDRESSES);
        assert!(findings.addresses.iter().all(|address| address.subscribers == 1));
        assert_eq!(shard.prepare_wait(), None, "now it may sleep");
    }

    #[test]
    fn small_surveys_share_a_turn_and_nobody_waits_for_one_that_nobody_wants() {
        let (mut shard, mailbox) = crowded();
        drop(ask(&mailbox, Subject::Addresses));
        let mut totals = ask(&mailbox, Subject::Totals);
        let mut links = ask(&mailbox, Subject::Links);
        shard.turn().expect("the simulated driver doesn't fail");
        assert_eq!(totals.try_recv().expect("it takes no place").totals.links, 0);
        assert!(links.try_recv().expect("there is none").links.is_empty());
        assert_eq!(shard.prepare_wait(), None);
    }
}
