//! The file of users of a test.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use ringmain::sasl::Users;
use ringmain::sasl::keys::Hash;

use crate::support::{Router, Setup};

/// Rounds of the tests' keys: as few as there may be.
const ITERATIONS: u32 = 4096;

/// A file of users, removed at the end of the test.
pub struct UsersFile(PathBuf);

impl UsersFile {
    /// A file of these users and passwords.
    pub fn new(users: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
        let file = Self(folder.join(format!("users-{}-{number}", std::process::id())));
        file.write(users);
        file
    }

    /// Other users.
    pub fn write(&self, users: &[(&str, &str)]) {
        let mut all = Users::default();
        for (name, password) in users {
            all.set(name, password, &Hash::ALL, ITERATIONS).expect("a user");
        }
        all.write(&self.0).expect("the folder for temporary files is writable");
    }

    /// Where it is.
    pub fn path(&self) -> &PathBuf {
        &self.0
    }

    /// A router whose users these are. `listener`: attributes, one a line.
    pub fn router(&self, listener: &str) -> Router {
        self.router_with(listener, "")
    }

    /// The same with further sections.
    pub fn router_with(&self, listener: &str, sections: &str) -> Router {
        let router = format!("    usersFile: {}\n", self.0.display());
        Router::with(Setup { router: &router, listener, sections })
    }
}

impl Drop for UsersFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The user of most tests, as an administrator of qdrouterd would have named it.
pub const FRED: (&str, &str) = ("fred@domain", "secret");
