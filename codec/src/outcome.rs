//! Delivery states and outcomes (AMQP 1.0 §3.4; the transactional ones of §4.5 are in
//! [`crate::transaction`]).

use crate::composite::Fields;
use crate::condition::Error;
use crate::constructor::code;
use crate::cursor::Cursor;
use crate::descriptor::{self, numeric};
use crate::error::{Full, Malformed};
use crate::primitive::{Decode, Encode};
use crate::transaction::{Declared, TransactionalState};
use crate::value::Value;
use crate::writer::Writer;

/// The state of a delivery at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeliveryState<'b> {
    /// Partly received; not terminal (§3.4.1).
    Received(Received),
    /// Processed (§3.4.2).
    Accepted,
    /// Invalid and unprocessable (§3.4.3).
    Rejected(Rejected<'b>),
    /// Not processed, nothing changed (§3.4.4).
    Released,
    /// Not processed, the message modified (§3.4.5).
    Modified(Modified<'b>),
    /// A transaction was declared (§4.5.5).
    Declared(Declared<'b>),
    /// Under a transaction; not terminal (§4.5.6).
    Transactional(TransactionalState<'b>),
    /// A described value that the specification doesn't define, as it came.
    Other(Value<'b>),
}

/// How far a delivery was received (§3.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The first section that isn't received completely, counted from 0.
    pub section_number: u32,
    /// Bytes of that section that are received.
    pub section_offset: u64,
}

/// The message is invalid and can't be processed (§3.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rejected<'b> {
    /// Why.
    pub error: Option<Error<'b>>,
}

/// The message was not processed, and is to be changed (§3.4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Modified<'b> {
    /// Count the delivery as an unsuccessful attempt.
    pub delivery_failed: Option<bool>,
    /// Don't send it to this link again.
    pub undeliverable_here: Option<bool>,
    /// A map of annotations to merge into the message's.
    pub message_annotations: Option<Value<'b>>,
}

impl DeliveryState<'_> {
    /// Whether it ends the delivery: it is an outcome.
    ///
    /// Unknown states don't: nothing says that they are outcomes.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Accepted | Self::Rejected(_) | Self::Released | Self::Modified(_) | Self::Declared(_) => {
                true
            }
            Self::Received(_) | Self::Transactional(_) | Self::Other(_) => false,
        }
    }
}

impl<'b> Decode<'b> for DeliveryState<'b> {
    #[inline]
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        // Nearly all that arrive are one of these, in this form.
        const ACCEPTED: u8 = numeric::ACCEPTED as u8;
        const RELEASED: u8 = numeric::RELEASED as u8;
        let (state, rest) = match cursor.rest {
            [code::DESCRIBED, code::SMALLULONG, ACCEPTED, code::LIST0, rest @ ..] => (Self::Accepted, rest),
            [code::DESCRIBED, code::SMALLULONG, RELEASED, code::LIST0, rest @ ..] => (Self::Released, rest),
            _ => return Self::decode_any(cursor, field),
        };
        cursor.rest = rest;
        Ok(state)
    }
}

impl<'b> DeliveryState<'b> {
    /// Every state in every form.
    #[inline(never)]
    fn decode_any(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        let descriptor = descriptor::read(cursor, "delivery state", field)?;
        match descriptor {
            Some(numeric::ACCEPTED) => {
                Fields::list(cursor, field)?.finish("accepted")?;
                Ok(Self::Accepted)
            }
            Some(numeric::RELEASED) => {
                Fields::list(cursor, field)?.finish("released")?;
                Ok(Self::Released)
            }
            Some(numeric::REJECTED) => {
                let mut fields = Fields::list(cursor, field)?;
                let rejected = Rejected { error: fields.optional("rejected.error")? };
                fields.finish("rejected")?;
                Ok(Self::Rejected(rejected))
            }
            Some(numeric::MODIFIED) => {
                let mut fields = Fields::list(cursor, field)?;
                let modified = Modified {
                    delivery_failed: fields.optional("modified.delivery-failed")?,
                    undeliverable_here: fields.optional("modified.undeliverable-here")?,
                    message_annotations: fields.map("modified.message-annotations")?,
                };
                fields.finish("modified")?;
                Ok(Self::Modified(modified))
            }
            Some(numeric::RECEIVED) => {
                let mut fields = Fields::list(cursor, field)?;
                let received = Received {
                    section_number: fields.required("received.section-number")?,
                    section_offset: fields.required("received.section-offset")?,
                };
                fields.finish("received")?;
                Ok(Self::Received(received))
            }
            Some(numeric::DECLARED) => Ok(Self::Declared(Declared::decode_list(cursor, field)?)),
            Some(numeric::TRANSACTIONAL_STATE) => {
                Ok(Self::Transactional(TransactionalState::decode_list(cursor, field)?))
            }
            Some(_) | None => {
                *cursor = start;
                Value::decode(cursor, field).map(Self::Other)
            }
        }
    }
}

impl Encode for DeliveryState<'_> {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Accepted => writer.composite(descriptor::ACCEPTED, |_| Ok(())),
            Self::Released => writer.composite(descriptor::RELEASED, |_| Ok(())),
            Self::Rejected(rejected) => rejected.encode(writer),
            Self::Modified(modified) => modified.encode(writer),
            Self::Received(received) => received.encode(writer),
            Self::Declared(declared) => declared.encode(writer),
            Self::Transactional(state) => state.encode(writer),
            Self::Other(value) => value.encode(writer),
        }
    }
}

impl Encode for Received {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::RECEIVED, |fields| {
            fields.field(&self.section_number)?;
            fields.field(&self.section_offset)
        })
    }
}

impl Encode for Rejected<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::REJECTED, |fields| fields.optional(&self.error))
    }
}

impl Encode for Modified<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::MODIFIED, |fields| {
            fields.optional(&self.delivery_failed)?;
            fields.optional(&self.undeliverable_here)?;
            fields.optional(&self.message_annotations)
        })
    }
}
