//! The entities `log`: what each module logs, and where to. UPDATE changes it at once.

use super::entities::Entity;
use super::field::Field;
use super::reply::Refusal;
use crate::control::config::Config;
use crate::log;
use crate::log::{Destination, Level, Levels, Module, ModuleSettings, TimeFormat};
use ringmain_codec::Value;

/// The type's name.
pub(super) const TYPE: &str = "log";

/// What is set of a module; `None`: as of DEFAULT.
#[derive(Clone, Debug, Default)]
struct Settings {
    enable: Option<String>,
    include_timestamp: Option<bool>,
    include_source: Option<bool>,
    output_file: Option<String>,
}

/// The log's settings by module.
#[derive(Clone, Debug)]
pub(super) struct Logs {
    is_utc: bool,
    time_format: Option<TimeFormat>,
    /// In the order of [`Module::ALL`].
    modules: Vec<(Module, Settings)>,
}

impl Logs {
    /// What the file says.
    pub(super) fn new(config: &Config) -> Self {
        let mut modules: Vec<_> = Module::ALL.iter().map(|module| (*module, Settings::default())).collect();
        for log in &config.logs {
            let Some((_, settings)) = modules.iter_mut().find(|(module, _)| *module == log.module) else {
                continue;
            };
            if let Some(levels) = log.enable {
                settings.enable = Some(levels.to_string());
            }
            settings.include_timestamp = log.include_timestamp.or(settings.include_timestamp);
            settings.include_source = log.include_source.or(settings.include_source);
            if log.output_file.is_some() {
                settings.output_file.clone_from(&log.output_file);
            }
        }
        let time_format = config.router.time_format.clone();
        Self { is_utc: config.router.is_log_in_utc, time_format, modules }
    }

    /// The entities, one for each module.
    pub(super) fn entities(&self) -> Vec<Entity> {
        self.modules.iter().filter_map(|(module, settings)| entity(*module, settings)).collect()
    }

    /// Changes what a module logs.
    ///
    /// # Errors
    /// There is no such module, an attribute isn't known or has a wrong value, or the file can't be opened.
    /// Nothing has changed then.
    pub(super) fn update(
        &mut self,
        name: Option<&str>,
        identity: Option<&str>,
        attributes: &[(&str, Value<'_>)],
        full_type: &str,
    ) -> Result<Option<Entity>, Refusal> {
        let called = |module: Module| format!("log/{module}");
        let is_called =
            |module: Module| [name, identity].into_iter().flatten().all(|given| given == called(module));
        let mut changed = self.clone();
        let Some((module, settings)) = changed.modules.iter_mut().find(|(module, _)| is_called(*module))
        else {
            return Ok(None);
        };
        for (attribute, value) in attributes {
            set(settings, *module, attribute, value, full_type)?;
        }
        let entity = entity(*module, settings);
        let applied = changed.settings()?;
        log::apply(&applied).map_err(|error| Refusal::bad(error.to_string()))?;
        *self = changed;
        Ok(entity)
    }

    /// Opens the log's files again under their names. Whoever has moved them away (logrotate) finds the lines from now
    /// on in new ones. If that fails, the old ones are written on.
    pub(super) fn reopen(&self) {
        let Ok(settings) = self.settings() else { return };
        if !settings.modules.iter().any(|module| matches!(module.destination, Some(Destination::File(_)))) {
            return;
        }
        match log::apply(&settings) {
            Ok(()) => log!(Module::Server, Level::Info, "The log's files are opened again"),
            Err(error) => log!(
                Module::Server,
                Level::Error,
                "The log's files can't be opened again, and the old ones are written on: {error}"
            ),
        }
    }

    fn settings(&self) -> Result<log::Settings, Refusal> {
        let modules = self.modules.iter().map(|(module, settings)| {
            Ok(ModuleSettings {
                module: *module,
                enable: settings.enable.as_deref().map_or(Ok(None), levels)?,
                include_timestamp: settings.include_timestamp,
                include_source: settings.include_source,
                destination: settings.output_file.as_deref().map(Destination::from_output_file),
            })
        });
        Ok(log::Settings {
            is_utc: self.is_utc,
            time_format: self.time_format.clone(),
            modules: modules.collect::<Result<_, Refusal>>()?,
        })
    }
}

fn levels(text: &str) -> Result<Option<Levels>, Refusal> {
    Levels::parse(text).map_err(|word| {
        Refusal::bad(format!(
            "'{word}' is not a valid log level. Should be one of trace, debug, info, notice, warning, error, \
             critical, each with a '+' for all above as well, none, or default"
        ))
    })
}

fn set(
    settings: &mut Settings,
    module: Module,
    attribute: &str,
    value: &Value<'_>,
    full_type: &str,
) -> Result<(), Refusal> {
    let wrong = |expected: &str| Refusal::bad(format!("'{attribute}' must be {expected}"));
    let flag = || {
        let text = value.as_str().map(str::to_ascii_lowercase);
        match (value.as_bool(), text.as_deref()) {
            (Some(flag), _) => Ok(Some(flag)),
            (None, Some("yes" | "true" | "on")) => Ok(Some(true)),
            (None, Some("no" | "false" | "off")) => Ok(Some(false)),
            (None, _) => Err(wrong("a boolean")),
        }
    };
    let text = || value.as_str().ok_or_else(|| wrong("a string"));
    match attribute {
        "enable" => {
            let text = text()?;
            levels(text)?;
            settings.enable = Some(text.to_owned());
        }
        "includeTimestamp" | "timestamp" => settings.include_timestamp = flag()?,
        "includeSource" | "source" => settings.include_source = flag()?,
        "outputFile" | "output" => settings.output_file = Some(text()?.to_owned()),
        "module" if text()? == module.name() => {}
        // What says which entity is meant may stand among the attributes, too.
        "name" | "identity" if text()? == format!("log/{module}") => {}
        "type" => {}
        "module" | "name" | "identity" => {
            return Err(Refusal::bad(format!("Cannot set attribute '{attribute}' in UPDATE")));
        }
        other => return Err(Refusal::bad(format!("Unknown attribute '{other}' for '{full_type}'"))),
    }
    Ok(())
}

fn entity(module: Module, settings: &Settings) -> Option<Entity> {
    let flag = |flag: Option<bool>| flag.map_or(Field::Null, Field::Bool);
    let text = |text: &Option<String>| text.clone().map_or(Field::Null, Field::from);
    Some(
        Entity::new(TYPE, format!("log/{module}"))?
            .with("module", Field::text(module.name()))
            .with("enable", text(&settings.enable))
            .with("includeTimestamp", flag(settings.include_timestamp))
            .with("includeSource", flag(settings.include_source))
            .with("outputFile", text(&settings.output_file)),
    )
}
