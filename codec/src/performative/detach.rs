//! `detach` (AMQP 1.0 §2.7.7).

use crate::composite::Fields;
use crate::condition::Error;
use crate::descriptor;
use crate::error::{Full, Malformed};
use crate::primitive::Encode;
use crate::writer::Writer;

/// Detaches a link from its session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Detach<'b> {
    /// The link; mandatory.
    pub handle: u32,
    /// The link itself ends, not only its attachment.
    pub closed: bool,
    /// Why, if it is an error.
    pub error: Option<Error<'b>>,
}

impl<'b> Detach<'b> {
    /// Fields in the order of AMQP 1.0 §2.7.7.
    ///
    /// # Errors
    /// A field is absent or malformed.
    pub fn decode(fields: &mut Fields<'b>) -> Result<Self, Malformed> {
        let detach = Self {
            handle: fields.required("detach.handle")?,
            closed: fields.defaulted("detach.closed", false)?,
            error: fields.optional("detach.error")?,
        };
        fields.finish("detach")?;
        Ok(detach)
    }
}

impl Encode for Detach<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::DETACH, |fields| {
            fields.field(&self.handle)?;
            fields.defaulted(&self.closed, &false)?;
            fields.optional(&self.error)
        })
    }
}
