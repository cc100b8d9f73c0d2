//! How a client ends before its work is done.

use std::process::ExitCode;

/// Why a client stopped early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// The connection or the link couldn't be had or was lost, or the output couldn't be written.
    Failed(String),
    /// Nothing moved for as long as the user wanted to wait.
    TimedOut(String),
    /// The user stopped it, twice.
    Stopped,
}

/// What a client's process ends with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Status 0: everything was accepted or received.
    Done,
    /// Status 1: no connection, refused, lost.
    Failed,
    /// Status 2: some messages were rejected, released or modified.
    NotAccepted,
    /// Status 3: timed out, or stopped before the end.
    Unfinished,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(match status {
            Status::Done => 0,
            Status::Failed => 1,
            Status::NotAccepted => 2,
            Status::Unfinished => 3,
        })
    }
}
