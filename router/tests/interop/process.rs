//! Child processes: their output by line, with a deadline, and their end with the test's.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The instant by which all of one test must have happened.
#[derive(Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// Which output of a child [`Process::next_line`] reads. The other one is kept for [`Process::kept`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Stdout,
    Stderr,
}

/// A child process that doesn't outlive this value.
pub struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    kept: Arc<Mutex<Vec<String>>>,
}

impl Process {
    pub fn start(name: &str, command: &mut Command, read: Output) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} can't be started: {error}"));
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (line_out, lines) = channel();
        let stdout = child.stdout.take().expect("piped");
        let stderr = child.stderr.take().expect("piped");
        let keep = {
            let kept = Arc::clone(&kept);
            move |line: String| kept.lock().expect("no panic while held").push(line)
        };
        // A line that nobody waits for any more has no reader: that is no error.
        let pass_on = {
            let keep = keep.clone();
            move |line: String| {
                if read == Output::Stderr {
                    keep(line.clone());
                }
                let _ = line_out.send(line);
            }
        };
        match read {
            Output::Stdout => {
                each_line(stdout, pass_on);
                each_line(stderr, keep);
            }
            Output::Stderr => {
                each_line(stderr, pass_on);
                each_line(stdout, keep);
            }
        }
        let input = child.stdin.take();
        Self { name: name.to_owned(), child, input, lines, kept }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next line, or `None` at the end of the output.
    pub fn next_line(&mut self, deadline: Deadline) -> Option<String> {
        match self.lines.recv_timeout(deadline.left()) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("{}: nothing more before the time was up", self.name),
        }
    }

    pub fn say(&mut self, word: &str) {
        if let Some(input) = &mut self.input {
            // A child that has ended is noticed by its status and by what it should have reported.
            let _ = writeln!(input, "{word}").and_then(|()| input.flush());
        }
    }

    /// What came on the output that is not read by line (or on both, where that is standard error).
    pub fn kept(&self) -> String {
        self.kept.lock().expect("no panic while held").join("\n")
    }

    pub fn wait(&mut self, deadline: Deadline) -> ExitStatus {
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(!deadline.left().is_zero(), "{}: still running when the time was up", self.name);
            thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- {} said:\n{}", self.name, self.kept());
        }
    }
}

fn each_line(source: impl Read + Send + 'static, mut act: impl FnMut(String) + Send + 'static) {
    thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            act(line);
        }
    });
}
