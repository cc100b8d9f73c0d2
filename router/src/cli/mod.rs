//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::client::{ReceiveOptions, SendOptions};
use crate::log;

/// The names of other programs by which this one is called as they are.
const ROUTER_NAMES: [&str; 2] = ["qdrouterd", "skrouterd"];

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
    /// How to run the router.
    #[command(flatten)]
    pub router: RouterOptions,

    /// Print the version
    #[arg(short, long, action = ArgAction::Version)]
    pub version: (),

    /// What to do instead of running the router.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// How to run the router: the arguments of `qdrouterd`.
#[derive(Args, Clone, Debug)]
pub struct RouterOptions {
    /// The configuration, in the format of qdrouterd.conf (or *.json)
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Run in the background; return when the router is up
    #[arg(short, long)]
    pub daemon: bool,

    /// Write the process id into this file
    #[arg(short = 'P', long, value_name = "FILE")]
    pub pidfile: Option<PathBuf>,

    /// Run as this user
    #[arg(short = 'U', long, value_name = "USER")]
    pub user: Option<String>,

    /// Accepted for qdrouterd's sake; without effect
    #[arg(short = 'I', long, value_name = "DIR")]
    pub include: Option<PathBuf>,

    /// Shorten internal timers, for tests of the router
    #[arg(short = 'T', long)]
    pub test_hooks: bool,

    /// How lines of the log look
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub log_format: LogFormat,

    /// This is the process in the background.
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// How lines of the log look.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogFormat {
    /// As those of qdrouterd
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

impl From<LogFormat> for log::Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

/// The command line of `qdrouterd`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "qdrouterd",
    version,
    about = "AMQP 1.0 message router (this is ringmain; 'ringmain --help' shows more)",
    disable_version_flag = true
)]
struct RouterCli {
    #[command(flatten)]
    router: RouterOptions,

    /// Print the version
    #[arg(short, long, action = ArgAction::Version)]
    version: (),
}

const EXAMPLES: &str = "\
Examples:
  ringmain                                  run the router on 127.0.0.1:5672
  ringmain -c /etc/ringmain.conf            run it as the file says
  ringmain check /etc/ringmain.conf         say what is wrong with the file, if anything
  ringmain describe listener                say what a section of the file may have
  ringmain receive amqp://127.0.0.1/hello   print what arrives at an address
  ringmain send amqp://127.0.0.1/hello      send a message to it

The configuration file is described in docs/configuration.md and by 'ringmain describe'. Called by the name
qdrouterd (a link), the program takes that program's arguments and no commands.

Exit status: 0 after SIGTERM or SIGINT, 1 if the configuration or the usage is wrong or the router can't start.
'ringmain send --help' and 'ringmain receive --help' have theirs.";

/// What to do instead of running the router.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Send messages to an address
    Send(SendOptions),
    /// Receive messages from an address
    Receive(ReceiveOptions),
    /// Check a configuration file without starting anything
    Check(CheckOptions),
    /// Describe the sections of the configuration file
    Describe(DescribeOptions),
    /// Tell a running router to read its configuration file again
    Reload(ReloadOptions),
}

/// Which file to check.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Exit status: 0 if a router can start from the file, 1 if not.")]
pub struct CheckOptions {
    /// The configuration, in the format of qdrouterd.conf (or *.json)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Take warnings for errors
    #[arg(long)]
    pub strict: bool,
}

/// What to describe.
#[derive(Args, Clone, Debug)]
pub struct DescribeOptions {
    /// The section; without one, all are listed
    #[arg(value_name = "SECTION")]
    pub section: Option<String>,

    /// Write the whole of docs/configuration.md
    #[arg(long, hide = true, conflicts_with = "section")]
    pub markdown: bool,
}

/// Which router to tell.
#[derive(Args, Clone, Debug)]
#[command(after_help = "The router's log says what has changed, or why nothing has.")]
#[group(required = true, multiple = false)]
pub struct ReloadOptions {
    /// The router's process id
    #[arg(value_name = "PID")]
    pub pid: Option<i32>,

    /// The file with the router's process id (the -P of its command line)
    #[arg(short = 'P', long, value_name = "FILE")]
    pub pidfile: Option<PathBuf>,
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
    /// Reads the arguments, the first of which is the program's name: called `qdrouterd`, it takes that
    /// program's arguments.
    ///
    /// # Errors
    /// [`Exit`]: what to print, and how to end.
    pub fn parse_arguments<I>(arguments: I) -> Result<Self, Exit>
    where
        I: IntoIterator<Item: Into<OsString> + Clone>,
    {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let called = arguments.first().and_then(|path| Path::new(path).file_name()?.to_str());
        match ROUTER_NAMES.into_iter().find(|name| called == Some(name)) {
            Some(name) => Self::parse_as_router(name, arguments),
            None => Self::try_parse_from(arguments).map_err(|error| exit("ringmain", &error)),
        }
    }

    fn parse_as_router(name: &'static str, arguments: Vec<OsString>) -> Result<Self, Exit> {
        let matches = RouterCli::command().name(name).try_get_matches_from(arguments);
        match matches.and_then(|matches| RouterCli::from_arg_matches(&matches)) {
            Ok(cli) => Ok(Self { router: cli.router, version: (), command: None }),
            // Scripts read the bare number.
            Err(error) if error.kind() == ErrorKind::DisplayVersion => {
                Err(Exit::Answer(format!("{}\n", env!("CARGO_PKG_VERSION"))))
            }
            Err(error) => Err(exit(name, &error)),
        }
    }
}

fn exit(name: &str, error: &clap::Error) -> Exit {
    let text = error.render().to_string();
    if error.use_stderr() {
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        Exit::Usage(format!("{name}: {text}"))
    } else {
        Exit::Answer(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cli, Command, Exit, LogFormat};
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
        assert_eq!(cli.router.config.as_deref(), Some(std::path::Path::new("a.conf")));
        assert!(cli.command.is_none());
        assert!(parse("ringmain").unwrap().router.config.is_none());
        assert!(parse("ringmain --config a.conf --include b").is_ok());
        assert_eq!(parse("ringmain").unwrap().router.log_format, LogFormat::Text);
        assert_eq!(parse("ringmain --log-format json").unwrap().router.log_format, LogFormat::Json);
        assert!(usage("ringmain --log-format xml").contains("text, json"));
    }

    /// The arguments that the acceptance reference lists.
    #[test]
    fn called_qdrouterd_it_takes_the_arguments_of_qdrouterd() {
        let router =
            parse("/usr/sbin/qdrouterd -c a.conf -I /usr/lib -T -d -P /run/q.pid -U qd").unwrap().router;
        assert!(router.daemon && router.test_hooks);
        assert_eq!((router.user.as_deref(), router.pidfile.is_some()), (Some("qd"), true));
        let long = "qdrouterd --config a --include b --test-hooks --daemon --pidfile c --user d";
        assert!(parse(long).unwrap().router.daemon);
        assert_eq!(answer("qdrouterd -v"), format!("{}\n", env!("CARGO_PKG_VERSION")));
        assert_eq!(answer("qdrouterd --version"), answer("qdrouterd -v"));
        assert!(answer("qdrouterd -h").contains("Usage: qdrouterd [OPTIONS]"));
        assert!(answer("./skrouterd --help").contains("Usage: skrouterd [OPTIONS]"));
        for line in ["qdrouterd extra", "qdrouterd -x", "qdrouterd send amqp://h/a", "qdrouterd check a.conf"]
        {
            let text = usage(line);
            assert!(text.starts_with("qdrouterd: ") && text.contains("Usage: qdrouterd"), "{line}: {text}");
        }
    }

    #[test]
    fn commands_about_the_configuration() {
        let Some(Command::Check(check)) = parse("ringmain check a.conf").unwrap().command else { panic!() };
        assert_eq!((check.file.to_str(), check.strict), (Some("a.conf"), false));
        let Some(Command::Describe(describe)) = parse("ringmain describe log").unwrap().command else {
            panic!()
        };
        assert_eq!(describe.section.as_deref(), Some("log"));
        let Some(Command::Reload(reload)) = parse("ringmain reload 17").unwrap().command else { panic!() };
        assert_eq!((reload.pid, reload.pidfile), (Some(17), None));
        for line in ["ringmain check", "ringmain reload", "ringmain reload 1 -P a", "ringmain reload x"] {
            let text = usage(line);
            assert!(text.starts_with("ringmain: ") && text.contains("--help"), "{line}: {text}");
        }
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
