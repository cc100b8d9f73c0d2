//! The program `ringmain`: reads its arguments and configuration, and wires the rest together.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use ringmain::cli::{CheckOptions, Cli, Command, DescribeOptions, Exit, RouterOptions};
use ringmain::client;
use ringmain::control::config::{Config, reference};
use ringmain::control::daemon;
use ringmain::control::router;
use ringmain::log;
use ringmain::log::{Level, Module};
use ringmain::tools::{self, Called, ManOptions, Problem, ProgramName};

/// How long the end of the process waits for whoever reads the log.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

/// The argument of the process in the background, see [`RouterOptions::detached`].
const DETACHED: &str = "--detached";

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
        Err(Exit::ToolUsage(text)) => {
            eprint!("{text}");
            return ExitCode::from(2);
        }
    };
    let called = cli.called;
    let result = match &cli.command {
        None => run_router(&cli.router),
        Some(Command::Send(options)) => Ok(client::send(options).into()),
        Some(Command::Receive(options)) => Ok(client::receive(options).into()),
        Some(Command::Check(options)) => check(options),
        Some(Command::Describe(options)) => describe(options),
        Some(Command::Reload(options)) => {
            daemon::reload(options.pid, options.pidfile.as_deref()).map(|pid| {
                println!("Process {pid} reads its configuration again; its log says what changes.");
                ExitCode::SUCCESS
            })
        }
        Some(Command::Stat(options)) => Ok(ended(tools::stat(options, called), called, "qdstat")),
        Some(Command::Manage(options)) => Ok(ended(tools::manage(options, called), called, "qdmanage")),
        Some(Command::Top(options)) => Ok(ended(tools::top(options), called, "top")),
        Some(Command::User(options)) => Ok(ended(tools::user(options), called, "user")),
        Some(Command::Completions(options)) => {
            let definition = Cli::definition(options.program);
            Ok(ended(tools::completions(definition, options.shell), called, "completions"))
        }
        Some(Command::Man(options)) => Ok(ended(manual_pages(options), called, "man")),
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

/// How the process ends after a tool.
fn ended(result: Result<(), Problem>, called: Called, tool: &str) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => problem.report(called, tool),
    }
}

/// Writes the manual pages of the program by all of its names.
///
/// # Errors
/// They can't be written.
fn manual_pages(options: &ManOptions) -> Result<(), Problem> {
    let programs =
        [ProgramName::Ringmain, ProgramName::Qdrouterd, ProgramName::Qdstat, ProgramName::Qdmanage];
    let written = tools::manual_pages(programs.map(Cli::definition).into(), &options.folder)?;
    println!("{}: {} pages written ({})", options.folder.display(), written.len(), written.join(", "));
    Ok(())
}

/// Runs the router until it is told to stop; in the background, until it is up.
///
/// # Errors
/// Why it can't start: the text for standard error.
fn run_router(options: &RouterOptions) -> Result<ExitCode, String> {
    if options.daemon && !options.detached {
        let arguments: Vec<_> = std::env::args_os().collect();
        return daemon::start(&arguments, DETACHED);
    }
    // The working directory may change below.
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|error| format!("can't find {}: {error}", path.display()))
    };
    let pidfile = options.pidfile.as_deref().map(absolute).transpose()?;
    let file = match &options.config {
        Some(path) if options.detached => Some(absolute(path)?),
        other => other.clone(),
    };
    if options.detached {
        daemon::detach()?;
    }
    let _pidfile = pidfile.as_deref().map(daemon::PidFile::write).transpose()?;
    if let Some(user) = &options.user {
        daemon::become_user(user)?;
    }
    let config = match &file {
        Some(path) => Config::load(path)
            .map_err(|errors| format!("the configuration can't be used, nothing was started:\n{errors}"))?,
        None => Config::embedded(),
    };
    log::use_format(options.log_format.into());
    log::apply(&config.log_settings()).map_err(|error| error.to_string())?;
    for warning in &config.warnings {
        log!(Module::ConnMgr, Level::Warning, "{warning}");
    }
    router::run(&config, options.test_hooks, || {
        if options.detached {
            daemon::report_up();
        }
    })
}

/// Checks a configuration file and says what it has.
///
/// # Errors
/// What is wrong with it: the text for standard error.
fn check(options: &CheckOptions) -> Result<ExitCode, String> {
    let config = Config::load(&options.file).map_err(|errors| {
        let faults =
            if errors.0.len() == 1 { "a fault".to_owned() } else { format!("{} faults", errors.0.len()) };
        format!("the configuration has {faults}, a router can't start from it:\n{errors}")
    })?;
    print!("{}", config.summary());
    if options.strict && !config.warnings.is_empty() {
        return Err("warnings count as errors (--strict)".to_owned());
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes the configuration file.
///
/// # Errors
/// There is no such section.
fn describe(options: &DescribeOptions) -> Result<ExitCode, String> {
    match &options.section {
        _ if options.markdown => print!("{}", reference::markdown()),
        None => print!("{}", reference::sections()),
        Some(section) => print!("{}", reference::section(section)?),
    }
    Ok(ExitCode::SUCCESS)
}
