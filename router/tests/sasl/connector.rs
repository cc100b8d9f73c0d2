//! As whom connectors introduce themselves: `saslMechanisms`, `saslUsername`, `saslPassword`.

use ringmain_codec::{ProtocolHeader, SaslChallenge, SaslCode, SaslFrame, SaslOutcome};

use crate::rabbitmq::RabbitMq;
use crate::support::{BrokerSocket, Peer, Router, Setup};
use crate::users::{FRED, UsersFile};

fn connector(port: u16, attributes: &str) -> String {
    format!("connector {{\n    name: broker\n    host: 127.0.0.1\n    port: {port}\n{attributes}\n}}\n")
}

fn router(sections: &str) -> Router {
    Router::with(Setup { sections, ..Setup::default() })
}

/// The init of the connector, to a server that offers these mechanisms: mechanism and response.
#[track_caller]
fn chosen(peer: &mut Peer, offered: &[&str]) -> (String, Vec<u8>) {
    peer.serve_sasl(offered);
    let frame = peer.expect("sasl-init");
    let SaslFrame::Init(init) = frame.sasl() else { unreachable!() };
    (init.mechanism.0.to_owned(), init.initial_response.unwrap_or_default().to_vec())
}

const LOGIN: &str = "    saslUsername: fred@domain\n    saslPassword: pass:secret";

/// C-04 d, and the choice among more.
#[test]
fn the_best_mechanism_is_chosen() {
    for (attributes, offered, expected, response) in [
        ("", &["ANONYMOUS", "PLAIN", "AMQPLAIN"][..], "ANONYMOUS", Some("anonymous")),
        (LOGIN, &["ANONYMOUS", "PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"], "SCRAM-SHA-256", None),
        (LOGIN, &["SCRAM-SHA-512", "SCRAM-SHA-256", "EXTERNAL"], "SCRAM-SHA-512", None),
        // PLAIN on an open line only where it is named; as Proton's, a user may be anonymous as well.
        (LOGIN, &["PLAIN", "ANONYMOUS"], "ANONYMOUS", Some("anonymous")),
        (
            "    saslMechanisms: PLAIN\n    saslUsername: fred@domain\n    saslPassword: literal:secret",
            &["SCRAM-SHA-256", "PLAIN", "ANONYMOUS"],
            "PLAIN",
            Some("\0fred@domain\0secret"),
        ),
        (
            "    saslMechanisms: ANONYMOUS\n    saslUsername: fred\n    saslPassword: env:HOME",
            &["SCRAM-SHA-256", "ANONYMOUS"],
            "ANONYMOUS",
            Some("anonymous"),
        ),
    ] {
        let socket = BrokerSocket::bind();
        let port = socket.port();
        let listener = socket.listen();
        let _router = router(&connector(port, attributes));
        let (mechanism, said) = chosen(&mut Peer::accept_on(&listener), offered);
        assert_eq!(mechanism, expected, "{attributes}");
        match response {
            Some(response) => assert_eq!(String::from_utf8_lossy(&said), response, "{attributes}"),
            None => assert!(said.starts_with(b"n,,n=fred@domain,r="), "{said:?}"),
        }
    }
}

/// What a server says wrong is told, and never costs more than a little work.
#[test]
fn a_server_that_is_not_who_it_should_be() {
    let socket = BrokerSocket::bind();
    let port = socket.port();
    let listener = socket.listen();
    let router = router(&connector(port, LOGIN));
    let failed = |reason: &str| {
        router.await_log_where(reason, |line| {
            line.contains("Connection to 127.0.0.1:") && line.contains(reason)
        });
    };
    let begin = || {
        let mut peer = Peer::accept_on(&listener);
        let (_, said) = chosen(&mut peer, &["SCRAM-SHA-256"]);
        let said = String::from_utf8(said).expect("text");
        let nonce = said.rsplit_once("r=").expect("a nonce").1.to_owned();
        (peer, nonce)
    };
    let challenge =
        |peer: &mut Peer, text: String| peer.send_sasl(&SaslChallenge { challenge: text.as_bytes() });
    let outcome = |peer: &mut Peer, data: Option<&[u8]>| {
        peer.send_sasl(&SaslOutcome { code: SaslCode::Ok, additional_data: data });
    };

    let mut peer = Peer::accept_on(&listener);
    peer.serve_sasl(&["PLAIN"]);
    failed("PLAIN isn't used without TLS unless the mechanisms name it");

    let (mut peer, nonce) = begin();
    challenge(&mut peer, format!("r={nonce}abc,s=QSXCR+Q6sek8bf92,i=4294967295"));
    failed("in 4294967295 rounds");
    let (mut peer, nonce) = begin();
    challenge(&mut peer, format!("r={nonce}abc,s=QSXCR+Q6sek8bf92,i=1"));
    failed("in 1 rounds");
    let (mut peer, _) = begin();
    challenge(&mut peer, "x".to_owned());
    failed("what the peer says isn't the mechanism's");
    let (mut peer, _) = begin();
    outcome(&mut peer, None);
    failed("without having asked for the password");
    let (mut peer, nonce) = begin();
    challenge(&mut peer, format!("r={nonce}abc,s=QSXCR+Q6sek8bf92,i=4096"));
    peer.expect("sasl-response");
    outcome(&mut peer, None);
    failed("without showing that it knows the password");
    let (mut peer, nonce) = begin();
    challenge(&mut peer, format!("r={nonce}abc,s=QSXCR+Q6sek8bf92,i=4096"));
    peer.expect("sasl-response");
    outcome(&mut peer, Some(b"v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
    failed("the peer doesn't know the password");
}

/// What can't be meant is said at once.
#[test]
fn attributes_that_do_not_fit() {
    let port = BrokerSocket::bind().port();
    for (attributes, reason) in [
        ("    saslUsername: fred", "'saslUsername' is set without 'saslPassword'"),
        ("    saslPassword: secret", "'saslPassword' is set without 'saslUsername'"),
        ("    saslMechanisms: GSSAPI", "'saslMechanisms' is 'GSSAPI': the router has EXTERNAL SCRAM-SHA-512"),
        (
            "    saslUsername: fred\n    saslPassword: env:RINGMAIN_NO_SUCH_VARIABLE",
            "'saslPassword': there is no environment variable RINGMAIN_NO_SUCH_VARIABLE",
        ),
        ("    saslUsername: fred\n    saslPassword: file:/nowhere/password", "can't read /nowhere/password"),
    ] {
        let router = router(&connector(port, attributes));
        router.await_log(reason);
    }
}

/// To another router, by each mechanism.
#[test]
fn to_another_router() {
    let users = UsersFile::new(&[FRED]);
    let server = users
        .router("authenticatePeer: yes\n    saslMechanisms: SCRAM-SHA-1 SCRAM-SHA-256 SCRAM-SHA-512 PLAIN");
    for mechanism in ["SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"] {
        let attributes = format!("    saslMechanisms: {mechanism}\n{LOGIN}");
        let client = router(&connector(server.address().port(), &attributes));
        client.await_log("Connection Opened: dir=out");
        server.await_log(&format!("auth={mechanism} user=fred@domain "));
    }
    let attributes = "    saslUsername: fred@domain\n    saslPassword: pass:wrong";
    let client = router(&connector(server.address().port(), attributes));
    client.await_log("the peer didn't accept the credentials [mech=SCRAM-SHA-512]");
    let anonymous = router(&connector(server.address().port(), ""));
    anonymous.await_log("PLAIN needs user and password");
}

/// A password that is too long for a frame of 512 bytes is our fault, and is told.
#[test]
fn a_password_that_fits_no_frame() {
    let socket = BrokerSocket::bind();
    let port = socket.port();
    let listener = socket.listen();
    let attributes = format!(
        "    saslMechanisms: PLAIN\n    saslUsername: fred\n    saslPassword: pass:{}",
        "x".repeat(600)
    );
    let router = router(&connector(port, &attributes));
    let mut peer = Peer::accept_on(&listener);
    peer.serve_sasl(&["PLAIN"]);
    peer.expect_end_of_stream();
    router.await_log("doesn't fit a SASL frame");
}

/// A broker of others: its user of old may log in by PLAIN, over loopback.
#[test]
fn to_rabbitmq() {
    let Some(broker) = RabbitMq::start() else { return };
    let attributes = "    role: route-container\n    saslMechanisms: PLAIN\n    saslUsername: guest\n    saslPassword: pass:guest";
    let right = router(&connector(broker.port(), attributes));
    let opened = right.await_log("Connection Opened: dir=out");
    assert!(opened.contains("auth=PLAIN"), "{opened}");
    let wrong = router(&connector(broker.port(), &attributes.replace("pass:guest", "pass:wrong")));
    wrong.await_log_where("it doesn't let us in", |line| line.contains("Connection to 127.0.0.1:"));
    assert!(!wrong.log().iter().any(|line| line.contains("Connection Opened: dir=out")));
}

/// The header behind the layer isn't sent before the outcome has come.
#[test]
fn nothing_goes_before_the_outcome() {
    let socket = BrokerSocket::bind();
    let port = socket.port();
    let listener = socket.listen();
    let _router = router(&connector(port, &format!("    saslMechanisms: PLAIN\n{LOGIN}")));
    let mut peer = Peer::accept_on(&listener);
    chosen(&mut peer, &["PLAIN"]);
    peer.expect_nothing_for(50);
    peer.send_sasl(&SaslOutcome { code: SaslCode::Ok, additional_data: None });
    peer.expect_header(ProtocolHeader::AMQP);
    peer.expect("open");
}
