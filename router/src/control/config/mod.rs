//! The configuration file, in `qdrouterd`'s format: read, held against the schema, and turned into types.
//!
//! ```text
//! text -> text::parse_lines -> RawSection -> check -> Record -> typed -> Config
//! text -> text::parse_json  -^     ^         (schema)
//!                             environment
//! ```
//!
//! Every fault is found in one go and says its file and line; nothing is opened or started meanwhile.
//! [`schema`] says what there is, [`features`] which of it this version doesn't do yet.

mod change;
mod check;
mod entities;
mod environment;
mod error;
pub mod features;
mod json;
mod nearest;
mod policy_dir;
mod raw;
mod record;
pub mod reference;
pub mod schema;
mod service;
mod steps;
mod summary;
mod text;
mod typed;
mod values;
mod write;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

pub use change::{Change, Difference};
pub(crate) use environment::protected;
pub(crate) use error::BY_MANAGEMENT;
pub(super) use error::SHOWN_MAX;
pub use error::{ConfigError, ConfigErrors};
pub use json::{Json, Member};
pub(crate) use nearest::did_you_mean;
pub use record::{Record, Value};
pub use steps::Step;
pub use typed::{
    AddressConfig, AddressFamily, AddressMatch, AuthServiceConfig, AutoLinkConfig, BindAddress,
    BindingConfig, ConnectorConfig, Container, Direction, Distribution, ExchangeConfig, HttpConfig,
    LinkRouteConfig, ListenerConfig, LogConfig, Names, PolicyConfig, Role, RouterConfig, RouterMode, Secret,
    SslProfileConfig, StripAnnotations, VhostConfig, VhostGroupConfig,
};

use crate::log;
use error::Findings;

/// The configuration of a router that is started without a file.
const EMBEDDED: &str = include_str!("../../../config/default.conf");

/// How long a file may be, in bytes: many times what the largest network needs.
const FILE_SIZE_MAX: u64 = 16 << 20;

/// What gives the values of environment variables.
type Variable<'v> = &'v dyn Fn(&str) -> Option<String>;

/// What a file configures, every default filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// What messages call the file.
    pub file: String,
    /// The file itself; `None`: the text came from elsewhere.
    pub source: Option<PathBuf>,
    /// The router as a whole.
    pub router: RouterConfig,
    /// Where it listens, in the order of the file.
    pub listeners: Vec<ListenerConfig>,
    /// What the router connects to, in the order of the file.
    pub connectors: Vec<ConnectorConfig>,
    /// How addresses are distributed, in the order of the file. No two match the same addresses.
    pub addresses: Vec<AddressConfig>,
    /// Links that the router attaches to containers, in the order of the file.
    pub auto_links: Vec<AutoLinkConfig>,
    /// Addresses whose links go on to containers, in the order of the file.
    pub link_routes: Vec<LinkRouteConfig>,
    /// Addresses that are distributed by subject, in the order of the file.
    pub exchanges: Vec<ExchangeConfig>,
    /// Which subjects of them go where, in the order of the file.
    pub bindings: Vec<BindingConfig>,
    /// Certificates and settings of TLS, in the order of the file.
    pub ssl_profiles: Vec<SslProfileConfig>,
    /// Services that authenticate clients, in the order of the file.
    pub auth_services: Vec<AuthServiceConfig>,
    /// Limits for all clients together.
    pub policy: PolicyConfig,
    /// Who may do what, in the order of the file, then of the files of `policyDir`. No two have a host name
    /// in common.
    pub vhosts: Vec<VhostConfig>,
    /// What is logged, in the order of the file: a later one for the same module changes what it sets.
    pub logs: Vec<LogConfig>,
    /// All of it as entities of the schema, in the order of the file; singletons that it doesn't have are at
    /// the end.
    pub records: Vec<Record>,
    /// What works but should be changed or known, as `FILE:LINE: message`.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads the file at `path`: the JSON form if its name ends in `.json`, else the line-oriented form. Then
    /// reads the files of its `policyDir`.
    ///
    /// # Errors
    /// The file can't be read, or anything in it is wrong: every fault of it.
    pub fn load(path: &Path) -> Result<Self, ConfigErrors> {
        let name = path.display().to_string();
        let text = read(path).map_err(|error| ConfigErrors(vec![error]))?;
        let variable = |name: &str| std::env::var(name).ok();
        let config = Self::parse_with(&text, &name, &variable);
        let config = policy_dir::load_into(config, &variable)?;
        Ok(Self { source: Some(path.to_owned()), ..config })
    }

    /// Reads `text`, with no environment variable set. Messages call it `name`; if that ends in `.json`, it is
    /// the JSON form. `policyDir` isn't looked at.
    ///
    /// # Errors
    /// Every fault of the text, in the order of its lines.
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigErrors> {
        Self::parse_with(text, name, &|_| None)
    }

    /// As [`Self::parse`], with `variable` for the values of environment variables.
    ///
    /// # Errors
    /// Every fault of the text, in the order of its lines.
    pub fn parse_with(
        text: &str,
        name: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigErrors> {
        Self::parse_values(text, name, Some(variable))
    }

    /// As [`Self::parse`], but a `$` is a `$`: values are as they are written.
    ///
    /// # Errors
    /// Every fault of the text, in the order of its lines.
    pub fn parse_verbatim(text: &str, name: &str) -> Result<Self, ConfigErrors> {
        Self::parse_values(text, name, None)
    }

    /// As [`Self::load`], but values are as they are written, and the files of `policyDir` aren't read.
    ///
    /// # Errors
    /// The file can't be read, or anything in it is wrong: every fault of it.
    pub fn load_verbatim(path: &Path) -> Result<Self, ConfigErrors> {
        let text = read(path).map_err(|error| ConfigErrors(vec![error]))?;
        Self::parse_verbatim(&text, &path.display().to_string())
    }

    fn parse_values(text: &str, name: &str, variable: Option<Variable<'_>>) -> Result<Self, ConfigErrors> {
        let mut findings = Findings::new(name);
        let records = records(text, name, variable, &mut findings);
        let config = typed::build(records, &mut findings);
        let warnings = findings.finish()?;
        Ok(Self { file: name.to_owned(), warnings, ..config })
    }

    /// The listeners that this version opens.
    pub fn served_listeners(&self) -> impl Iterator<Item = &ListenerConfig> {
        self.listeners.iter().filter(|listener| listener.is_served())
    }

    /// What the `log` sections and the router's `timestampsInUTC` say, for [`log::apply`].
    #[must_use]
    pub fn log_settings(&self) -> log::Settings {
        let modules = self.logs.iter().map(|log| log::ModuleSettings {
            module: log.module,
            enable: log.enable,
            include_timestamp: log.include_timestamp,
            include_source: log.include_source,
            destination: log.output_file.as_deref().map(log::Destination::from_output_file),
        });
        log::Settings {
            is_utc: self.router.is_log_in_utc,
            time_format: self.router.time_format.clone(),
            modules: modules.collect(),
        }
    }

    /// The configuration of a router that is started without a file: one listener for clients on
    /// 127.0.0.1:5672, balanced distribution.
    ///
    /// # Panics
    /// Never: a test parses it.
    #[must_use]
    pub fn embedded() -> Self {
        Self::parse(EMBEDDED, "default.conf").expect("the embedded configuration is tested")
    }
}

/// The sections of a text, held against the schema.
fn records(text: &str, name: &str, variable: Option<Variable<'_>>, findings: &mut Findings) -> Vec<Record> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut sections = if name.ends_with(".json") {
        text::parse_json(text, findings)
    } else {
        text::parse_lines(text, findings)
    };
    if let Some(variable) = variable {
        for attribute in sections.iter_mut().flat_map(|section| &mut section.attributes) {
            expand(&mut attribute.value, attribute.line, variable, findings);
        }
    }
    check::check_sections(sections, findings)
}

/// Expands the environment variables in a value. JSON from a file is nested only so deeply.
fn expand(value: &mut Json, line: u32, variable: &dyn Fn(&str) -> Option<String>, findings: &mut Findings) {
    match value {
        Json::String(text) => {
            *text = environment::expand(text, variable, |name| {
                let message = format!("there is no environment variable {name}; '${name}' is left as it is");
                findings.warning(line, message);
            });
        }
        Json::List(items) => items.iter_mut().for_each(|item| expand(item, line, variable, findings)),
        Json::Map(members) => {
            members.iter_mut().for_each(|member| expand(&mut member.value, member.line, variable, findings));
        }
        Json::Null | Json::Boolean(_) | Json::Integer(_) | Json::Float(_) => {}
    }
}

/// The text of a file.
///
/// # Errors
/// It can't be read, is too long, or isn't UTF-8.
fn read(path: &Path) -> Result<String, ConfigError> {
    let error = |line, message| ConfigError { file: path.display().to_string(), line, message };
    let fault = |cause: std::io::Error| error(None, format!("can't read the configuration file: {cause}"));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fault)?;
    file.take(FILE_SIZE_MAX + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > FILE_SIZE_MAX {
        return Err(error(None, format!("a configuration file has at most {FILE_SIZE_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|cause| {
        let before = &cause.as_bytes()[..cause.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        error(Some(u32::try_from(line).unwrap_or(u32::MAX)), "the file isn't text in UTF-8".to_owned())
    })
}
