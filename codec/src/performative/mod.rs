//! The nine performatives (AMQP 1.0 §2.7), one module each.
//!
//! Every struct has the specification's fields in the specification's order, which *is* the wire format.
//! `Default` gives the specification's defaults; mandatory fields are zero or empty there and are to be set.
//!
//! # Cost
//! Decoding is one match over the descriptor and straight-line code over the fields. Nothing is allocated; an
//! [`Attach`] is some hundred bytes on the stack, a [`Transfer`] less than 150.

mod attach;
mod begin;
mod close;
mod detach;
mod disposition;
mod end;
mod flow;
mod open;
mod transfer;

pub use attach::{Attach, ReceiverSettleMode, Role, SenderSettleMode};
pub use begin::Begin;
pub use close::Close;
pub use detach::Detach;
pub use disposition::Disposition;
pub use end::End;
pub use flow::Flow;
pub use open::Open;
pub use transfer::Transfer;

use crate::composite::Fields;
use crate::cursor::Cursor;
use crate::descriptor::{self, numeric};
use crate::error::{Full, Malformed, MalformedKind};
use crate::primitive::Encode;
use crate::writer::Writer;

/// The performative of an AMQP frame.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants are the specification's performatives by name")]
pub enum Performative<'b> {
    Open(Open<'b>),
    Begin(Begin<'b>),
    Attach(Attach<'b>),
    Flow(Flow<'b>),
    Transfer(Transfer<'b>),
    Disposition(Disposition<'b>),
    Detach(Detach<'b>),
    End(End<'b>),
    Close(Close<'b>),
}

impl<'b> Performative<'b> {
    /// Reads the performative that a frame's `body` begins with; the payload after it comes second (§2.3.2).
    ///
    /// # Errors
    /// [`Malformed`]: an empty body, an unknown performative, or a bad field.
    #[inline]
    pub fn decode(body: &'b [u8]) -> Result<(Self, &'b [u8]), Malformed> {
        let cursor = &mut Cursor::new(body);
        let number = descriptor::read(cursor, "performative", "")?;
        let performative = match number {
            Some(numeric::TRANSFER) => {
                Self::Transfer(Transfer::decode(&mut Fields::list(cursor, "transfer")?)?)
            }
            Some(numeric::DISPOSITION) => {
                Self::Disposition(Disposition::decode(&mut Fields::list(cursor, "disposition")?)?)
            }
            Some(numeric::FLOW) => Self::Flow(Flow::decode(&mut Fields::list(cursor, "flow")?)?),
            Some(_) | None => return Self::decode_rare(number, *cursor),
        };
        Ok((performative, cursor.remaining()))
    }

    /// Reads the transfer that a frame's `body` begins with, and gives its payload too. `None` if it begins with
    /// anything else, or with an unusual form of the descriptor: ask [`decode`](Self::decode).
    ///
    /// This and [`disposition`](Self::disposition) are for who has many of them, and wants neither the size of all
    /// performatives moved about for each nor a second look at what it is.
    ///
    /// # Errors
    /// [`Malformed`]: a bad field.
    #[inline]
    pub fn transfer(body: &'b [u8]) -> Result<Option<(Transfer<'b>, &'b [u8])>, Malformed> {
        let cursor = &mut Cursor::new(body);
        if !descriptor::is_short(cursor, descriptor::TRANSFER) {
            return Ok(None);
        }
        let transfer = Transfer::decode(&mut Fields::list(cursor, "transfer")?)?;
        Ok(Some((transfer, cursor.remaining())))
    }

    /// Reads the disposition that a frame's `body` begins with. `None` if it begins with anything else, or with an
    /// unusual form of the descriptor: ask [`decode`](Self::decode).
    ///
    /// # Errors
    /// [`Malformed`]: a bad field.
    #[inline]
    pub fn disposition(body: &'b [u8]) -> Result<Option<Disposition<'b>>, Malformed> {
        let cursor = &mut Cursor::new(body);
        if !descriptor::is_short(cursor, descriptor::DISPOSITION) {
            return Ok(None);
        }
        Ok(Some(Disposition::decode(&mut Fields::list(cursor, "disposition")?)?))
    }

    /// The performatives that open and close endpoints: out of line, to keep the frequent ones short.
    #[inline(never)]
    fn decode_rare(number: Option<u64>, mut cursor: Cursor<'b>) -> Result<(Self, &'b [u8]), Malformed> {
        let cursor = &mut cursor;
        let performative = match number {
            Some(numeric::OPEN) => Self::Open(Open::decode(&mut Fields::list(cursor, "open")?)?),
            Some(numeric::BEGIN) => Self::Begin(Begin::decode(&mut Fields::list(cursor, "begin")?)?),
            Some(numeric::ATTACH) => Self::Attach(Attach::decode(&mut Fields::list(cursor, "attach")?)?),
            Some(numeric::DETACH) => Self::Detach(Detach::decode(&mut Fields::list(cursor, "detach")?)?),
            Some(numeric::END) => Self::End(End::decode(&mut Fields::list(cursor, "end")?)?),
            Some(numeric::CLOSE) => Self::Close(Close::decode(&mut Fields::list(cursor, "close")?)?),
            Some(_) | None => {
                return Err(Malformed { kind: MalformedKind::UnknownPerformative, offset: 0, field: "" });
            }
        };
        Ok((performative, cursor.remaining()))
    }

    /// The specification's name of it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Open(_) => "open",
            Self::Begin(_) => "begin",
            Self::Attach(_) => "attach",
            Self::Flow(_) => "flow",
            Self::Transfer(_) => "transfer",
            Self::Disposition(_) => "disposition",
            Self::Detach(_) => "detach",
            Self::End(_) => "end",
            Self::Close(_) => "close",
        }
    }
}

impl Encode for Performative<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Open(open) => open.encode(writer),
            Self::Begin(begin) => begin.encode(writer),
            Self::Attach(attach) => attach.encode(writer),
            Self::Flow(flow) => flow.encode(writer),
            Self::Transfer(transfer) => transfer.encode(writer),
            Self::Disposition(disposition) => disposition.encode(writer),
            Self::Detach(detach) => detach.encode(writer),
            Self::End(end) => end.encode(writer),
            Self::Close(close) => close.encode(writer),
        }
    }
}
