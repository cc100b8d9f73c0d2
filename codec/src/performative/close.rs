//! `close` (AMQP 1.0 §2.7.9).

use crate::composite::Fields;
use crate::condition::Error;
use crate::descriptor;
use crate::error::{Full, Malformed};
use crate::primitive::Encode;
use crate::writer::Writer;

/// Closes a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Close<'b> {
    /// Why, if it is an error.
    pub error: Option<Error<'b>>,
}

impl<'b> Close<'b> {
    /// Fields in the order of AMQP 1.0 §2.7.9.
    ///
    /// # Errors
    /// A field is malformed.
    pub fn decode(fields: &mut Fields<'b>) -> Result<Self, Malformed> {
        let close = Self { error: fields.optional("close.error")? };
        fields.finish("close")?;
        Ok(close)
    }
}

impl Encode for Close<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::CLOSE, |fields| fields.optional(&self.error))
    }
}
