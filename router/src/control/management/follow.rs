//! Follows the configuration file when it is read again: the agent knows all that is configured, so what it shows
//! and what holds stay one.

use super::addresses::Addresses;
use super::configured::Configuration;
use super::logs::Logs;
use super::policies::{Policies, is_of_policy};
use crate::control::config::{Config, Record, Step};
use crate::control::reload::{Reloaded, Running, reload};
use crate::log;
use crate::log::{Level, Module};
use std::time::{Duration, Instant};

/// For how long a port is tried again that a listener of the old file had, and how soon: the shard that accepts lets
/// go of it within a turn.
const PORT_PATIENCE: Duration = Duration::from_secs(1);
const PORT_PAUSE: Duration = Duration::from_millis(25);

/// The file as it was read last.
pub(super) struct Follower {
    applied: Config,
    /// Ports of listeners that were removed, and when.
    freed: Vec<(u16, Instant)>,
}

/// What follows the file.
pub(super) struct Followers<'a> {
    pub(super) configuration: &'a mut Configuration,
    pub(super) addresses: &'a mut Addresses,
    pub(super) policies: &'a Policies,
    pub(super) logs: &'a mut Logs,
}

impl Follower {
    /// A router that was started with this.
    pub(super) fn new(config: &Config) -> Self {
        Self { applied: config.clone(), freed: Vec::new() }
    }

    /// Reads the file again; `None` if there is none.
    pub(super) async fn reload(&mut self, followers: Followers<'_>) -> Option<Reloaded> {
        let Some(file) = &self.applied.source else {
            log!(
                Module::Server,
                Level::Warning,
                "SIGHUP: the router was started without a file, there is nothing to read again"
            );
            return None;
        };
        let read = Config::load(file);
        self.freed.retain(|(_, when)| when.elapsed() < PORT_PATIENCE);
        let mut following = Following { followers, freed: &mut self.freed };
        Some(reload(&mut self.applied, read, &mut following).await)
    }
}

/// One reading of the file.
struct Following<'a> {
    followers: Followers<'a>,
    freed: &'a mut Vec<(u16, Instant)>,
}

impl Running for Following<'_> {
    fn follow_log(&mut self, config: &Config) -> Result<(), String> {
        log::apply(&config.log_settings()).map_err(|error| error.to_string())?;
        *self.followers.logs = Logs::new(config);
        Ok(())
    }

    async fn follow_policy(&mut self, old: &Config, new: &Config) -> Result<(), String> {
        let Followers { configuration, policies, .. } = &mut self.followers;
        configuration.replace_of_file(old, new, is_of_policy).map_err(|refusal| refusal.description)?;
        policies.publish(configuration.config()).await;
        Ok(())
    }

    async fn take(&mut self, step: &Step, record: &Record) -> Result<(), String> {
        let Followers { configuration, addresses, .. } = &mut self.followers;
        match step {
            Step::RemoveListener(listener) => {
                self.freed.push((listener.port, Instant::now()));
                configuration.remove_of_file(record).map_err(|refusal| refusal.description)
            }
            Step::RemoveConnector(_) | Step::RemoveAutoLink(_) => {
                configuration.remove_of_file(record).map_err(|refusal| refusal.description)
            }
            Step::AddAutoLink(_) | Step::AddConnector(_) => {
                configuration.add_of_file(record).map_err(|refusal| refusal.description)
            }
            Step::AddListener(listener) => {
                let freed = self.freed.iter().rfind(|(port, _)| *port == listener.port);
                loop {
                    let added = configuration.add_of_file(record);
                    if added.is_ok() || freed.is_none_or(|(_, when)| when.elapsed() >= PORT_PATIENCE) {
                        break added.map_err(|refusal| refusal.description);
                    }
                    tokio::time::sleep(PORT_PAUSE).await;
                }
            }
            Step::SetProfile(profile) => configuration.set_profile(profile, record),
            Step::SetAddress(address) => {
                addresses.set(address).await;
                Ok(())
            }
            Step::RemoveAddress(address) => {
                addresses.remove(address).await;
                Ok(())
            }
            Step::Restart(what) => Err(format!("{what} takes a restart")),
        }
    }
}
