//! The schema: which entities there are, and which attributes with which values.
//!
//! It is data ([`ENTITY_TYPES`]), and the only place where a name, a default or a range stands: the checks
//! of files and of management read it, and so do help and the reference documentation.

pub use super::entities::ENTITY_TYPES;
pub use super::features::Feature;

/// A type of entity: a section of the file, a type of the management protocol.
#[derive(Clone, Copy, Debug)]
pub struct EntityType {
    /// The section's name in a file, which is also the short name by which messages call it. Where there is
    /// no such section: as [`Self::type_name`].
    pub name: &'static str,
    /// The type's name in management, without a prefix such as `org.apache.qpid.dispatch.`.
    pub type_name: &'static str,
    /// Where it occurs.
    pub category: Category,
    /// Which router had it first.
    pub origin: Origin,
    /// One sentence.
    pub description: &'static str,
    /// There is exactly one of it, with defaults if the file has none.
    pub is_singleton: bool,
    /// What management may do with it, in the order in which GET-OPERATIONS lists them.
    pub operations: &'static [Operation],
    /// Its attributes, in the order of the documentation. `identity` and `type`, which every entity has and
    /// nobody sets, aren't among them.
    pub attributes: &'static [Attribute],
    /// Using the section uses this feature.
    pub feature: Option<Feature>,
}

/// Where entities of a type occur.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Category {
    /// A section of the configuration file.
    Section,
    /// Configuration without a section of its own: a part of another entity, or made by management only.
    Part,
    /// The router reports it; no file has it.
    Operational,
    /// The management node itself.
    Management,
    /// A name for what several types have in common; no entity has this type.
    Abstract,
}

/// Which router had an entity or attribute first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// `qdrouterd`.
    Dispatch,
    /// `skrouterd` only.
    Skupper,
    /// Ringmain.
    Ringmain,
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
    /// `QUERY`
    Query,
    /// `GET-TYPES`
    GetTypes,
    /// `GET-ANNOTATIONS`
    GetAnnotations,
    /// `GET-OPERATIONS`
    GetOperations,
    /// `GET-ATTRIBUTES`
    GetAttributes,
    /// `GET-MGMT-NODES`
    GetMgmtNodes,
    /// `GET-SCHEMA`
    GetSchema,
    /// `GET-JSON-SCHEMA`
    GetJsonSchema,
    /// `GET-LOG`
    GetLog,
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
    /// The attribute itself is out of use: what to write instead.
    pub deprecated: Option<&'static str>,
    /// It is a password: not to be shown.
    pub is_secret: bool,
    /// Which router had it first.
    pub origin: Origin,
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
    /// Only by management's UPDATE.
    Update,
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
    /// A map from names to entities of this type ([`EntityType::type_name`]), each in braces of its own.
    Entities(&'static str),
    /// A list; the router reports it.
    List,
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
            Self::Entities(_) => "map",
            Self::List => "list",
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
    /// Any value other than the default uses this feature.
    Needs(Feature),
    /// These words use features, the others don't.
    WordsNeed(&'static [(&'static str, Feature)]),
    /// Any word but these uses the feature.
    OthersNeed {
        /// The words that don't.
        words: &'static [&'static str],
        /// The feature.
        feature: Feature,
    },
}

impl Operation {
    /// The operation's name in the protocol.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Read => "READ",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Query => "QUERY",
            Self::GetTypes => "GET-TYPES",
            Self::GetAnnotations => "GET-ANNOTATIONS",
            Self::GetOperations => "GET-OPERATIONS",
            Self::GetAttributes => "GET-ATTRIBUTES",
            Self::GetMgmtNodes => "GET-MGMT-NODES",
            Self::GetSchema => "GET-SCHEMA",
            Self::GetJsonSchema => "GET-JSON-SCHEMA",
            Self::GetLog => "GET-LOG",
        }
    }
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
            deprecated: None,
            is_secret: false,
            origin: Origin::Dispatch,
            unit: None,
            availability: Availability::Now,
            description,
        }
    }

    /// An attribute that the router reports.
    pub(super) const fn reported(name: &'static str, kind: Kind, description: &'static str) -> Self {
        let mut attribute = Self::new(name, kind, description);
        attribute.access = Access::ReadOnly;
        attribute
    }

    /// A number that the router counts.
    pub(super) const fn count(name: &'static str, description: &'static str) -> Self {
        Self::reported(name, Kind::Integer { min: 0, max: i64::MAX }, description)
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
        self.access = match self.access {
            Access::Create | Access::CreateOrUpdate => Access::CreateOrUpdate,
            Access::Update | Access::ReadOnly => Access::Update,
        };
        self
    }

    /// Has an older name.
    pub(super) const fn formerly(mut self, name: &'static str) -> Self {
        self.deprecated_name = Some(name);
        self
    }

    /// Is out of use.
    pub(super) const fn deprecated(mut self, advice: &'static str) -> Self {
        self.deprecated = Some(advice);
        self
    }

    /// Isn't to be shown.
    pub(super) const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    /// `skrouterd` has it, `qdrouterd` hasn't.
    pub(super) const fn of_skupper(mut self) -> Self {
        self.origin = Origin::Skupper;
        self
    }

    /// Only Ringmain has it.
    pub(super) const fn our_own(mut self) -> Self {
        self.origin = Origin::Ringmain;
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

    /// Belongs to `feature`.
    pub(super) const fn needs(self, feature: Feature) -> Self {
        self.availability(Availability::Needs(feature))
    }

    /// Accepted, changes nothing.
    pub(super) const fn inert(self) -> Self {
        self.availability(Availability::Inert)
    }

    /// Whether a file, or management's CREATE, may set it.
    #[must_use]
    pub const fn is_creatable(&self) -> bool {
        matches!(self.access, Access::Create | Access::CreateOrUpdate)
    }

    /// Whether management's UPDATE may set it.
    #[must_use]
    pub const fn is_updatable(&self) -> bool {
        matches!(self.access, Access::Update | Access::CreateOrUpdate)
    }
}

impl EntityType {
    /// A type without attributes and operations but READ, which `qdrouterd` has.
    const fn new(name: &'static str, category: Category, description: &'static str) -> Self {
        Self {
            name,
            type_name: name,
            category,
            origin: Origin::Dispatch,
            description,
            is_singleton: false,
            operations: &[Operation::Read],
            attributes: &[],
            feature: None,
        }
    }

    /// A section of the file that management may create and delete.
    pub(super) const fn section(
        name: &'static str,
        attributes: &'static [Attribute],
        description: &'static str,
    ) -> Self {
        let mut entity = Self::new(name, Category::Section, description);
        entity.attributes = attributes;
        entity.operations = &[Operation::Create, Operation::Delete, Operation::Read];
        entity
    }

    /// Configuration without a section.
    pub(super) const fn part(
        name: &'static str,
        attributes: &'static [Attribute],
        description: &'static str,
    ) -> Self {
        let mut entity = Self::new(name, Category::Part, description);
        entity.attributes = attributes;
        entity
    }

    /// Something that the router reports.
    pub(super) const fn operational(
        name: &'static str,
        attributes: &'static [Attribute],
        description: &'static str,
    ) -> Self {
        let mut entity = Self::new(name, Category::Operational, description);
        entity.attributes = attributes;
        entity
    }

    /// A type of types, or the management node.
    pub(super) const fn of_management(
        name: &'static str,
        category: Category,
        operations: &'static [Operation],
        description: &'static str,
    ) -> Self {
        let mut entity = Self::new(name, category, description);
        entity.operations = operations;
        entity.attributes = super::entities::NAMED;
        entity
    }

    /// Management calls it otherwise.
    pub(super) const fn managed_as(mut self, type_name: &'static str) -> Self {
        self.type_name = type_name;
        self
    }

    /// There is exactly one.
    pub(super) const fn singleton(mut self) -> Self {
        self.is_singleton = true;
        self
    }

    /// Management may do this.
    pub(super) const fn operations(mut self, operations: &'static [Operation]) -> Self {
        self.operations = operations;
        self
    }

    /// Belongs to `feature`.
    pub(super) const fn needs(mut self, feature: Feature) -> Self {
        self.feature = Some(feature);
        self
    }

    /// Only Ringmain has it.
    pub(super) const fn our_own(mut self) -> Self {
        self.origin = Origin::Ringmain;
        self
    }

    /// `skrouterd` has it, `qdrouterd` hasn't.
    pub(super) const fn of_skupper(mut self) -> Self {
        self.origin = Origin::Skupper;
        self
    }

    /// The type whose section has this name (in camel case).
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        ENTITY_TYPES.iter().find(|entity| entity.is_section() && entity.name == name)
    }

    /// The type that management calls so, without its prefix. A section's short name finds it, too.
    #[must_use]
    pub fn find_type(name: &str) -> Option<&'static Self> {
        let exact = ENTITY_TYPES.iter().find(|entity| entity.type_name == name);
        exact.or_else(|| Self::find(name))
    }

    /// Whether a file may have it.
    #[must_use]
    pub const fn is_section(&self) -> bool {
        matches!(self.category, Category::Section)
    }

    /// The abstract types that it extends, nearest first (GET-TYPES), without a prefix.
    #[must_use]
    pub fn base_types(&self) -> &'static [&'static str] {
        match self.category {
            Category::Section | Category::Part => &["configurationEntity", "entity"],
            Category::Operational => &["operationalEntity", "entity"],
            Category::Management => &["org.amqp.management", "operationalEntity", "entity"],
            Category::Abstract => match self.type_name {
                "entity" => &[],
                "org.amqp.management" => &["operationalEntity", "entity"],
                _ => &["entity"],
            },
        }
    }

    /// Whether management may do this with it.
    #[must_use]
    pub fn allows(&self, operation: Operation) -> bool {
        self.operations.contains(&operation)
    }

    /// The attribute of this name, and its place in [`Self::attributes`]. An older name finds it, too.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<(usize, &'static Attribute)> {
        let attributes = self.attributes.iter().enumerate();
        attributes
            .clone()
            .find(|(_, attribute)| attribute.name == name)
            .or_else(|| attributes.clone().find(|(_, attribute)| attribute.deprecated_name == Some(name)))
    }

    /// The names of all attributes as management lists them: with `identity` and `type` at the end.
    pub fn attribute_names(&self) -> impl Iterator<Item = &'static str> {
        self.attributes.iter().map(|attribute| attribute.name).chain(["identity", "type"])
    }
}
