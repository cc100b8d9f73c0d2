//! An entity as a file or management configures it: the values of its attributes.

use core::fmt;

use super::entities::ENTITY_TYPES;
use super::json::{Json, Member};
use super::schema::{Attribute, EntityType, Kind};
use super::values::value_of;
use crate::log::Levels;

/// A value of the type that the schema demands. Where the text says more than the value, it is kept, so that
/// management shows what was configured.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Of [`Kind::Boolean`].
    Boolean(bool),
    /// Of [`Kind::Integer`].
    Integer(i64),
    /// A text, path, host or enumerated word.
    Text(String),
    /// Of [`Kind::Port`].
    Port {
        /// The number.
        number: u16,
        /// The number or the name of the service, as written.
        text: String,
    },
    /// Of [`Kind::Words`].
    Words {
        /// Each word.
        list: Vec<String>,
        /// All of them, as written.
        text: String,
    },
    /// Of [`Kind::LogLevels`].
    Levels {
        /// The levels; `None`: `default`.
        levels: Option<Levels>,
        /// As written.
        text: String,
    },
    /// Of [`Kind::Properties`].
    Map(Vec<Member>),
    /// Of [`Kind::Entities`]: by name, in the order of the file.
    Entities(Vec<(String, Record)>),
    /// Of [`Kind::List`].
    List(Vec<Json>),
}

impl Value {
    /// Whether both say the same, wherever in the file they stand.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Map(members), Self::Map(others)) => is_same_map(members, others),
            (Self::Entities(parts), Self::Entities(others)) => {
                parts.len() == others.len()
                    && parts.iter().all(|(name, part)| {
                        others.iter().any(|(other, record)| other == name && part.changes(record).is_empty())
                    })
            }
            (Self::List(items), Self::List(others)) => {
                items.len() == others.len()
                    && items.iter().zip(others).all(|(item, other)| is_same_json(item, other))
            }
            (Self::Port { number, .. }, Self::Port { number: other, .. }) => number == other,
            (Self::Words { list, .. }, Self::Words { list: other, .. }) => list == other,
            (Self::Levels { levels, .. }, Self::Levels { levels: other, .. }) => levels == other,
            (
                Self::Boolean(_)
                | Self::Integer(_)
                | Self::Text(_)
                | Self::Port { .. }
                | Self::Words { .. }
                | Self::Levels { .. }
                | Self::Map(_)
                | Self::Entities(_)
                | Self::List(_),
                other,
            ) => self == other,
        }
    }
}

fn is_same_map(members: &[Member], others: &[Member]) -> bool {
    members.len() == others.len()
        && members
            .iter()
            .zip(others)
            .all(|(member, other)| member.key == other.key && is_same_json(&member.value, &other.value))
}

/// JSON from a file is nested at most as deeply as the reader of it lets it be.
fn is_same_json(json: &Json, other: &Json) -> bool {
    match (json, other) {
        (Json::Map(members), Json::Map(others)) => is_same_map(members, others),
        (Json::List(items), Json::List(others)) => {
            items.len() == others.len()
                && items.iter().zip(others).all(|(item, other)| is_same_json(item, other))
        }
        (
            Json::Null
            | Json::Boolean(_)
            | Json::Integer(_)
            | Json::Float(_)
            | Json::String(_)
            | Json::List(_)
            | Json::Map(_),
            other,
        ) => json == other,
    }
}

/// An entity that the schema allows.
#[derive(Clone)]
pub struct Record {
    entity: &'static EntityType,
    /// Where the section begins; 0 for one that the file doesn't have.
    line: u32,
    /// By place in the entity's attributes: the value and its line (0 if it is the default).
    values: Vec<Option<(Value, u32)>>,
}

impl fmt::Debug for Record {
    /// The type, and what is set, without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct(self.entity.name);
        for (attribute, value) in self.values().filter(|(attribute, _)| self.is_set(attribute.name)) {
            match value {
                Some(_) if attribute.is_secret => shown.field(attribute.name, &"…"),
                Some(value) => shown.field(attribute.name, value),
                None => &mut shown,
            };
        }
        shown.finish_non_exhaustive()
    }
}

impl PartialEq for Record {
    /// The same type with the same values, wherever in the file they stand.
    fn eq(&self, other: &Self) -> bool {
        self.entity.type_name == other.entity.type_name && self.changes(other).is_empty()
    }
}

impl Record {
    /// The entity as it is where the file says nothing of it.
    pub(super) fn defaults(entity: &'static EntityType, line: u32) -> Self {
        let values = entity.attributes.iter().map(|attribute| default(attribute).map(|value| (value, 0)));
        Self { entity, line, values: values.collect() }
    }

    /// The type.
    #[must_use]
    pub const fn entity(&self) -> &'static EntityType {
        self.entity
    }

    /// The name of the entity's section.
    #[must_use]
    pub const fn entity_name(&self) -> &'static str {
        self.entity.name
    }

    /// Where the section begins; 0 for one that the file doesn't have.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }

    /// Each attribute with its value, the default where nothing is set; `None` if it has neither.
    pub fn values(&self) -> impl Iterator<Item = (&'static Attribute, Option<&Value>)> {
        let values = self.values.iter().map(|value| value.as_ref().map(|(value, _)| value));
        self.entity.attributes.iter().zip(values)
    }

    /// The value of the attribute `name`, the default if nothing is set; `None` if there is no such attribute,
    /// or it has neither.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        let (index, _) = self.entity.attribute(name)?;
        self.values[index].as_ref().map(|(value, _)| value)
    }

    /// Whether the file (or management) sets `name`.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|(_, line)| *line != 0)
    }

    /// The names of the attributes in which the two differ. Both have the same type.
    #[must_use]
    pub fn changes(&self, other: &Self) -> Vec<&'static str> {
        let pairs = self.values().zip(other.values());
        pairs
            .filter(|((_, value), (_, other))| match (value, other) {
                (Some(value), Some(other)) => !value.is_same(other),
                (None, None) => false,
                (Some(_), None) | (None, Some(_)) => true,
            })
            .map(|((attribute, _), _)| attribute.name)
            .collect()
    }

    /// The name that was given to it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.text("name")
    }

    /// Sets an attribute of the schema.
    pub(super) fn set(&mut self, index: usize, value: Value, line: u32) {
        self.values[index] = Some((value, line));
    }

    /// The line that sets `name`; the section's own if it has its default.
    pub(super) fn line_of(&self, name: &str) -> u32 {
        match self.entry(name) {
            Some((_, line)) if *line != 0 => *line,
            Some(_) | None => self.line,
        }
    }

    /// The value of a boolean; false if it has neither value nor default.
    pub(super) fn boolean(&self, name: &str) -> bool {
        self.optional_boolean(name).unwrap_or(false)
    }

    /// The value of a boolean without a default.
    pub(super) fn optional_boolean(&self, name: &str) -> Option<bool> {
        self.entry(name).map(|(value, _)| match value {
            Value::Boolean(value) => *value,
            other => unreachable!("'{name}' is {other:?}, the schema says a boolean"),
        })
    }

    /// The value of an integer; `None` if it has neither value nor default.
    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        self.entry(name).map(|(value, _)| match value {
            Value::Integer(value) => *value,
            other => unreachable!("'{name}' is {other:?}, the schema says an integer"),
        })
    }

    /// The value of an integer that the schema keeps within 32 bits without sign.
    pub(super) fn unsigned(&self, name: &str) -> Option<u32> {
        self.integer(name).map(|value| u32::try_from(value).expect("the schema's range is within 32 bits"))
    }

    /// The value of an integer that the schema keeps within 64 bits without sign.
    pub(super) fn size(&self, name: &str) -> Option<u64> {
        self.integer(name).map(|value| u64::try_from(value).expect("the schema's range begins with 0"))
    }

    /// The number of a port; 0 if it has neither value nor default.
    pub(super) fn port(&self, name: &str) -> u16 {
        self.entry(name).map_or(0, |(value, _)| match value {
            Value::Port { number, .. } => *number,
            other => unreachable!("'{name}' is {other:?}, the schema says a port"),
        })
    }

    /// The text; `None` if it has neither value nor default.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.entry(name).map(|(value, _)| match value {
            Value::Text(value) => value.as_str(),
            other => unreachable!("'{name}' is {other:?}, the schema says a text"),
        })
    }

    /// The text, owned.
    pub(super) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// The words; `None` if it has neither value nor default.
    pub(super) fn words(&self, name: &str) -> Option<&[String]> {
        self.entry(name).map(|(value, _)| match value {
            Value::Words { list, .. } => list.as_slice(),
            other => unreachable!("'{name}' is {other:?}, the schema says a list of words"),
        })
    }

    /// The levels; `None` means `default`.
    pub(super) fn levels(&self, name: &str) -> Option<Levels> {
        self.entry(name).and_then(|(value, _)| match value {
            Value::Levels { levels, .. } => *levels,
            other => unreachable!("'{name}' is {other:?}, the schema says levels"),
        })
    }

    /// The members of the map; none if it isn't set.
    pub(super) fn map(&self, name: &str) -> &[Member] {
        self.entry(name).map_or(&[], |(value, _)| match value {
            Value::Map(members) => members.as_slice(),
            other => unreachable!("'{name}' is {other:?}, the schema says a map"),
        })
    }

    /// The entities within; none if it isn't set.
    pub(super) fn entities(&self, name: &str) -> &[(String, Self)] {
        self.entry(name).map_or(&[], |(value, _)| match value {
            Value::Entities(entities) => entities.as_slice(),
            other => unreachable!("'{name}' is {other:?}, the schema says entities"),
        })
    }

    fn entry(&self, name: &str) -> Option<&(Value, u32)> {
        let (index, _) = self.entity.attribute(name)?;
        self.values[index].as_ref()
    }
}

/// The default of an attribute as a value.
pub(super) fn default(attribute: &Attribute) -> Option<Value> {
    let text = attribute.default?;
    Some(
        value_of(attribute.kind, Json::String(text.to_owned()))
            .expect("defaults have the type of their attribute"),
    )
}

/// The type of the entities in an attribute of [`Kind::Entities`].
pub(super) fn part_type(kind: Kind) -> Option<&'static EntityType> {
    let Kind::Entities(type_name) = kind else { return None };
    ENTITY_TYPES.iter().find(|entity| entity.type_name == type_name)
}
