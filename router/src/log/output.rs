//! The ends of the log: files, standard streams, the system's log.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use super::format::{Record, append};
use super::level::Level;
use super::settings::Destination;

/// Where the system's log takes messages.
const SYSLOG_SOCKET: &str = "/dev/log";

/// The facility "daemon" of RFC 3164 §4.1.1.
const FACILITY_DAEMON: u8 = 3;

/// An open destination.
#[derive(Debug)]
pub(super) enum Output {
    Stderr,
    Stdout,
    File(File),
    Syslog(Syslog),
}

impl Output {
    /// Opens the destination.
    pub(super) fn open(destination: &Destination) -> io::Result<Self> {
        match destination {
            Destination::Stderr => Ok(Self::Stderr),
            Destination::Stdout => Ok(Self::Stdout),
            Destination::Syslog => Ok(Self::Syslog(Syslog { socket: None })),
            Destination::File(path) => open_file(path).map(Self::File),
        }
    }

    /// Whether lines are to be built for it; the system's log builds its own.
    pub(super) const fn takes_lines(&self) -> bool {
        match self {
            Self::Stderr | Self::Stdout | Self::File(_) => true,
            Self::Syslog(_) => false,
        }
    }

    /// Writes one line in one call, so that lines of several processes don't mix.
    ///
    /// A log that can't be written is no reason to stop routing, and there is nowhere to say so: the
    /// line is lost.
    pub(super) fn write(&mut self, record: &Record, line: &str) {
        match self {
            Self::Stderr => drop(io::stderr().write_all(line.as_bytes())),
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                drop(stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()));
            }
            Self::File(file) => drop(file.write_all(line.as_bytes())),
            Self::Syslog(syslog) => syslog.send(record),
        }
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|error| {
        io::Error::new(error.kind(), format!("can't open the log file '{}': {error}", path.display()))
    })
}

/// The socket of the system's log, opened when it is needed and again after it was lost.
#[derive(Debug)]
pub(super) struct Syslog {
    socket: Option<UnixDatagram>,
}

impl Syslog {
    /// Sends one message; if the system's log is away, it is lost.
    fn send(&mut self, record: &Record) {
        let message = syslog_message(record, std::process::id());
        for _ in 0..2 {
            if self.socket.is_none() {
                self.socket = connect().ok();
            }
            match &self.socket {
                Some(socket) if socket.send(message.as_bytes()).is_ok() => return,
                // The daemon may have been started anew: once more with a new socket.
                Some(_) => self.socket = None,
                None => return,
            }
        }
    }
}

fn connect() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(SYSLOG_SOCKET)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// `<PRIORITY>ringmain[PID]: MODULE (level) text`. The time is left to the system's log (RFC 3164 §4.3.2).
fn syslog_message(record: &Record, process_id: u32) -> String {
    let severity = match record.level {
        Level::Trace | Level::Debug => 7,
        Level::Info => 6,
        Level::Notice => 5,
        Level::Warning => 4,
        Level::Error => 3,
        Level::Critical => 2,
    };
    let mut message = String::new();
    append(&mut message, format_args!("<{}>ringmain[{process_id}]: ", FACILITY_DAEMON * 8 + severity));
    record.write_body(&mut message);
    message
}

#[cfg(test)]
mod tests {
    use super::{Record, syslog_message};
    use crate::log::{Level, Module, Source};

    /// RFC 3164 §4.1.1: priority is facility × 8 + severity; daemon is 3, error is 3.
    #[test]
    fn syslog_priority() {
        let source = Source { file: "a.rs", line: 1 };
        let record = Record::now(Module::Server, Level::Error, source, format_args!("text"));
        assert_eq!(syslog_message(&record, 7), "<27>ringmain[7]: SERVER (error) text");
    }
}
