//! Connections that the router opens: router-protocol reference §1.2, acceptance facts, and the last part of C-09.

use std::io::{Read as _, Write as _};

use ringmain_codec::{
    Close, Error, Performative, ProtocolHeader, SaslCode, SaslFrame, SaslOutcome, Symbol, Value, Writer,
};

use crate::support::{BrokerSocket, PATIENCE, Peer, Router, Setup, message};

/// The section of a connector to a broker on this port.
fn connector(port: u16, attributes: &str) -> String {
    format!("connector {{\n    name: broker\n    host: 127.0.0.1\n    port: {port}\n{attributes}\n}}\n")
}

fn router(sections: &str) -> Router {
    Router::with(Setup { sections, ..Setup::default() })
}

/// The router speaks first: SASL with ANONYMOUS, then an open with its id, the host that it connected to and all that
/// its connector is configured with.
#[test]
fn the_router_opens() {
    let socket = BrokerSocket::bind();
    let port = socket.port();
    let listener = socket.listen();
    let router = router(&connector(
        port,
        "    maxFrameSize: 4096\n    maxSessions: 10\n    idleTimeoutSeconds: 8\n    openProperties: {\n        \"site\": \"north\"\n    }",
    ));
    let mut broker = Peer::accept_on(&listener);
    broker.serve_sasl(&["PLAIN", "ANONYMOUS"]);
    let init = broker.expect("sasl-init");
    let SaslFrame::Init(init) = init.sasl() else { panic!("expected sasl-init, got {init:?}") };
    assert_eq!(init.mechanism, Symbol("ANONYMOUS"));
    assert_eq!(init.hostname, Some("127.0.0.1"));
    broker.send_sasl(&SaslOutcome { code: SaslCode::Ok, additional_data: None });
    broker.expect_header(ProtocolHeader::AMQP);
    let open = broker.expect("open");
    let open = open.open();
    assert_eq!((open.container_id, open.hostname), ("R", Some("127.0.0.1")));
    assert_eq!((open.max_frame_size, open.channel_max, open.idle_time_out), (4096, 9, Some(4000)));
    assert!(open.offered_capabilities.contains("ANONYMOUS-RELAY"));
    let properties = open.properties.expect("properties");
    assert_eq!(properties.get("product").and_then(|value| value.as_str()), Some("ringmain"));
    assert_eq!(properties.get("site").and_then(|value| value.as_str()), Some("north"));
    assert!(properties.get("qd.conn-id").is_some());
    router.await_log("Operational");
}

/// Both sides of the connection may attach and send: one in the role normal is as one that a client opened.
#[test]
fn who_was_connected_to_is_a_client() {
    let socket = BrokerSocket::bind();
    let port = socket.port();
    let listener = socket.listen();
    let router = router(&connector(port, ""));
    let mut server = Peer::accept_on(&listener);
    server.serve_open("server");
    let opened = router.await_log("Connection Opened: dir=out");
    assert!(opened.contains(&format!("host=127.0.0.1:{port} ")), "{opened}");
    assert!(opened.contains("container_id=server"), "{opened}");
    server.begin();
    let requests = server.attach_receiver("requests", 10);
    let mut client = router.peer();
    let sender = client.attach_sender("requests");
    let id = client.send_delivery(sender, &message::data(b"ping"), false);
    let delivery = server.expect_delivery();
    assert_eq!(delivery.link, requests);
    server.accept(&delivery);
    client.expect_outcome(id);
    assert_eq!(client.outcomes.accepted, 1);
    server.close();
}

/// Nobody listens: that is told once a try, with the reason, and the router goes on trying until somebody does.
#[test]
fn c_09_the_router_never_gives_up() {
    let socket = BrokerSocket::bind();
    let port = socket.port();
    let router = router(&connector(port, ""));
    let failed = router.await_log(&format!("Connection to 127.0.0.1:{port} failed: "));
    assert!(failed.contains("refused"), "{failed}");
    let tries = |router: &Router| router.log().iter().filter(|line| line.contains("failed: ")).count();
    router.await_state("a second try", |router| tries(router) >= 2);
    let listener = socket.listen();
    let mut broker = Peer::accept_on(&listener);
    broker.serve_open("broker");
    router.await_log("Connection Opened: dir=out");

    // It closes in order, with an error, or breaks: the router comes back each time.
    let error =
        Error { condition: Symbol("amqp:connection:forced"), description: Some("stopping"), info: None };
    broker.send(0, Performative::Close(Close { error: Some(error) }), &[]);
    broker.expect_close();
    let lost = router.await_log("(container 'broker') lost: ");
    assert!(lost.contains("amqp:connection:forced: stopping"), "{lost}");
    for container in ["second", "third"] {
        let mut broker = Peer::accept_on(&listener);
        broker.serve_open(container);
        router.await_log(&format!("container_id={container}"));
        drop(broker);
        router.await_log(&format!("(container '{container}') lost: "));
    }
}

/// What is wrong before the opens is told as the reason of the failure.
#[test]
fn a_failure_has_its_reason() {
    let socket = BrokerSocket::bind();
    let port = socket.port();
    let listener = socket.listen();
    let router = router(&connector(port, ""));
    let failure = format!("Connection to 127.0.0.1:{port} failed: ");
    let awaits = |what: &str| {
        router.await_log_where(what, |line| line.contains(&failure) && line.contains(what));
    };
    Peer::accept_on(&listener).serve_sasl(&["SCRAM-SHA-256", "PLAIN"]);
    awaits("SCRAM-SHA-256 PLAIN");
    let mut refuses = Peer::accept_on(&listener);
    refuses.serve_sasl(&["ANONYMOUS"]);
    refuses.expect("sasl-init");
    refuses.send_sasl(&SaslOutcome { code: SaslCode::Auth, additional_data: None });
    awaits("credentials");
    let mut is_no_broker = Peer::accept_on(&listener);
    is_no_broker.send_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    router.await_state("a third failure", |router| {
        router.log().iter().filter(|line| line.contains(&failure)).count() >= 3
    });
}

/// A peer tells of another server: when it is gone the router tries it again first, then goes there.
#[test]
fn failover() {
    let (first, second) = (BrokerSocket::bind(), BrokerSocket::bind());
    let (first_port, second_port) = (first.port(), second.port());
    let (first, second) = (first.listen(), second.listen());
    let router = router(&connector(first_port, ""));
    let mut room = [0; 256];
    let mut writer = Writer::new(&mut room);
    writer
        .map(|writer| {
            writer.put(&Symbol("failover-server-list"))?;
            writer.list(|writer| {
                writer.map(|writer| {
                    writer.put(&Symbol("network-host"))?;
                    writer.put("127.0.0.1")?;
                    writer.put(&Symbol("port"))?;
                    writer.put(second_port.to_string().as_str())
                })
            })
        })
        .expect("there is room");
    let mut broker = Peer::accept_on(&first);
    broker.serve_open_with("first", Value::from_encoded(writer.written()).ok());
    router.await_log("container_id=first");
    drop(broker);
    drop(first);
    let mut broker = Peer::accept_on(&second);
    broker.serve_open("second");
    router.await_log("container_id=second");
    let log = router.log();
    let place = |text: &str| log.iter().position(|line| line.contains(text)).expect("it was logged");
    let between = &log[place("(container 'first') lost")..place("container_id=second")];
    let again = format!("Connection to 127.0.0.1:{first_port} failed");
    assert!(between.iter().any(|line| line.contains(&again)), "{between:#?}");
}

/// Where TLS is asked for, the first that is sent is a handshake record (RFC 8446 §5.1), and who answers with something
/// else is nobody to talk to.
#[test]
fn nothing_is_sent_in_the_clear_where_tls_is_asked_for() {
    let socket = BrokerSocket::bind();
    let port = socket.port();
    let listener = socket.listen();
    let sections = format!("sslProfile {{\n    name: p\n}}\n{}", connector(port, "    sslProfile: p"));
    let router = router(&sections);
    let (mut stream, _) = listener.accept().expect("the connector dials");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out that isn't zero");
    let mut start = [0; 3];
    stream.read_exact(&mut start).expect("a record comes");
    assert_eq!((start[0], start[1]), (22, 3), "handshake, version 3.x");
    stream.write_all(&ProtocolHeader::AMQP.to_bytes()).expect("it is sent");
    router.await_log(&format!("Connection to 127.0.0.1:{port} failed"));
    router.peer();
}

/// A name that can't be found, an address that doesn't answer, a peer that says nothing: the router stops at once all
/// the same.
#[test]
fn connectors_dont_hold_up_the_end() {
    let socket = BrokerSocket::bind();
    let port = socket.port();
    let listener = socket.listen();
    let unknown = "connector {\n    host: no-such-host.invalid\n    port: 5672\n}\n";
    // TEST-NET-1 (RFC 5737): nobody is there.
    let silent = "connector {\n    host: 192.0.2.1\n    port: 5672\n}\n";
    let router = router(&format!("{unknown}{silent}{}", connector(port, "")));
    let _mute = Peer::accept_on(&listener);
    let status = router.terminate();
    assert!(status.success(), "{status}");
}
