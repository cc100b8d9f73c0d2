//! Python's ssl at the other end (`peer.py`).

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::certificates::Folder;

fn python() -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls/peer.py");
    let mut command = Command::new("python3");
    command.arg(script);
    command
}

/// Connects, says AMQP's header, and reports what came of it.
#[track_caller]
pub fn client(folder: &Folder, port: u16, options: &[&str]) -> Value {
    client_trusting(folder, "ca", port, options)
}

/// The same, trusting the authority in that file.
#[track_caller]
pub fn client_trusting(folder: &Folder, authority: &str, port: u16, options: &[&str]) -> Value {
    let mut command = python();
    command.args(["client", &port.to_string(), "--ca"]).arg(folder.path(&format!("{authority}.pem")));
    command.args(options);
    let output = command.output().expect("python3 is there");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", String::from_utf8_lossy(&output.stderr)))
}

/// A server that takes so many connections and reports each. It is killed when this is dropped.
pub struct Server {
    child: Child,
    lines: BufReader<ChildStdout>,
    pub port: u16,
}

impl Server {
    pub fn start(folder: &Folder, certificate: &str, count: u32, options: &[&str]) -> Self {
        let mut command = python();
        command.arg("server");
        command
            .arg(folder.path(&format!("{certificate}.pem")))
            .arg(folder.path(&format!("{certificate}.key")));
        command.arg(count.to_string()).args(options).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 is there");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut server = Self { child, lines, port: 0 };
        server.port =
            server.report()["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        server
    }

    /// What it reports next.
    #[track_caller]
    pub fn report(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("it reports");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
