//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::client::{ReceiveOptions, SendOptions};
use crate::log;
use crate::tools::{
    Called, CompletionsOptions, ManOptions, ManageOptions, ProgramName, StatOptions, TopOptions, UserOptions,
};

/// The names of other programs by which this one is called as they are.
const ROUTER_NAMES: [&str; 2] = ["qdrouterd", "skrouterd"];

/// The same of those that ask a router, and whose tools they are.
const STAT_NAMES: [(&str, Called); 2] = [("qdstat", Called::Dispatch), ("skstat", Called::Skupper)];
const MANAGE_NAMES: [(&str, Called); 2] = [("qdmanage", Called::Dispatch), ("skmanage", Called::Skupper)];

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

    /// Which of its names the program was called by, where it is one of the tools.
    #[arg(skip)]
    pub called: Called,
}

/// How to run the router: the arguments of `qdrouterd`.
#[derive(Args, Clone, Debug, Default)]
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

    /// Look for stuck deliveries every second and take two seconds for long, for tests
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

/// The command line of `qdstat`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "qdstat",
    version,
    about = "Show what a router says of itself (this is ringmain; 'ringmain stat' is the same)",
    disable_version_flag = true,
    infer_long_args = true
)]
struct StatCli {
    #[command(flatten)]
    options: StatOptions,

    /// Print the version
    #[arg(long, action = ArgAction::Version)]
    version: (),
}

/// The command line of `qdmanage`.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "qdmanage",
    version,
    about = "Change and query a router while it runs (this is ringmain; 'ringmain manage' is the same)",
    disable_version_flag = true,
    infer_long_args = true
)]
struct ManageCli {
    #[command(flatten)]
    options: ManageOptions,

    /// Print the version
    #[arg(long, action = ArgAction::Version)]
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
  ringmain stat -a                          show the addresses of a running router
  ringmain top                              watch it
  ringmain manage --save now.conf           save the configuration that it runs with

The configuration file is described in docs/configuration.md and by 'ringmain describe'. Called by the names
qdrouterd, qdstat or qdmanage (links), the program takes those programs' arguments and no commands.

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
    /// Show what a running router says of itself: connections, links, addresses and more
    Stat(Box<StatOptions>),
    /// Query and change a running router, or save its configuration
    Manage(Box<ManageOptions>),
    /// Watch a running router: rates, addresses, links, connections
    Top(Box<TopOptions>),
    /// Add, list and remove the users who may log in
    User(UserOptions),
    /// Print completions for a shell
    Completions(CompletionsOptions),
    /// Write the manual pages
    Man(ManOptions),
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
    /// The same for a tool that ends with status 2 then.
    ToolUsage(String),
}

impl Cli {
    /// Reads the arguments, the first of which is the program's name: called `qdrouterd`, `qdstat` or
    /// `qdmanage`, it takes that program's arguments.
    ///
    /// # Errors
    /// [`Exit`]: what to print, and how to end.
    pub fn parse_arguments<I>(arguments: I) -> Result<Self, Exit>
    where
        I: IntoIterator<Item: Into<OsString> + Clone>,
    {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let called = arguments.first().and_then(|path| Path::new(path).file_name()?.to_str());
        if let Some(name) = ROUTER_NAMES.into_iter().find(|name| called == Some(name)) {
            return Self::parse_as_router(name, arguments);
        }
        let find =
            |names: [(&'static str, Called); 2]| names.into_iter().find(|(name, _)| called == Some(name));
        if let Some((name, called)) = find(STAT_NAMES) {
            return parse_as_tool(
                name,
                arguments,
                |cli: StatCli| Command::Stat(Box::new(cli.options)),
                called,
            );
        }
        if let Some((name, called)) = find(MANAGE_NAMES) {
            let command = |cli: ManageCli| Command::Manage(Box::new(cli.options));
            return parse_as_tool(name, arguments, command, called);
        }
        Self::try_parse_from(arguments).map_err(|error| exit("ringmain", &error))
    }

    /// The definition of the command line by which a program of this name is called: for completions and manual
    /// pages.
    #[must_use]
    pub fn definition(program: ProgramName) -> clap::Command {
        match program {
            ProgramName::Ringmain => Self::command(),
            ProgramName::Qdrouterd => RouterCli::command(),
            ProgramName::Qdstat => StatCli::command(),
            ProgramName::Qdmanage => ManageCli::command(),
        }
    }

    fn parse_as_router(name: &'static str, arguments: Vec<OsString>) -> Result<Self, Exit> {
        let matches = RouterCli::command().name(name).try_get_matches_from(arguments);
        match matches.and_then(|matches| RouterCli::from_arg_matches(&matches)) {
            Ok(cli) => Ok(Self { router: cli.router, version: (), command: None, called: Called::default() }),
            // Scripts read the bare number.
            Err(error) if error.kind() == ErrorKind::DisplayVersion => {
                Err(Exit::Answer(format!("{}\n", env!("CARGO_PKG_VERSION"))))
            }
            Err(error) => Err(exit(name, &error)),
        }
    }
}

/// Reads the arguments of a tool that is called by a name of its own.
fn parse_as_tool<T: Parser>(
    name: &'static str,
    arguments: Vec<OsString>,
    command: impl FnOnce(T) -> Command,
    called: Called,
) -> Result<Cli, Exit> {
    let matches = T::command().name(name).try_get_matches_from(arguments);
    match matches.and_then(|matches| T::from_arg_matches(&matches)) {
        Ok(tool) => {
            Ok(Cli { router: RouterOptions::default(), version: (), command: Some(command(tool)), called })
        }
        // Scripts read the bare number.
        Err(error) if error.kind() == ErrorKind::DisplayVersion => {
            Err(Exit::Answer(format!("{}\n", env!("CARGO_PKG_VERSION"))))
        }
        Err(error) => Err(match exit(name, &error) {
            Exit::Usage(text) => Exit::ToolUsage(text),
            other => other,
        }),
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
    use super::{Called, Cli, Command, Exit, LogFormat, ProgramName};
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
        use clap::ValueEnum as _;
        for program in ProgramName::value_variants() {
            Cli::definition(*program).debug_assert();
        }
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

    /// The argument forms of `qdstat` and `qdmanage` in peer-features §5.
    #[test]
    fn called_as_a_tool_it_takes_the_arguments_of_the_tool() {
        for (line, name) in [
            ("/usr/bin/qdstat -c -b 127.0.0.1:10000 -t 7.5 --limit 5 --csv", Called::Dispatch),
            ("skstat --connections --bus=amqp://127.0.0.1:10000 -v -d EDGE", Called::Skupper),
            ("qdstat -c -b127.0.0.1:10000 -r R1 --sasl-mechanisms=ANONYMOUS --vers", Called::Dispatch),
        ] {
            match parse(line) {
                Ok(Cli { command: Some(Command::Stat(options)), called, .. }) => {
                    assert!(options.show.connections, "{line}");
                    assert_eq!((options.connection.bus.port, called), (10000, name), "{line}");
                }
                other => assert_eq!(answer(line), format!("{}\n", env!("CARGO_PKG_VERSION")), "{other:?}"),
            }
        }
        let line = "qdmanage -b h:1 QUERY --type=router.link --indent -1 name linkDir";
        let cli = parse(line).unwrap();
        let Some(Command::Manage(options)) = cli.command else { panic!() };
        assert_eq!(options.operation.as_deref(), Some("QUERY"));
        assert_eq!((options.arguments.len(), options.indent), (2, -1));
        for line in ["qdstat -x", "qdstat -c -l", "qdstat extra", "qdstat -r A --all-routers", "qdmanage"] {
            let Err(Exit::ToolUsage(text)) = parse(line) else { panic!("{line}") };
            assert!(text.contains("Usage: qd"), "{line}: {text}");
        }
        assert!(answer("qdstat --help").contains("--autolinks"));
    }

    #[test]
    fn tools_under_their_own_names() {
        let Some(Command::Stat(stat)) = parse("ringmain stat -a --watch").unwrap().command else { panic!() };
        assert_eq!((stat.show.address, stat.watch), (true, Some(2.0)));
        let Some(Command::Stat(stat)) = parse("ringmain stat --watch 0.5 -l").unwrap().command else {
            panic!()
        };
        assert_eq!((stat.show.links, stat.watch), (true, Some(0.5)));
        let Some(Command::Manage(manage)) = parse("ringmain manage --save a").unwrap().command else {
            panic!()
        };
        assert_eq!(manage.save.as_deref(), Some(std::path::Path::new("a")));
        assert!(parse("ringmain top -i 0.5 -b h").is_ok());
        for line in [
            "ringmain manage",
            "ringmain manage query --save a",
            "ringmain stat --watch 0",
            "ringmain stat --json --csv",
            "ringmain completions",
            "ringmain completions cmd",
        ] {
            assert!(usage(line).contains("--help"), "{line}");
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
