//! `flow` (AMQP 1.0 §2.7.4).

use crate::composite::Fields;
use crate::descriptor;
use crate::error::{Full, Malformed};
use crate::primitive::Encode;
use crate::value::Value;
use crate::writer::Writer;

/// The flow state of a session and, with a handle, of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow<'b> {
    /// The transfer id that the sender expects next; absent before it has seen the peer's begin.
    pub next_incoming_id: Option<u32>,
    /// Transfers that the sender can take; mandatory.
    pub incoming_window: u32,
    /// The transfer id that the sender will use next; mandatory.
    pub next_outgoing_id: u32,
    /// Transfers that the sender can send; mandatory.
    pub outgoing_window: u32,
    /// The link; absent when only the session is meant.
    pub handle: Option<u32>,
    /// Deliveries sent, as the sender of this counts them.
    pub delivery_count: Option<u32>,
    /// Deliveries that the link's receiver can take.
    pub link_credit: Option<u32>,
    /// Deliveries that wait at the link's sender.
    pub available: Option<u32>,
    /// The link's sender is to use up its credit.
    pub drain: bool,
    /// The peer is to answer with its own flow.
    pub echo: bool,
    /// A map of link state properties.
    pub properties: Option<Value<'b>>,
}

impl<'b> Flow<'b> {
    /// Fields in the order of AMQP 1.0 §2.7.4.
    ///
    /// # Errors
    /// A field is absent or malformed.
    #[inline]
    pub fn decode(fields: &mut Fields<'b>) -> Result<Self, Malformed> {
        let flow = Self {
            next_incoming_id: fields.optional("flow.next-incoming-id")?,
            incoming_window: fields.required("flow.incoming-window")?,
            next_outgoing_id: fields.required("flow.next-outgoing-id")?,
            outgoing_window: fields.required("flow.outgoing-window")?,
            handle: fields.optional("flow.handle")?,
            delivery_count: fields.optional("flow.delivery-count")?,
            link_credit: fields.optional("flow.link-credit")?,
            available: fields.optional("flow.available")?,
            drain: fields.defaulted("flow.drain", false)?,
            echo: fields.defaulted("flow.echo", false)?,
            properties: fields.map("flow.properties")?,
        };
        fields.finish("flow")?;
        Ok(flow)
    }
}

impl Encode for Flow<'_> {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::FLOW, |fields| {
            fields.optional(&self.next_incoming_id)?;
            fields.field(&self.incoming_window)?;
            fields.field(&self.next_outgoing_id)?;
            fields.field(&self.outgoing_window)?;
            fields.optional(&self.handle)?;
            fields.optional(&self.delivery_count)?;
            fields.optional(&self.link_credit)?;
            fields.optional(&self.available)?;
            fields.defaulted(&self.drain, &false)?;
            fields.defaulted(&self.echo, &false)?;
            fields.optional(&self.properties)
        })
    }
}
