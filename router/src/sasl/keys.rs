//! Salted keys: what is kept of a password (RFC 5802 §3), and how one is held against them.

use super::Mechanism;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::Hmac;
use pbkdf2::pbkdf2_hmac;
use rsasl::mechanisms::scram::tools::derive_keys;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};
use std::borrow::Cow;
use std::fmt;
use subtle::ConstantTimeEq as _;

/// Rounds of a new key. Clients that use SCRAM have to do as many for each connection, and Cyrus SASL, which most of
/// them use, refuses more than 65536.
pub const ITERATIONS_DEFAULT: u32 = 16_384;

/// The fewest rounds that a key may have (RFC 7677 §4), and that a server may ask us for.
pub const ITERATIONS_MIN: u32 = 4096;

/// The most rounds that a key may have, and that a server may ask us for: about a second of work.
pub const ITERATIONS_MAX: u32 = 1_000_000;

/// Bytes of a new salt.
pub const SALT_BYTES: usize = 16;

/// The hash functions that SCRAM is used with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Hash {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Hash {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sha1, Self::Sha256, Self::Sha512];

    /// The mechanism that uses it.
    #[must_use]
    pub const fn mechanism(self) -> Mechanism {
        match self {
            Self::Sha1 => Mechanism::ScramSha1,
            Self::Sha256 => Mechanism::ScramSha256,
            Self::Sha512 => Mechanism::ScramSha512,
        }
    }

    /// The hash function of a mechanism.
    #[must_use]
    pub const fn of(mechanism: Mechanism) -> Option<Self> {
        match mechanism {
            Mechanism::ScramSha1 => Some(Self::Sha1),
            Mechanism::ScramSha256 => Some(Self::Sha256),
            Mechanism::ScramSha512 => Some(Self::Sha512),
            Mechanism::External | Mechanism::Plain | Mechanism::Anonymous => None,
        }
    }

    /// The size of its output, in bytes.
    #[must_use]
    pub const fn output_len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

/// What is kept of a password: nobody can log in with it, and finding the password takes trying.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// The hash function.
    pub hash: Hash,
    /// The rounds.
    pub iterations: u32,
    /// The salt.
    pub salt: Vec<u8>,
    /// The hash of the key that a client shows that it has.
    pub stored_key: Vec<u8>,
    /// The key that we show that we have.
    pub server_key: Vec<u8>,
}

impl fmt::Debug for Keys {
    /// Shows no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("hash", &self.hash)
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

impl Keys {
    /// The keys of a password, which was [prepared](prepare).
    ///
    /// # Cost
    /// `iterations` rounds of the hash function, twice: some milliseconds.
    #[must_use]
    pub fn derive(hash: Hash, password: &[u8], salt: &[u8], iterations: u32) -> Self {
        let (stored_key, server_key) = match hash {
            Hash::Sha1 => {
                let mut salted = [0; 20];
                pbkdf2_hmac::<Sha1>(password, salt, iterations, &mut salted);
                let (client_key, server_key) = derive_keys::<Sha1>(&salted);
                (Sha1::digest(client_key).to_vec(), server_key.to_vec())
            }
            Hash::Sha256 => {
                let mut salted = [0; 32];
                pbkdf2_hmac::<Sha256>(password, salt, iterations, &mut salted);
                let (client_key, server_key) = derive_keys::<Sha256>(&salted);
                (Sha256::digest(client_key).to_vec(), server_key.to_vec())
            }
            Hash::Sha512 => {
                let mut salted = [0; 64];
                pbkdf2_hmac::<Sha512>(password, salt, iterations, &mut salted);
                let (client_key, server_key) = derive_keys::<Sha512>(&salted);
                (Sha512::digest(client_key).to_vec(), server_key.to_vec())
            }
        };
        Self { hash, iterations, salt: salt.to_vec(), stored_key, server_key }
    }

    /// Whether a password, which was [prepared](prepare), has these keys. It takes as long whether it has or not.
    #[must_use]
    pub fn are_of(&self, password: &[u8]) -> bool {
        let other = Self::derive(self.hash, password, &self.salt, self.iterations);
        bool::from(other.stored_key.ct_eq(&self.stored_key))
    }

    /// Reads `SCRAM-SHA-256$ITERATIONS:SALT$STORED_KEY:SERVER_KEY` (the notation of RFC 5803 §2, with the scheme in front
    /// of it).
    ///
    /// # Errors
    /// What is wrong with it, without showing it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = || {
            let (scheme, rest) = text.split_once('$')?;
            let (info, value) = rest.split_once('$')?;
            let (iterations, salt) = info.split_once(':')?;
            let (stored_key, server_key) = value.split_once(':')?;
            Some((scheme, iterations, salt, stored_key, server_key))
        };
        let (scheme, iterations, salt, stored_key, server_key) =
            parts().ok_or("the key isn't SCHEME$ITERATIONS:SALT$STORED-KEY:SERVER-KEY")?;
        let hash = Mechanism::from_name(scheme)
            .and_then(Hash::of)
            .ok_or_else(|| format!("'{scheme}' isn't SCRAM-SHA-1, SCRAM-SHA-256 or SCRAM-SHA-512"))?;
        let iterations = iterations
            .parse()
            .ok()
            .filter(|iterations| (ITERATIONS_MIN..=ITERATIONS_MAX).contains(iterations))
            .ok_or_else(|| {
                format!("'{iterations}' iterations aren't {ITERATIONS_MIN} to {ITERATIONS_MAX}")
            })?;
        let decode =
            |what: &str, text: &str| STANDARD.decode(text).map_err(|_| format!("the {what} isn't base64"));
        let salt = decode("salt", salt)?;
        // It goes to the client in a frame of 512 bytes.
        if salt.is_empty() || salt.len() > 64 {
            return Err("the salt isn't 1 to 64 bytes long".to_owned());
        }
        let stored_key = decode("stored key", stored_key)?;
        let server_key = decode("server key", server_key)?;
        if stored_key.len() != hash.output_len() || server_key.len() != hash.output_len() {
            return Err(format!(
                "the keys of {scheme} are {} bytes long, and these aren't",
                hash.output_len()
            ));
        }
        Ok(Self { hash, iterations, salt, stored_key, server_key })
    }
}

impl fmt::Display for Keys {
    /// As [`Keys::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hash, iterations, salt, stored_key, server_key } = self;
        let [salt, stored_key, server_key] =
            [salt, stored_key, server_key].map(|bytes| STANDARD.encode(bytes));
        write!(f, "{}${iterations}:{salt}${stored_key}:{server_key}", hash.mechanism())
    }
}

/// A name or password such that it is the same however a keyboard makes it (SASLprep, RFC 4013).
///
/// # Errors
/// It has characters that can't be in one: a sentence for the user, without the text.
pub fn prepare(text: &str) -> Result<Cow<'_, str>, String> {
    let prepared =
        stringprep::saslprep(text).map_err(|_| "it has characters that RFC 4013 forbids".to_owned())?;
    if prepared.is_empty() {
        return Err("it is empty".to_owned());
    }
    if prepared.contains('\0') {
        return Err("it has a zero byte".to_owned());
    }
    Ok(prepared)
}

/// The keyed hash of a name: nobody who doesn't know the key can tell it from random bytes.
pub(super) fn keyed(key: &[u8; 32], name: &str) -> [u8; 64] {
    use hmac::Mac as _;
    let mut hmac = Hmac::<Sha512>::new_from_slice(key).expect("HMAC takes keys of any length");
    hmac.update(name.as_bytes());
    hmac.finalize().into_bytes().into()
}

/// Random bytes of the system's.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(count) if count == N => Ok(bytes),
        Ok(_) => Err("the system's random numbers have come to an end".to_owned()),
        Err(error) => Err(format!("the system has no random numbers: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 5802 §5 and RFC 7677 §3: user `user`, password `pencil`. What the server keeps follows from what
    /// the exchange shows: the server's signature is HMAC(ServerKey, AuthMessage), and the client's proof is ClientKey XOR
    /// HMAC(StoredKey, AuthMessage).
    #[test]
    fn examples_of_the_specifications() {
        use hmac::Mac as _;
        let sha1_auth = "n=user,r=fyko+d2lbbFgONRv9qkxdawL,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,\
                         s=QSXCR+Q6sek8bf92,i=4096,c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j";
        let keys = Keys::derive(Hash::Sha1, b"pencil", &STANDARD.decode("QSXCR+Q6sek8bf92").unwrap(), 4096);
        let mut signature = Hmac::<Sha1>::new_from_slice(&keys.server_key).unwrap();
        signature.update(sha1_auth.as_bytes());
        assert_eq!(STANDARD.encode(signature.finalize().into_bytes()), "rmF9pqV8S7suAoZWja4dJRkFsKQ=");
        let mut mask = Hmac::<Sha1>::new_from_slice(&keys.stored_key).unwrap();
        mask.update(sha1_auth.as_bytes());
        let proof = STANDARD.decode("v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=").unwrap();
        let client_key: Vec<u8> =
            proof.iter().zip(mask.finalize().into_bytes()).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha1::digest(client_key).to_vec(), keys.stored_key);

        let sha256_auth = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                           s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let keys = Keys::derive(
            Hash::Sha256,
            b"pencil",
            &STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap(),
            4096,
        );
        let mut signature = Hmac::<Sha256>::new_from_slice(&keys.server_key).unwrap();
        signature.update(sha256_auth.as_bytes());
        assert_eq!(
            STANDARD.encode(signature.finalize().into_bytes()),
            "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
        assert!(keys.are_of(b"pencil"));
        assert!(!keys.are_of(b"pencils"));
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        for hash in Hash::ALL {
            let keys = Keys::derive(hash, b"secret", b"salt of sixteen!", ITERATIONS_MIN);
            assert_eq!(Keys::parse(&keys.to_string()), Ok(keys));
        }
        let fault = |text: &str| Keys::parse(text).unwrap_err();
        assert!(fault("secret").contains("SCHEME$"));
        assert!(fault("MD5$4096:QQ==$QQ==:QQ==").contains("'MD5'"));
        assert!(fault("SCRAM-SHA-1$1:QQ==$QQ==:QQ==").contains("4096 to 1000000"));
        assert!(fault("SCRAM-SHA-1$4294967295:QQ==$QQ==:QQ==").contains("4096 to 1000000"));
        assert!(fault("SCRAM-SHA-1$4096:Q$QQ==:QQ==").contains("salt"));
        assert!(fault("SCRAM-SHA-1$4096:QQ==$QQ==:QQ==").contains("20 bytes"));
    }

    #[test]
    fn names_and_passwords_are_prepared() {
        // RFC 4013 §3.
        assert_eq!(prepare("I\u{ad}X").unwrap(), "IX");
        assert_eq!(prepare("USER").unwrap(), "USER");
        assert_eq!(prepare("\u{2168}").unwrap(), "IX");
        assert!(prepare("\u{7}").is_err());
        assert!(prepare("\u{627}1").is_err());
        assert!(prepare("").is_err());
    }
}
