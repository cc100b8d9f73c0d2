//! What a peer can do wrong, and which endpoint that closes.

use super::event::LinkRef;
use crate::base::id::Channel;
use crate::base::limits::DESCRIPTION_BYTES_MAX;
use ringmain_codec::{Condition, Malformed};
use std::borrow::Cow;
use std::fmt;

/// An error condition and a sentence for the person who reads it (AMQP 1.0 §2.8.14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The condition.
    pub condition: Condition,
    /// What was wrong, at most [`DESCRIPTION_BYTES_MAX`] bytes.
    pub description: Cow<'static, str>,
}

impl Fault {
    /// A fault with a fixed sentence.
    #[must_use]
    pub const fn new(condition: Condition, description: &'static str) -> Self {
        Self { condition, description: Cow::Borrowed(description) }
    }

    /// A fault with a sentence made for the occasion; it is cut where it is too long for a frame.
    #[must_use]
    pub fn describe(condition: Condition, mut description: String) -> Self {
        if description.len() > DESCRIPTION_BYTES_MAX {
            let mut end = DESCRIPTION_BYTES_MAX;
            while !description.is_char_boundary(end) {
                end -= 1;
            }
            description.truncate(end);
        }
        Self { condition, description: Cow::Owned(description) }
    }

    /// The error as it goes into a performative.
    #[must_use]
    pub fn error(&self) -> ringmain_codec::Error<'_> {
        ringmain_codec::Error {
            condition: ringmain_codec::Symbol(self.condition.as_str()),
            description: Some(&self.description),
            info: None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.condition.as_str(), self.description)
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::describe(malformed.condition(), malformed.to_string())
    }
}

/// A fault of the peer, and the endpoint that it costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The connection is closed.
    Connection(Fault),
    /// The session is ended.
    Session(Channel, Fault),
    /// The link is detached (closed).
    Link(LinkRef, Fault),
}

impl Violation {
    pub(super) fn connection(condition: Condition, description: impl Into<String>) -> Self {
        Self::Connection(Fault::describe(condition, description.into()))
    }

    pub(super) fn session(channel: Channel, condition: Condition, description: impl Into<String>) -> Self {
        Self::Session(channel, Fault::describe(condition, description.into()))
    }

    pub(super) fn link(link: LinkRef, condition: Condition, description: impl Into<String>) -> Self {
        Self::Link(link, Fault::describe(condition, description.into()))
    }
}

impl From<Malformed> for Violation {
    fn from(malformed: Malformed) -> Self {
        Self::Connection(malformed.into())
    }
}
