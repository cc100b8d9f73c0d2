//! Credit to senders: F-07.

use ringmain_codec::{DeliveryState, Flow, Performative};

use crate::support::{LinkId, Peer, Router, Setup, message};

/// The credit of a sender whose messages are wanted: `linkCapacity`.
const FULL: u32 = 250;

/// Makes sure that a sender has no credit for a while.
#[track_caller]
fn expect_no_credit(peer: &mut Peer, link: LinkId, ms: u64) {
    peer.expect_nothing_for(ms);
    assert_eq!(peer.link(link).credit, 0);
}

/// As sender: gives up the credit that is left, as a drain demands (§2.6.7).
fn drain(peer: &mut Peer, link: LinkId) {
    let state = peer.link(link);
    let flow = Flow {
        handle: Some(link.handle),
        delivery_count: Some(state.delivery_count.wrapping_add(state.credit)),
        link_credit: Some(0),
        available: Some(0),
        drain: true,
        ..peer.session(link.channel).flow()
    };
    peer.send(link.channel, Performative::Flow(flow), &[]);
}

/// a: alone, a sender attaches and gets no credit; b: nor does a receiver without credit change that, for as
/// long as `docs/decisions.md` says; c: one with credit does, the full window.
#[test]
fn f_07_a_b_c_no_credit_without_a_consumer() {
    let router = Router::start();
    let mut peer = router.peer();
    let sender = peer.attach_sender("q");
    expect_no_credit(&mut peer, sender, 500);

    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 0);
    expect_no_credit(&mut peer, sender, 1500);

    consumer.grant(receiver, 1);
    peer.await_credit(sender, 1);
    assert_eq!(peer.link(sender).credit, FULL);

    // A sender that comes later finds everything ready.
    let second = peer.attach_sender("q");
    peer.await_credit(second, 1);
    assert_eq!(peer.link(second).credit, FULL);
}

/// b, the other half: a receiver that never grants credit counts all the same, after three seconds.
#[test]
fn f_07_b_a_consumer_without_credit_counts_in_the_end() {
    let router = Router::start();
    let mut peer = router.peer();
    let sender = peer.attach_sender("q");
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 0);
    peer.await_credit(sender, FULL);
    let message = message::sized(100, 1);
    let id = peer.send_delivery(sender, &message, false);
    consumer.expect_nothing_for(300);
    consumer.grant(receiver, 1);
    let delivery = consumer.expect_delivery();
    assert_eq!(delivery.payload, message);
    consumer.accept(&delivery);
    assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
}

/// d: the last consumer leaves a sender with 200 unused credits, so the router drains it; e: a consumer comes
/// back, and the window is full again.
#[test]
fn f_07_d_e_the_last_consumer_leaves_and_comes_back() {
    for (name, leaves_by_closing) in [("detach", false), ("close", true)] {
        let router = Router::start();
        let mut peer = router.peer();
        let sender = peer.attach_sender("q");
        let mut consumer = router.peer();
        let receiver = consumer.attach_receiver("q", 1000);
        peer.await_credit(sender, FULL);
        // Unsettled deliveries count against the capacity, so that 200 are left of it.
        for _ in 0..50 {
            peer.queue_delivery(sender, &message::data(b"x"), false);
        }
        peer.flush();
        for _ in 0..50 {
            consumer.expect_delivery();
        }
        assert_eq!(peer.link(sender).credit, FULL - 50, "{name}");

        if leaves_by_closing {
            consumer.close();
        } else {
            consumer.detach(receiver);
        }
        peer.await_state("a drain", |peer| peer.link(sender).drain);
        // What the consumer left unsettled has failed (router-protocol reference §8.5).
        peer.await_state("the outcomes", |peer| peer.outcomes.total() == 50);
        assert_eq!(peer.outcomes.modified, 50, "{name}");
        drain(&mut peer, sender);
        peer.forget_pending();
        expect_no_credit(&mut peer, sender, 500);

        let mut consumer = router.peer();
        consumer.attach_receiver("q", 1000);
        peer.await_credit(sender, FULL);
        assert!(!peer.link(sender).drain, "{name}");
        assert_eq!(peer.link(sender).credit, FULL, "{name}");
        let id = peer.send_delivery(sender, &message::data(b"y"), false);
        let delivery = consumer.expect_delivery();
        consumer.accept(&delivery);
        assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
    }
}

/// d and e with a sender that goes on using its credit, or doesn't heed the drain: what it sends is released,
/// and in the end it has the full window, no more and no less.
#[test]
fn f_07_d_e_a_sender_that_does_not_drain() {
    let router = Router::start();
    let mut peer = router.peer();
    let sender = peer.attach_sender("q");
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 1000);
    peer.await_credit(sender, FULL);
    consumer.detach(receiver);
    peer.await_state("a drain", |peer| peer.link(sender).drain);
    for _ in 0..10 {
        let id = peer.send_delivery(sender, &message::data(b"x"), false);
        let outcome = peer.expect_outcome(id);
        assert_eq!(outcome.disposition().state, Some(DeliveryState::Released));
        assert!(outcome.disposition().settled);
    }
    consumer.attach_receiver("q", 1000);
    peer.await_state("the end of the drain", |peer| !peer.link(sender).drain);
    peer.expect_nothing_for(200);
    assert_eq!(peer.link(sender).credit, FULL);
}

/// One consumer of two leaves: nothing changes for the sender.
#[test]
fn f_07_d_another_consumer_stays() {
    let router = Router::start();
    let mut peer = router.peer();
    let sender = peer.attach_sender("q");
    let mut consumer = router.peer();
    let first = consumer.attach_receiver("q", 10);
    consumer.attach_receiver("q", 10);
    peer.await_credit(sender, FULL);
    consumer.detach(first);
    peer.expect_nothing_for(300);
    assert!(!peer.link(sender).drain);
    assert_eq!(peer.link(sender).credit, FULL);
}

/// A multicast address that nobody receives from: messages of anonymous senders are released.
#[test]
fn f_07_anonymous_multicast_without_consumers_is_released() {
    let sections = "address {\n prefix: m\n distribution: multicast\n}";
    let router = Router::with(Setup { sections, ..Setup::default() });
    let mut peer = router.peer();
    let anonymous = peer.attach_anonymous();
    let targeted = peer.attach_sender("m/1");
    peer.await_credit(anonymous, FULL);
    for _ in 0..3 {
        let id = peer.send_delivery(anonymous, &message::addressed("m/1", b"x"), false);
        assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Released));
    }
    assert_eq!(peer.link(targeted).credit, 0);
}
