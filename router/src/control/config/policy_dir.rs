//! The directory that `policyDir` names: more `vhost` sections, in files of the JSON form.

use std::path::{Path, PathBuf};

use super::error::Findings;
use super::typed::{VhostConfig, unique_vhosts, vhost_config};
use super::{Config, ConfigError, ConfigErrors, Record, read, records};

/// How many files such a directory may have.
const FILES_MAX: usize = 10_000;

/// Adds the vhosts of the directory that `config` names.
///
/// # Errors
/// The faults of `config`, or those of every file of the directory.
pub(super) fn load_into(
    config: Result<Config, ConfigErrors>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, ConfigErrors> {
    let mut config = config?;
    let Some(directory) = config.policy.policy_dir.clone() else { return Ok(config) };
    let mut errors = Vec::new();
    let files = files(&directory).map_err(|message| {
        let file = config.file.clone();
        let line = config.records.iter().find(|record| record.entity_name() == "policy");
        ConfigErrors(vec![ConfigError {
            file,
            line: line.map(|record| record.line_of("policyDir")),
            message,
        }])
    })?;
    let mut records = Vec::new();
    let mut vhosts: Vec<(String, VhostConfig)> =
        config.vhosts.drain(..).map(|vhost| (config.file.clone(), vhost)).collect();
    for path in files {
        let name = path.display().to_string();
        match read(&path) {
            Ok(text) => match file(&text, &name, variable, &mut records, &mut vhosts) {
                Ok(warnings) => config.warnings.extend(warnings),
                Err(ConfigErrors(faults)) => errors.extend(faults),
            },
            Err(error) => errors.push(error),
        }
    }
    unique_across(&vhosts, &config.file, &mut errors);
    if !errors.is_empty() {
        return Err(ConfigErrors(errors));
    }
    config.records.extend(records);
    config.vhosts = vhosts.into_iter().map(|(_, vhost)| vhost).collect();
    Ok(config)
}

/// The directory's JSON files, in the order of their names.
fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let fault = |error| format!("policy: can't read 'policyDir' {}: {error}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            return Err(format!(
                "policy: 'policyDir' {} has more than {FILES_MAX} files",
                directory.display()
            ));
        }
    }
    files.sort();
    Ok(files)
}

/// Reads one file and adds its vhosts.
fn file(
    text: &str,
    name: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    found: &mut Vec<Record>,
    vhosts: &mut Vec<(String, VhostConfig)>,
) -> Result<Vec<String>, ConfigErrors> {
    let mut findings = Findings::new(name);
    for record in records(text, name, Some(variable), &mut findings) {
        if record.entity_name() == "vhost" {
            vhosts.extend(vhost_config(&record, &mut findings).map(|vhost| (name.to_owned(), vhost)));
            found.push(record);
        } else if record.line() != 0 {
            let message = format!("a file of 'policyDir' has vhosts only, found '{}'", record.entity_name());
            findings.error(record.line(), message);
        }
    }
    // That vhosts are or aren't enforced has been said of the main file.
    findings.forget_uses();
    findings.finish()
}

/// No host name belongs to vhosts of two files; within one file that has been checked.
fn unique_across(vhosts: &[(String, VhostConfig)], main: &str, errors: &mut Vec<ConfigError>) {
    let file_of = |wanted: &VhostConfig| {
        let found = vhosts.iter().find(|(_, vhost)| core::ptr::eq(vhost, wanted));
        found.map_or(main, |(file, _)| file.as_str())
    };
    unique_vhosts(vhosts.iter().map(|(_, vhost)| vhost), |vhost, earlier, name| {
        let message = format!(
            "vhost: the host name '{name}' belongs to the vhost at {}:{} already",
            file_of(earlier),
            earlier.line
        );
        errors.push(ConfigError { file: file_of(vhost).to_owned(), line: Some(vhost.line), message });
    });
}
