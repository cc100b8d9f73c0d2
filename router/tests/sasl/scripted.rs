//! Frames of the SASL layer, right and wrong (AMQP 1.0 §5.3; C-04).

use ringmain_codec::{
    Encode, FrameKind, Open, Performative, ProtocolHeader, SaslCode, SaslFrame, SaslInit, SaslMechanisms,
    SaslOutcome, SaslResponse, Symbol, Symbols, Writer, write_frame,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Peer, Router, frame_bytes};
use crate::users::{FRED, UsersFile};

/// A SASL frame's bytes.
fn sasl_bytes(body: &impl Encode) -> Vec<u8> {
    let mut room = vec![0; 8192];
    let mut writer = Writer::new(&mut room);
    write_frame(&mut writer, FrameKind::Sasl, 0, |writer| body.encode(writer)).expect("there is room");
    writer.written().to_vec()
}

/// A connection whose peer has heard what may be chosen: that too.
fn offered(router: &Router) -> (Peer, Vec<String>) {
    let mut peer = router.connect();
    peer.send_header(ProtocolHeader::SASL);
    peer.expect_header(ProtocolHeader::SASL);
    let frame = peer.expect("sasl-mechanisms");
    let SaslFrame::Mechanisms(SaslMechanisms { sasl_server_mechanisms }) = frame.sasl() else {
        unreachable!()
    };
    let names = sasl_server_mechanisms.iter().map(str::to_owned).collect();
    (peer, names)
}

fn init<'b>(mechanism: &'b str, initial_response: Option<&'b [u8]>) -> SaslInit<'b> {
    SaslInit { mechanism: Symbol(mechanism), initial_response, hostname: None }
}

/// The outcome's code and data.
#[track_caller]
fn outcome(peer: &mut Peer) -> (SaslCode, Option<Vec<u8>>) {
    let frame = peer.expect("sasl-outcome");
    let SaslFrame::Outcome(SaslOutcome { code, additional_data }) = frame.sasl() else { unreachable!() };
    (code, additional_data.map(<[u8]>::to_vec))
}

/// A peer that chooses this and says that.
fn chooses(router: &Router, mechanism: &str, response: Option<&[u8]>) -> Peer {
    let (mut peer, _) = offered(router);
    peer.send_sasl(&init(mechanism, response));
    peer
}

/// It is refused, and then the socket is closed (§5.3.3.6, and §5.3.3.2 for a mechanism that isn't offered).
#[track_caller]
fn is_refused(peer: &mut Peer) {
    assert_eq!(outcome(peer), (SaslCode::Auth, None));
    peer.expect_end_of_stream();
}

/// It is accepted, and AMQP follows.
#[track_caller]
fn is_accepted(peer: &mut Peer) {
    assert_eq!(outcome(peer).0, SaslCode::Ok);
    peer.send_header(ProtocolHeader::AMQP);
    peer.expect_header(ProtocolHeader::AMQP);
    let open = Open { container_id: "client", ..Open::default() };
    peer.send(0, Performative::Open(open), &[]);
    peer.expect("open");
}

#[test]
fn only_mechanisms_that_can_be_used_are_offered() {
    let users = UsersFile::new(&[FRED]);
    let nobody = UsersFile::new(&[]);
    for (users, listener, expected) in [
        // Nothing said: whatever shows who it is without showing it to others, or nothing.
        (&users, "", "SCRAM-SHA-512 SCRAM-SHA-256 SCRAM-SHA-1 ANONYMOUS"),
        (&users, "authenticatePeer: yes", "SCRAM-SHA-512 SCRAM-SHA-256 SCRAM-SHA-1"),
        (&users, "saslMechanisms: PLAIN", "PLAIN"),
        // Without a certificate nothing is shown by EXTERNAL; the others aren't known here.
        (&users, "saslMechanisms: EXTERNAL GSSAPI SCRAM-SHA-1 DIGEST-MD5", "SCRAM-SHA-1"),
        (&users, "authenticatePeer: yes\n    saslMechanisms: ANONYMOUS", "ANONYMOUS"),
        (&nobody, "", "ANONYMOUS"),
        (&nobody, "saslMechanisms: PLAIN ANONYMOUS", "ANONYMOUS"),
    ] {
        let router = users.router(listener);
        assert_eq!(offered(&router).1.join(" "), expected, "{listener}");
    }
}

/// Where nothing can be offered the connection ends, and the log says why.
#[test]
fn nothing_to_offer() {
    let router = UsersFile::new(&[]).router("saslMechanisms: PLAIN");
    let mut peer = router.connect();
    peer.send_header(ProtocolHeader::SASL);
    peer.expect_header(ProtocolHeader::SASL);
    peer.expect_end_of_stream();
    router.await_log("none of the listener's SASL mechanisms");
}

#[test]
fn a_user_by_plain() {
    let users = UsersFile::new(&[FRED]);
    let router = users.router("authenticatePeer: yes\n    saslMechanisms: PLAIN");
    is_accepted(&mut chooses(&router, "PLAIN", Some(b"\0fred@domain\0secret")));
    let opened = router.await_log("Connection Opened");
    assert!(opened.contains("auth=PLAIN user=fred@domain container_id=client"), "{opened}");
    // Whoever must show who it is can't leave that out (§5.3.2: the router answers with what it wants).
    let mut peer = router.connect();
    peer.send_header(ProtocolHeader::AMQP);
    peer.expect_header(ProtocolHeader::SASL);
    peer.expect_end_of_stream();
}

#[test]
fn c_04_a_an_authorization_identity() {
    let users = UsersFile::new(&[("guest", "guest"), FRED]);
    let router = users.router("saslMechanisms: PLAIN");
    is_accepted(&mut chooses(&router, "PLAIN", Some(b"guest\0guest\0guest")));
    is_refused(&mut chooses(&router, "PLAIN", Some(b"fred@domain\0guest\0guest")));
    router.await_log("one user may not act as another, \"fred@domain\"");
}

/// An init without a response is answered with an empty challenge, and the exchange goes on.
#[test]
fn c_04_b_no_initial_response() {
    let users = UsersFile::new(&[FRED]);
    let router = users.router("saslMechanisms: PLAIN ANONYMOUS");
    let mut peer = chooses(&router, "PLAIN", None);
    let frame = peer.expect("sasl-challenge");
    let SaslFrame::Challenge(challenge) = frame.sasl() else { unreachable!() };
    assert_eq!(challenge.challenge, b"");
    peer.send_sasl(&SaslResponse { response: b"\0fred@domain\0secret" });
    is_accepted(&mut peer);
    is_accepted(&mut chooses(&router, "ANONYMOUS", None));
}

#[test]
fn c_04_c_a_mechanism_that_is_not_offered() {
    let users = UsersFile::new(&[FRED]);
    let router = users.router("saslMechanisms: SCRAM-SHA-256");
    let choose = |mechanism| chooses(&router, mechanism, Some(b"\0fred@domain\0secret"));
    // All at once, since each failure makes the next wait longer.
    let peers = ["PLAIN", "ANONYMOUS", "EXTERNAL", "scram-sha-256", "", "GSSAPI"].map(choose);
    peers.into_iter().for_each(|mut peer| is_refused(&mut peer));
    router.await_log("'GSSAPI', which wasn't offered");
}

/// §5.3.1 has 512 bytes; more is taken where the listener says so.
#[test]
fn c_04_e_an_init_of_three_kilobytes() {
    let users = UsersFile::new(&[FRED]);
    let hostname = "h".repeat(3000);
    let init = SaslInit {
        mechanism: Symbol("PLAIN"),
        initial_response: Some(b"\0fred@domain\0secret"),
        hostname: Some(&hostname),
    };
    let strict = users.router("saslMechanisms: PLAIN");
    let (mut peer, _) = offered(&strict);
    peer.send_sasl(&init);
    peer.expect_end_of_stream();
    let lenient = users.router("saslMechanisms: PLAIN\n    saslMaxFrameSize: 4096");
    let (mut peer, _) = offered(&lenient);
    peer.send_sasl(&init);
    is_accepted(&mut peer);
    let hostname = "h".repeat(4096);
    let (mut peer, _) = offered(&lenient);
    peer.send_sasl(&SaslInit { hostname: Some(&hostname), ..init });
    peer.expect_end_of_stream();
}

/// Neither what is said nor how it is said tells whether there is such a user.
#[test]
fn a_wrong_password_and_an_unknown_user_look_the_same() {
    let users = UsersFile::new(&[FRED]);
    let router = users.router("saslMechanisms: PLAIN SCRAM-SHA-256");
    is_refused(&mut chooses(&router, "PLAIN", Some(b"\0fred@domain\0wrong")));
    is_refused(&mut chooses(&router, "PLAIN", Some(b"\0nobody\0wrong")));
    router.await_log("as \"nobody\" by PLAIN failed: no such user, or the wrong password");
    router.await_log("as \"fred@domain\" by PLAIN failed: no such user, or the wrong password");
    // Salt and rounds of SCRAM: those of a user stay the same, and so do those of nobody.
    let first = |name: &str| {
        let said = format!("n,,n={name},r=nonce");
        let mut peer = chooses(&router, "SCRAM-SHA-256", Some(said.as_bytes()));
        let frame = peer.expect("sasl-challenge");
        let SaslFrame::Challenge(challenge) = frame.sasl() else { unreachable!() };
        let text = String::from_utf8(challenge.challenge.to_vec()).expect("text");
        let (nonce, rest) = text.split_once(",s=").expect("a salt");
        assert!(nonce.starts_with("r=nonce") && nonce.len() >= 24, "{text}");
        let last = format!("c=biws,{nonce},p={}", "A".repeat(43) + "=");
        peer.send_sasl(&SaslResponse { response: last.as_bytes() });
        (rest.to_owned(), peer)
    };
    let all = ["fred@domain", "nobody", "fred@domain", "nobody", "nobody2"].map(first);
    let [fred, nobody, fred_again, nobody_again, other] = all.map(|(salt, mut peer)| {
        is_refused(&mut peer);
        salt
    });
    assert_eq!(fred_again, fred);
    assert_eq!(nobody_again, nobody);
    assert_ne!(other, nobody);
    assert_eq!(fred.len(), nobody.len());
    assert!(fred.ends_with(",i=4096") && nobody.ends_with(",i=4096"), "{fred} {nobody}");
}

/// What isn't the mechanism's is refused, whatever it is; nobody else is disturbed.
#[test]
fn messages_that_are_none_of_the_mechanism() {
    let users = UsersFile::new(&[FRED]);
    let router = users.router("saslMechanisms: PLAIN SCRAM-SHA-1 SCRAM-SHA-256 SCRAM-SHA-512 ANONYMOUS");
    // Each failure makes the next wait longer, so they come all at once.
    let mut peers = Vec::new();
    for response in
        ["", "x", "\0", "\0\0", "\0fred@domain", "\0fred@domain\0", "\0fred@domain\0secret\0", "a\0b\0c\0d"]
    {
        peers.push(chooses(&router, "PLAIN", Some(response.as_bytes())));
    }
    peers.push(chooses(&router, "PLAIN", Some(b"\0\xff\xfe\0secret")));
    for response in [
        "",
        "n",
        "n,",
        "n,,",
        "n,,x",
        "n,a,n=u,r=1",
        "n,,n=fred@domain",
        "n,,n=fred@domain,",
        "n,,n=fred@domain,r",
        "n,,m=ext,n=fred@domain,r=1",
        "p=tls-unique,,n=fred@domain,r=1",
        "p=,,n=u,r=1",
        "q,,n=u,r=1",
        "n,,n=,r=\u{e9}",
    ] {
        peers.push(chooses(&router, "SCRAM-SHA-1", Some(response.as_bytes())));
    }
    for response in [
        "",
        "c",
        "c=biws",
        "c=biws,r",
        "c=biws,r=nonce,p",
        "c=biws,r=nonce,p=,",
        "c=biws,r=nonce,x",
        "c=????,r=nonce,p=AAAA",
        "c=biws,r=nonce,p=AAAA",
        "r=nonce,c=biws,p=AAAA",
        "c=biws,,p=AAAA",
    ] {
        let mut peer = chooses(&router, "SCRAM-SHA-512", Some(b"n,,n=fred@domain,r=nonce"));
        peer.expect("sasl-challenge");
        peer.send_sasl(&SaslResponse { response: response.as_bytes() });
        peers.push(peer);
    }
    for mut peer in peers {
        is_refused(&mut peer);
    }
    // The client's nonce comes back in our challenge, which must fit 512 bytes.
    let said = format!("n,,n=fred@domain,r={}", "x".repeat(430));
    is_refused(&mut chooses(&router, "SCRAM-SHA-256", Some(said.as_bytes())));
    is_accepted(&mut chooses(&router, "ANONYMOUS", Some(b"anonymous")));
}

/// The layer has no close: a frame that has no place ends the connection without a word.
#[test]
fn frames_out_of_order() {
    let users = UsersFile::new(&[FRED]);
    let router = users.router("saslMechanisms: PLAIN SCRAM-SHA-256 ANONYMOUS");
    let response = sasl_bytes(&SaslResponse { response: b"\0fred@domain\0secret" });
    let ok = sasl_bytes(&SaslOutcome { code: SaslCode::Ok, additional_data: None });
    let mechanisms = sasl_bytes(&SaslMechanisms { sasl_server_mechanisms: Symbols::Slice(&["ANONYMOUS"]) });
    let open = frame_bytes(0, Performative::Open(Open { container_id: "x", ..Open::default() }));
    for bytes in [&response, &ok, &mechanisms, &open] {
        let (mut peer, _) = offered(&router);
        peer.send_bytes(bytes);
        peer.expect_end_of_stream();
    }
    // In the midst of an exchange.
    let again = sasl_bytes(&init("ANONYMOUS", None));
    for bytes in [&again, &ok, &mechanisms, &open] {
        let mut peer = chooses(&router, "SCRAM-SHA-256", Some(b"n,,n=fred@domain,r=nonce"));
        peer.expect("sasl-challenge");
        peer.send_bytes(bytes);
        peer.expect_end_of_stream();
    }
    // Behind it.
    let mut peer = chooses(&router, "ANONYMOUS", None);
    assert_eq!(outcome(&mut peer).0, SaslCode::Ok);
    peer.send_bytes(&again);
    peer.expect_header(ProtocolHeader::AMQP);
    peer.expect_end_of_stream();
}

/// Who goes away in the midst of it leaves nothing behind.
#[test]
fn an_exchange_is_given_up() {
    let users = UsersFile::new(&[FRED]);
    let router = users.router("saslMechanisms: PLAIN SCRAM-SHA-256");
    let before = router.descriptors();
    for _ in 0..20 {
        let mut peer = chooses(&router, "SCRAM-SHA-256", Some(b"n,,n=fred@domain,r=nonce"));
        peer.expect("sasl-challenge");
        drop(peer);
        // While the password is being checked.
        drop(chooses(&router, "PLAIN", Some(b"\0fred@domain\0wrong")));
        drop(offered(&router));
    }
    router.await_state("all of them have gone", |router| router.descriptors() <= before);
    is_accepted(&mut chooses(&router, "PLAIN", Some(b"\0fred@domain\0secret")));
}

/// A client may send everything up to its open at once, since it knows what it will be told (§2.2, §2.4.1).
#[test]
fn what_comes_before_the_outcome_is_kept() {
    let users = UsersFile::new(&[FRED]);
    let router = users.router("saslMechanisms: PLAIN");
    let mut peer = router.connect();
    let mut bytes = ProtocolHeader::SASL.to_bytes().to_vec();
    bytes.extend(sasl_bytes(&init("PLAIN", Some(b"\0fred@domain\0secret"))));
    bytes.extend(ProtocolHeader::AMQP.to_bytes());
    bytes.extend(frame_bytes(0, Performative::Open(Open { container_id: "hasty", ..Open::default() })));
    peer.send_bytes(&bytes);
    peer.expect_header(ProtocolHeader::SASL);
    peer.expect("sasl-mechanisms");
    assert_eq!(outcome(&mut peer), (SaslCode::Ok, None));
    peer.expect_header(ProtocolHeader::AMQP);
    peer.expect("open");
    router.await_log("user=fred@domain container_id=hasty");
    // Who isn't let in isn't heard either.
    let mut peer = router.connect();
    let mut wrong = ProtocolHeader::SASL.to_bytes().to_vec();
    wrong.extend(sasl_bytes(&init("PLAIN", Some(b"\0fred@domain\0wrong"))));
    wrong.extend(ProtocolHeader::AMQP.to_bytes());
    wrong.extend(frame_bytes(0, Performative::Open(Open { container_id: "liar", ..Open::default() })));
    peer.send_bytes(&wrong);
    peer.expect_header(ProtocolHeader::SASL);
    peer.expect("sasl-mechanisms");
    is_refused(&mut peer);
    assert!(!router.log().iter().any(|line| line.contains("container_id=liar")));
}

/// Names and passwords are the same however a keyboard makes them (RFC 4013), and a comma or `=` may be in them.
#[test]
fn names_are_prepared() {
    let users = UsersFile::new(&[("\u{2168}, x=y", "pass\u{ad}word")]);
    let router = users.router("saslMechanisms: PLAIN");
    is_accepted(&mut chooses(&router, "PLAIN", Some(b"\0IX, x=y\0password")));
    is_accepted(&mut chooses(&router, "PLAIN", Some("\0\u{2168}, x=y\0pass\u{ad}word".as_bytes())));
    router.await_log("user=IX, x=y ");
}

/// Other users after a reload. A file with a fault changes nothing.
#[test]
fn the_file_is_read_again() {
    let users = UsersFile::new(&[FRED]);
    let router = users.router("saslMechanisms: PLAIN");
    let reload = || {
        let pid = Pid::from_raw(router.process_id().cast_signed()).expect("a process id");
        kill_process(pid, Signal::HUP).expect("the router runs");
    };
    users.write(&[("eve", "other"), ("adam", "third")]);
    reload();
    router.await_log(&format!("Users in {}: 2", users.path().display()));
    is_accepted(&mut chooses(&router, "PLAIN", Some(b"\0eve\0other")));
    is_refused(&mut chooses(&router, "PLAIN", Some(b"\0fred@domain\0secret")));
    std::fs::write(users.path(), "eve other\n").expect("it can be written");
    // The same signal so soon after another would be taken for it.
    std::thread::sleep(std::time::Duration::from_millis(150));
    reload();
    let said = router.await_log("The file of users can't be used");
    assert!(said.contains(":1: ") && !said.contains("other"), "{said}");
    is_accepted(&mut chooses(&router, "PLAIN", Some(b"\0adam\0third")));
}

/// A connection that isn't encrypted where it must be: the answer is the protocol that is wanted (§2.2, §5.2).
#[test]
fn encryption_is_required() {
    if !ringmain::control::config::features::Feature::Tls.is_served() {
        eprintln!("SKIPPED: this version has no TLS, so it opens no listener that requires encryption");
        return;
    }
    let users = UsersFile::new(&[FRED]);
    let router = users.router("requireEncryption: yes");
    for header in [ProtocolHeader::SASL, ProtocolHeader::AMQP] {
        let mut peer = router.connect();
        peer.send_header(header);
        peer.expect_header(ProtocolHeader::TLS);
        peer.expect_end_of_stream();
    }
    router.await_log("Client connection unencrypted - forbidden");
}
