//! AMQP 1.0 on the wire: types, frames, performatives, SASL frames and message sections.
//!
//! Everything decoded is a *borrowed view* over the bytes it was decoded from: nothing is allocated, a string
//! stays where the kernel put it. Everything encoded goes into a slice of the caller, in the shortest form
//! that the specification has for it.
//!
//! | layer | module | AMQP 1.0 |
//! |---|---|---|
//! | protocol header | [`header`] | §2.2, §5.3.1 |
//! | frames | [`frame`] | §2.3 |
//! | performatives | [`performative`] | §2.7 |
//! | SASL frames | [`sasl`] | §5.3.3 |
//! | termini | [`terminus`] | §3.5 |
//! | delivery states | [`outcome`] | §3.4, §4.5 |
//! | message sections | [`message`] | §3.2 |
//! | described lists | [`composite`] | §1.4 |
//! | values | [`value`], [`primitive`], [`constructor`] | §1.2, §1.6 |
//!
//! # What a hostile peer can't do
//!
//! No number from the wire sizes an allocation, bounds a loop by itself or deepens a recursion: every count
//! is checked against the bytes that are there before it is used, nesting ends at [`value::NESTING_MAX`], and
//! values are skipped iteratively. What is wrong comes back as [`Malformed`], which says what, at which byte,
//! in which field, and which error condition the peer is to be told.
//!
//! # What is accepted beyond the shortest form
//!
//! Every encoding of every type; descriptors as `ulong` of any width and as `symbol`; unknown fields after
//! the last known one; one bare value where a field may hold several.
#![no_std]
#![forbid(unsafe_code)]

pub mod composite;
pub mod condition;
pub mod constructor;
pub mod cursor;
pub mod descriptor;
pub mod error;
pub mod frame;
pub mod header;
pub mod message;
pub mod outcome;
pub mod performative;
pub mod primitive;
pub mod sasl;
mod skip;
pub mod symbols;
pub mod terminus;
pub mod transaction;
pub mod value;
pub mod writer;

pub use composite::Fields;
pub use condition::{Condition, Error};
pub use cursor::Cursor;
pub use descriptor::Descriptor;
pub use error::{Full, Malformed, MalformedKind};
pub use frame::{Frame, FrameKind, MIN_MAX_FRAME_SIZE, split_frame, write_empty_frame, write_frame};
pub use header::{ProtocolHeader, ProtocolId};
pub use message::{Header, Properties, Section, SectionError, SectionKind, Sections};
pub use outcome::{DeliveryState, Modified, Received, Rejected};
pub use performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Performative, ReceiverSettleMode, Role,
    SenderSettleMode, Transfer,
};
pub use primitive::{Decimal32, Decimal64, Decimal128, Decode, Encode, Symbol, Timestamp, Uuid};
pub use sasl::{SaslChallenge, SaslCode, SaslFrame, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse};
pub use symbols::Symbols;
pub use terminus::{Coordinator, LifetimePolicy, Source, Target, TargetNode, TerminusDurability};
pub use transaction::{Declare, Declared, Discharge, TransactionalState};
pub use value::{ArrayItems, Items, MapEntries, NESTING_MAX, Value, View};
pub use writer::{FieldWriter, Writer};
