//! A shard: the place where engine, routing and input/output meet.
//!
//! One thread owns one [`Shard`](turn::Shard), and nobody else touches what is in it. Each module is one part of what
//! it does with a delivery or a connection:
//!
//! | module | what |
//! |---|---|
//! | `turn` | the loop: completions in, work, output out |
//! | `slots` | the connections |
//! | `events` | what the engine reports, and who deals with it |
//! | `authentication` | finding out who peers are |
//! | `tls` | records between the driver and the engine, handshakes on other threads |
//! | `guard` | what keeps those at bay who haven't shown who they are |
//! | `auto_links` | links that the router attaches by itself, to a broker's nodes |
//! | `failover` | other servers that a peer tells of |
//! | `links` | attaching and losing links; which address they use; who counts as a destination |
//! | `credit` | how much a sender may send |
//! | `front` | the front of a message: priority, annotations, `to` |
//! | `forward` | from an incoming transfer to the outgoing links |
//! | `delay` | deliveries that take long, links that are stuck or blocked |
//! | `queue` | the queue of an outgoing link |
//! | `egress` | what goes into that queue, and what leaves it |
//! | `spare` | memory that is used again |
//! | `payload` | payload that stays here for now, at the charge of who sent it |
//! | `congestion` | settled deliveries that wait for a receiver who takes nothing |
//! | `outcome` | outcomes and settlement, from either end to the other |
//! | `fan_out` | deliveries with several copies |
//! | `activity` | what the shard is doing, for the watchdog |
//! | `idle` | blocking or spinning while there is nothing to do |
//! | `rest` | connections that only keep alive |
//! | `share` | what each connection may have of a turn |
//! | `seat` | its place among the other shards |
//! | `neighbours` | the other shards: hand-off, links to their receivers |
//! | `survey` | what it tells management of itself |
//! | `meters` | what it measures of itself |
//! | `trace` | the frames of a connection, for the log |
//! | `mailbox` | messages from and to other threads |

pub mod activity;
pub mod authentication;
pub mod auto_links;
mod congestion;
mod credit;
pub mod delay;
mod egress;
mod events;
mod failover;
mod fan_out;
mod forward;
mod front;
pub mod guard;
pub mod idle;
mod links;
pub mod mailbox;
mod message_log;
pub mod meters;
mod neighbours;
mod outcome;
mod payload;
mod policy;
mod queue;
mod rest;
pub mod seat;
pub mod share;
pub mod slots;
mod spare;
pub mod survey;
mod timers;
pub mod tls;
mod trace;
pub mod turn;

use crate::base::buffer::BufferPool;
use crate::base::id::{ConnectionKey, FanOutKey, LinkKey, Serial, ShardId};
use crate::base::slab::KeyedSlab;
use crate::base::time::Instant;
use crate::engine::LinkRef;
use crate::engine::sasl::Exchange;
use crate::rcu::Reader;
use crate::routing::{AddressTable, Snapshot};
use auto_links::AutoLinks;
use delay::Second;
use fan_out::FanOut;
use guard::Guard;
use links::RouterLink;
use mailbox::Report;
use meters::Measuring;
use queue::Egress;
use slots::Slot;
use spare::Spare;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use survey::OngoingSurvey;
use timers::Timers;

/// What is kept with an unsettled delivery: where its other end is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// Nowhere: that end is gone, or never was.
    #[default]
    None,
    /// One delivery on another link.
    Delivery(DeliveryRef),
    /// It waits in the queue of an outgoing link, under this sequence number.
    Queued(LinkKey, u64),
    /// One of several copies, or all of them.
    FanOut(FanOutKey, u32),
}

/// One delivery on one link of the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRef {
    /// The connection.
    pub connection: ConnectionKey,
    /// The link in the engine's numbers.
    pub link: LinkRef,
    /// The link in the shard's.
    pub key: LinkKey,
    /// The delivery's number in its session.
    pub delivery_id: Serial,
}

/// Who is at the other end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Party {
    /// A client.
    #[default]
    Client,
    /// A broker or the like (role `route-container`).
    Container,
    /// Another shard of this router.
    Shard,
    /// This router's management agent.
    Agent,
}

impl Party {
    /// Every kind of party.
    pub const ALL: [Self; 4] = [Self::Client, Self::Container, Self::Shard, Self::Agent];

    /// Whether it isn't the router itself: what it does is counted and logged.
    #[inline]
    #[must_use]
    pub const fn is_outside(self) -> bool {
        match self {
            Self::Client | Self::Container => true,
            Self::Shard | Self::Agent => false,
        }
    }
}

/// Where a delivery came from, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The delivery on its incoming link.
    pub delivery: DeliveryRef,
    /// Who sent it.
    pub party: Party,
    /// Whether its sender has settled it: nobody wants its outcome.
    pub settled: bool,
    /// Its message-format.
    pub message_format: u32,
    /// Whether the policy looks at it.
    pub is_governed: bool,
}

/// What a shard counts for one kind of [`Party`]. Plain numbers: only its own thread touches them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShardCounters {
    /// Deliveries that came.
    pub ingress: u64,
    /// Deliveries that went, each copy counted.
    pub egress: u64,
    /// Deliveries that came settled.
    pub presettled: u64,
    /// Settled deliveries that were dropped, each copy counted.
    pub dropped_presettled: u64,
    /// Outcomes told to senders.
    pub accepted: u64,
    /// Outcomes told to senders.
    pub rejected: u64,
    /// Outcomes told to senders.
    pub released: u64,
    /// Outcomes told to senders.
    pub modified: u64,
}

/// What a shard holds, in numbers: all zero when nobody is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardHoldings {
    /// Connections.
    pub connections: usize,
    /// Links that it knows what to do with.
    pub links: usize,
    /// Addresses that a link uses.
    pub addresses: usize,
    /// Deliveries with several copies that aren't settled.
    pub fan_outs: usize,
    /// Deliveries that wait in the queues of outgoing links, or are half sent.
    pub waiting: usize,
    /// The payload of those.
    pub waiting_bytes: usize,
    /// Output of connections that wasn't given to the driver yet.
    pub output_bytes: usize,
    /// Frames of which not all has come.
    pub partial_bytes: usize,
}

/// All of a shard but its driver.
pub struct Core {
    connections: KeyedSlab<ConnectionKey, Slot>,
    links: KeyedSlab<LinkKey, RouterLink>,
    addresses: AddressTable,
    fan_outs: KeyedSlab<FanOutKey, FanOut>,
    routes: Reader<Snapshot>,
    router_id: Arc<str>,
    shard: ShardId,
    /// The connections to the other shards, by their numbers.
    neighbours: Vec<Option<ConnectionKey>>,
    /// What the control thread is told next.
    report: Report,
    /// Connections whose output waits for a report to be published, in order.
    held: VecDeque<(u64, ConnectionKey)>,
    pool: BufferPool,
    spare: Spare,
    now: Instant,
    /// Links to other shards that were given up, of which something has ended.
    retired: Vec<LinkKey>,
    /// Auto-links, and the links attached for them.
    auto_links: AutoLinks,
    /// Connections with something to flush at the end of the turn.
    dirty: Vec<ConnectionKey>,
    /// Incoming links whose credit is to be looked at, at the end of the turn.
    credit_due: Vec<LinkKey>,
    /// Receivers that haven't granted credit yet, and when they count as destinations all the same.
    graces: VecDeque<(Instant, LinkKey)>,
    /// Outgoing links whose settled deliveries wait, and when that counts as congestion.
    stalls: VecDeque<(Instant, LinkKey)>,
    timers: Timers,
    /// Connections at rest that are to be looked at.
    looks: Vec<ConnectionKey>,
    /// Payload that stays here for now.
    held_bytes: usize,
    /// Connections that aren't read because too much is held.
    over_budget: Vec<ConnectionKey>,
    next_tag: u64,
    next_sequence: u64,
    /// The next numbers of a connection and a link in logs. Shards take turns, so that none is given twice.
    next_connection_id: u64,
    next_link_id: u64,
    id_step: u64,
    /// By [`Party`]: of the sender, or where it is about what went, of the receiver.
    counters: [ShardCounters; Party::ALL.len()],
    /// The connection of the management agent, on the shard that has it.
    agent: Option<ConnectionKey>,
    /// Links with the outside.
    outside_links: usize,
    /// The second of [`Core::now`].
    second: Second,
    /// How long a delivery is unsettled, and a link without credit, before it counts as stuck and as blocked.
    stuck_after: Duration,
    /// Deliveries that took more than a second to be settled, and those that took more than ten.
    delayed: [u64; 2],
    /// SASL exchanges with work to do.
    exchanges_due: Vec<(ConnectionKey, Box<dyn Exchange>)>,
    /// TLS handshakes with work to do.
    handshakes_due: Vec<tls::Shake>,
    /// Memory that the records of one connection after the other use.
    record_scratch: tls::Scratch,
    /// TLS handshakes that came to nothing.
    handshake_failures: u64,
    /// Peers that weren't who they said, and connections that were one too many before they were open.
    authentication_failures: u64,
    refused_half_open: u64,
    /// Those who haven't shown who they are, on all shards.
    guard: Arc<Guard>,
    surveys: VecDeque<OngoingSurvey>,
    measuring: Measuring,
}

impl Core {
    fn new(shard: ShardId, shards: usize, routes: Reader<Snapshot>) -> Self {
        let first_id = u64::from(shard.0) + 1;
        let router_id = routes.load().router_id.clone();
        Self {
            connections: KeyedSlab::default(),
            links: KeyedSlab::default(),
            addresses: AddressTable::default(),
            fan_outs: KeyedSlab::default(),
            routes,
            router_id,
            shard,
            neighbours: Vec::new(),
            report: Report { shard, ..Report::default() },
            held: VecDeque::new(),
            pool: BufferPool::default(),
            spare: Spare::default(),
            now: Instant::default(),
            retired: Vec::new(),
            auto_links: AutoLinks::default(),
            dirty: Vec::new(),
            credit_due: Vec::new(),
            graces: VecDeque::new(),
            stalls: VecDeque::new(),
            timers: Timers::default(),
            looks: Vec::new(),
            held_bytes: 0,
            over_budget: Vec::new(),
            next_tag: 0,
            next_sequence: 0,
            next_connection_id: first_id,
            next_link_id: first_id,
            id_step: shards as u64,
            counters: [ShardCounters::default(); Party::ALL.len()],
            agent: None,
            outside_links: 0,
            second: Second::default(),
            stuck_after: delay::STUCK_AFTER,
            delayed: [0; 2],
            exchanges_due: Vec::new(),
            handshakes_due: Vec::new(),
            record_scratch: tls::Scratch::default(),
            handshake_failures: 0,
            authentication_failures: 0,
            refused_half_open: 0,
            guard: Arc::default(),
            surveys: VecDeque::new(),
            measuring: Measuring::default(),
        }
    }

    /// Notes that a connection has something to flush at the end of the turn.
    #[inline]
    fn mark_dirty(&mut self, key: ConnectionKey) {
        if let Some(slot) = self.connections.get_mut(key) {
            slot.mark_dirty(key, &mut self.dirty);
        }
    }

    /// What the shard holds now. It looks at everything: for tests and management, not for each turn.
    #[must_use]
    pub fn holdings(&self) -> ShardHoldings {
        let queues = || self.links.iter().filter_map(|(_, link)| link.egress());
        // Payload that several copies share is there once.
        let payloads: HashMap<*const _, usize> =
            queues().flat_map(Egress::payloads).map(|held| (Rc::as_ptr(held), held.bytes.len())).collect();
        let slots = || self.connections.iter().map(|(_, slot)| slot);
        ShardHoldings {
            connections: self.connections.len(),
            links: self.links.len(),
            addresses: self.addresses.len(),
            fan_outs: self.fan_outs.len(),
            waiting: queues().map(|queue| queue.available() as usize).sum(),
            waiting_bytes: payloads.values().sum(),
            output_bytes: slots().map(|slot| slot.out.pending()).sum(),
            partial_bytes: slots().map(|slot| slot.partial.len()).sum(),
        }
    }

    /// What the shard has counted so far of deliveries that such a party sent or, where it is about what
    /// went, received.
    #[must_use]
    pub fn counters(&self, party: Party) -> ShardCounters {
        self.counters[party as usize]
    }
}
