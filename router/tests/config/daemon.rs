//! In the background, as `qdrouterd` runs.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::program::{Folder, free_port, text};

#[test]
fn it_returns_when_clients_can_connect_and_leaves_its_process_id() {
    let folder = Folder::new();
    let program = folder.link("qdrouterd");
    let port = free_port();
    folder.write(
        "r.conf",
        &format!("router {{\nworkerThreads: 1\n}}\nlistener {{\nhost: 127.0.0.1\nport: {port}\n}}\n"),
    );
    // Relative paths: the process in the background has another working directory.
    let output = Command::new(&program)
        .args(["-d", "-c", "r.conf", "-P", "r.pid", "-I", "/usr/lib/qpid-dispatch"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("clients can connect");
    let written = fs::read_to_string(folder.path().join("r.pid")).expect("the process id is there");
    let pid = written.strip_suffix('\n').and_then(|line| line.parse().ok()).and_then(Pid::from_raw);
    let pid = pid.expect("one decimal line");
    let directory = fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero())).expect("it runs");
    assert_eq!(directory.to_str(), Some("/"));

    let mut reload = Command::new(env!("CARGO_BIN_EXE_ringmain"));
    let output = reload.args(["reload", "-P"]).arg(folder.path().join("r.pid")).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));

    kill_process(pid, Signal::TERM).expect("it runs");
    while test_kill_process(pid).is_ok() && !is_defunct(pid) {
        std::thread::yield_now();
    }
    assert!(!folder.path().join("r.pid").exists(), "the file goes with the process");
}

/// Whether the process has ended and nobody has looked yet: it isn't our child, and whoever inherits it may
/// not care.
fn is_defunct(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tZ"))
}

#[test]
fn a_router_that_cannot_start_in_the_background_says_why() {
    let folder = Folder::new();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let port = taken.local_addr().expect("it is bound").port();
    let occupied = format!("listener {{\nhost: 127.0.0.1\nport: {port}\n}}\n");
    for (content, reason) in [("listner {\n}\n", "unknown section 'listner'"), (&occupied, "can't listen on")]
    {
        let file = folder.write("r.conf", content);
        let output = Command::new(env!("CARGO_BIN_EXE_ringmain"))
            .arg("-dc")
            .arg(&file)
            .stdin(Stdio::null())
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
}

#[test]
fn an_unknown_user_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_ringmain"))
        .args(["-U", "no-such-user-here"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let line = BufReader::new(&output.stderr[..]).lines().next().and_then(Result::ok);
    assert_eq!(line.as_deref(), Some("ringmain: there is no user 'no-such-user-here'"));
}

/// SIGHUP would end most programs.
#[test]
fn only_a_router_is_told_to_reload() {
    let mut other = Command::new("sleep").arg("60").spawn().expect("it starts");
    let reload =
        Command::new(env!("CARGO_BIN_EXE_ringmain")).args(["reload", &other.id().to_string()]).output();
    let output = reload.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let runs = other.try_wait().expect("a child").is_none();
    other.kill().expect("it runs");
    other.wait().expect("a child");
    assert_eq!(output.status.code(), Some(1));
    assert!(runs && said.contains("is 'sleep', which is no router"), "{said}");
}
