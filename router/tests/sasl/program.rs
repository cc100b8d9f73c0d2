//! `ringmain user`, and clients and tools that log in.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::support::Router;
use crate::users::{FRED, UsersFile};

/// Runs the program with this on its standard input: status, standard output, standard error.
fn run(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringmain"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    // Who doesn't read its input has ended already.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

fn ok(arguments: &[&str], input: &str) -> String {
    let (status, out, err) = run(arguments, input);
    assert_eq!((status, err.as_str()), (0, ""), "{arguments:?}: {out}");
    out
}

#[test]
fn users_are_added_listed_and_removed() {
    let users = UsersFile::new(&[]);
    let file = users.path().to_str().expect("text");
    fs::remove_file(file).expect("it is there");
    let (status, out, err) = run(&["user", "add", file, "fred@domain"], "secret\nnot this\n");
    assert!(status == 0 && out.contains("fred@domain added"), "{out}{err}");
    // Who makes it as root is told whose it is.
    assert_eq!(err.contains("chown USER"), rustix::process::geteuid().is_root(), "{err}");
    ok(&["user", "add", file, "eve", "--iterations", "5000"], "other\n");
    let text = fs::read_to_string(file).expect("it is there");
    assert!(!text.contains("secret") && !text.contains("other"), "{text}");
    assert!(text.contains("eve SCRAM-SHA-256$5000:"), "{text}");
    assert_eq!(fs::metadata(file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let all = "SCRAM-SHA-1 SCRAM-SHA-256 SCRAM-SHA-512";
    assert_eq!(ok(&["user", "list", file], ""), format!("eve  {all}\nfred@domain  {all}\n"));
    assert!(ok(&["user", "add", file, "eve"], "another\n").contains("another password"));
    ok(&["user", "remove", file, "eve"], "");
    assert_eq!(ok(&["user", "list", file], ""), format!("fred@domain  {all}\n"));

    let (status, _, err) = run(&["user", "remove", file, "eve"], "");
    assert!(status == 1 && err.contains("has no user 'eve'"), "{err}");
    let (status, _, err) = run(&["user", "add", file, "eve"], "\n");
    assert!(status == 1 && err.contains("the password can't be used: it is empty"), "{err}");
    let (status, _, err) = run(&["user", "add", file, "eve", "--iterations", "1"], "x\n");
    assert!(status == 1 && err.contains("4096"), "{err}");
    let (status, _, err) = run(&["user", "list", "/nowhere/users"], "");
    assert!(status == 1 && err.contains("can't read /nowhere/users"), "{err}");
    assert_eq!(ok(&["user", "list", file], ""), format!("fred@domain  {all}\n"));
}

/// A file that the router can't use keeps it from starting: it would let nobody in.
#[test]
fn a_router_whose_users_cannot_be_read_does_not_start() {
    let users = UsersFile::new(&[]);
    fs::write(users.path(), "fred secret\n").expect("it can be written");
    let config = users.path().with_extension("conf");
    let text =
        format!("router {{\n    usersFile: {}\n}}\nlistener {{\n    port: 0\n}}\n", users.path().display());
    fs::write(&config, text).expect("it can be written");
    let (status, _, err) = run(&["-c", config.to_str().expect("text")], "");
    fs::remove_file(&config).expect("it is there");
    assert_eq!(status, 1, "{err}");
    assert!(err.contains(".conf:1: router: 'usersFile': ") && err.contains(":1: the key isn't"), "{err}");
    assert!(!err.contains("secret"), "{err}");
}

fn bus(router: &Router) -> String {
    router.address().to_string()
}

#[test]
fn tools_and_clients_log_in() {
    let users = UsersFile::new(&[FRED]);
    let router = users.router("authenticatePeer: yes\n    saslMechanisms: PLAIN SCRAM-SHA-256");
    let bus = bus(&router);
    let password = users.path().with_extension("password");
    fs::write(&password, "secret\nmore\n").expect("it can be written");
    let file = password.to_str().expect("text");
    let login = ["--sasl-username", "fred@domain", "--sasl-password-file", file];
    for (mechanism, shown) in
        [("PLAIN", "fred@domain(PLAIN)"), ("SCRAM-SHA-256", "fred@domain(SCRAM-SHA-256)")]
    {
        let mut arguments = vec!["stat", "-c", "-b", &bus, "--sasl-mechanisms", mechanism];
        arguments.extend(login);
        let out = ok(&arguments, "");
        assert!(out.contains(shown), "{out}");
    }
    let out = ok(
        &["manage", "query", "--type=connection", "-b", &format!("amqp://fred%40domain:secret@{bus}")],
        "",
    );
    assert!(
        out.contains("\"user\": \"fred@domain\"") && out.contains("\"sasl\": \"SCRAM-SHA-256\""),
        "{out}"
    );
    let wrong = ["stat", "-b", &bus, "--sasl-username", "fred@domain", "--sasl-password", "wrong"];
    let (status, _, err) = run(&wrong, "");
    assert!(status == 1 && err.contains("the peer didn't accept the credentials"), "{err}");
    let out =
        ok(&["manage", "query", "--type=router", "-b", &format!("amqp://fred%40domain:secret@{bus}")], "");
    assert!(out.contains("\"authenticationFailures\": 1"), "{out}");
    let mut send = vec!["send"];
    let url = format!("amqp://fred%40domain@{bus}/a");
    send.extend([url.as_str(), "--presettled", "--timeout", "1"]);
    // Nobody types a password here.
    let (status, _, err) = run(&send, "");
    assert!(status == 1 && err.contains("there is no password for fred@domain"), "{err}");
    fs::remove_file(&password).expect("it is there");

    // PLAIN isn't used on an open line unless that is asked for.
    let router = users.router("saslMechanisms: PLAIN");
    let (status, _, err) =
        run(&["stat", "-b", &format!("amqp://fred%40domain:secret@{}", router.address())], "");
    assert!(
        status == 1 && err.contains("PLAIN isn't used without TLS unless the mechanisms name it"),
        "{err}"
    );
    let (status, _, err) = run(&["stat", "-b", &bus, "--sasl-mechanisms", "DIGEST-MD5"], "");
    assert!(status == 1 && err.contains("SCRAM-SHA-512"), "{err}");
}
