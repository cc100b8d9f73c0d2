//! The program under test.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

/// A folder of its own for each test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("config-{}-{number}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("the folder for temporary files is writable");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("the folder for temporary files is writable");
        path
    }

    /// A link to the program by another name.
    pub fn link(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ringmain"), &path).expect("a link can be made");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the program to its end.
pub fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringmain"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program can be started")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program writes text")
}

/// A port that was free just now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

/// A running router. It is killed, by its process id, when this is dropped.
pub struct Router {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    /// What it has logged until it was operational.
    pub log: Vec<String>,
}

impl Router {
    /// Starts it and waits until it is operational.
    pub fn start(file: &Path, variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ringmain"))
            .arg("-c")
            .arg(file)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let mut router = Self { child, lines, log: Vec::new() };
        router.await_line("Operational");
        router
    }

    /// Reads the log up to a line with this in it.
    pub fn await_line(&mut self, what: &str) -> String {
        loop {
            let Some(Ok(line)) = self.lines.next() else {
                panic!("the router ended before it logged {what:?}: {:#?}", self.log);
            };
            self.log.push(line.clone());
            if line.contains(what) {
                return line;
            }
        }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a child's id is positive");
        kill_process(pid, signal).expect("the router runs");
    }

    /// SIGTERM, and the end.
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        // It doesn't end before all it logs is read.
        while let Some(Ok(line)) = self.lines.next() {
            self.log.push(line);
        }
        self.child.wait().expect("it is our child")
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
