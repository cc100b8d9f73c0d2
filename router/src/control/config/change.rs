//! Changes of a configuration: what differs between two, and one with an entity more, fewer or changed.

use std::collections::HashMap;

use super::check::{check_created, check_updated};
use super::error::Findings;
use super::json::Member;
use super::record::Record;
use super::schema::EntityType;
use super::{Config, ConfigErrors, typed};

/// What differs between two configurations, in the order of their files. What is neither here nor there is
/// the same in both.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference<'c> {
    /// Entities that only the new one has.
    pub added: Vec<&'c Record>,
    /// Entities that only the old one has.
    pub removed: Vec<&'c Record>,
    /// Entities that both have, with other values.
    pub changed: Vec<Change<'c>>,
}

/// An entity that has changed.
#[derive(Clone, PartialEq, Debug)]
pub struct Change<'c> {
    /// As it was.
    pub old: &'c Record,
    /// As it is to be.
    pub new: &'c Record,
    /// The attributes that differ; at least one.
    pub attributes: Vec<&'static str>,
}

impl Difference<'_> {
    /// Whether both are the same.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// What tells entities of a type apart, if they have no name.
const KEYS: &[(&str, &[&str])] = &[
    ("listener", &["host", "port", "socketAddressFamily"]),
    ("connector", &["host", "port", "role"]),
    ("address", &["prefix", "pattern"]),
    ("autoLink", &["address", "direction", "containerId", "connection", "externalAddress"]),
    ("linkRoute", &["prefix", "pattern", "direction", "containerId", "connection"]),
    ("binding", &["exchangeName", "bindingKey", "nextHopAddress"]),
    ("log", &["module"]),
    ("vhost", &["hostname"]),
    ("tcpListener", &["host", "port"]),
    ("tcpConnector", &["host", "port", "address"]),
    ("httpListener", &["host", "port"]),
    ("httpConnector", &["host", "port", "address"]),
];

/// What an entity is known by: its type, its name or the attributes that tell it apart, and the how manieth
/// of those that are alike it is.
type Key = (&'static str, String, usize);

fn keyed(records: &[Record]) -> Vec<(Key, &Record)> {
    let mut alike: HashMap<(&str, String), usize> = HashMap::new();
    records
        .iter()
        .map(|record| {
            let identity = identity(record);
            let count = alike.entry((record.entity_name(), identity.clone())).or_default();
            *count += 1;
            ((record.entity_name(), identity, *count), record)
        })
        .collect()
}

fn identity(record: &Record) -> String {
    if record.entity().is_singleton {
        return String::new();
    }
    if let Some(name) = record.name() {
        return format!("name {name}");
    }
    let keys = KEYS.iter().find(|(section, _)| *section == record.entity_name());
    let keys = keys.map_or(&[][..], |(_, keys)| keys);
    keys.iter()
        .map(|key| record.value(key).map_or_else(|| "-".to_owned(), |value| format!("={}", value.text())))
        .collect::<Vec<_>>()
        .join(" ")
}

impl Config {
    /// What has to be done to get from this configuration to `new`. Lines and the order of entities don't
    /// count, except that of those with the same identity.
    #[must_use]
    pub fn difference<'c>(&'c self, new: &'c Self) -> Difference<'c> {
        let mut old: HashMap<Key, &Record> = keyed(&self.records).into_iter().collect();
        let mut difference = Difference { added: Vec::new(), removed: Vec::new(), changed: Vec::new() };
        for (key, record) in keyed(&new.records) {
            match old.remove(&key) {
                None => difference.added.push(record),
                Some(before) => {
                    let attributes = before.changes(record);
                    if !attributes.is_empty() {
                        difference.changed.push(Change { old: before, new: record, attributes });
                    }
                }
            }
        }
        let removed = keyed(&self.records).into_iter().filter(|(key, _)| old.contains_key(key));
        difference.removed = removed.map(|(_, record)| record).collect();
        difference
    }

    /// The configuration with another entity, as management's CREATE makes it. It is at the end of
    /// [`Config::records`].
    ///
    /// # Errors
    /// The schema or another entity forbids it: why, without a line that means anything.
    pub fn with_created(
        &self,
        entity: &'static EntityType,
        attributes: Vec<Member>,
    ) -> Result<Self, ConfigErrors> {
        let mut findings = Findings::new(&self.file);
        let record = check_created(entity, attributes, &mut findings);
        let mut records = self.records.clone();
        records.push(record);
        self.rebuilt(records, findings)
    }

    /// The configuration with another entity that a file has. It is at the end of [`Config::records`].
    ///
    /// # Errors
    /// Another entity forbids it: why, without a line that means anything.
    pub fn with_record(&self, record: Record) -> Result<Self, ConfigErrors> {
        let mut records = self.records.clone();
        records.push(record);
        self.rebuilt(records, Findings::new(&self.file))
    }

    /// The configuration with other values of the entity at `index` of [`Config::records`], as management's
    /// UPDATE makes it.
    ///
    /// # Errors
    /// The schema or another entity forbids it: why, without a line that means anything.
    pub fn with_updated(&self, index: usize, attributes: Vec<Member>) -> Result<Self, ConfigErrors> {
        let mut findings = Findings::new(&self.file);
        let mut records = self.records.clone();
        if let Some(record) = records.get_mut(index) {
            check_updated(record, attributes, &mut findings);
        }
        self.rebuilt(records, findings)
    }

    /// The configuration with another record in the place of that at `index` of [`Config::records`].
    ///
    /// # Errors
    /// Another entity forbids it: why, without a line that means anything.
    pub fn with_replaced(&self, index: usize, record: Record) -> Result<Self, ConfigErrors> {
        let mut records = self.records.clone();
        if let Some(place) = records.get_mut(index) {
            *place = record;
        }
        self.rebuilt(records, Findings::new(&self.file))
    }

    /// The configuration without the entity at `index` of [`Config::records`].
    ///
    /// # Errors
    /// Another entity refers to it.
    pub fn without(&self, index: usize) -> Result<Self, ConfigErrors> {
        let mut records = self.records.clone();
        if index < records.len() {
            records.remove(index);
        }
        self.rebuilt(records, Findings::new(&self.file))
    }

    /// The configuration with the entities `fresh`, at the end of [`Config::records`], in the place of those that are
    /// like one of `gone`.
    ///
    /// # Errors
    /// Another entity forbids it: why, without a line that means anything.
    pub fn with_others(&self, gone: &[&Record], fresh: &[&Record]) -> Result<Self, ConfigErrors> {
        let mut records: Vec<Record> =
            self.records.iter().filter(|record| !gone.contains(record)).cloned().collect();
        records.extend(fresh.iter().copied().cloned());
        self.rebuilt(records, Findings::new(&self.file))
    }

    fn rebuilt(&self, records: Vec<Record>, mut findings: Findings) -> Result<Self, ConfigErrors> {
        let config = typed::build(records, &mut findings);
        let warnings = findings.finish()?;
        Ok(Self { file: self.file.clone(), source: self.source.clone(), warnings, ..config })
    }
}
