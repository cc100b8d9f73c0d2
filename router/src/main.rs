//! The program `ringmain`: reads its arguments and configuration, and wires the rest together.

use std::process::ExitCode;
use std::time::Duration;

use ringmain::cli::{Cli, Command, Exit};
use ringmain::client;
use ringmain::control::config::Config;
use ringmain::control::router;
use ringmain::log;
use ringmain::log::{Level, Module};

/// How long the end of the process waits for whoever reads the log.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let cli = match Cli::parse_arguments(std::env::args_os()) {
        Ok(cli) => cli,
        Err(Exit::Answer(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(Exit::Usage(text)) => {
            eprint!("{text}");
            return ExitCode::FAILURE;
        }
    };
    let result = match &cli.command {
        None => run_router(&cli),
        Some(Command::Send(options)) => Ok(client::send(options).into()),
        Some(Command::Receive(options)) => Ok(client::receive(options).into()),
    };
    // If nobody reads it, the rest of the log is lost: there is nowhere to say so.
    let _all_written = log::flush(LOG_PATIENCE);
    match result {
        Ok(status) => status,
        Err(message) => {
            eprintln!("ringmain: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the router until it is told to stop.
///
/// # Errors
/// Why it can't start: the text for standard error.
fn run_router(cli: &Cli) -> Result<ExitCode, String> {
    let config = match &cli.config {
        Some(path) => Config::load(path)
            .map_err(|errors| format!("the configuration can't be used, nothing was started:\n{errors}"))?,
        None => Config::embedded(),
    };
    log::apply(&config.log_settings()).map_err(|error| error.to_string())?;
    for warning in &config.warnings {
        log!(Module::ConnMgr, Level::Warning, "{warning}");
    }
    router::run(&config)
}
