//! What management changes while the router runs.

use crate::datum::{Datum, map, text};
use crate::manager::{DISPATCH, Manager, any_message};
use crate::support::{Peer, Router, Setup};
use std::time::Duration;

/// How long one of several peers is listened to before it is the next one's turn.
const GLANCE: Duration = Duration::from_millis(10);

/// Two receivers, a delivery, and how many of them get it.
fn copies(router: &Router, address: &str) -> usize {
    let mut receivers: Vec<Peer> = (0..2).map(|_| router.peer()).collect();
    for receiver in &mut receivers {
        receiver.attach_receiver(address, 10);
    }
    let mut producer = router.peer();
    let sender = producer.attach_sender(address);
    producer.send_delivery(sender, &any_message(), false);
    let mut got = 0;
    // With the outcome of all copies it is known that no other will come.
    let mut waiting: Vec<&mut Peer> = receivers.iter_mut().collect();
    while producer.outcomes.total() == 0 {
        waiting.retain_mut(|receiver| {
            receiver.absorb(GLANCE);
            let Some(delivery) = receiver.take_delivery() else { return true };
            receiver.accept(&delivery);
            got += 1;
            false
        });
        producer.absorb(GLANCE);
    }
    got
}

#[test]
fn a_created_address_is_distributed_as_it_says_until_it_is_deleted() {
    let router = Router::with(Setup { router: "    workerThreads: 2\n", ..Setup::default() });
    let mut manager = Manager::new(&router);
    let of = format!("{DISPATCH}router.config.address");
    assert_eq!(copies(&router, "news/a"), 1);
    let created =
        manager.create(&of, "news", map([("prefix", text("news")), ("distribution", text("multicast"))]));
    created.expect(201, "Created");
    assert_eq!(copies(&router, "news/b"), 2);
    manager
        .create(&of, "news", map([("prefix", text("other"))]))
        .expect(400, "Name conflicts with an existing entity");
    manager.delete(&of, "news").expect(204, "No Content");
    manager.delete(&of, "news").expect(404, "Not Found");
    assert_eq!(copies(&router, "news/c"), 1);
}

#[test]
fn a_connection_is_closed_when_its_status_is_set_to_deleted() {
    let router = Router::start();
    let mut victim = router.peer();
    let own = victim.stream().local_addr().expect("a connected socket").to_string();
    let mut manager = Manager::new(&router);
    let of = format!("{DISPATCH}connection");
    let connections = manager.query(&of, &["host", "identity"]);
    let identity = connections.iter().find(|row| row[0] == text(&own)).expect("it is there")[1].clone();
    let update = || [("operation", text("UPDATE")), ("type", text(&of)), ("identity", identity.clone())];
    manager.ask(update(), map([("adminStatus", text("gone"))])).expect(400, "Bad Request");
    let reply = manager.ask(update(), map([("adminStatus", text("deleted"))]));
    reply.expect(200, "OK");
    assert_eq!(*reply.body.get("adminStatus"), text("deleted"));
    victim.expect_closed_with("amqp:connection:forced");
    manager.ask(update(), map([("adminStatus", text("deleted"))])).expect(400, "Bad Request");
    assert_eq!(manager.query(&of, &["identity"]).len(), 1);
}

#[test]
fn a_module_of_the_log_is_set_at_once() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let of = format!("{DISPATCH}log");
    let refused = "Management request refused";
    manager.read("listener", "nobody").expect(404, "No entity with name=nobody");
    let update =
        |identity: &str| [("operation", text("UPDATE")), ("type", text(&of)), ("identity", text(identity))];
    manager.ask(update("log/AGENT"), map([("enable", text("loud+"))]));
    manager
        .ask(update("log/AGENT"), map([("colour", text("red"))]))
        .expect(400, "Unknown attribute 'colour' for 'org.apache.qpid.dispatch.log'");
    manager.ask(update("log/NOTHING"), map([])).expect(404, "No entity with identity=log/NOTHING");
    let reply = manager.ask(update("log/AGENT"), map([("enable", text("debug+"))]));
    reply.expect(200, "OK");
    assert_eq!(*reply.body.get("enable"), text("debug+"));
    assert!(!router.log().iter().any(|line| line.contains(refused)), "it wasn't enabled");
    manager.read("listener", "nobody").expect(404, "No entity with name=nobody");
    router.await_log(refused);
    let columns = ["name", "debugCount"];
    let counts = manager.query("logStats", &columns);
    let agent = counts.iter().find(|row| row[0] == text("AGENT")).expect("the module is there");
    assert_eq!(agent[1], Datum::Ulong(1));
}
