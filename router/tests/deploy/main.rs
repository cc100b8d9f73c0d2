//! Running as a service: what systemd is told, the unit, the files for the system, the package, log rotation.
//!
//! What judges them is what they are for where it's at hand: `systemd-analyze`, `logrotate`, `dpkg`,
//! `scripts/tune-host`. A test that misses its judge says that it is skipped.

#[path = "../config/program.rs"]
#[allow(dead_code, reason = "the tests of the configuration use the rest of it")]
mod program;

mod configurations;
mod install;
mod notify;
mod package;
mod rotation;
mod system;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The workspace's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace exists")
}

/// The text of a file of the workspace.
fn file(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Runs a program of the system to its end; `None` if there is none of this name.
fn try_command(command: &mut Command) -> Option<Output> {
    match command.stdin(Stdio::null()).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{command:?}: {error}"),
    }
}

/// What a command has said, on both streams; it must have gone well.
#[track_caller]
fn said(output: &Output) -> String {
    let all = format!("{}{}", program::text(&output.stdout), program::text(&output.stderr));
    assert!(output.status.success(), "{}: {all}", output.status);
    all
}

/// Says that a test is skipped, and why.
fn skip(test: &str, reason: &str) {
    println!("SKIPPED: {test}: {reason}");
}
