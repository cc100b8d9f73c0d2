//! The configuration file, in `qdrouterd`'s format: read, held against the schema, and turned into types.
//!
//! ```text
//! text -> text::parse_lines -> RawSection -> check -> Record -> typed -> Config
//! text -> text::parse_json  -^               (schema)
//! ```
//!
//! Every fault is found in one go and says its file and line; nothing is opened or started meanwhile.

mod bind;
mod check;
mod entities;
mod error;
mod json;
mod nearest;
mod pattern;
mod raw;
pub mod schema;
mod service;
mod text;
mod typed;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

pub use bind::BindAddress;
pub use error::{ConfigError, ConfigErrors};
pub use json::{Json, Member};
pub use typed::{
    AddressConfig, AddressFamily, AddressMatch, Distribution, ListenerConfig, LogConfig, RouterConfig,
    RouterMode, StripAnnotations,
};

use crate::log;
use error::Findings;

/// The configuration of a router that is started without a file.
const EMBEDDED: &str = include_str!("../../../config/default.conf");

/// How long a file may be, in bytes: many times what the largest network needs.
const FILE_SIZE_MAX: u64 = 16 << 20;

/// What a file configures, every default filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// What messages call the file.
    pub file: String,
    /// The router as a whole.
    pub router: RouterConfig,
    /// Where it listens, in the order of the file.
    pub listeners: Vec<ListenerConfig>,
    /// How addresses are distributed, in the order of the file. No two match the same addresses.
    pub addresses: Vec<AddressConfig>,
    /// What is logged, in the order of the file: a later one for the same module changes what it sets.
    pub logs: Vec<LogConfig>,
    /// What works but should be changed or known, as `FILE:LINE: message`.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads the file at `path`: the JSON form if its name ends in `.json`, else the line-oriented form.
    ///
    /// # Errors
    /// The file can't be read, or anything in it is wrong: every fault of it.
    pub fn load(path: &Path) -> Result<Self, ConfigErrors> {
        let name = path.display().to_string();
        let bytes = read(path)
            .map_err(|message| ConfigErrors(vec![ConfigError { file: name.clone(), line: None, message }]))?;
        match String::from_utf8(bytes) {
            Ok(text) => Self::parse(&text, &name),
            Err(error) => {
                let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                let line = Some(u32::try_from(line).unwrap_or(u32::MAX));
                let message = "the file isn't text in UTF-8".to_owned();
                Err(ConfigErrors(vec![ConfigError { file: name, line, message }]))
            }
        }
    }

    /// Reads `text`. Messages call it `name`; if that ends in `.json`, it is the JSON form.
    ///
    /// # Errors
    /// Every fault of the text, in the order of its lines.
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigErrors> {
        let mut findings = Findings::new(name);
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let sections = if name.ends_with(".json") {
            text::parse_json(text, &mut findings)
        } else {
            text::parse_lines(text, &mut findings)
        };
        let records = check::check_sections(sections, &mut findings);
        let config = typed::build(&records, &mut findings);
        let warnings = findings.finish()?;
        Ok(Self { file: name.to_owned(), warnings, ..config })
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
        log::Settings { is_utc: self.router.is_log_in_utc, modules: modules.collect() }
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

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let fault = |error: std::io::Error| format!("can't read the configuration file: {error}");
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fault)?;
    file.take(FILE_SIZE_MAX + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > FILE_SIZE_MAX {
        return Err(format!("a configuration file has at most {FILE_SIZE_MAX} bytes"));
    }
    Ok(bytes)
}
