//! Holds sections against the schema: names, types, ranges, what is required, what is available.

use super::error::Findings;
use super::json::{Json, Member};
use super::nearest::did_you_mean;
use super::raw::{RawAttribute, RawSection, camel_case};
use super::schema::{Access, Attribute, Availability, ENTITY_TYPES, EntityType, Kind};
use super::service;
use crate::log::Levels;

/// A value of the type that the schema demands.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Boolean(bool),
    Integer(i64),
    /// Text, path, host or enumerated word.
    Text(String),
    Words(Vec<String>),
    /// `None`: `default`.
    Levels(Option<Levels>),
    Map(Vec<Member>),
}

/// A section that the schema allows.
#[derive(Clone, Debug)]
pub(super) struct Record {
    entity: &'static EntityType,
    /// Where the section begins; 0 for a section that the file doesn't have.
    pub(super) line: u32,
    /// By place in the entity's attributes: the value and its line (0 if it is the default).
    values: Vec<Option<(Value, u32)>>,
}

/// Checks every section. A section that the schema doesn't allow gives an error and no record.
pub(super) fn check_sections(sections: Vec<RawSection>, findings: &mut Findings) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut warned = Vec::new();
    for section in sections {
        let Some(entity) = known_type(&section, findings) else { continue };
        if let Some(advice) = entity.unavailable {
            let message = format!("section '{}' isn't available yet in this version: {advice}", entity.name);
            findings.error(section.line, message);
            continue;
        }
        let earlier = records.iter().find(|record| record.entity.name == entity.name);
        if let Some(earlier) = earlier.filter(|_| entity.is_singleton) {
            let message = format!(
                "there can be only one section '{}'; the first is at line {}",
                entity.name, earlier.line
            );
            findings.error(section.line, message);
            continue;
        }
        records.push(Record::check(entity, section, &mut warned, findings));
    }
    for entity in ENTITY_TYPES {
        if entity.is_singleton && !records.iter().any(|record| record.entity.name == entity.name) {
            records.push(Record::defaults(entity));
        }
    }
    records
}

fn known_type(section: &RawSection, findings: &mut Findings) -> Option<&'static EntityType> {
    let name = camel_case(&section.name);
    let found = EntityType::find(&name);
    // A name with a dot has been reported where it was read.
    if found.is_none() && !name.contains('.') {
        let hint = did_you_mean(&name, ENTITY_TYPES.iter().map(|entity| entity.name));
        findings.error(section.line, format!("unknown section '{}'{hint}", section.name));
    }
    found
}

impl Record {
    /// The entity as it is where the file says nothing of it.
    pub(super) fn defaults(entity: &'static EntityType) -> Self {
        let values = entity.attributes.iter().map(|attribute| default(attribute).map(|value| (value, 0)));
        Self { entity, line: 0, values: values.collect() }
    }

    fn check(
        entity: &'static EntityType,
        section: RawSection,
        warned: &mut Vec<(&'static str, &'static str)>,
        findings: &mut Findings,
    ) -> Self {
        let mut record = Self::defaults(entity);
        record.line = section.line;
        let mut set: Vec<Option<(String, u32)>> = vec![None; entity.attributes.len()];
        for raw in section.attributes {
            let name = camel_case(&raw.name);
            let Some((index, attribute)) = entity.attribute(&name) else {
                findings.error(raw.line, unknown_attribute(entity, &raw.name, &name));
                continue;
            };
            if let Some((earlier, line)) = &set[index] {
                findings.error(raw.line, set_twice(entity, attribute, earlier, &name, *line));
                continue;
            }
            if attribute.access == Access::ReadOnly {
                let message = format!(
                    "{}: '{}' is reported by the router and can't be set",
                    entity.name, attribute.name
                );
                findings.error(raw.line, message);
                continue;
            }
            let key = (entity.name, attribute.name);
            if attribute.deprecated_name == Some(name.as_str()) && !warned.contains(&key) {
                warned.push(key);
                let message = format!("{}: '{name}' is deprecated, use '{}'", entity.name, attribute.name);
                findings.warning(raw.line, message);
            }
            set[index] = Some((name, raw.line));
            if let Some(value) = checked(entity, attribute, raw, findings) {
                record.values[index] = Some(value);
            }
        }
        for (attribute, set) in entity.attributes.iter().zip(&set) {
            if attribute.is_required && set.is_none() {
                let message = format!("{}: '{}' is missing (it is required)", entity.name, attribute.name);
                findings.error(record.line, message);
            }
        }
        record
    }

    /// The name of the entity's section.
    pub(super) const fn entity_name(&self) -> &'static str {
        self.entity.name
    }

    /// The line that sets `name`; the section's own if it has its default.
    pub(super) fn line_of(&self, name: &str) -> u32 {
        match self.entry(name) {
            Some((_, line)) if *line != 0 => *line,
            Some(_) | None => self.line,
        }
    }

    /// Whether the file sets `name`.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|(_, line)| *line != 0)
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

    /// The value of an integer or a port; `None` if it has neither value nor default.
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

    /// The text; `None` if it has neither value nor default.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.entry(name).map(|(value, _)| match value {
            Value::Text(value) => value.as_str(),
            other => unreachable!("'{name}' is {other:?}, the schema says a text"),
        })
    }

    /// The words; `None` if it has neither value nor default.
    pub(super) fn words(&self, name: &str) -> Option<&[String]> {
        self.entry(name).map(|(value, _)| match value {
            Value::Words(value) => value.as_slice(),
            other => unreachable!("'{name}' is {other:?}, the schema says a list of words"),
        })
    }

    /// The levels; `None` means `default`.
    pub(super) fn levels(&self, name: &str) -> Option<Levels> {
        self.entry(name).and_then(|(value, _)| match value {
            Value::Levels(value) => *value,
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

    fn entry(&self, name: &str) -> Option<&(Value, u32)> {
        let (index, _) = self.entity.attribute(name).expect("only attributes of the schema are asked for");
        self.values[index].as_ref()
    }
}

/// The default of an attribute as a value.
fn default(attribute: &Attribute) -> Option<Value> {
    let text = attribute.default?;
    Some(
        value_of(attribute.kind, Json::String(text.to_owned()))
            .expect("defaults have the type of their attribute"),
    )
}

fn unknown_attribute(entity: &EntityType, written: &str, name: &str) -> String {
    if matches!(name, "identity" | "type") {
        return format!("{}: '{name}' can't be set, the router makes it", entity.name);
    }
    let known = entity.attributes.iter().map(|attribute| attribute.name);
    format!("{}: unknown attribute '{written}'{}", entity.name, did_you_mean(name, known))
}

fn set_twice(entity: &EntityType, attribute: &Attribute, earlier: &str, name: &str, line: u32) -> String {
    if earlier == name {
        return format!("{}: '{name}' is set twice, first at line {line}", entity.name);
    }
    let former = attribute.deprecated_name.unwrap_or(attribute.name);
    format!(
        "Both '{former}' and '{}' cannot be specified for entity '{}': remove '{former}', the older name",
        attribute.name, entity.name
    )
}

/// The value of `raw` and its line, if it is one that the attribute may have in this version.
fn checked(
    entity: &EntityType,
    attribute: &Attribute,
    raw: RawAttribute,
    findings: &mut Findings,
) -> Option<(Value, u32)> {
    let written = written(&raw.value);
    let value = match value_of(attribute.kind, raw.value) {
        Ok(value) => value,
        Err(expected) => {
            let unit = attribute.unit.map_or_else(String::new, |unit| format!(" ({unit})"));
            let message =
                format!("{}: '{}' is {written}, expected {expected}{unit}", entity.name, attribute.name);
            findings.error(raw.line, message);
            return None;
        }
    };
    let is_default = default(attribute).is_some_and(|default| default == value);
    match attribute.availability {
        Availability::Now | Availability::Inert => {}
        Availability::NoEffect(reason) => {
            if !is_default {
                let message = format!("{}: '{}' has no effect: {reason}", entity.name, attribute.name);
                findings.warning(raw.line, message);
            }
        }
        Availability::NotYet(advice) => {
            if !is_default {
                let message = format!(
                    "{}: '{}' isn't available yet in this version: {advice}",
                    entity.name, attribute.name
                );
                findings.error(raw.line, message);
                return None;
            }
        }
        Availability::Only { words, advice } => {
            let missing = match &value {
                Value::Text(word) => Some(word).filter(|word| !words.contains(&word.as_str())),
                Value::Words(list) => list.iter().find(|word| !words.contains(&word.as_str())),
                Value::Boolean(_) | Value::Integer(_) | Value::Levels(_) | Value::Map(_) => None,
            };
            if let Some(word) = missing {
                let message = format!(
                    "{}: '{}' is '{word}', which isn't available yet in this version: {advice}",
                    entity.name, attribute.name
                );
                findings.error(raw.line, message);
                return None;
            }
        }
    }
    Some((value, raw.line))
}

/// The value as messages show it.
fn written(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Boolean(value) => format!("{value}"),
        Json::Integer(value) => format!("{value}"),
        Json::Float(value) => format!("{value}"),
        Json::String(value) => format!("'{value}'"),
        Json::List(_) | Json::Map(_) => value.kind().to_owned(),
    }
}

/// Makes a value of the kind from what the file has.
///
/// # Errors
/// What was expected instead.
fn value_of(kind: Kind, json: Json) -> Result<Value, String> {
    match kind {
        Kind::Boolean => boolean(&json).map(Value::Boolean),
        Kind::Integer { min, max } => integer(&json, min, max).map(Value::Integer),
        Kind::String | Kind::Path => text(json).map(Value::Text),
        Kind::Host => text(json).and_then(host).map(Value::Text),
        Kind::Port => port(&json).map(Value::Integer),
        Kind::Enumeration(words) => enumerated(json, words).map(Value::Text),
        Kind::Words { separator, known } => words(json, separator, known).map(Value::Words),
        Kind::LogLevels => levels(json).map(Value::Levels),
        Kind::Properties => match json {
            Json::Map(members) => Ok(Value::Map(members)),
            Json::Null
            | Json::Boolean(_)
            | Json::Integer(_)
            | Json::Float(_)
            | Json::String(_)
            | Json::List(_) => {
                Err("a JSON map: '{', then lines like \"name\": \"value\", then '}'".to_owned())
            }
        },
    }
}

fn boolean(json: &Json) -> Result<bool, String> {
    let expected = || "yes, true, on, no, false or off".to_owned();
    match json {
        Json::Boolean(value) => Ok(*value),
        Json::String(word) => match word.to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" => Ok(true),
            "no" | "false" | "off" => Ok(false),
            _ => Err(expected()),
        },
        Json::Null | Json::Integer(_) | Json::Float(_) | Json::List(_) | Json::Map(_) => Err(expected()),
    }
}

fn integer(json: &Json, min: i64, max: i64) -> Result<i64, String> {
    let number = match json {
        Json::Integer(number) => Some(*number),
        Json::String(text) => text.parse().ok(),
        Json::Null | Json::Boolean(_) | Json::Float(_) | Json::List(_) | Json::Map(_) => None,
    };
    number.filter(|number| (min..=max).contains(number)).ok_or_else(|| {
        if max == i64::MAX {
            format!("an integer of at least {min}")
        } else {
            format!("an integer from {min} to {max}")
        }
    })
}

fn text(json: Json) -> Result<String, String> {
    match json {
        Json::String(text) => Ok(text),
        // As `qdrouterd` does: in the JSON form a text that looks like a number may be one.
        Json::Integer(number) => Ok(number.to_string()),
        Json::Null | Json::Boolean(_) | Json::Float(_) | Json::List(_) | Json::Map(_) => {
            Err("a text".to_owned())
        }
    }
}

/// A host as sockets take it: the brackets of an IPv6 literal are taken off.
fn host(text: String) -> Result<String, String> {
    let is_bracketed = text.starts_with('[') || text.ends_with(']');
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let is_ipv6 =
        |text: &str| text.split('%').next().unwrap_or_default().parse::<core::net::Ipv6Addr>().is_ok();
    match inside {
        Some(literal) if is_ipv6(literal) => Ok(literal.to_owned()),
        None if !is_bracketed && (is_ipv6(&text) || is_host_name(&text)) => Ok(text),
        Some(_) | None => Err("a host name, an IPv4 or IPv6 literal, or nothing".to_owned()),
    }
}

/// Whether a resolver may be asked for it. Empty is allowed: all local addresses.
fn is_host_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

fn port(json: &Json) -> Result<i64, String> {
    let expected = || "a port number from 0 to 65535, or the name of a service ('amqp' is 5672)".to_owned();
    match json {
        Json::Integer(number) => u16::try_from(*number).map(i64::from).map_err(|_| expected()),
        Json::String(text) => service::port(text).map(i64::from).ok_or_else(expected),
        Json::Null | Json::Boolean(_) | Json::Float(_) | Json::List(_) | Json::Map(_) => Err(expected()),
    }
}

fn enumerated(json: Json, words: &[&str]) -> Result<String, String> {
    let expected = |hint: String| format!("one of {}{hint}", words.join(", "));
    match json {
        Json::String(word) if words.contains(&word.as_str()) => Ok(word),
        Json::String(word) => Err(expected(did_you_mean(&word, words.iter().copied()))),
        Json::Null | Json::Boolean(_) | Json::Integer(_) | Json::Float(_) | Json::List(_) | Json::Map(_) => {
            Err(expected(String::new()))
        }
    }
}

fn words(json: Json, separator: char, known: &[&str]) -> Result<Vec<String>, String> {
    let between = if separator == ' ' { "blanks" } else { "commas" };
    let expected = || format!("words with {between} between them");
    let text = text(json).map_err(|_| expected())?;
    let list: Vec<String> =
        text.split(separator).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    if list.is_empty() {
        return Err(expected());
    }
    match list.iter().find(|word| !known.is_empty() && !known.contains(&word.as_str())) {
        Some(word) => {
            let hint = did_you_mean(word, known.iter().copied());
            Err(format!("{} out of {}; '{word}' is none of them{hint}", expected(), known.join(", ")))
        }
        None => Ok(list),
    }
}

fn levels(json: Json) -> Result<Option<Levels>, String> {
    let expected = || {
        "levels with commas between them (trace, debug, info, notice, warning, error, critical, each with a \
         '+' for all above as well), none, or default"
            .to_owned()
    };
    Levels::parse(&text(json).map_err(|_| expected())?)
        .map_err(|word| format!("{}; '{word}' is no level", expected()))
}
