//! The names of the mechanisms, and how far each is trusted.

use std::fmt;

/// A SASL mechanism that the router knows. The order is that of preference, the best first: what shows the server
/// nothing that it could use elsewhere comes before what does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mechanism {
    /// `EXTERNAL` (RFC 4422 appendix A): who the peer is was shown by its certificate.
    External,
    /// `SCRAM-SHA-512` (RFC 5802, as RFC 7677 has it for SHA-256).
    ScramSha512,
    /// `SCRAM-SHA-256` (RFC 7677).
    ScramSha256,
    /// `SCRAM-SHA-1` (RFC 5802).
    ScramSha1,
    /// `PLAIN` (RFC 4616).
    Plain,
    /// `ANONYMOUS` (RFC 4505).
    Anonymous,
}

impl Mechanism {
    /// All of them, the best first.
    pub const ALL: [Self; 6] =
        [Self::External, Self::ScramSha512, Self::ScramSha256, Self::ScramSha1, Self::Plain, Self::Anonymous];

    /// The registered name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::External => "EXTERNAL",
            Self::ScramSha512 => "SCRAM-SHA-512",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha1 => "SCRAM-SHA-1",
            Self::Plain => "PLAIN",
            Self::Anonymous => crate::engine::sasl::ANONYMOUS,
        }
    }

    /// Whether it takes a user with a password.
    #[must_use]
    pub const fn has_password(self) -> bool {
        match self {
            Self::ScramSha512 | Self::ScramSha256 | Self::ScramSha1 | Self::Plain => true,
            Self::External | Self::Anonymous => false,
        }
    }

    /// The mechanism of a name. Names are upper-case; files may have them otherwise.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
