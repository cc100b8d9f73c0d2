//! The shards, the networks around them, and the clients.

use crate::client::Client;
use ringmain::base::id::{ListenerId, ShardId};
use ringmain::base::time::Instant;
use ringmain::engine::Settings;
use ringmain::io::driver::Driver as _;
use ringmain::io::sim::{SimDriver, SimNetwork, SimOptions};
use ringmain::log;
use ringmain::rcu::Publisher;
use ringmain::routing::{AddressSettings, Consumer, Snapshot, Treatment};
use ringmain::shard::mailbox::{Change, Mailbox, Message, Report};
use ringmain::shard::seat::{Presence, seats};
use ringmain::shard::slots::ListenerSettings;
use ringmain::shard::turn::{Others, Shard};
use ringmain::shard::{Party, ShardHoldings};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, channel};

pub const HANDSHAKE: Duration = Duration::from_secs(10);
pub const IDLE: Duration = Duration::from_secs(16);

pub struct World {
    pub networks: Vec<SimNetwork>,
    pub shards: Vec<Shard<SimDriver>>,
    pub mailboxes: Vec<Mailbox<SimDriver>>,
    presences: Arc<[Presence]>,
    registry: Registry,
    pub clients: Vec<Client>,
    pub seed: u64,
}

/// The settings of the shard's listener.
pub fn listener() -> ListenerSettings {
    ListenerSettings {
        engine: Settings {
            container_id: "R".to_owned(),
            idle_timeout: Some(IDLE),
            handshake_timeout: Some(HANDSHAKE),
            ..Settings::default()
        },
        link_capacity: 250,
        strip_in: true,
        strip_out: true,
        ..ListenerSettings::default()
    }
}

fn quiet_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let nothing = log::ModuleSettings {
            module: log::Module::Default,
            enable: Some(log::Levels::NONE),
            include_timestamp: None,
            include_source: None,
            destination: None,
        };
        log::apply(&log::Settings { is_utc: true, time_format: None, modules: vec![nothing] })
            .expect("to log nothing");
    });
}

/// What the control thread does for several shards: puts their reports into the snapshot, publishes it, and
/// tells them. It takes its time.
struct Registry {
    snapshot: Snapshot,
    publisher: Publisher<Snapshot>,
    reports: Receiver<Report>,
    random: fastrand::Rng,
    /// What wasn't told yet: to which shard, and what.
    untold: VecDeque<(usize, Message<SimDriver>)>,
}

impl Registry {
    /// Does some of what there is to do; whether anything is left.
    fn work(&mut self, mailboxes: &[Mailbox<SimDriver>]) -> bool {
        if self.random.bool() {
            return !self.reports.is_empty() || !self.untold.is_empty();
        }
        let mut keys: Vec<Arc<str>> = Vec::new();
        let mut published = Vec::new();
        while let Ok(report) = self.reports.try_recv() {
            for change in report.changes {
                let Change { key, receivers, destinations } = change;
                self.snapshot.set_consumer(&key, Consumer { shard: report.shard, receivers, destinations });
                keys.push(key.into());
            }
            published.push((usize::from(report.shard.0), report.sequence));
            if self.random.u8(0..3) == 0 {
                break;
            }
        }
        if !published.is_empty() {
            self.publisher.publish(self.snapshot.clone());
            let keys: Arc<[Arc<str>]> = keys.into();
            let changed = (0..mailboxes.len()).map(|shard| (shard, Message::Changed(keys.clone())));
            self.untold.extend(changed);
            self.untold
                .extend(published.into_iter().map(|(shard, sequence)| (shard, Message::Published(sequence))));
        }
        for _ in 0..self.random.usize(0..4) {
            let Some((shard, message)) = self.untold.pop_front() else { break };
            assert!(mailboxes[shard].send(message).is_ok(), "a mailbox that is emptied has room");
        }
        self.publisher.reclaim();
        !self.reports.is_empty() || !self.untold.is_empty()
    }
}

fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::new("R", Treatment::Balanced);
    for (pattern, treatment) in
        [("m/#", Treatment::Multicast), ("c/#", Treatment::Closest), ("u/#", Treatment::Unavailable)]
    {
        snapshot.configure(pattern, AddressSettings::of(treatment));
    }
    snapshot
}

impl World {
    pub fn new(seed: u64, options: SimOptions) -> Self {
        Self::with_listener(seed, options, listener())
    }

    /// One shard with one listener, and a network that does as `options` say. Addresses that begin with `m`
    /// are multicast, with `c` closest, with `u` unavailable; all others are balanced.
    pub fn with_listener(seed: u64, options: SimOptions, listener: ListenerSettings) -> Self {
        Self::with_shards(1, seed, options, listener)
    }

    /// Several shards, each with a network of its own, that keep the connections that they accept.
    pub fn with_shards(count: usize, seed: u64, options: SimOptions, listener: ListenerSettings) -> Self {
        let own = |shard| ListenerSettings { shard: Some(shard), ..listener.clone() };
        Self::build(count, seed, options, own)
    }

    /// Several shards, each with a network of its own. Whichever accepts a connection, it goes to the shard that
    /// the listener names, or to the one with the fewest.
    pub fn with_placing(count: usize, seed: u64, options: SimOptions, listener: ListenerSettings) -> Self {
        Self::build(count, seed, options, |_| listener.clone())
    }

    fn build(
        count: usize,
        seed: u64,
        options: SimOptions,
        listener: impl Fn(ShardId) -> ListenerSettings,
    ) -> Self {
        if !crate::seeds::is_traced() {
            quiet_log();
        }
        let networks: Vec<SimNetwork> = (0..count as u64)
            .map(|number| SimNetwork::with_options(seed + (number << 32), options))
            .collect();
        networks.iter().for_each(|network| network.hold_clock(true));
        let drivers: Vec<SimDriver> = networks.iter().map(SimNetwork::driver).collect();
        let (mailboxes, receivers): (Vec<_>, Vec<_>) =
            drivers.iter().map(|driver| Mailbox::new(driver.waker())).unzip();
        let doorbells: Vec<_> = drivers.iter().map(|driver| driver.doorbell().expect("a doorbell")).collect();
        let snapshot = snapshot();
        let (publisher, seats) = seats(count, snapshot.clone());
        let presences = seats[0].presences.clone();
        let (report, reports) = channel(1024);
        let mut shards: Vec<Shard<SimDriver>> = Vec::new();
        for ((driver, seat), receiver) in drivers.into_iter().zip(seats).zip(receivers) {
            let others = Others {
                doorbells: doorbells.clone(),
                mailboxes: mailboxes.clone(),
                reports: report.clone(),
            };
            let listener = listener(seat.id);
            shards.push(Shard::new(driver, seat, others, vec![listener], receiver));
        }
        for _ in 0..1000 {
            if shards.iter().all(Shard::is_linked) {
                break;
            }
            shards.iter_mut().for_each(|shard| shard.turn().expect("the simulated driver doesn't fail"));
        }
        assert!(shards.iter().all(Shard::is_linked), "shards find each other");
        for (shard, network) in shards.iter_mut().zip(&networks) {
            shard.listen(ListenerId(0), network.listener()).expect("to listen");
        }
        let random = fastrand::Rng::with_seed(seed);
        let registry = Registry { snapshot, publisher, reports, random, untold: VecDeque::new() };
        Self { networks, shards, mailboxes, presences, registry, clients: Vec::new(), seed }
    }

    pub fn now(&self) -> Instant {
        self.networks[0].now()
    }

    /// A client that connects now, to the first shard.
    pub fn connect(&mut self, settings: Settings) -> usize {
        self.connect_to(0, settings)
    }

    pub fn connect_to(&mut self, shard: usize, settings: Settings) -> usize {
        let index = self.clients.len();
        let peer = self.networks[shard].connect(ListenerId(0));
        let seed = self.seed.wrapping_mul(1000).wrapping_add(index as u64);
        self.clients.push(Client::new(&format!("client{index}"), peer, settings, seed, self.now()));
        index
    }

    fn is_idle(&self) -> bool {
        self.networks.iter().all(SimNetwork::is_idle)
    }

    /// One turn of each shard, then one of each client. Whether anything happens.
    pub fn turn(&mut self) -> bool {
        let was_idle = self.is_idle();
        let before = self.now();
        for shard in &mut self.shards {
            shard.turn().expect("the simulated driver doesn't fail");
        }
        // The shards have one clock in common.
        let latest = self.networks.iter().map(SimNetwork::now).max().expect("a network");
        for network in &self.networks {
            network.advance(latest.since(network.now()));
        }
        if !self.is_idle() && self.now() == before {
            // What comes next may lie behind a timer of the shard, for which a held clock doesn't move.
            self.networks.iter().for_each(|network| network.advance(Duration::from_micros(20)));
        }
        let has_news = self.registry.work(&self.mailboxes);
        let now = self.now();
        let mut has_worked = false;
        for client in &mut self.clients {
            has_worked |= client.work(now);
        }
        // What was received may wait in a shard for a later turn.
        has_worked
            || has_news
            || !was_idle
            || !self.is_idle()
            || self.networks.iter().any(|network| network.buffers_held() > 0)
    }

    /// Turns until nothing is under way; the clock moves only by the network's latency.
    pub fn settle(&mut self) {
        // A turn may leave something to do for the next without an event of the network; between shards it
        // takes a few there and back.
        let enough = if self.shards.len() == 1 { 3 } else { 20 };
        let mut quiet = 0;
        for _ in 0..400_000 {
            quiet = if self.turn() { 0 } else { quiet + 1 };
            if quiet == enough {
                return;
            }
        }
        for client in &self.clients {
            eprintln!(
                "{}: unreceived {}, came {}, went {}, over {:?}",
                client.name,
                client.peer.unreceived(),
                client.peer.received_total(),
                client.peer.sent_total(),
                client.closed
            );
        }
        panic!("the world never comes to rest: {:?}, idle: {}", self.holdings(), self.is_idle());
    }

    /// Lets `time` pass in steps, with all timers on both sides.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now() + time;
        while self.now() < end {
            self.settle();
            let step = Duration::from_millis(250).min(end.since(self.now()));
            self.networks.iter().for_each(|network| network.advance(step));
            let now = self.now();
            self.clients.iter_mut().for_each(|client| client.expire(now));
        }
        self.settle();
    }

    /// What the shards hold together, but for their connections with each other.
    pub fn holdings(&self) -> ShardHoldings {
        let mut sum = ShardHoldings::default();
        for shard in &self.shards {
            let holdings = shard.core().holdings();
            sum.connections += holdings.connections - (self.shards.len() - 1);
            sum.links += holdings.links;
            sum.addresses += holdings.addresses;
            sum.fan_outs += holdings.fan_outs;
            sum.waiting += holdings.waiting;
            sum.waiting_bytes += holdings.waiting_bytes;
            sum.output_bytes += holdings.output_bytes;
            sum.partial_bytes += holdings.partial_bytes;
        }
        sum
    }

    /// Settled deliveries that the shards have dropped.
    pub fn dropped(&self) -> u64 {
        let dropped = |shard: &Shard<SimDriver>| {
            Party::ALL.map(|party| shard.core().counters(party).dropped_presettled).iter().sum::<u64>()
        };
        self.shards.iter().map(dropped).sum()
    }

    /// Closes all clients in order, and checks that the shard holds nothing afterwards.
    pub fn close_all(&mut self) {
        let now = self.now();
        self.clients.iter_mut().for_each(|client| client.close(now));
        self.settle();
        self.expect_empty();
    }

    /// How many connections each shard has by what all shards see of it, those on their way to it included.
    pub fn counts(&self) -> Vec<u32> {
        self.presences.iter().map(|presence| presence.connections.load(Ordering::Relaxed)).collect()
    }

    pub fn expect_empty(&self) {
        let each: Vec<ShardHoldings> = self.shards.iter().map(|shard| shard.core().holdings()).collect();
        assert_eq!(self.holdings(), ShardHoldings::default(), "the shards are empty: {each:#?}");
        assert_eq!(self.counts(), vec![0; self.shards.len()], "no connection is counted");
        for network in &self.networks {
            assert_eq!(network.connections(), 0, "all connections are closed");
            assert_eq!(network.buffers_held(), 0, "all buffers are back");
        }
    }
}
