//! The router as a child process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::peer::{OpenOptions, PATIENCE, Peer};

/// What a test's configuration has beside the defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup<'a> {
    /// Attributes of the router section, one a line.
    pub router: &'a str,
    /// Attributes of the listener, one a line.
    pub listener: &'a str,
    /// Further sections.
    pub sections: &'a str,
}

/// A running router. It is killed, by its process id, when this is dropped.
pub struct Router {
    child: Child,
    address: SocketAddr,
    log: Arc<Log>,
    folder: PathBuf,
    is_terminated: bool,
}

/// The lines that the router has logged so far.
#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    grown: Condvar,
}

impl Router {
    /// A router with the default configuration, on a port of its own.
    pub fn start() -> Self {
        Self::with(Setup::default())
    }

    /// A router with more in its configuration.
    pub fn with(setup: Setup<'_>) -> Self {
        Self::with_arguments(setup, &[])
    }

    /// The same, with more on its command line.
    pub fn with_arguments(setup: Setup<'_>, arguments: &[&str]) -> Self {
        let folder = temporary_folder();
        let file = folder.join("ringmain.conf");
        let Setup { router, listener, sections } = setup;
        // On a busy machine a peer may well be silent for long, which is the point of one case only.
        let patience =
            if listener.contains("idleTimeoutSeconds") { "" } else { "    idleTimeoutSeconds: 0\n" };
        let shards = if router.contains("workerThreads") { String::new() } else { shards() };
        let text = format!(
            "router {{\n    mode: standalone\n    id: R\n{shards}{router}\n}}\n\
             listener {{\n    host: 127.0.0.1\n    port: 0\n{patience}{listener}\n}}\n{sections}\n"
        );
        fs::write(&file, text).expect("the configuration can be written");
        Self::run(&file, folder, arguments)
    }

    /// A router with a configuration of its own, whose first listener is for clients.
    pub fn from_file(file: &Path) -> Self {
        Self::run(file, temporary_folder(), &[])
    }

    fn run(file: &Path, folder: PathBuf, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ringmain"))
            .arg("-c")
            .arg(file)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the router can be started");
        let log = Arc::new(Log::default());
        let stderr = child.stderr.take().expect("it is piped");
        let reader = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                reader.lines.lock().expect("nobody panics with it").push(line);
                reader.grown.notify_all();
            }
        });
        let placeholder = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut router = Self { child, address: placeholder, log, folder, is_terminated: false };
        router.await_log("Operational");
        let listening = router.await_log("Listening on ");
        let address = listening.rsplit(' ').next().expect("a line has words");
        router.address = address.parse().expect("the router logs the address that it listens on");
        router
    }

    /// How many shards it has.
    pub fn shards(&self) -> u64 {
        let line = self.await_log("Operational");
        let count = line.split("Operational, ").nth(1).and_then(|rest| rest.split(' ').next());
        count.and_then(|count| count.parse().ok()).expect("the router logs how many threads it has")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection of which nothing has been sent yet.
    pub fn connect(&self) -> Peer {
        Peer::connect(self.address)
    }

    /// A connection that is open, with a session on channel 0.
    pub fn peer(&self) -> Peer {
        self.peer_with(OpenOptions::default())
    }

    /// The same, its open saying something particular.
    pub fn peer_with(&self, options: OpenOptions) -> Peer {
        let mut peer = self.connect();
        peer.open_with(options);
        peer.begin();
        peer
    }

    /// Waits for a line of the log with `text` in it, and returns the first.
    pub fn await_log(&self, text: &str) -> String {
        self.await_log_where(text, |line| line.contains(text))
    }

    /// Waits for a line of the log, and returns the first. `what` says which one, for the message when it
    /// doesn't come.
    pub fn await_log_where(&self, what: &str, mut is_it: impl FnMut(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut lines = self.log.lines.lock().expect("nobody panics with it");
        loop {
            if let Some(line) = lines.iter().find(|line| is_it(line)) {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the router didn't log {what:?}; its log:\n{}", lines.join("\n"));
            lines = self.log.grown.wait_timeout(lines, left).expect("nobody panics with it").0;
        }
    }

    /// The lines logged so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lines.lock().expect("nobody panics with it").clone()
    }

    /// The number of the router's process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// The memory that the router's process has in use, in bytes (its resident set).
    ///
    /// Under a sanitizer that would be the sanitizer's, so it is always 0 with `RINGMAIN_SANITIZED=1`.
    pub fn memory(&self) -> u64 {
        if std::env::var_os("RINGMAIN_SANITIZED").is_some_and(|value| value == "1") {
            println!("SKIPPED: memory isn't measured (RINGMAIN_SANITIZED=1)");
            return 0;
        }
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).expect("the router's process runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        let kilobytes = line.trim().strip_suffix("kB").expect("the kernel counts in kB").trim();
        kilobytes.parse::<u64>().expect("a number") * 1024
    }

    /// The descriptors that the router's process has open.
    pub fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(path).expect("the router's process runs").count()
    }

    /// Waits until `is_so` holds; `what` says what that is.
    pub fn await_state(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Tells the router to stop (SIGTERM), and waits until it has.
    pub fn terminate(mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("the router runs");
        self.is_terminated = true;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                return status;
            }
            assert!(Instant::now() < deadline, "the router doesn't stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the process has ended of itself.
    fn has_ended(&mut self) -> bool {
        !self.is_terminated && !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let ended = self.has_ended();
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
        if std::thread::panicking() {
            let lines = self.log.lines.lock().map(|lines| lines.clone()).unwrap_or_default();
            let from = lines.len().saturating_sub(40);
            eprintln!("the end of the router's log:\n{}", lines[from..].join("\n"));
        } else {
            let panicked = self.log().iter().any(|line| line.contains("panicked"));
            assert!(!ended && !panicked, "the router ended or panicked; its log:\n{}", self.log().join("\n"));
        }
    }
}

/// A folder that no other test has.
fn temporary_folder() -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("ringmain-test-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).expect("the temporary folder can be written to");
    folder
}

/// The number of shards, if the environment asks for one: what holds on one holds on any number.
fn shards() -> String {
    std::env::var("RINGMAIN_TEST_SHARDS")
        .map_or_else(|_| String::new(), |shards| format!("    workerThreads: {shards}\n"))
}
