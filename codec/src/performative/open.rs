//! `open` (AMQP 1.0 §2.7.1).

use crate::composite::Fields;
use crate::descriptor;
use crate::error::{Full, Malformed};
use crate::primitive::Encode;
use crate::symbols::Symbols;
use crate::value::Value;
use crate::writer::Writer;

/// Opens a connection and says what the sender's side can bear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Open<'b> {
    /// Names the container; mandatory.
    pub container_id: &'b str,
    /// The host that the sender means to reach.
    pub hostname: Option<&'b str>,
    /// The largest frame in bytes that the sender accepts.
    pub max_frame_size: u32,
    /// The highest channel number that the sender accepts.
    pub channel_max: u16,
    /// Milliseconds after which the sender takes silence for a failure.
    pub idle_time_out: Option<u32>,
    /// Locales for texts that the sender sends.
    pub outgoing_locales: Symbols<'b>,
    /// Locales for texts that the sender wants, in descending order.
    pub incoming_locales: Symbols<'b>,
    /// Extensions that the sender supports.
    pub offered_capabilities: Symbols<'b>,
    /// Extensions that the sender would use.
    pub desired_capabilities: Symbols<'b>,
    /// A map of connection properties.
    pub properties: Option<Value<'b>>,
}

const MAX_FRAME_SIZE_DEFAULT: u32 = u32::MAX;
const CHANNEL_MAX_DEFAULT: u16 = u16::MAX;

impl Default for Open<'_> {
    fn default() -> Self {
        Self {
            container_id: "",
            hostname: None,
            max_frame_size: MAX_FRAME_SIZE_DEFAULT,
            channel_max: CHANNEL_MAX_DEFAULT,
            idle_time_out: None,
            outgoing_locales: Symbols::None,
            incoming_locales: Symbols::None,
            offered_capabilities: Symbols::None,
            desired_capabilities: Symbols::None,
            properties: None,
        }
    }
}

impl<'b> Open<'b> {
    /// Fields in the order of AMQP 1.0 §2.7.1.
    ///
    /// # Errors
    /// A field is absent or malformed.
    pub fn decode(fields: &mut Fields<'b>) -> Result<Self, Malformed> {
        let open = Self {
            container_id: fields.required("open.container-id")?,
            hostname: fields.optional("open.hostname")?,
            max_frame_size: fields.defaulted("open.max-frame-size", MAX_FRAME_SIZE_DEFAULT)?,
            channel_max: fields.defaulted("open.channel-max", CHANNEL_MAX_DEFAULT)?,
            idle_time_out: fields.optional("open.idle-time-out")?,
            outgoing_locales: fields.defaulted("open.outgoing-locales", Symbols::None)?,
            incoming_locales: fields.defaulted("open.incoming-locales", Symbols::None)?,
            offered_capabilities: fields.defaulted("open.offered-capabilities", Symbols::None)?,
            desired_capabilities: fields.defaulted("open.desired-capabilities", Symbols::None)?,
            properties: fields.map("open.properties")?,
        };
        fields.finish("open")?;
        Ok(open)
    }
}

impl Encode for Open<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::OPEN, |fields| {
            fields.field(self.container_id)?;
            fields.optional(&self.hostname)?;
            fields.defaulted(&self.max_frame_size, &MAX_FRAME_SIZE_DEFAULT)?;
            fields.defaulted(&self.channel_max, &CHANNEL_MAX_DEFAULT)?;
            fields.optional(&self.idle_time_out)?;
            fields.defaulted(&self.outgoing_locales, &Symbols::None)?;
            fields.defaulted(&self.incoming_locales, &Symbols::None)?;
            fields.defaulted(&self.offered_capabilities, &Symbols::None)?;
            fields.defaulted(&self.desired_capabilities, &Symbols::None)?;
            fields.optional(&self.properties)
        })
    }
}
