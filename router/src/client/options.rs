//! What can be asked of `ringmain send` and `ringmain receive`. The comments here are their `--help`.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use clap::{Args, ValueEnum};

use super::sasl::SaslOptions;
use super::tls::TlsOptions;
use super::url::Target;

/// The most that `--size` makes: a message of this size is built in memory.
const SIZE_MAX: u64 = 1 << 30;

/// Options of `ringmain send`.
#[derive(Args, Clone, Debug)]
#[command(after_help = SEND_HELP)]
pub struct SendOptions {
    /// Where to.
    #[arg(value_name = "URL/ADDRESS", help = "Where to: amqp://[USER@]HOST[:PORT]/ADDRESS")]
    pub target: Target,

    /// How many messages
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub count: u64,

    /// Send this text as the body (an AMQP string)
    #[arg(short, long, value_name = "TEXT", default_value = "Hello", conflicts_with = "size")]
    pub body: String,

    /// Send a body of so many bytes (AMQP data): 200, 64k, 10M, 1G
    #[arg(short, long, value_name = "BYTES", value_parser = parse_size)]
    pub size: Option<u64>,

    /// Send messages settled: fast, without knowing what becomes of them
    #[arg(long)]
    pub presettled: bool,

    /// Name the address in each message (its `to`) rather than in the link
    #[arg(long)]
    pub anonymous: bool,

    /// Send at most so many messages a second
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,

    /// Give up when nothing has moved for so many seconds; 0: never
    #[arg(short, long, value_name = "SECONDS", default_value = "10")]
    pub timeout: Timeout,

    /// The message's subject
    #[arg(long, value_name = "TEXT")]
    pub subject: Option<String>,

    /// The address for replies
    #[arg(long, value_name = "ADDRESS")]
    pub reply_to: Option<String>,

    /// The message's correlation-id
    #[arg(long, value_name = "TEXT")]
    pub correlation_id: Option<String>,

    /// The body's content type
    #[arg(long, value_name = "TYPE", value_parser = parse_symbol)]
    pub content_type: Option<String>,

    /// The message's priority
    #[arg(long, value_name = "0-255")]
    pub priority: Option<u8>,

    /// The message's time to live, in milliseconds
    #[arg(long, value_name = "MS")]
    pub ttl: Option<u32>,

    /// Mark messages as durable
    #[arg(long)]
    pub durable: bool,

    /// An application property; may be given several times
    #[arg(short, long = "property", value_name = "KEY=VALUE")]
    pub properties: Vec<Property>,

    /// Don't print the summary
    #[arg(short, long)]
    pub quiet: bool,

    /// As whom to connect.
    #[command(flatten)]
    pub sasl: SaslOptions,

    /// How to encrypt.
    #[command(flatten)]
    pub tls: TlsOptions,
}

const SEND_HELP: &str = "\
Examples:
  ringmain send amqp://127.0.0.1/hello --body 'Good morning'
  ringmain send amqp://127.0.0.1/orders --count 100000 --size 200 --presettled
  ringmain send amqp://[::1]:5672/orders --subject new --property region=eu

The summary goes to standard error. A sender whose address has no receiver waits for one.

Exit status:
  0  every message was accepted (or, with --presettled, sent)
  1  no connection, refused, lost, or wrong usage
  2  some messages were rejected, released or modified
  3  timed out, or stopped by Ctrl-C before the end";

/// Options of `ringmain receive`.
#[derive(Args, Clone, Debug)]
#[command(after_help = RECEIVE_HELP)]
pub struct ReceiveOptions {
    /// Where from.
    #[arg(value_name = "URL/ADDRESS", help = "Where from: amqp://[USER@]HOST[:PORT]/ADDRESS")]
    pub target: Target,

    /// Stop after so many messages; without it, go on until Ctrl-C
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// How many messages the router may send ahead
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub credit: u32,

    /// Stop when nothing has come for so many seconds; 0: never
    #[arg(short, long, value_name = "SECONDS", default_value = "0")]
    pub timeout: Timeout,

    /// What to print of each message
    #[arg(long, value_name = "WHAT", default_value = "body")]
    pub print: Print,

    /// What to do with each message
    #[arg(short, long, value_name = "OUTCOME", default_value = "accept")]
    pub outcome: OutcomeChoice,

    /// Ask for messages that are settled already
    #[arg(long)]
    pub presettled: bool,

    /// Don't print the summary
    #[arg(short, long)]
    pub quiet: bool,

    /// As whom to connect.
    #[command(flatten)]
    pub sasl: SaslOptions,

    /// How to encrypt.
    #[command(flatten)]
    pub tls: TlsOptions,
}

const RECEIVE_HELP: &str = "\
Examples:
  ringmain receive amqp://127.0.0.1/hello
  ringmain receive amqp://127.0.0.1/orders --count 10 --print full
  ringmain receive amqp://127.0.0.1/orders --timeout 5 --print none

Messages go to standard output, one a line (--print full: several); the summary goes to standard error.

Exit status:
  0  --count messages were received; without --count, it was stopped (Ctrl-C or --timeout)
  1  no connection, refused, lost, or wrong usage
  3  stopped before --count messages were received";

/// What `ringmain receive` prints of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Print {
    /// The body, on one line
    Body,
    /// Every section
    Full,
    /// Nothing
    None,
}

/// What `ringmain receive` does with a message (AMQP 1.0 §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OutcomeChoice {
    /// Accepted: it was processed
    Accept,
    /// Rejected: it can't be processed
    Reject,
    /// Released: another receiver may have it
    Release,
    /// Modified: its delivery failed here
    Modify,
}

/// How long to wait; `None`: for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeout(pub Option<Duration>);

impl FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || "expected seconds, for example 5 or 0.5".to_owned();
        let seconds: f64 = text.parse().map_err(|_| fault())?;
        let duration = Duration::try_from_secs_f64(seconds).map_err(|_| fault())?;
        Ok(Self(if duration.is_zero() { None } else { Some(duration) }))
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.unwrap_or_default().as_secs_f64())
    }
}

/// An application property, a string by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl FromStr for Property {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            Some(_) | None => Err("expected KEY=VALUE".to_owned()),
        }
    }
}

/// Reads a number of bytes, with `k`, `M` or `G` for powers of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        Some(_) | None => (text, 0),
    };
    let number: u64 =
        digits.parse().map_err(|_| "expected a number of bytes, for example 200, 64k or 10M")?;
    number
        .checked_mul(1 << shift)
        .filter(|size| *size <= SIZE_MAX)
        .ok_or_else(|| format!("at most {SIZE_MAX} bytes (1G)"))
}

/// Takes ASCII only, as symbols consist of it (AMQP 1.0 §1.6.21).
fn parse_symbol(text: &str) -> Result<String, String> {
    if text.is_ascii() { Ok(text.to_owned()) } else { Err("expected ASCII characters only".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::{Property, Timeout, parse_size};
    use core::time::Duration;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("200"), Ok(200));
        assert_eq!(parse_size("64k"), Ok(65536));
        assert_eq!(parse_size("10M"), Ok(10 * 1024 * 1024));
        assert_eq!(parse_size("1G"), Ok(1 << 30));
        assert!(parse_size("2G").is_err());
        assert!(parse_size("99999999999999999999").is_err());
        assert!(parse_size("k").is_err());
        assert!(parse_size("").is_err());
    }

    #[test]
    fn timeouts() {
        assert_eq!("0".parse(), Ok(Timeout(None)));
        assert_eq!("0.5".parse(), Ok(Timeout(Some(Duration::from_millis(500)))));
        assert!("-1".parse::<Timeout>().is_err());
        assert!("nan".parse::<Timeout>().is_err());
        assert!("1e99".parse::<Timeout>().is_err());
    }

    #[test]
    fn properties() {
        let property: Property = "a=b=c".parse().unwrap();
        assert_eq!((property.key.as_str(), property.value.as_str()), ("a", "b=c"));
        assert!("=b".parse::<Property>().is_err());
        assert!("a".parse::<Property>().is_err());
    }
}
