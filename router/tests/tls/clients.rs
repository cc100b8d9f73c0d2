//! AMQP clients that others wrote.
//!
//! `scripts/test` installs them; `RINGMAIN_SKIP_INTEROP=1` skips these tests.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::certificates::{Authority, profile, usual};
use crate::support::{Router, Setup};

fn is_skipped() -> bool {
    let skipped = std::env::var_os("RINGMAIN_SKIP_INTEROP").is_some_and(|value| value == "1");
    if skipped {
        eprintln!("SKIPPED: RINGMAIN_SKIP_INTEROP=1 is set, so no client was run");
    }
    skipped
}

#[track_caller]
fn report(command: &mut Command) -> Value {
    let output = command.output().expect("the client can be started: scripts/test installs it");
    let text = String::from_utf8(output.stdout).expect("text");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().next().unwrap_or_else(|| panic!("the client reports nothing: {errors}"));
    serde_json::from_str(line).expect("JSON")
}

#[test]
fn proton_and_rhea_by_their_certificates() {
    if is_skipped() {
        return;
    }
    let (folder, _) = usual();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let peers = root.join("tests/interop/peers");
    for (format, user) in [("    uidFormat: on", "Acme;fred"), ("", "CN=fred,O=Acme")] {
        let listener = "    sslProfile: tls\n    requireSsl: yes\n    saslMechanisms: EXTERNAL\n    authenticatePeer: yes";
        let sections = profile(&folder, format);
        let router = Router::with(Setup { listener, sections: &sections, ..Setup::default() });
        let port = router.address().port().to_string();
        let files = |command: &mut Command| {
            for (option, file) in [("--ca", "ca.pem"), ("--cert", "client.pem"), ("--key", "client.key")] {
                command.arg(option).arg(folder.path(file));
            }
        };
        let mut proton = Command::new(root.join("../.venv/bin/python"));
        proton.arg(peers.join("proton/login.py"));
        proton.args(["--url", &format!("amqps://localhost:{port}"), "--mechanisms", "EXTERNAL"]);
        files(&mut proton);
        assert_eq!(report(&mut proton)["event"], "opened");
        let line = router.await_log(&format!("encrypted=TLSv1.3 auth=EXTERNAL user={user} "));
        let mut rhea = Command::new("node");
        rhea.arg(peers.join("rhea/login.js")).args(["--host", "localhost", "--port", &port]);
        files(&mut rhea);
        assert_eq!(report(&mut rhea)["event"], "opened");
        router.await_log_where("another connection of the same user", |other| {
            other != line && other.contains(&format!("auth=EXTERNAL user={user} "))
        });
    }
}

fn ringmain(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ringmain")).args(arguments).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn our_own_clients_and_tools() {
    let (folder, _) = usual();
    Authority::new(&folder.path("other-ca.pem"));
    let listener =
        "    sslProfile: tls\n    requireSsl: yes\n    saslMechanisms: EXTERNAL\n    authenticatePeer: yes";
    let sections = profile(&folder, "    uidFormat: n");
    let router = Router::with(Setup { listener, sections: &sections, ..Setup::default() });
    let bus = format!("amqps://localhost:{}", router.address().port());
    let path = |name: &str| folder.path(name).to_str().expect("text").to_owned();
    let (ca, certificate, key, other) =
        (path("ca.pem"), path("client.pem"), path("client.key"), path("other-ca.pem"));
    let us = ["--ssl-trustfile", &ca, "--ssl-certificate", &certificate, "--ssl-key", &key];
    let (is_ok, out, err) = ringmain(&[&["stat", "-c", "-b", &bus][..], &us].concat());
    assert!(
        is_ok && out.contains("TLSv1.3(TLS_AES_256_GCM_SHA384)") && out.contains("fred(x.509)"),
        "{out}{err}"
    );

    let url = format!("{bus}/q");
    let receiver = [&["receive", &url, "-n", "3", "--print", "none"][..], &us].concat();
    let mut receiver =
        Command::new(env!("CARGO_BIN_EXE_ringmain")).args(receiver).spawn().expect("it can be started");
    // Each message takes several records.
    let (is_ok, _, err) = ringmain(&[&["send", &url, "-n", "3", "--size", "100k"][..], &us].concat());
    assert!(is_ok, "{err}");
    assert!(receiver.wait().expect("it ends").success());

    let (is_ok, _, err) = ringmain(&["stat", "-c", "-b", &bus, "--ssl-trustfile", &other]);
    assert!(
        !is_ok && err.contains("TLS: invalid peer certificate: no authority that is trusted here"),
        "{err}"
    );
    let (is_ok, _, err) = ringmain(&["stat", "-c", "-b", &bus, "--ssl-trustfile", &ca]);
    assert!(!is_ok && err.contains("TLS: received fatal alert"), "{err}");
    let (is_ok, _, err) = ringmain(&["stat", "-c", "-b", &bus, "--ssl-trustfile", "/nowhere/ca.pem"]);
    assert!(!is_ok && err.contains("--ssl-trustfile /nowhere/ca.pem: can't be read"), "{err}");
}

#[test]
fn http_over_tls() {
    let (folder, _) = usual();
    let listener = "listener {\n    host: 127.0.0.1\n    port: 0\n    sslProfile: tls\n    http: yes\n}\n";
    let sections = format!("{}{listener}", profile(&folder, ""));
    let router = Router::with(Setup { sections: &sections, ..Setup::default() });
    let line = router.await_log("Listening for HTTP on ");
    let port = line.rsplit(':').next().expect("a port");
    let script = "import ssl, sys, urllib.request\n\
                  context = ssl.create_default_context(cafile=sys.argv[1])\n\
                  print(urllib.request.urlopen(sys.argv[2], context=context).read().decode())";
    let get = |path: &str| {
        let output = Command::new("python3")
            .args(["-c", script])
            .arg(folder.path("ca.pem"))
            .arg(format!("https://localhost:{port}/{path}"))
            .output()
            .expect("python3 is there");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    assert!(get("healthz").starts_with("OK"), "{}", get("healthz"));
    assert!(get("metrics").contains("ringmain_tls_handshake_failures"));
}
