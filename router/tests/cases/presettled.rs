//! What may be lost, and is counted: T-05.

use std::time::{Duration, Instant};

use ringmain_codec::DeliveryState;

use crate::support::{LinkId, Peer, Router, Setup, message};

const MANY: usize = 100_000;

fn numbered(number: usize) -> Vec<u8> {
    message::data(&number.to_be_bytes())
}

fn number_of(message: &[u8]) -> usize {
    let digits = message.last_chunk().expect("a number's bytes");
    usize::from_be_bytes(*digits)
}

/// A receiver with a credit of ten that is never topped up, and a sender to it.
fn stalled(router: &Router) -> (Peer, LinkId, Peer, LinkId) {
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 10);
    let mut peer = router.peer();
    let sender = peer.attach_sender("q");
    (consumer, receiver, peer, sender)
}

/// The value of a counter in a line of the log about a link.
fn counter(line: &str, name: &str) -> usize {
    let start = line.find(&format!(" {name}=")).expect("a counter of that name") + name.len() + 2;
    let digits: String = line[start..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

fn link_line(router: &Router, address_end: &str) -> String {
    let attached = router.await_log_where(address_end, |line| {
        line.contains("Link attached") && line.contains(&format!("dir={address_end} "))
    });
    let name = attached.split(' ').find(|word| word.starts_with("[C")).expect("the link's name").to_owned();
    router.await_log_where("the link's counters", |line| {
        line.contains(&name) && (line.contains("Link detached") || line.contains("Link lost"))
    })
}

/// Settled messages to a stalled receiver: sent = received + dropped, exactly; the newest survive; the sender
/// is never held up for good, and the router's memory stays small. Returns what was dropped, and the counters
/// of that on the links of sender and receiver.
fn settled_messages_are_dropped(threads: u32) -> (usize, usize, usize) {
    let router = Router::with(Setup {
        router: &format!("    workerThreads: {threads}"),
        listener: "linkCapacity: 2500",
        ..Setup::default()
    });
    let (mut consumer, receiver, mut peer, sender) = stalled(&router);
    peer.await_credit(sender, 1);
    let before = router.memory();
    peer.send_many(sender, MANY, true, numbered);
    peer.begin();
    let grown = router.memory().saturating_sub(before);
    assert!(grown < 12 << 20, "{grown} bytes more");

    consumer.grant(receiver, 1_000_000);
    let received = consumer.take_deliveries(1000);
    assert!(received.iter().all(|delivery| delivery.settled));
    let numbers: Vec<usize> = received.iter().map(|delivery| number_of(&delivery.payload)).collect();
    assert!(numbers.is_sorted_by(|earlier, later| earlier < later), "in order, none twice");
    assert_eq!(numbers.last(), Some(&(MANY - 1)), "the newest survives");
    assert!(numbers.len() < MANY / 2, "{} of {MANY} received", numbers.len());

    peer.detach(sender);
    consumer.detach(receiver);
    let of_sender = link_line(&router, "in");
    assert_eq!((counter(&of_sender, "del"), counter(&of_sender, "presett")), (MANY, MANY), "{of_sender}");
    let of_receiver = link_line(&router, "out");
    assert_eq!(counter(&of_receiver, "del"), numbers.len(), "{of_receiver}");
    (MANY - numbers.len(), counter(&of_sender, "psdrop"), counter(&of_receiver, "psdrop"))
}

/// On one shard both links count what was dropped.
#[test]
fn t_05_settled_messages_are_dropped_and_counted() {
    let (dropped, of_sender, of_receiver) = settled_messages_are_dropped(1);
    assert_eq!((of_sender, of_receiver), (dropped, dropped));
}

/// On two shards each counts what is dropped on its own (or both, if the two connections came to the same
/// one).
#[test]
fn t_05_settled_messages_are_dropped_and_counted_between_shards() {
    let (dropped, of_sender, of_receiver) = settled_messages_are_dropped(2);
    let on_one = (of_sender, of_receiver) == (dropped, dropped);
    assert!(on_one || of_sender + of_receiver == dropped, "{dropped}: {of_sender} and {of_receiver}");
}

/// A receiver that takes some now and then loses nothing, however slow it is.
#[test]
fn t_05_a_slow_receiver_loses_nothing() {
    const MESSAGES: usize = 1000;
    // Less than it takes to be taken for stalled, by a margin.
    const UNTROUBLED: Duration = Duration::from_millis(150);
    let router = Router::start();
    let (mut consumer, receiver, mut peer, sender) = stalled(&router);
    let producer = std::thread::spawn(move || {
        peer.send_many(sender, MESSAGES, true, numbered);
        peer
    });
    let mut received = Vec::new();
    let mut last = Instant::now();
    let mut widest = Duration::ZERO;
    while received.last() != Some(&(MESSAGES - 1)) {
        let delivery = consumer.expect_delivery();
        received.push(number_of(&delivery.payload));
        if received.len() % 10 == 0 {
            std::thread::sleep(Duration::from_millis(20));
            widest = widest.max(last.elapsed());
            last = Instant::now();
            consumer.grant(receiver, 10);
        }
    }
    producer.join().expect("the producer is content");
    if widest < UNTROUBLED {
        assert_eq!(received.len(), MESSAGES, "{} dropped", MESSAGES - received.len());
    } else {
        println!("SKIPPED: the machine is too busy for a receiver that keeps to its times ({widest:?})");
    }
}

/// Unsettled messages to a stalled receiver: none is dropped, the sender runs out of credit; once the
/// receiver goes on, all arrive.
#[test]
fn t_05_unsettled_messages_wait_for_credit() {
    const CREDIT: usize = 250;
    let router = Router::start();
    let (mut consumer, receiver, mut peer, sender) = stalled(&router);
    peer.await_credit(sender, 1);
    assert_eq!(peer.link(sender).credit, 250);
    peer.send_many(sender, CREDIT, false, numbered);
    peer.expect_nothing_for(1000);
    assert_eq!(peer.link(sender).credit, 0, "the sender has run out of credit");

    let producer = std::thread::spawn(move || {
        peer.send_many(sender, MANY - CREDIT, false, |number| numbered(CREDIT + number));
        peer.absorb_until("all outcomes", |peer| peer.outcomes.total() == MANY);
        assert_eq!(peer.outcomes.accepted, MANY);
        peer.detach(sender);
    });
    consumer.grant(receiver, 1_000_000);
    for number in 0..MANY {
        let delivery = consumer.expect_delivery();
        assert!(!delivery.settled);
        assert_eq!(number_of(&delivery.payload), number);
        consumer.accept(&delivery);
    }
    producer.join().expect("the producer is content");
    let line = link_line(&router, "in");
    assert_eq!(
        (counter(&line, "del"), counter(&line, "psdrop"), counter(&line, "acc")),
        (MANY, 0, MANY),
        "{line}"
    );
}

/// Both kinds on one link: only settled ones are dropped.
#[test]
fn t_05_unsettled_messages_among_settled_ones_are_kept() {
    const UNSETTLED: usize = 100;
    const EACH: usize = 50;
    let router = Router::start();
    let (mut consumer, receiver, mut peer, sender) = stalled(&router);
    peer.await_credit(sender, 1);
    for number in 0..UNSETTLED {
        peer.send_many(sender, EACH, true, numbered);
        peer.send_many(sender, 1, false, |_| numbered(number));
    }
    consumer.grant(receiver, 1_000_000);
    let mut unsettled = 0;
    let mut settled = 0;
    for delivery in consumer.take_deliveries(1000) {
        if delivery.settled {
            settled += 1;
        } else {
            assert_eq!(number_of(&delivery.payload), unsettled);
            unsettled += 1;
            consumer.dispose(&delivery, true, Some(DeliveryState::Accepted));
        }
    }
    assert_eq!(unsettled, UNSETTLED);
    peer.absorb_until("all outcomes", |peer| peer.outcomes.accepted == UNSETTLED);
    assert!(settled <= UNSETTLED * EACH);
}
