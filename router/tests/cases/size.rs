//! max-message-size: T-11 (AMQP 1.0 §2.7.3).

use ringmain_codec::{Attach, DeliveryState, Transfer};

use crate::support::{
    PATIENCE, Peer, Router, Setup, first_transfer, is_condition, message, receiver, sender,
};

const EXCEEDED: &str = "amqp:link:message-size-exceeded";

/// Without a limit the router's attach has none: 0 and absent mean the same.
#[test]
fn t_11_a_no_limit_is_zero_or_absent() {
    let router = Router::start();
    let mut peer = router.peer();
    let (_, answer) = peer.attach(0, sender(Some("q")));
    assert!(matches!(answer.attach().max_message_size, None | Some(0)), "{answer:?}");
    let (_, answer) = peer.attach(0, receiver("q"));
    assert!(matches!(answer.attach().max_message_size, None | Some(0)), "{answer:?}");
}

/// A router that takes 1000 bytes, and a receiver there.
fn limited() -> (Router, Peer) {
    let router = Router::with(Setup { listener: "maxMessageSize: 1000", ..Setup::default() });
    let mut consumer = router.peer();
    consumer.attach_receiver("q", 100);
    (router, consumer)
}

/// The whole message counts, annotations and all: 1000 bytes are taken.
#[test]
fn t_11_b_a_message_of_just_the_limit() {
    let (router, mut consumer) = limited();
    let mut peer = router.peer();
    let (link, answer) = peer.attach(0, sender(Some("q")));
    assert_eq!(answer.attach().max_message_size, Some(1000));
    let whole = message::sized(1000, 1);
    let id = peer.send_delivery(link, &whole, false);
    let delivery = consumer.expect_delivery();
    assert_eq!(delivery.payload, whole);
    consumer.accept(&delivery);
    assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));

    // In four frames, too.
    for (number, piece) in whole.chunks(250).enumerate() {
        let transfer = if number == 0 {
            first_transfer(link, 1, b"t", false, true)
        } else {
            Transfer { handle: link.handle, more: number < 3, ..Transfer::default() }
        };
        peer.send_transfer(0, transfer, piece);
    }
    let delivery = consumer.expect_delivery();
    assert_eq!(delivery.payload, whole);
    consumer.accept(&delivery);
    peer.expect_outcome(1);
}

/// 1001 bytes in one frame, without and with annotations: an error of the link, and nobody gets the message.
#[test]
fn t_11_b_one_byte_more() {
    let (router, mut consumer) = limited();
    let annotated = {
        let mut message = message::encoded(|writer| {
            writer.described(0x72, |writer| {
                writer.map(|writer| {
                    writer.put(&ringmain_codec::Symbol("x-opt-a"))?;
                    writer.put("annotations count too")
                })
            })
        });
        message.extend(message::sized(1001 - message.len(), 2));
        message
    };
    for message in [message::sized(1001, 2), annotated] {
        assert_eq!(message.len(), 1001);
        let mut peer = router.peer();
        let link = peer.attach_sender("q");
        peer.send_delivery(link, &message, false);
        let description = peer.expect_detached_with(link, EXCEEDED);
        assert!(description.contains("1000"), "{description}");
        // The session goes on.
        let link = peer.attach_sender("q");
        let id = peer.send_delivery(link, &message::sized(10, 1), false);
        let delivery = consumer.expect_delivery();
        assert_eq!(delivery.payload.len(), 10);
        consumer.accept(&delivery);
        peer.expect_outcome(id);
    }
}

/// 2000 bytes in frames of 500: discovered at the third, which is the first one over the limit. What had gone
/// on is aborted.
#[test]
fn t_11_b_discovered_at_the_first_frame_over_it() {
    let (router, mut consumer) = limited();
    let mut peer = router.peer();
    let link = peer.attach_sender("q");
    peer.await_credit(link, 1);
    let message = message::sized(2000, 3);
    peer.send_transfer(0, first_transfer(link, 0, b"t", false, true), &message[..500]);
    let next = Transfer { handle: link.handle, more: true, ..Transfer::default() };
    peer.send_transfer(0, next, &message[500..1000]);
    peer.expect_nothing_for(200);
    peer.send_transfer(0, next, &message[1000..1500]);
    peer.expect_detached_with(link, EXCEEDED);
    consumer.expect_only_for(200, &["transfer", "flow"]);
    while let Some(delivery) = consumer.take_delivery() {
        assert!(delivery.aborted, "{} bytes delivered", delivery.bytes);
    }
    consumer.forget_pending();
    // The receiver's link goes on.
    let link = peer.attach_sender("q");
    let id = peer.send_delivery(link, &message::sized(10, 1), false);
    let delivery = consumer.expect_delivery();
    consumer.accept(&delivery);
    peer.expect_outcome(id);
}

/// A stream without end: the sender goes on for 64 MiB without looking, and the router's memory stays as it
/// is.
#[test]
fn t_11_b_a_stream_beyond_the_limit_costs_no_memory() {
    let (router, _consumer) = limited();
    let mut peer = router.peer();
    let link = peer.attach_sender("q");
    peer.await_credit(link, 1);
    let before = router.memory();
    let piece = vec![0x55; 16_000];
    peer.send_transfer(0, first_transfer(link, 0, b"t", false, true), &message::data(&piece));
    let next = Transfer { handle: link.handle, more: true, ..Transfer::default() };
    let mut detach = None;
    for _ in 0..(64 << 20) / piece.len() {
        while peer.session(0).remote_incoming_window == 0 {
            let frame = peer.poll(PATIENCE).expect("the window opens, whatever becomes of the link");
            if frame.name() == "detach" {
                detach = Some(frame);
            }
        }
        peer.send_transfer(0, next, &piece);
    }
    let grown = router.memory().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes more");
    let detach = detach.unwrap_or_else(|| peer.expect("detach"));
    assert!(detach.detach().closed && is_condition(detach.detach().error, EXCEEDED), "{detach:?}");
    peer.answer_detach(link);
    let link = peer.attach_sender("q");
    peer.await_credit(link, 1);
}

/// A receiver's limit: what is larger isn't sent to it, and the producer is told so (docs/decisions.md). What
/// isn't goes as ever.
#[test]
fn t_11_c_a_receivers_limit() {
    let router = Router::start();
    let mut consumer = router.peer();
    let (link, _) = consumer.attach(0, Attach { max_message_size: Some(1000), ..receiver("q") });
    let mut peer = router.peer();
    let anonymous = peer.attach_anonymous();
    // One that waits for credit when it is sent, one that finds it; one in a frame, one in several.
    let mut refused = Vec::new();
    for has_credit in [false, true] {
        if has_credit {
            consumer.grant(link, 100);
            consumer.begin();
        }
        for size in [1001, 2000, 40_000] {
            let message = addressed_sized(size);
            refused.push(peer.send_delivery(anonymous, &message, false));
            peer.begin();
        }
    }
    for id in refused {
        let outcome = peer.expect_outcome(id);
        assert!(outcome.disposition().settled);
        let Some(DeliveryState::Rejected(rejected)) = outcome.disposition().state else {
            panic!("{outcome:?}")
        };
        assert_eq!(rejected.error.map(|error| error.condition.0), Some(EXCEEDED));
    }
    consumer.expect_only_for(100, &["transfer", "flow"]);
    while let Some(delivery) = consumer.take_delivery() {
        assert!(delivery.aborted, "{} bytes delivered", delivery.bytes);
    }
    consumer.forget_pending();

    let message = addressed_sized(1000);
    let id = peer.send_delivery(anonymous, &message, false);
    let delivery = consumer.expect_delivery();
    assert_eq!(delivery.payload, message);
    consumer.accept(&delivery);
    assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
}

/// A message to `q` of so many bytes in all.
fn addressed_sized(size: usize) -> Vec<u8> {
    let overhead = message::addressed("q", &[]).len();
    let message = message::addressed("q", &vec![0x33; size - overhead]);
    assert_eq!(message.len(), size);
    message
}
