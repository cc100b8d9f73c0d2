//! `ringmain manage --save`: the configuration that a router runs with, as a file that starts another like it.
//!
//! The entities are asked for, so that what was made or changed at run time is in the file; what is as by default
//! isn't. The file is read again, by what would read it at a start, before it is written anywhere. Passwords are
//! never told by a router: they are taken from the file that is replaced, as far as it has them.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use super::problem::Problem;
use super::router::Router;
use crate::client::management::Entity;
use crate::control::config::schema::{Access, Attribute, Category, ENTITY_TYPES, EntityType, Kind};
use crate::control::config::{Config, Record, Value, protected};

/// What messages call the configuration while it is no file yet.
const RUNNING: &str = "the router's configuration.json";

/// Saves the configuration of `router` to `path`; `-` is standard output.
pub(super) fn save(router: &mut Router, path: &Path) -> Result<(), Problem> {
    let is_file = path != Path::new("-");
    let former = if is_file && path.exists() { Former::load(path) } else { None };
    let mut sections: Vec<Section> = Vec::new();
    // A router is asked only for what it knows; `qdrouterd` logs an error for each other type.
    let known = router.types()?;
    let is_known = |of: &&EntityType| of.category == Category::Section && known.contains(of.type_name);
    for of in ENTITY_TYPES.iter().filter(is_known) {
        for entity in router.query_if_known(of.type_name, None)? {
            sections.extend(section(of, &entity));
        }
    }
    let mut notes = take_vhosts_here(&mut sections);
    notes.extend(add_secrets(&mut sections, former.as_ref()));
    let text = text(&sections, &notes)?;
    for note in &notes {
        eprintln!("ringmain: {note}");
    }
    if !is_file {
        return io::stdout().lock().write_all(text.as_bytes()).map_err(|error| Problem::of_output(&error));
    }
    replace(path, &text)
        .map_err(|error| Problem::Local(format!("can't write {}: {error}", path.display())))?;
    let count = sections.len();
    let plural = if count == 1 { "" } else { "s" };
    println!("{}: {count} section{plural} written; 'ringmain check' finds no fault with it.", path.display());
    Ok(())
}

/// The file that is replaced.
struct Former {
    /// As a router reads it.
    config: Config,
    /// The same with its values as they are written, if that makes sense: a number may be in a variable.
    verbatim: Option<Config>,
}

impl Former {
    fn load(path: &Path) -> Option<Self> {
        Some(Self { config: Config::load(path).ok()?, verbatim: Config::load_verbatim(path).ok() })
    }

    /// The password of the section that is like `section`, as a file has it.
    fn secret(&self, section: &Section, attribute: &Attribute) -> Option<String> {
        let is_same = |record: &Record| {
            let text = |name: &str| record.value(name).map(Value::text);
            let is_same =
                |name: &str| text(name).filter(|text| !text.is_empty()).as_deref() == section.text(name);
            record.entity_name() == section.of.name
                && match section.text("name") {
                    Some(name) => record.name() == Some(name),
                    None => record.name().is_none() && is_same("port"),
                }
        };
        let place = self.config.records.iter().position(is_same)?;
        let set = |record: &Record| Some(record.value(attribute.name)?.text());
        let record = self.config.records.get(place).filter(|record| record.is_set(attribute.name))?;
        // A variable stays one: what it stands for has no business in a file.
        let written = self.verbatim.as_ref().and_then(|verbatim| set(verbatim.records.get(place)?));
        written.or_else(|| Some(protected(&set(record)?)))
    }
}

/// A section of the file.
#[derive(Clone, Debug)]
struct Section {
    of: &'static EntityType,
    attributes: Map<String, Json>,
}

impl Section {
    fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).and_then(Json::as_str)
    }

    /// How messages call it.
    fn title(&self) -> String {
        let called = self.text("name").map(|name| format!(" '{name}'")).unwrap_or_default();
        format!("{}{called}", self.of.name)
    }
}

/// What has to be written for an entity; nothing if all of it is as by default.
fn section(of: &'static EntityType, entity: &Entity) -> Option<Section> {
    let mut attributes = set_attributes(of, entity);
    let identity = entity.get("identity").and_then(Json::as_str).unwrap_or_default();
    if attributes.get("name").and_then(Json::as_str).is_some_and(|name| is_made_up(of, name, identity)) {
        attributes.shift_remove("name");
    }
    // The two say the same; the router may report both.
    if attributes.get("waypoint").and_then(Json::as_bool) == Some(true) {
        attributes.shift_remove("ingressPhase");
        attributes.shift_remove("egressPhase");
    }
    let only_names_itself = attributes.keys().all(|name| of.name == "log" && name == "module");
    (!only_names_itself && !attributes.is_empty()).then_some(Section { of, attributes })
}

/// Whether the router gave the name, for want of one.
fn is_made_up(of: &EntityType, name: &str, identity: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let after = |front: &str| name.strip_prefix(front).and_then(|rest| rest.strip_prefix('/'));
    name == identity || [of.name, of.type_name].into_iter().any(|front| after(front).is_some_and(is_number))
}

/// The attributes that a file may set and that aren't as by default.
fn set_attributes(of: &EntityType, entity: &Entity) -> Map<String, Json> {
    let mut set = Map::new();
    for attribute in of.attributes {
        let is_settable = match attribute.access {
            Access::Create | Access::CreateOrUpdate => true,
            Access::Update => of.name == "log",
            Access::ReadOnly => false,
        };
        // Of an address management reports this one by a name of its own.
        let reported = if attribute.name == "enableFallback" { "fallback" } else { attribute.name };
        let value = entity.get(attribute.name).or_else(|| entity.get(reported));
        let Some(value) = value.filter(|value| !value.is_null()) else { continue };
        if is_settable && attribute.deprecated.is_none() && !is_default(attribute, value) {
            set.insert(attribute.name.to_owned(), without_defaults(attribute.kind, value));
        }
    }
    set
}

fn is_default(attribute: &Attribute, value: &Json) -> bool {
    let is_yes = |text: &str| ["yes", "true", "on"].contains(&text);
    match (value, attribute.default) {
        (Json::Bool(value), Some(default)) => *value == is_yes(default),
        (Json::String(text), Some(default)) => text == default,
        (Json::Number(number), Some(default)) => number.to_string() == default,
        (Json::String(text), None) => text.is_empty(),
        (Json::Object(entries), _) => entries.is_empty(),
        (Json::Array(items), _) => items.is_empty(),
        (Json::Null | Json::Bool(_) | Json::Number(_), _) => false,
    }
}

/// The value as a file has it: of entities within an entity only what isn't as by default.
fn without_defaults(kind: Kind, value: &Json) -> Json {
    match (kind, value) {
        (Kind::Entities(part), Json::Object(entries)) => {
            let Some(of) = EntityType::find_type(part) else { return value.clone() };
            let part = |value: &Json| {
                value.as_object().map_or(Json::Null, |entity| Json::Object(set_attributes(of, entity)))
            };
            Json::Object(entries.iter().map(|(name, value)| (name.clone(), part(value))).collect())
        }
        (
            Kind::Boolean
            | Kind::Integer { .. }
            | Kind::String
            | Kind::Path
            | Kind::Host
            | Kind::Port
            | Kind::Enumeration(_)
            | Kind::Words { .. }
            | Kind::LogLevels
            | Kind::Properties
            | Kind::Entities(_)
            | Kind::List,
            _,
        ) => value.clone(),
    }
}

/// The vhosts of the policy's directory are among the sections, so the directory must not be read as well.
fn take_vhosts_here(sections: &mut [Section]) -> Vec<String> {
    let has_vhosts = sections.iter().any(|section| section.of.name == "vhost");
    let Some(policy) = sections.iter_mut().find(|section| section.of.name == "policy" && has_vhosts) else {
        return Vec::new();
    };
    match policy.attributes.shift_remove("policyDir") {
        Some(directory) => vec![format!(
            "the vhosts of the directory {} are in the file; its 'policyDir' is left out",
            directory.as_str().unwrap_or_default()
        )],
        None => Vec::new(),
    }
}

/// Adds the passwords that the former file has. The others can't be known: a note for each that is probably set.
fn add_secrets(sections: &mut [Section], former: Option<&Former>) -> Vec<String> {
    let mut notes = Vec::new();
    for section in sections {
        let Some(attribute) = section.of.attributes.iter().find(|attribute| attribute.is_secret) else {
            continue;
        };
        let known = former.and_then(|former| former.secret(section, attribute));
        match known {
            Some(secret) => {
                section.attributes.insert(attribute.name.to_owned(), secret.into());
            }
            // Nothing but a password goes with a user, and with a key there may be one.
            None if section.attributes.contains_key("saslUsername")
                || section.attributes.contains_key("privateKeyFile") =>
            {
                notes.push(format!(
                    "{}: a router doesn't tell passwords; if it has one, set '{}' in the file",
                    section.title(),
                    attribute.name
                ));
            }
            None => {}
        }
    }
    notes
}

/// The file.
fn text(sections: &[Section], notes: &[String]) -> Result<String, Problem> {
    let document: Vec<Json> = sections
        .iter()
        .map(|section| Json::Array(vec![section.of.name.into(), Json::Object(section.attributes.clone())]))
        .collect();
    let fault = |errors: &dyn core::fmt::Display| {
        Problem::Local(format!(
            "the router's configuration can't be made a file of; nothing was written:\n{errors}"
        ))
    };
    let config = Config::parse_verbatim(&Json::Array(document).to_string(), RUNNING)
        .map_err(|errors| fault(&errors))?;
    let mut text =
        String::from("# Written by 'ringmain manage --save': the configuration of a running router.\n");
    for note in notes {
        text.push_str("# ");
        text.push_str(note);
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&config.to_text());
    // What is written must be what was meant.
    let again = Config::parse(&text, "FILE").map_err(|errors| fault(&errors))?;
    if again.to_text() != config.to_text() {
        return Err(fault(&"reading it again gives something else"));
    }
    Ok(text)
}

/// Replaces the file in one step; what was there is kept beside it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = |ending: &str| -> PathBuf {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        path.with_file_name(name)
    };
    let new = beside(".new");
    let mut file = fs::File::create(&new)?;
    if let Ok(metadata) = fs::metadata(path) {
        file.set_permissions(metadata.permissions())?;
        fs::copy(path, beside(".bak"))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::{Former, Section, add_secrets, section, take_vhosts_here, text};
    use crate::control::config::Config;
    use crate::control::config::schema::EntityType;
    use serde_json::{Value, json};

    fn made(of: &str, entity: Value) -> Option<Section> {
        section(EntityType::find(of).unwrap(), entity.as_object().unwrap())
    }

    /// Defaults as peer-features §3 has them: cost 1, role normal, distribution balanced.
    #[test]
    fn only_what_is_set_is_written() {
        let listener = json!({"name": "listener/h:1", "identity": "listener/h:1", "type": "x", "host": "h",
            "port": "1", "role": "normal", "cost": 1, "maxFrameSize": 4096, "http": false});
        let attributes = made("listener", listener).unwrap().attributes;
        assert_eq!(json!(attributes), json!({"host": "h", "port": "1", "maxFrameSize": 4096}));
        let address = json!({"name": "address/0", "identity": "1", "prefix": "a", "distribution": "balanced",
            "priority": -1, "waypoint": false, "ingressPhase": 0, "egressPhase": 0});
        assert_eq!(json!(made("address", address).unwrap().attributes), json!({"prefix": "a"}));
        let log = json!({"name": "log/AGENT", "identity": "log/AGENT", "module": "AGENT"});
        assert!(made("log", log).is_none());
        let log =
            json!({"name": "log/AGENT", "identity": "log/AGENT", "module": "AGENT", "enable": "debug+"});
        let attributes = made("log", log).unwrap().attributes;
        assert_eq!(json!(attributes), json!({"module": "AGENT", "enable": "debug+"}));
    }

    #[test]
    fn the_file_is_read_as_it_was_meant() {
        let sections = [
            made("router", json!({"id": "R#1", "mode": "standalone", "identity": "router/R#1"})),
            made("listener", json!({"name": "in side", "port": "5673", "host": "::1"})),
            made("address", json!({"pattern": "a.#", "distribution": "multicast"})),
        ];
        let sections: Vec<Section> = sections.into_iter().flatten().collect();
        let text = text(&sections, &["a note".to_owned()]).unwrap();
        assert!(text.contains("# a note\n"), "{text}");
        let config = Config::parse(&text, "saved.conf").unwrap();
        assert_eq!(config.router.id.as_deref(), Some("R#1"));
        assert_eq!(config.listeners[0].name.as_deref(), Some("in side"));
        assert_eq!(config.addresses[0].matching.pattern(), "a.#");
    }

    #[test]
    fn passwords_come_from_the_former_file() {
        let connector = json!({"name": "c", "host": "h", "port": "1", "saslUsername": "u"});
        let mut sections = vec![made("connector", connector).unwrap()];
        let notes = add_secrets(&mut sections, None);
        assert!(notes[0].contains("connector 'c'") && notes[0].contains("'saslPassword'"), "{notes:?}");
        let former =
            "connector {\n name: c\n host: h\n port: 1\n saslUsername: u\n saslPassword: env:PW\n}\n";
        let former = Former { config: Config::parse(former, "former.conf").unwrap(), verbatim: None };
        assert_eq!(add_secrets(&mut sections, Some(&former)), Vec::<String>::new());
        assert_eq!(sections[0].attributes["saslPassword"], "env:PW");
    }

    /// The router said the value: it must not become that of a variable when the file is read.
    #[test]
    fn a_dollar_stays_a_dollar_and_a_password_in_a_variable_stays_there() {
        let written = "connector {\n name: c\n host: h\n port: 1\n saslUsername: u\n saslPassword: $PW\n}\n";
        let variable = |name: &str| Some(format!("value of {name}"));
        let former = Former {
            config: Config::parse_with(written, "f", &variable).unwrap(),
            verbatim: Some(Config::parse_verbatim(written, "f").unwrap()),
        };
        let connector = json!({"name": "c", "host": "h", "port": "1", "saslUsername": "u$HOME"});
        let mut sections = vec![made("connector", connector).unwrap()];
        sections.extend(made("listener", json!({"port": "1", "openProperties": {"a": "${HOME}"}})));
        sections.extend(made("address", json!({"pattern": "${$}/$HOME/#"})));
        assert_eq!(add_secrets(&mut sections, Some(&former)), Vec::<String>::new());
        let text = text(&sections, &[]).unwrap();
        let config = Config::parse_with(&text, "saved.conf", &variable).unwrap();
        let value = |at: usize, name: &str| config.records[at].value(name).unwrap().text();
        assert_eq!(value(0, "saslUsername"), "u$HOME");
        assert_eq!(value(0, "saslPassword"), "value of PW");
        assert_eq!(value(1, "openProperties"), r#"{"a": "${HOME}"}"#);
        assert_eq!(value(2, "pattern"), "${$}/$HOME/#");
    }

    #[test]
    fn groups_have_only_what_is_set_and_the_directory_goes() {
        let vhost = json!({"hostname": "h", "name": "vhost/h", "identity": "vhost/h", "maxConnections": 65535,
            "groups": {"$default": {"remoteHosts": "*", "sources": "a", "allowDynamicSource": false}}});
        let vhost = made("vhost", vhost).unwrap();
        assert_eq!(vhost.attributes["groups"], json!({"$default": {"remoteHosts": "*", "sources": "a"}}));
        let policy = made("policy", json!({"policyDir": "/etc/policy", "maxConnections": 10})).unwrap();
        let mut sections = vec![policy, vhost];
        assert!(take_vhosts_here(&mut sections)[0].contains("/etc/policy"));
        assert!(!sections[0].attributes.contains_key("policyDir"));
        assert!(text(&sections, &[]).is_ok());
    }
}
