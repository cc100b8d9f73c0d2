//! Connectors with `sslProfile`, and the servers that they find.

use crate::certificates::{Authority, Folder, Wanted, profile, usual};
use crate::python::Server;
use crate::support::{Router, Setup};

fn router(folder: &Folder, port: u16, connector: &str) -> Router {
    let sections = format!(
        "{}connector {{\n    host: localhost\n    port: {port}\n    sslProfile: tls\n{connector}\n}}\n",
        profile(folder, "")
    );
    Router::with(Setup { sections: &sections, ..Setup::default() })
}

/// `AMQP` 3 1 0 0 (AMQP 1.0 §5.3.1): what we say first, when the handshake is over.
const AMQP_SASL: &str = "414d515003010000";

#[test]
fn a_connector_shows_its_certificate_and_names_the_host() {
    let (folder, _) = usual();
    let ca = folder.path("ca.pem");
    let mut server = Server::start(&folder, "server", 1, &["--ca", ca.to_str().expect("text")]);
    let _router = router(&folder, server.port, "");
    let report = server.report();
    assert_eq!(report["version"], "TLSv1.3", "{report}");
    assert_eq!(report["sni"], "localhost");
    assert_eq!(report["peer"], "router");
    assert_eq!(report["first"], AMQP_SASL);
}

#[test]
fn a_server_that_is_not_who_it_should_be_is_left() {
    let (folder, authority) = usual();
    authority.issue_to(&folder, "expired", Wanted { name: "a", is_expired: true, ..Wanted::default() });
    authority.issue_to(&folder, "elsewhere", Wanted { name: "a", is_elsewhere: true, ..Wanted::default() });
    let other = Authority::new(&folder.path("other-ca.pem"));
    other.issue_to(&folder, "stranger", Wanted { name: "a", ..Wanted::default() });
    for (name, alert, logged) in [
        ("expired", "CERTIFICATE_EXPIRED", "xpired"),
        ("elsewhere", "CERTIFICATE", "elsewhere.example"),
        ("stranger", "UNKNOWN_CA", "no authority that is trusted"),
    ] {
        let mut server = Server::start(&folder, name, 1, &[]);
        let router = router(&folder, server.port, "");
        let report = server.report();
        assert!(report["error"].as_str().is_some_and(|error| error.contains(alert)), "{name}: {report}");
        let line = router.await_log("failed: TLS: ");
        assert!(line.contains(logged), "{line}");
    }
}

#[test]
fn the_host_is_not_looked_at_without_verify_hostname() {
    let (folder, authority) = usual();
    authority.issue_to(&folder, "elsewhere", Wanted { name: "a", is_elsewhere: true, ..Wanted::default() });
    let mut server = Server::start(&folder, "elsewhere", 1, &[]);
    let _router = router(&folder, server.port, "    verifyHostname: no");
    assert_eq!(server.report()["first"], AMQP_SASL);
    // Who issued it is.
    let other = Authority::new(&folder.path("other-ca.pem"));
    other.issue_to(&folder, "stranger", Wanted { name: "a", is_elsewhere: true, ..Wanted::default() });
    let mut server = Server::start(&folder, "stranger", 1, &[]);
    let _router = router(&folder, server.port, "    verifyHostname: no");
    let report = server.report();
    assert!(report["error"].as_str().is_some_and(|error| error.contains("UNKNOWN_CA")), "{report}");
}

#[test]
fn routers_connect_to_each_other() {
    let (folder, _) = usual();
    let listener =
        "    sslProfile: tls\n    requireSsl: yes\n    saslMechanisms: EXTERNAL\n    authenticatePeer: yes";
    let sections = profile(&folder, "    uidFormat: n");
    let server = Router::with(Setup { listener, sections: &sections, ..Setup::default() });
    let client = router(&folder, server.address().port(), "");
    client.await_log("encrypted=TLSv1.3 auth=EXTERNAL");
    server.await_log("encrypted=TLSv1.3 auth=EXTERNAL user=router ");
}
