//! Connections and sessions.

use crate::support::{Router, Setup, frame_bytes, receiver};
use crate::{allowed, assert_denied, open, router_of, router_with};
use ringmain_codec::{Begin, Open, Performative, ProtocolHeader};
use std::io::Read as _;
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn vhosts_are_found_by_name_alias_and_default() {
    let group = "groups: {\n all: {\n users: *\n remoteHosts: *\n }\n}\n";
    let vhosts = format!("vhost {{\n hostname: a.example\n aliases: b.example, c.example\n {group} }}\n");
    let router = router_of(&vhosts);
    for name in ["a.example", "b.example", "c.example"] {
        allowed(&router, Some(name));
    }
    assert_denied(&router, Some("d.example"));
    assert_denied(&router, None);
    router.await_log("POLICY (info) [C");
    let router = router_of(&format!("{vhosts}vhost {{\n hostname: $default\n {group} }}\n"));
    allowed(&router, Some("d.example"));
    allowed(&router, None);
}

#[test]
fn a_listener_may_choose_the_vhost() {
    let sections = "policy {\n enableVhostPolicy: yes\n}\nvhost {\n hostname: inner\n groups: {\n all: {\n users: *\n remoteHosts: *\n }\n }\n}\n";
    let router = Router::with(Setup { listener: "policyVhost: inner", sections, ..Setup::default() });
    allowed(&router, Some("whatever"));
}

#[test]
fn names_may_be_patterns() {
    let sections = "policy {\n enableVhostPolicy: yes\n enableVhostNamePatterns: yes\n}\n\
                    vhost {\n hostname: *.example\n groups: {\n all: {\n users: *\n remoteHosts: *\n }\n }\n}\n";
    let router = Router::with(Setup { sections, ..Setup::default() });
    allowed(&router, Some("a.example"));
    assert_denied(&router, Some("a.b.example"));
}

#[test]
fn users_and_hosts_that_no_group_has_are_denied() {
    for (group, is_allowed) in [
        ("users: anonymous\n remoteHosts: 127.0.0.1", true),
        ("users: anonymous\n remoteHosts: localhost", true),
        ("users: anonymous\n remoteHosts: 127.0.0.0-127.0.0.1", true),
        ("users: anonymous\n remoteHosts: 127.0.0.2-127.0.0.9", false),
        ("users: anonymous\n remoteHosts: 10.0.0.1, ::1", false),
        ("users: fred, joe\n remoteHosts: *", false),
    ] {
        let router =
            router_of(&format!("vhost {{\n hostname: h\n groups: {{\n g: {{\n {group}\n }}\n }}\n}}\n"));
        if is_allowed {
            allowed(&router, Some("h"));
        } else {
            assert_denied(&router, Some("h"));
        }
    }
}

/// What a denied peer has sent along with its open isn't acted upon: one open, one close, and nothing else.
#[test]
fn nothing_after_a_denied_open_is_acted_upon() {
    let router = router_of("vhost {\n hostname: h\n}\n");
    let mut peer = router.connect();
    let mut bytes = ProtocolHeader::AMQP.to_bytes().to_vec();
    let begin = Begin { incoming_window: 10, outgoing_window: 10, ..Begin::default() };
    bytes.extend(frame_bytes(
        0,
        Performative::Open(Open { container_id: "p", hostname: Some("h"), ..Open::default() }),
    ));
    bytes.extend(frame_bytes(0, Performative::Begin(begin)));
    bytes.extend(frame_bytes(0, Performative::Attach(receiver("a"))));
    peer.send_bytes(&bytes);
    peer.expect_header(ProtocolHeader::AMQP);
    assert_eq!(peer.expect_any().name(), "open");
    let close = peer.expect_any();
    assert_eq!(close.name(), "close");
    peer.send(0, Performative::Close(ringmain_codec::Close::default()), &[]);
    peer.expect_end_of_stream();
}

#[test]
fn connections_are_counted_of_vhost_user_and_host() {
    let vhost = |limits: &str, group: &str| {
        format!(
            "vhost {{\n hostname: h\n {limits}\n groups: {{\n g: {{\n users: *\n remoteHosts: *\n {group}\n }}\n }}\n}}\n"
        )
    };
    for (limits, group) in [
        ("maxConnections: 2", ""),
        ("maxConnectionsPerUser: 2", ""),
        ("maxConnectionsPerHost: 2", ""),
        ("maxConnectionsPerUser: 1", "maxConnectionsPerUser: 2"),
        ("maxConnectionsPerHost: 0", "maxConnectionsPerHost: 2"),
    ] {
        let router = router_of(&vhost(limits, group));
        let first = allowed(&router, Some("h"));
        let second = allowed(&router, Some("h"));
        assert_denied(&router, Some("h"));
        first.close();
        let third = allowed(&router, Some("h"));
        assert_denied(&router, Some("h"));
        drop((second, third));
    }
    assert_denied(&router_of(&vhost("maxConnections: 0", "")), Some("h"));
}

/// Beyond the router's own limit, a socket is closed at once, also where no vhost is enforced.
#[test]
fn the_router_s_limit_closes_sockets() {
    let router = Router::with(Setup { sections: "policy {\n maxConnections: 1\n}\n", ..Setup::default() });
    let first = router.peer();
    let mut second = TcpStream::connect(router.address()).expect("the kernel takes it");
    second.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
    let mut bytes = [0; 8];
    assert!(matches!(second.read(&mut bytes), Ok(0) | Err(_)), "not a byte");
    first.close();
    router.await_state("room again", |router| {
        let mut peer = TcpStream::connect(router.address()).expect("the kernel takes it");
        peer.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
        std::io::Write::write_all(&mut peer, &ProtocolHeader::AMQP.to_bytes()).is_ok()
            && peer.read(&mut [0; 8]).is_ok_and(|count| count > 0)
    });
}

#[test]
fn opens_and_begins_say_what_the_policy_allows() {
    let router = router_with("maxFrameSize: 2048\n maxSessions: 3\n maxSessionWindow: 20480");
    let (mut peer, answer) = open(&router, None);
    let opened = answer.open();
    assert_eq!((opened.max_frame_size, opened.channel_max), (2048, 2));
    let begin = Begin { incoming_window: 100, outgoing_window: 100, ..Begin::default() };
    peer.send(0, Performative::Begin(begin), &[]);
    assert_eq!(peer.expect("begin").begin().incoming_window, 10);
    // Zeros leave what the listener says.
    let router = router_with("maxFrameSize: 0\n maxSessions: 0\n maxSessionWindow: 0");
    let (_, answer) = open(&router, None);
    assert_eq!((answer.open().max_frame_size, answer.open().channel_max), (16_384, 32_767));
}

#[test]
fn a_session_too_many_is_ended() {
    let router = router_with("maxSessions: 2");
    let (mut peer, _) = open(&router, None);
    for channel in 0..3 {
        let begin = Begin { incoming_window: 100, outgoing_window: 100, ..Begin::default() };
        peer.send(channel, Performative::Begin(begin), &[]);
        peer.expect("begin");
    }
    let end = peer.expect("end");
    let error = end.end().error.expect("a reason");
    assert_eq!(error.condition.0, "amqp:resource-limit-exceeded");
    assert_eq!(error.description, Some("session disallowed by local policy"));
}
