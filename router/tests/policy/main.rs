//! Who may connect and what they may do (router-protocol reference §11): each setting allowed, denied and at its boundary.

#[path = "../support/mod.rs"]
mod support;

mod connections;
mod links;
mod messages;

use ringmain_codec::{Open, Performative, ProtocolHeader};
use support::{Frame, Peer, Router, Setup};

/// A router whose one vhost, the default, has one group of all users with these attributes.
fn router_with(group: &str) -> Router {
    router_of(&format!(
        "vhost {{\n hostname: $default\n allowUnknownUser: yes\n groups: {{\n  $default: {{\n   remoteHosts: *\n{group}\n  }}\n }}\n}}\n"
    ))
}

/// A router that enforces these vhosts.
fn router_of(vhosts: &str) -> Router {
    let sections = format!("policy {{\n enableVhostPolicy: yes\n}}\n{vhosts}");
    Router::with(Setup { sections: &sections, ..Setup::default() })
}

/// Opens a connection, asking for a vhost, and returns what the router's open says.
fn open(router: &Router, hostname: Option<&str>) -> (Peer, Frame) {
    let mut peer = router.connect();
    peer.send_header(ProtocolHeader::AMQP);
    let open = Open { container_id: "peer", hostname, ..Open::default() };
    peer.send(0, Performative::Open(open), &[]);
    peer.expect_header(ProtocolHeader::AMQP);
    let answer = peer.expect("open");
    (peer, answer)
}

/// Asserts that the router lets nobody in who asks for that vhost.
fn assert_denied(router: &Router, hostname: Option<&str>) {
    let (mut peer, _) = open(router, hostname);
    let reason = peer.expect_closed_with("amqp:resource-limit-exceeded");
    assert_eq!(reason, "connection disallowed by local policy");
}

/// Asserts that the router lets in who asks for that vhost, and returns the peer.
fn allowed(router: &Router, hostname: Option<&str>) -> Peer {
    let (mut peer, _) = open(router, hostname);
    peer.begin();
    peer
}
