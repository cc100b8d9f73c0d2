//! What may be lost, and is counted: T-05.

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

/// Settled messages to a stalled receiver: sent = received + dropped, exactly, in the counters of both links; the
/// newest survive; the sender is never held up for good, and the router's memory stays small.
#[test]
fn t_05_settled_messages_are_dropped_and_counted() {
    let router = Router::with(Setup { listener: "linkCapacity: 2500", ..Setup::default() });
    let (mut consumer, receiver, mut peer, sender) = stalled(&router);
    peer.await_credit(sender, 1);
    let before = router.memory();
    peer.send_many(sender, MANY, true, numbered);
    // The router has taken all of it when it answers.
    peer.begin();
    let grown = router.memory().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes more");

    consumer.grant(receiver, 1_000_000);
    consumer.begin();
    let mut received = Vec::new();
    while let Some(delivery) = consumer.take_delivery() {
        assert!(delivery.settled);
        received.push(number_of(&delivery.payload));
    }
    consumer.expect_only_for(300, &["transfer", "flow"]);
    assert!(consumer.take_delivery().is_none(), "what waited went before the answer");
    assert!(received.is_sorted_by(|earlier, later| earlier < later), "in order, none twice");
    assert_eq!(received.last(), Some(&(MANY - 1)), "the newest survives");
    assert!(received.len() < MANY / 2, "{} of {MANY} received", received.len());

    peer.detach(sender);
    consumer.detach(receiver);
    let line = link_line(&router, "in");
    assert_eq!((counter(&line, "del"), counter(&line, "presett")), (MANY, MANY), "{line}");
    assert_eq!(counter(&line, "psdrop"), MANY - received.len(), "{line}");
    let line = link_line(&router, "out");
    assert_eq!(counter(&line, "del"), received.len(), "{line}");
    assert_eq!(counter(&line, "psdrop"), MANY - received.len(), "{line}");
}

/// Unsettled messages to a stalled receiver: none is dropped, the sender runs out of credit; once the receiver goes
/// on, all arrive.
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
    peer.begin();
    consumer.grant(receiver, 1_000_000);
    consumer.begin();
    let mut unsettled = 0;
    let mut settled = 0;
    while let Some(delivery) = consumer.take_delivery() {
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
    peer.detach(sender);
    let line = link_line(&router, "in");
    assert_eq!(counter(&line, "psdrop"), UNSETTLED * EACH - settled, "{line}");
}
