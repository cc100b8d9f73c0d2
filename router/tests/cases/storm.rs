//! Two thousand connections that come, exchange messages and are reset all at once, five times: C-09.

use std::time::Duration;

use ringmain_codec::{Begin, Open, Performative, ProtocolHeader};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{LinkId, Outcomes, Peer, Router, Setup, message, receiver, sender};

const CONNECTIONS: usize = 2000;
const ROUNDS: usize = 5;
/// What a shard may keep for the next storm: buffers for output (6 MiB), tables, what the allocator holds.
const POOLS_MAX: u64 = 16 << 20;
/// What is asked of the system: a descriptor for each connection, and some beside.
const DESCRIPTORS: u64 = CONNECTIONS as u64 + 500;

/// A connection of the storm.
struct One {
    peer: Peer,
    sender: LinkId,
}

fn address(number: usize) -> String {
    format!("storm/{}", number % CONNECTIONS)
}

/// Connects, and says in one breath all that an impatient client can: a receiver with three credits on its
/// own address, a sender to the next one's.
fn connect(router: &Router, number: usize) -> One {
    let mut peer = router.connect();
    peer.queue_bytes(&ProtocolHeader::AMQP.to_bytes());
    peer.queue(0, Performative::Open(Open { container_id: "storm", ..Open::default() }), &[]);
    let begin = Begin { incoming_window: 1000, outgoing_window: 1000, ..Begin::default() };
    peer.queue(0, Performative::Begin(begin), &[]);
    let receiver = peer.queue_attach(0, receiver(&address(number)));
    peer.queue_flow(receiver, 0, 3, false);
    let sender = peer.queue_attach(0, sender(Some(&address(number + 1))));
    peer.flush();
    One { peer, sender }
}

/// Sets the soft limit of open files.
fn limit_files(current: u64) {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..limit }).expect("within the hard limit");
}

/// Every delivery is accounted for, by the outcomes that its sender sees; memory and descriptors go back to
/// where they were at first.
#[test]
fn c_09_two_thousand_connections_reset_at_once() {
    let hard = getrlimit(Resource::Nofile).maximum;
    if hard.is_some_and(|hard| hard < DESCRIPTORS) {
        println!("SKIPPED: the system allows {hard:?} open files, and this test needs {DESCRIPTORS}");
        return;
    }
    // The router begins with the usual soft limit and raises it by itself.
    limit_files(1024.min(hard.unwrap_or(u64::MAX)));
    let router = Router::with(Setup {
        listener: "linkCapacity: 5000",
        sections: "log {\n module: DEFAULT\n enable: notice+\n}",
        ..Setup::default()
    });
    limit_files(DESCRIPTORS);

    // One that stays, and sees what becomes of its messages to those that go.
    let mut witness = router.peer();
    let anonymous = witness.attach_anonymous();
    witness.await_credit(anonymous, 5000);
    let descriptors = router.descriptors();
    let cold = router.memory();
    let mut first_idle = None;
    for round in 0..=ROUNDS {
        storm(&router, &mut witness, anonymous);
        let rounds = round + 1;
        // What a receiver had is modified, what waited for its credit is released.
        let expected = Outcomes {
            modified: rounds * CONNECTIONS,
            released: rounds * CONNECTIONS,
            ..Outcomes::default()
        };
        witness.absorb_until("all outcomes", |witness| witness.outcomes.total() >= expected.total());
        assert_eq!(witness.outcomes, expected);
        witness.expect_nothing_for(50);
        router.await_state("all descriptors closed", |router| router.descriptors() <= descriptors);
        // The storm before the five fills the pools of buffers and tables that the router keeps, within the
        // bounds that it has for them.
        let idle = *first_idle.get_or_insert_with(|| router.memory());
        assert!(
            idle < cold + router.shards() * POOLS_MAX,
            "{idle} bytes after the first storm, {cold} before"
        );
        router.await_state("memory within 10 % of the first idle level", |router| {
            router.memory() <= idle + idle / 10
        });
    }
    // Those that come after it find everything in order.
    let mut consumer = router.peer();
    consumer.attach_receiver(&address(7), 1);
    let id = witness.send_delivery(anonymous, &message::addressed(&address(7), b"x"), false);
    let delivery = consumer.expect_delivery();
    consumer.accept(&delivery);
    witness.expect_outcome(id);
}

fn storm(router: &Router, witness: &mut Peer, anonymous: LinkId) {
    let mut all: Vec<One> = (0..CONNECTIONS).map(|number| connect(router, number)).collect();
    for one in &mut all {
        one.peer.expect_header(ProtocolHeader::AMQP);
        one.peer.absorb_until("credit", |peer| peer.link(one.sender).credit > 0);
    }
    // One that is accepted.
    for one in &mut all {
        one.peer.send_delivery(one.sender, &message::data(b"accepted"), false);
    }
    for one in &mut all {
        let delivery = one.peer.expect_delivery();
        assert_eq!(delivery.payload, message::data(b"accepted"));
        one.peer.accept(&delivery);
    }
    for one in &mut all {
        one.peer.absorb_until("the outcome", |peer| peer.outcomes.total() == 1);
        assert_eq!(one.peer.outcomes.accepted, 1);
    }
    // One that is under way when both of its ends go.
    for one in &mut all {
        one.peer.send_delivery(one.sender, &message::data(b"on its way"), false);
    }
    for one in &mut all {
        one.peer.expect_delivery();
    }
    // And two from who stays: the first takes the last credit, the second waits.
    for _ in 0..2 {
        witness.send_many(anonymous, CONNECTIONS, false, |number| message::addressed(&address(number), b"x"));
    }
    witness.begin();
    for one in &mut all {
        let delivery = one.peer.expect_delivery();
        assert!(!delivery.settled);
    }
    for one in &all {
        socket2::SockRef::from(one.peer.stream()).set_linger(Some(Duration::ZERO)).expect("a socket");
    }
}
