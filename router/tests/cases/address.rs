//! Anonymous termini and dynamic nodes: L-04, L-05 (AMQP 1.0 §3.5).

use std::collections::HashSet;

use ringmain_codec::{
    Attach, DeliveryState, Detach, LifetimePolicy, Performative, Source, Symbol, Symbols, Target, TargetNode,
    Value,
};

use crate::support::{LinkId, OpenOptions, Peer, Router, message, receiver, sender};

/// An anonymous sender (a null target address): ANONYMOUS-RELAY is offered; messages to somebody are
/// accepted, those to nobody released, those without `to` rejected with a text; a settled one to nobody is
/// counted as dropped. The link stays in all of it.
#[test]
fn l_04_the_anonymous_terminus() {
    let router = Router::start();
    let mut consumer = router.connect();
    let open = consumer.open_with(OpenOptions::default());
    assert!(open.open().offered_capabilities.contains("ANONYMOUS-RELAY"));
    consumer.begin();
    consumer.attach_receiver("existing", 100);

    let mut peer = router.peer();
    let (link, answer) = peer.attach(0, sender(None));
    let Some(Target::Node(node)) = answer.attach().target else { panic!("accepted: {answer:?}") };
    assert_eq!(node.address, None);
    let existing = |peer: &mut Peer, consumer: &mut Peer| {
        let message = message::addressed("existing", b"x");
        let id = peer.send_delivery(link, &message, false);
        let delivery = consumer.expect_delivery();
        assert_eq!(delivery.payload, message);
        consumer.accept(&delivery);
        let outcome = peer.expect_outcome(id);
        assert_eq!(outcome.disposition().state, Some(DeliveryState::Accepted));
    };
    existing(&mut peer, &mut consumer);

    let id = peer.send_delivery(link, &message::addressed("unknown", b"x"), false);
    let outcome = peer.expect_outcome(id);
    assert_eq!(outcome.disposition().state, Some(DeliveryState::Released));
    assert!(outcome.disposition().settled);
    existing(&mut peer, &mut consumer);

    for message in [message::data(b"no properties"), message::addressed("", b"empty to"), {
        let properties = ringmain_codec::Properties { subject: Some("no to"), ..Default::default() };
        [message::value(&properties), message::data(b"x")].concat()
    }] {
        let id = peer.send_delivery(link, &message, false);
        let outcome = peer.expect_outcome(id);
        let Some(DeliveryState::Rejected(rejected)) = outcome.disposition().state else {
            panic!("{outcome:?}")
        };
        let error = rejected.error.expect("an error");
        assert_eq!(error.condition.0, "amqp:precondition-failed");
        assert!(error.description.is_some_and(|text| !text.is_empty()));
        existing(&mut peer, &mut consumer);
    }

    peer.send_delivery(link, &message::addressed("unknown", b"x"), true);
    peer.send_delivery(link, &message::data(b"no to"), true);
    existing(&mut peer, &mut consumer);
    peer.detach(link);
    let line = router.await_log_where("the counters of the anonymous link", |line| {
        line.contains("Link detached") && line.contains("presett=2")
    });
    assert!(line.contains("psdrop=2"), "{line}");
    assert!(line.contains("acc=6") && line.contains("rel=1") && line.contains("rej=3"), "{line}");
}

/// `to` in all the forms that an address may have (router-protocol reference §4.1).
#[test]
fn l_04_forms_of_to() {
    let router = Router::start();
    let mut consumer = router.peer();
    consumer.attach_receiver("some/where", 100);
    let mut peer = router.peer();
    let link = peer.attach_anonymous();
    for to in [
        "some/where",
        "/some/where",
        "//host/some/where",
        "amqp:/some/where",
        "any:/some/where",
        "amqp://host:5672/some/where",
        "some/where/",
        "some/where.",
    ] {
        let id = peer.send_delivery(link, &message::addressed(to, b"x"), false);
        let delivery = consumer.expect_delivery();
        assert_eq!(delivery.payload, message::addressed(to, b"x"), "untouched");
        consumer.accept(&delivery);
        assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted), "{to}");
    }
}

/// The attach of a receiver on a dynamic node.
fn dynamic(properties: Option<Value<'_>>) -> Attach<'_> {
    let source = Source {
        dynamic: true,
        dynamic_node_properties: properties,
        capabilities: Symbols::Slice(&["temporary-queue"]),
        ..Source::default()
    };
    Attach { source: Some(source), ..receiver("unused") }
}

/// Attaches to a dynamic node and returns its address.
fn attach_dynamic(peer: &mut Peer) -> (LinkId, String) {
    let (link, answer) = peer.attach(0, dynamic(None));
    let source = answer.attach().source.expect("accepted");
    assert!(source.dynamic, "the answer says that it is dynamic (§3.5.3)");
    let address = source.address.expect("the answer has the address (§3.5.3)").to_owned();
    assert!(!address.is_empty());
    (link, address)
}

/// The address is reachable from another connection as soon as it is known; when the link is gone, or its
/// connection is, what is sent there is released.
#[test]
fn l_05_a_dynamic_node_lives_as_long_as_its_link() {
    let router = Router::start();
    let mut peer = router.peer();
    let anonymous = peer.attach_anonymous();
    for drops_connection in [false, true] {
        let mut requester = router.peer();
        let (link, address) = attach_dynamic(&mut requester);
        requester.grant(link, 10);
        requester.begin();

        let named = peer.attach_sender(&address);
        peer.await_credit(named, 1);
        let to_it = message::addressed(&address, b"answer");
        for sender in [anonymous, named] {
            let id = peer.send_delivery(sender, &to_it, false);
            let delivery = requester.expect_delivery();
            assert_eq!(delivery.payload, to_it);
            requester.accept(&delivery);
            assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
        }

        if drops_connection {
            drop(requester);
        } else {
            requester.detach(link);
        }
        peer.await_state("a drain", |peer| peer.link(named).drain);
        for sender in [anonymous, named] {
            let id = peer.send_delivery(sender, &to_it, false);
            assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Released));
        }
        peer.detach(named);
    }
}

/// Two on one session have two addresses, and each gets its own.
#[test]
fn l_05_two_dynamic_nodes_of_a_session() {
    let router = Router::start();
    let mut requester = router.peer();
    let (first, first_address) = attach_dynamic(&mut requester);
    let (second, second_address) = attach_dynamic(&mut requester);
    assert_ne!(first_address, second_address);
    requester.grant(first, 10);
    requester.grant(second, 10);
    requester.begin();
    let mut peer = router.peer();
    let anonymous = peer.attach_anonymous();
    for (link, address) in [(second, &second_address), (first, &first_address)] {
        let id = peer.send_delivery(anonymous, &message::addressed(address, b"x"), false);
        let delivery = requester.expect_delivery();
        assert_eq!(delivery.link, link);
        requester.accept(&delivery);
        peer.expect_outcome(id);
    }
}

/// What else the attach says of the node comes back with the answer; a dynamic target works like a source.
#[test]
fn l_05_termini_are_echoed() {
    let router = Router::start();
    let mut peer = router.peer();
    let properties = message::encoded(|writer| {
        writer.map(|writer| {
            writer.put(&Symbol("lifetime-policy"))?;
            writer.put(&LifetimePolicy::DeleteOnClose)
        })
    });
    let properties = Value::from_encoded(&properties).expect("a map");
    let (_, answer) = peer.attach(0, dynamic(Some(properties)));
    let source = answer.attach().source.expect("accepted");
    assert_eq!(source.dynamic_node_properties, Some(properties));
    assert!(source.capabilities.contains("temporary-queue"));

    let target = Target::Node(TargetNode { dynamic: true, ..TargetNode::default() });
    let (link, answer) = peer.attach(0, Attach { target: Some(target), ..sender(None) });
    let Some(Target::Node(node)) = answer.attach().target else { panic!("accepted: {answer:?}") };
    assert!(node.dynamic);
    let address = node.address.expect("an address").to_owned();
    let mut consumer = router.peer();
    consumer.attach_receiver(&address, 10);
    let id = peer.send_delivery(link, &message::data(b"x"), false);
    let delivery = consumer.expect_delivery();
    consumer.accept(&delivery);
    assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
}

/// 10,000 nodes come and go: no address is given twice, and nothing is left behind.
#[test]
fn l_05_no_growth_by_nodes_that_are_gone() {
    const NODES: usize = 10_000;
    const AT_ONCE: usize = 50;
    let router = Router::with(crate::support::Setup {
        sections: "log {\n module: DEFAULT\n enable: notice+\n}",
        ..Default::default()
    });
    let mut peer = router.peer();
    let mut addresses = HashSet::new();
    let mut memory = 0;
    for round in 0..NODES / AT_ONCE {
        let links: Vec<LinkId> = (0..AT_ONCE).map(|_| peer.queue_attach(0, dynamic(None))).collect();
        peer.flush();
        for _ in &links {
            let answer = peer.expect("attach");
            let address = answer.attach().source.and_then(|source| source.address).expect("an address");
            assert!(addresses.insert(address.to_owned()), "an address given twice");
        }
        for link in &links {
            let detach = Detach { handle: link.handle, closed: true, error: None };
            peer.queue(0, Performative::Detach(detach), &[]);
        }
        peer.flush();
        for _ in &links {
            peer.expect("detach");
        }
        if round == NODES / AT_ONCE / 10 {
            memory = router.memory();
        }
    }
    let grown = router.memory().saturating_sub(memory);
    assert!(grown < 1 << 20, "{grown} bytes more after {NODES} nodes");
}
