//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand};

use crate::client::{ReceiveOptions, SendOptions};

/// What the process was asked to do.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "ringmain",
    version,
    about = "AMQP 1.0 message router",
    long_about = "AMQP 1.0 message router. Without a command it runs the router, with its configuration from FILE \
                  or, without one, listening on 127.0.0.1:5672.",
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    disable_version_flag = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// The configuration, in the format of qdrouterd.conf (or *.json)
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Accepted for qdrouterd's sake; without effect
    #[arg(short = 'I', long, value_name = "DIR")]
    pub include: Option<PathBuf>,

    /// Print the version
    #[arg(short, long, action = ArgAction::Version)]
    pub version: (),

    /// What to do instead of running the router.
    #[command(subcommand)]
    pub command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  ringmain                                  run the router on 127.0.0.1:5672
  ringmain -c /etc/ringmain.conf            run it as the file says
  ringmain receive amqp://127.0.0.1/hello   print what arrives at an address
  ringmain send amqp://127.0.0.1/hello      send a message to it

Exit status: 0 after SIGTERM or SIGINT, 1 if the configuration or the usage is wrong or the router can't start.
'ringmain send --help' and 'ringmain receive --help' have theirs.";

/// What to do instead of running the router.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Send messages to an address
    Send(SendOptions),
    /// Receive messages from an address
    Receive(ReceiveOptions),
}

/// Why the process ends before it has begun.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Help or version was asked for: print this on standard output, status 0.
    Answer(String),
    /// The arguments are wrong: print this on standard error, status 1.
    Usage(String),
}

impl Cli {
    /// Reads the arguments, the first of which is the program's name.
    ///
    /// # Errors
    /// [`Exit`]: what to print, and how to end.
    pub fn parse_arguments<I>(arguments: I) -> Result<Self, Exit>
    where
        I: IntoIterator<Item: Into<OsString> + Clone>,
    {
        Self::try_parse_from(arguments).map_err(|error| {
            let text = error.render().to_string();
            if error.use_stderr() {
                let text = text.strip_prefix("error: ").unwrap_or(&text);
                Exit::Usage(format!("ringmain: {text}"))
            } else {
                Exit::Answer(text)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Cli, Command, Exit};
    use crate::client::{OutcomeChoice, Print};

    fn parse(line: &str) -> Result<Cli, Exit> {
        Cli::parse_arguments(line.split(' '))
    }

    fn usage(line: &str) -> String {
        match parse(line) {
            Err(Exit::Usage(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    fn answer(line: &str) -> String {
        match parse(line) {
            Err(Exit::Answer(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn clap_finds_no_fault_with_the_definition() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn running_the_router_as_scripts_do() {
        let cli = parse("ringmain -c a.conf -I /usr/lib/qpid-dispatch").unwrap();
        assert_eq!(cli.config.as_deref(), Some(std::path::Path::new("a.conf")));
        assert!(cli.command.is_none());
        assert!(parse("ringmain").unwrap().config.is_none());
        assert!(parse("ringmain --config a.conf --include b").is_ok());
    }

    #[test]
    fn version_and_help_are_answers() {
        assert_eq!(answer("ringmain --version"), format!("ringmain {}\n", env!("CARGO_PKG_VERSION")));
        assert_eq!(answer("ringmain -v"), answer("ringmain --version"));
        assert!(answer("ringmain --help").contains("ringmain receive amqp://"));
        assert!(answer("ringmain -h").contains("Usage: ringmain"));
        assert!(answer("ringmain send --help").contains("Exit status:"));
        assert!(answer("ringmain receive --help").contains("--outcome <OUTCOME>"));
    }

    #[test]
    fn wrong_arguments_are_usage() {
        for line in [
            "ringmain --nonsense",
            "ringmain extra",
            "ringmain -c",
            "ringmain send",
            "ringmain -c a send amqp://h/a",
        ] {
            let text = usage(line);
            assert!(text.starts_with("ringmain: ") && text.contains("--help"), "{line}: {text}");
        }
        assert!(usage("ringmain --nonsense").contains("Usage: ringmain"));
        assert!(usage("ringmain send hello").contains("amqp://127.0.0.1/hello"));
        assert!(usage("ringmain send amqp://h/a --size 1 --body x").contains("cannot be used with"));
        assert!(usage("ringmain receive amqp://h/a --credit 0").contains("--credit"));
    }

    #[test]
    fn commands_and_their_defaults() {
        let Some(Command::Send(send)) = parse("ringmain send amqp://h/a").unwrap().command else { panic!() };
        assert_eq!((send.count, send.body.as_str(), send.size, send.presettled), (1, "Hello", None, false));
        let Some(Command::Send(send)) =
            parse("ringmain send amqp://h/a -n 5 --size 64k -p a=b --property c=d").unwrap().command
        else {
            panic!()
        };
        assert_eq!((send.count, send.size, send.properties.len()), (5, Some(65536), 2));
        let Some(Command::Receive(receive)) = parse("ringmain receive amqp://h/a").unwrap().command else {
            panic!()
        };
        assert_eq!((receive.count, receive.credit), (None, 100));
        assert_eq!((receive.print, receive.outcome), (Print::Body, OutcomeChoice::Accept));
    }
}
