//! The plain limit: a program that forwards frames between fixed pairs of connections, without a protocol.
//!
//! It does what no router can do without: read, find where each frame ends, copy it to the other connection's
//! output, write once a turn. The connections 2k and 2k + 1, in the order of their coming, are a pair.

mod epoll;
mod pairs;
mod uring;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// What it waits with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Engine {
    /// epoll, read and write.
    Epoll,
    /// One io_uring, with multishot receives into a ring of buffers.
    Uring,
}

impl Engine {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Epoll, Self::Uring];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            Self::Uring => "uring",
        }
    }
}

/// What it prints once it listens.
pub const READY: &str = "listening";

/// Forwards until the process is ended. `spin` is how long it looks for work before it sleeps.
///
/// # Errors
/// It can't listen there, or the kernel lacks something.
pub fn run(engine: Engine, listen: SocketAddr, spin: Duration) -> Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("can't listen on {listen}"))?;
    println!("{READY} on {listen}");
    match engine {
        Engine::Epoll => epoll::run(&listener, spin),
        Engine::Uring => uring::run(&listener, spin),
    }
}
