//! The program as its users start it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::Router;

/// A folder of its own for each test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tools-{}-{number}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("the folder for temporary files is writable");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a tool printed, and its status.
#[derive(Debug)]
pub struct Said {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    fn of(output: Output) -> Self {
        Self {
            status: output.status.code().expect("no signal ended it"),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// That it succeeded without complaint; what it printed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!((self.status, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    /// What it printed, as JSON.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

/// Runs the program with these arguments, blanks between them.
pub fn run(arguments: &str) -> Said {
    run_with(arguments.split(' ').map(str::to_owned).collect(), "")
}

/// The same, with something to read.
pub fn run_with(arguments: Vec<String>, input: &str) -> Said {
    start(Path::new(env!("CARGO_BIN_EXE_ringmain")), arguments, input)
}

/// Runs a tool of this router.
pub fn ask(router: &Router, arguments: &str) -> Said {
    run(&format!("{arguments} -b {}", router.address()))
}

/// Runs the program by another name.
pub fn run_as(name: &str, arguments: &str) -> Said {
    let folder = Folder::new();
    let link = folder.path().join(name);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ringmain"), &link).expect("a link can be made");
    start(&link, arguments.split(' ').map(str::to_owned).collect(), "")
}

fn start(program: &Path, arguments: Vec<String>, input: &str) -> Said {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut stdin = child.stdin.take().expect("it is piped");
    // Whoever ends without reading it is judged by what it says.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    Said::of(child.wait_with_output().expect("it is a child"))
}
