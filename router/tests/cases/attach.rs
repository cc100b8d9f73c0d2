//! What the router answers to an attach: T-09, L-01 (AMQP 1.0 §2.6.3, §2.7.3, §2.8.2, §2.8.3).

use ringmain_codec::{
    Attach, Coordinator, DeliveryState, Performative, ReceiverSettleMode, Role, SenderSettleMode, Source,
    Target, Transfer,
};

use crate::support::{LinkId, Peer, Router, Setup, first_transfer, message, receiver, sender};

const SND_MODES: [SenderSettleMode; 3] =
    [SenderSettleMode::Unsettled, SenderSettleMode::Settled, SenderSettleMode::Mixed];
const RCV_MODES: [ReceiverSettleMode; 2] = [ReceiverSettleMode::First, ReceiverSettleMode::Second];

/// The answer has the modes of the question, in both directions. (The codec leaves out what is the default,
/// so that "mixed" is also "absent", and so is "first".)
#[test]
fn t_09_the_answer_mirrors_the_settle_modes() {
    let router = Router::start();
    let mut peer = router.peer();
    for snd_settle_mode in SND_MODES {
        for rcv_settle_mode in RCV_MODES {
            for attach in [sender(Some("q")), receiver("q")] {
                let (link, answer) = peer.attach(0, Attach { snd_settle_mode, rcv_settle_mode, ..attach });
                let answer = answer.attach();
                assert_eq!(answer.snd_settle_mode, snd_settle_mode, "{:?}", attach.role);
                assert_eq!(answer.rcv_settle_mode, rcv_settle_mode, "{:?}", attach.role);
                peer.detach(link);
            }
        }
    }
}

/// As sender of a link the router keeps to its mode: all settled, none settled, or as its own sender did.
#[test]
fn t_09_the_router_sends_by_the_mode_of_the_link() {
    let router = Router::start();
    let mut peer = router.peer();
    for snd_settle_mode in SND_MODES {
        // An address of its own: those that the consumers before had may be known for a while.
        let address = format!("q/{snd_settle_mode:?}");
        let mut consumer = router.peer();
        let (link, _) = consumer.attach(0, Attach { snd_settle_mode, ..receiver(&address) });
        consumer.grant(link, 100);
        let sender = peer.attach_sender(&address);
        for settled in [false, true] {
            let id = peer.send_delivery(sender, &message::data(b"x"), settled);
            let delivery = consumer.expect_delivery();
            let expected = match snd_settle_mode {
                SenderSettleMode::Unsettled => false,
                SenderSettleMode::Settled => true,
                SenderSettleMode::Mixed => settled,
            };
            assert_eq!(delivery.settled, expected, "{snd_settle_mode:?}, sent settled: {settled}");
            if !delivery.settled {
                consumer.accept(&delivery);
            }
            if !settled {
                // Towards a receiver that wants no part in it, accepted is what is known (router-protocol
                // reference §8.5).
                let outcome = peer.expect_outcome(id);
                assert_eq!(outcome.disposition().state, Some(DeliveryState::Accepted));
                assert!(outcome.disposition().settled);
            }
        }
        peer.expect_nothing_for(100);
        peer.detach(sender);
    }
}

/// rcv-settle-mode second, claimed and kept: as receiver the router tells the outcome and doesn't settle; the
/// sender does.
#[test]
fn t_09_second_as_receiver() {
    let router = Router::start();
    let mut consumer = router.peer();
    consumer.attach_receiver("q", 1000);
    let mut peer = router.peer();
    let attach = Attach { rcv_settle_mode: ReceiverSettleMode::Second, ..sender(Some("q")) };
    let (link, _) = peer.attach(0, attach);
    let mut accepted = |peer: &mut Peer| {
        let id = peer.send_delivery(link, &message::data(b"x"), false);
        let delivery = consumer.expect_delivery();
        consumer.accept(&delivery);
        let outcome = peer.expect_outcome(id);
        assert_eq!(outcome.disposition().state, Some(DeliveryState::Accepted));
        assert!(!outcome.disposition().settled, "the receiver settles second");
        id
    };
    // More than the capacity, so that credit comes back only by the sender's settling.
    for _ in 0..300 {
        let id = accepted(&mut peer);
        peer.settle(0, id, None);
    }
    peer.expect_nothing_for(100);
    consumer.expect_nothing_for(1);
}

/// The sender may say of a single delivery that its receiver settles first, on a link where it settles second
/// (§2.7.5). The other way round is illegal.
#[test]
fn t_09_a_single_delivery_may_have_another_mode() {
    let router = Router::start();
    let mut consumer = router.peer();
    consumer.attach_receiver("q", 1000);
    let mut peer = router.peer();
    let attach = Attach { rcv_settle_mode: ReceiverSettleMode::Second, ..sender(Some("q")) };
    let (link, _) = peer.attach(0, attach);
    peer.await_credit(link, 1);
    let modes =
        [(None, false), (Some(ReceiverSettleMode::First), true), (Some(ReceiverSettleMode::Second), false)];
    for (id, (rcv_settle_mode, is_settled)) in (0..).zip(modes) {
        let transfer = Transfer { rcv_settle_mode, ..first_transfer(link, id, b"t", false, false) };
        peer.send_transfer(0, transfer, &message::data(b"x"));
        let delivery = consumer.expect_delivery();
        consumer.accept(&delivery);
        let outcome = peer.expect_outcome(id);
        assert_eq!(outcome.disposition().state, Some(DeliveryState::Accepted));
        assert_eq!(outcome.disposition().settled, is_settled, "{rcv_settle_mode:?}");
        if !is_settled {
            peer.settle(0, id, None);
        }
    }
    peer.expect_nothing_for(100);

    let link = peer.attach_sender("q");
    peer.await_credit(link, 1);
    let rcv_settle_mode = Some(ReceiverSettleMode::Second);
    let transfer = Transfer { rcv_settle_mode, ..first_transfer(link, 3, b"t", false, false) };
    peer.send_transfer(0, transfer, &message::data(b"x"));
    peer.expect_detached_with(link, "amqp:invalid-field");
}

/// rcv-settle-mode second towards a receiver: its outcome travels, and only when the sender has settled is
/// the receiver told so.
#[test]
fn t_09_second_as_sender() {
    for sender_mode in RCV_MODES {
        let router = Router::start();
        let mut consumer = router.peer();
        let attach = Attach { rcv_settle_mode: ReceiverSettleMode::Second, ..receiver("q") };
        let (receiver, _) = consumer.attach(0, attach);
        consumer.grant(receiver, 100);
        let mut peer = router.peer();
        let (link, _) = peer.attach(0, Attach { rcv_settle_mode: sender_mode, ..sender(Some("q")) });
        for _ in 0..3 {
            let id = peer.send_delivery(link, &message::data(b"x"), false);
            let delivery = consumer.expect_delivery();
            consumer.dispose(&delivery, false, Some(DeliveryState::Accepted));
            let outcome = peer.expect_outcome(id);
            assert_eq!(outcome.disposition().state, Some(DeliveryState::Accepted));
            if !outcome.disposition().settled {
                consumer.expect_nothing_for(50);
                peer.settle(0, id, None);
            }
            let settled = consumer.expect("disposition");
            assert!(settled.disposition().settled);
            assert_eq!(
                (settled.disposition().role, settled.disposition().first),
                (Role::Sender, delivery.id)
            );
        }
        // One that its sender had settled before is settled by the router.
        peer.send_delivery(link, &message::data(b"x"), true);
        let delivery = consumer.expect_delivery();
        if !delivery.settled {
            consumer.dispose(&delivery, false, Some(DeliveryState::Accepted));
            assert!(consumer.expect("disposition").disposition().settled);
        }
    }
}

/// A refusal is an attach without the terminus of the router's side, and right behind it a detach that closes
/// the link, with the error (§2.6.3). Session and other links go on; once both detaches are exchanged the
/// handle is free.
#[test]
fn l_01_a_refusal_is_an_attach_and_a_detach() {
    let sections = "address {\n prefix: closed\n distribution: unavailable\n}";
    let router = Router::with(Setup { sections, ..Setup::default() });
    let mut peer = router.peer();
    peer.attach_receiver("q", 1000);
    let good = peer.attach_sender("q");

    let no_source = Attach { source: None, ..receiver("unused") };
    let no_address = Attach { source: Some(Source::default()), ..receiver("unused") };
    let coordinator = Target::Coordinator(Coordinator::default());
    let transaction = Attach { target: Some(coordinator), ..sender(None) };
    let refusals: [(Attach<'_>, &str); 9] = [
        (sender(Some("closed")), "amqp:not-found"),
        (sender(Some("closed/x")), "amqp:not-found"),
        (receiver("closed/x"), "amqp:not-found"),
        (no_source, "qd:no-route-to-dest"),
        (no_address, "qd:no-route-to-dest"),
        // Addresses of a router that isn't known here.
        (receiver("amqp:/_topo/0/UNKNOWN/x"), "qd:no-route-to-dest"),
        (receiver("amqp:/_edge/UNKNOWN/x"), "qd:no-route-to-dest"),
        (transaction, "amqp:precondition-failed"),
        // The router itself receives there.
        (receiver("$management"), "amqp:not-allowed"),
    ];
    let mut handles = Vec::new();
    for (attach, condition) in refusals {
        let link = peer.send_attach(0, attach);
        handles.push(link.handle);
        let name = peer.link(link).name.clone();
        let answer = peer.expect_where("attach", |frame| frame.attach().name == name);
        peer.forget_pending();
        match attach.role {
            Role::Sender => assert!(answer.attach().target.is_none(), "{answer:?}"),
            Role::Receiver => assert!(answer.attach().source.is_none(), "{answer:?}"),
        }
        let next = peer.expect_any();
        assert_eq!(next.name(), "detach", "right behind the attach: {next:?}");
        let detach = next.detach();
        assert_eq!(detach.handle, answer.attach().handle);
        assert!(detach.closed);
        let error = detach.error.expect("an error");
        assert_eq!(error.condition.0, condition);
        assert!(error.description.is_some_and(|text| !text.is_empty()));
        peer.answer_detach(link);

        // The session and its other links go on.
        exchange(&mut peer, good);
        // The handle is free: another link takes it, and works.
        let (again, _) = peer.attach(0, sender(Some("q")));
        assert_eq!(again.handle, link.handle);
        exchange(&mut peer, again);
        peer.detach(again);
    }
    assert!(
        handles.iter().all(|handle| *handle == handles[0]),
        "the peer used one handle for all: {handles:?}"
    );
}

/// Both refusals in one write, and a good link behind them.
#[test]
fn l_01_refusals_one_after_the_other() {
    let sections = "address {\n prefix: closed\n distribution: unavailable\n}";
    let router = Router::with(Setup { sections, ..Setup::default() });
    let mut peer = router.peer();
    let closed = Attach { name: "a", handle: 0, ..sender(Some("closed")) };
    peer.queue(0, Performative::Attach(closed), &[]);
    let closed = Attach { name: "b", handle: 1, ..receiver("closed") };
    peer.queue(0, Performative::Attach(closed), &[]);
    peer.queue(0, Performative::Attach(Attach { name: "c", handle: 2, ..sender(Some("q")) }), &[]);
    peer.flush();
    let names: Vec<&str> = (0..5).map(|_| peer.expect_any().name()).collect();
    assert_eq!(names, ["attach", "detach", "attach", "detach", "attach"]);
    for handle in [0, 1] {
        peer.answer_detach(LinkId { channel: 0, handle });
    }
    peer.attach_receiver("q", 10);
    exchange(&mut peer, LinkId { channel: 0, handle: 2 });
}

/// One message to the peer's own receiver.
#[track_caller]
fn exchange(peer: &mut Peer, sender: LinkId) {
    let id = peer.send_delivery(sender, &message::data(b"x"), false);
    let delivery = peer.expect_delivery();
    peer.accept(&delivery);
    assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
}
