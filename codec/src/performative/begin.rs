//! `begin` (AMQP 1.0 §2.7.2).

use crate::composite::Fields;
use crate::descriptor;
use crate::error::{Full, Malformed};
use crate::primitive::Encode;
use crate::symbols::Symbols;
use crate::value::Value;
use crate::writer::Writer;

/// Begins a session on a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Begin<'b> {
    /// The channel of the peer's begin that this one answers; absent when it doesn't answer one.
    pub remote_channel: Option<u16>,
    /// The transfer id of the sender's first transfer; mandatory.
    pub next_outgoing_id: u32,
    /// Transfers that the sender can take; mandatory.
    pub incoming_window: u32,
    /// Transfers that the sender can send; mandatory.
    pub outgoing_window: u32,
    /// The highest handle that the sender accepts.
    pub handle_max: u32,
    /// Extensions that the sender supports.
    pub offered_capabilities: Symbols<'b>,
    /// Extensions that the sender would use.
    pub desired_capabilities: Symbols<'b>,
    /// A map of session properties.
    pub properties: Option<Value<'b>>,
}

const HANDLE_MAX_DEFAULT: u32 = u32::MAX;

impl Default for Begin<'_> {
    fn default() -> Self {
        Self {
            remote_channel: None,
            next_outgoing_id: 0,
            incoming_window: 0,
            outgoing_window: 0,
            handle_max: HANDLE_MAX_DEFAULT,
            offered_capabilities: Symbols::None,
            desired_capabilities: Symbols::None,
            properties: None,
        }
    }
}

impl<'b> Begin<'b> {
    /// Fields in the order of AMQP 1.0 §2.7.2.
    ///
    /// # Errors
    /// A field is absent or malformed.
    pub fn decode(fields: &mut Fields<'b>) -> Result<Self, Malformed> {
        let begin = Self {
            remote_channel: fields.optional("begin.remote-channel")?,
            next_outgoing_id: fields.required("begin.next-outgoing-id")?,
            incoming_window: fields.required("begin.incoming-window")?,
            outgoing_window: fields.required("begin.outgoing-window")?,
            handle_max: fields.defaulted("begin.handle-max", HANDLE_MAX_DEFAULT)?,
            offered_capabilities: fields.defaulted("begin.offered-capabilities", Symbols::None)?,
            desired_capabilities: fields.defaulted("begin.desired-capabilities", Symbols::None)?,
            properties: fields.map("begin.properties")?,
        };
        fields.finish("begin")?;
        Ok(begin)
    }
}

impl Encode for Begin<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::BEGIN, |fields| {
            fields.optional(&self.remote_channel)?;
            fields.field(&self.next_outgoing_id)?;
            fields.field(&self.incoming_window)?;
            fields.field(&self.outgoing_window)?;
            fields.defaulted(&self.handle_max, &HANDLE_MAX_DEFAULT)?;
            fields.defaulted(&self.offered_capabilities, &Symbols::None)?;
            fields.defaulted(&self.desired_capabilities, &Symbols::None)?;
            fields.optional(&self.properties)
        })
    }
}
