//! `ringmain-counted`: the router with an allocator and locks that count, for the harness.
//!
//! It takes the router's arguments. Whoever connects to the Unix socket at the path in [`COUNTS_SOCKET`] gets a
//! line for each thread, its name, its allocations and its locks so far, and the end of the stream.
#![deny(unsafe_code)]

mod allocator;

use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::time::Duration;

use ringmain::cli::{Cli, Exit};
use ringmain::control::config::Config;
use ringmain::control::router;
use ringmain::log;

/// The environment variable with the path of the socket.
const COUNTS_SOCKET: &str = "RINGMAIN_COUNTS";

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

fn main() -> ExitCode {
    let result = match Cli::parse_arguments(std::env::args_os()) {
        Ok(cli) => run(&cli),
        Err(Exit::Answer(text) | Exit::Usage(text) | Exit::ToolUsage(text)) => Err(text),
    };
    // If nobody reads it, the rest of the log is lost: there is nowhere to say so.
    let _all_written = log::flush(Duration::from_secs(1));
    result.unwrap_or_else(|message| {
        eprintln!("ringmain-counted: {message}");
        ExitCode::FAILURE
    })
}

fn run(cli: &Cli) -> Result<ExitCode, String> {
    let config = match &cli.router.config {
        Some(path) => Config::load(path).map_err(|errors| errors.to_string())?,
        None => Config::embedded(),
    };
    log::apply(&config.log_settings()).map_err(|error| error.to_string())?;
    ringmain::base::lock::observe(allocator::count_lock);
    if let Some(path) = std::env::var_os(COUNTS_SOCKET) {
        let listener =
            UnixListener::bind(&path).map_err(|error| format!("can't listen on {path:?}: {error}"))?;
        std::thread::Builder::new()
            .name("counts".to_owned())
            .spawn(move || serve(&listener))
            .map_err(|error| format!("can't start a thread: {error}"))?;
    }
    router::run(&config, false, || ())
}

/// Tells the counts to whoever asks.
fn serve(listener: &UnixListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        for (thread, allocations, locks) in allocator::counts() {
            let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
            let name = name.unwrap_or_else(|_| "ended".to_owned());
            // Whoever asked may have left.
            let _ = writeln!(stream, "{} {allocations} {locks}", name.trim());
        }
    }
}
