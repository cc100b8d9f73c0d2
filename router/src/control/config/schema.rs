//! The schema: which sections a configuration has, and which attributes with which values.
//!
//! It is data ([`ENTITY_TYPES`]), and the only place where a name, a default or a range stands: the
//! parser's checks read it, and so will management, help and the reference documentation.

pub use super::entities::ENTITY_TYPES;

/// A type of entity: a section of the file, a type of the management protocol.
#[derive(Clone, Copy, Debug)]
pub struct EntityType {
    /// The section's name in a file, which is also the short name by which messages call it.
    pub name: &'static str,
    /// The type's name in management, without the prefix `org.apache.qpid.dispatch.`.
    pub type_name: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// There is exactly one of it, with defaults if the file has none.
    pub is_singleton: bool,
    /// What management may do with it.
    pub operations: &'static [Operation],
    /// Its attributes, in the order of the documentation.
    pub attributes: &'static [Attribute],
    /// Why a file can't have it yet, and what to do instead; `None` if it can.
    pub unavailable: Option<&'static str>,
}

/// What management may do with an entity (AMQP management, `operation`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `CREATE`
    Create,
    /// `READ`
    Read,
    /// `UPDATE`
    Update,
    /// `DELETE`
    Delete,
}

/// An attribute of an entity.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// Its type and the values that it may have.
    pub kind: Kind,
    /// Its value where nothing is set, spelled as in a file; `None`: absent.
    pub default: Option<&'static str>,
    /// It must be set.
    pub is_required: bool,
    /// When it may be set.
    pub access: Access,
    /// An older name, still accepted.
    pub deprecated_name: Option<&'static str>,
    /// The unit of its number.
    pub unit: Option<&'static str>,
    /// How far this version goes with it.
    pub availability: Availability,
    /// One or two sentences: what it does, and what its special values mean.
    pub description: &'static str,
}

/// When an attribute may be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// In the file, and when management creates the entity.
    Create,
    /// Then, and later by management's UPDATE.
    CreateOrUpdate,
    /// Never: the router reports it.
    ReadOnly,
}

/// The type of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `yes`, `true`, `on`, `no`, `false`, `off`, in any letter case.
    Boolean,
    /// A decimal number within bounds.
    Integer {
        /// The smallest value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// Any text.
    String,
    /// The path of a file or a directory.
    Path,
    /// A host name, an IPv4 or IPv6 literal (which may stand in brackets), or nothing.
    Host,
    /// A port number, or the name of a service.
    Port,
    /// One of these words, spelled exactly so.
    Enumeration(&'static [&'static str]),
    /// Words with a separator between them.
    Words {
        /// What stands between two words.
        separator: char,
        /// The words that there are; empty: any.
        known: &'static [&'static str],
    },
    /// Levels of logging: `info+`, `debug,info`, `none`, `default` ([`Levels`](crate::log::Levels)).
    LogLevels,
    /// A JSON map.
    Properties,
}

impl Kind {
    /// The type's name as management's schema has it.
    #[must_use]
    pub const fn management_name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Integer { .. } => "integer",
            Self::String | Self::Host | Self::Port | Self::Words { .. } | Self::LogLevels => "string",
            Self::Path => "path",
            Self::Enumeration(_) => "enumeration",
            Self::Properties => "properties",
        }
    }
}

/// How far this version goes with an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Availability {
    /// It does what its description says.
    Now,
    /// It may be set and changes nothing, because what it tunes plays no part (or never did).
    Inert,
    /// It may be set; a value other than the default changes nothing and gives a warning with this reason.
    NoEffect(&'static str),
    /// Only some of its words work yet; the others are refused with this advice.
    Only {
        /// The words that work.
        words: &'static [&'static str],
        /// What to do instead.
        advice: &'static str,
    },
    /// Anything but the default is refused, with this advice.
    NotYet(&'static str),
}

impl Attribute {
    /// An optional attribute without a default, settable at creation, that works.
    pub(super) const fn new(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self {
            name,
            kind,
            default: None,
            is_required: false,
            access: Access::Create,
            deprecated_name: None,
            unit: None,
            availability: Availability::Now,
            description,
        }
    }

    /// Sets the default.
    pub(super) const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    /// Must be set.
    pub(super) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// May be changed by management.
    pub(super) const fn updatable(mut self) -> Self {
        self.access = Access::CreateOrUpdate;
        self
    }

    /// Has an older name.
    pub(super) const fn formerly(mut self, name: &'static str) -> Self {
        self.deprecated_name = Some(name);
        self
    }

    /// Counts in this unit.
    pub(super) const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    /// Works only so far.
    pub(super) const fn availability(mut self, availability: Availability) -> Self {
        self.availability = availability;
        self
    }

    /// Anything but the default is refused with `advice`.
    pub(super) const fn not_yet(self, advice: &'static str) -> Self {
        self.availability(Availability::NotYet(advice))
    }

    /// Accepted, changes nothing.
    pub(super) const fn inert(self) -> Self {
        self.availability(Availability::Inert)
    }
}

impl EntityType {
    /// The type whose section has this name (in camel case).
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        ENTITY_TYPES.iter().find(|entity| entity.name == name)
    }

    /// The attribute of this name, and its place in [`Self::attributes`]. An older name finds it, too.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<(usize, &'static Attribute)> {
        self.attributes
            .iter()
            .enumerate()
            .find(|(_, attribute)| attribute.name == name || attribute.deprecated_name == Some(name))
    }
}
