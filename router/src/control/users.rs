//! The users of the router's listeners, and the file that they come from (`usersFile`).

use super::config::Config;
use crate::log;
use crate::log::{Level, Module};
use crate::sasl::{UserStore, Users};
use std::path::PathBuf;
use std::sync::Arc;

/// The users, and where they come from. Clones are the same ones.
#[derive(Clone)]
pub(super) struct RouterUsers {
    store: Arc<UserStore>,
    path: Option<PathBuf>,
}

impl RouterUsers {
    /// Reads the users that the configuration names.
    ///
    /// # Errors
    /// Their file can't be read, or a line of it is wrong: a sentence for the user.
    pub(super) fn read(config: &Config) -> Result<Self, String> {
        let path = config.router.users_file.clone();
        let at = |message| format!("{}:{}: router: 'usersFile': {message}", config.file, config.router.line);
        let users = path.as_deref().map_or_else(|| Ok(Users::default()), Users::read).map_err(at)?;
        if let Some(path) = &path {
            if users.is_empty() {
                log!(
                    Module::Server,
                    Level::Warning,
                    "There are no users in {}: 'ringmain user add {} NAME' adds one",
                    path.display(),
                    path.display()
                );
            } else {
                log!(Module::Server, Level::Info, "Users in {}: {}", path.display(), users.len());
            }
        }
        Ok(Self { store: Arc::new(UserStore::new(users)?), path })
    }

    /// The users.
    pub(super) fn store(&self) -> Arc<UserStore> {
        self.store.clone()
    }

    /// Reads the file again. With a fault in it, the users are those that there were.
    pub(super) fn reread(&self) {
        let Some(path) = &self.path else { return };
        match self.store.read(path) {
            Ok(count) => log!(Module::Server, Level::Notice, "Users in {}: {count}", path.display()),
            Err(reason) => log!(
                Module::Server,
                Level::Error,
                "The file of users can't be used ({reason}); the users are those that there were"
            ),
        }
    }
}
