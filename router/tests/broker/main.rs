//! A real broker behind the router: RabbitMQ with its AMQP 1.0 plugin, reached by a connector and auto-links.
//!
//! `scripts/test` installs the broker on Debian. Where it isn't there, or with `RINGMAIN_SKIP_INTEROP=1`, the test says
//! so and does nothing.

#[path = "../support/mod.rs"]
mod support;

mod rabbitmq;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rabbitmq::RabbitMq;
use ringmain_codec::{
    Attach, DeliveryState, SectionKind, Sections, Target, TargetNode, TerminusDurability, View,
};
use support::{LinkId, OpenOptions, Peer, Router, Setup};

/// How long a broker may take to come up, and the router to find it again.
const BROKER_PATIENCE: Duration = Duration::from_secs(120);

/// How many messages go through the queue.
const MESSAGES: u32 = 600;

/// How many are sent before their outcomes are looked at.
const BATCH: u32 = 30;

/// A durable message with its number as body.
fn numbered(number: u32) -> Vec<u8> {
    let mut message = vec![0x00, 0x53, 0x70, 0xc0, 0x02, 0x01, 0x41];
    message.extend(support::message::data(&number.to_be_bytes()));
    message
}

/// The number of a message that came. The broker writes the sections before the body anew.
fn number_of(message: &[u8]) -> u32 {
    let mut sections = Sections::new(message);
    while let Some(section) = sections.next().expect("a well-formed message") {
        if section.kind == SectionKind::Data {
            let View::Binary(bytes) = section.value.view() else { panic!("data is binary") };
            return u32::from_be_bytes(bytes.try_into().expect("four bytes"));
        }
    }
    panic!("a message without a body: {message:?}")
}

/// Takes what the router sends until `is_so` holds, however long the broker takes.
fn wait(peer: &mut Peer, what: &str, mut is_so: impl FnMut(&mut Peer) -> bool) {
    let deadline = Instant::now() + BROKER_PATIENCE;
    while !is_so(peer) {
        assert!(Instant::now() < deadline, "not within {BROKER_PATIENCE:?}: {what}");
        peer.absorb(Duration::from_millis(200));
    }
}

/// Waits for credit, and gives it up meanwhile where the router asks for that.
fn await_credit(peer: &mut Peer, link: LinkId) {
    wait(peer, "credit", |peer| {
        let (count, credit, drain) = {
            let link = peer.link(link);
            (link.delivery_count, link.credit, link.drain)
        };
        if drain && credit > 0 {
            peer.send_flow(link, count.wrapping_add(credit), 0, true);
        }
        !drain && credit > 0
    });
}

/// Makes a durable queue: RabbitMQ declares one as durable as the terminus that first asks for it, while auto-links ask
/// for nothing durable, as qdrouterd's. (`/amq/queue/NAME` is a queue that exists, whatever it is.)
fn declare_durable(broker: &RabbitMq, address: &str) {
    let mut client = Peer::connect(([127, 0, 0, 1], broker.port()).into());
    client.open_with(OpenOptions::default());
    client.begin();
    let node = TargetNode {
        address: Some(address),
        durable: TerminusDurability::UnsettledState,
        ..TargetNode::default()
    };
    let target = Some(Target::Node(node));
    client.attach(0, Attach { target, ..support::sender(Some(address)) });
}

/// Sends messages. Returns their numbers and delivery-ids.
fn send(peer: &mut Peer, link: LinkId, numbers: &[u32]) -> Vec<(u32, u32)> {
    let mut one = |&number| {
        await_credit(peer, link);
        (number, peer.send_delivery(link, &numbered(number), false))
    };
    numbers.iter().map(&mut one).collect()
}

/// Waits for the outcomes of messages, and returns those that weren't accepted.
fn unaccepted(peer: &mut Peer, sent: Vec<(u32, u32)>) -> Vec<u32> {
    let is_lost = |&(_, id): &(u32, u32)| {
        !matches!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted))
    };
    let lost = sent.into_iter().filter(is_lost).map(|(number, _)| number).collect();
    peer.forget_pending();
    lost
}

/// Sends messages until each was accepted: those that weren't are sent again.
fn produce(peer: &mut Peer, link: LinkId, mut left: Vec<u32>) {
    while !left.is_empty() {
        let later = left.split_off(left.len().min(BATCH as usize));
        let sent = send(peer, link, &left);
        left = unaccepted(peer, sent);
        left.extend(later);
    }
}

/// Sender, router, queue, router, receiver, all under one address; the broker is killed and started again while messages
/// wait in it and others are on their way. What the sender was told to be accepted arrives.
#[test]
fn a_broker_that_is_restarted_loses_nothing() {
    let Some(mut broker) = RabbitMq::start() else { return };
    declare_durable(&broker, "/queue/orders");
    let sections = format!(
        "connector {{\n    name: rabbit\n    host: 127.0.0.1\n    port: {}\n    role: route-container\n    idleTimeoutSeconds: 8\n}}\n\
         address {{\n    prefix: queue\n    waypoint: yes\n}}\n\
         autoLink {{\n    address: queue/orders\n    externalAddress: /amq/queue/orders\n    direction: out\n    connection: rabbit\n}}\n\
         autoLink {{\n    address: queue/orders\n    externalAddress: /amq/queue/orders\n    direction: in\n    connection: rabbit\n}}\n",
        broker.port()
    );
    let router = Router::with(Setup { sections: &sections, ..Setup::default() });
    let mut producer = router.peer();
    let sender = producer.attach_sender("queue/orders");
    produce(&mut producer, sender, (0..MESSAGES / 3).collect());

    // Some are on their way when the broker dies.
    let under_way: Vec<u32> = (MESSAGES / 3..MESSAGES / 3 + BATCH).collect();
    let sent = send(&mut producer, sender, &under_way);
    broker.kill();
    let again = unaccepted(&mut producer, sent);
    router.await_log(") lost: ");
    broker.start_again();
    produce(&mut producer, sender, again);
    produce(&mut producer, sender, (MESSAGES / 3 + BATCH..MESSAGES).collect());

    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("queue/orders", 0);
    let mut received = BTreeSet::new();
    wait(&mut consumer, "every message", |peer| {
        while let Some(delivery) = peer.take_delivery() {
            peer.accept(&delivery);
            received.insert(number_of(&delivery.payload));
        }
        peer.forget_pending();
        if peer.link(receiver).limit == peer.link(receiver).delivery_count {
            peer.grant(receiver, 50);
        }
        received.len() == MESSAGES as usize
    });
    assert_eq!(received, (0..MESSAGES).collect());

    // And it goes on: one more, all the way.
    produce(&mut producer, sender, vec![MESSAGES]);
    consumer.grant(receiver, 10);
    wait(&mut consumer, "one more", |peer| {
        peer.take_delivery().is_some_and(|delivery| {
            peer.accept(&delivery);
            number_of(&delivery.payload) == MESSAGES
        })
    });
}
