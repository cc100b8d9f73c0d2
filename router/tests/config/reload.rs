//! SIGHUP: the router follows its file, and what didn't change isn't touched.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::program::{Folder, Router, free_port, run, text};

/// How many messages go through a router that reads its file again and again.
const MESSAGES: u32 = 20_000;

fn listener(port: u16) -> String {
    format!("listener {{\n    host: 127.0.0.1\n    port: {port}\n}}\n")
}

/// A started router, its file, and the folder that both are in.
struct Case {
    router: Router,
    folder: Folder,
}

impl Case {
    fn start(content: &str) -> Self {
        let folder = Folder::new();
        let file = folder.write("r.conf", content);
        Self { router: Router::start(&file, &[]), folder }
    }

    /// Rewrites the file, tells the router, and returns what it says at the end.
    fn reload(&mut self, content: &str) -> String {
        self.folder.write("r.conf", content);
        self.router.signal(Signal::HUP);
        loop {
            let line = self.router.await_line("r.conf");
            if ["read again", "nothing has changed"].iter().any(|end| line.contains(end)) {
                return line;
            }
        }
    }
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
}

fn is_refused(port: u16) -> bool {
    connect(port).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[test]
fn listeners_come_and_go_and_connections_stay() {
    let (first, second) = (free_port(), free_port());
    let mut case = Case::start(&listener(first));
    let said = case.reload(&(listener(first) + &listener(second)));
    assert!(said.contains("read again, 1 change made"), "{said}");
    connect(second).expect("the second port is open");

    let url = format!("amqp://127.0.0.1:{first}/news");
    let mut receiver = client(&["receive", &url, "-n", "2"]);
    // It is accepted when the receiver is there.
    let sent = run(&["send", &url, "--body", "before"]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let other = format!("amqp://127.0.0.1:{second}/news");
    let said = case.reload(&listener(second));
    assert!(said.contains("read again, 1 change made"), "{said}");
    // The shard that accepts lets go of the port within a turn.
    while !is_refused(first) {
        std::thread::yield_now();
    }
    let sent = run(&["send", &other, "--body", "still here"]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(receiver.wait().expect("it is our child").success(), "the connection of the old listener stays");
    assert_eq!(case.router.stop().code(), Some(0));
}

/// A client in the background.
fn client(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ringmain"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be started")
}

#[test]
fn a_changed_listener_keeps_its_port() {
    let port = free_port();
    let mut case = Case::start(&listener(port));
    for capacity in [10, 20, 30] {
        let changed = listener(port).replace('}', &format!("    linkCapacity: {capacity}\n}}"));
        let said = case.reload(&changed);
        assert!(said.contains("read again, 2 changes made"), "{said}: {:#?}", case.router.log);
        connect(port).expect("the port is open again");
    }
    let said = case.reload(&(listener(port).replace('}', "    linkCapacity: 30\n}") + "# nothing new\n"));
    assert!(said.contains("read again, nothing to change"), "{said}");
}

#[test]
fn a_bad_file_changes_nothing_and_says_why() {
    let (first, second) = (free_port(), free_port());
    let mut case = Case::start(&listener(first));
    case.folder.write("r.conf", &(listener(second) + "listner {\n}\n"));
    case.router.signal(Signal::HUP);
    case.router.await_line("The configuration can't be used (1 fault); nothing has changed");
    let line = case.router.await_line("r.conf:5: ");
    assert!(line.contains("unknown section 'listner'; did you mean 'listener'?"), "{line}");
    connect(first).expect("the old port is open");
    assert!(is_refused(second));
    // The next good file is followed.
    let said = case.reload(&(listener(first) + &listener(second)));
    assert!(said.contains("1 change made"), "{said}");
    connect(second).expect("the new port is open");
}

#[test]
fn addresses_and_the_log_follow() {
    let port = free_port();
    let mut case = Case::start(&listener(port));
    let closed = "address {\n    prefix: closed\n    distribution: unavailable\n}\n";
    let refused = |address: &str| {
        let url = format!("amqp://127.0.0.1:{port}/{address}");
        let mut receiver = client(&["receive", &url, "-n", "1"]);
        let sent = run(&["send", &url]);
        let _ = receiver.kill();
        let _ = receiver.wait();
        !sent.status.success()
    };
    assert!(!refused("closed/a"));
    let said = case.reload(&(listener(port) + closed));
    assert!(said.contains("1 change made"), "{said}");
    assert!(refused("closed/b"));
    assert!(!refused("open/b"));
    let said = case.reload(&listener(port));
    assert!(said.contains("1 change made"), "{said}");
    assert!(!refused("closed/c"));

    let file = case.folder.path().join("router.log");
    let log =
        format!("log {{\n    module: DEFAULT\n    enable: info+\n    outputFile: {}\n}}\n", file.display());
    case.folder.write("r.conf", &(listener(port) + &log));
    case.router.signal(Signal::HUP);
    while !std::fs::read_to_string(&file).is_ok_and(|lines| lines.contains("read again, 1 change made")) {
        std::thread::yield_now();
    }
}

#[test]
fn what_takes_a_restart_is_named() {
    let port = free_port();
    let mut case = Case::start(&listener(port));
    let other = format!("router {{\n    id: OTHER\n}}\n{}", listener(port));
    let warnings = |case: &Case| {
        let is_it = |line: &&String| line.contains("router: 'id' has changed, which takes a restart");
        case.router.log.iter().filter(is_it).count()
    };
    // It is said each time, as long as the file says something else than what runs.
    for times in 1..=2 {
        let said = case.reload(&other);
        assert!(said.contains("read again, nothing else to change"), "{said}");
        assert_eq!(warnings(&case), times, "{:#?}", case.router.log);
    }
    let said = case.reload(&listener(port));
    assert!(said.contains("read again, nothing to change"), "{said}");
    assert_eq!(warnings(&case), 2, "{:#?}", case.router.log);
}

/// Messages flow while listeners and addresses come and go: nothing is lost.
#[test]
fn reload_under_load_loses_nothing() {
    let (port, other) = (free_port(), free_port());
    let mut case = Case::start(&listener(port));
    let url = format!("amqp://127.0.0.1:{port}/load");
    let count = MESSAGES.to_string();
    let mut receiver = client(&["receive", &url, "-n", &count]);
    let mut sender = client(&["send", &url, "-n", &count]);
    let mut reloads = 0;
    while sender.try_wait().expect("it is our child").is_none() {
        let more = format!("address {{\n    prefix: n{reloads}\n    distribution: multicast\n}}\n");
        let said = case.reload(
            &(listener(port) + &more + &if reloads % 2 == 0 { listener(other) } else { String::new() }),
        );
        assert!(said.contains("read again") && !said.contains("failed"), "{said}");
        reloads += 1;
    }
    assert!(reloads > 1, "{reloads} reloads");
    assert!(sender.wait().expect("it is our child").success());
    assert!(receiver.wait().expect("it is our child").success());
    assert_eq!(case.router.stop().code(), Some(0));
}

#[test]
fn the_policy_follows_its_sections() {
    let port = free_port();
    let policy = |group: &str| {
        format!(
            "{}policy {{\n    enableVhostPolicy: yes\n}}\nvhost {{\n    hostname: $default\n    groups: {{\n        all: {{\n            users: *\n            \
             remoteHosts: *\n            {group}\n        }}\n    }}\n}}\n",
            listener(port)
        )
    };
    let mut case = Case::start(&policy("sources: first"));
    let attach = |address: &str| {
        let url = format!("amqp://127.0.0.1:{port}/{address}");
        let ran = run(&["receive", &url, "-n", "1", "--timeout", "0.3"]);
        !text(&ran.stderr).contains("link disallowed by local policy")
    };
    assert!(attach("first") && !attach("second"));
    let said = case.reload(&policy("sources: second"));
    assert!(said.contains("read again, 1 change made"), "{said}");
    assert!(!attach("first") && attach("second"));
    case.folder
        .write("r.conf", &policy("sources: second\n            targets: a\n            targetPattern: b"));
    case.router.signal(Signal::HUP);
    case.router.await_line("nothing has changed");
    assert!(attach("second"));
    let said = case.reload(&listener(port));
    assert!(said.contains("read again, 1 change made"), "{said}");
    assert!(attach("first"));
    assert_eq!(case.router.stop().code(), Some(0));
}
