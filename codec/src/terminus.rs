//! Sources and targets (AMQP 1.0 §3.5), and the transaction coordinator as a target (§4.5.1).

use crate::composite::Fields;
use crate::cursor::Cursor;
use crate::descriptor::{self, numeric};
use crate::error::{Full, Malformed, MalformedKind};
use crate::primitive::{Decode, Encode, Symbol};
use crate::symbols::Symbols;
use crate::value::Value;
use crate::writer::Writer;

/// What a terminus keeps when the link is gone (§3.5.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerminusDurability {
    /// Nothing, 0.
    #[default]
    None,
    /// That it exists and how it is configured, 1.
    Configuration,
    /// The unsettled deliveries as well, 2.
    UnsettledState,
}

/// When a terminus begins to expire (§3.5.6).
pub mod expiry_policy {
    use crate::primitive::Symbol;

    /// When the link is detached.
    pub const LINK_DETACH: Symbol<'static> = Symbol("link-detach");
    /// When the session ends; the default.
    pub const SESSION_END: Symbol<'static> = Symbol("session-end");
    /// When the connection is closed.
    pub const CONNECTION_CLOSE: Symbol<'static> = Symbol("connection-close");
    /// Never.
    pub const NEVER: Symbol<'static> = Symbol("never");
}

/// How messages are distributed among the links of a source (§3.5.7).
pub mod distribution_mode {
    use crate::primitive::Symbol;

    /// A message goes to one link.
    pub const MOVE: Symbol<'static> = Symbol("move");
    /// A message goes to every link.
    pub const COPY: Symbol<'static> = Symbol("copy");
}

/// Where messages of a link come from (§3.5.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source<'b> {
    /// The address; absent for a dynamic source in the attach that asks for it.
    pub address: Option<&'b str>,
    /// What is kept.
    pub durable: TerminusDurability,
    /// When it expires: one of [`expiry_policy`], or a symbol that this crate doesn't know, as it came.
    pub expiry_policy: Symbol<'b>,
    /// Seconds from the beginning of expiry to its end.
    pub timeout: u32,
    /// The peer is to create a node and tell its address.
    pub dynamic: bool,
    /// A map of properties of the node to create.
    pub dynamic_node_properties: Option<Value<'b>>,
    /// One of [`distribution_mode`].
    pub distribution_mode: Option<Symbol<'b>>,
    /// A map of filters; a filter is known by its descriptor, not by its key.
    pub filter: Option<Value<'b>>,
    /// The outcome of deliveries that are settled without one, a described value.
    pub default_outcome: Option<Value<'b>>,
    /// The symbolic descriptors of outcomes that may be chosen.
    pub outcomes: Symbols<'b>,
    /// Extensions that the terminus supports or asks for.
    pub capabilities: Symbols<'b>,
}

impl Default for Source<'_> {
    /// The specification's defaults.
    fn default() -> Self {
        Self {
            address: None,
            durable: TerminusDurability::None,
            expiry_policy: expiry_policy::SESSION_END,
            timeout: 0,
            dynamic: false,
            dynamic_node_properties: None,
            distribution_mode: None,
            filter: None,
            default_outcome: None,
            outcomes: Symbols::None,
            capabilities: Symbols::None,
        }
    }
}

/// Where messages of a link go to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target<'b> {
    /// A node (§3.5.4).
    Node(TargetNode<'b>),
    /// The coordinator of transactions (§4.5.1).
    Coordinator(Coordinator<'b>),
}

/// A target that is a node (§3.5.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetNode<'b> {
    /// The address; absent for a dynamic target in the attach that asks for it, and for the anonymous
    /// terminus.
    pub address: Option<&'b str>,
    /// What is kept.
    pub durable: TerminusDurability,
    /// When it expires: one of [`expiry_policy`], or a symbol that this crate doesn't know, as it came.
    pub expiry_policy: Symbol<'b>,
    /// Seconds from the beginning of expiry to its end.
    pub timeout: u32,
    /// The peer is to create a node and tell its address.
    pub dynamic: bool,
    /// A map of properties of the node to create.
    pub dynamic_node_properties: Option<Value<'b>>,
    /// Extensions that the terminus supports or asks for.
    pub capabilities: Symbols<'b>,
}

impl Default for TargetNode<'_> {
    /// The specification's defaults.
    fn default() -> Self {
        Self {
            address: None,
            durable: TerminusDurability::None,
            expiry_policy: expiry_policy::SESSION_END,
            timeout: 0,
            dynamic: false,
            dynamic_node_properties: None,
            capabilities: Symbols::None,
        }
    }
}

/// The coordinator of transactions (§4.5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coordinator<'b> {
    /// What it supports, as §4.5.7 lists it.
    pub capabilities: Symbols<'b>,
}

/// When a dynamically created node is deleted (§3.5.10 to §3.5.13): the value of `lifetime-policy` in
/// `dynamic-node-properties`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimePolicy {
    /// With the link that created it.
    DeleteOnClose,
    /// When it has no links.
    DeleteOnNoLinks,
    /// When it has no messages.
    DeleteOnNoMessages,
    /// When it has neither.
    DeleteOnNoLinksOrMessages,
}

impl Decode<'_> for TerminusDurability {
    fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        match u32::decode(cursor, field)? {
            0 => Ok(Self::None),
            1 => Ok(Self::Configuration),
            2 => Ok(Self::UnsettledState),
            other => Err(start.fail(MalformedKind::InvalidChoice(other.into()), field)),
        }
    }
}

impl Encode for TerminusDurability {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let number: u32 = match self {
            Self::None => 0,
            Self::Configuration => 1,
            Self::UnsettledState => 2,
        };
        number.encode(writer)
    }
}

impl<'b> Decode<'b> for Source<'b> {
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let mut fields = Fields::open(cursor, descriptor::SOURCE, field)?;
        let source = Self {
            address: fields.optional("source.address")?,
            durable: fields.defaulted("source.durable", TerminusDurability::None)?,
            expiry_policy: fields.defaulted("source.expiry-policy", expiry_policy::SESSION_END)?,
            timeout: fields.defaulted("source.timeout", 0)?,
            dynamic: fields.defaulted("source.dynamic", false)?,
            dynamic_node_properties: fields.map("source.dynamic-node-properties")?,
            distribution_mode: fields.optional("source.distribution-mode")?,
            filter: fields.map("source.filter")?,
            default_outcome: fields.described("source.default-outcome", "outcome")?,
            outcomes: fields.defaulted("source.outcomes", Symbols::None)?,
            capabilities: fields.defaulted("source.capabilities", Symbols::None)?,
        };
        fields.finish("source")?;
        Ok(source)
    }
}

impl Encode for Source<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::SOURCE, |fields| {
            fields.optional(&self.address)?;
            fields.defaulted(&self.durable, &TerminusDurability::None)?;
            fields.defaulted(&self.expiry_policy, &expiry_policy::SESSION_END)?;
            fields.defaulted(&self.timeout, &0)?;
            fields.defaulted(&self.dynamic, &false)?;
            fields.optional(&self.dynamic_node_properties)?;
            fields.optional(&self.distribution_mode)?;
            fields.optional(&self.filter)?;
            fields.optional(&self.default_outcome)?;
            fields.defaulted(&self.outcomes, &Symbols::None)?;
            fields.defaulted(&self.capabilities, &Symbols::None)
        })
    }
}

impl<'b> Decode<'b> for Target<'b> {
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        match descriptor::read(cursor, "target", field)? {
            Some(numeric::TARGET) => {
                let mut fields = Fields::list(cursor, field)?;
                let target = TargetNode {
                    address: fields.optional("target.address")?,
                    durable: fields.defaulted("target.durable", TerminusDurability::None)?,
                    expiry_policy: fields.defaulted("target.expiry-policy", expiry_policy::SESSION_END)?,
                    timeout: fields.defaulted("target.timeout", 0)?,
                    dynamic: fields.defaulted("target.dynamic", false)?,
                    dynamic_node_properties: fields.map("target.dynamic-node-properties")?,
                    capabilities: fields.defaulted("target.capabilities", Symbols::None)?,
                };
                fields.finish("target")?;
                Ok(Self::Node(target))
            }
            Some(numeric::COORDINATOR) => {
                let mut fields = Fields::list(cursor, field)?;
                let capabilities = fields.defaulted("coordinator.capabilities", Symbols::None)?;
                fields.finish("coordinator")?;
                Ok(Self::Coordinator(Coordinator { capabilities }))
            }
            Some(_) | None => Err(start.fail(MalformedKind::UnknownDescriptor { expected: "target" }, field)),
        }
    }
}

impl Encode for Target<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Node(node) => node.encode(writer),
            Self::Coordinator(coordinator) => coordinator.encode(writer),
        }
    }
}

impl Encode for TargetNode<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.composite(descriptor::TARGET, |fields| {
            fields.optional(&self.address)?;
            fields.defaulted(&self.durable, &TerminusDurability::None)?;
            fields.defaulted(&self.expiry_policy, &expiry_policy::SESSION_END)?;
            fields.defaulted(&self.timeout, &0)?;
            fields.defaulted(&self.dynamic, &false)?;
            fields.optional(&self.dynamic_node_properties)?;
            fields.defaulted(&self.capabilities, &Symbols::None)
        })
    }
}

impl Encode for Coordinator<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer
            .composite(descriptor::COORDINATOR, |fields| fields.defaulted(&self.capabilities, &Symbols::None))
    }
}

impl<'b> Decode<'b> for LifetimePolicy {
    fn decode(cursor: &mut Cursor<'b>, field: &'static str) -> Result<Self, Malformed> {
        let start = *cursor;
        let policy = match descriptor::read(cursor, "lifetime policy", field)? {
            Some(numeric::DELETE_ON_CLOSE) => Self::DeleteOnClose,
            Some(numeric::DELETE_ON_NO_LINKS) => Self::DeleteOnNoLinks,
            Some(numeric::DELETE_ON_NO_MESSAGES) => Self::DeleteOnNoMessages,
            Some(numeric::DELETE_ON_NO_LINKS_OR_MESSAGES) => Self::DeleteOnNoLinksOrMessages,
            Some(_) | None => {
                let kind = MalformedKind::UnknownDescriptor { expected: "lifetime policy" };
                return Err(start.fail(kind, field));
            }
        };
        Fields::list(cursor, field)?.finish(field)?;
        Ok(policy)
    }
}

impl Encode for LifetimePolicy {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        let descriptor = match self {
            Self::DeleteOnClose => descriptor::DELETE_ON_CLOSE,
            Self::DeleteOnNoLinks => descriptor::DELETE_ON_NO_LINKS,
            Self::DeleteOnNoMessages => descriptor::DELETE_ON_NO_MESSAGES,
            Self::DeleteOnNoLinksOrMessages => descriptor::DELETE_ON_NO_LINKS_OR_MESSAGES,
        };
        writer.composite(descriptor, |_| Ok(()))
    }
}
