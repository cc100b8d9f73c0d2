//! `disposition` (AMQP 1.0 §2.7.6).

use crate::composite::Fields;
use crate::descriptor;
use crate::error::{Full, Malformed};
use crate::outcome::DeliveryState;
use crate::performative::Role;
use crate::primitive::Encode;
use crate::writer::Writer;

/// Tells the state of a range of deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Disposition<'b> {
    /// The role, at the deliveries' links, of who sends this; mandatory.
    pub role: Role,
    /// The first delivery; mandatory.
    pub first: u32,
    /// The last delivery, inclusive; absent when it is the first.
    pub last: Option<u32>,
    /// The deliveries are settled at the sender of this.
    pub settled: bool,
    /// Their state.
    pub state: Option<DeliveryState<'b>>,
    /// The answer need not come at once.
    pub batchable: bool,
}

impl<'b> Disposition<'b> {
    /// Fields in the order of AMQP 1.0 §2.7.6.
    ///
    /// # Errors
    /// A field is absent or malformed.
    #[inline]
    pub fn decode(fields: &mut Fields<'b>) -> Result<Self, Malformed> {
        let disposition = Self {
            role: fields.required("disposition.role")?,
            first: fields.required("disposition.first")?,
            last: fields.optional("disposition.last")?,
            settled: fields.defaulted("disposition.settled", false)?,
            state: fields.optional("disposition.state")?,
            batchable: fields.defaulted("disposition.batchable", false)?,
        };
        fields.finish("disposition")?;
        Ok(disposition)
    }
}

impl Encode for Disposition<'_> {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::DISPOSITION, |fields| {
            fields.field(&self.role)?;
            fields.field(&self.first)?;
            fields.optional(&self.last)?;
            fields.defaulted(&self.settled, &false)?;
            fields.optional(&self.state)?;
            fields.defaulted(&self.batchable, &false)
        })
    }
}
