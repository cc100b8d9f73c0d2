//! Auto-links and waypoints: router-protocol reference §8.10 and §8.11, F-07 (f).

use std::net::TcpListener;

use ringmain_codec::{
    DeliveryState, End, Error, Performative, Role, Source, Symbol, Symbols, Target, TargetNode,
};

use crate::support::{BrokerSocket, LinkId, Peer, Router, Setup, message, receiver, sender};

/// A router with a connector to a broker, and the broker's listener.
fn with_broker(sections: &str) -> (Router, TcpListener) {
    let socket = BrokerSocket::bind();
    let connector = format!(
        "connector {{\n    name: broker\n    host: 127.0.0.1\n    port: {}\n    role: route-container\n    idleTimeoutSeconds: 0\n}}\n",
        socket.port()
    );
    let listener = socket.listen();
    let router = Router::with(Setup { sections: &format!("{connector}{sections}"), ..Setup::default() });
    (router, listener)
}

fn auto_link(direction: &str, attributes: &str) -> String {
    format!("autoLink {{\n    direction: {direction}\n    connection: broker\n{attributes}\n}}\n")
}

fn connect(listener: &TcpListener) -> Peer {
    let mut broker = Peer::accept_on(listener);
    broker.serve_open("broker");
    broker
}

const REJECTED: &str = "amqp:precondition-failed";

/// Out: a sender is attached to the broker's node, and once the broker has taken it, its credit is that of the address;
/// outcomes come back as the broker gives them.
#[test]
fn out_of_the_router() {
    let (router, listener) = with_broker(&auto_link(
        "out",
        "    address: orders\n    externalAddress: queue/orders\n    phase: 0",
    ));
    let mut client = router.peer();
    let sender = client.attach_sender("orders");
    let mut broker = connect(&listener);
    let attach = broker.expect_attach_to("queue/orders");
    assert_eq!(attach.attach().role, Role::Sender);
    assert!(attach.attach().source.is_some(), "a null source would be a refusal");
    client.expect_nothing_for(200);
    assert_eq!(client.link(sender).credit, 0, "the broker hasn't answered");
    let link = broker.take_link(&attach);
    broker.grant(link, 10);
    let accepted = client.send_delivery(sender, &message::data(b"one"), false);
    let delivery = broker.expect_delivery();
    assert_eq!(delivery.payload, message::data(b"one"));
    broker.accept(&delivery);
    client.expect_outcome(accepted);
    let rejected = client.send_delivery(sender, &message::data(b"two"), false);
    let delivery = broker.expect_delivery();
    let error = Error { condition: Symbol(REJECTED), description: Some("queue is full"), info: None };
    broker.dispose(
        &delivery,
        true,
        Some(DeliveryState::Rejected(ringmain_codec::Rejected { error: Some(error) })),
    );
    let outcome = client.expect_outcome(rejected);
    let Some(DeliveryState::Rejected(state)) = outcome.disposition().state else { panic!("{outcome:?}") };
    assert_eq!(state.error.and_then(|error| error.description), Some("queue is full"));
}

/// In: F-07 (f). A receiver is attached to the broker's node. It gets credit when the address has a receiver, and not
/// before; when that one goes, the credit is taken back.
#[test]
fn f_07_f_into_the_router() {
    let (router, listener) = with_broker(&format!(
        "{}address {{\n    prefix: news\n    distribution: multicast\n}}\n",
        auto_link("in", "    address: news\n    externalAddress: topic/news\n    phase: 0")
    ));
    let mut broker = connect(&listener);
    let attach = broker.expect_attach_to("topic/news");
    assert_eq!(attach.attach().role, Role::Receiver);
    assert!(attach.attach().target.is_some(), "a null target would be a refusal");
    let link = broker.take_link(&attach);
    broker.forget_pending();
    broker.expect_nothing_for(300);
    assert_eq!(broker.link(link).credit, 0, "nobody receives");
    let mut client = router.peer();
    let receiver = client.attach_receiver("news", 10);
    broker.await_credit(link, 250);
    let id = broker.send_delivery(link, &message::data(b"today"), false);
    let delivery = client.expect_delivery();
    assert_eq!((delivery.link, delivery.payload.as_slice()), (receiver, message::data(b"today").as_slice()));
    client.accept(&delivery);
    broker.expect_outcome(id);
    assert_eq!(broker.outcomes.accepted, 1);
    client.detach(receiver);
    broker.await_state("no credit", |broker| broker.link(link).credit == 0);
    // It isn't drained: that crashes RabbitMQ 3.10.8 (rabbitmq-server#7119).
    assert!(!broker.link(link).drain);
    client.attach_receiver("news", 10);
    broker.await_credit(link, 250);
}

/// A waypoint (§8.10): what clients send goes through the broker's queue before clients receive it, under one
/// address. By default an auto-link out is in phase 0, one in, in phase 1.
#[test]
fn through_a_waypoint() {
    let (router, listener) = with_broker(&format!(
        "address {{\n    prefix: queue\n    waypoint: yes\n}}\n{}{}",
        auto_link("out", "    address: queue/q"),
        auto_link("in", "    address: queue/q")
    ));
    let mut broker = connect(&listener);
    let (mut to, mut from) = (None, None);
    for _ in 0..2 {
        let attach = broker.expect_attach_to("queue/q");
        let link = broker.take_link(&attach);
        match attach.attach().role {
            Role::Sender => to = Some(link),
            Role::Receiver => from = Some(link),
        }
    }
    let (to, from): (LinkId, LinkId) = (to.expect("one out"), from.expect("one in"));
    broker.grant(to, 100);
    let mut consumer = router.peer();
    consumer.attach_receiver("queue/q", 10);
    let mut producer = router.peer();
    let addressed = producer.attach_sender("queue/q");
    let anonymous = producer.attach_anonymous();
    for (sender, message) in [
        (addressed, message::data(b"by the link")),
        (anonymous, message::addressed("queue/q", b"by the message")),
    ] {
        let sent = producer.send_delivery(sender, &message, false);
        let stored = broker.expect_delivery();
        assert_eq!(stored.link, to, "it goes to the broker and not to the consumer");
        broker.accept(&stored);
        producer.expect_outcome(sent);
        let forwarded = broker.send_delivery(from, &stored.payload, false);
        let delivery = consumer.expect_delivery();
        assert_eq!(delivery.payload, message);
        consumer.accept(&delivery);
        broker.expect_outcome(forwarded);
    }
    assert_eq!((producer.outcomes.accepted, broker.outcomes.accepted), (2, 2));
}

/// A client may be a waypoint by itself: its termini say so with `qd.waypoint` (§8.10).
#[test]
fn a_client_as_waypoint() {
    let router = Router::with(Setup {
        sections: "address {\n    prefix: w\n    waypoint: yes\n}\n",
        ..Setup::default()
    });
    let capability = Symbols::Slice(&["qd.waypoint.1"]);
    let mut waypoint = router.peer();
    let source = Source { address: Some("w/x"), capabilities: capability, ..Source::default() };
    let (input, _) = waypoint.attach(0, ringmain_codec::Attach { source: Some(source), ..receiver("w/x") });
    waypoint.grant(input, 10);
    let target = TargetNode { address: Some("w/x"), capabilities: capability, ..TargetNode::default() };
    let (output, _) = waypoint
        .attach(0, ringmain_codec::Attach { target: Some(Target::Node(target)), ..sender(Some("w/x")) });
    let mut consumer = router.peer();
    let consumes = consumer.attach_receiver("w/x", 10);
    let mut producer = router.peer();
    let sends = producer.attach_sender("w/x");
    producer.send_delivery(sends, &message::data(b"raw"), true);
    let delivery = waypoint.expect_delivery();
    assert_eq!(delivery.link, input);
    waypoint.send_delivery(output, &message::data(b"filtered"), true);
    let delivery = consumer.expect_delivery();
    assert_eq!(
        (delivery.link, delivery.payload.as_slice()),
        (consumes, message::data(b"filtered").as_slice())
    );
}

/// §8.11: refused, it is tried again, until the broker takes it; the rest of the connection is as before.
#[test]
fn a_refused_link_is_tried_again() {
    let (router, listener) = with_broker(&format!(
        "{}{}",
        auto_link("out", "    name: the orders\n    address: orders"),
        auto_link("out", "    address: other")
    ));
    let mut broker = connect(&listener);
    let other = broker.expect_attach_to("other");
    let other = broker.take_link(&other);
    broker.grant(other, 10);
    for _ in 0..2 {
        let attach = broker.expect_attach_to("orders");
        broker.refuse_link(&attach, "amqp:not-found", "no queue 'orders'");
    }
    let failed = router.await_log("Auto-link 'the orders'");
    assert!(failed.contains("amqp:not-found: no queue 'orders'"), "{failed}");
    let failures = router.log().iter().filter(|line| line.contains("'the orders'")).count();
    assert_eq!(failures, 1, "the same failure again is no news");
    let mut client = router.peer();
    let to_other = client.attach_sender("other");
    client.send_delivery(to_other, &message::data(b"x"), true);
    broker.expect_delivery();
    let to_orders = client.attach_sender("orders");
    let attach = broker.expect_attach_to("orders");
    assert_eq!(client.link(to_orders).credit, 0);
    let link = broker.take_link(&attach);
    broker.grant(link, 10);
    client.send_delivery(to_orders, &message::data(b"y"), true);
    assert_eq!(broker.expect_delivery().link, link);
}

/// The broker gives up a link, or the whole session of one, or the connection: what it hadn't settled goes back to its
/// sender as failed, what hadn't gone out is released, and when the link is back, messages go again.
#[test]
fn a_lost_link_comes_back() {
    let (router, listener) = with_broker(&auto_link("out", "    address: orders"));
    let mut broker = connect(&listener);
    let mut client = router.peer();
    let sender = client.attach_sender("orders");
    for round in 0..3 {
        let attach = broker.expect_attach_to("orders");
        let link = broker.take_link(&attach);
        broker.grant(link, 1);
        let unsettled = client.send_delivery(sender, &message::data(b"unsettled"), false);
        let waiting = client.send_delivery(sender, &message::data(b"waiting"), false);
        broker.expect_delivery();
        match round {
            0 => {
                broker.give_up_link(link, "amqp:resource-deleted", "the queue was deleted");
                broker.expect_end_of_link(&attach);
            }
            1 => {
                let error = Error {
                    condition: Symbol("amqp:internal-error"),
                    description: Some("crashed"),
                    info: None,
                };
                broker.send(link.channel, Performative::End(End { error: Some(error) }), &[]);
                broker.expect("end");
            }
            _ => {
                broker.stream().shutdown(std::net::Shutdown::Both).expect("a socket of TCP");
                broker = connect(&listener);
            }
        }
        let outcome = client.expect_outcome(unsettled);
        let Some(DeliveryState::Modified(state)) = outcome.disposition().state else { panic!("{outcome:?}") };
        assert_eq!(state.delivery_failed, Some(true));
        let outcome = client.expect_outcome(waiting);
        assert!(matches!(outcome.disposition().state, Some(DeliveryState::Released)), "{outcome:?}");
        // The address has no receiver any more: the router asks for its credit back (F-07 d).
        client.await_state("a drain", |client| client.link(sender).drain);
        let (count, credit) = (client.link(sender).delivery_count, client.link(sender).credit);
        client.send_flow(sender, count.wrapping_add(credit), 0, true);
    }
    let attach = broker.expect_attach_to("orders");
    let link = broker.take_link(&attach);
    broker.grant(link, 10);
    client.send_delivery(sender, &message::data(b"again"), true);
    assert_eq!(broker.expect_delivery().payload, message::data(b"again"));
}

/// `containerId`: whoever opens with it, on a listener in the role route-container; not on another listener.
#[test]
fn by_container_id() {
    let sections = "listener {\n    host: 127.0.0.1\n    port: 0\n    role: route-container\n}\n\
                    autoLink {\n    address: orders\n    direction: out\n    containerId: peer\n}\n";
    let router = Router::with(Setup { sections, ..Setup::default() });
    let log = router.log();
    let listening = log.iter().filter_map(|line| line.split("Listening on ").nth(1)).next_back();
    let address = listening.and_then(|address| address.parse().ok()).expect("the second listener's address");
    let mut ordinary = router.peer();
    ordinary.expect_nothing_for(300);
    let mut container = Peer::connect(address);
    container.become_broker();
    container.open_with(crate::support::OpenOptions::default());
    let attach = container.expect_attach_to("orders");
    let link = container.take_link(&attach);
    container.grant(link, 10);
    let sender = ordinary.attach_sender("orders");
    ordinary.send_delivery(sender, &message::data(b"x"), true);
    assert_eq!(container.expect_delivery().link, link);
}

/// RabbitMQ before 4.0 sends more than it has credit for, now and then (rabbitmq-server#2597): that is put up with, up to
/// the link's capacity. Beyond it the link is detached.
#[test]
fn a_broker_may_miscount_its_credit() {
    const CAPACITY: usize = 10;
    let socket = BrokerSocket::bind();
    let sections = format!(
        "connector {{\n    name: broker\n    host: 127.0.0.1\n    port: {}\n    role: route-container\n    linkCapacity: {CAPACITY}\n}}\n{}",
        socket.port(),
        auto_link("in", "    address: q\n    phase: 0")
    );
    let listener = socket.listen();
    let router = Router::with(Setup { sections: &sections, ..Setup::default() });
    let mut broker = connect(&listener);
    let attach = broker.expect_attach_to("q");
    let link = broker.take_link(&attach);
    let mut client = router.peer();
    client.attach_receiver("q", 100);
    broker.await_credit(link, 10);
    for _ in 0..2 * CAPACITY {
        broker.queue_delivery(link, &message::data(b"x"), false);
    }
    broker.flush();
    let deliveries: Vec<_> = (0..2 * CAPACITY).map(|_| client.expect_delivery()).collect();
    for delivery in &deliveries {
        client.accept(delivery);
    }
    broker.await_state("every outcome", |broker| broker.outcomes.accepted == 2 * CAPACITY);
    broker.forget_pending();
    broker.await_credit(link, 10);
    for _ in 0..=2 * CAPACITY {
        broker.queue_delivery(link, &message::data(b"x"), false);
    }
    broker.flush();
    let detach = broker.expect("detach");
    let error = detach.detach().error.expect("an error that says why");
    assert_eq!(error.condition.0, "amqp:link:transfer-limit-exceeded");
}
