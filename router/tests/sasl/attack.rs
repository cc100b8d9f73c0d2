//! Those who only mean to disturb: connections that never come to an open, passwords that are tried.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use ringmain_codec::{Open, Performative, ProtocolHeader, SaslInit, Symbol};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use socket2::{Domain, Socket, Type};

use crate::support::{PATIENCE, Router, Setup, frame_bytes, message};
use crate::users::{FRED, UsersFile};

/// A connection from this address of the loopback network.
fn connect_from(source: Ipv4Addr, router: &Router) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((source, 0)).into()).expect("all of 127.0.0.0/8 is the machine's own");
    socket.connect(&router.address().into()).expect("the router accepts connections");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out that isn't zero");
    stream
}

/// Whether the router has closed it; waits for that, or for something that it says.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => true,
        Err(error) => panic!("neither closed nor answered: {error}"),
    }
}

/// Begins without ending: the protocol header, which the router answers where it serves the connection.
fn is_served(stream: &mut TcpStream) -> bool {
    // A socket that was closed may say so here or when it is read.
    stream.write_all(&ProtocolHeader::AMQP.to_bytes()).is_ok() && !is_closed(stream)
}

#[test]
fn half_open_connections_are_limited_by_listener_and_network() {
    let router = Router::with(Setup {
        listener: "    maxHalfOpen: 3\n    maxHalfOpenPerNetwork: 2",
        ..Setup::default()
    });
    let from = |source: [u8; 4]| {
        let mut stream = connect_from(source.into(), &router);
        is_served(&mut stream).then_some(stream)
    };
    let mut first = from([127, 0, 0, 1]).expect("the first is served");
    let _second = from([127, 0, 0, 200]).expect("the second is served");
    assert!(from([127, 0, 0, 3]).is_none(), "a third from the same /24");
    router.await_log("'maxHalfOpenPerNetwork'");
    let _third = from([127, 0, 1, 1]).expect("a third from elsewhere is served");
    assert!(from([127, 0, 2, 1]).is_none(), "a fourth of the listener's");
    router.await_log("'maxHalfOpen')");
    // Who opens isn't half-open any more.
    let open = Open { container_id: "first", ..Open::default() };
    first.write_all(&frame_bytes(0, Performative::Open(open))).expect("it is served");
    router.await_log("container_id=first");
    let fourth = from([127, 0, 2, 1]).expect("there is room again");
    // Who goes isn't either.
    drop(fourth);
    router.await_state("there is room again", |_| from([127, 0, 3, 1]).is_some());
}

/// Connections that send a byte now and then are closed when their time is up, whatever they were about to say. Meanwhile
/// others exchange messages.
#[test]
fn who_trickles_is_closed_at_the_deadline() {
    const COUNT: usize = 300;
    let users = UsersFile::new(&[FRED]);
    let router = users.router("    initialHandshakeTimeoutSeconds: 2");
    let mut receiver = router.peer();
    receiver.attach_receiver("a", 1000);
    let mut sender = router.peer();
    let link = sender.attach_sender("a");
    sender.await_credit(link, 1);
    let before = router.descriptors();
    let mut streams: Vec<TcpStream> =
        (0..COUNT).map(|_| connect_from(Ipv4Addr::LOCALHOST, &router)).collect();
    // Some don't get beyond a header, some begin a SASL frame of 512 bytes, some begin an open.
    let beginnings: [Vec<u8>; 3] = [
        Vec::new(),
        [&ProtocolHeader::SASL.to_bytes()[..], &[0, 0, 2, 0, 2, 1, 0, 0]].concat(),
        [&ProtocolHeader::AMQP.to_bytes()[..], &[0, 0, 2, 0, 2, 0, 0, 0]].concat(),
    ];
    for (stream, beginning) in streams.iter_mut().zip(beginnings.iter().cycle()) {
        stream.write_all(beginning).expect("it is served");
        stream.set_nonblocking(true).expect("a socket");
    }
    let deadline = Instant::now() + PATIENCE;
    let (mut exchanged, mut byte) = (0u32, 0);
    while !streams.is_empty() {
        assert!(Instant::now() < deadline, "{} are left", streams.len());
        streams.retain_mut(|stream| {
            let is_gone = match stream.read(&mut [0; 1024]) {
                Ok(count) => count == 0,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            };
            // A header's letters one after the other, or what might be a frame's.
            let next = ProtocolHeader::AMQP.to_bytes()[(byte % 4).min(3)];
            let _ = stream.write(&[next]);
            !is_gone
        });
        byte += 1;
        let id = sender.send_delivery(link, &message::data(b"steady"), false);
        let delivery = receiver.expect_delivery();
        receiver.accept(&delivery);
        sender.expect_outcome(id);
        exchanged += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{exchanged} messages meanwhile");
    router.await_log("Timeout waiting for initial handshake");
    router.await_state("their descriptors are free", |router| router.descriptors() <= before);
}

/// Where descriptors run out, the last ones are kept from strangers: somebody on the machine itself can still ask the router.
#[test]
fn the_last_descriptors_are_kept() {
    // The machine's own address outside of loopback: that which it would use to get elsewhere. Nothing is sent.
    let probe = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    let own = probe.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).and_then(|()| probe.local_addr());
    let Some(IpAddr::V4(own)) = own.ok().map(|address| address.ip()).filter(|own| !own.is_loopback()) else {
        eprintln!("SKIPPED: this machine has no address but loopback's, so there are no strangers");
        return;
    };
    let sections = format!("listener {{\n    host: {own}\n    port: 0\n}}\n");
    let router = Router::with(Setup { sections: &sections, ..Setup::default() });
    let listening = router.await_log(&format!("Listening on {own}:"));
    let outside: SocketAddr =
        listening.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("an address");
    let limit = router.descriptors() as u64 + 60;
    let pid = Pid::from_raw(router.process_id().cast_signed()).expect("a process id");
    prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(limit), maximum: Some(limit) })
        .expect("the limit of one's own process can be lowered");
    let mut strangers = Vec::new();
    while strangers.len() < 100 {
        let mut stream = TcpStream::connect(outside).expect("the router listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out that isn't zero");
        if !is_served(&mut stream) {
            break;
        }
        strangers.push(stream);
    }
    assert!((30..60).contains(&strangers.len()), "{} strangers were served", strangers.len());
    router.await_log("the last descriptors are kept for the router itself");
    let mut operator = TcpStream::connect(router.address()).expect("the router listens");
    operator.set_read_timeout(Some(PATIENCE)).expect("a time-out that isn't zero");
    assert!(is_served(&mut operator));
    drop(strangers);
    router.await_state("strangers are served again", |_| {
        TcpStream::connect(outside).is_ok_and(|mut stream| {
            stream.set_read_timeout(Some(PATIENCE)).expect("a time-out that isn't zero");
            is_served(&mut stream)
        })
    });
}

/// Who is refused hears of it, the log and the metrics count it, and a name is no way into the log.
#[test]
fn failures_are_counted() {
    let users = UsersFile::new(&[FRED]);
    let listener = "listener {\n    host: 127.0.0.1\n    port: 0\n    http: yes\n}\n";
    let router = users.router_with("    saslMechanisms: PLAIN", listener);
    let mut peers = Vec::new();
    for response in [&b"\0fred@domain\0wrong"[..], b"\0nobody\0secret", b"\0a\nb\0secret", b"x"] {
        let mut peer = router.connect();
        peer.send_header(ProtocolHeader::SASL);
        peer.expect_header(ProtocolHeader::SASL);
        peer.expect("sasl-mechanisms");
        let init = SaslInit { mechanism: Symbol("PLAIN"), initial_response: Some(response), hostname: None };
        peer.send_sasl(&init);
        peers.push(peer);
    }
    for mut peer in peers {
        peer.expect("sasl-outcome");
        peer.expect_end_of_stream();
    }
    let line = router.await_log_where("the fourth", |line| line.contains("failures from there lately: 4"));
    assert!(line.contains("Authentication of 127.0.0.1:"), "{line}");
    assert!(!router.log().iter().any(|line| line.contains("secret") || line.contains("wrong by")));
    let http = router.await_log("Listening for HTTP on ");
    let address = http.rsplit(' ').next().expect("a line has words");
    let mut stream = TcpStream::connect(address).expect("the router serves HTTP");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("the router serves HTTP");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
    assert!(text.contains("\nringmain_authentication_failures_total 4\n"), "{text}");
    assert!(text.contains("\nringmain_connections_refused_total 0\n"), "{text}");
}
