//! Clients of a listener with `sslProfile`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::certificates::{Authority, Folder, Wanted, profile, usual};
use crate::python::{client, client_trusting};
use crate::support::{Router, Setup};

/// `AMQP` 0 1 0 0 and `AMQP` 2 1 0 0 (AMQP 1.0 §2.2, §5.2.1).
const AMQP: &str = "414d515000010000";
const AMQP_TLS: &str = "414d515002010000";

fn router(folder: &Folder, listener: &str, more: &str) -> Router {
    let listener = format!("    sslProfile: tls\n{listener}");
    Router::with(Setup { listener: &listener, sections: &profile(folder, more), ..Setup::default() })
}

fn port(router: &Router) -> u16 {
    router.address().port()
}

#[test]
fn versions_and_ciphers_are_those_of_the_profile() {
    let (folder, _) = usual();
    let both = router(&folder, "", "");
    for (only, version) in [("1.2", "TLSv1.2"), ("1.3", "TLSv1.3")] {
        let report = client(&folder, port(&both), &["--only", only]);
        assert_eq!(
            (report["version"].as_str(), report["answer"].as_str()),
            (Some(version), Some(AMQP)),
            "{report}"
        );
    }
    let one = router(&folder, "", "    protocols: TLSv1.2\n    ciphers: ECDHE-ECDSA-AES128-GCM-SHA256");
    let report = client(&folder, port(&one), &[]);
    assert_eq!(report["version"], "TLSv1.2");
    assert_eq!(report["cipher"], "ECDHE-ECDSA-AES128-GCM-SHA256");
    let report = client(&folder, port(&one), &["--only", "1.3"]);
    assert_eq!(report["error"], "TLSV1_ALERT_PROTOCOL_VERSION", "{report}");
}

#[test]
fn tls_and_plain_amqp_on_one_port() {
    let (folder, _) = usual();
    let router = router(&folder, "    authenticatePeer: no", "");
    assert_eq!(client(&folder, port(&router), &[])["answer"], AMQP);
    let report = client(&folder, port(&router), &["--prelude", AMQP_TLS]);
    assert_eq!(
        (report["header"].as_str(), report["answer"].as_str()),
        (Some(AMQP_TLS), Some(AMQP)),
        "{report}"
    );
    router.peer();
}

/// AMQP 1.0 §2.2: what isn't served is answered with a header that is, then the socket is closed.
#[test]
fn plain_amqp_is_refused_where_tls_is_required() {
    let (folder, _) = usual();
    let router = router(&folder, "    requireSsl: yes", "");
    assert_eq!(client(&folder, port(&router), &[])["answer"], AMQP);
    let mut plain = std::net::TcpStream::connect(router.address()).expect("it listens");
    plain.write_all(b"AMQP\x00\x01\x00\x00").expect("it is sent");
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut plain, &mut answer).expect("it is closed in good order");
    assert_eq!(answer, b"AMQP\x02\x01\x00\x00");
    router.await_log("'requireSsl' demands");
}

#[test]
fn a_client_must_show_a_good_certificate_for_external() {
    let (folder, authority) = usual();
    authority.issue_to(&folder, "expired", Wanted { name: "fred", is_expired: true, ..Wanted::default() });
    let other = Authority::new(&folder.path("other-ca.pem"));
    other.issue_to(&folder, "stranger", Wanted { name: "fred", ..Wanted::default() });
    let router = router(&folder, "    saslMechanisms: EXTERNAL\n    authenticatePeer: yes", "");
    let show = |name: &str, version: &str| {
        let (cert, key) = (folder.path(&format!("{name}.pem")), folder.path(&format!("{name}.key")));
        let (cert, key) = (cert.to_str().expect("text"), key.to_str().expect("text"));
        client(&folder, port(&router), &["--cert", cert, "--key", key, "--only", version])
    };
    for version in ["1.2", "1.3"] {
        assert!(show("client", version)["error"].is_null());
        assert!(!client(&folder, port(&router), &["--only", version])["error"].is_null());
        let expired = show("expired", version);
        assert!(
            expired["error"].as_str().is_some_and(|error| error.contains("CERTIFICATE_EXPIRED")),
            "{expired}"
        );
        let stranger = show("stranger", version);
        assert!(stranger["error"].as_str().is_some_and(|error| error.contains("UNKNOWN_CA")), "{stranger}");
    }
    router.await_log("failed: TLS: peer sent no certificates");
}

#[test]
fn a_client_sees_what_is_wrong_with_the_routers_certificate() {
    let (folder, authority) = usual();
    Authority::new(&folder.path("other-ca.pem"));
    {
        let router = router(&folder, "", "");
        let report = client_trusting(&folder, "other-ca", port(&router), &[]);
        assert_eq!(report["error"], "CERTIFICATE_VERIFY_FAILED", "{report}");
        router.await_log("failed: TLS: received fatal alert");
    }
    authority.issue_to(&folder, "server", Wanted { name: "router", is_expired: true, ..Wanted::default() });
    let router = router(&folder, "", "");
    assert_eq!(client(&folder, port(&router), &[])["error"], "CERTIFICATE_VERIFY_FAILED");
}

/// RFC 8446 §6.1: each side closes its own direction.
#[test]
fn half_closed_connections_end() {
    let (folder, _) = usual();
    let router = router(&folder, "", "");
    for version in ["1.2", "1.3"] {
        let report = client(&folder, port(&router), &["--end", "notify", "--only", version]);
        assert!(report["error"].is_null(), "{report}");
        assert_eq!(report["left"], "", "{report}");
        let report = client(&folder, port(&router), &["--end", "fin", "--only", version]);
        assert!(report["error"].is_null() && report["ended"] == true, "{report}");
    }
}

#[test]
fn renegotiation_is_refused() {
    let (folder, _) = usual();
    let router = router(&folder, "", "");
    let mut child = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-connect", &router.address().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl is there");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"R\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends when it is refused");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("no renegotiation"), "{errors}");
    drop(input);
}

#[test]
fn what_is_not_tls_is_sent_away() {
    let (folder, _) = usual();
    let router = router(&folder, "", "");
    let mut socket = std::net::TcpStream::connect(router.address()).expect("it listens");
    // A record of a handshake in which nothing makes sense.
    socket.write_all(&[22, 3, 1, 0, 4, 99, 0, 0, 0]).expect("it is sent");
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut socket, &mut answer);
    // An alert, and that is all (RFC 8446 §6).
    assert_eq!(answer.first(), Some(&21), "{answer:?}");
    assert_eq!(answer.len(), 7);
}

/// The deadline for the open covers the handshake.
#[test]
fn a_client_that_does_not_go_on_is_sent_away() {
    let (folder, _) = usual();
    let router = router(&folder, "    initialHandshakeTimeoutSeconds: 1", "");
    // Nothing; the beginning of AMQP's header for TLS; that of a record; all but the end of a handshake.
    for said in [&b""[..], b"AMQP", &[22, 3, 1, 1], b"AMQP\x02\x01\x00\x00"] {
        let mut socket = std::net::TcpStream::connect(router.address()).expect("it listens");
        socket.set_read_timeout(Some(crate::support::PATIENCE)).expect("a time-out");
        socket.write_all(said).expect("it is sent");
        let mut answer = Vec::new();
        std::io::Read::read_to_end(&mut socket, &mut answer).expect("it is closed");
        assert!(answer.is_empty() || answer == b"AMQP\x02\x01\x00\x00", "{said:?}: {answer:?}");
    }
}

/// A key that is encrypted by PKCS #5, as openssl writes it.
#[test]
fn a_key_with_a_password() {
    let (folder, authority) = usual();
    let issued = authority.issue(Wanted { name: "router", ..Wanted::default() });
    folder.replace("server.pem", &issued.certificate);
    folder.replace("clear.key", &issued.key.serialize_pem());
    folder.replace("password", "secret\n");
    let status = Command::new("openssl")
        .args(["pkcs8", "-topk8", "-v2", "aes-256-cbc", "-passout", "pass:secret", "-in"])
        .arg(folder.path("clear.key"))
        .arg("-out")
        .arg(folder.path("server.key"))
        .status();
    assert!(status.expect("openssl is there").success());
    let file = format!("    password: file:{}", folder.path("password").display());
    for password in
        ["    password: pass:secret", "    password: literal:secret", "    password: secret", &file]
    {
        let router = router(&folder, "", password);
        assert_eq!(client(&folder, port(&router), &[])["answer"], AMQP, "{password}");
    }
}

/// Each with the file and the line of it, and what is wrong.
#[test]
fn a_router_does_not_start_with_a_profile_that_cannot_be_used() {
    let (folder, _) = usual();
    folder.replace("empty.pem", "");
    for (attributes, expected) in [
        ("    protocols: TLSv1", "'protocols' names TLSv1, which"),
        ("    ciphers: RC4-MD5", "'ciphers' names what isn't served: RC4-MD5."),
        ("    uidNameMappingFile: /nowhere/names", "can't read 'uidNameMappingFile' /nowhere/names"),
    ] {
        refused(&folder, &profile(&folder, attributes), expected);
    }
    let name = "sslProfile {\n    name: tls\n";
    let path = |name: &str| folder.path(name).display().to_string();
    refused(&folder, &format!("{name}}}\n"), "has no 'certFile', which a listener needs");
    let missing = format!("{name}    certFile: {}\n}}\n", path("missing.pem"));
    refused(&folder, &missing, "missing.pem: can't be read: No such file");
    let empty = format!("{name}    certFile: {}\n}}\n", path("empty.pem"));
    refused(&folder, &empty, "empty.pem: has no certificate");
    let no_key = format!("{name}    certFile: {}\n}}\n", path("server.pem"));
    refused(&folder, &no_key, "has no private key");
    let unfit = format!(
        "{name}    certFile: {}\n    privateKeyFile: {}\n}}\n",
        path("server.pem"),
        path("client.key")
    );
    refused(&folder, &unfit, "can't be used with the certificate");
}

#[track_caller]
fn refused(folder: &Folder, sections: &str, expected: &str) {
    let config = folder.path("refused.conf");
    let listener = "listener {\n    port: 0\n    sslProfile: tls\n}\n";
    std::fs::write(&config, format!("{sections}{listener}")).expect("it can be written");
    let output =
        Command::new(env!("CARGO_BIN_EXE_ringmain")).arg("-c").arg(&config).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("refused.conf:") && errors.contains(expected), "{errors}");
}
