//! `router.config.address`: how addresses are distributed, from the file and at run time.
//!
//! A change holds for addresses that come into use after it; those in use keep what they have until nobody
//! uses them any more. That is how `qdrouterd` does it, and it spares links a change of treatment under way.

use super::dialect::Dialect;
use super::field::Field;
use super::reply::Refusal;
use crate::control::config::{AddressConfig, AddressMatch, Distribution};
use crate::control::registry::{Change, Reconfigure};
use crate::control::router::treatment;
use crate::routing::{AddressSettings, PHASE_MAX};
use ringmain_codec::Value;
use std::borrow::Cow;
use tokio::sync::{mpsc, oneshot};

/// The type's name.
pub(super) const TYPE: &str = "router.config.address";

/// The attributes in the order in which all of them are shown, and those that only `qdrouterd` has.
const COLUMNS: [(&str, Option<Dialect>); 11] = [
    ("name", None),
    ("identity", None),
    ("type", None),
    ("prefix", None),
    ("distribution", None),
    ("waypoint", Some(Dialect::Dispatch)),
    ("ingressPhase", Some(Dialect::Dispatch)),
    ("egressPhase", Some(Dialect::Dispatch)),
    ("pattern", None),
    ("priority", None),
    ("fallback", Some(Dialect::Dispatch)),
];

/// How some addresses are distributed.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// Its number.
    identity: String,
    name: Option<String>,
    matching: AddressMatch,
    distribution: Distribution,
    priority: Option<u8>,
    ingress_phase: u8,
    egress_phase: u8,
    /// The file asks for a fallback, which this version doesn't have.
    has_fallback: bool,
}

impl Address {
    /// The value of an attribute; null if it has none.
    pub(super) fn value(&self, name: &str, dialect: Dialect) -> Field<'_> {
        let text = |text: Option<&'_ str>| text.map_or(Field::Null, |text| Field::from(text.to_owned()));
        match name {
            "name" => text(self.name.as_deref()),
            "identity" => Field::text(&self.identity),
            "type" => dialect.full_name(TYPE).into(),
            "prefix" => match &self.matching {
                AddressMatch::Prefix(prefix) => Field::text(prefix),
                AddressMatch::Pattern(_) => Field::Null,
            },
            "pattern" => match &self.matching {
                AddressMatch::Prefix(_) => Field::Null,
                AddressMatch::Pattern(pattern) => Field::text(pattern),
            },
            "distribution" => Field::text(self.distribution.name()),
            "waypoint" => Field::Bool(self.ingress_phase == 0 && self.egress_phase == 1),
            "fallback" | "enableFallback" => Field::Bool(self.has_fallback),
            "ingressPhase" => Field::Int(self.ingress_phase.into()),
            "egressPhase" => Field::Int(self.egress_phase.into()),
            "priority" => Field::Int(self.priority.map_or(-1, i32::from)),
            _ => Field::Null,
        }
    }

    /// All attributes, also those without a value.
    pub(super) fn map(&self, dialect: Dialect) -> Field<'_> {
        let names = columns(dialect).into_iter();
        Field::Map(names.map(|name| (Cow::Borrowed(name), self.value(name, dialect))).collect())
    }

    /// The name, if it was given one.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether these are its name and identity, as far as they are given.
    fn is_called(&self, name: Option<&str>, identity: Option<&str>) -> bool {
        // The identity decides: `qdrouterd` looks at the name only without one.
        match (identity, name) {
            (Some(identity), _) => self.identity == identity,
            (None, Some(name)) => self.name.as_deref() == Some(name),
            (None, None) => false,
        }
    }

    /// Whether it means the same addresses as that one: a file may have only one of the two.
    fn means(&self, matching: &AddressMatch) -> bool {
        self.matching.normal_form() == matching.normal_form()
    }

    /// What a section of the file says. Without a name it is called after `number`.
    fn of(config: &AddressConfig, identity: String, number: &dyn std::fmt::Display) -> Self {
        Self {
            identity,
            name: Some(config.name.clone().unwrap_or_else(|| format!("address/{number}"))),
            matching: config.matching.clone(),
            distribution: config.distribution,
            priority: config.priority,
            ingress_phase: config.ingress_phase,
            egress_phase: config.egress_phase,
            has_fallback: config.has_fallback,
        }
    }

    fn settings(&self) -> AddressSettings {
        AddressSettings {
            treatment: treatment(self.distribution),
            priority: self.priority,
            ingress_phase: self.ingress_phase,
            egress_phase: self.egress_phase,
        }
    }
}

/// The columns that all attributes mean.
pub(super) fn columns(dialect: Dialect) -> Vec<&'static str> {
    let shown = COLUMNS.into_iter().filter(|(_, only)| only.is_none_or(|only| only == dialect));
    shown.map(|(name, _)| name).collect()
}

/// All of them, and the way to the routing snapshot.
#[derive(Debug)]
pub(super) struct Addresses {
    all: Vec<Address>,
    next_identity: u64,
    reconfigure: mpsc::UnboundedSender<Reconfigure>,
}

impl Addresses {
    /// Those of the file, which are in the snapshot already.
    pub(super) fn new(configured: &[AddressConfig], reconfigure: mpsc::UnboundedSender<Reconfigure>) -> Self {
        let mut addresses = Self { all: Vec::new(), next_identity: 1, reconfigure };
        for (index, config) in configured.iter().enumerate() {
            let address = Address::of(config, addresses.take_identity(), &index);
            addresses.all.push(address);
        }
        addresses
    }

    fn take_identity(&mut self) -> String {
        let identity = self.next_identity.to_string();
        self.next_identity += 1;
        identity
    }

    /// In the order in which they came.
    pub(super) fn all(&self) -> &[Address] {
        &self.all
    }

    /// The one that is called so.
    pub(super) fn find(&self, name: Option<&str>, identity: Option<&str>) -> Option<&Address> {
        self.all.iter().find(|address| address.is_called(name, identity))
    }

    /// Makes one, as `qdrouterd` does: attributes that it doesn't know are passed over, and a distribution
    /// that it doesn't know means `balanced`. Returns when every shard sees it.
    pub(super) async fn create(
        &mut self,
        name: Option<&str>,
        attributes: &[(&str, Value<'_>)],
    ) -> Result<&Address, Refusal> {
        let value =
            |wanted: &str| attributes.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        let text = |name| value(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
        let number = |name: &str| {
            let value = value(name)?;
            value.as_i64().or_else(|| value.as_str()?.parse().ok())
        };
        let flag = |name| value(name).and_then(|value| value.as_bool()).unwrap_or(false);
        let name = name.or(text("name")).map(str::to_owned);
        if name.is_some() && self.all.iter().any(|address| address.name == name) {
            return Err(Refusal::bad("Name conflicts with an existing entity").of_core());
        }
        let matching = match (text("prefix"), text("pattern")) {
            (Some(prefix), None) => AddressMatch::Prefix(prefix.to_owned()),
            (None, Some(pattern)) => AddressMatch::Pattern(pattern.to_owned()),
            (Some(_), Some(_)) => {
                let text = "Cannot specify both a 'prefix' and a 'pattern' attribute";
                return Err(Refusal::bad(text).of_core());
            }
            (None, None) => {
                let text = "Either a 'prefix' or 'pattern' attribute must be provided";
                return Err(Refusal::bad(text).of_core());
            }
        };
        if matching.names_nothing() {
            let (attribute, text) = match &matching {
                AddressMatch::Prefix(text) => ("prefix", text),
                AddressMatch::Pattern(text) => ("pattern", text),
            };
            return Err(Refusal::bad(format!("'{attribute}' is '{text}', which names no address")).of_core());
        }
        if flag("enableFallback") || flag("fallback") {
            let text = "Fallback destinations aren't available in this version of the router";
            return Err(Refusal::bad(text).of_core());
        }
        let phase = |name, default| match number(name) {
            None => Ok(default),
            Some(phase) => u8::try_from(phase)
                .ok()
                .filter(|phase| *phase <= PHASE_MAX)
                .ok_or_else(|| Refusal::bad("Phase values must be between 0 and 9").of_core()),
        };
        let ingress_phase = phase("ingressPhase", 0)?;
        let egress_phase = phase("egressPhase", u8::from(flag("waypoint")))?;
        let priority = number("priority").unwrap_or(-1);
        if !(-1..=9).contains(&priority) {
            return Err(Refusal::bad("Priority value, if present, must be between 0 and 9").of_core());
        }
        let distribution =
            text("distribution").and_then(Distribution::from_name).unwrap_or(Distribution::Balanced);
        let identity = self.next_identity.to_string();
        let priority = u8::try_from(priority).ok();
        let address = Address {
            identity,
            name,
            matching,
            distribution,
            priority,
            ingress_phase,
            egress_phase,
            has_fallback: false,
        };
        if self.all.iter().any(|other| other.means(&address.matching)) {
            return Err(Refusal::bad("Already exists").of_core());
        }
        self.next_identity += 1;
        self.publish(address.matching.pattern(), Some(address.settings())).await;
        self.all.push(address);
        self.all.last().ok_or_else(|| Refusal::bad("Already gone"))
    }

    /// Takes one back. Tells whether it was there. Returns when every shard sees it.
    pub(super) async fn delete(&mut self, name: Option<&str>, identity: Option<&str>) -> bool {
        let Some(index) = self.all.iter().position(|address| address.is_called(name, identity)) else {
            return false;
        };
        let address = self.all.remove(index);
        self.publish(address.matching.pattern(), None).await;
        true
    }

    /// What the file says now. Returns when every shard sees it.
    pub(super) async fn set(&mut self, config: &AddressConfig) {
        let place = self.all.iter().position(|other| other.means(&config.matching));
        let identity = match place {
            Some(place) => self.all[place].identity.clone(),
            None => self.take_identity(),
        };
        let number = identity.clone();
        let mut address = Address::of(config, identity, &number);
        if let Some(place) = place.filter(|_| config.name.is_none()) {
            // Whoever made it finds it by its name.
            address.name.clone_from(&self.all[place].name);
        }
        self.publish(address.matching.pattern(), Some(address.settings())).await;
        match place {
            Some(place) => self.all[place] = address,
            None => self.all.push(address),
        }
    }

    /// The file has nothing of these addresses any more. Returns when every shard sees it.
    pub(super) async fn remove(&mut self, config: &AddressConfig) {
        let place = self.all.iter().position(|other| other.means(&config.matching));
        if let Some(place) = place {
            let address = self.all.remove(place);
            self.publish(address.matching.pattern(), None).await;
        }
    }

    async fn publish(&self, pattern: String, settings: Option<AddressSettings>) {
        let (done, is_done) = oneshot::channel();
        // Without a registry there is no router any more.
        if self
            .reconfigure
            .send(Reconfigure { change: Change::Addresses { pattern, settings }, done })
            .is_ok()
        {
            let _gone = is_done.await;
        }
    }
}
