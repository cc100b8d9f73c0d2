//! What a running router has to do to follow a new configuration, step by step.

use core::fmt;

use super::{
    AddressConfig, AutoLinkConfig, Config, ConnectorConfig, ListenerConfig, Record, SslProfileConfig,
};

/// One step. Removals come first, and what clients see comes last: an open port means a ready router.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Accept nobody there any more.
    RemoveListener(ListenerConfig),
    /// End the connection, and dial no more.
    RemoveConnector(ConnectorConfig),
    /// Detach.
    RemoveAutoLink(AutoLinkConfig),
    /// New connections with TLS are made by this profile.
    SetProfile(SslProfileConfig),
    /// Nothing of its own applies to these addresses any more.
    RemoveAddress(AddressConfig),
    /// This applies to these addresses now.
    SetAddress(AddressConfig),
    /// Attach.
    AddAutoLink(AutoLinkConfig),
    /// Dial.
    AddConnector(ConnectorConfig),
    /// Accept connections there.
    AddListener(ListenerConfig),
    /// This takes a restart: `SECTION: 'ATTRIBUTE'` or `SECTION 'NAME'`, for the user.
    Restart(String),
}

/// Attributes of sections that take a restart, which yet don't.
const AT_ONCE: [(&str, &str); 3] =
    [("router", "timestampsInUTC"), ("router", "timestampFormat"), ("router", "metadata")];

impl Config {
    /// The steps from this configuration to `new`, without those that the log takes, which follows
    /// [`Config::log_settings`] as a whole. What didn't change isn't touched: a changed entity of any type is
    /// removed and added again.
    #[must_use]
    pub fn steps_to(&self, new: &Self) -> Vec<Step> {
        let difference = self.difference(new);
        let mut steps = Vec::new();
        let mut restarts = Vec::new();
        let gone = difference.removed.iter().copied();
        let replaced = difference.changed.iter().map(|change| change.old);
        for record in gone.clone().chain(replaced) {
            steps.extend(self.removal(record));
        }
        steps.sort_by_key(Step::rank);
        let mut additions = Vec::new();
        let fresh = difference.added.iter().copied();
        let replacing = difference.changed.iter().map(|change| change.new);
        for record in fresh.clone().chain(replacing) {
            additions.extend(new.addition(record));
        }
        additions.sort_by_key(Step::rank);
        // An address that only changes is set anew, so that nothing in between is without its settings.
        steps.retain(|step| match step {
            Step::RemoveAddress(old) => !additions.iter().any(
                |step| matches!(step, Step::SetAddress(new) if new.matching.pattern() == old.matching.pattern()),
            ),
            Step::RemoveListener(_)
            | Step::RemoveConnector(_)
            | Step::RemoveAutoLink(_)
            | Step::SetProfile(_)
            | Step::SetAddress(_)
            | Step::AddAutoLink(_)
            | Step::AddConnector(_)
            | Step::AddListener(_)
            | Step::Restart(_) => true,
        });
        for record in gone.chain(fresh).filter(|record| needs_restart(record)) {
            restarts.push(Step::Restart(called(record)));
        }
        for change in difference.changed.iter().filter(|change| needs_restart(change.new)) {
            let section = change.new.entity_name();
            let late = change.attributes.iter().filter(|name| !AT_ONCE.contains(&(section, name)));
            restarts.extend(late.map(|name| Step::Restart(format!("{section}: '{name}'"))));
        }
        steps.into_iter().chain(additions).chain(restarts).collect()
    }

    /// The record of what a step adds, if this is the new configuration, or removes, if it is the old one.
    #[must_use]
    pub fn record_of(&self, step: &Step) -> Option<&Record> {
        let (section, place) = match step {
            Step::AddListener(listener) | Step::RemoveListener(listener) => {
                ("listener", self.listeners.iter().position(|other| other == listener))
            }
            Step::AddConnector(connector) | Step::RemoveConnector(connector) => {
                ("connector", self.connectors.iter().position(|other| other == connector))
            }
            Step::AddAutoLink(link) | Step::RemoveAutoLink(link) => {
                ("autoLink", self.auto_links.iter().position(|other| other == link))
            }
            Step::SetAddress(address) | Step::RemoveAddress(address) => {
                ("address", self.addresses.iter().position(|other| other == address))
            }
            Step::SetProfile(profile) => {
                ("sslProfile", self.ssl_profiles.iter().position(|other| other == profile))
            }
            Step::Restart(_) => return None,
        };
        self.records.iter().filter(|record| record.entity_name() == section).nth(place?)
    }

    /// Takes what a failed step would have added out again, so that it counts as missing.
    pub(in crate::control) fn forget(&mut self, step: &Step) {
        let (section, place) = match step {
            Step::AddListener(listener) => ("listener", taken_out(&mut self.listeners, listener)),
            Step::AddConnector(connector) => ("connector", taken_out(&mut self.connectors, connector)),
            Step::AddAutoLink(link) => ("autoLink", taken_out(&mut self.auto_links, link)),
            Step::SetAddress(address) => ("address", taken_out(&mut self.addresses, address)),
            Step::SetProfile(profile) => ("sslProfile", taken_out(&mut self.ssl_profiles, profile)),
            Step::RemoveListener(_)
            | Step::RemoveConnector(_)
            | Step::RemoveAutoLink(_)
            | Step::RemoveAddress(_)
            | Step::Restart(_) => return,
        };
        let mut alike = self.records.iter().enumerate().filter(|(_, record)| record.entity_name() == section);
        if let Some((index, _)) = place.and_then(|place| alike.nth(place)) {
            self.records.remove(index);
        }
    }

    /// Takes the policy of `applied` back, because its own couldn't be applied, so that it counts as missing.
    pub(in crate::control) fn forget_policy(&mut self, applied: &Self) {
        let is_of_policy = |record: &Record| ["policy", "vhost"].contains(&record.entity_name());
        self.policy = applied.policy.clone();
        self.vhosts.clone_from(&applied.vhosts);
        self.records.retain(|record| !is_of_policy(record));
        self.records.extend(applied.records.iter().filter(|record| is_of_policy(record)).cloned());
    }

    /// Goes on with what `running` was started with where a change takes a restart, so that the next reading is compared with what
    /// holds.
    pub(in crate::control) fn keep_what_takes_a_restart(&mut self, running: &Self) {
        self.records.retain(|record| !needs_restart(record));
        self.records.extend(running.records.iter().filter(|record| needs_restart(record)).cloned());
    }

    fn removal(&self, record: &Record) -> Option<Step> {
        let place = self.place(record)?;
        Some(match record.entity_name() {
            "listener" => Step::RemoveListener(self.listeners.get(place)?.clone()),
            "connector" => Step::RemoveConnector(self.connectors.get(place)?.clone()),
            "autoLink" => Step::RemoveAutoLink(self.auto_links.get(place)?.clone()),
            "address" => Step::RemoveAddress(self.addresses.get(place)?.clone()),
            _ => return None,
        })
    }

    fn addition(&self, record: &Record) -> Option<Step> {
        let place = self.place(record)?;
        Some(match record.entity_name() {
            "listener" => Step::AddListener(self.listeners.get(place)?.clone()),
            "connector" => Step::AddConnector(self.connectors.get(place)?.clone()),
            "autoLink" => Step::AddAutoLink(self.auto_links.get(place)?.clone()),
            "address" => Step::SetAddress(self.addresses.get(place)?.clone()),
            "sslProfile" => Step::SetProfile(self.ssl_profiles.get(place)?.clone()),
            _ => return None,
        })
    }

    /// The how manieth of its type a record of [`Config::records`] is: the place of its typed form, since
    /// every record of a configuration without faults has one.
    fn place(&self, record: &Record) -> Option<usize> {
        let mut alike = self.records.iter().filter(|other| other.entity_name() == record.entity_name());
        alike.position(|other| core::ptr::eq(other, record))
    }
}

/// Takes the first that equals `wanted` out, and says where it was.
fn taken_out<T: PartialEq>(all: &mut Vec<T>, wanted: &T) -> Option<usize> {
    let place = all.iter().position(|other| other == wanted)?;
    all.remove(place);
    Some(place)
}

impl fmt::Display for Step {
    /// What the step does, for the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RemoveListener(listener) => write!(f, "listener {} removed", listener.host_port()),
            Self::AddListener(listener) => write!(f, "listener {} added", listener.host_port()),
            Self::RemoveConnector(connector) => write!(f, "connector to {} removed", connector.host_port()),
            Self::AddConnector(connector) => write!(f, "connector to {} added", connector.host_port()),
            Self::RemoveAutoLink(link) => write!(f, "autoLink {} removed", link_name(link)),
            Self::AddAutoLink(link) => write!(f, "autoLink {} added", link_name(link)),
            Self::SetProfile(profile) => write!(f, "sslProfile '{}' is another one now", profile.name),
            Self::RemoveAddress(address) => write!(f, "address {} removed", address.matching.text()),
            Self::SetAddress(address) => {
                write!(f, "address {} is {} now", address.matching.text(), address.distribution)
            }
            Self::Restart(what) => write!(f, "{what} takes a restart"),
        }
    }
}

fn link_name(link: &AutoLinkConfig) -> &str {
    let names = [&link.name, &link.address, &link.external_address];
    names.into_iter().flatten().next().map_or("without a name", String::as_str)
}

impl Step {
    /// Whether it is about the old configuration.
    #[must_use]
    pub const fn is_removal(&self) -> bool {
        match self {
            Self::RemoveListener(_)
            | Self::RemoveConnector(_)
            | Self::RemoveAutoLink(_)
            | Self::RemoveAddress(_) => true,
            Self::SetProfile(_)
            | Self::SetAddress(_)
            | Self::AddAutoLink(_)
            | Self::AddConnector(_)
            | Self::AddListener(_)
            | Self::Restart(_) => false,
        }
    }

    /// The order of effect.
    const fn rank(&self) -> u8 {
        match self {
            Self::RemoveListener(_) => 0,
            Self::RemoveConnector(_) => 1,
            Self::RemoveAutoLink(_) => 2,
            Self::RemoveAddress(_) => 3,
            Self::SetProfile(_) => 4,
            Self::SetAddress(_) => 5,
            Self::AddAutoLink(_) => 6,
            Self::AddConnector(_) => 7,
            Self::AddListener(_) => 8,
            Self::Restart(_) => 9,
        }
    }
}

/// Whether a running router can't follow a change of this.
fn needs_restart(record: &Record) -> bool {
    match record.entity_name() {
        "listener" | "connector" | "autoLink" | "address" | "sslProfile" | "log" | "policy" | "vhost" => {
            false
        }
        _ => {
            // What isn't served anyway changes nothing.
            record.entity().feature.is_none_or(|feature| feature.is_served())
        }
    }
}

fn called(record: &Record) -> String {
    match record.name() {
        Some(name) => format!("{} '{name}'", record.entity_name()),
        None => record.entity_name().to_owned(),
    }
}
