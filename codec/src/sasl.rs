//! SASL frames (AMQP 1.0 §5.3.3).

use crate::composite::Fields;
use crate::cursor::Cursor;
use crate::descriptor::{self, numeric};
use crate::error::{Full, Malformed, MalformedKind};
use crate::primitive::{Decode, Encode, Symbol};
use crate::symbols::Symbols;
use crate::writer::Writer;

/// The body of a SASL frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SaslFrame<'b> {
    /// What the server offers.
    Mechanisms(SaslMechanisms<'b>),
    /// What the client chooses.
    Init(SaslInit<'b>),
    /// What the server asks.
    Challenge(SaslChallenge<'b>),
    /// What the client answers.
    Response(SaslResponse<'b>),
    /// How it ended.
    Outcome(SaslOutcome<'b>),
}

/// The mechanisms that a server offers (§5.3.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SaslMechanisms<'b> {
    /// In descending order of preference; at least one.
    pub sasl_server_mechanisms: Symbols<'b>,
}

/// The mechanism that a client chose (§5.3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaslInit<'b> {
    /// One of those offered.
    pub mechanism: Symbol<'b>,
    /// The first response; present and empty differs from absent.
    pub initial_response: Option<&'b [u8]>,
    /// The host that the client means to reach.
    pub hostname: Option<&'b str>,
}

/// A challenge of the mechanism (§5.3.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaslChallenge<'b> {
    /// Opaque to AMQP.
    pub challenge: &'b [u8],
}

/// The answer to a challenge (§5.3.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaslResponse<'b> {
    /// Opaque to AMQP.
    pub response: &'b [u8],
}

/// The end of the dialogue (§5.3.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaslOutcome<'b> {
    /// How it ended.
    pub code: SaslCode,
    /// What the mechanism adds to success.
    pub additional_data: Option<&'b [u8]>,
}

/// How a SASL dialogue ended (§5.3.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaslCode {
    /// Authenticated, 0.
    Ok,
    /// Wrong credentials, 1.
    Auth,
    /// A system error, 2.
    Sys,
    /// A system error that a retry won't heal, 3.
    SysPerm,
    /// A system error that a retry may heal, 4.
    SysTemp,
}

impl<'b> SaslFrame<'b> {
    /// Reads the body of a SASL frame, which is one performative and nothing else.
    ///
    /// # Errors
    /// [`Malformed`]: not a SASL performative, a bad field, or bytes after it.
    pub fn decode(body: &'b [u8]) -> Result<Self, Malformed> {
        let cursor = &mut Cursor::new(body);
        let start = *cursor;
        let frame = match descriptor::read(cursor, "SASL performative", "")? {
            Some(numeric::SASL_MECHANISMS) => {
                let field = "sasl-mechanisms.sasl-server-mechanisms";
                let mut fields = Fields::list(cursor, "sasl-mechanisms")?;
                let sasl_server_mechanisms: Symbols<'_> = fields.required(field)?;
                // §1.4: a field that is both multiple and mandatory has at least one value.
                if sasl_server_mechanisms.is_empty() {
                    return Err(fields.absent(field));
                }
                fields.finish("sasl-mechanisms")?;
                Self::Mechanisms(SaslMechanisms { sasl_server_mechanisms })
            }
            Some(numeric::SASL_INIT) => {
                let mut fields = Fields::list(cursor, "sasl-init")?;
                let init = SaslInit {
                    mechanism: fields.required("sasl-init.mechanism")?,
                    initial_response: fields.optional("sasl-init.initial-response")?,
                    hostname: fields.optional("sasl-init.hostname")?,
                };
                fields.finish("sasl-init")?;
                Self::Init(init)
            }
            Some(numeric::SASL_CHALLENGE) => {
                let mut fields = Fields::list(cursor, "sasl-challenge")?;
                let challenge = fields.required("sasl-challenge.challenge")?;
                fields.finish("sasl-challenge")?;
                Self::Challenge(SaslChallenge { challenge })
            }
            Some(numeric::SASL_RESPONSE) => {
                let mut fields = Fields::list(cursor, "sasl-response")?;
                let response = fields.required("sasl-response.response")?;
                fields.finish("sasl-response")?;
                Self::Response(SaslResponse { response })
            }
            Some(numeric::SASL_OUTCOME) => {
                let mut fields = Fields::list(cursor, "sasl-outcome")?;
                let outcome = SaslOutcome {
                    code: fields.required("sasl-outcome.code")?,
                    additional_data: fields.optional("sasl-outcome.additional-data")?,
                };
                fields.finish("sasl-outcome")?;
                Self::Outcome(outcome)
            }
            Some(_) | None => return Err(start.fail(MalformedKind::UnknownPerformative, "")),
        };
        if cursor.is_empty() {
            Ok(frame)
        } else {
            Err(cursor.fail(MalformedKind::TrailingBytes, frame.name()))
        }
    }

    /// The specification's name of it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Mechanisms(_) => "sasl-mechanisms",
            Self::Init(_) => "sasl-init",
            Self::Challenge(_) => "sasl-challenge",
            Self::Response(_) => "sasl-response",
            Self::Outcome(_) => "sasl-outcome",
        }
    }
}

impl Encode for SaslFrame<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Mechanisms(mechanisms) => mechanisms.encode(writer),
            Self::Init(init) => init.encode(writer),
            Self::Challenge(challenge) => challenge.encode(writer),
            Self::Response(response) => response.encode(writer),
            Self::Outcome(outcome) => outcome.encode(writer),
        }
    }
}

impl Encode for SaslMechanisms<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::SASL_MECHANISMS, |fields| fields.field(&self.sasl_server_mechanisms))
    }
}

impl Encode for SaslInit<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::SASL_INIT, |fields| {
            fields.field(&self.mechanism)?;
            fields.optional(&self.initial_response)?;
            fields.optional(&self.hostname)
        })
    }
}

impl Encode for SaslChallenge<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::SASL_CHALLENGE, |fields| fields.field(self.challenge))
    }
}

impl Encode for SaslResponse<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::SASL_RESPONSE, |fields| fields.field(self.response))
    }
}

impl Encode for SaslOutcome<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::SASL_OUTCOME, |fields| {
            fields.field(&self.code)?;
            fields.optional(&self.additional_data)
        })
    }
}

impl Decode<'_> for SaslCode {
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        match u8::decode(cursor, field)? {
            0 => Ok(Self::Ok),
            1 => Ok(Self::Auth),
            2 => Ok(Self::Sys),
            3 => Ok(Self::SysPerm),
            4 => Ok(Self::SysTemp),
            other => Err(start.fail(MalformedKind::InvalidChoice(other.into()), field)),
        }
    }
}

impl Encode for SaslCode {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let number: u8 = match self {
            Self::Ok => 0,
            Self::Auth => 1,
            Self::Sys => 2,
            Self::SysPerm => 3,
            Self::SysTemp => 4,
        };
        number.encode(writer)
    }
}
