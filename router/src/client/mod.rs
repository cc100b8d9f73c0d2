//! Small clients on the router's own codec and engine: `ringmain send`, `ringmain receive`, and the requests
//! to a router's management node that `ringmain stat`, `manage` and `top` make.
//!
//! ```text
//! options -> send/receive (what is wanted) -> endpoint (the way to a link) -> wire (socket and engine)
//! ```
//!
//! They wait with poll and run on one thread, so that they work on any Linux; a second thread waits for
//! signals.

mod endpoint;
mod failure;
mod interrupt;
mod json;
pub mod management;
mod message;
mod options;
mod receive;
mod sasl;
mod send;
mod show;
mod summary;
mod tls;
mod url;
mod wire;

#[cfg(test)]
mod tests;

pub use failure::Status;
pub use options::{OutcomeChoice, Print, Property, ReceiveOptions, SendOptions, Timeout};
pub use receive::receive;
pub use sasl::SaslOptions;
pub use send::send;
pub use tls::TlsOptions;
pub use url::{Bus, Login, Target};

use failure::Failure;
use summary::Summary;

/// Says on standard error, which scripts that read messages don't see, what went wrong and what was
/// done, and gives back how the process is to end.
fn conclude(
    result: Result<(), Failure>,
    finished: Status,
    summary: Option<&Summary>,
    rejection: Option<&str>,
) -> Status {
    let status = match &result {
        Ok(()) => finished,
        Err(Failure::Stopped) => Status::Unfinished,
        Err(Failure::Failed(message)) => {
            eprintln!("ringmain: {message}");
            Status::Failed
        }
        Err(Failure::TimedOut(message)) => {
            eprintln!("ringmain: {message}");
            Status::Unfinished
        }
    };
    // What never began needs no summing up.
    let summary = summary.filter(|summary| status != Status::Failed || summary.messages > 0);
    if let Some(summary) = summary {
        // In one piece: two clients may share a terminal.
        let mut line = summary.to_string();
        if let Some(reason) = rejection {
            line.push_str("; first rejection: ");
            line.push_str(reason);
        }
        line.push('\n');
        eprint!("{line}");
    }
    status
}
