//! The client programs: where they are, and the events that they report.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{Deadline, Output, Process};
use crate::router::Router;
use crate::wire::{Tap, Wire};

/// A client library, by the program in `peers/` that uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Library {
    Proton,
    Rhea,
    Fe2o3,
}

impl Library {
    /// What runs the library's program.
    pub fn interpreter(self) -> Command {
        match self {
            Self::Proton => {
                let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/python");
                require(&python);
                Command::new(python)
            }
            Self::Rhea => {
                require(&peers().join("rhea/node_modules/rhea"));
                Command::new("node")
            }
            Self::Fe2o3 => {
                // Built into the same folder as the router, by its own package.
                let built = PathBuf::from(env!("CARGO_BIN_EXE_ringmain")).with_file_name("fe2o3-peer");
                require(&built);
                Command::new(built)
            }
        }
    }

    fn command(self) -> Command {
        let mut command = self.interpreter();
        match self {
            Self::Proton => command.arg(peers().join("proton/peer.py")),
            Self::Rhea => command.arg(peers().join("rhea/peer.js")),
            Self::Fe2o3 => &mut command,
        };
        command
    }

    /// Whether the library tells a receiver that a delivery came settled.
    pub fn shows_settled(self) -> bool {
        match self {
            Self::Proton | Self::Rhea => true,
            Self::Fe2o3 => false,
        }
    }

    /// Whether the library tells a receiver that its link is drained.
    pub fn shows_drained(self) -> bool {
        match self {
            Self::Proton | Self::Rhea => true,
            Self::Fe2o3 => false,
        }
    }
}

pub fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peers")
}

fn require(path: &Path) {
    assert!(
        path.exists(),
        "{} is missing: run scripts/test, which installs and builds what the interop tests need (or skip them with RINGMAIN_SKIP_INTEROP=1)",
        path.display()
    );
}

/// A running client program, connected to the router through a tap.
pub struct Peer {
    process: Process,
    tap: Tap,
    deadline: Deadline,
    events: Vec<Value>,
}

impl Peer {
    /// `arguments`: the role and its options, `peers/README.md`.
    pub fn start(library: Library, arguments: &str, router: &Router, deadline: Deadline) -> Self {
        let tap = Tap::start(router.address());
        let mut words = arguments.split_whitespace();
        let role = words.next().expect("a role");
        let mut command = library.command();
        command.arg(role).args(["--url", &format!("amqp://{}", tap.address())]).args(words);
        let name = format!("{library:?} ({role})");
        Self {
            process: Process::start(&name, &mut command, Output::Stdout),
            tap,
            deadline,
            events: Vec::new(),
        }
    }

    pub fn name(&self) -> &str {
        self.process.name()
    }

    /// The next event; its name must not be `failed`.
    fn next_event(&mut self) -> Option<&Value> {
        let line = self.process.next_line(self.deadline)?;
        let event: Value = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("{}: not an event: {line}", self.process.name()));
        assert!(event["event"] != "failed", "{}: {}", self.process.name(), event["why"]);
        self.events.push(event);
        self.events.last()
    }

    /// Reads on until the first event called `name`, and gives that one.
    pub fn wait_for(&mut self, name: &str) -> Value {
        loop {
            match self.next_event() {
                Some(event) if event["event"] == name => return event.clone(),
                Some(_) => {}
                None => panic!("{}: ended without \"{name}\"", self.process.name()),
            }
        }
    }

    /// Reads on until there are `count` events called `name`.
    pub fn wait_for_count(&mut self, name: &str, count: usize) {
        while self.named(name).len() < count {
            self.wait_for(name);
        }
    }

    /// The events called `name` that were read so far, in order.
    pub fn named(&self, name: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["event"] == name).collect()
    }

    pub fn say(&mut self, word: &str) {
        self.process.say(word);
    }

    /// What the tap saw.
    pub fn wire(&self) -> std::sync::MutexGuard<'_, Wire> {
        self.tap.wire()
    }

    /// Reads to the end: the program must close in order, succeed, and have seen no breach of the protocol by the router.
    pub fn finish(&mut self) {
        self.wait_for("done");
        while self.next_event().is_some() {}
        let status = self.process.wait(self.deadline);
        assert!(status.success(), "{}: {status}", self.process.name());
        let breaches = self.wire().breaches().join("\n");
        assert!(
            breaches.is_empty(),
            "{}: what the router sent to it breaks AMQP 1.0:\n{breaches}",
            self.process.name()
        );
    }
}
