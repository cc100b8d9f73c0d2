//! What is logged and where to: the `log` sections, resolved module by module.

use std::path::PathBuf;

use super::level::{Level, Levels, Module};
use super::time_format::TimeFormat;

/// How lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// As those of `qdrouterd`.
    #[default]
    Text,
    /// Each a JSON object.
    Json,
}

/// What the log does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// Write the time in UTC rather than in local time.
    pub is_utc: bool,
    /// How lines of text have the time; `None`: as `qdrouterd` has it by default.
    pub time_format: Option<TimeFormat>,
    /// Settings of modules. A later one for the same module changes what it sets.
    pub modules: Vec<ModuleSettings>,
}

/// Settings of one module. What is `None` is as for [`Module::Default`], and there as `qdrouterd` has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleSettings {
    /// Which module.
    pub module: Module,
    /// Which levels are logged. By default info and all above it.
    pub enable: Option<Levels>,
    /// Whether lines begin with the time. By default they do.
    pub include_timestamp: Option<bool>,
    /// Whether lines end with their place in the source. By default they don't.
    pub include_source: Option<bool>,
    /// Where to. By default to standard error.
    pub destination: Option<Destination>,
}

/// Where lines go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// Standard error.
    Stderr,
    /// Standard output.
    Stdout,
    /// The system's log, through its socket `/dev/log`.
    Syslog,
    /// A file, created or appended to; a relative path counts from the working directory.
    File(PathBuf),
}

impl Destination {
    /// The destination that `outputFile` names.
    #[must_use]
    pub fn from_output_file(name: &str) -> Self {
        match name {
            "stderr" => Self::Stderr,
            "stdout" => Self::Stdout,
            "syslog" => Self::Syslog,
            path => Self::File(PathBuf::from(path)),
        }
    }
}

/// The settings of one module with every default filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Resolved {
    pub(super) levels: Levels,
    pub(super) has_timestamp: bool,
    pub(super) has_source: bool,
    pub(super) destination: Destination,
}

impl Settings {
    /// What holds for each module, by [`Module::index`].
    pub(super) fn resolve(&self) -> Vec<Resolved> {
        let mut default = Resolved {
            levels: Levels::from(Level::Info),
            has_timestamp: true,
            has_source: false,
            destination: Destination::Stderr,
        };
        default.change(self.of(Module::Default));
        Module::ALL
            .iter()
            .map(|module| {
                let mut resolved = default.clone();
                resolved.change(self.of(*module));
                resolved
            })
            .collect()
    }

    fn of(&self, module: Module) -> impl Iterator<Item = &ModuleSettings> {
        self.modules.iter().filter(move |settings| settings.module == module)
    }
}

impl Resolved {
    fn change<'s>(&mut self, settings: impl Iterator<Item = &'s ModuleSettings>) {
        for settings in settings {
            self.levels = settings.enable.unwrap_or(self.levels);
            self.has_timestamp = settings.include_timestamp.unwrap_or(self.has_timestamp);
            self.has_source = settings.include_source.unwrap_or(self.has_source);
            if let Some(destination) = &settings.destination {
                self.destination = destination.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Destination, ModuleSettings, Settings};
    use crate::log::{Level, Levels, Module};

    #[test]
    fn without_settings_info_and_above_go_to_standard_error() {
        for resolved in Settings::default().resolve() {
            assert_eq!(resolved.levels, Levels::from(Level::Info));
            assert_eq!(resolved.destination, Destination::Stderr);
            assert!(resolved.has_timestamp && !resolved.has_source);
        }
    }

    #[test]
    fn a_module_has_its_own_settings_and_else_those_of_default() {
        let nothing = ModuleSettings {
            module: Module::Default,
            enable: None,
            include_timestamp: None,
            include_source: None,
            destination: None,
        };
        // The module's own section comes first in the file: the order doesn't matter.
        let settings = Settings {
            is_utc: false,
            time_format: None,
            modules: vec![
                ModuleSettings {
                    module: Module::Router,
                    enable: Some(Levels::from(Level::Trace)),
                    ..nothing.clone()
                },
                ModuleSettings {
                    enable: Some(Levels::from(Level::Error)),
                    include_source: Some(true),
                    destination: Some(Destination::Stdout),
                    ..nothing.clone()
                },
                ModuleSettings { include_timestamp: Some(false), ..nothing },
            ],
        };
        let resolved = settings.resolve();
        let router = &resolved[Module::Router.index()];
        assert_eq!(router.levels, Levels::from(Level::Trace));
        assert!(router.has_source && !router.has_timestamp);
        assert_eq!(router.destination, Destination::Stdout);
        assert_eq!(resolved[Module::Server.index()].levels, Levels::from(Level::Error));
    }
}
