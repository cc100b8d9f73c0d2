//! `log`.

use super::super::error::Findings;
use super::super::record::Record;
use crate::log::{Levels, Module};

/// What one part of the router logs, and where to (section `log`). `None`: as the module DEFAULT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogConfig {
    /// `module`
    pub module: Module,
    /// `enable`
    pub enable: Option<Levels>,
    /// `includeTimestamp`
    pub include_timestamp: Option<bool>,
    /// `includeSource`
    pub include_source: Option<bool>,
    /// `outputFile`: a path, or `stderr`, `stdout`, `syslog`.
    pub output_file: Option<String>,
}

/// The settings of each section, in the order of the file.
pub(super) fn log_configs<'r>(
    records: impl Iterator<Item = &'r Record>,
    findings: &mut Findings,
) -> Vec<LogConfig> {
    let mut seen: Vec<(Module, u32)> = Vec::new();
    let mut logs = Vec::new();
    for record in records {
        // Missing or wrong: reported where the schema was checked.
        let Some(module) = record.text("module").and_then(Module::find) else { continue };
        if let Some((_, line)) = seen.iter().find(|(other, _)| *other == module) {
            let message = format!(
                "log: module {module} has a section already, at line {line}; what this one sets prevails"
            );
            findings.warning(record.line(), message);
        } else {
            seen.push((module, record.line()));
        }
        logs.push(LogConfig {
            module,
            enable: record.levels("enable"),
            include_timestamp: record.optional_boolean("includeTimestamp"),
            include_source: record.optional_boolean("includeSource"),
            output_file: record.text("outputFile").map(str::to_owned),
        });
    }
    logs
}
