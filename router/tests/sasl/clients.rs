//! Clients that others wrote: Proton with Cyrus SASL, which has every mechanism, and rhea.
//!
//! `scripts/test` installs them; `RINGMAIN_SKIP_INTEROP=1` skips these tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Router;
use crate::users::{FRED, UsersFile};

fn is_skipped() -> bool {
    let skipped = std::env::var_os("RINGMAIN_SKIP_INTEROP").is_some_and(|value| value == "1");
    if skipped {
        eprintln!("SKIPPED: RINGMAIN_SKIP_INTEROP=1 is set, so no client was run");
    }
    skipped
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peers")
}

/// What a client reports first. (What follows a refusal is how it goes away.)
#[track_caller]
fn report(command: &mut Command) -> Value {
    let output = command.output().expect("the client can be started: scripts/test installs it");
    let text = String::from_utf8(output.stdout).expect("text");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().next().unwrap_or_else(|| panic!("the client reports nothing: {errors}"));
    let report: Value = serde_json::from_str(line).expect("JSON");
    assert_ne!(report["event"], "failed", "{}: run scripts/test, which builds it again", report["why"]);
    report
}

#[track_caller]
fn proton(router: &Router, mechanisms: &str, user: Option<(&str, &str)>) -> Value {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/python");
    let mut command = Command::new(python);
    command.arg(peers().join("proton/login.py"));
    command.args(["--url", &format!("amqp://{}", router.address()), "--mechanisms", mechanisms]);
    if let Some((user, password)) = user {
        command.args(["--user", user, "--password", password]);
    }
    report(&mut command)
}

#[track_caller]
fn rhea(router: &Router, user: Option<(&str, &str)>) -> Value {
    let mut command = Command::new("node");
    command.arg(peers().join("rhea/login.js"));
    let address = router.address();
    command.args(["--host", &address.ip().to_string(), "--port", &address.port().to_string()]);
    if let Some((user, password)) = user {
        command.args(["--user", user, "--password", password]);
    }
    report(&mut command)
}

#[test]
fn proton_by_each_mechanism() {
    if is_skipped() {
        return;
    }
    let users = UsersFile::new(&[FRED, ("a,b=c \u{e9}", "p,w= \u{e9}")]);
    let router = users.router("saslMechanisms: PLAIN SCRAM-SHA-1 SCRAM-SHA-256 SCRAM-SHA-512 ANONYMOUS");
    for mechanism in ["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        for (user, password) in [FRED, ("a,b=c \u{e9}", "p,w= \u{e9}")] {
            let expected = json!({"event": "opened", "mechanism": mechanism, "user": user});
            assert_eq!(proton(&router, mechanism, Some((user, password))), expected);
            router.await_log(&format!("auth={mechanism} user={user} "));
        }
        let wrong = proton(&router, mechanism, Some(("fred@domain", "wrong")));
        assert_eq!(wrong["condition"], "amqp:unauthorized-access", "{wrong}");
    }
    let anonymous = proton(&router, "ANONYMOUS", None);
    assert_eq!(anonymous, json!({"event": "opened", "mechanism": "ANONYMOUS", "user": null}));
    // Left to choose, it takes the strongest.
    let all = "PLAIN SCRAM-SHA-1 SCRAM-SHA-256 SCRAM-SHA-512 ANONYMOUS";
    assert_eq!(proton(&router, all, Some(FRED))["mechanism"], "SCRAM-SHA-512");
}

#[test]
fn proton_is_not_who_it_says() {
    if is_skipped() {
        return;
    }
    let users = UsersFile::new(&[FRED]);
    let router = users.router("authenticatePeer: yes");
    let unknown = proton(&router, "SCRAM-SHA-256", Some(("nobody", "secret")));
    assert_eq!(unknown["condition"], "amqp:unauthorized-access", "{unknown}");
    let anonymous = proton(&router, "ANONYMOUS", None);
    assert_eq!(anonymous["condition"], "amqp:unauthorized-access", "{anonymous}");
    router.await_log("as \"nobody\" by SCRAM-SHA-256 failed");
}

#[test]
fn rhea_with_and_without_a_password() {
    if is_skipped() {
        return;
    }
    let users = UsersFile::new(&[FRED]);
    let router = users.router("saslMechanisms: PLAIN ANONYMOUS");
    assert_eq!(rhea(&router, Some(FRED))["event"], "opened");
    router.await_log("auth=PLAIN user=fred@domain ");
    // A user without a password is one that introduces itself and no more (RFC 4505).
    assert_eq!(rhea(&router, Some(("fred", "")))["event"], "opened");
    router.await_log("auth=ANONYMOUS user=anonymous ");
    // Without either it leaves the layer out, which this listener allows.
    assert_eq!(rhea(&router, None)["event"], "opened");
    router.await_log("auth=no user=anonymous ");
    assert_eq!(rhea(&router, Some(("fred@domain", "wrong")))["event"], "refused");
    router.await_log("Authentication failed [mech=PLAIN]");
}
