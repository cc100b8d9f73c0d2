//! Links.

use crate::support::{Peer, Router};
use crate::support::{receiver, sender};
use crate::{allowed, router_with};
use ringmain_codec::{Attach, Source, Symbols, Target, TargetNode};

/// Attaches, and tells the condition and description with which it is refused, if it is.
fn attach(peer: &mut Peer, attach: Attach<'_>) -> Result<(), (String, String)> {
    let (link, answer) = peer.attach(0, attach);
    let answer = answer.attach();
    let is_refused = match attach.role {
        ringmain_codec::Role::Sender => answer.target.is_none(),
        ringmain_codec::Role::Receiver => answer.source.is_none(),
    };
    if !is_refused {
        return Ok(());
    }
    let detach = peer.expect("detach");
    let error = detach.detach().error.expect("a reason");
    let told = (error.condition.0.to_owned(), error.description.unwrap_or_default().to_owned());
    peer.answer_detach(link);
    Err(told)
}

fn disallowed(condition: &str) -> Result<(), (String, String)> {
    Err((condition.to_owned(), "link disallowed by local policy".to_owned()))
}

fn unauthorized() -> Result<(), (String, String)> {
    disallowed("amqp:unauthorized-access")
}

fn peer(group: &str) -> (Router, Peer) {
    let router = router_with(group);
    let peer = allowed(&router, None);
    (router, peer)
}

#[test]
fn addresses_are_those_of_the_lists() {
    let (_router, mut peer) = peer("sources: news, ${user}.in.*\n targets: orders*, to-${user}");
    for (address, is_allowed) in [
        ("news", true),
        ("news2", false),
        ("anonymous.in.box", true),
        ("fred.in.box", false),
        ("orders", false),
    ] {
        let expected = if is_allowed { Ok(()) } else { unauthorized() };
        assert_eq!(attach(&mut peer, receiver(address)), expected, "{address}");
    }
    for (address, is_allowed) in
        [("orders", true), ("orders/eu", true), ("news", false), ("to-anonymous", true), ("to-fred", false)]
    {
        let expected = if is_allowed { Ok(()) } else { unauthorized() };
        assert_eq!(attach(&mut peer, sender(Some(address))), expected, "{address}");
    }
}

#[test]
fn addresses_are_those_of_the_patterns() {
    let (_router, mut peer) = peer("sourcePattern: news/*, ${user}/#\n targetPattern: #.${user}");
    for (address, is_allowed) in [
        ("news/today", true),
        ("news", false),
        ("anonymous", true),
        ("anonymous.a.b", true),
        ("fred.a", false),
    ] {
        let expected = if is_allowed { Ok(()) } else { unauthorized() };
        assert_eq!(attach(&mut peer, receiver(address)), expected, "{address}");
    }
    for (address, is_allowed) in [("a.b.anonymous", true), ("anonymous", true), ("a.fred", false)] {
        let expected = if is_allowed { Ok(()) } else { unauthorized() };
        assert_eq!(attach(&mut peer, sender(Some(address))), expected, "{address}");
    }
}

/// Without any, nothing may be used.
#[test]
fn no_addresses_are_none() {
    let (_router, mut peer) = peer("");
    assert_eq!(attach(&mut peer, receiver("a")), unauthorized());
    assert_eq!(attach(&mut peer, sender(Some("a"))), unauthorized());
}

#[test]
fn links_are_counted_by_direction() {
    let (_router, mut peer) = peer("sources: *\n targets: *\n maxSenders: 2\n maxReceivers: 1");
    assert_eq!(attach(&mut peer, sender(Some("a"))), Ok(()));
    let (second, _) = peer.attach(0, sender(Some("b")));
    assert_eq!(attach(&mut peer, sender(Some("c"))), disallowed("amqp:resource-limit-exceeded"));
    peer.detach(second);
    assert_eq!(attach(&mut peer, sender(Some("c"))), Ok(()));
    assert_eq!(attach(&mut peer, receiver("a")), Ok(()));
    assert_eq!(attach(&mut peer, receiver("b")), disallowed("amqp:resource-limit-exceeded"));
    // 0 is any number.
    let (_router, mut peer) = self::peer("sources: *\n targets: *\n maxSenders: 0\n maxReceivers: 0");
    for number in 0..20 {
        assert_eq!(attach(&mut peer, sender(Some("a"))), Ok(()), "{number}");
        assert_eq!(attach(&mut peer, receiver("a")), Ok(()), "{number}");
    }
}

fn dynamic() -> Attach<'static> {
    Attach { source: Some(Source { dynamic: true, ..Source::default() }), ..receiver("") }
}

#[test]
fn dynamic_sources_and_anonymous_senders_need_their_settings() {
    let (_router, mut peer) = peer("sources: *\n targets: *");
    assert_eq!(attach(&mut peer, dynamic()), unauthorized());
    assert_eq!(attach(&mut peer, sender(None)), unauthorized());
    let (_router, mut peer) = self::peer("allowDynamicSource: yes\n allowAnonymousSender: yes");
    assert_eq!(attach(&mut peer, dynamic()), Ok(()));
    assert_eq!(attach(&mut peer, sender(None)), Ok(()));
}

#[test]
fn waypoint_links_may_be_forbidden() {
    let waypoint = |capability: &'static [&'static str]| Attach {
        source: Some(Source {
            address: Some("q"),
            capabilities: Symbols::Slice(capability),
            ..Source::default()
        }),
        ..receiver("q")
    };
    let fallback_sender = Attach {
        target: Some(Target::Node(TargetNode {
            address: Some("q"),
            capabilities: Symbols::Slice(&["qd.fallback"]),
            ..TargetNode::default()
        })),
        ..sender(Some("q"))
    };
    let (_router, mut peer) = peer("sources: *\n targets: *");
    assert_eq!(attach(&mut peer, waypoint(&["qd.waypoint_1"])), Ok(()));
    let (_router, mut peer) =
        self::peer("sources: *\n targets: *\n allowWaypointLinks: no\n allowFallbackLinks: no");
    assert_eq!(attach(&mut peer, waypoint(&["qd.waypoint"])), unauthorized());
    assert_eq!(attach(&mut peer, waypoint(&["qd.waypoint.2"])), unauthorized());
    assert_eq!(attach(&mut peer, fallback_sender), unauthorized());
    assert_eq!(attach(&mut peer, receiver("q")), Ok(()));
}
