//! Deliveries of several frames: T-01, T-02 (AMQP 1.0 §2.6.12 to 2.6.14, §2.7.5).

use ringmain_codec::{DeliveryState, Transfer};

use crate::support::{LinkId, Peer, Router, first_transfer, message};

/// A router, a sender with credit, and a receiver with plenty of it.
struct Pair {
    router: Router,
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
        peer.await_credit(sender, 1);
        Self { router, peer, sender, consumer }
    }

    /// One message from end to end: the links go on.
    #[track_caller]
    fn exchange(&mut self) {
        let message = message::sized(50, 9);
        let id = self.peer.send_delivery(self.sender, &message, false);
        let delivery = self.consumer.expect_delivery();
        assert_eq!(delivery.payload, message);
        self.consumer.accept(&delivery);
        assert_eq!(self.peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
    }

    /// Makes sure that nothing of what was begun is complete at the receiver, and that its link serves
    /// others.
    #[track_caller]
    fn expect_nothing_complete(&mut self) {
        self.consumer.expect_only_for(200, &["transfer", "flow"]);
        while let Some(delivery) = self.consumer.take_delivery() {
            assert!(delivery.aborted, "a message that was never sent: {delivery:?}");
        }
        self.consumer.forget_pending();
        self.peer = self.router.peer();
        self.sender = self.peer.attach_sender("q");
        self.exchange();
    }
}

fn next(link: LinkId, more: bool) -> Transfer<'static> {
    Transfer { handle: link.handle, more, ..Transfer::default() }
}

/// A message in three parts, the frames of which say only what they must.
#[test]
fn t_01_continuation_frames_need_no_delivery_id_tag_or_format() {
    let mut pair = Pair::new();
    let message = message::sized(3000, 1);
    let link = pair.sender;
    pair.peer.send_transfer(0, first_transfer(link, 0, b"t", false, true), &message[..1000]);
    pair.peer.send_transfer(0, next(link, true), &message[1000..2000]);
    pair.peer.send_transfer(0, next(link, false), &message[2000..]);
    let delivery = pair.consumer.expect_delivery();
    assert_eq!(delivery.payload, message);
    assert_eq!(delivery.message_format, 0);
    pair.consumer.accept(&delivery);
    assert_eq!(pair.peer.expect_outcome(0).disposition().state, Some(DeliveryState::Accepted));
    pair.exchange();
}

/// They may repeat what the first one said, and the last may have nothing in it.
#[test]
fn t_01_continuation_frames_may_repeat_themselves() {
    let mut pair = Pair::new();
    let message = message::sized(2000, 2);
    let link = pair.sender;
    pair.peer.send_transfer(0, first_transfer(link, 0, b"t", false, true), &message[..1000]);
    pair.peer.send_transfer(0, first_transfer(link, 0, b"t", false, true), &message[1000..]);
    pair.peer.send_transfer(0, next(link, false), &[]);
    let delivery = pair.consumer.expect_delivery();
    assert_eq!(delivery.payload, message);
    pair.consumer.accept(&delivery);
    pair.peer.expect_outcome(0);
    pair.exchange();
}

/// Another delivery-id on a continuation frame is an error, and no message comes of it.
#[test]
fn t_01_a_continuation_frame_with_another_delivery_id_is_an_error() {
    let mut pair = Pair::new();
    let message = message::sized(2000, 3);
    let link = pair.sender;
    pair.peer.send_transfer(0, first_transfer(link, 0, b"t", false, true), &message[..1000]);
    let other = Transfer { delivery_id: Some(7), ..next(link, false) };
    pair.peer.send_transfer(0, other, &message[1000..]);
    assert_eq!(pair.peer.expect_ended(0), "amqp:not-allowed");
    pair.expect_nothing_complete();
}

/// The first frame must have a tag, of 32 bytes at most.
#[test]
fn t_01_the_first_frame_must_have_a_tag() {
    for tag in [None, Some(&[1; 33][..])] {
        let mut pair = Pair::new();
        let link = pair.sender;
        let transfer = Transfer { delivery_tag: tag, ..first_transfer(link, 0, b"", false, false) };
        pair.peer.send_transfer(0, transfer, &message::data(b"x"));
        pair.peer.expect_detached_with(link, "amqp:invalid-field");
        pair.expect_nothing_complete();
    }
    // The empty tag, and one of 32 bytes, are tags.
    let mut pair = Pair::new();
    for (id, tag) in [(0, &[][..]), (1, &[1; 32][..])] {
        let transfer = first_transfer(pair.sender, id, tag, false, false);
        pair.peer.send_transfer(0, transfer, &message::data(b"x"));
        let delivery = pair.consumer.expect_delivery();
        pair.consumer.accept(&delivery);
        pair.peer.expect_outcome(id);
    }
}

/// The first frame must have a delivery-id.
#[test]
fn t_01_the_first_frame_must_have_a_delivery_id() {
    let mut pair = Pair::new();
    let transfer = Transfer { delivery_id: None, ..first_transfer(pair.sender, 0, b"t", false, false) };
    pair.peer.send_transfer(0, transfer, &message::data(b"x"));
    assert_eq!(pair.peer.expect_ended(0), "amqp:invalid-field");
    pair.expect_nothing_complete();
}

/// `settled` holds once any frame has said so: there is no outcome for the sender, and the receiver isn't
/// left with a delivery that nobody settles.
#[test]
fn t_01_settled_in_the_middle_counts() {
    for spoken in [1, 2, 3] {
        let mut pair = Pair::new();
        let link = pair.sender;
        let message = message::sized(4000, 4);
        pair.peer.send_transfer(0, first_transfer(link, 0, b"t", false, true), &message[..1000]);
        for part in 1..4 {
            let transfer = Transfer { settled: (part == spoken).then_some(true), ..next(link, part < 3) };
            pair.peer.send_transfer(0, transfer, &message[part * 1000..(part + 1) * 1000]);
        }
        let delivery = pair.consumer.expect_delivery();
        assert_eq!(delivery.payload, message);
        if !delivery.settled {
            // The router had sent the first frame before it knew. It settles when the receiver has spoken, at
            // the latest.
            pair.consumer.dispose(&delivery, false, Some(DeliveryState::Accepted));
            let settled = pair.consumer.expect("disposition");
            assert!(settled.disposition().settled, "{settled:?}");
        }
        pair.peer.expect_nothing_for(200);
        pair.exchange();
    }
}

/// Two links of a session alternate frames of two deliveries (§2.6.14): both arrive as they were sent.
#[test]
fn t_02_a_links_may_interleave() {
    let router = Router::start();
    let mut consumer = router.peer();
    let receivers = [consumer.attach_receiver("q/0", 10), consumer.attach_receiver("q/1", 10)];
    let mut peer = router.peer();
    let senders = [peer.attach_sender("q/0"), peer.attach_sender("q/1")];
    let messages = [message::sized(100 * 1024, 1), message::sized(100 * 1024, 2)];
    for sender in senders {
        peer.await_credit(sender, 1);
    }
    let pieces: Vec<Vec<&[u8]>> = messages.iter().map(|message| message.chunks(1000).collect()).collect();
    for (number, (first, second)) in pieces[0].iter().zip(&pieces[1]).enumerate() {
        for (which, piece) in [first, second].into_iter().enumerate() {
            let more = number + 1 < pieces[which].len();
            let id = u32::try_from(which).expect("0 or 1");
            let transfer = if number == 0 {
                first_transfer(senders[which], id, b"t", false, more)
            } else {
                next(senders[which], more)
            };
            peer.send_transfer(0, transfer, piece);
        }
    }
    for _ in 0..2 {
        let delivery = consumer.expect_delivery();
        let which = receivers.iter().position(|&receiver| receiver == delivery.link).expect("one of them");
        assert!(delivery.payload == messages[which], "contents of link {which}");
        consumer.accept(&delivery);
        let id = u32::try_from(which).expect("0 or 1");
        assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
    }
}

/// Deliveries of one link may not interleave: the error costs the session or the link, and no mixed message
/// is delivered.
#[test]
fn t_02_b_deliveries_of_one_link_may_not_interleave() {
    let mut pair = Pair::new();
    let link = pair.sender;
    let (first, second) = (message::sized(2000, 1), message::sized(2000, 2));
    pair.peer.send_transfer(0, first_transfer(link, 0, b"a", false, true), &first[..1000]);
    pair.peer.send_transfer(0, first_transfer(link, 1, b"b", false, true), &second[..1000]);
    assert_eq!(pair.peer.expect_ended(0), "amqp:not-allowed");
    pair.expect_nothing_complete();
}

/// The router sends on two links of one session at once, from two senders that send in small frames: its
/// delivery-ids follow the order of the first frames (the peer checks them), and the contents are intact.
#[test]
fn t_02_c_the_router_numbers_deliveries_in_the_order_of_their_first_frames() {
    const ROUNDS: u8 = 20;
    let router = Router::start();
    let mut consumer = router.peer();
    let receivers = [consumer.attach_receiver("q/0", 1000), consumer.attach_receiver("q/1", 1000)];
    let mut peers = ["q/0", "q/1"].map(|address| {
        let mut peer = router.peer();
        let link = peer.attach_sender(address);
        peer.await_credit(link, u32::from(ROUNDS));
        (peer, link)
    });
    for round in 0..ROUNDS {
        let message = message::sized(10_000, round);
        let id = u32::from(round);
        for (number, piece) in message.chunks(700).enumerate() {
            let more = (number + 1) * 700 < message.len();
            for (which, (peer, link)) in peers.iter_mut().enumerate() {
                // Now one is ahead, now the other.
                if number == 0 && (usize::from(round) + which) % 3 == 0 {
                    std::thread::yield_now();
                }
                let transfer = if number == 0 {
                    first_transfer(*link, id, b"t", false, more)
                } else {
                    next(*link, more)
                };
                peer.send_transfer(0, transfer, piece);
            }
        }
    }
    let mut came = [0, 0];
    for _ in 0..2 * ROUNDS {
        let delivery = consumer.expect_delivery();
        let which = receivers.iter().position(|&receiver| receiver == delivery.link).expect("one of them");
        assert!(delivery.payload == message::sized(10_000, came[which]), "contents of link {which}");
        came[which] += 1;
        consumer.accept(&delivery);
    }
    for (peer, _) in &mut peers {
        peer.absorb_until("all outcomes", |peer| peer.outcomes.accepted == usize::from(ROUNDS));
    }
}
