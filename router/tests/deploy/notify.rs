//! The service manager's socket, by sd_notify(3): each datagram has lines `NAME=value`.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

use crate::program::{Folder, Router, free_port};

/// A test that hears nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The receiving end, as systemd has it.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // The path of a socket has at most 107 bytes: not in the folder for temporary files of the build.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ringmain-notify-{}-{number}", std::process::id()));
        let socket = UnixDatagram::bind(&path).expect("a socket can be bound");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        Self { socket, path }
    }

    fn start(&self, file: &std::path::Path, more: &[(&str, &str)]) -> Router {
        let mut variables = vec![("NOTIFY_SOCKET", self.path.to_str().expect("text"))];
        variables.extend(more);
        Router::start(file, &variables)
    }

    /// The next datagram.
    fn next(&self) -> Vec<(String, String)> {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).expect("the router tells something");
        let text = str::from_utf8(&buffer[..length]).expect("text");
        let split = |line: &str| {
            let (name, value) = line.split_once('=').expect("NAME=value");
            (name.to_owned(), value.to_owned())
        };
        text.lines().map(split).collect()
    }

    /// The next datagram must say just this, whatever its status.
    #[track_caller]
    fn expect(&self, name: &str) -> String {
        let said = self.next();
        let (status, facts): (Vec<_>, Vec<_>) = said.into_iter().partition(|(name, _)| name == "STATUS");
        assert_eq!(facts, [(name.to_owned(), "1".to_owned())]);
        status.into_iter().map(|(_, status)| status).next().unwrap_or_default()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// `CLOCK_MONOTONIC` in microseconds.
fn monotonic() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

fn listener(port: u16) -> String {
    format!("listener {{\n    host: 127.0.0.1\n    port: {port}\n}}\n")
}

#[test]
fn it_tells_of_start_reload_and_stop() {
    let manager = Manager::new();
    let folder = Folder::new();
    let port = free_port();
    let file = folder.write("r.conf", &listener(port));
    let router = manager.start(&file, &[]);
    let status = manager.expect("READY");
    assert!(status.starts_with(&format!("Listening on 127.0.0.1:{port}; ")), "{status}");
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it is ready");

    let broken = listener(port) + "listner {\n}\n";
    for (content, outcome) in [
        (listener(port), "Configuration read again, changes made: 0"),
        (listener(port) + &listener(free_port()), "Configuration read again, changes made: 1"),
        (broken, "The changed configuration can't be used, the old one holds; the log says why"),
    ] {
        folder.write("r.conf", &content);
        let before = monotonic();
        router.signal(Signal::HUP);
        let reloading = manager.next();
        let [(first, one), (second, when)] = reloading.as_slice() else { panic!("{reloading:?}") };
        assert_eq!((first.as_str(), one.as_str()), ("RELOADING", "1"));
        assert_eq!(second, "MONOTONIC_USEC");
        let when: i64 = when.parse().expect("a number");
        assert!((before..=monotonic()).contains(&when), "{when}");
        assert_eq!(manager.expect("READY"), outcome);
    }

    assert_eq!(router.stop().code(), Some(0));
    manager.expect("STOPPING");
}

#[test]
fn a_reload_is_answered_too_while_the_file_is_gone() {
    let manager = Manager::new();
    let folder = Folder::new();
    let file = folder.write("r.conf", &listener(free_port()));
    let router = manager.start(&file, &[]);
    manager.expect("READY");
    // A file that is gone is as bad as one with faults.
    fs::remove_file(&file).expect("it is there");
    router.signal(Signal::HUP);
    assert_eq!(manager.next()[0].0, "RELOADING");
    assert!(manager.expect("READY").contains("can't be used"));
}

#[test]
fn signs_of_life_come_as_often_as_they_are_wanted() {
    let manager = Manager::new();
    let folder = Folder::new();
    let file = folder.write("r.conf", &listener(free_port()));
    let _router = manager.start(&file, &[("WATCHDOG_USEC", "2000000")]);
    let mut names = Vec::new();
    while names.iter().filter(|name| *name == "WATCHDOG").count() < 3 {
        names.extend(manager.next().into_iter().map(|(name, _)| name));
    }
    assert!(names.iter().any(|name| name == "READY"));
}

/// sd_watchdog_enabled(3): `WATCHDOG_PID` says whom they are wanted of.
#[test]
fn signs_of_life_are_not_sent_for_another_process() {
    let manager = Manager::new();
    let folder = Folder::new();
    let file = folder.write("r.conf", &listener(free_port()));
    let router = manager.start(&file, &[("WATCHDOG_USEC", "2000000"), ("WATCHDOG_PID", "1")]);
    manager.expect("READY");
    router.signal(Signal::HUP);
    assert_eq!(manager.next()[0].0, "RELOADING");
    manager.expect("READY");
    assert_eq!(router.stop().code(), Some(0));
    manager.expect("STOPPING");
}

#[test]
fn a_service_manager_that_does_not_listen_is_named_and_the_router_goes_on() {
    let folder = Folder::new();
    let port = free_port();
    let file = folder.write("r.conf", &listener(port));
    let nowhere = folder.path().join("nobody");
    let mut router = Router::start(&file, &[("NOTIFY_SOCKET", nowhere.to_str().expect("text"))]);
    router.await_line("(warning) Can't tell the service manager (NOTIFY_SOCKET): ");
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it is up");
}
