//! The shard, the network around it, and the clients.

use crate::client::Client;
use crate::seeds::trace;
use ringmain::base::id::ListenerId;
use ringmain::base::time::Instant;
use ringmain::engine::Settings;
use ringmain::io::driver::Driver as _;
use ringmain::io::sim::{SimDriver, SimNetwork, SimOptions};
use ringmain::log;
use ringmain::routing::{AddressSettings, Snapshot, Treatment};
use ringmain::shard::ShardHoldings;
use ringmain::shard::mailbox::Mailbox;
use ringmain::shard::slots::ListenerSettings;
use ringmain::shard::turn::Shard;
use std::sync::Once;
use std::time::Duration;

pub const HANDSHAKE: Duration = Duration::from_secs(10);
pub const IDLE: Duration = Duration::from_secs(16);

pub struct World {
    pub network: SimNetwork,
    pub shard: Shard<SimDriver>,
    pub mailbox: Mailbox<SimDriver>,
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
        shard: None,
        link_capacity: 250,
        max_message_size: 0,
        strip_in: true,
        strip_out: true,
        open_properties: Vec::new(),
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
        log::apply(&log::Settings { is_utc: true, modules: vec![nothing] }).expect("to log nothing");
    });
}

impl World {
    pub fn new(seed: u64, options: SimOptions) -> Self {
        Self::with_listener(seed, options, listener())
    }

    /// A shard with one listener, and a network that does as `options` say. Addresses that begin with `m` are
    /// multicast, with `c` closest, with `u` unavailable; all others are balanced.
    pub fn with_listener(seed: u64, options: SimOptions, listener: ListenerSettings) -> Self {
        if !crate::seeds::is_traced() {
            quiet_log();
        }
        let network = SimNetwork::with_options(seed, options);
        network.hold_clock(true);
        let driver = network.driver();
        let (mailbox, receiver) = Mailbox::new(driver.waker());
        let mut snapshot = Snapshot::new("R", Treatment::Balanced);
        for (pattern, treatment) in
            [("m/#", Treatment::Multicast), ("c/#", Treatment::Closest), ("u/#", Treatment::Unavailable)]
        {
            snapshot.configure(pattern, AddressSettings { treatment, priority: None });
        }
        let mut shard = Shard::alone(driver, snapshot, vec![listener], receiver);
        shard.listen(ListenerId(0), network.listener()).expect("to listen");
        Self { network, shard, mailbox, clients: Vec::new(), seed }
    }

    pub fn now(&self) -> Instant {
        self.network.now()
    }

    /// A client that connects now.
    pub fn connect(&mut self, settings: Settings) -> usize {
        let index = self.clients.len();
        let peer = self.network.connect(ListenerId(0));
        let seed = self.seed.wrapping_mul(1000).wrapping_add(index as u64);
        self.clients.push(Client::new(&format!("client{index}"), peer, settings, seed, self.now()));
        index
    }

    /// One turn of the shard, then one of each client. Whether anything happens.
    pub fn turn(&mut self) -> bool {
        let was_idle = self.network.is_idle();
        let before = self.now();
        self.shard.turn().expect("the simulated driver doesn't fail");
        if !self.network.is_idle() && self.now() == before {
            // What comes next may lie behind a timer of the shard, for which a held clock doesn't move.
            self.network.advance(Duration::from_micros(20));
        }
        let now = self.now();
        let mut has_worked = false;
        for client in &mut self.clients {
            has_worked |= client.work(now);
        }
        // What was received may wait in the shard for a later turn.
        has_worked || !was_idle || !self.network.is_idle() || self.network.buffers_held() > 0
    }

    /// Turns until nothing is under way; the clock moves only by the network's latency.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..400_000 {
            // A turn may leave something to do for the next, without an event of the network.
            quiet = if self.turn() { 0 } else { quiet + 1 };
            if quiet == 3 {
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
        panic!(
            "the world never comes to rest: {:?}, idle: {}, buffers {}",
            self.holdings(),
            self.network.is_idle(),
            self.network.buffers_held()
        );
    }

    /// Lets `time` pass in steps, with all timers on both sides.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now() + time;
        while self.now() < end {
            self.settle();
            let step = Duration::from_millis(250).min(end.since(self.now()));
            self.network.advance(step);
            let now = self.now();
            self.clients.iter_mut().for_each(|client| client.expire(now));
        }
        self.settle();
    }

    pub fn holdings(&self) -> ShardHoldings {
        self.shard.core().holdings()
    }

    /// Closes all clients in order, and checks that the shard holds nothing afterwards.
    pub fn close_all(&mut self) {
        let now = self.now();
        self.clients.iter_mut().for_each(|client| client.close(now));
        self.settle();
        self.expect_empty();
    }

    pub fn expect_empty(&self) {
        trace!("{:?}", self.shard.core().counters());
        assert_eq!(self.holdings(), ShardHoldings::default(), "the shard is empty");
        assert_eq!(self.network.connections(), 0, "all connections are closed");
        assert_eq!(self.network.buffers_held(), 0, "all buffers are back");
    }
}
