//! Error conditions and the `error` composite (AMQP 1.0 §2.8.14 to §2.8.18, §4.5.8).

use core::fmt;

use crate::composite::Fields;
use crate::cursor::Cursor;
use crate::descriptor;
use crate::error::{Full, Malformed};
use crate::primitive::{Decode, Encode, Symbol};
use crate::value::Value;
use crate::writer::Writer;

/// An error condition: the symbol that says why an endpoint is closed or a delivery rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition(
    /// The symbol, ASCII.
    pub &'static str,
);

macro_rules! conditions {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal,)+) => {
        impl Condition {
            $($(#[$doc])* pub const $name: Self = Self($symbol);)+

            /// Every condition that the specification defines.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}

conditions! {
    /// An internal error occurred; an operator may have to look.
    INTERNAL_ERROR = "amqp:internal-error",
    /// The peer asked for something that doesn't exist.
    NOT_FOUND = "amqp:not-found",
    /// The peer may not do that to this resource.
    UNAUTHORIZED_ACCESS = "amqp:unauthorized-access",
    /// Data couldn't be decoded.
    DECODE_ERROR = "amqp:decode-error",
    /// The peer used more than its share.
    RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded",
    /// Inconsistent with what is allowed here and now.
    NOT_ALLOWED = "amqp:not-allowed",
    /// A field of a frame body has an invalid value.
    INVALID_FIELD = "amqp:invalid-field",
    /// A function that isn't implemented.
    NOT_IMPLEMENTED = "amqp:not-implemented",
    /// Another client works with the resource.
    RESOURCE_LOCKED = "amqp:resource-locked",
    /// A precondition doesn't hold.
    PRECONDITION_FAILED = "amqp:precondition-failed",
    /// A resource in use was deleted.
    RESOURCE_DELETED = "amqp:resource-deleted",
    /// A frame that the state doesn't permit.
    ILLEGAL_STATE = "amqp:illegal-state",
    /// The smallest possible frame exceeds the peer's maximum.
    FRAME_SIZE_TOO_SMALL = "amqp:frame-size-too-small",
    /// An operator, or the end of the process, closes the connection.
    CONNECTION_FORCED = "amqp:connection:forced",
    /// A frame that isn't well formed, or too large.
    FRAMING_ERROR = "amqp:connection:framing-error",
    /// The container is found elsewhere.
    CONNECTION_REDIRECT = "amqp:connection:redirect",
    /// The peer sent more transfers than the session's window had room for.
    WINDOW_VIOLATION = "amqp:session:window-violation",
    /// Input for a link after it was detached with an error.
    ERRANT_LINK = "amqp:session:errant-link",
    /// An attach on a handle in use.
    HANDLE_IN_USE = "amqp:session:handle-in-use",
    /// A frame other than attach on a handle without a link.
    UNATTACHED_HANDLE = "amqp:session:unattached-handle",
    /// An operator detaches the link.
    DETACH_FORCED = "amqp:link:detach-forced",
    /// More deliveries than credit.
    TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded",
    /// A message larger than the link's maximum.
    MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded",
    /// The address is found elsewhere.
    LINK_REDIRECT = "amqp:link:redirect",
    /// The link was attached elsewhere.
    STOLEN = "amqp:link:stolen",
    /// No such transaction (§4.5.8).
    TRANSACTION_UNKNOWN_ID = "amqp:transaction:unknown-id",
    /// The transaction was rolled back (§4.5.8).
    TRANSACTION_ROLLBACK = "amqp:transaction:rollback",
    /// The transaction took too long (§4.5.8).
    TRANSACTION_TIMEOUT = "amqp:transaction:timeout",
}

impl Condition {
    /// The symbol's text.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The symbol, as the [`Error`] composite holds it.
    pub const fn as_symbol(self) -> Symbol<'static> {
        Symbol(self.0)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Details of an error (§2.8.14, `amqp:error:list`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Error<'b> {
    /// The condition; one of [`Condition`]'s or another that both sides know.
    pub condition: Symbol<'b>,
    /// Supplementary text for a human.
    pub description: Option<&'b str>,
    /// A map with further details.
    pub info: Option<Value<'b>>,
}

impl<'b> Error<'b> {
    /// An error with a condition and nothing else.
    pub const fn new(condition: Condition) -> Self {
        Self { condition: condition.as_symbol(), description: None, info: None }
    }
}

impl<'b> Decode<'b> for Error<'b> {
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let mut fields = Fields::open(cursor, descriptor::ERROR, field)?;
        let error = Self {
            condition: fields.required("error.condition")?,
            description: fields.optional("error.description")?,
            info: fields.map("error.info")?,
        };
        fields.finish("error")?;
        Ok(error)
    }
}

impl Encode for Error<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::ERROR, |fields| {
            fields.field(&self.condition)?;
            fields.optional(&self.description)?;
            fields.optional(&self.info)
        })
    }
}
