//! A routing snapshot that is replaced as fast as one thread can, under shards with traffic between them: real threads,
//! real io_urings, real sockets. What goes wrong with memory here, `scripts/asan` sees.
//!
//! The control thread's part is played by the test, which publishes without end instead of when something has
//! changed. How long it runs follows from the number of messages.

#[path = "../support/mod.rs"]
mod support;

use ringmain::base::id::{ListenerId, ShardId};
use ringmain::engine::Settings;
use ringmain::io::driver::Driver as _;
use ringmain::io::uring::{UringDoorbell, UringDriver, UringSizes};
use ringmain::log;
use ringmain::rcu::Publisher;
use ringmain::routing::{Consumer, Snapshot, Treatment};
use ringmain::shard::mailbox::{Mailbox, Message, Report};
use ringmain::shard::seat::{Presence, Seat, seats};
use ringmain::shard::slots::ListenerSettings;
use ringmain::shard::turn::{Others, Shard};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use support::{OpenOptions, Outcomes, Peer, message};
use tokio::sync::mpsc as reports;

/// More than most machines that test have CPUs: shards lose theirs anywhere in a turn.
const SHARDS: usize = 4;
/// Each has a sender on one shard and a receiver on another.
const PAIRS: usize = 4;
/// Addresses that each pair uses, one after the other.
const ROUNDS: usize = 40;
/// Messages to each address. Less than a link's capacity, so that who sends needn't wait for who receives.
const MESSAGES: usize = 100;
/// Addresses that come and go beside those of the pairs.
const OTHERS: u64 = 4096;
/// Snapshots that may wait for readers.
const WAITING_MAX: usize = 1000;

fn listener() -> ListenerSettings {
    ListenerSettings {
        engine: Settings { container_id: "R".to_owned(), idle_timeout: None, ..Settings::default() },
        link_capacity: 250,
        strip_in: true,
        strip_out: true,
        ..ListenerSettings::default()
    }
}

/// How a shard's thread is told of the others.
type Introduction = (Vec<UringDoorbell>, Vec<Mailbox<UringDriver>>);

/// What a shard's thread starts with.
struct Start {
    seat: Seat,
    ready: mpsc::Sender<(usize, UringDoorbell, Mailbox<UringDriver>)>,
    introduced: mpsc::Receiver<Introduction>,
    linked: mpsc::Sender<()>,
    reports: reports::Sender<Report>,
}

/// The life of a shard's thread.
fn shard(start: Start) {
    let Start { seat, ready, introduced, linked, reports } = start;
    let driver = UringDriver::new(UringSizes::default()).expect("an io_uring");
    let (mailbox, messages) = Mailbox::new(driver.waker());
    let doorbell = driver.doorbell().expect("a descriptor");
    ready.send((usize::from(seat.id.0), doorbell, mailbox)).expect("the test runs");
    let (doorbells, mailboxes) = introduced.recv().expect("the test runs");
    let others = Others { doorbells, mailboxes, reports };
    let mut shard = Shard::new(driver, seat, others, vec![listener()], messages);
    while !shard.is_linked() {
        shard.turn().expect("the io_uring works");
    }
    linked.send(()).expect("the test runs");
    shard.run().expect("the io_uring works");
}

/// The writer of the snapshot.
struct Registry {
    snapshot: Snapshot,
    publisher: Publisher<Snapshot>,
    reports: reports::Receiver<Report>,
    mailboxes: Vec<Mailbox<UringDriver>>,
    /// What each shard hasn't been told yet, in order.
    untold: Vec<VecDeque<Message<UringDriver>>>,
    published: u64,
}

impl Registry {
    /// Publishes until `done` says that all pairs are.
    fn publish_until(&mut self, done: &AtomicUsize) {
        while done.load(Ordering::Acquire) < PAIRS {
            self.publish();
            self.tell();
            while self.publisher.reclaim() > WAITING_MAX {
                thread::yield_now();
            }
        }
    }

    fn publish(&mut self) {
        let mut keys: Vec<Arc<str>> = Vec::new();
        while let Ok(Report { shard, sequence, changes }) = self.reports.try_recv() {
            for change in changes {
                let consumer =
                    Consumer { shard, receivers: change.receivers, destinations: change.destinations };
                self.snapshot.set_consumer(&change.key, consumer);
                keys.push(change.key.into());
            }
            self.untold[usize::from(shard.0)].push_back(Message::Published(sequence));
        }
        // Something else comes or goes each time, so that parts of each snapshot are freed with it.
        let number = self.published % OTHERS;
        let receivers = u32::from((self.published / OTHERS).is_multiple_of(2));
        let consumer = Consumer { shard: ShardId(0), receivers, destinations: receivers };
        self.snapshot.set_consumer(&format!("Mother/{number}"), consumer);
        self.publisher.publish(self.snapshot.clone());
        self.published += 1;
        if keys.is_empty() {
            return;
        }
        let keys: Arc<[Arc<str>]> = keys.into();
        for untold in &mut self.untold {
            // Who is told that a report is published has to know of what it says before.
            untold.push_front(Message::Changed(keys.clone()));
        }
    }

    fn tell(&mut self) {
        for (untold, mailbox) in self.untold.iter_mut().zip(&self.mailboxes) {
            while let Some(message) = untold.pop_front() {
                if let Err(message) = mailbox.send(message) {
                    untold.push_front(message);
                    break;
                }
            }
        }
    }
}

fn text(pair: usize, round: usize, number: usize) -> Vec<u8> {
    format!("{pair} {round} {number} ").repeat(1 + number).into_bytes()
}

/// One pair's traffic: from an address to the next, and each message accepted.
fn converse(pair: usize, mut receiving: Peer, mut sending: Peer) {
    let sender = sending.attach_anonymous();
    for round in 0..ROUNDS {
        let address = format!("stress/{pair}/{round}");
        let encode = |number| message::addressed(&address, &text(pair, round, number));
        // Once this is answered each shard can see it, though the snapshot that says so was replaced long since.
        let receiver = receiving.attach_receiver(&address, u32::try_from(MESSAGES).expect("few"));
        sending.send_many(sender, MESSAGES, false, encode);
        for number in 0..MESSAGES {
            let delivery = receiving.expect_delivery();
            assert_eq!(delivery.payload, encode(number), "pair {pair}, round {round}, message {number}");
            receiving.accept(&delivery);
        }
        let accepted = (round + 1) * MESSAGES;
        sending.absorb_until("all outcomes", |peer| peer.outcomes.total() == accepted);
        assert_eq!(sending.outcomes, Outcomes { accepted, ..Outcomes::default() });
        receiving.detach(receiver);
    }
    receiving.close();
    sending.close();
}

fn connect(address: SocketAddr) -> Peer {
    let mut peer = Peer::connect(address);
    peer.open_with(OpenOptions::default());
    peer.begin();
    peer
}

fn counts(presences: &[Presence]) -> Vec<u32> {
    presences.iter().map(|presence| presence.connections.load(Ordering::Relaxed)).collect()
}

fn quiet_log() {
    let nothing = log::ModuleSettings {
        module: log::Module::Default,
        enable: Some(log::Levels::NONE),
        include_timestamp: None,
        include_source: None,
        destination: None,
    };
    log::apply(&log::Settings { is_utc: true, time_format: None, modules: vec![nothing] })
        .expect("to log nothing");
}

#[test]
fn publishing_without_end_under_traffic_between_shards() {
    quiet_log();
    let snapshot = Snapshot::new("R", Treatment::Balanced);
    let (publisher, seats) = seats(SHARDS, snapshot.clone());
    let presences = seats[0].presences.clone();
    let (report, reports) = reports::channel(64);
    let (ready, is_ready) = mpsc::channel();
    let (link, linked) = mpsc::channel();
    let (introductions, threads): (Vec<_>, Vec<_>) = seats
        .into_iter()
        .map(|seat| {
            let (introduction, introduced) = mpsc::channel();
            let (ready, linked, reports) = (ready.clone(), link.clone(), report.clone());
            let start = Start { seat, ready, introduced, linked, reports };
            (introduction, thread::spawn(move || shard(start)))
        })
        .unzip();
    drop((ready, link));
    let mut all: Vec<_> = is_ready.iter().take(SHARDS).collect();
    all.sort_by_key(|(number, ..)| *number);
    let doorbells: Vec<_> = all.iter().map(|(_, doorbell, _)| doorbell.clone()).collect();
    let mailboxes: Vec<_> = all.into_iter().map(|(.., mailbox)| mailbox).collect();
    for introduction in introductions {
        introduction.send((doorbells.clone(), mailboxes.clone())).expect("the shard's thread waits");
    }
    assert_eq!(linked.iter().take(SHARDS).count(), SHARDS, "shards find each other");
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    let listen = Message::Listen { listener: ListenerId(0), socket };
    assert!(mailboxes[0].send(listen).is_ok());
    let untold = mailboxes.iter().map(|_| VecDeque::new()).collect();
    let mut registry = Registry { snapshot, publisher, reports, mailboxes, untold, published: 0 };

    let done = Arc::new(AtomicUsize::new(0));
    let pairs: Vec<_> = (0..PAIRS)
        .map(|pair| {
            // One after the other, so that they come to different shards.
            let (receiving, sending) = (connect(address), connect(address));
            let done = done.clone();
            thread::spawn(move || {
                // Also if it panics: then the test ends, and says why.
                let _done = Done(done);
                converse(pair, receiving, sending);
            })
        })
        .collect();
    assert_eq!(counts(&presences), [2; SHARDS], "each shard has its part of the traffic");
    registry.publish_until(&done);
    for pair in pairs {
        pair.join().expect("the pair's conversation");
    }
    println!("{} snapshots for {} messages", registry.published, PAIRS * ROUNDS * MESSAGES);
    // Each address came and went, and was published each time.
    assert!(registry.published > (PAIRS * ROUNDS) as u64);
    for mailbox in &registry.mailboxes {
        assert!(mailbox.send(Message::Shutdown).is_ok());
    }
    for thread in threads {
        thread.join().expect("the shard's thread");
    }
    assert_eq!(counts(&presences), [0; SHARDS]);
    assert_eq!(registry.publisher.reclaim(), 0, "nothing is held back");
}

struct Done(Arc<AtomicUsize>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}
