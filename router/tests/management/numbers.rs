//! The statistics are those of what was sent and settled.

use ringmain_codec::{DeliveryState, Rejected};

use crate::datum::{Datum, map, text};
use crate::manager::{Manager, any_message};
use crate::support::{Router, Setup};

/// The one row that has `value` in the first column.
#[track_caller]
fn row(rows: &[Vec<Datum>], value: &Datum) -> Vec<i64> {
    let found: Vec<_> = rows.iter().filter(|row| row[0] == *value).collect();
    assert_eq!(found.len(), 1, "{value:?} in {rows:?}");
    found[0][1..].iter().map(Datum::number).collect()
}

#[test]
fn deliveries_and_outcomes_are_counted_on_one_shard() {
    deliveries_and_outcomes("    workerThreads: 1\n");
}

/// What goes from one shard to another is counted once.
#[test]
fn deliveries_and_outcomes_are_counted_across_two_shards() {
    deliveries_and_outcomes("    workerThreads: 2\n");
}

fn deliveries_and_outcomes(shards: &str) {
    let router = Router::with(Setup { router: shards, ..Setup::default() });
    // New connections go to the shard with the fewest: these to different ones.
    let mut consumer = router.peer();
    let mut producer = router.peer();
    consumer.attach_receiver("q", 10);
    let sender = producer.attach_sender("q");
    producer.await_credit(sender, 1);
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(producer.send_delivery(sender, &any_message(), false));
    }
    producer.send_delivery(sender, &any_message(), true);
    let rejected = DeliveryState::Rejected(Rejected { error: None });
    let outcomes = [
        Some(DeliveryState::Accepted),
        Some(DeliveryState::Accepted),
        Some(rejected),
        Some(DeliveryState::Released),
        None,
    ];
    let deliveries: Vec<_> = (0..6).map(|_| consumer.expect_delivery()).collect();
    for (delivery, outcome) in deliveries.iter().zip(outcomes) {
        if outcome.is_some() {
            consumer.dispose(delivery, true, outcome);
        }
    }
    for id in &ids[..4] {
        producer.expect_outcome(*id);
    }

    let mut manager = Manager::new(&router);
    let names = [
        "linkDir",
        "deliveryCount",
        "presettledCount",
        "acceptedCount",
        "rejectedCount",
        "releasedCount",
        "modifiedCount",
        "unsettledCount",
        "undeliveredCount",
        "capacity",
    ];
    let mut columns = vec!["owningAddr"];
    columns.extend(names);
    let links: Vec<Vec<Datum>> = manager
        .query("router.link", &columns)
        .into_iter()
        .filter(|row| row[0] == text("M0q"))
        .map(|row| row[1..].to_vec())
        .collect();
    assert_eq!(row(&links, &text("in")), [6, 1, 2, 1, 1, 0, 1, 0, 250]);
    assert_eq!(row(&links, &text("out")), [6, 1, 2, 1, 1, 0, 1, 0, 250]);

    let addresses = manager.query(
        "router.address",
        &[
            "name",
            "subscriberCount",
            "inProcess",
            "deliveriesIngress",
            "deliveriesEgress",
            "deliveriesTransit",
        ],
    );
    assert_eq!(row(&addresses, &text("M0q")), [1, 0, 6, 6, 0]);

    let requests = 2;
    let totals = manager.query(
        "router",
        &[
            "id",
            "connectionCount",
            "linkCount",
            "presettledDeliveries",
            "rejectedDeliveries",
            "releasedDeliveries",
            "deliveriesIngress",
            "deliveriesEgress",
        ],
    );
    // The requests (sent settled) and the replies before this one are deliveries like others.
    let expected = [3, 4, 1 + requests + 1, 1, 1, 6 + requests + 1, 6 + requests];
    assert_eq!(row(&totals, &text("R")), expected);
}

#[test]
fn what_waits_is_told() {
    let router = Router::start();
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 1);
    let mut producer = router.peer();
    let sender = producer.attach_sender("q");
    for _ in 0..4 {
        producer.send_delivery(sender, &any_message(), false);
    }
    consumer.expect_delivery();
    let mut manager = Manager::new(&router);
    let columns = ["linkDir", "undeliveredCount", "unsettledCount", "creditAvailable", "deliveriesStuck"];
    // The last of them may still be on their way from one shard to the other.
    loop {
        let rows: Vec<_> = manager.query("router.link", &columns);
        let out: Vec<_> =
            rows.iter().filter(|row| row[0] == text("out") && row[3] == Datum::Uint(0)).collect();
        if out.iter().any(|row| row[1] == Datum::Ulong(3)) {
            assert_eq!(out.len(), 1, "{rows:?}");
            assert_eq!(out[0][2..], [Datum::Ulong(1), Datum::Uint(0), Datum::Ulong(0)]);
            break;
        }
    }
    consumer.grant(receiver, 10);
    for _ in 0..3 {
        consumer.expect_delivery();
    }
}

/// Router-protocol reference §8.13: unsettled deliveries count as those that wait do; a delivery is delayed when it is
/// settled late; a link without credit is blocked. With `-T` all that is soon.
#[test]
fn what_is_stuck_is_told_and_what_was_delayed() {
    let router =
        Router::with_arguments(Setup { router: "    workerThreads: 2\n", ..Setup::default() }, &["-T"]);
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 2);
    let mut producer = router.peer();
    let sender = producer.attach_sender("q");
    for _ in 0..3 {
        producer.send_delivery(sender, &any_message(), false);
    }
    let taken = [consumer.expect_delivery(), consumer.expect_delivery()];
    router.await_log("Blocked: its receiver has given no credit");
    router.await_log("] Stuck: ");
    let mut manager = Manager::new(&router);
    let columns = ["linkDir", "deliveriesStuck", "deliveriesDelayed1Sec", "settleRate", "ingressHistogram"];
    let of_link = |manager: &mut Manager| {
        let rows = manager.query("router.link", &columns).into_iter();
        rows.filter(|row| row[0] == text("out") && row[4] != Datum::List(vec![Datum::Ulong(0)])).find(|row| {
            row[4] == Datum::List(vec![Datum::Ulong(2)]) || row[4] == Datum::List(vec![Datum::Ulong(3)])
        })
    };
    let row = of_link(&mut manager).expect("it is there");
    assert_eq!(row[1..4], [Datum::Ulong(3), Datum::Ulong(0), Datum::Uint(0)], "{row:?}");
    let totals = manager.query("router", &["id", "deliveriesStuck", "blockedLinkCount"]);
    assert_eq!(totals[0][1..], [Datum::Ulong(3), Datum::Ulong(1)]);
    for delivery in &taken {
        consumer.accept(delivery);
    }
    consumer.grant(receiver, 10);
    let last = consumer.expect_delivery();
    consumer.accept(&last);
    router.await_log("No delivery is stuck any more");
    router.await_log("Not blocked any more");
    let row = of_link(&mut manager).expect("it is there");
    assert_eq!(row[1..3], [Datum::Ulong(0), Datum::Ulong(3)], "{row:?}");
    let totals =
        manager.query("router", &["id", "deliveriesDelayed1Sec", "deliveriesStuck", "blockedLinkCount"]);
    assert_eq!(totals[0][1..], [Datum::Ulong(3), Datum::Ulong(0), Datum::Ulong(0)]);
}

/// What `ringmain top` shows: the classes add up to the deliveries, and quantiles are bounds of classes.
#[test]
fn latency_is_told_by_class() {
    let router = Router::with(Setup { router: "    workerThreads: 2\n", ..Setup::default() });
    let mut consumer = router.peer();
    consumer.attach_receiver("q", 10);
    let mut producer = router.peer();
    let sender = producer.attach_sender("q");
    for _ in 0..5 {
        producer.send_delivery(sender, &any_message(), false);
        let delivery = consumer.expect_delivery();
        consumer.accept(&delivery);
    }
    while producer.outcomes.total() < 5 {
        producer.absorb(std::time::Duration::from_millis(10));
    }
    let mut manager = Manager::new(&router);
    let rows = manager.query("latency", &["name", "deliveries", "p50", "bounds", "counts"]);
    assert_eq!([&rows[0][0], &rows[1][0]], [&text("forward"), &text("settle")]);
    let counts = rows[0][4].items();
    let all: i64 = counts.iter().map(Datum::number).sum();
    assert_eq!(rows[0][1].number(), all);
    assert!(all >= 5 && counts.len() == rows[0][3].items().len() + 1, "{rows:?}");
    assert!(rows[0][3].items().contains(&rows[0][2]), "{rows:?}");
    // The first of a session is one of those that are followed.
    assert_eq!(rows[1][1].number(), 1);
}

#[test]
fn a_connection_tells_of_its_peer() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let own = manager.peer.stream().local_addr().expect("a connected socket").to_string();
    let columns =
        ["host", "container", "dir", "role", "opened", "operStatus", "isAuthenticated", "sasl", "properties"];
    let rows = manager.query("connection", &columns);
    let expected = vec![
        text(&own),
        text("peer"),
        text("in"),
        text("normal"),
        Datum::Bool(true),
        text("up"),
        // It left the SASL layer out.
        Datum::Bool(false),
        Datum::Null,
        map([]),
    ];
    assert_eq!(rows, [expected]);
    let idle = manager.query("connection", &["lastDlvSeconds", "uptimeSeconds"]);
    assert!(matches!(idle[0][..], [Datum::Uint(_), Datum::Uint(_)]), "{idle:?}");
}
