//! Replies (router-protocol reference §10.3).

use super::field::{Field, encoded};
use super::request::Request;
use ringmain_codec::{Header, Properties, SectionKind};

/// How an operation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    Ok,
    Created,
    NoContent,
    BadRequest,
    Forbidden,
    NotFound,
    InternalError,
    NotImplemented,
}

impl Status {
    /// Its number.
    pub(super) const fn code(self) -> i32 {
        match self {
            Self::Ok => 200,
            Self::Created => 201,
            Self::NoContent => 204,
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::InternalError => 500,
            Self::NotImplemented => 501,
        }
    }

    /// What is said where there is nothing more particular to say.
    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Created => "Created",
            Self::NoContent => "No Content",
            Self::BadRequest => "Bad Request",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not Found",
            Self::InternalError => "Internal Error",
            Self::NotImplemented => "Not Implemented",
        }
    }
}

/// Why an operation wasn't done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    pub(super) status: Status,
    pub(super) description: String,
    /// Whether the reply's body is null rather than an empty map, as some of `qdrouterd`'s are.
    is_null: bool,
}

impl Refusal {
    /// A refusal with a sentence for whoever asked.
    pub(super) fn new(status: Status, description: impl Into<String>) -> Self {
        Self { status, description: description.into(), is_null: false }
    }

    /// The same with null for a body.
    pub(super) fn of_core(mut self) -> Self {
        self.is_null = true;
        self
    }

    /// A refusal of which nothing more is said.
    pub(super) fn bare(status: Status) -> Self {
        Self::new(status, status.description())
    }

    /// 400 with a sentence for whoever asked.
    pub(super) fn bad(description: impl Into<String>) -> Self {
        Self::new(Status::BadRequest, description)
    }
}

/// What an operation leads to: its status and the reply's body.
pub(super) type Outcome<'a> = Result<(Status, Field<'a>), Refusal>;

/// An answer as a message, or why the operation wasn't done.
pub(super) type Answer = Result<Vec<u8>, Refusal>;

/// The message that answers `request`.
pub(super) fn message(request: &Request<'_>, outcome: &Outcome<'_>) -> Vec<u8> {
    message_of(request, outcome, 1024)
}

/// The same, which takes about `guess` bytes.
pub(super) fn message_of(request: &Request<'_>, outcome: &Outcome<'_>, guess: usize) -> Vec<u8> {
    let (status, description, body) = match outcome {
        Ok((status, body)) => (*status, status.description(), body),
        Err(refusal) if refusal.is_null => (refusal.status, refusal.description.as_str(), &Field::Null),
        Err(refusal) => (refusal.status, refusal.description.as_str(), &Field::Map(Vec::new())),
    };
    encoded(guess, |writer| {
        writer.put(&Header::default())?;
        writer.put(&Properties {
            to: Some(request.reply_to),
            correlation_id: request.correlation_id,
            ..Properties::default()
        })?;
        writer.described(SectionKind::ApplicationProperties.descriptor().code, |writer| {
            writer.map(|writer| {
                writer.put("statusCode")?;
                writer.put(&status.code())?;
                writer.put("statusDescription")?;
                writer.put(description)
            })
        })?;
        writer.described(SectionKind::AmqpValue.descriptor().code, |writer| writer.put(body))
    })
}
