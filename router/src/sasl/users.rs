//! The file of users: a line for each user and hash function, `NAME SCRAM-SHA-256$ITERATIONS:SALT$STORED-KEY:SERVER-KEY`.
//!
//! Lines that begin with `#`, and empty ones, are left alone. The name ends at the last blank of the line, since a key has
//! none. Several keys of one user have different hash functions; PLAIN takes the one that PostgreSQL and others keep,
//! SCRAM-SHA-256's, before another.

use super::keys::{Hash, ITERATIONS_DEFAULT, Keys, SALT_BYTES, keyed, prepare, random};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes: some hundred thousand users.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The longest name, in bytes: with it a SASL frame still has room for a password.
pub const NAME_BYTES_MAX: usize = 200;

/// Users and their keys, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Users(BTreeMap<String, Vec<Keys>>);

impl Users {
    /// Reads a file.
    ///
    /// # Errors
    /// It can't be read, or a line of it is wrong: a sentence for the user that names file and line.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    " (it must be readable by the user that the router runs as)"
                }
                _ => "",
            };
            format!("can't read {}: {error}{hint}", path.display())
        };
        let size = fs::metadata(path).map_err(failed)?.len();
        if size > FILE_BYTES_MAX {
            return Err(format!(
                "{} has {size} bytes, which is more than a file of users can have",
                path.display()
            ));
        }
        Self::parse(&fs::read_to_string(path).map_err(failed)?)
            .map_err(|(line, message)| format!("{}:{line}: {message}", path.display()))
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// The line that is wrong, counted from 1, and how.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut users = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |message: String| (number, message);
            let (name, keys) =
                line.rsplit_once([' ', '\t']).ok_or_else(|| wrong("this isn't 'NAME KEY'".to_owned()))?;
            let name = name_of(name.trim_end()).map_err(wrong)?;
            let keys = Keys::parse(keys).map_err(wrong)?;
            let others = users.0.entry(name.clone()).or_default();
            if others.iter().any(|other| other.hash == keys.hash) {
                return Err(wrong(format!("'{name}' has a key of {} already", keys.hash.mechanism())));
            }
            others.push(keys);
        }
        Ok(users)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Their names and keys, in the names' order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Keys])> {
        self.0.iter().map(|(name, keys)| (name.as_str(), keys.as_slice()))
    }

    /// Whether somebody has a key of this hash function.
    #[must_use]
    pub fn have(&self, hash: Hash) -> bool {
        self.0.values().flatten().any(|keys| keys.hash == hash)
    }

    /// A user's key of a hash function.
    #[must_use]
    pub fn keys(&self, name: &str, hash: Hash) -> Option<&Keys> {
        self.0.get(name)?.iter().find(|keys| keys.hash == hash)
    }

    /// The key against which a user's password is checked.
    #[must_use]
    pub fn password_keys(&self, name: &str) -> Option<&Keys> {
        PLAIN_ORDER.iter().find_map(|hash| self.keys(name, *hash))
    }

    /// Adds a user, or gives one another password, with keys of these hash functions. Tells whether the user was there.
    ///
    /// # Errors
    /// Name or password can't be one: a sentence for the user.
    pub fn set(
        &mut self,
        name: &str,
        password: &str,
        hashes: &[Hash],
        iterations: u32,
    ) -> Result<bool, String> {
        let name = name_of(name)?;
        let password = prepare(password).map_err(|reason| format!("the password can't be used: {reason}"))?;
        let keys = hashes
            .iter()
            .map(|hash| Ok(Keys::derive(*hash, password.as_bytes(), &random::<SALT_BYTES>()?, iterations)))
            .collect::<Result<Vec<_>, String>>()?;
        Ok(self.0.insert(name, keys).is_some())
    }

    /// The same with keys of every hash function and the usual number of rounds.
    ///
    /// # Errors
    /// Name or password can't be one: a sentence for the user.
    pub fn set_usual(&mut self, name: &str, password: &str) -> Result<bool, String> {
        self.set(name, password, &Hash::ALL, ITERATIONS_DEFAULT)
    }

    /// Takes a user out. Tells whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// The file's text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text =
            "# Users of ringmain: change with 'ringmain user'. No password is in here.\n".to_owned();
        for (name, keys) in self.iter() {
            for keys in keys {
                text.push_str(&format!("{name} {keys}\n"));
            }
        }
        text
    }

    /// Writes the file, so that whoever reads it at the same time sees the old one or the new one. Nobody else may read
    /// it, unless it was there and others might.
    ///
    /// # Errors
    /// It can't be written: a sentence for the user.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.new", std::process::id()));
        let beside = PathBuf::from(beside);
        let written = self.write_to(&beside, path);
        if written.is_err() {
            // What is wrong is told already.
            let _ = fs::remove_file(&beside);
        }
        written.map_err(|error| format!("can't write {}: {error}", path.display()))
    }

    fn write_to(&self, beside: &Path, path: &Path) -> io::Result<()> {
        let mode = match fs::metadata(path) {
            Ok(there) => there.permissions().mode() & 0o660,
            Err(_) => 0o600,
        };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside)?;
        file.write_all(self.text().as_bytes())?;
        if let Ok(there) = fs::metadata(path) {
            use std::os::unix::fs::MetadataExt as _;
            // A service has its file by its own name even where root changes it.
            let (user, group) =
                (rustix::fs::Uid::from_raw(there.uid()), rustix::fs::Gid::from_raw(there.gid()));
            rustix::fs::fchown(&file, Some(user), Some(group))?;
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(beside, path)
    }
}

/// What the keys of somebody look like from outside, for those of nobody.
#[derive(Clone, Debug, Default)]
pub struct Models {
    /// By hash function: the rounds of each user's key, and the length of its salt.
    by_hash: [Vec<(u32, usize)>; Hash::ALL.len()],
    /// The same of the keys against which passwords are checked.
    of_passwords: Vec<(Hash, u32, usize)>,
}

impl Models {
    /// Those of some users.
    #[must_use]
    pub fn of(users: &Users) -> Self {
        let mut models = Self::default();
        for (name, keys) in users.iter() {
            for keys in keys {
                models.by_hash[keys.hash as usize].push((keys.iterations, keys.salt.len()));
            }
            models
                .of_passwords
                .extend(users.password_keys(name).map(|keys| (keys.hash, keys.iterations, keys.salt.len())));
        }
        models
    }

    /// Keys of nobody for a name that isn't there, which look like those of somebody: whoever asks for that name gets the
    /// same salt each time, and no password fits. `hash`: for SCRAM; without it for a password. `None`: there are no
    /// users of that kind.
    ///
    /// It takes as long for every name, so it is called for those that are there as well.
    #[must_use]
    pub fn keys_of_nobody(&self, secret: &[u8; 32], name: &str, hash: Option<Hash>) -> Option<Keys> {
        let bytes = keyed(secret, name);
        let (choice, bytes) = bytes.split_first_chunk()?;
        let choice = usize::try_from(u32::from_be_bytes(*choice)).ok()?;
        let (hash, iterations, salt_len) = match hash {
            Some(hash) => {
                let models = &self.by_hash[hash as usize];
                let (iterations, salt_len) = *models.get(choice.checked_rem(models.len())?)?;
                (hash, iterations, salt_len)
            }
            None => *self.of_passwords.get(choice.checked_rem(self.of_passwords.len())?)?,
        };
        let salt = bytes.iter().copied().cycle().take(salt_len).collect();
        // Of these, nobody knows what hashes to them.
        let key = keyed(secret, &format!("key of {name}"))[..hash.output_len()].to_vec();
        Some(Keys { hash, iterations, salt, stored_key: key.clone(), server_key: key })
    }
}

/// The hash functions whose key is taken for PLAIN, the first that there is.
const PLAIN_ORDER: [Hash; 3] = [Hash::Sha256, Hash::Sha512, Hash::Sha1];

/// A user's name as the file has it.
fn name_of(name: &str) -> Result<String, String> {
    let name = prepare(name).map_err(|reason| format!("the name can't be used: {reason}"))?;
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("the name is longer than {NAME_BYTES_MAX} bytes"));
    }
    if name.starts_with('#') || name.starts_with(char::is_whitespace) || name.ends_with(char::is_whitespace) {
        return Err("a name can't begin with '#', nor with or end in a blank".to_owned());
    }
    Ok(name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Users {
        let mut users = Users::default();
        users.set("fred@domain", "secret", &Hash::ALL, 4096).unwrap();
        users.set("a b", "pass,word=", &[Hash::Sha256], 5000).unwrap();
        users
    }

    #[test]
    fn the_file_is_read_as_it_is_written() {
        let users = two();
        assert_eq!(Users::parse(&users.text()), Ok(users.clone()));
        assert!(!users.text().contains("secret"));
        assert!(users.keys("fred@domain", Hash::Sha512).unwrap().are_of(b"secret"));
        assert!(users.keys("a b", Hash::Sha512).is_none());
        assert!(users.password_keys("a b").unwrap().are_of(b"pass,word="));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let line = two().text().lines().nth(1).unwrap().to_owned();
        assert_eq!(Users::parse("\n# x\nname\n").unwrap_err(), (3, "this isn't 'NAME KEY'".to_owned()));
        assert_eq!(Users::parse("fred secret").unwrap_err().0, 1);
        assert!(!Users::parse("fred secret").unwrap_err().1.contains("secret"));
        assert!(Users::parse(&format!("{line}\n{line}")).unwrap_err().1.contains("already"));
        assert!(Users::parse("").unwrap().is_empty());
    }

    #[test]
    fn nobody_looks_like_somebody() {
        let users = two();
        let secret = [7; 32];
        let models = Models::of(&users);
        let nobody = models.keys_of_nobody(&secret, "eve", Some(Hash::Sha1)).unwrap();
        assert_eq!(models.keys_of_nobody(&secret, "eve", Some(Hash::Sha1)).unwrap(), nobody);
        assert_ne!(models.keys_of_nobody(&[8; 32], "eve", Some(Hash::Sha1)).unwrap().salt, nobody.salt);
        assert_ne!(models.keys_of_nobody(&secret, "eva", Some(Hash::Sha1)).unwrap().salt, nobody.salt);
        assert_eq!((nobody.iterations, nobody.salt.len(), nobody.stored_key.len()), (4096, SALT_BYTES, 20));
        assert!(!nobody.are_of(b""));
        // Both of the numbers of rounds that there are come up.
        let rounds = |name: &str| models.keys_of_nobody(&secret, name, None).unwrap().iterations;
        let names = (0..64).map(|number| rounds(&format!("nobody-{number}")));
        let mut found: Vec<u32> = names.collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, [4096, 5000]);
        assert!(Models::default().keys_of_nobody(&secret, "eve", None).is_none());
    }
}
