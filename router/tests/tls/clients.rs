//! AMQP clients that others wrote.
//!
//! `scripts/test` installs them; `RINGMAIN_SKIP_INTEROP=1` skips these tests.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::certificates::{profile, usual};
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
