//! What a configuration has, for whoever checks it.

use core::fmt::Write as _;

use super::schema::ENTITY_TYPES;
use super::{AddressMatch, Config};

/// How many entities of a type are listed.
const LISTED_MAX: usize = 8;

impl Config {
    /// A few lines that say what the file makes of the router, and the warnings.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut out = format!("{}: a router can start from it\n\n", self.file);
        let id = self.router.id.as_deref().unwrap_or("(made up at the start)");
        row(&mut out, "router", &format!("mode {}, id {id}", self.router.mode.name()));
        for entity in ENTITY_TYPES.iter().filter(|entity| entity.is_section() && !entity.is_singleton) {
            let count = self.records.iter().filter(|record| record.entity_name() == entity.name).count();
            if count == 0 {
                continue;
            }
            let mut listed = self.listed(entity.name);
            let more = listed.len().saturating_sub(LISTED_MAX);
            listed.truncate(LISTED_MAX);
            let mut text = listed.join(", ");
            if more > 0 {
                text.push_str(&format!(" and {more} more"));
            }
            let count = if count == 1 { String::new() } else { format!("{count}: ") };
            row(&mut out, entity.name, &format!("{count}{text}"));
        }
        match self.warnings.len() {
            0 => {}
            1 => out.push_str("\n1 warning:\n"),
            count => writeln!(out, "\n{count} warnings:").expect("a string grows"),
        }
        for warning in &self.warnings {
            out.push_str(warning);
            out.push('\n');
        }
        out
    }

    /// What the entities of a section are known by.
    fn listed(&self, section: &str) -> Vec<String> {
        let matched = |matching: &AddressMatch| match matching {
            AddressMatch::Prefix(prefix) => format!("{prefix}/#"),
            AddressMatch::Pattern(pattern) => pattern.clone(),
        };
        match section {
            "listener" => {
                let note = |is_served| if is_served { "" } else { " (not opened)" };
                let shown = self.listeners.iter().map(|listener| {
                    format!("{} {}{}", listener.host_port(), listener.role.name(), note(listener.is_served()))
                });
                shown.collect()
            }
            "connector" => {
                let note = |is_served| if is_served { "" } else { " (not opened)" };
                let shown = self.connectors.iter().map(|connector| {
                    format!(
                        "{} {}{}",
                        connector.host_port(),
                        connector.role.name(),
                        note(connector.is_served())
                    )
                });
                shown.collect()
            }
            "address" => {
                let shown = self.addresses.iter();
                shown
                    .map(|address| format!("{} {}", matched(&address.matching), address.distribution))
                    .collect()
            }
            "linkRoute" => self.link_routes.iter().map(|route| matched(&route.matching)).collect(),
            "autoLink" => {
                let shown = self.auto_links.iter();
                let address =
                    shown.map(|link| link.address.clone().or_else(|| link.external_address.clone()));
                address.map(Option::unwrap_or_default).collect()
            }
            "log" => self.logs.iter().map(|log| log.module.to_string()).collect(),
            "vhost" => self.vhosts.iter().map(|vhost| vhost.hostname.clone()).collect(),
            other => {
                let records = self.records.iter().filter(|record| record.entity_name() == other);
                records.map(|record| record.name().unwrap_or("without a name").to_owned()).collect()
            }
        }
    }
}

fn row(out: &mut String, name: &str, text: &str) {
    writeln!(out, "  {name:<18} {text}").expect("a string grows");
}
