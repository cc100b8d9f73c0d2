//! Message sections (AMQP 1.0 §3.2): finding them, and the two composites among them.
//!
//! ```text
//! header? delivery-annotations? message-annotations? properties? application-properties?
//! (data+ | amqp-sequence+ | amqp-value) footer?
//! ```
//!
//! # Cost
//! [`Sections::peek`] looks at the descriptor, three bytes as every peer encodes it. [`Sections::next`]
//! checks one whole section; a router that needs the header stops after it.

use crate::composite::Fields;
use crate::constructor::{Constructor, Type, code};
use crate::cursor::Cursor;
use crate::descriptor::{self, Descriptor, numeric};
use crate::error::{Full, Malformed, MalformedKind};
use crate::primitive::{Encode, Symbol, Timestamp};
use crate::skip;
use crate::value::Value;
use crate::writer::Writer;

/// The sections of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// Transport headers (§3.2.1).
    Header,
    /// For the next hop (§3.2.2).
    DeliveryAnnotations,
    /// For everyone on the way (§3.2.3).
    MessageAnnotations,
    /// Of the bare message (§3.2.4).
    Properties,
    /// Of the bare message (§3.2.5).
    ApplicationProperties,
    /// Opaque bytes of the body (§3.2.6).
    Data,
    /// A list as body (§3.2.7).
    AmqpSequence,
    /// One value as body (§3.2.8).
    AmqpValue,
    /// After the body (§3.2.9).
    Footer,
}

impl SectionKind {
    /// The descriptor of the section.
    pub const fn descriptor(self) -> Descriptor {
        match self {
            Self::Header => descriptor::HEADER,
            Self::DeliveryAnnotations => descriptor::DELIVERY_ANNOTATIONS,
            Self::MessageAnnotations => descriptor::MESSAGE_ANNOTATIONS,
            Self::Properties => descriptor::PROPERTIES,
            Self::ApplicationProperties => descriptor::APPLICATION_PROPERTIES,
            Self::Data => descriptor::DATA,
            Self::AmqpSequence => descriptor::AMQP_SEQUENCE,
            Self::AmqpValue => descriptor::AMQP_VALUE,
            Self::Footer => descriptor::FOOTER,
        }
    }

    /// The specification's name of the section.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::DeliveryAnnotations => "delivery-annotations",
            Self::MessageAnnotations => "message-annotations",
            Self::Properties => "properties",
            Self::ApplicationProperties => "application-properties",
            Self::Data => "data",
            Self::AmqpSequence => "amqp-sequence",
            Self::AmqpValue => "amqp-value",
            Self::Footer => "footer",
        }
    }

    #[inline]
    const fn from_code(number: u64) -> Option<Self> {
        Some(match number {
            numeric::HEADER => Self::Header,
            numeric::DELIVERY_ANNOTATIONS => Self::DeliveryAnnotations,
            numeric::MESSAGE_ANNOTATIONS => Self::MessageAnnotations,
            numeric::PROPERTIES => Self::Properties,
            numeric::APPLICATION_PROPERTIES => Self::ApplicationProperties,
            numeric::DATA => Self::Data,
            numeric::AMQP_SEQUENCE => Self::AmqpSequence,
            numeric::AMQP_VALUE => Self::AmqpValue,
            numeric::FOOTER => Self::Footer,
            _ => return None,
        })
    }

    /// The place in a message; all bodies share one.
    const fn place(self) -> u8 {
        match self {
            Self::Header => 0,
            Self::DeliveryAnnotations => 1,
            Self::MessageAnnotations => 2,
            Self::Properties => 3,
            Self::ApplicationProperties => 4,
            Self::Data | Self::AmqpSequence | Self::AmqpValue => 5,
            Self::Footer => 6,
        }
    }

    /// Whether the section may come right after `previous`.
    const fn may_follow(self, previous: Self) -> bool {
        if self.place() > previous.place() {
            return true;
        }
        matches!((previous, self), (Self::Data, Self::Data) | (Self::AmqpSequence, Self::AmqpSequence))
    }

    /// The type that the descriptor describes; `None` for any.
    const fn content(self) -> Option<Type> {
        match self {
            Self::Header | Self::Properties | Self::AmqpSequence => Some(Type::List),
            Self::DeliveryAnnotations
            | Self::MessageAnnotations
            | Self::ApplicationProperties
            | Self::Footer => Some(Type::Map),
            Self::Data => Some(Type::Binary),
            Self::AmqpValue => None,
        }
    }
}

/// Why there is no section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionError {
    /// The bytes end inside it. If the message isn't received completely, this is no error yet.
    Incomplete,
    /// It is wrong, whatever follows.
    Malformed(Malformed),
}

impl From<Malformed> for SectionError {
    fn from(malformed: Malformed) -> Self {
        match malformed.kind {
            MalformedKind::UnexpectedEnd => Self::Incomplete,
            _ => Self::Malformed(malformed),
        }
    }
}

impl core::fmt::Display for SectionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Incomplete => f.write_str("the message ends inside a section"),
            Self::Malformed(malformed) => malformed.fmt(f),
        }
    }
}

impl core::error::Error for SectionError {}

/// One section, borrowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Section<'b> {
    /// Which one.
    pub kind: SectionKind,
    /// Descriptor and value as they came.
    pub encoded: &'b [u8],
    /// The value behind the descriptor, of the type that the kind has.
    pub value: Value<'b>,
}

/// Scans a message, or the part of it that is received so far, section by section. It checks their order
/// (§3.2).
#[derive(Clone, Copy, Debug)]
pub struct Sections<'b> {
    payload: &'b [u8],
    offset: usize,
    previous: Option<SectionKind>,
}

impl<'b> Sections<'b> {
    /// A scanner at the start of a message.
    #[inline]
    pub const fn new(payload: &'b [u8]) -> Self {
        Self { payload, offset: 0, previous: None }
    }

    /// Bytes before the next section.
    #[inline]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Which section comes next; `None` at the end. Only its descriptor is looked at.
    ///
    /// # Errors
    /// The descriptor isn't all there, is no section's, or the section may not come here.
    #[inline]
    pub fn peek(&self) -> Result<Option<SectionKind>, SectionError> {
        if self.offset == self.payload.len() {
            return Ok(None);
        }
        self.section_kind().map(|(kind, _)| Some(kind))
    }

    /// The next section and moves behind it; `None` at the end.
    ///
    /// # Errors
    /// The section isn't all there ([`SectionError::Incomplete`]: the scanner stays where it is), is
    /// malformed, or may not come here.
    #[expect(clippy::should_implement_trait, reason = "an iterator of results would go on after an error")]
    pub fn next(&mut self) -> Result<Option<Section<'b>>, SectionError> {
        if self.offset == self.payload.len() {
            return Ok(None);
        }
        let (kind, value_start) = self.section_kind()?;
        let bytes = &self.payload[value_start..];
        let wrong = |malformed: Malformed| malformed.at_base(value_start).in_field(kind.name());
        if let (Some(content), Some(&found)) = (kind.content(), bytes.first())
            && Constructor::of(found).map(|constructor| constructor.primitive) != Some(content)
        {
            let kind = MalformedKind::UnexpectedType { expected: content.name(), found };
            return Err(wrong(Malformed { kind, offset: 0, field: "" }).into());
        }
        let length = skip::measure(bytes).map_err(wrong)?;
        let cursor = &mut Cursor::at(value_start, bytes);
        let value = Value::from_measured(cursor, length)?;
        let section = Section { kind, encoded: &self.payload[self.offset..value_start + length], value };
        self.offset = value_start + length;
        self.previous = Some(kind);
        Ok(Some(section))
    }

    /// The kind of the next section and where its value begins.
    #[inline]
    fn section_kind(&self) -> Result<(SectionKind, usize), SectionError> {
        let bytes = &self.payload[self.offset..];
        let (number, length) = match bytes {
            [code::DESCRIBED, code::SMALLULONG, number, ..] => (Some(u64::from(*number)), 3),
            _ => {
                let mut cursor = Cursor::at(self.offset, bytes);
                let number = descriptor::read(&mut cursor, "message section", "")?;
                (number, cursor.offset() - self.offset)
            }
        };
        let kind = number
            .and_then(SectionKind::from_code)
            .ok_or_else(|| self.wrong(MalformedKind::UnknownSection, ""))?;
        if let Some(previous) = self.previous
            && !kind.may_follow(previous)
        {
            return Err(self.wrong(MalformedKind::SectionOrder, kind.name()));
        }
        Ok((kind, self.offset + length))
    }

    #[cold]
    fn wrong(&self, kind: MalformedKind, field: &'static str) -> SectionError {
        SectionError::Malformed(Malformed { kind, offset: self.offset, field })
    }
}

/// The header section (§3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether the message must survive a failure of whoever holds it.
    pub durable: bool,
    /// 0 to 255, higher is more urgent; 4 if the sender says nothing.
    pub priority: u8,
    /// Milliseconds that the message lives.
    pub ttl: Option<u32>,
    /// Whether nobody else has acquired it before.
    pub first_acquirer: bool,
    /// Unsuccessful attempts to deliver it before this one.
    pub delivery_count: u32,
}

/// The priority of messages whose header doesn't say another (§3.2.1).
pub const PRIORITY_DEFAULT: u8 = 4;

impl Default for Header {
    /// What a message without a header has.
    fn default() -> Self {
        Self {
            durable: false,
            priority: PRIORITY_DEFAULT,
            ttl: None,
            first_acquirer: false,
            delivery_count: 0,
        }
    }
}

/// A cursor over the value of a section, so that offsets count from the section's start.
fn value_cursor<'b>(section: &Section<'b>) -> Cursor<'b> {
    let value = section.value.encoded();
    Cursor::at(section.encoded.len() - value.len(), value)
}

impl Header {
    /// Reads the fields of a header section.
    ///
    /// # Errors
    /// [`Malformed`], with offsets from the start of the section; also when it is another section's value.
    pub fn from_section(section: &Section<'_>) -> Result<Self, Malformed> {
        let mut fields = Fields::list(&mut value_cursor(section), "header")?;
        let header = Self {
            durable: fields.defaulted("header.durable", false)?,
            priority: fields.defaulted("header.priority", PRIORITY_DEFAULT)?,
            ttl: fields.optional("header.ttl")?,
            first_acquirer: fields.defaulted("header.first-acquirer", false)?,
            delivery_count: fields.defaulted("header.delivery-count", 0)?,
        };
        fields.finish("header")?;
        Ok(header)
    }
}

impl Encode for Header {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::HEADER, |fields| {
            fields.defaulted(&self.durable, &false)?;
            fields.defaulted(&self.priority, &PRIORITY_DEFAULT)?;
            fields.optional(&self.ttl)?;
            fields.defaulted(&self.first_acquirer, &false)?;
            fields.defaulted(&self.delivery_count, &0)
        })
    }
}

/// The properties section (§3.2.4).
///
/// The two ids are ulong, uuid, binary or string by the specification (§3.2.11 to §3.2.14). Others are kept
/// as they came: clients in the field use numbers of other types, and routers answer with what they were
/// asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Properties<'b> {
    /// Names the message.
    pub message_id: Option<Value<'b>>,
    /// Who produced it.
    pub user_id: Option<&'b [u8]>,
    /// The address it goes to.
    pub to: Option<&'b str>,
    /// What it is about.
    pub subject: Option<&'b str>,
    /// The address that answers go to.
    pub reply_to: Option<&'b str>,
    /// The message that this one belongs to.
    pub correlation_id: Option<Value<'b>>,
    /// The MIME type of the body.
    pub content_type: Option<Symbol<'b>>,
    /// The content encoding of the body.
    pub content_encoding: Option<Symbol<'b>>,
    /// When it is worth nothing any more.
    pub absolute_expiry_time: Option<Timestamp>,
    /// When it was made.
    pub creation_time: Option<Timestamp>,
    /// The group it belongs to.
    pub group_id: Option<&'b str>,
    /// Its place in the group.
    pub group_sequence: Option<u32>,
    /// The group that answers belong to.
    pub reply_to_group_id: Option<&'b str>,
}

impl<'b> Properties<'b> {
    /// Reads the fields of a properties section.
    ///
    /// # Errors
    /// [`Malformed`], with offsets from the start of the section; also when it is another section's value.
    pub fn from_section(section: &Section<'b>) -> Result<Self, Malformed> {
        let mut fields = Fields::list(&mut value_cursor(section), "properties")?;
        let properties = Self {
            message_id: fields.optional("properties.message-id")?,
            user_id: fields.optional("properties.user-id")?,
            to: fields.optional("properties.to")?,
            subject: fields.optional("properties.subject")?,
            reply_to: fields.optional("properties.reply-to")?,
            correlation_id: fields.optional("properties.correlation-id")?,
            content_type: fields.optional("properties.content-type")?,
            content_encoding: fields.optional("properties.content-encoding")?,
            absolute_expiry_time: fields.optional("properties.absolute-expiry-time")?,
            creation_time: fields.optional("properties.creation-time")?,
            group_id: fields.optional("properties.group-id")?,
            group_sequence: fields.optional("properties.group-sequence")?,
            reply_to_group_id: fields.optional("properties.reply-to-group-id")?,
        };
        fields.finish("properties")?;
        Ok(properties)
    }

    /// Only `to`: all that the routing of a message from an anonymous sender needs. Fields around it may be
    /// of any type.
    ///
    /// # Errors
    /// [`Malformed`] when `to` is no string.
    pub fn to_from_section(section: &Section<'b>) -> Result<Option<&'b str>, Malformed> {
        let mut fields = Fields::list(&mut value_cursor(section), "properties")?;
        fields.skip("properties.message-id")?;
        fields.skip("properties.user-id")?;
        fields.optional("properties.to")
    }
}

impl Encode for Properties<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::PROPERTIES, |fields| {
            fields.optional(&self.message_id)?;
            fields.optional(&self.user_id)?;
            fields.optional(&self.to)?;
            fields.optional(&self.subject)?;
            fields.optional(&self.reply_to)?;
            fields.optional(&self.correlation_id)?;
            fields.optional(&self.content_type)?;
            fields.optional(&self.content_encoding)?;
            fields.optional(&self.absolute_expiry_time)?;
            fields.optional(&self.creation_time)?;
            fields.optional(&self.group_id)?;
            fields.optional(&self.group_sequence)?;
            fields.optional(&self.reply_to_group_id)
        })
    }
}
