//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::forwarder::Engine;
use crate::generator::topology::Settle;
use crate::pin::Cpus;

/// How fast an AMQP 1.0 router or broker is.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "ringmain-perf",
    version,
    about = "How fast an AMQP 1.0 router or broker is: beside others, and beside the limit",
    after_help = EXAMPLES,
    disable_help_subcommand = true,
    max_term_width = 110
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ringmain-perf run --quick                         the standard set in about a minute
  ringmain-perf run --scenario ping --runs 5        one scenario, more runs
  ringmain-perf run --target ringmain --target amqp://127.0.0.1:5672
                                                    beside a router that is running
  ringmain-perf load --pairs 8 --size 4k --rate 50k a load of your own, open loop
  ringmain-perf compare before/ after/              what has become faster or slower

Two CPUs are needed, one for the target and one for the generator, and nothing else should be running.";

/// What to do.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Run the standard set, or parts of it
    Run(RunOptions),
    /// Run one load, described by options
    Load(LoadOptions),
    /// Show the scenarios of the standard set
    List,
    /// Compare two reports: what has become better or worse
    Compare(CompareOptions),
    /// Write tables, pictures and page anew from a report.json
    Report {
        /// The folder or its report.json
        #[arg(value_name = "REPORT")]
        path: PathBuf,
    },
    /// Be the plain limit: forward frames between pairs of connections (the harness starts this itself)
    Forwarder(ForwarderOptions),
}

/// What all measurements have in common.
#[derive(Args, Clone, Debug)]
pub struct CommonOptions {
    /// What to measure; repeatable [default: all of the following but URLs]
    ///
    /// ringmain; forwarder (the plain limit, with epoll and with io_uring; also forwarder-epoll and
    /// forwarder-uring); ringmain-spin and forwarder-spin (the same, looking for work before they sleep);
    /// ringmain-counted (what its shards allocate); rabbitmq; activemq; or
    /// `amqp://USER:PASSWORD@HOST:PORT/TEMPLATE` of one that is running, of which only the host is needed: `{}`
    /// in TEMPLATE stands for the name of an address
    #[arg(short, long = "target", value_name = "TARGET")]
    pub targets: Vec<String>,

    /// How often everything is measured; medians are reported
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub runs: Option<u16>,

    /// Where the report goes
    #[arg(short, long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// The CPUs of the targets, such as 0 or 2-3 [default: the first one that may be used]
    #[arg(long, value_name = "CPUS")]
    pub target_cpus: Option<Cpus>,

    /// The CPU of the generator [default: the last one that may be used]
    #[arg(long, value_name = "CPUS")]
    pub generator_cpus: Option<Cpus>,

    /// The router's program [default: 'ringmain' beside this one]
    #[arg(long, value_name = "FILE")]
    pub ringmain: Option<PathBuf>,

    /// A line for the 'router' section of ringmain's configuration, such as 'workerThreads: 1'; repeatable
    #[arg(long, value_name = "LINE")]
    pub router_attribute: Vec<String>,

    /// How long ringmain-spin and forwarder-spin look for work before they sleep
    #[arg(long, value_name = "MICROSECONDS", default_value = "50")]
    pub spin_us: u64,

    /// Let the generator sleep when it has nothing to do; otherwise it keeps its CPU busy, so that its own
    /// waking up is in nobody's latency
    #[arg(long)]
    pub block: bool,
}

/// Which parts of the standard set.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// What all measurements have in common.
    #[command(flatten)]
    pub common: CommonOptions,

    /// Take about a minute instead of ten: shorter, and only once
    #[arg(short, long)]
    pub quick: bool,

    /// Only these scenarios (and those that they build on); repeatable, see 'list'
    #[arg(short, long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,

    /// How many idle connections are made
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub connections: Option<u32>,

    /// How long the slow receivers are slow, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub slow_seconds: Option<u64>,
}

/// A load of one's own.
#[derive(Args, Clone, Debug)]
pub struct LoadOptions {
    /// What all measurements have in common.
    #[command(flatten)]
    pub common: CommonOptions,

    /// Senders with a receiver and an address each
    #[arg(long, value_name = "N", default_value = "1")]
    pub pairs: usize,

    /// Receivers of each address instead of one, each of which gets a copy
    #[arg(long, value_name = "N", conflicts_with_all = ["fan_in", "requests"])]
    pub fan_out: Option<usize>,

    /// Senders to each address instead of one
    #[arg(long, value_name = "N", conflicts_with = "requests")]
    pub fan_in: Option<usize>,

    /// Each message is a request that is answered; measured is the way there and back
    #[arg(long)]
    pub requests: bool,

    /// Senders have no target, each message names its address
    #[arg(long)]
    pub anonymous: bool,

    /// Links on each connection
    #[arg(long, value_name = "N", default_value = "1")]
    pub links: usize,

    /// Sessions on each connection
    #[arg(long, value_name = "N", default_value = "1")]
    pub sessions: usize,

    /// Bytes of each body, such as 100, 4k or 1M
    #[arg(long, value_name = "BYTES", default_value = "100", value_parser = amount)]
    pub size: usize,

    /// The largest frame that is sent, in bytes
    #[arg(long, value_name = "BYTES", default_value = "16k", value_parser = amount)]
    pub frame_size: usize,

    /// Credit that each receiver grants
    #[arg(long, value_name = "N", default_value = "1000")]
    pub credit: u32,

    /// Unsettled messages of each sender at any time [default: as much as the credit]
    #[arg(long, value_name = "N")]
    pub in_flight: Option<u32>,

    /// Send messages settled
    #[arg(long)]
    pub presettled: bool,

    /// How receivers settle
    #[arg(long, value_name = "HOW", default_value = "each")]
    pub settle: Settle,

    /// One message at a time, for its latency
    #[arg(long, conflicts_with = "rate")]
    pub ping: bool,

    /// Messages per second over all senders, such as 20k, timed from when each was to be sent
    /// [default: as many as window and credit allow]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<f64>,

    /// How long to measure, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub seconds: f64,
}

/// Two reports.
#[derive(Args, Clone, Debug)]
pub struct CompareOptions {
    /// The folder or report.json of before
    pub old: PathBuf,

    /// The folder or report.json of after
    pub new: PathBuf,

    /// Show also what hasn't changed by more than the runs differ
    #[arg(short, long)]
    pub all: bool,

    /// Exit with status 1 if any figure has become worse by more than this many percent
    #[arg(long, value_name = "PERCENT")]
    pub fail_over: Option<f64>,
}

/// How to forward.
#[derive(Args, Clone, Debug)]
pub struct ForwarderOptions {
    /// What it waits with
    #[arg(long, value_enum)]
    pub engine: Engine,

    /// Where it listens
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,

    /// How long it looks for work before it sleeps
    #[arg(long, value_name = "MICROSECONDS", default_value = "0")]
    pub spin_us: u64,
}

/// A size in bytes, with k or M for powers of 1024.
fn amount(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1024 * 1024)),
    };
    let number: usize = digits.parse().map_err(|_| format!("'{text}' is no size such as 100, 4k or 1M"))?;
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is too much"))
}

/// A rate, with k or M for powers of 1000.
fn rate(text: &str) -> Result<f64, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    match digits.parse::<f64>() {
        Ok(number) if number > 0.0 && number * factor <= 1e9 => Ok(number * factor),
        Ok(_) | Err(_) => Err(format!("'{text}' is no rate such as 500, 20k or 1.5M")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err(format!("'{text}' is no number of seconds from 0.01 to 86400")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cli, Command, amount, rate};
    use clap::{CommandFactory as _, Parser as _};

    #[test]
    fn clap_finds_no_fault_with_the_definition() {
        Cli::command().debug_assert();
    }

    #[test]
    fn amounts_and_rates() {
        assert_eq!([amount("100"), amount("4k"), amount("1M")], [Ok(100), Ok(4096), Ok(1_048_576)]);
        assert_eq!([rate("20k"), rate("1.5M"), rate("7")], [Ok(20e3), Ok(1.5e6), Ok(7.0)]);
        assert!(amount("k").is_err() && rate("0").is_err() && rate("-1").is_err() && rate("inf").is_err());
    }

    #[test]
    fn options_of_a_load() {
        let cli =
            Cli::try_parse_from("x load --pairs 8 --size 4k --rate 50k -t ringmain".split(' ')).unwrap();
        let Command::Load(load) = cli.command else { panic!() };
        assert_eq!(
            (load.pairs, load.size, load.rate, load.settle),
            (8, 4096, Some(50e3), super::Settle::Each)
        );
        assert!(Cli::try_parse_from("x load --ping --rate 1".split(' ')).is_err());
        assert!(Cli::try_parse_from("x run --runs 0".split(' ')).is_err());
    }
}
