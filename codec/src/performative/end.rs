//! `end` (AMQP 1.0 §2.7.8).

use crate::composite::Fields;
use crate::condition::Error;
use crate::descriptor;
use crate::error::{Full, Malformed};
use crate::primitive::Encode;
use crate::writer::Writer;

/// Ends a session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct End<'b> {
    /// Why, if it is an error.
    pub error: Option<Error<'b>>,
}

impl<'b> End<'b> {
    /// Fields in the order of AMQP 1.0 §2.7.8.
    ///
    /// # Errors
    /// A field is malformed.
    pub fn decode(fields: &mut Fields<'b>) -> Result<Self, Malformed> {
        let end = Self { error: fields.optional("end.error")? };
        fields.finish("end")?;
        Ok(end)
    }
}

impl Encode for End<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::END, |fields| fields.optional(&self.error))
    }
}
