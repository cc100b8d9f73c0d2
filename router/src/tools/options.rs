//! What can be asked of the tools. The comments here are their `--help`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use clap_complete::Shell;

use super::views::View;
use crate::client::{Bus, SaslOptions, Timeout, TlsOptions};

/// Which router to connect to, and how.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionOptions {
    /// The router to connect to: HOST, HOST:PORT, amqp://HOST:PORT or amqp://USER@HOST:PORT
    #[arg(short, long, value_name = "URL", default_value = "127.0.0.1:5672")]
    pub bus: Bus,

    /// How long to wait for the connection and for each answer; 0: for ever
    #[arg(short, long, value_name = "SECONDS", default_value = "5")]
    pub timeout: Timeout,

    /// How to encrypt.
    #[command(flatten)]
    pub tls: TlsOptions,

    /// As whom to connect.
    #[command(flatten)]
    pub sasl: SaslOptions,
}

/// Which router's management node to ask.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Target")]
pub struct TargetOptions {
    /// Ask this router of the network rather than the one connected to
    #[arg(short, long, value_name = "ROUTER-ID")]
    pub router: Option<String>,

    /// Ask this edge router
    #[arg(short = 'd', long, value_name = "EDGE-ROUTER-ID", conflicts_with = "router")]
    pub edge_router: Option<String>,
}

/// Options of `ringmain stat`.
#[derive(Args, Clone, Debug)]
#[command(after_help = STAT_HELP)]
pub struct StatOptions {
    /// What to show.
    #[command(flatten)]
    pub show: ShowOptions,

    /// Whom to ask.
    #[command(flatten)]
    pub target: TargetOptions,

    /// Ask all routers of the network, one after the other
    #[arg(long, help_heading = "Target", conflicts_with_all = ["router", "edge_router"])]
    pub all_routers: bool,

    /// Show at most so many rows
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub limit: Option<usize>,

    /// Show more columns
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,

    /// Print comma-separated values
    #[arg(long, help_heading = "Output")]
    pub csv: bool,

    /// Print the entities as JSON, with all attributes
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub json: bool,

    /// Show it again every so many seconds (2), with rates, until Ctrl-C
    #[arg(help_heading = "Output", short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
          value_parser = parse_interval)]
    pub watch: Option<f64>,

    /// How to connect.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Exactly one view; without one, the general view.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Display")]
#[group(multiple = false)]
pub struct ShowOptions {
    /// Show the router as a whole (the default)
    #[arg(short, long)]
    pub general: bool,
    /// Show connections
    #[arg(short, long)]
    pub connections: bool,
    /// Show links
    #[arg(short, long)]
    pub links: bool,
    /// Show the routers of the network
    #[arg(short, long)]
    pub nodes: bool,
    /// Show connections of edge routers
    #[arg(short, long)]
    pub edge: bool,
    /// Show addresses
    #[arg(short, long)]
    pub address: bool,
    /// Show memory
    #[arg(short, long)]
    pub memory: bool,
    /// Show the global policy
    #[arg(short, long)]
    pub policy: bool,
    /// Show auto-links
    #[arg(long)]
    pub autolinks: bool,
    /// Show link routes
    #[arg(long)]
    pub linkroutes: bool,
    /// Show vhosts
    #[arg(long)]
    pub vhosts: bool,
    /// Show the user groups of vhosts
    #[arg(long)]
    pub vhostgroups: bool,
    /// Show statistics of vhosts
    #[arg(long)]
    pub vhoststats: bool,
    /// Show the last lines of the router's log
    #[arg(long)]
    pub log: bool,
    /// Show all of it
    #[arg(long)]
    pub all_entities: bool,
}

impl ShowOptions {
    /// The view that is asked for.
    pub(super) fn view(&self) -> View {
        let views = [
            (self.connections, View::Connections),
            (self.links, View::Links),
            (self.nodes, View::Nodes),
            (self.edge, View::Edges),
            (self.address, View::Addresses),
            (self.memory, View::Memory),
            (self.policy, View::Policy),
            (self.autolinks, View::AutoLinks),
            (self.linkroutes, View::LinkRoutes),
            (self.vhosts, View::Vhosts),
            (self.vhostgroups, View::VhostGroups),
            (self.vhoststats, View::VhostStats),
            (self.log, View::Log),
            (self.all_entities, View::All),
        ];
        views.into_iter().find(|(is_asked, _)| *is_asked).map_or(View::General, |(_, view)| view)
    }
}

const STAT_HELP: &str = "\
Examples:
  ringmain stat                             the router on 127.0.0.1:5672 as a whole
  ringmain stat -c -b router.example        connections of another one
  ringmain stat -a --watch                  addresses, every 2 seconds, with rates
  ringmain stat -l --json | jq '.entities[].linkName'

Exit status: 0, or 1 if the router can't be asked.";

/// Options of `ringmain manage`.
#[derive(Args, Clone, Debug)]
#[command(after_help = MANAGE_HELP)]
pub struct ManageOptions {
    /// QUERY, CREATE, READ, UPDATE, DELETE, GET-TYPES, GET-ATTRIBUTES, GET-OPERATIONS, GET-ANNOTATIONS,
    /// GET-MGMT-NODES, GET-SCHEMA, GET-JSON-SCHEMA, GET-LOG, or another that GET-OPERATIONS tells
    #[arg(value_name = "OPERATION", required_unless_present = "save")]
    pub operation: Option<String>,

    /// CREATE, UPDATE: attributes as NAME=VALUE; QUERY: names of attributes; GET-TYPES and the like: a type
    #[arg(value_name = "ARGUMENT", conflicts_with = "save")]
    pub arguments: Vec<String>,

    /// The type of entity, for example listener or router.link
    #[arg(long, value_name = "TYPE")]
    pub r#type: Option<String>,

    /// The name of the entity
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// The identity of the entity
    #[arg(long, value_name = "ID")]
    pub identity: Option<String>,

    /// CREATE, UPDATE: the attributes as a JSON map
    #[arg(long, value_name = "JSON", conflicts_with = "stdin")]
    pub attributes: Option<String>,

    /// CREATE, UPDATE: read attributes from standard input, a JSON map or a list of them
    #[arg(long)]
    pub stdin: bool,

    /// Other operations: the body of the request, as JSON
    #[arg(long, value_name = "JSON")]
    pub body: Option<String>,

    /// Other operations: properties of the request, a JSON map
    #[arg(long, value_name = "JSON")]
    pub properties: Option<String>,

    /// Indent JSON by so many blanks; -1: print it on one line
    #[arg(long, value_name = "N", default_value_t = 2, allow_hyphen_values = true,
          value_parser = clap::value_parser!(i16).range(-1..=16))]
    pub indent: i16,

    /// Write the running configuration to a file ('-': standard output); a file that is there is kept as FILE.bak
    #[arg(long, value_name = "FILE", conflicts_with_all = ["operation", "type", "name", "identity"])]
    pub save: Option<PathBuf>,

    /// For qdmanage's sake; without effect
    #[arg(short, long, action = ArgAction::Count, hide = true)]
    pub verbose: u8,

    /// Whom to ask.
    #[command(flatten)]
    pub target: TargetOptions,

    /// How to connect.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

const MANAGE_HELP: &str = "\
Examples:
  ringmain manage query --type connection container host
  ringmain manage create --type listener --name inside host=127.0.0.1 port=5673
  ringmain manage update --type log --name log/DEFAULT enable=debug+
  ringmain manage delete --type listener --name inside
  ringmain manage get-attributes --type address
  ringmain manage --save /etc/ringmain.conf

'ringmain describe TYPE' explains the attributes. Replies are printed as JSON.

Exit status: 0, or 1 if the router can't be asked or refuses.";

/// Options of `ringmain top`.
#[derive(Args, Clone, Debug)]
#[command(after_help = TOP_HELP)]
pub struct TopOptions {
    /// Look again every so many seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = parse_interval)]
    pub interval: f64,

    /// Whom to ask.
    #[command(flatten)]
    pub target: TargetOptions,

    /// How to connect.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

const TOP_HELP: &str = "\
Keys:
  1 2 3 4, Tab   addresses, links, blocked links, connections
  s, S           sort by the next or previous column; r turns the order round
  up, down       move, Page Up and Page Down by a page, Home to the first row
  space          stand still, or go on
  ?              all keys
  q, Ctrl-C      quit";

/// For which shell.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  ringmain completions bash > /etc/bash_completion.d/ringmain
  ringmain completions zsh > \"${fpath[1]}/_ringmain\"
  ringmain completions fish > ~/.config/fish/completions/ringmain.fish")]
pub struct CompletionsOptions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,

    /// Complete the arguments of this name, by which the program may be called
    #[arg(long, value_name = "NAME", default_value = "ringmain")]
    pub program: ProgramName,
}

/// A name by which the program is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[expect(missing_docs, reason = "they are names")]
pub enum ProgramName {
    Ringmain,
    Qdrouterd,
    Qdstat,
    Qdmanage,
}

/// Where to write the manual pages.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  ringmain man /usr/local/share/man
  man 8 ringmain-stat")]
pub struct ManOptions {
    /// The folder, which gets folders man8 and man5; it is made if it isn't there
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Reads a number of seconds from a tenth to an hour.
fn parse_interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected seconds, for example 2 or 0.5".to_owned())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("expected 0.1 to 3600 seconds".to_owned())
    }
}
