//! What is configured, by the file and by management since: listeners, connectors, auto-links, which
//! management makes and deletes, and the rest, which it only shows.

use super::entities::{Entity, from_record};
use super::field::Field;
use super::reply::Refusal;
use super::schema::Named;
use crate::control::config::schema::EntityType;
use crate::control::config::{
    BY_MANAGEMENT, Config, ConfigError, ConfigErrors, Json, ListenerConfig, Member, Record, SslProfileConfig,
};
use crate::control::endpoints::{EndpointId, Endpoints};
use ringmain_codec::{Value, View};

/// How deep the value of an attribute may be.
const DEPTH_MAX: u32 = 8;

/// An entity of the configuration.
struct Configured {
    entity: Entity,
    /// What was made for it; `None`: nothing, because it needs nothing or this version can't serve it.
    endpoint: Option<EndpointId>,
}

/// All entities of the configuration.
pub(super) struct Configuration {
    config: Config,
    /// One for each of the configuration's records, in the same order.
    all: Vec<Configured>,
    endpoints: Endpoints,
    router_id: String,
    /// By the place in [`TYPES`], what the next entity without a name is told apart by.
    next: [usize; TYPES.len()],
}

/// The types whose entities management makes and deletes.
const TYPES: [&str; 4] = ["listener", "connector", "router.config.autoLink", "vhost"];

/// Whether management makes and deletes entities of a type, with this.
pub(super) fn is_made_here(of: &EntityType) -> bool {
    TYPES.contains(&of.type_name)
}

impl Configuration {
    /// What the file has, and what was made of it.
    pub(super) fn new(config: &Config, endpoints: Endpoints, router_id: &str) -> Self {
        let mut all: Vec<Configured> = Vec::new();
        for record in &config.records {
            let of = record.entity();
            let index = all.iter().filter(|other| other.entity.of.type_name == of.type_name).count();
            // Sections of a type begin on lines of their own.
            let line = record.line();
            let endpoint = match of.type_name {
                "listener" => endpoints
                    .listeners()
                    .into_iter()
                    .find(|(_, made, _)| made.line == line)
                    .map(|(id, ..)| id),
                "connector" => endpoints
                    .connectors()
                    .into_iter()
                    .find(|(_, made, _)| made.line == line)
                    .map(|(id, ..)| id),
                "router.config.autoLink" => endpoints
                    .auto_links()
                    .into_iter()
                    .find(|(_, made, _)| made.line == line)
                    .map(|(id, ..)| id),
                _ => None,
            };
            all.push(Configured { entity: from_record(record, index, router_id), endpoint });
        }
        let next = TYPES.map(|name| all.iter().filter(|other| other.entity.of.type_name == name).count());
        Self { config: config.clone(), all, endpoints, router_id: router_id.to_owned(), next }
    }

    /// The entities of a type, with what has become of them.
    pub(super) fn entities(&self, of: &EntityType) -> Vec<Entity> {
        let all = self.all.iter().filter(|configured| configured.entity.of.type_name == of.type_name);
        all.map(|configured| self.with_status(configured)).collect()
    }

    fn with_status(&self, configured: &Configured) -> Entity {
        let entity = configured.entity.clone();
        if entity.of.type_name == "sslProfile" {
            return match self.endpoints.tls().status(&entity.name) {
                Some((status, not_after)) => entity
                    .with("loads", Field::Ulong(status.loads))
                    .with("failedLoads", Field::Ulong(status.failures))
                    .with("lastError", status.error.map_or(Field::Null, Field::from))
                    .with("notAfter", not_after.map_or(Field::Null, Field::Long)),
                None => entity,
            };
        }
        let Some(id) = configured.endpoint else { return entity };
        match entity.of.type_name {
            "connector" => {
                let found = self.endpoints.connectors().into_iter().find(|(other, ..)| *other == id);
                let Some((_, _, status)) = found else { return entity };
                entity
                    .with("connectionStatus", Field::text(status.state.name()))
                    .with("connectionMsg", Field::from(status.message))
                    .with("failoverUrls", Field::from(status.failover_urls.join(", ")))
            }
            "router.config.autoLink" => {
                let found = self.endpoints.auto_links().into_iter().find(|(other, ..)| *other == id);
                let Some((_, made, status)) = found else { return entity };
                entity
                    // By default it depends on the direction.
                    .with("phase", Field::Int(made.phase.into()))
                    .with("operStatus", Field::text(status.state.name()))
                    .with("linkRef", status.link.map_or(Field::Null, |link| link.to_string().into()))
                    .with("lastError", status.last_error.map_or(Field::Null, Field::from))
            }
            _ => entity,
        }
    }

    /// Makes an entity.
    ///
    /// # Errors
    /// It may not be as it was asked for, or can't be made: why. Nothing has changed then.
    pub(super) fn create(
        &mut self,
        named: Named,
        name: Option<&str>,
        attributes: &[(&str, Value<'_>)],
    ) -> Result<Entity, Refusal> {
        let of = named.of;
        let is_taken = |name: &str| {
            self.all
                .iter()
                .any(|other| other.entity.of.type_name == of.type_name && other.entity.name == name)
        };
        let given = name.or_else(|| {
            let found = attributes.iter().find(|(attribute, _)| *attribute == "name");
            found.and_then(|(_, value)| value.as_str())
        });
        if given.is_some_and(is_taken) {
            return Err(Refusal::bad("Name conflicts with an existing entity"));
        }
        let mut members = members(attributes)?;
        if let Some(name) = given {
            members.push(Member {
                key: "name".to_owned(),
                line: BY_MANAGEMENT,
                value: Json::String(name.to_owned()),
            });
        }
        let changed = self.config.with_created(of, members).map_err(refused)?;
        let endpoint = self.make(of, &changed)?;
        let Some(record) = changed.records.last() else {
            return Err(Refusal::bad("the entity is in no configuration"));
        };
        let record = record.clone();
        let number = self.take_number(of);
        let entity = from_record(&record, number, &self.router_id);
        self.config = changed;
        self.all.push(Configured { entity, endpoint });
        Ok(self.all.last().map(|configured| self.with_status(configured)).expect("just added"))
    }

    /// Makes what the last entity of a configuration is about, if that takes more than an entry.
    fn make(&self, of: &EntityType, changed: &Config) -> Result<Option<EndpointId>, Refusal> {
        let nothing = || Refusal::bad("the entity is in no configuration");
        match of.type_name {
            "listener" => {
                let config = changed.listeners.last().ok_or_else(nothing)?;
                self.endpoints.create_listener(config.clone()).map(Some).map_err(Refusal::bad)
            }
            "connector" => {
                let config = changed.connectors.last().ok_or_else(nothing)?;
                Ok(Some(self.endpoints.create_connector(config.clone())))
            }
            "router.config.autoLink" => {
                let config = changed.auto_links.last().ok_or_else(nothing)?;
                self.endpoints.create_auto_link(config.clone()).map(Some).map_err(Refusal::bad)
            }
            _ => Ok(None),
        }
    }

    /// Changes the entity with this identity.
    ///
    /// # Errors
    /// It may not be as it was asked for: why. Nothing has changed then.
    pub(super) fn update(
        &mut self,
        of: &EntityType,
        identity: &str,
        attributes: &[(&str, Value<'_>)],
    ) -> Result<Entity, Refusal> {
        let place = self.place(of.type_name, identity)?;
        let changed = self.config.with_updated(place, members(attributes)?).map_err(refused)?;
        Ok(self.put(place, changed))
    }

    /// Where the entity with this identity is.
    fn place(&self, type_name: &str, identity: &str) -> Result<usize, Refusal> {
        let is_it =
            |other: &Configured| other.entity.of.type_name == type_name && other.entity.identity == identity;
        let place = self.all.iter().position(is_it);
        place.ok_or_else(|| Refusal::bad("the entity is in no configuration"))
    }

    /// Goes on with a configuration of which the entity at `place` is another. It keeps its identity and name.
    fn put(&mut self, place: usize, changed: Config) -> Entity {
        let before = &self.all[place].entity;
        let (identity, name) = (before.identity.clone(), before.name.clone());
        let entity = from_record(&changed.records[place], place, &self.router_id);
        self.all[place].entity = Entity { identity, name, ..entity };
        self.config = changed;
        self.with_status(&self.all[place])
    }

    /// Puts the entities of the types that `is_it` names as `new` has them in the place of those that `old` has.
    /// What management has made stays.
    ///
    /// # Errors
    /// They don't go with what management has made: why. Nothing has changed then.
    pub(super) fn replace_of_file(
        &mut self,
        old: &Config,
        new: &Config,
        is_it: impl Fn(&str) -> bool,
    ) -> Result<(), Refusal> {
        let of_type = |record: &&Record| is_it(record.entity().type_name);
        let gone: Vec<&Record> = old.records.iter().filter(of_type).collect();
        let fresh: Vec<&Record> = new.records.iter().filter(of_type).collect();
        let changed = self.config.with_others(&gone, &fresh).map_err(refused)?;
        let mut all = std::mem::take(&mut self.all);
        let mut records = self.config.records.iter();
        all.retain(|_| records.next().is_some_and(|record| !gone.contains(&record)));
        self.all = all;
        for record in fresh {
            let number = self.take_number(record.entity());
            let entity = from_record(record, number, &self.router_id);
            self.all.push(Configured { entity, endpoint: None });
        }
        self.config = changed;
        Ok(())
    }

    /// All that is configured.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Deletes the entity with this identity, and what was made for it. Tells whether it was there.
    ///
    /// # Errors
    /// Another entity refers to it.
    pub(super) fn delete(&mut self, of: &EntityType, identity: &str) -> Result<bool, Refusal> {
        let is_it = |configured: &Configured| {
            configured.entity.of.type_name == of.type_name && configured.entity.identity == identity
        };
        let Some(index) = self.all.iter().position(is_it) else { return Ok(false) };
        self.delete_at(index)?;
        Ok(true)
    }

    fn delete_at(&mut self, index: usize) -> Result<(), Refusal> {
        self.config = self.config.without(index).map_err(refused)?;
        let deleted = self.all.remove(index);
        if let Some(id) = deleted.endpoint {
            match deleted.entity.of.type_name {
                "listener" => self.endpoints.delete_listener(id),
                "connector" => self.endpoints.delete_connector(id),
                _ => self.endpoints.delete_auto_link(id),
            };
        }
        Ok(())
    }

    /// Adds an entity that the file has now, and makes what it is about, if this version serves it.
    ///
    /// # Errors
    /// It doesn't go with what management has made, or can't be made: why. Nothing has changed then.
    pub(super) fn add_of_file(&mut self, record: &Record) -> Result<(), Refusal> {
        let changed = self.config.with_record(record.clone()).map_err(refused)?;
        let of = record.entity();
        let is_served = match of.type_name {
            "listener" => changed.listeners.last().is_some_and(ListenerConfig::is_served),
            _ => true,
        };
        let endpoint = if is_served { self.make(of, &changed)? } else { None };
        let number = self.take_number(of);
        let entity = from_record(record, number, &self.router_id);
        self.config = changed;
        self.all.push(Configured { entity, endpoint });
        Ok(())
    }

    /// Lets an sslProfile be what the file has now.
    ///
    /// # Errors
    /// Its files can't be used, and everything is as it was: a sentence for the user.
    pub(super) fn set_profile(&mut self, profile: &SslProfileConfig, record: &Record) -> Result<(), String> {
        self.endpoints.set_profile(profile.clone())?;
        let is_it = |other: &Configured| {
            other.entity.of.type_name == "sslProfile" && other.entity.name == profile.name
        };
        match self.all.iter().position(is_it) {
            Some(place) => {
                let changed = self.config.with_replaced(place, record.clone());
                self.put(place, changed.map_err(|errors| refused(errors).description)?);
            }
            None => {
                let changed =
                    self.config.with_record(record.clone()).map_err(|errors| refused(errors).description)?;
                let number = self.take_number(record.entity());
                self.config = changed;
                self.all.push(Configured {
                    entity: from_record(record, number, &self.router_id),
                    endpoint: None,
                });
            }
        }
        Ok(())
    }

    /// Gives an sslProfile other attributes, and reads its files again, also if none has changed.
    ///
    /// # Errors
    /// An attribute may not be so, or the files can't be used: why. Everything is as it was then.
    pub(super) fn update_profile(
        &mut self,
        identity: &str,
        attributes: &[(&str, Value<'_>)],
    ) -> Result<Entity, Refusal> {
        let place = self.place("sslProfile", identity)?;
        let changed = self.config.with_updated(place, members(attributes)?).map_err(refused)?;
        let name = &self.all[place].entity.name;
        let profile = changed.ssl_profiles.iter().find(|profile| profile.name == *name).cloned();
        let profile = profile.ok_or_else(|| Refusal::bad("the entity is in no configuration"))?;
        self.endpoints.set_profile(profile).map_err(Refusal::bad)?;
        Ok(self.put(place, changed))
    }

    /// Removes an entity that the file doesn't have any more, unless management has done so before.
    ///
    /// # Errors
    /// Another entity refers to it.
    pub(super) fn remove_of_file(&mut self, record: &Record) -> Result<(), Refusal> {
        match self.config.records.iter().position(|other| other == record) {
            Some(index) => self.delete_at(index),
            None => Ok(()),
        }
    }

    /// What the next entity of a type is told apart by, if it has no name.
    fn take_number(&mut self, of: &EntityType) -> usize {
        let Some(kind) = TYPES.iter().position(|name| *name == of.type_name) else { return self.all.len() };
        self.next[kind] += 1;
        self.next[kind] - 1
    }

    /// How many auto-links there are.
    pub(super) fn auto_links(&self) -> u64 {
        self.endpoints.auto_links().len() as u64
    }
}

/// What is wrong with a configuration, in the words of management: what was asked for is in no file and has no
/// line. What it doesn't go with may have one.
fn refused(errors: ConfigErrors) -> Refusal {
    let message = |error: ConfigError| match error.message.contains(" at line ") {
        true => format!("{} of {}", error.message, error.file),
        false => error.message,
    };
    let messages: Vec<String> = errors.0.into_iter().map(message).collect();
    Refusal::bad(messages.join("; "))
}

/// The attributes of a request as the configuration's checks take them, without those that say which entity it is.
fn members(attributes: &[(&str, Value<'_>)]) -> Result<Vec<Member>, Refusal> {
    attributes
        .iter()
        .filter(|(attribute, _)| !["name", "type", "identity"].contains(attribute))
        .map(|(attribute, value)| {
            let value = json(value, DEPTH_MAX).ok_or_else(|| {
                Refusal::bad(format!("'{attribute}' has a value of a type that no attribute has"))
            })?;
            Ok(Member { key: (*attribute).to_owned(), line: BY_MANAGEMENT, value })
        })
        .collect()
}

/// The value of an attribute as the configuration's checks take it; `None` if none has such a type.
fn json(value: &Value<'_>, depth: u32) -> Option<Json> {
    let deeper = depth.checked_sub(1)?;
    match value.view() {
        View::Null => Some(Json::Null),
        View::Bool(value) => Some(Json::Boolean(value)),
        View::Str(text) => Some(Json::String(text.to_owned())),
        View::Symbol(symbol) => Some(Json::String(symbol.0.to_owned())),
        View::Double(number) => Some(Json::Float(number)),
        View::Float(number) => Some(Json::Float(number.into())),
        View::List(items) => items.map(|item| json(&item, deeper)).collect::<Option<_>>().map(Json::List),
        View::Map(_) => {
            let members = value.entries()?.map(|(key, value)| {
                let key = key.as_str().or_else(|| key.as_symbol().map(|symbol| symbol.0))?;
                Some(Member { key: key.to_owned(), line: BY_MANAGEMENT, value: json(&value, deeper)? })
            });
            members.collect::<Option<_>>().map(Json::Map)
        }
        View::Ubyte(_)
        | View::Ushort(_)
        | View::Uint(_)
        | View::Ulong(_)
        | View::Byte(_)
        | View::Short(_)
        | View::Int(_)
        | View::Long(_) => value.as_i64().map(Json::Integer),
        View::Decimal32(_)
        | View::Decimal64(_)
        | View::Decimal128(_)
        | View::Char(_)
        | View::Timestamp(_)
        | View::Uuid(_)
        | View::Binary(_)
        | View::Array(_)
        | View::Described { .. } => None,
    }
}
