//! What a disposition says survives the router: T-07 (AMQP 1.0 §2.7.6, §3.4, §4.5).

use ringmain_codec::{
    DeliveryState, Error, Modified, Received, Rejected, Symbol, TransactionalState, Value, Writer,
};

use crate::support::{LinkId, Peer, Router, Setup, message};

struct Pair {
    _router: Router,
    peer: Peer,
    sender: LinkId,
    consumer: Peer,
}

impl Pair {
    fn new() -> Self {
        let router = Router::start();
        let mut consumer = router.peer();
        consumer.attach_receiver("q", 100);
        let mut peer = router.peer();
        let sender = peer.attach_sender("q");
        Self { _router: router, peer, sender, consumer }
    }

    /// The receiver settles a delivery with a state, which the sender sees as it is.
    #[track_caller]
    fn passes(&mut self, state: DeliveryState<'_>) {
        let id = self.peer.send_delivery(self.sender, &message::data(b"x"), false);
        let delivery = self.consumer.expect_delivery();
        self.consumer.dispose(&delivery, true, Some(state));
        let outcome = self.peer.expect_outcome(id);
        assert!(outcome.disposition().settled);
        assert_eq!(outcome.disposition().state, Some(state));
        assert_eq!(
            message::value(&outcome.disposition().state.expect("a state")),
            message::value(&state),
            "the types of what it holds"
        );
    }
}

fn map(write: impl Fn(&mut Writer<'_>) -> Result<(), ringmain_codec::Full>) -> Vec<u8> {
    message::encoded(|writer| writer.map(|writer| write(writer)))
}

#[test]
fn t_07_rejected_with_its_error() {
    let mut pair = Pair::new();
    let info = map(|writer| {
        writer.put(&Symbol("k"))?;
        writer.put("v")?;
        writer.put(&Symbol("n"))?;
        writer.put(&17u64)?;
        writer.put(&Symbol("l"))?;
        writer.list(|writer| writer.put(&true))
    });
    let info = Value::from_encoded(&info).expect("a map");
    let error = Error { condition: Symbol("x:y"), description: Some("why it is so"), info: Some(info) };
    pair.passes(DeliveryState::Rejected(Rejected { error: Some(error) }));
    pair.passes(DeliveryState::Rejected(Rejected {
        error: Some(Error { condition: Symbol("x:y"), description: None, info: None }),
    }));
    pair.passes(DeliveryState::Rejected(Rejected { error: None }));
}

/// Dispatch forces delivery-failed to true; here it is passed on as it came (docs/decisions.md).
#[test]
fn t_07_modified_with_all_its_fields() {
    let mut pair = Pair::new();
    let annotations = map(|writer| {
        writer.put(&Symbol("x-opt-a"))?;
        writer.put(&-1i32)?;
        writer.put(&Symbol("x-opt-b"))?;
        writer.put(b"\0\xff".as_slice())
    });
    let annotations = Value::from_encoded(&annotations).expect("a map");
    for delivery_failed in [None, Some(false), Some(true)] {
        for undeliverable_here in [None, Some(false), Some(true)] {
            for message_annotations in [None, Some(annotations)] {
                let modified = Modified { delivery_failed, undeliverable_here, message_annotations };
                pair.passes(DeliveryState::Modified(modified));
            }
        }
    }
}

#[test]
fn t_07_outcomes_without_data() {
    let mut pair = Pair::new();
    pair.passes(DeliveryState::Accepted);
    pair.passes(DeliveryState::Released);
}

/// `received` isn't an outcome: it passes, the delivery stays as it is, and the outcome follows.
#[test]
fn t_07_received_and_then_the_outcome() {
    let mut pair = Pair::new();
    let id = pair.peer.send_delivery(pair.sender, &message::data(b"x"), false);
    let delivery = pair.consumer.expect_delivery();
    for (section_number, section_offset) in [(0, 3), (1, u64::MAX)] {
        let received = DeliveryState::Received(Received { section_number, section_offset });
        pair.consumer.dispose(&delivery, false, Some(received));
        let state = pair.peer.expect_outcome(id);
        assert_eq!(state.disposition().state, Some(received));
        assert!(!state.disposition().settled);
    }
    pair.consumer.accept(&delivery);
    let outcome = pair.peer.expect_outcome(id);
    assert_eq!(outcome.disposition().state, Some(DeliveryState::Accepted));
    assert!(outcome.disposition().settled);
}

/// States that the router has no part in pass as they are.
#[test]
fn t_07_states_of_transactions_and_of_others() {
    let mut pair = Pair::new();
    let outcome = message::value(&DeliveryState::Accepted);
    let outcome = Value::from_encoded(&outcome).expect("an outcome");
    pair.passes(DeliveryState::Transactional(TransactionalState { txn_id: b"txn", outcome: Some(outcome) }));
    let other = message::encoded(|writer| {
        writer.described_as(Symbol("example:state:list"), |writer| writer.list(|writer| writer.put("data")))
    });
    pair.passes(DeliveryState::Other(Value::from_encoded(&other).expect("a described list")));
}

/// The receiver tells an outcome without settling: so does the router. When the sender settles, so does the
/// router towards the receiver, and it is over for both.
#[test]
fn t_07_unsettled_stays_unsettled_until_the_sender_settles() {
    let mut pair = Pair::new();
    let error = Error { condition: Symbol("x:y"), description: Some("d"), info: None };
    for state in [DeliveryState::Accepted, DeliveryState::Rejected(Rejected { error: Some(error) })] {
        let id = pair.peer.send_delivery(pair.sender, &message::data(b"x"), false);
        let delivery = pair.consumer.expect_delivery();
        pair.consumer.dispose(&delivery, false, Some(state));
        let outcome = pair.peer.expect_outcome(id);
        assert_eq!(outcome.disposition().state, Some(state));
        assert!(!outcome.disposition().settled);
        pair.consumer.expect_nothing_for(100);
        pair.peer.settle(0, id, None);
        let settled = pair.consumer.expect("disposition");
        let settled = settled.disposition();
        assert_eq!(settled.role, ringmain_codec::Role::Sender);
        assert_eq!((settled.first, settled.settled), (delivery.id, true));
        pair.peer.expect_nothing_for(100);
    }
}

/// Of several copies the sender hears the strongest outcome, rejected before accepted before modified before
/// released, with the data of the copy that decided; settled when all copies are.
#[test]
fn t_07_of_several_copies_the_strongest_outcome_counts() {
    let sections = "address {\n prefix: m\n distribution: multicast\n}";
    let router = Router::with(Setup { sections, ..Setup::default() });
    let mut consumers: Vec<Peer> = (0..3)
        .map(|_| {
            let mut consumer = router.peer();
            consumer.attach_receiver("m", 100);
            consumer
        })
        .collect();
    let mut peer = router.peer();
    let sender = peer.attach_sender("m");
    let error = Error { condition: Symbol("x:y"), description: Some("why"), info: None };
    let rejected = DeliveryState::Rejected(Rejected { error: Some(error) });
    let annotations = map(|writer| writer.put(&Symbol("x-opt-a")).and_then(|()| writer.put(&1i32)));
    let message_annotations = Some(Value::from_encoded(&annotations).expect("a map"));
    let modified = DeliveryState::Modified(Modified {
        delivery_failed: Some(false),
        undeliverable_here: Some(true),
        message_annotations,
    });
    let (accepted, released) = (DeliveryState::Accepted, DeliveryState::Released);
    for (states, strongest) in [
        ([accepted, rejected, released], rejected),
        ([released, accepted, modified], accepted),
        ([released, modified, released], modified),
        ([released, released, released], released),
        ([accepted, accepted, accepted], accepted),
    ] {
        let id = peer.send_delivery(sender, &message::data(b"x"), false);
        for (number, (consumer, state)) in consumers.iter_mut().zip(states).enumerate() {
            let delivery = consumer.expect_delivery();
            if number == 2 {
                peer.expect_nothing_for(50);
            }
            consumer.dispose(&delivery, true, Some(state));
        }
        let outcome = peer.expect_outcome(id);
        assert!(outcome.disposition().settled);
        assert_eq!(outcome.disposition().state, Some(strongest));
    }
}

/// A producer goes: what it sent and still waits is delivered, what it sent in part is aborted, and what its
/// receiver hasn't settled is settled by the router.
#[test]
fn t_07_a_producer_that_goes() {
    for closes in [true, false] {
        let router = Router::start();
        let mut consumer = router.peer();
        let receiver = consumer.attach_receiver("q", 1);
        let mut peer = router.peer();
        let sender = peer.attach_sender("q");
        peer.send_delivery(sender, &message::data(b"had"), false);
        let had = consumer.expect_delivery();
        peer.send_delivery(sender, &message::data(b"waits"), false);
        peer.send_part(sender, &message::sized(1000, 1)[..500], true);
        // All of it has been taken when the next begin is answered.
        peer.begin();
        if closes {
            peer.close();
        } else {
            drop(peer);
        }
        let settled = consumer.expect("disposition");
        assert_eq!((settled.disposition().first, settled.disposition().settled), (had.id, true));
        consumer.grant(receiver, 10);
        let waited = consumer.expect_delivery();
        assert_eq!(waited.payload, message::data(b"waits"));
        consumer.expect_only_for(200, &["transfer", "flow", "disposition"]);
        while let Some(delivery) = consumer.take_delivery() {
            assert!(delivery.aborted, "{delivery:?}");
        }
        // The address goes on.
        consumer.forget_pending();
        let mut peer = router.peer();
        let sender = peer.attach_sender("q");
        let id = peer.send_delivery(sender, &message::data(b"next"), false);
        let delivery = consumer.expect_delivery();
        assert_eq!(delivery.payload, message::data(b"next"));
        consumer.accept(&delivery);
        assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
    }
}
