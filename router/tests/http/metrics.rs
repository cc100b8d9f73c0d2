//! `/metrics`: `qdrouterd`'s names with their meaning, and our own, hold what was sent and settled.

use ringmain_codec::{DeliveryState, Rejected};

use crate::client::{Scrape, get, request, router, router_with};
use crate::support::{Router, Setup, message};

/// The metrics of qpid-dispatch 1.19 and their types (its `src/http-libwebsockets.c`).
const OF_DISPATCH: [(&str, &str); 22] = [
    ("qdr_connections_total", "gauge"),
    ("qdr_links_total", "gauge"),
    ("qdr_addresses_total", "gauge"),
    ("qdr_routers_total", "gauge"),
    ("qdr_link_routes_total", "gauge"),
    ("qdr_auto_links_total", "gauge"),
    ("qdr_presettled_deliveries_total", "counter"),
    ("qdr_dropped_presettled_deliveries_total", "counter"),
    ("qdr_accepted_deliveries_total", "counter"),
    ("qdr_released_deliveries_total", "counter"),
    ("qdr_rejected_deliveries_total", "counter"),
    ("qdr_modified_deliveries_total", "counter"),
    ("qdr_deliveries_ingress_total", "counter"),
    ("qdr_deliveries_egress_total", "counter"),
    ("qdr_deliveries_transit_total", "counter"),
    ("qdr_deliveries_ingress_route_container_total", "counter"),
    ("qdr_deliveries_egress_route_container_total", "counter"),
    ("qdr_deliveries_delayed_1sec_total", "counter"),
    ("qdr_deliveries_delayed_10sec_total", "counter"),
    ("qdr_deliveries_stuck_total", "gauge"),
    ("qdr_links_blocked_total", "gauge"),
    ("qdr_deliveries_redirected_to_fallback_total", "counter"),
];

#[test]
fn the_names_of_qdrouterd_have_its_types() {
    let (_router, address) = router("");
    let scrape = Scrape::of(address);
    for (name, kind) in OF_DISPATCH {
        assert_eq!(scrape.types.get(name).map(String::as_str), Some(kind), "{name}");
        assert!(scrape.value(name) >= 0.0);
    }
}

/// Prometheus 3 asks for OpenMetrics first; whoever doesn't gets what `qdrouterd` gives.
#[test]
fn the_format_is_the_one_that_is_asked_for() {
    let (_router, address) = router("");
    let plain = get(address, "/metrics");
    assert!(plain.headers["content-type"].starts_with("text/plain"), "{:?}", plain.headers);
    assert!(!plain.body.contains("# EOF"));
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n";
    let open = request(address, "GET", "/metrics", accept);
    assert!(open.headers["content-type"].starts_with("application/openmetrics-text; version=1.0.0"));
    assert!(open.body.ends_with("\n# EOF\n"));
    assert!(open.body.contains("# TYPE qdr_accepted_deliveries counter\nqdr_accepted_deliveries_total 0\n"));
    assert_eq!(request(address, "HEAD", "/metrics", "").body, "");
}

#[test]
fn deliveries_are_counted_on_one_shard() {
    deliveries("    workerThreads: 1\n", 1);
}

/// What goes from one shard to another is counted once.
#[test]
fn deliveries_are_counted_across_two_shards() {
    deliveries("    workerThreads: 2\n", 2);
}

fn deliveries(shards: &str, count: usize) {
    let (router, address) = router_with("", Setup { router: shards, ..Setup::default() });
    let mut consumer = router.peer();
    let mut producer = router.peer();
    consumer.attach_receiver("q", 10);
    let sender = producer.attach_sender("q");
    producer.await_credit(sender, 1);
    let body = message::data(&[1; 64]);
    let ids: Vec<_> = (0..4).map(|_| producer.send_delivery(sender, &body, false)).collect();
    producer.send_delivery(sender, &body, true);
    let outcomes = [
        DeliveryState::Accepted,
        DeliveryState::Accepted,
        DeliveryState::Rejected(Rejected { error: None }),
        DeliveryState::Released,
    ];
    let deliveries: Vec<_> = (0..5).map(|_| consumer.expect_delivery()).collect();
    for (delivery, outcome) in deliveries.iter().zip(outcomes) {
        consumer.dispose(delivery, true, Some(outcome));
    }
    for id in ids {
        producer.expect_outcome(id);
    }
    let scrape = Scrape::of(address);
    for (name, value) in [
        ("qdr_connections_total", 2.0),
        ("qdr_links_total", 2.0),
        ("qdr_deliveries_ingress_total", 5.0),
        ("qdr_deliveries_egress_total", 5.0),
        ("qdr_presettled_deliveries_total", 1.0),
        ("qdr_accepted_deliveries_total", 2.0),
        ("qdr_rejected_deliveries_total", 1.0),
        ("qdr_released_deliveries_total", 1.0),
        ("qdr_modified_deliveries_total", 0.0),
        ("ringmain_address_deliveries_total{address=\"q\",phase=\"0\",direction=\"in\"}", 5.0),
        ("ringmain_address_deliveries_total{address=\"q\",phase=\"0\",direction=\"out\"}", 5.0),
        ("ringmain_address_receivers{address=\"q\",phase=\"0\"}", 1.0),
        ("ringmain_delivery_forward_seconds_count", 5.0),
        ("ringmain_delivery_forward_seconds_bucket{le=\"+Inf\"}", 5.0),
        // The first of a session is one of those that are followed.
        ("ringmain_delivery_settlement_seconds_count", 1.0),
        ("ringmain_websockets", 0.0),
    ] {
        assert_eq!(scrape.value(name), value, "{name}");
    }
    assert_eq!(scrape.sum("ringmain_shard_deliveries_total"), 10.0);
    assert_eq!(scrape.sum("ringmain_shard_connections"), 2.0);
    for shard in 0..count {
        let of_shard = |name: &str| scrape.value(&format!("{name}{{shard=\"{shard}\"}}"));
        assert!(of_shard("ringmain_shard_turns_total") > 0.0);
        assert!(of_shard("ringmain_shard_batch_completions_count") > 0.0);
        assert_eq!(of_shard("ringmain_shard_stuck"), 0.0);
    }
    if count > 1 {
        assert!(scrape.sum("ringmain_shard_hand_offs_total") > 0.0);
    }
    // The router's own node isn't one of the addresses that clients made.
    assert!(!scrape.values.keys().any(|name| name.contains("$management")));
}

/// T-05: what is dropped of settled messages to a receiver that takes nothing is counted, exactly.
#[test]
fn dropped_settled_deliveries_are_counted() {
    const MANY: usize = 100_000;
    let (router, address) = router_with("", Setup { listener: "    linkCapacity: 2500", ..Setup::default() });
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 10);
    let mut producer = router.peer();
    let sender = producer.attach_sender("q");
    producer.await_credit(sender, 1);
    producer.send_many(sender, MANY, true, |number| message::data(&number.to_be_bytes()));
    producer.begin();
    consumer.grant(receiver, 1_000_000);
    let received = consumer.take_deliveries(1000).len();
    let scrape = Scrape::of(address);
    let dropped = scrape.value("qdr_dropped_presettled_deliveries_total");
    assert!(dropped > 0.0);
    assert_eq!(received as f64 + dropped, MANY as f64);
    assert_eq!(scrape.value("qdr_deliveries_ingress_total"), MANY as f64);
    assert_eq!(scrape.value("qdr_presettled_deliveries_total"), MANY as f64);
    assert_eq!(scrape.value("qdr_deliveries_egress_total"), received as f64);
    // Those that waited are measured like those that went straight.
    assert_eq!(scrape.value("ringmain_delivery_forward_seconds_count"), received as f64);
}

/// What waits shows while it waits.
#[test]
fn what_waits_is_a_gauge() {
    let (router, address) = router("");
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 1);
    let mut producer = router.peer();
    let sender = producer.attach_sender("q");
    producer.await_credit(sender, 1);
    for _ in 0..3 {
        producer.send_delivery(sender, &message::data(&[1; 64]), false);
    }
    let first = consumer.expect_delivery();
    router.await_state("two deliveries wait", |_| {
        Scrape::of(address).sum("ringmain_shard_deliveries_waiting") == 2.0
    });
    let scrape = Scrape::of(address);
    assert_eq!(scrape.sum("ringmain_shard_deliveries_unsettled"), 1.0);
    assert!(scrape.sum("ringmain_shard_held_bytes") > 0.0);
    consumer.dispose(&first, true, Some(DeliveryState::Accepted));
    consumer.grant(receiver, 10);
    consumer.expect_delivery();
    consumer.expect_delivery();
    assert_eq!(Scrape::of(address).sum("ringmain_shard_deliveries_waiting"), 0.0);
}

/// A thousand addresses aren't a thousand series: a hundred are shown, and the same ones every time.
#[test]
fn the_addresses_that_are_shown_are_bounded_and_stay() {
    let (router, address) = router("");
    let mut peer = router.peer();
    for number in 0..150 {
        peer.attach_receiver(&format!("a/{number}"), 1);
    }
    let shown = |scrape: &Scrape| {
        let names = scrape.values.keys().filter(|name| name.starts_with("ringmain_address_receivers{"));
        names.cloned().collect::<Vec<_>>()
    };
    let first = Scrape::of(address);
    assert_eq!((shown(&first).len(), first.value("ringmain_addresses_left_out")), (100, 50.0));
    assert!(first.value("qdr_addresses_total") >= 150.0);
    assert_eq!(shown(&Scrape::of(address)), shown(&first));
}

/// C-09 and F-07 (f) look at connections to brokers; whether there is one is a metric.
#[test]
fn connectors_and_auto_links_are_shown() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = nobody.local_addr().expect("it is bound").port();
    drop(nobody);
    let sections = format!(
        "connector {{\n    name: broker\n    host: 127.0.0.1\n    port: {port}\n    role: route-container\n}}\n\
         autoLink {{\n    address: q\n    direction: in\n    connection: broker\n}}\n"
    );
    let (router, address) = router_with("", Setup { sections: &sections, ..Setup::default() });
    router.await_log("failed");
    let scrape = Scrape::of(address);
    assert_eq!(scrape.value("qdr_auto_links_total"), 1.0);
    let up = format!("ringmain_connector_up{{connector=\"broker\",address=\"127.0.0.1:{port}\"}}");
    assert_eq!(scrape.value(&up), 0.0);
}

#[test]
fn the_process_is_shown_as_prometheus_clients_show_it() {
    let (router, address): (Router, _) = router("");
    router.await_log("Operational");
    let scrape = Scrape::of(address);
    assert!(scrape.value("process_resident_memory_bytes") > 1e6);
    let descriptors = scrape.value("process_open_fds");
    assert!((descriptors - router.descriptors() as f64).abs() < 10.0, "{descriptors}");
    assert!(scrape.value("process_start_time_seconds") > 1.7e9);
    assert!(scrape.value("ringmain_log_lines_total{level=\"notice\"}") >= 3.0);
    assert_eq!(scrape.value("ringmain_log_lines_dropped_total"), 0.0);
}
