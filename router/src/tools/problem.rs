//! Why a tool doesn't do what it was asked to, and how its process ends.

use std::io;
use std::process::ExitCode;

use super::names::Called;
use crate::client::Bus;
use crate::client::management::Fault;

/// Why a tool stops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// The arguments make no sense together, or ask for what isn't there: a sentence.
    Usage(String),
    /// The router can't be asked: a sentence, and what the user can do.
    Connection(String),
    /// No answer came in time: a sentence.
    TimedOut(String),
    /// The router refused.
    Refused {
        /// The status of its reply.
        code: i64,
        /// What it says.
        description: String,
    },
    /// Something on this side: a file, the terminal.
    Local(String),
    /// Whoever reads the output has gone: nothing more is to be said.
    NobodyReads,
    /// The user stopped it.
    Stopped,
}

impl Problem {
    /// Arguments that make no sense.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// What came of a connection to `bus`.
    pub(super) fn of(fault: Fault, bus: &Bus) -> Self {
        match fault {
            Fault::Connection(message) if message.contains("refused (os error") => Self::Connection(format!(
                "{message}\nNo router listens on {bus}. Start one ('ringmain -c FILE'), or say where it is: \
                 --bus HOST:PORT"
            )),
            Fault::Connection(message) => Self::Connection(message),
            Fault::TimedOut(message) => Self::TimedOut(message),
            Fault::Refused { code, description } => Self::Refused { code, description },
            Fault::Stopped => Self::Stopped,
        }
    }

    /// Whether the connection to the router is as good as before, so that it can be closed in good order.
    pub(super) fn leaves_connection(&self) -> bool {
        match self {
            Self::Connection(_) | Self::TimedOut(_) => false,
            Self::Usage(_) | Self::Refused { .. } | Self::Local(_) | Self::NobodyReads | Self::Stopped => {
                true
            }
        }
    }

    /// What came of writing to standard output.
    pub(super) fn of_output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::NobodyReads;
        }
        Self::Local(format!("can't write to standard output: {error}"))
    }

    /// Says it where the tool's users look for it, and tells how the process is to end.
    #[must_use]
    pub fn report(&self, called: Called, tool: &str) -> ExitCode {
        match (self, called) {
            (Self::NobodyReads | Self::Stopped, _) => {}
            (Self::Usage(message), Called::Dispatch | Called::Skupper) => {
                eprintln!("{tool}: error: {message}");
                return ExitCode::from(2);
            }
            // Those programs print what went wrong on standard output, beginning with the name of an exception.
            (_, Called::Dispatch | Called::Skupper) => println!("{}: {}", self.exception(), self.text()),
            (Self::Refused { code, .. }, Called::Ringmain) => {
                let meaning = meaning(*code);
                eprintln!("ringmain: the router refuses ({code} {meaning}): {}", self.text());
            }
            (_, Called::Ringmain) => eprintln!("ringmain: {}", self.text()),
        }
        match self {
            // A reader that wants no more (`| head`) is no failure.
            Self::NobodyReads => ExitCode::SUCCESS,
            Self::Usage(_)
            | Self::Connection(_)
            | Self::TimedOut(_)
            | Self::Refused { .. }
            | Self::Local(_)
            | Self::Stopped => ExitCode::FAILURE,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Usage(text)
            | Self::Connection(text)
            | Self::TimedOut(text)
            | Self::Refused { description: text, .. }
            | Self::Local(text) => text,
            Self::NobodyReads | Self::Stopped => "",
        }
    }

    /// What scripts look for in the output of `qdmanage`.
    fn exception(&self) -> &'static str {
        match self {
            Self::Refused { code: 400, .. } => "BadRequestStatus",
            Self::Refused { code: 401, .. } => "UnauthorizedStatus",
            Self::Refused { code: 403, .. } => "ForbiddenStatus",
            Self::Refused { code: 404, .. } => "NotFoundStatus",
            Self::Refused { code: 500, .. } => "InternalServerErrorStatus",
            Self::Refused { code: 501, .. } => "NotImplementedStatus",
            Self::Refused { .. } => "ManagementError",
            Self::Connection(_) => "ConnectionException",
            Self::TimedOut(_) => "Timeout",
            Self::Usage(_) => "UsageError",
            Self::Local(_) | Self::NobodyReads | Self::Stopped => "OSError",
        }
    }
}

/// What a status means (AMQP management takes HTTP's).
fn meaning(code: i64) -> &'static str {
    match code {
        400 => "bad request",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not found",
        500 => "internal error",
        501 => "not implemented",
        _ => "error",
    }
}
