//! What AMQP 1.0 §4.5 adds for transactions. A router passes these through; the coordinator as a target is in
//! [`crate::terminus`].

use crate::composite::Fields;
use crate::cursor::Cursor;
use crate::descriptor;
use crate::error::{Full, Malformed};
use crate::primitive::{Decode, Encode};
use crate::value::Value;
use crate::writer::Writer;

/// The message body that begins a transaction (§4.5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Declare<'b> {
    /// The global transaction to join, of whatever type its manager uses.
    pub global_id: Option<Value<'b>>,
}

/// The message body that ends a transaction (§4.5.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Discharge<'b> {
    /// The transaction.
    pub txn_id: &'b [u8],
    /// Whether to roll back.
    pub fail: Option<bool>,
}

/// The outcome of a [`Declare`] (§4.5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared<'b> {
    /// The new transaction.
    pub txn_id: &'b [u8],
}

/// The state of a delivery under a transaction (§4.5.6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransactionalState<'b> {
    /// The transaction.
    pub txn_id: &'b [u8],
    /// The outcome that takes effect when the transaction ends well, a described value.
    pub outcome: Option<Value<'b>>,
}

impl<'b> Decode<'b> for Declare<'b> {
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let mut fields = Fields::open(cursor, descriptor::DECLARE, field)?;
        let declare = Self { global_id: fields.optional("declare.global-id")? };
        fields.finish("declare")?;
        Ok(declare)
    }
}

impl Encode for Declare<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::DECLARE, |fields| fields.optional(&self.global_id))
    }
}

impl<'b> Decode<'b> for Discharge<'b> {
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let mut fields = Fields::open(cursor, descriptor::DISCHARGE, field)?;
        let discharge =
            Self { txn_id: fields.required("discharge.txn-id")?, fail: fields.optional("discharge.fail")? };
        fields.finish("discharge")?;
        Ok(discharge)
    }
}

impl Encode for Discharge<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::DISCHARGE, |fields| {
            fields.field(self.txn_id)?;
            fields.optional(&self.fail)
        })
    }
}

impl<'b> Declared<'b> {
    /// Reads the list behind the descriptor.
    pub(crate) fn decode_list(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let mut fields = Fields::list(cursor, field)?;
        let declared = Self { txn_id: fields.required("declared.txn-id")? };
        fields.finish("declared")?;
        Ok(declared)
    }
}

impl Encode for Declared<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::DECLARED, |fields| fields.field(self.txn_id))
    }
}

impl<'b> TransactionalState<'b> {
    /// Reads the list behind the descriptor.
    pub(crate) fn decode_list(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let mut fields = Fields::list(cursor, field)?;
        let state = Self {
            txn_id: fields.required("transactional-state.txn-id")?,
            outcome: fields.described("transactional-state.outcome", "outcome")?,
        };
        fields.finish("transactional-state")?;
        Ok(state)
    }
}

impl Encode for TransactionalState<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::TRANSACTIONAL_STATE, |fields| {
            fields.field(self.txn_id)?;
            fields.optional(&self.outcome)
        })
    }
}
