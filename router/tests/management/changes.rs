//! What management changes while the router runs.

use crate::datum::{Datum, map, text};
use crate::manager::{DISPATCH, Manager, any_message};
use crate::support::{OpenOptions, Peer, Router, Setup};
use std::net::{TcpListener, TcpStream};
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

/// What is made at run time can be saved, so a file must be able to say it (configuration reference: no two
/// sections match the same addresses).
#[test]
fn an_address_that_no_file_could_have_beside_the_others_is_refused() {
    let router = Router::with(Setup { sections: "address {\n prefix: file\n}", ..Setup::default() });
    let mut manager = Manager::new(&router);
    let of = format!("{DISPATCH}router.config.address");
    manager.create(&of, "a", map([("prefix", text("k"))])).expect(201, "Created");
    for (attribute, value) in [
        ("pattern", "k/#"),
        ("pattern", "k.#"),
        ("pattern", "/k/#/#"),
        ("prefix", "k/"),
        ("prefix", "file."),
        ("pattern", "file/#"),
    ] {
        manager.create(&of, "b", map([(attribute, text(value))])).expect(400, "Already exists");
    }
    for (attribute, value) in [("prefix", "/"), ("pattern", "..")] {
        let said = format!("'{attribute}' is '{value}', which names no address");
        manager.create(&of, "b", map([(attribute, text(value))])).expect(400, &said);
    }
    manager.create(&of, "b", map([("pattern", text("k/*/#"))])).expect(201, "Created");
}

/// A listener of the file has a line in it, one that management made has none.
#[test]
fn what_an_entity_does_not_go_with_is_named() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let of = format!("{DISPATCH}listener");
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let attributes = || map([("host", text("127.0.0.1")), ("port", text(&port.to_string()))]);
    manager.create(&of, "first", attributes()).expect(201, "Created");
    let said = format!("listener: 127.0.0.1:{port} is listened on already, by the listener made at run time");
    manager.create(&of, "second", attributes()).expect(400, &said);
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

#[test]
fn a_listener_is_made_and_deleted() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let of = format!("{DISPATCH}listener");
    let attributes =
        map([("host", text("127.0.0.1")), ("port", Datum::Int(0)), ("idleTimeoutSeconds", Datum::Int(0))]);
    let created = manager.create(&of, "extra", attributes.clone());
    created.expect(201, "Created");
    assert_eq!(*created.body.get("identity"), text("listener/127.0.0.1:0:extra"));
    manager.create(&of, "extra", attributes).expect(400, "Name conflicts with an existing entity");
    let line = router.await_log_where("the second listener", |line| {
        line.contains("Listening on") && !line.ends_with(&router.address().to_string())
    });
    let address = line.rsplit(' ').next().and_then(|address| address.parse().ok()).expect("an address");
    let mut peer = Peer::connect(address);
    peer.open_with(OpenOptions::default());
    peer.begin();
    let receiver = peer.attach_receiver("q", 10);

    manager.delete(&of, "extra").expect(204, "No Content");
    manager.delete(&of, "extra").expect(404, "No entity with name=extra");
    assert_eq!(manager.query(&of, &["name"]).len(), 1);
    // Nobody listens there any more.
    router.await_state("the port is closed", |_| TcpStream::connect(address).is_err());
    // Who came through it stays.
    let mut producer = router.peer();
    let sender = producer.attach_sender("q");
    producer.send_delivery(sender, &any_message(), true);
    assert_eq!(peer.expect_delivery().link, receiver);
}

#[test]
fn a_listener_that_cannot_be_is_refused() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let of = format!("{DISPATCH}listener");
    for (attributes, reason) in [
        (
            map([("host", text("127.0.0.1")), ("port", text("no-such-service"))]),
            "'port' is 'no-such-service'",
        ),
        (
            map([("host", text("127.0.0.1")), ("port", Datum::Int(0)), ("role", text("king"))]),
            "'role' is 'king'",
        ),
        (
            map([
                ("host", text("127.0.0.1")),
                ("port", Datum::Int(router.address().port().into())),
                ("cost", Datum::Int(1)),
            ]),
            "another program listens there",
        ),
    ] {
        let reply = manager.create(&of, "extra", attributes);
        assert_eq!(reply.status, 400, "{}", reply.description);
        assert!(reply.description.contains(reason), "{}", reply.description);
        assert!(
            !reply.description.contains("ringmain.conf"),
            "it isn't the file's fault: {}",
            reply.description
        );
    }
    assert_eq!(manager.query(&of, &["name"]).len(), 1);
}

#[test]
fn a_connector_and_an_auto_link_tell_what_becomes_of_them() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let connector = format!("{DISPATCH}connector");
    // A port that nobody listens on: it was free just now.
    let free =
        TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr()).expect("a free port");
    let attributes = map([
        ("host", text("127.0.0.1")),
        ("port", text(&free.port().to_string())),
        ("role", text("route-container")),
    ]);
    manager.create(&connector, "broker", attributes).expect(201, "Created");
    let auto_link = format!("{DISPATCH}router.config.autoLink");
    let attributes = map([("address", text("q")), ("direction", text("in")), ("connection", text("broker"))]);
    manager.create(&auto_link, "q-in", attributes).expect(201, "Created");
    router.await_log("Connection to 127.0.0.1");
    let columns = ["name", "connectionStatus"];
    assert_eq!(manager.query(&connector, &columns), [[text("broker"), text("FAILED")]]);
    let message = manager.query(&connector, &["connectionMsg"]);
    assert!(message[0][0].str().contains("refused"), "{message:?}");
    let columns = ["name", "operStatus", "lastError"];
    assert_eq!(manager.query(&auto_link, &columns), [[text("q-in"), text("inactive"), Datum::Null]]);
    manager.delete(&auto_link, "q-in").expect(204, "No Content");
    manager.delete(&connector, "broker").expect(204, "No Content");
    assert!(manager.query(&connector, &["name"]).is_empty());
}

/// A client that follows lists of servers, another router for one, is told those of the listener.
#[test]
fn a_listener_tells_of_other_servers() {
    let first =
        Router::with(Setup { listener: "    failoverUrls: amqps://r2:10001, r3", ..Setup::default() });
    let port = first.address().port();
    let sections = format!("connector {{\n name: c\n host: 127.0.0.1\n port: {port}\n}}");
    let second = Router::with(Setup { sections: &sections, ..Setup::default() });
    let mut manager = Manager::new(&second);
    let of = format!("{DISPATCH}connector");
    second.await_state("the list has come", |_| {
        let row = manager.query(&of, &["failoverUrls"]).remove(0);
        let urls = row[0].str();
        urls.contains("amqps://r2:10001") && urls.contains("amqp://r3:5672")
    });
}
