//! `attach` (AMQP 1.0 §2.7.3) and the restricted types of links (§2.8.1 to §2.8.3).

use crate::composite::Fields;
use crate::cursor::Cursor;
use crate::descriptor;
use crate::error::{Full, Malformed, MalformedKind};
use crate::primitive::{Decode, Encode};
use crate::symbols::Symbols;
use crate::terminus::{Source, Target};
use crate::value::Value;
use crate::writer::Writer;

/// The role of a link endpoint (§2.8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// It sends; `false` on the wire.
    #[default]
    Sender,
    /// It receives; `true` on the wire.
    Receiver,
}

impl Role {
    /// The role of the other end.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

/// Whether a sender settles deliveries itself (§2.8.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SenderSettleMode {
    /// Never first, 0.
    Unsettled,
    /// All before they are sent, 1.
    Settled,
    /// Some, 2; the default.
    #[default]
    Mixed,
}

/// When a receiver settles (§2.8.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiverSettleMode {
    /// Of its own accord, 0; the default.
    #[default]
    First,
    /// After the sender has settled, 1.
    Second,
}

impl Decode<'_> for Role {
    #[inline]
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        Ok(if bool::decode(cursor, field)? { Self::Receiver } else { Self::Sender })
    }
}

impl Encode for Role {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Sender => false.encode(writer),
            Self::Receiver => true.encode(writer),
        }
    }
}

impl Decode<'_> for SenderSettleMode {
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        match u8::decode(cursor, field)? {
            0 => Ok(Self::Unsettled),
            1 => Ok(Self::Settled),
            2 => Ok(Self::Mixed),
            other => Err(start.fail(MalformedKind::InvalidChoice(other.into()), field)),
        }
    }
}

impl Encode for SenderSettleMode {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let number: u8 = match self {
            Self::Unsettled => 0,
            Self::Settled => 1,
            Self::Mixed => 2,
        };
        number.encode(writer)
    }
}

impl Decode<'_> for ReceiverSettleMode {
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        match u8::decode(cursor, field)? {
            0 => Ok(Self::First),
            1 => Ok(Self::Second),
            other => Err(start.fail(MalformedKind::InvalidChoice(other.into()), field)),
        }
    }
}

impl Encode for ReceiverSettleMode {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let number: u8 = match self {
            Self::First => 0,
            Self::Second => 1,
        };
        number.encode(writer)
    }
}

/// Attaches a link to a session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Attach<'b> {
    /// Names the link; mandatory.
    pub name: &'b str,
    /// The handle by which the sender's frames will refer to it; mandatory.
    pub handle: u32,
    /// The role of the endpoint that sends this; mandatory.
    pub role: Role,
    /// How the link's sender settles.
    pub snd_settle_mode: SenderSettleMode,
    /// How the link's receiver settles.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// Where messages come from; absent says that there is no such terminus.
    pub source: Option<Source<'b>>,
    /// Where messages go to; absent says that there is no such terminus.
    pub target: Option<Target<'b>>,
    /// A map from delivery tag to state, to resume deliveries.
    pub unsettled: Option<Value<'b>>,
    /// `unsettled` isn't all.
    pub incomplete_unsettled: bool,
    /// The delivery count at which a sender begins; mandatory for it, absent from a receiver.
    pub initial_delivery_count: Option<u32>,
    /// The largest message in bytes that the sender of this accepts; absent and 0 mean no limit.
    pub max_message_size: Option<u64>,
    /// Extensions that the sender supports.
    pub offered_capabilities: Symbols<'b>,
    /// Extensions that the sender would use.
    pub desired_capabilities: Symbols<'b>,
    /// A map of link properties.
    pub properties: Option<Value<'b>>,
}

impl<'b> Attach<'b> {
    /// Fields in the order of AMQP 1.0 §2.7.3.
    ///
    /// # Errors
    /// A field is absent or malformed.
    pub fn decode(fields: &mut Fields<'b>) -> Result<Self, Malformed> {
        let attach = Self {
            name: fields.required("attach.name")?,
            handle: fields.required("attach.handle")?,
            role: fields.required("attach.role")?,
            snd_settle_mode: fields.defaulted("attach.snd-settle-mode", SenderSettleMode::Mixed)?,
            rcv_settle_mode: fields.defaulted("attach.rcv-settle-mode", ReceiverSettleMode::First)?,
            source: fields.optional("attach.source")?,
            target: fields.optional("attach.target")?,
            unsettled: fields.map("attach.unsettled")?,
            incomplete_unsettled: fields.defaulted("attach.incomplete-unsettled", false)?,
            initial_delivery_count: fields.optional("attach.initial-delivery-count")?,
            max_message_size: fields.optional("attach.max-message-size")?,
            offered_capabilities: fields.defaulted("attach.offered-capabilities", Symbols::None)?,
            desired_capabilities: fields.defaulted("attach.desired-capabilities", Symbols::None)?,
            properties: fields.map("attach.properties")?,
        };
        fields.finish("attach")?;
        Ok(attach)
    }
}

impl Encode for Attach<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::ATTACH, |fields| {
            fields.field(self.name)?;
            fields.field(&self.handle)?;
            fields.field(&self.role)?;
            fields.defaulted(&self.snd_settle_mode, &SenderSettleMode::Mixed)?;
            fields.defaulted(&self.rcv_settle_mode, &ReceiverSettleMode::First)?;
            fields.optional(&self.source)?;
            fields.optional(&self.target)?;
            fields.optional(&self.unsettled)?;
            fields.defaulted(&self.incomplete_unsettled, &false)?;
            fields.optional(&self.initial_delivery_count)?;
            fields.optional(&self.max_message_size)?;
            fields.defaulted(&self.offered_capabilities, &Symbols::None)?;
            fields.defaulted(&self.desired_capabilities, &Symbols::None)?;
            fields.optional(&self.properties)
        })
    }
}
