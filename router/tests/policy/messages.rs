//! Messages.

use crate::support::{Peer, Router, Setup, message};
use crate::{allowed, router_with};
use ringmain_codec::{DeliveryState, Properties, Writer};

/// A message with properties and a body.
fn with_properties(properties: &Properties<'_>) -> Vec<u8> {
    let mut bytes = message::encoded(|writer: &mut Writer<'_>| writer.put(properties));
    bytes.extend(message::data(b"x"));
    bytes
}

/// What becomes of a message: `None` if it is accepted, else the error that it is rejected with.
fn outcome(peer: &mut Peer, link: crate::support::LinkId, message: &[u8]) -> Option<(String, String)> {
    let id = peer.send_delivery(link, message, false);
    let frame = peer.expect_outcome(id);
    match frame.disposition().state {
        Some(DeliveryState::Accepted) => None,
        Some(DeliveryState::Rejected(rejected)) => {
            let error = rejected.error.expect("a reason");
            Some((error.condition.0.to_owned(), error.description.unwrap_or_default().to_owned()))
        }
        other => panic!("neither accepted nor rejected: {other:?}"),
    }
}

/// A receiver that accepts everything, on a thread of its own until its router is gone.
fn accept_all(router: &Router, address: &str, count: usize) -> std::thread::JoinHandle<()> {
    let mut peer = allowed(router, None);
    peer.attach_receiver(address, 100);
    std::thread::spawn(move || {
        for _ in 0..count {
            let delivery = peer.expect_delivery();
            peer.accept(&delivery);
        }
    })
}

#[test]
fn anonymous_messages_go_where_the_user_may_send() {
    let router = router_with("sources: *\n targets: open.*\n allowAnonymousSender: yes");
    let receiver = accept_all(&router, "open.a", 1);
    let mut peer = allowed(&router, None);
    let link = peer.attach_anonymous();
    peer.await_credit(link, 3);
    assert_eq!(outcome(&mut peer, link, &message::addressed("open.a", b"x")), None);
    let denied = Some(("amqp:unauthorized-access".to_owned(), "policy violation on target".to_owned()));
    assert_eq!(outcome(&mut peer, link, &message::addressed("closed.a", b"x")), denied);
    receiver.join().expect("it got its message");
}

#[test]
fn messages_name_nobody_else() {
    for (group, may_proxy) in [("", false), ("\n allowUserIdProxy: yes", true)] {
        let router = router_with(&format!("sources: *\n targets: *{group}"));
        let receiver = accept_all(&router, "a", if may_proxy { 4 } else { 3 });
        let mut peer = allowed(&router, None);
        let link = peer.attach_sender("a");
        peer.await_credit(link, 4);
        assert_eq!(outcome(&mut peer, link, &message::data(b"x")), None);
        for (user_id, is_own) in [(&b"anonymous"[..], true), (b"", true), (b"fred", false)] {
            let message = with_properties(&Properties { user_id: Some(user_id), ..Properties::default() });
            let denied = ("amqp:unauthorized-access".to_owned(), "user_id proxy violation".to_owned());
            let expected = (!is_own && !may_proxy).then_some(denied);
            assert_eq!(outcome(&mut peer, link, &message), expected, "{user_id:?}");
        }
        receiver.join().expect("it got its messages");
    }
}

/// The group's limit, that of the vhost without one, that of the policy without either.
#[test]
fn messages_beyond_the_limit_end_the_connection() {
    let vhost = |vhost: &str, group: &str| {
        format!(
            "vhost {{\n hostname: $default\n {vhost}\n groups: {{\n all: {{\n users: *\n remoteHosts: *\n sources: *\n \
             targets: *\n {group}\n }}\n }}\n}}\n"
        )
    };
    for (policy, vhosts) in [
        ("maxMessageSize: 1000", String::new()),
        ("enableVhostPolicy: yes\n maxMessageSize: 1000", vhost("", "")),
        ("enableVhostPolicy: yes\n maxMessageSize: 1", vhost("maxMessageSize: 1000", "")),
        ("enableVhostPolicy: yes", vhost("maxMessageSize: 1", "maxMessageSize: 1000")),
    ] {
        let sections = format!("policy {{\n {policy}\n}}\n{vhosts}");
        let router = Router::with(Setup { sections: &sections, ..Setup::default() });
        let receiver = accept_all(&router, "a", 1);
        let mut peer = allowed(&router, None);
        let (link, answer) = peer.attach(0, crate::support::sender(Some("a")));
        assert_eq!(answer.attach().max_message_size, Some(1000), "{policy}");
        peer.await_credit(link, 2);
        assert_eq!(outcome(&mut peer, link, &message::sized(1000, 1)), None);
        receiver.join().expect("it got its message");
        let _receiver = accept_all(&router, "a", 0);
        peer.await_credit(link, 1);
        peer.send_delivery(link, &message::sized(1001, 1), false);
        peer.expect_detached_with(link, "amqp:link:message-size-exceeded");
        assert_eq!(peer.expect_closed_with("amqp:connection:forced"), "Message size exceeded");
    }
}
