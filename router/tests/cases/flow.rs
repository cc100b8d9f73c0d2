//! Windows and credit: F-03, F-04, F-05 (AMQP 1.0 §2.5.6, §2.6.7).

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ringmain_codec::{Attach, Begin, DeliveryState, Flow, Performative};

use crate::support::{Delivery, LinkId, Peer, Router, Setup, frame_bytes, message, sender};

/// More than 2^16.
const MANY: usize = 70_000;

fn numbered(number: usize) -> Vec<u8> {
    message::data(&number.to_be_bytes())
}

/// The receiver's window is 100 frames, reopened by flows that name no link: the router never exceeds it (the
/// peer checks each frame), goes on at each flow, and all messages arrive, in order.
#[test]
fn f_03_a_a_session_only_flow_reopens_the_window() {
    const WINDOW: u32 = 100;
    const REFRESH: usize = 50;
    let router = Router::start();
    let mut consumer = router.connect();
    consumer.open_with(Default::default());
    consumer.begin_with(WINDOW);
    consumer.attach_receiver("q", u32::try_from(MANY).expect("it fits"));
    let mut peer = router.peer();
    let link = peer.attach_sender("q");
    let producer = std::thread::spawn(move || {
        peer.send_many(link, MANY, false, numbered);
        peer.absorb_until("all outcomes", |peer| peer.outcomes.total() == MANY);
        assert_eq!(peer.outcomes.accepted, MANY);
    });

    let mut taken = Vec::new();
    while taken.len() < WINDOW as usize {
        taken.push(consumer.expect_delivery());
    }
    consumer.expect_nothing_for(300);
    let mut received = 0;
    loop {
        for delivery in &taken {
            assert_eq!(delivery.payload, numbered(received), "message {received}");
            received += 1;
        }
        if let (Some(first), Some(last)) = (taken.first(), taken.last()) {
            consumer.dispose_range(0, first.id, last.id, true, Some(DeliveryState::Accepted));
        }
        if received == MANY {
            break;
        }
        taken.clear();
        consumer.open_window(0, WINDOW);
        while taken.len() < REFRESH && received + taken.len() < MANY {
            taken.push(consumer.expect_delivery());
        }
    }
    producer.join().expect("the producer is content");
}

/// The producer has credit for all of it from the start, and nothing is settled on the way, so that no flow
/// of a link has a reason: the router reopens its window of itself. Transfer-ids, delivery-ids and
/// delivery-count all pass 2^32 (§2.8.10: serial numbers).
#[test]
fn f_03_b_the_router_reopens_its_own_window() {
    // Some are settled before the end, fewer than a flow of a link would be sent for: a receiver may leave no
    // more than 65536 unsettled.
    const SETTLED_EARLY: usize = 10_000;
    let router = Router::with(Setup { listener: "linkCapacity: 100000", ..Setup::default() });
    let count = u32::try_from(MANY).expect("it fits");
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", count);
    let mut peer = router.connect();
    peer.open_with(Default::default());
    let begin = Begin {
        next_outgoing_id: u32::MAX - 1000,
        incoming_window: 1000,
        outgoing_window: u32::MAX >> 1,
        ..Begin::default()
    };
    peer.send(0, Performative::Begin(begin), &[]);
    peer.expect("begin");
    peer.session_mut(0).next_delivery_id = u32::MAX - 30_000;
    let attach = Attach { initial_delivery_count: Some(u32::MAX - 20_000), ..sender(Some("q")) };
    let link = peer.attach(0, attach).0;
    peer.await_credit(link, 100_000);
    let link_flows = peer.link_flows;

    let producer = std::thread::spawn(move || {
        peer.send_many(link, MANY, false, numbered);
        peer
    });
    let mut first = None;
    let mut last = 0;
    for number in 0..MANY {
        let delivery = consumer.expect_delivery();
        assert_eq!(delivery.payload, numbered(number), "message {number}");
        assert!(!delivery.settled);
        let first = *first.get_or_insert(delivery.id);
        last = delivery.id;
        if number + 1 == SETTLED_EARLY {
            consumer.dispose_range(0, first, last, true, Some(DeliveryState::Accepted));
        }
    }
    let mut peer = producer.join().expect("the producer is content");
    assert_eq!(peer.link_flows, link_flows, "credit was granted once");
    assert!(peer.session_flows > 0);

    let first = last.wrapping_sub(count - 1 - u32::try_from(SETTLED_EARLY).expect("it fits"));
    consumer.dispose_range(0, first, last, true, Some(DeliveryState::Accepted));
    peer.absorb_until("all outcomes", |peer| peer.outcomes.total() == MANY);
    assert_eq!(peer.outcomes.accepted, MANY);
    assert_eq!(consumer.link(receiver).delivery_count, count);
}

/// A receiver that takes nothing for now, and messages that wait for it.
struct Waiting {
    router: Router,
    peer: Peer,
    /// It has credit in any case.
    anonymous: LinkId,
    consumer: Peer,
    receiver: LinkId,
    /// The receiver's delivery-count before anything that the test does.
    base: u32,
    sent: usize,
    /// What came before the test asked for it.
    early: VecDeque<Delivery>,
}

impl Waiting {
    fn new(messages: usize) -> Self {
        let router = Router::start();
        let mut consumer = router.peer();
        let receiver = consumer.attach_receiver("q", 1);
        consumer.attach_receiver("marker", 1000);
        let mut peer = router.peer();
        let anonymous = peer.attach_anonymous();
        let mut waiting =
            Self { router, peer, anonymous, consumer, receiver, base: 1, sent: 0, early: VecDeque::new() };
        // The receiver has shown that it wants messages, so that they wait as near to it as they can.
        waiting.send_one("q");
        waiting.expect_deliveries(1);
        waiting.send(messages);
        waiting
    }

    fn send_one(&mut self, to: &str) {
        let message = message::addressed(to, &self.sent.to_be_bytes());
        self.peer.send_delivery(self.anonymous, &message, false);
        self.sent += 1;
    }

    /// Sends so many messages to the receiver, and returns when they wait for it: a message behind them, to
    /// another receiver of the same connection, has come.
    #[track_caller]
    fn send(&mut self, messages: usize) {
        for _ in 0..messages {
            self.send_one("q");
        }
        self.send_one("marker");
        loop {
            let delivery = self.consumer.expect_delivery();
            if delivery.link != self.receiver {
                self.consumer.accept(&delivery);
                return;
            }
            self.early.push_back(delivery);
        }
    }

    /// As receiver: sends a flow with this delivery-count (from the test's beginning), link-credit and drain.
    fn send_flow(&mut self, delivery_count: u32, credit: u32, drain: bool) {
        self.queue_flow(delivery_count, credit, drain);
        self.consumer.flush();
    }

    fn queue_flow(&mut self, delivery_count: u32, credit: u32, drain: bool) {
        self.consumer.queue_flow(self.receiver, self.base + delivery_count, credit, drain);
    }

    #[track_caller]
    fn expect_deliveries(&mut self, count: usize) {
        for _ in 0..count {
            let delivery = self.early.pop_front().unwrap_or_else(|| self.consumer.expect_delivery());
            assert_eq!(delivery.link, self.receiver);
            self.consumer.accept(&delivery);
        }
    }

    /// Expects so many deliveries, and no more.
    #[track_caller]
    fn expect_exactly(&mut self, count: usize) {
        self.expect_deliveries(count);
        assert!(self.early.is_empty(), "{} more", self.early.len());
        self.consumer.expect_nothing_for(250);
    }

    /// Expects the answer to a drain, the flag in it.
    #[track_caller]
    fn expect_drained(&mut self, delivery_count: u32) {
        let flow = self.consumer.expect_where("flow", |frame| frame.flow().handle.is_some());
        let flow = flow.flow();
        let delivery_count = self.base + delivery_count;
        assert_eq!(flow.delivery_count, Some(delivery_count), "all credit is used up: {flow:?}");
        assert_eq!(flow.link_credit, Some(0), "{flow:?}");
        assert!(flow.drain, "the answer says that it is one: {flow:?}");
    }
}

/// No flow, no credit, no transfer.
#[test]
fn f_04_a_no_transfer_without_credit() {
    let mut waiting = Waiting::new(5);
    waiting.expect_exactly(0);
    waiting.send_flow(0, 5, false);
    waiting.expect_exactly(5);
}

/// The same for a receiver that has never sent a flow.
#[test]
fn f_04_a_no_transfer_before_the_first_flow() {
    let router = Router::start();
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 0);
    let mut peer = router.peer();
    let anonymous = peer.attach_anonymous();
    for _ in 0..5 {
        peer.send_delivery(anonymous, &message::addressed("q", b"x"), false);
    }
    consumer.expect_nothing_for(500);
    consumer.grant(receiver, 5);
    for _ in 0..5 {
        let delivery = consumer.expect_delivery();
        consumer.accept(&delivery);
    }
    peer.absorb_until("all outcomes", |peer| peer.outcomes.accepted == 5);
}

/// A flow that crosses transfers: of ten credits six are used when the receiver, which has seen none of it,
/// says two. 0 + 2 - 6 is less than nothing, which means nothing. Later flows count as ever.
#[test]
fn f_04_b_a_flow_that_crosses_transfers_may_leave_less_than_nothing() {
    let mut waiting = Waiting::new(6);
    waiting.send_flow(0, 10, false);
    waiting.expect_deliveries(6);
    waiting.send_flow(0, 2, false);
    // It has got there before the next messages do.
    waiting.consumer.begin();
    // It has got there before the next messages do.
    waiting.consumer.begin();
    waiting.send(5);
    waiting.expect_exactly(0);
    waiting.send_flow(6, 2, false);
    waiting.expect_exactly(2);
    waiting.send_flow(8, 0, false);
    waiting.expect_exactly(0);
    waiting.send_flow(8, 100, false);
    waiting.expect_exactly(3);
}

/// The same with all of it in one write: whatever the router has done of the first flow when it sees the
/// second, it never sends more than six or fewer than two.
#[test]
fn f_04_b_both_flows_at_once() {
    let mut waiting = Waiting::new(20);
    waiting.queue_flow(0, 6, false);
    waiting.queue_flow(0, 2, false);
    waiting.consumer.flush();
    let mut came = 0;
    waiting.consumer.expect_only_for(500, &["transfer", "flow"]);
    while waiting.consumer.take_delivery().is_some() {
        came += 1;
    }
    assert!((2..=6).contains(&came), "{came} transfers");
    waiting.consumer.forget_pending();
    assert_eq!(waiting.consumer.link(waiting.receiver).delivery_count, waiting.base + came);
    waiting.send_flow(came, 3, false);
    waiting.expect_exactly(3);
}

/// Credit is raised to 1700 and topped up at random by two threads: never a transfer beyond what was granted.
#[test]
fn f_04_c_credit_topped_up_by_two_threads() {
    const MESSAGES: usize = 20_000;
    const CREDIT_MAX: u32 = 1700;
    let router = Router::start();
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 1);
    // The limit that the peer itself checks is out of the way: here the test has its own.
    consumer.link_mut(receiver).limit = u32::MAX >> 1;
    let mut peer = router.peer();
    let link = peer.attach_sender("q");
    let received = AtomicU32::new(0);
    // The delivery-count up to which credit was granted, raised before the flow that says so is sent.
    let granted = AtomicU32::new(1);
    let socket = Mutex::new(consumer.stream().try_clone().expect("a socket"));
    let total = u32::try_from(MESSAGES).expect("it fits");

    let top_up = |seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        while received.load(Ordering::SeqCst) < total {
            let mut socket = socket.lock().expect("nobody panics with it");
            let delivery_count = received.load(Ordering::SeqCst);
            let limit = granted.load(Ordering::SeqCst).max(delivery_count + random.u32(0..=CREDIT_MAX));
            granted.store(limit, Ordering::SeqCst);
            let flow = Flow {
                next_incoming_id: Some(0),
                incoming_window: u32::MAX >> 1,
                next_outgoing_id: 0,
                outgoing_window: 0,
                handle: Some(receiver.handle),
                delivery_count: Some(delivery_count),
                link_credit: Some(limit - delivery_count),
                ..Flow::default()
            };
            socket.write_all(&frame_bytes(0, Performative::Flow(flow))).expect("the router takes it");
            drop(socket);
            std::thread::sleep(Duration::from_micros(random.u64(0..2000)));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| top_up(1));
        scope.spawn(|| top_up(2));
        let producer = scope.spawn(move || {
            peer.send_many(link, MESSAGES, false, numbered);
            peer.absorb_until("all outcomes", |peer| peer.outcomes.total() == MESSAGES);
            assert_eq!(peer.outcomes.accepted, MESSAGES);
        });
        for number in 0..MESSAGES {
            let delivery = consumer.expect_delivery();
            assert_eq!(delivery.payload, numbered(number));
            let count = received.fetch_add(1, Ordering::SeqCst) + 1;
            let limit = granted.load(Ordering::SeqCst);
            assert!(count <= limit, "delivery {count} though credit ended at {limit}");
            let _held = socket.lock().expect("nobody panics with it");
            consumer.accept(&delivery);
        }
        producer.join().expect("the producer is content");
    });
}

/// Three messages wait; the receiver drains with a credit of ten, and in the same breath, not knowing any
/// answer, grants ten without drain. The drain is answered as one all the same. Its ten are used up, and by
/// the formula of §2.6.7 the second flow (which counts from 0 too) grants nothing beyond them; the same flow
/// from the drained delivery-count grants a fresh ten.
#[test]
fn f_05_a_drain_is_answered_with_its_flag() {
    let mut waiting = Waiting::new(3);
    waiting.queue_flow(0, 10, true);
    waiting.queue_flow(0, 10, false);
    waiting.consumer.flush();
    waiting.expect_deliveries(3);
    waiting.expect_drained(10);
    waiting.send(12);
    waiting.expect_exactly(0);
    waiting.send_flow(10, 10, false);
    waiting.expect_exactly(10);
}

/// The same where the second flow anticipates the drained delivery-count: it grants a fresh ten at once.
#[test]
fn f_05_a_credit_granted_behind_a_drain_is_fresh() {
    let mut waiting = Waiting::new(3);
    waiting.queue_flow(0, 10, true);
    waiting.queue_flow(10, 10, false);
    waiting.consumer.flush();
    waiting.expect_deliveries(3);
    waiting.expect_drained(10);
    waiting.send(12);
    waiting.expect_exactly(10);
}

/// A 10 MiB message is half sent when the receiver drains: it completes, and what waits behind it goes too,
/// before the drain is answered.
#[test]
fn f_05_b_a_message_half_sent_completes_before_the_drain() {
    let mut waiting = Waiting::new(0);
    let receiver = waiting.receiver;
    let large = message::addressed("q", &message::sized(10 << 20, 7));
    let half = large.len() / 2;
    waiting.send_flow(0, 1, false);
    // One transfer after the other on a link of its own, so that the middle is known.
    let mut sender = waiting.router.peer();
    let link = sender.attach_anonymous();
    sender.await_credit(link, 1);
    sender.send_part(link, &large[..half], true);
    waiting.consumer.absorb_until("half of the message", |consumer| {
        consumer.link(receiver).receiving.as_ref().is_some_and(|delivery| delivery.bytes == half as u64)
    });
    waiting.send(2);
    waiting.queue_flow(1, 9, true);
    waiting.queue_flow(10, 10, false);
    waiting.consumer.flush();
    waiting.consumer.expect_only_for(300, &[]);
    sender.send_part(link, &large[half..], false);
    let delivery = waiting.consumer.expect_delivery();
    assert!(delivery.payload == large, "the large message arrives as it was sent");
    waiting.consumer.accept(&delivery);
    waiting.expect_deliveries(2);
    waiting.expect_drained(10);
    waiting.send(12);
    waiting.expect_exactly(10);
}

/// Nothing waits: the drain is answered at once.
#[test]
fn f_05_c_a_drain_with_nothing_to_send() {
    let mut waiting = Waiting::new(0);
    waiting.queue_flow(0, 10, true);
    waiting.queue_flow(10, 10, false);
    waiting.consumer.flush();
    waiting.expect_drained(10);
    waiting.send(12);
    waiting.expect_exactly(10);
    // And once more, with none left.
    waiting.send_flow(20, 0, true);
    waiting.expect_drained(20);
    waiting.expect_exactly(0);
}
