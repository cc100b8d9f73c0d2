//! What depends on TLS, at the engine itself: it is told what is known of the way that the bytes take.

use std::rc::Rc;
use std::sync::Arc;

use ringmain::base::buffer::{BufferPool, Output};
use ringmain::base::time::Instant;
use ringmain::engine::sasl::{Duty, Transport};
use ringmain::engine::settings::SaslPolicy;
use ringmain::engine::{Connection, Event, Settings, Side};
use ringmain::sasl::keys::Hash;
use ringmain::sasl::{Identification, ListenerAuthenticator, Mechanism, Password, UserStore, Users};
use ringmain_codec::{
    Encode, FrameKind, ProtocolHeader, SaslCode, SaslFrame, SaslInit, Symbol, Writer, split_frame,
    write_frame,
};

const NOW: Instant = Instant(1_000_000_000);

/// One end of a connection.
struct End {
    connection: Connection<u64>,
    out: Output,
    refused: Option<String>,
}

impl End {
    fn new(side: Side, settings: Settings, transport: Transport) -> Self {
        let mut out = Output::new(BufferPool::default());
        let settings = Settings { container_id: "x".into(), sasl: SaslPolicy::Required, ..settings };
        let mut connection = Connection::new(Rc::new(settings), side, NOW, &mut out);
        connection.set_transport(transport);
        Self { connection, out, refused: None }
    }

    /// Takes bytes, and does at once what it is asked to.
    fn recv(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            let progress = self.connection.recv(rest, NOW, &mut self.out);
            rest = &rest[progress.consumed..];
            match progress.event {
                Some(Event::Sasl(Duty::Work(mut exchange))) => {
                    let answer = exchange.work();
                    let event = self.connection.recv_worked(exchange, answer, NOW, &mut self.out);
                    assert!(event.is_none(), "{event:?}");
                }
                Some(Event::Sasl(Duty::Refuse { reason, .. })) => {
                    self.refused = Some(reason);
                    self.connection.refuse_at(NOW);
                    let _closed = self.connection.handle_timeout(NOW, &mut self.out);
                }
                Some(Event::Opened(_)) => self.connection.send_open(&mut self.out),
                Some(_) => {}
                None => return,
            }
        }
    }

    fn user(&self) -> Option<String> {
        self.connection.identity().and_then(|identity| identity.user.as_deref().map(str::to_owned))
    }
}

#[allow(clippy::needless_update, reason = "whatever else is known of the way doesn't matter here")]
fn tls(identity: Option<&str>) -> Transport {
    Transport { is_encrypted: true, external_identity: identity.map(Arc::from), ..Transport::default() }
}

fn acceptor(mechanisms: Option<Vec<Mechanism>>, transport: Transport) -> End {
    let mut users = Users::default();
    users.set("fred", "secret", &[Hash::Sha256], 4096).expect("a user");
    let users = Arc::new(UserStore::new(users).expect("the system has random numbers"));
    let authenticator = ListenerAuthenticator { mechanisms, is_authentication_required: true, users };
    let settings = Settings { authenticator: Some(Arc::new(authenticator)), ..Settings::default() };
    End::new(Side::Acceptor, settings, transport)
}

fn frame(body: &impl Encode) -> Vec<u8> {
    let mut room = [0; 512];
    let mut writer = Writer::new(&mut room);
    write_frame(&mut writer, FrameKind::Sasl, 0, |writer| body.encode(writer)).expect("there is room");
    writer.written().to_vec()
}

/// What a peer is offered.
fn offered(end: &mut End) -> String {
    end.recv(&ProtocolHeader::SASL.to_bytes());
    let bytes = end.out.take_bytes();
    let (frame, _) = split_frame(&bytes[8..], 512).expect("a frame").expect("a whole one");
    let SaslFrame::Mechanisms(mechanisms) = SaslFrame::decode(frame.body).expect("a SASL frame") else {
        panic!("mechanisms come first")
    };
    mechanisms.sasl_server_mechanisms.iter().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_offered_depends_on_the_way() {
    assert_eq!(offered(&mut acceptor(None, Transport::default())), "SCRAM-SHA-256");
    assert_eq!(offered(&mut acceptor(None, tls(None))), "SCRAM-SHA-256 PLAIN");
    assert_eq!(offered(&mut acceptor(None, tls(Some("CN=fred")))), "EXTERNAL SCRAM-SHA-256 PLAIN");
    let named = || Some(vec![Mechanism::External, Mechanism::Plain]);
    assert_eq!(offered(&mut acceptor(named(), Transport::default())), "PLAIN");
    assert_eq!(offered(&mut acceptor(named(), tls(Some("CN=fred")))), "EXTERNAL PLAIN");
}

/// C-04 b: neither a missing response nor an empty one lets the client wait. Who it is, its certificate says.
#[test]
fn c_04_b_external() {
    for (response, expected) in [
        (None, Ok("CN=fred")),
        (Some(&b""[..]), Ok("CN=fred")),
        (Some(b"CN=fred"), Ok("CN=fred")),
        (Some(b"CN=eve"), Err("the certificate's owner may not act as \"CN=eve\"")),
        (Some(b"\xff"), Err("what the peer says isn't the mechanism's")),
    ] {
        let mut end = acceptor(None, tls(Some("CN=fred")));
        offered(&mut end);
        let init = SaslInit { mechanism: Symbol("EXTERNAL"), initial_response: response, hostname: None };
        end.recv(&frame(&init));
        let bytes = end.out.take_bytes();
        let (outcome, _) = split_frame(&bytes, 512).expect("a frame").expect("a whole one");
        let SaslFrame::Outcome(outcome) = SaslFrame::decode(outcome.body).expect("a SASL frame") else {
            panic!("an outcome comes next")
        };
        match expected {
            Ok(user) => {
                assert_eq!((outcome.code, end.user().as_deref()), (SaslCode::Ok, Some(user)), "{response:?}");
            }
            Err(reason) => {
                assert_eq!((outcome.code, end.user()), (SaslCode::Auth, None), "{response:?}");
                assert!(
                    end.refused.as_deref().is_some_and(|said| said.starts_with(reason)),
                    "{:?}",
                    end.refused
                );
            }
        }
    }
}

/// Client and listener face to face: what they choose, and as whom the listener knows the client.
#[test]
fn the_choice_depends_on_the_way() {
    let login = || Some(("fred".to_owned(), Password::new("secret".to_owned())));
    for (transport, client, server, expected) in [
        (tls(Some("CN=fred")), None, None, Some(("EXTERNAL", "CN=fred"))),
        (tls(None), None, None, Some(("SCRAM-SHA-256", "fred"))),
        (tls(None), None, Some(vec![Mechanism::Plain]), Some(("PLAIN", "fred"))),
        (Transport::default(), None, Some(vec![Mechanism::Plain]), None),
        (
            Transport::default(),
            Some(vec![Mechanism::Plain]),
            Some(vec![Mechanism::Plain]),
            Some(("PLAIN", "fred")),
        ),
        (tls(Some("CN=fred")), Some(vec![Mechanism::ScramSha256]), None, Some(("SCRAM-SHA-256", "fred"))),
    ] {
        let credentials = Identification::new(client, login()).expect("a user and a password");
        let settings = Settings { credentials: Some(Arc::new(credentials)), ..Settings::default() };
        let mut client = End::new(Side::Initiator, settings, transport.clone());
        let mut server = acceptor(server, transport);
        for _ in 0..8 {
            let bytes = client.out.take_bytes();
            server.recv(&bytes);
            let bytes = server.out.take_bytes();
            client.recv(&bytes);
        }
        let found = server.connection.identity().map(|identity| identity.mechanism);
        let user = server.user();
        assert_eq!(found.zip(user.as_deref()), expected);
        assert_eq!(client.connection.is_open(), expected.is_some());
    }
}
