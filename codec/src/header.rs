//! The protocol header that opens every layer (AMQP 1.0 §2.2, §5.2.1, §5.3.1).
//!
//! ```text
//! | 'A' 'M' 'Q' 'P' | id | major | minor | revision |
//! ```

use crate::error::{Malformed, MalformedKind};

/// The layer that a protocol header asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolId {
    /// AMQP itself, 0.
    Amqp,
    /// TLS negotiated inside the connection, 2.
    Tls,
    /// SASL, 3.
    Sasl,
}

/// A protocol header. Any version is decoded: what is supported is for the connection to say, by comparing
/// with the constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolHeader {
    /// The layer.
    pub id: ProtocolId,
    /// Major version; 1 in all that this crate speaks.
    pub major: u8,
    /// Minor version.
    pub minor: u8,
    /// Revision.
    pub revision: u8,
}

impl ProtocolHeader {
    /// AMQP 1.0.0.
    pub const AMQP: Self = Self { id: ProtocolId::Amqp, major: 1, minor: 0, revision: 0 };
    /// SASL for AMQP 1.0.0.
    pub const SASL: Self = Self { id: ProtocolId::Sasl, major: 1, minor: 0, revision: 0 };
    /// TLS for AMQP 1.0.0.
    pub const TLS: Self = Self { id: ProtocolId::Tls, major: 1, minor: 0, revision: 0 };
    /// Bytes of a header.
    pub const LEN: usize = 8;

    /// Reads the header that `input` begins with; `None` when `input` is a beginning of one: read more.
    ///
    /// # Errors
    /// [`MalformedKind::ProtocolHeader`] at the first byte that no header has there.
    pub fn decode(input: &[u8]) -> Result<Option<Self>, Malformed> {
        const NAME: &[u8; 4] = b"AMQP";
        let wrong = |offset| Malformed { kind: MalformedKind::ProtocolHeader, offset, field: "" };
        if let Some(offset) = input.iter().zip(NAME).position(|(found, expected)| found != expected) {
            return Err(wrong(offset));
        }
        let id = match input.get(NAME.len()) {
            None => return Ok(None),
            Some(0) => ProtocolId::Amqp,
            Some(2) => ProtocolId::Tls,
            Some(3) => ProtocolId::Sasl,
            Some(_) => return Err(wrong(NAME.len())),
        };
        Ok(match input {
            [_, _, _, _, _, major, minor, revision, ..] => {
                Some(Self { id, major: *major, minor: *minor, revision: *revision })
            }
            _ => None,
        })
    }

    /// The header's bytes.
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        let id = match self.id {
            ProtocolId::Amqp => 0,
            ProtocolId::Tls => 2,
            ProtocolId::Sasl => 3,
        };
        [b'A', b'M', b'Q', b'P', id, self.major, self.minor, self.revision]
    }
}
