//! `transfer` (AMQP 1.0 §2.7.5).

use crate::composite::Fields;
use crate::descriptor;
use crate::error::{Full, Malformed};
use crate::outcome::DeliveryState;
use crate::performative::ReceiverSettleMode;
use crate::primitive::Encode;
use crate::writer::Writer;

/// Carries a message, or a part of it, as the frame's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfer<'b> {
    /// The link; mandatory.
    pub handle: u32,
    /// Names the delivery in the session; mandatory in its first transfer.
    pub delivery_id: Option<u32>,
    /// Names the delivery on the link, at most 32 bytes; mandatory in its first transfer.
    pub delivery_tag: Option<&'b [u8]>,
    /// The message's format; mandatory in a delivery's first transfer.
    pub message_format: Option<u32>,
    /// The delivery is settled at the sender.
    pub settled: Option<bool>,
    /// More transfers of this delivery follow.
    pub more: bool,
    /// How the receiver is to settle this delivery.
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    /// The state at the sender.
    pub state: Option<DeliveryState<'b>>,
    /// The delivery is one that a resumed link carries on.
    pub resume: bool,
    /// The delivery is given up; the payload is ignored.
    pub aborted: bool,
    /// The answer need not come at once.
    pub batchable: bool,
}

impl<'b> Transfer<'b> {
    /// Fields in the order of AMQP 1.0 §2.7.5.
    ///
    /// # Errors
    /// A field is absent or malformed.
    #[inline]
    pub fn decode(fields: &mut Fields<'b>) -> Result<Self, Malformed> {
        let transfer = Self {
            handle: fields.required("transfer.handle")?,
            delivery_id: fields.optional("transfer.delivery-id")?,
            delivery_tag: fields.optional("transfer.delivery-tag")?,
            message_format: fields.optional("transfer.message-format")?,
            settled: fields.optional("transfer.settled")?,
            more: fields.defaulted("transfer.more", false)?,
            rcv_settle_mode: fields.optional("transfer.rcv-settle-mode")?,
            state: fields.optional("transfer.state")?,
            resume: fields.defaulted("transfer.resume", false)?,
            aborted: fields.defaulted("transfer.aborted", false)?,
            batchable: fields.defaulted("transfer.batchable", false)?,
        };
        fields.finish("transfer")?;
        Ok(transfer)
    }
}

impl Encode for Transfer<'_> {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::TRANSFER, |fields| {
            fields.field(&self.handle)?;
            fields.optional(&self.delivery_id)?;
            fields.optional(&self.delivery_tag)?;
            fields.optional(&self.message_format)?;
            fields.optional(&self.settled)?;
            fields.defaulted(&self.more, &false)?;
            fields.optional(&self.rcv_settle_mode)?;
            fields.optional(&self.state)?;
            fields.defaulted(&self.resume, &false)?;
            fields.defaulted(&self.aborted, &false)?;
            fields.defaulted(&self.batchable, &false)
        })
    }
}
