//! Holds sections against the schema: names, types, ranges, what is required, what this version has.

use super::error::{BY_MANAGEMENT, Findings, place};
use super::json::{Json, Member};
use super::nearest::did_you_mean;
use super::raw::{RawAttribute, RawSection, camel_case};
use super::record::{Record, Value, default, part_type};
use super::schema::{Access, Attribute, Availability, ENTITY_TYPES, EntityType};
use super::values::{ENTITIES_EXPECTED, value_of, written};

/// What has been warned of already, so that it is said once: section and attribute.
type Warned = Vec<(&'static str, &'static str)>;

/// Checks every section. A section that the schema doesn't allow gives an error and no record.
pub(super) fn check_sections(sections: Vec<RawSection>, findings: &mut Findings) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut warned = Vec::new();
    for section in sections {
        let Some(entity) = known_type(&section, findings) else { continue };
        let earlier = records.iter().find(|record| record.entity_name() == entity.name);
        if let Some(earlier) = earlier.filter(|_| entity.is_singleton) {
            let message = format!(
                "there can be only one section '{}'; the first is at line {}",
                entity.name,
                earlier.line()
            );
            findings.error(section.line, message);
            continue;
        }
        if let Some(feature) = entity.feature {
            findings.uses(feature, section.line, entity.name);
        }
        records.push(check(entity, entity.name, section.line, section.attributes, &mut warned, findings));
    }
    for entity in ENTITY_TYPES {
        if entity.is_singleton && !records.iter().any(|record| record.entity_name() == entity.name) {
            records.push(Record::defaults(entity, 0));
        }
    }
    records
}

/// Checks the attributes that management's CREATE has for a new entity of this type.
pub(super) fn check_created(
    entity: &'static EntityType,
    attributes: Vec<Member>,
    findings: &mut Findings,
) -> Record {
    let attributes = attributes.into_iter().map(raw).collect();
    check(entity, entity.name, BY_MANAGEMENT, attributes, &mut Vec::new(), findings)
}

/// Puts the attributes that management's UPDATE has into `record`.
pub(super) fn check_updated(record: &mut Record, attributes: Vec<Member>, findings: &mut Findings) {
    let entity = record.entity();
    for raw in attributes.into_iter().map(raw) {
        let name = camel_case(&raw.name);
        let Some((index, attribute)) = entity.attribute(&name) else {
            findings.error(raw.line, unknown_attribute(entity, entity.name, &raw.name, &name));
            continue;
        };
        if !attribute.is_updatable() {
            let message = format!("{}: '{}' can't be changed", entity.name, attribute.name);
            findings.error(raw.line, message);
            continue;
        }
        let value = match part_type(attribute.kind) {
            Some(part) => parts(part, entity.name, attribute, raw, &mut Vec::new(), findings),
            None => checked(entity.name, attribute, raw, findings),
        };
        if let Some(value) = value {
            record.set(index, value, BY_MANAGEMENT);
        }
    }
}

fn raw(member: Member) -> RawAttribute {
    RawAttribute { name: member.key, line: member.line, value: member.value }
}

fn known_type(section: &RawSection, findings: &mut Findings) -> Option<&'static EntityType> {
    let name = camel_case(&section.name);
    let found = EntityType::find(&name);
    // A name with a dot has been reported where it was read.
    if found.is_none() && !name.contains('.') {
        let sections = ENTITY_TYPES.iter().filter(|entity| entity.is_section()).map(|entity| entity.name);
        let hint = did_you_mean(&name, sections);
        findings.error(section.line, format!("unknown section '{}'{hint}", section.name));
    }
    found
}

/// Checks the attributes of one entity, which messages call `label`.
fn check(
    entity: &'static EntityType,
    label: &str,
    line: u32,
    attributes: Vec<RawAttribute>,
    warned: &mut Warned,
    findings: &mut Findings,
) -> Record {
    let mut record = Record::defaults(entity, line);
    let mut set: Vec<Option<(String, u32)>> = vec![None; entity.attributes.len()];
    for raw in attributes {
        let name = camel_case(&raw.name);
        let Some((index, attribute)) = entity.attribute(&name) else {
            findings.error(raw.line, unknown_attribute(entity, label, &raw.name, &name));
            continue;
        };
        if let Some((earlier, line)) = &set[index] {
            findings.error(raw.line, set_twice(entity, label, attribute, earlier, &name, *line));
            continue;
        }
        match attribute.access {
            Access::Create | Access::CreateOrUpdate => {}
            Access::Update | Access::ReadOnly => {
                let message =
                    format!("{label}: '{}' is reported by the router and can't be set", attribute.name);
                findings.error(raw.line, message);
                continue;
            }
        }
        warn_deprecated(entity, attribute, &name, raw.line, warned, findings);
        let line = raw.line;
        set[index] = Some((name, line));
        let value = match part_type(attribute.kind) {
            Some(part) => parts(part, label, attribute, raw, warned, findings),
            None => checked(label, attribute, raw, findings),
        };
        if let Some(value) = value {
            record.set(index, value, line);
        }
    }
    for (attribute, set) in entity.attributes.iter().zip(&set) {
        if attribute.is_required && set.is_none() {
            let message = format!("{label}: '{}' is missing (it is required)", attribute.name);
            findings.error(line, message);
        }
    }
    record
}

fn warn_deprecated(
    entity: &EntityType,
    attribute: &'static Attribute,
    written: &str,
    line: u32,
    warned: &mut Warned,
    findings: &mut Findings,
) {
    let section = entity.name;
    let message = if attribute.deprecated_name == Some(written) {
        format!("{section}: '{written}' is deprecated, use '{}'", attribute.name)
    } else if let Some(advice) = attribute.deprecated {
        format!("{section}: '{}' is deprecated, {advice}", attribute.name)
    } else {
        return;
    };
    let key = (section, attribute.name);
    if !warned.contains(&key) {
        warned.push(key);
        findings.warning(line, message);
    }
}

fn unknown_attribute(entity: &EntityType, label: &str, written: &str, name: &str) -> String {
    if matches!(name, "identity" | "type") {
        return format!("{label}: '{name}' can't be set, the router makes it");
    }
    let known = entity.attributes.iter().filter(|attribute| attribute.is_creatable());
    let hint = did_you_mean(name, known.map(|attribute| attribute.name));
    format!("{label}: unknown attribute '{written}'{hint}")
}

fn set_twice(
    entity: &EntityType,
    label: &str,
    attribute: &Attribute,
    earlier: &str,
    name: &str,
    line: u32,
) -> String {
    if earlier == name {
        return match line {
            BY_MANAGEMENT => format!("{label}: '{name}' is set twice"),
            line => format!("{label}: '{name}' is set twice, first at line {line}"),
        };
    }
    let former = attribute.deprecated_name.unwrap_or(attribute.name);
    format!(
        "Both '{former}' and '{}' cannot be specified for entity '{}': remove '{former}', the older name",
        attribute.name, entity.name
    )
}

/// The value of `raw`, if the attribute may have it. Notes what it needs of this version.
fn checked(label: &str, attribute: &Attribute, raw: RawAttribute, findings: &mut Findings) -> Option<Value> {
    let written = written(&raw.value);
    let value = match value_of(attribute.kind, raw.value) {
        Ok(value) => value,
        Err(expected) => {
            let unit = attribute.unit.map_or_else(String::new, |unit| format!(" ({unit})"));
            let message = format!("{label}: '{}' is {written}, expected {expected}{unit}", attribute.name);
            findings.error(raw.line, message);
            return None;
        }
    };
    let is_default = default(attribute).is_some_and(|default| default.is_same(&value));
    let words: &[String] = match &value {
        Value::Text(word) => core::slice::from_ref(word),
        Value::Words { list, .. } => list,
        Value::Boolean(_)
        | Value::Integer(_)
        | Value::Port { .. }
        | Value::Levels { .. }
        | Value::Map(_)
        | Value::Entities(_)
        | Value::List(_) => &[],
    };
    let feature = match attribute.availability {
        Availability::Now | Availability::Inert => None,
        Availability::NoEffect(reason) => {
            if !is_default {
                findings.warning(raw.line, format!("{label}: '{}' has no effect: {reason}", attribute.name));
            }
            None
        }
        Availability::Needs(feature) => Some(feature).filter(|_| !is_default),
        Availability::WordsNeed(needs) => words
            .iter()
            .find_map(|word| needs.iter().find(|(needy, _)| needy == word).map(|(_, feature)| *feature)),
        Availability::OthersNeed { words: others, feature } => {
            let needs = |word: &String| !others.contains(&word.as_str());
            words.iter().any(needs).then_some(feature)
        }
    };
    if let Some(feature) = feature {
        findings.uses(feature, raw.line, &format!("{label} '{}'", attribute.name));
    }
    Some(value)
}

/// The entities within an attribute, each with a name of its own.
fn parts(
    part: &'static EntityType,
    label: &str,
    attribute: &Attribute,
    raw_attribute: RawAttribute,
    warned: &mut Warned,
    findings: &mut Findings,
) -> Option<Value> {
    let Json::Map(members) = raw_attribute.value else {
        let message = format!(
            "{label}: '{}' is {}, expected {ENTITIES_EXPECTED}",
            attribute.name,
            written(&raw_attribute.value)
        );
        findings.error(raw_attribute.line, message);
        return None;
    };
    let mut parts: Vec<(String, Record)> = Vec::new();
    for Member { key, line, value } in members {
        if let Some((_, earlier)) = parts.iter().find(|(name, _)| *name == key) {
            let message =
                format!("{label}: '{}' has '{key}' twice, first {}", attribute.name, place(earlier.line()));
            findings.error(line, message);
            continue;
        }
        let Json::Map(settings) = value else {
            let message = format!(
                "{label}: '{key}' in '{}' is {}, expected its attributes in braces",
                attribute.name,
                written(&value)
            );
            findings.error(line, message);
            continue;
        };
        let settings = settings.into_iter().map(raw).collect();
        let label = format!("{label} group '{key}'");
        parts.push((key, check(part, &label, line, settings, warned, findings)));
    }
    Some(Value::Entities(parts))
}
