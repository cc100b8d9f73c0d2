//! The policy at run time: vhosts made, changed and deleted, and what they count.

use crate::datum::{Datum, map, text};
use crate::manager::Manager;
use crate::support::{OpenOptions, Router, Setup};
use ringmain_codec::{Open, Performative, ProtocolHeader};

const POLICY: &str = "policy {\n enableVhostPolicy: yes\n}\nvhost {\n hostname: $default\n groups: {\n all: {\n users: *\n remoteHosts: *\n sources: *\n targets: *\n \
                      allowDynamicSource: yes\n }\n }\n}\nvhost {\n hostname: closed\n}\n";

fn router() -> Router {
    Router::with(Setup { sections: POLICY, ..Setup::default() })
}

/// Whether somebody gets in who asks for a vhost.
fn lets_in(router: &Router, hostname: &str) -> bool {
    let mut peer = router.connect();
    peer.send_header(ProtocolHeader::AMQP);
    let open = Open { container_id: "peer", hostname: Some(hostname), ..Open::default() };
    peer.send(0, Performative::Open(open), &[]);
    peer.expect_header(ProtocolHeader::AMQP);
    peer.expect("open");
    let begin =
        ringmain_codec::Begin { incoming_window: 1, outgoing_window: 1, ..ringmain_codec::Begin::default() };
    peer.send(0, Performative::Begin(begin), &[]);
    peer.expect_any().name() == "begin"
}

fn groups(users: &str) -> Datum {
    map([("all", map([("users", text(users)), ("remoteHosts", text("*")), ("sources", text("*"))]))])
}

fn stats(manager: &mut Manager, hostname: &str) -> Datum {
    let reply = manager.ask(
        [
            ("operation", text("READ")),
            ("type", text("vhostStats")),
            ("identity", text(&format!("vhostStats/{hostname}"))),
        ],
        map([]),
    );
    assert_eq!(reply.status, 200, "{}", reply.description);
    reply.body
}

#[test]
fn vhosts_are_made_changed_and_deleted() {
    let router = router();
    let mut manager = Manager::new(&router);
    assert!(!lets_in(&router, "closed"));
    let vhost = |operation: &str| {
        [("operation", text(operation)), ("type", text("vhost")), ("name", text("new"))]
            .map(|(key, value)| (key, value))
    };
    let created = manager.ask(vhost("CREATE"), map([("hostname", text("new")), ("groups", groups("fred"))]));
    assert_eq!(created.status, 201, "{}", created.description);
    assert!(!lets_in(&router, "new"), "it is fred's");
    let updated = manager
        .ask(vhost("UPDATE"), map([("groups", groups("anonymous")), ("maxConnections", Datum::Int(1))]));
    assert_eq!(updated.status, 200, "{}", updated.description);
    assert!(lets_in(&router, "new"));
    let refused = manager.ask(vhost("UPDATE"), map([("maxConnections", Datum::Int(-1))]));
    assert_eq!(refused.status, 400, "{}", refused.description);
    assert!(lets_in(&router, "new"), "nothing has changed");
    let taken = manager.ask(
        [("operation", text("CREATE")), ("type", text("vhost")), ("name", text("other"))],
        map([("hostname", text("new"))]),
    );
    assert_eq!(taken.status, 400, "{}", taken.description);
    let deleted = manager.ask(vhost("DELETE"), map([]));
    assert_eq!(deleted.status, 204, "{}", deleted.description);
    // Now the default vhost is asked.
    assert!(lets_in(&router, "new"));
}

#[test]
fn vhosts_count() {
    let router = router();
    let mut manager = Manager::new(&router);
    assert!(!lets_in(&router, "closed"));
    let closed = stats(&mut manager, "closed");
    assert_eq!(*closed.get("connectionsDenied"), Datum::Ulong(1));
    let _second = router.peer_with(OpenOptions::default());
    let open = stats(&mut manager, "$default");
    assert_eq!(
        (open.get("connectionsApproved"), open.get("connectionsCurrent")),
        (&Datum::Ulong(2), &Datum::Ulong(2))
    );
    assert_eq!(open.get("perUserState").get("anonymous").items().len(), 2);
    assert_eq!(open.get("perHostState").get("127.0.0.1").items().len(), 2);
    let policy = manager.ask(
        [("operation", text("READ")), ("type", text("policy")), ("identity", text("policy/0"))],
        map([]),
    );
    assert_eq!(policy.status, 200, "{}", policy.description);
    assert_eq!(
        (
            policy.body.get("connectionsProcessed"),
            policy.body.get("connectionsDenied"),
            policy.body.get("totalDenials")
        ),
        (&Datum::Ulong(3), &Datum::Ulong(1), &Datum::Ulong(1))
    );
}
