//! Who a listener's clients are.

use super::Mechanism;
use super::keys::{Hash, Keys, prepare, random};
use super::screen;
use super::users::{Models, Users};
use crate::base::lock::Mutex;
use crate::engine::sasl::{Answer, Authenticator, Began, Exchange, Transport};
use rsasl::callback::{Context, Request, SessionCallback, SessionData};
use rsasl::config::SASLConfig;
use rsasl::mechanisms::external::EXTERNAL;
use rsasl::mechanisms::plain::PLAIN;
use rsasl::mechanisms::scram::properties::ScramStoredPassword;
use rsasl::mechanisms::scram::{SCRAM_SHA1, SCRAM_SHA256, SCRAM_SHA512};
use rsasl::mechname::Mechname;
use rsasl::prelude::{Mechanism as RsaslMechanism, Registry};
use rsasl::prelude::{SASLServer, Session, SessionError, State, Validation};
use rsasl::property::{AuthId, AuthzId, Password};
use rsasl::validate::{Validate, ValidationError};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// Those of rsasl's mechanisms that the router uses, on either side. (ANONYMOUS has nothing to compute.)
pub(super) static MECHANISMS: [RsaslMechanism; 5] = [EXTERNAL, PLAIN, SCRAM_SHA1, SCRAM_SHA256, SCRAM_SHA512];

/// The users of a router: what its file says, or said when it was last right.
pub struct UserStore {
    loaded: Mutex<Arc<Loaded>>,
    /// Nobody outside knows it, so nobody can tell made-up keys from real ones.
    secret: [u8; 32],
}

impl fmt::Debug for UserStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserStore").field("users", &self.loaded().book.users.len()).finish_non_exhaustive()
    }
}

/// Users, as exchanges use them.
struct Loaded {
    book: Arc<Book>,
    config: Arc<SASLConfig>,
}

struct Book {
    users: Users,
    models: Models,
    secret: [u8; 32],
}

impl Book {
    /// A user's keys; of one that isn't there those of nobody. `None`: nobody has any of that kind.
    fn keys(&self, name: &str, hash: Option<Hash>) -> Option<Keys> {
        let nobody = self.models.keys_of_nobody(&self.secret, name, hash);
        let somebody = match hash {
            Some(hash) => self.users.keys(name, hash),
            None => self.users.password_keys(name),
        };
        somebody.cloned().or(nobody)
    }
}

impl UserStore {
    /// A store of these users.
    ///
    /// # Errors
    /// The system has no random numbers: a sentence for the user.
    pub fn new(users: Users) -> Result<Self, String> {
        let secret = random()?;
        Ok(Self { loaded: Mutex::new(Arc::new(Loaded::new(users, secret)?)), secret })
    }

    /// Takes other users from now on. Exchanges under way keep to those that they began with.
    ///
    /// # Errors
    /// The mechanisms can't be set up, which is a fault of the router: a sentence for the user.
    pub fn set(&self, users: Users) -> Result<(), String> {
        let loaded = Arc::new(Loaded::new(users, self.secret)?);
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }

    /// Reads a file of users, which are taken from now on. Returns how many there are.
    ///
    /// # Errors
    /// It can't be read, or a line of it is wrong: a sentence for the user. The users are those that there were.
    pub fn read(&self, path: &Path) -> Result<usize, String> {
        let users = Users::read(path)?;
        let count = users.len();
        self.set(users).map(|()| count)
    }

    fn loaded(&self) -> Arc<Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Loaded {
    fn new(users: Users, secret: [u8; 32]) -> Result<Self, String> {
        let book = Arc::new(Book { models: Models::of(&users), users, secret });
        let config = SASLConfig::builder()
            .with_registry(Registry::with_mechanisms(&MECHANISMS))
            .with_callback(Callback { book: book.clone() })
            .map_err(|error| format!("can't set up SASL: {error}"))?;
        Ok(Self { book, config })
    }
}

/// What a peer says it is, and what it shows for it.
struct Claim {
    user: String,
    /// As whom it wants to act, if that is another one.
    other: Option<String>,
    /// Of PLAIN; the others have shown it already.
    password: Vec<u8>,
}

/// By which rsasl's mechanisms give us the claim.
struct ClaimMade;

impl Validation for ClaimMade {
    type Value = Claim;
}

/// What rsasl's mechanisms ask.
struct Callback {
    book: Arc<Book>,
}

impl SessionCallback for Callback {
    fn callback(
        &self,
        session: &SessionData,
        context: &Context<'_>,
        request: &mut Request<'_>,
    ) -> Result<(), SessionError> {
        let hash = Mechanism::from_name(session.mechanism().mechanism.as_str()).and_then(Hash::of);
        if let (Some(hash), Some(name)) = (hash, context.get_ref::<AuthId>())
            && let Some(keys) = self.book.keys(&user_name(name), Some(hash))
        {
            let Keys { iterations, salt, stored_key, server_key, .. } = &keys;
            request.satisfy::<ScramStoredPassword<'_>>(&ScramStoredPassword::new(
                *iterations,
                salt,
                stored_key,
                server_key,
            ))?;
        }
        Ok(())
    }

    fn validate(
        &self,
        session: &SessionData,
        context: &Context<'_>,
        validate: &mut Validate<'_>,
    ) -> Result<(), ValidationError> {
        let is_scram =
            Mechanism::from_name(session.mechanism().mechanism.as_str()).and_then(Hash::of).is_some();
        let text = |name: &str| if is_scram { user_name(name) } else { name.to_owned() };
        let user = context.get_ref::<AuthId>().map(text).unwrap_or_default();
        let other = context.get_ref::<AuthzId>().map(text);
        let password = context.get_ref::<Password>().unwrap_or_default().to_vec();
        validate.finalize::<ClaimMade>(Claim {
            other: other.filter(|other| !other.is_empty() && *other != user),
            user,
            password,
        });
        Ok(())
    }
}

/// A name as SCRAM's messages have it, as the file has it. What can't be one is nobody's name.
fn user_name(name: &str) -> String {
    screen::unescape(name)
        .and_then(|name| prepare(&name).ok().map(|name| name.into_owned()))
        .unwrap_or_else(|| name.to_owned())
}

/// What a listener's configuration asks of its clients.
#[derive(Debug)]
pub struct ListenerAuthenticator {
    /// `saslMechanisms`; `None`: all that are safe on the connection.
    pub mechanisms: Option<Vec<Mechanism>>,
    /// `authenticatePeer`: nobody stays anonymous, unless the mechanisms name ANONYMOUS.
    pub is_authentication_required: bool,
    /// The users that there are.
    pub users: Arc<UserStore>,
}

impl ListenerAuthenticator {
    fn offers(&self, mechanism: Mechanism, transport: &Transport, users: &Users) -> bool {
        let is_named = self.mechanisms.as_ref().is_some_and(|named| named.contains(&mechanism));
        if !is_named && self.mechanisms.is_some() {
            return false;
        }
        match mechanism {
            Mechanism::External => transport.external_identity.is_some(),
            Mechanism::ScramSha512 => users.have(Hash::Sha512),
            Mechanism::ScramSha256 => users.have(Hash::Sha256),
            Mechanism::ScramSha1 => users.have(Hash::Sha1),
            // Whoever listens on an open line hears the password.
            Mechanism::Plain => !users.is_empty() && (transport.is_encrypted || is_named),
            Mechanism::Anonymous => is_named || !self.is_authentication_required,
        }
    }
}

impl Authenticator for ListenerAuthenticator {
    fn mechanisms(&self, transport: &Transport) -> Vec<&'static str> {
        let loaded = self.users.loaded();
        let offered = |mechanism: &Mechanism| self.offers(*mechanism, transport, &loaded.book.users);
        Mechanism::ALL.into_iter().filter(offered).map(Mechanism::name).collect()
    }

    fn begin(&self, mechanism: &str, transport: &Transport) -> Option<Began> {
        let loaded = self.users.loaded();
        let mechanism = Mechanism::ALL.into_iter().find(|known| known.name() == mechanism)?;
        if !self.offers(mechanism, transport, &loaded.book.users) {
            return None;
        }
        if mechanism == Mechanism::Anonymous {
            return Some(Began { mechanism: mechanism.name(), exchange: Box::new(Anonymous) });
        }
        let name = Mechname::parse(mechanism.name().as_bytes()).ok()?;
        let session = SASLServer::<ClaimMade>::new(loaded.config.clone()).start_suggested(name).ok()?;
        let exchange = Box::new(ServerExchange {
            mechanism,
            session,
            book: loaded.book.clone(),
            external_identity: transport.external_identity.clone(),
            is_first: true,
            name: None,
            claim: None,
            proof: None,
        });
        Some(Began { mechanism: mechanism.name(), exchange })
    }
}

/// A client that says nothing of itself.
#[derive(Debug)]
struct Anonymous;

impl Exchange for Anonymous {
    fn step(&mut self, _: Option<&[u8]>) -> Answer {
        Answer::Accept { user: "anonymous".to_owned(), additional_data: None }
    }

    fn work(&mut self) -> Answer {
        self.step(None)
    }

    fn accepted(&mut self, _: Option<&[u8]>) -> Result<(), String> {
        Ok(())
    }
}

/// One client's exchange.
struct ServerExchange {
    mechanism: Mechanism,
    session: Session<ClaimMade>,
    book: Arc<Book>,
    external_identity: Option<Arc<str>>,
    is_first: bool,
    /// The name that it gave in SCRAM, which may be nobody's.
    name: Option<String>,
    /// Of PLAIN: what is to be checked.
    claim: Option<Claim>,
    /// The same of SCRAM: the client's proof.
    proof: Option<Vec<u8>>,
}

impl fmt::Debug for ServerExchange {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerExchange").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}

fn refuse(user: Option<String>, reason: &str) -> Answer {
    Answer::Refuse { user, reason: reason.to_owned() }
}

impl ServerExchange {
    /// Whether rsasl may see what the client says.
    fn may_see(&self, said: &[u8]) -> bool {
        match self.mechanism {
            Mechanism::ScramSha1 | Mechanism::ScramSha256 | Mechanism::ScramSha512 => {
                if self.is_first {
                    screen::is_client_first(said)
                } else {
                    screen::are_attributes(said)
                }
            }
            Mechanism::External | Mechanism::Plain | Mechanism::Anonymous => true,
        }
    }

    fn claimed(&mut self, claim: Claim, additional_data: Option<Vec<u8>>) -> Answer {
        if self.mechanism == Mechanism::External {
            let identity = self.external_identity.as_deref().unwrap_or_default();
            return match claim.other {
                Some(other) if other != identity => refuse(
                    Some(identity.to_owned()),
                    &format!("the certificate's owner may not act as {other:?}"),
                ),
                Some(_) | None => Answer::Accept { user: identity.to_owned(), additional_data },
            };
        }
        if let Some(other) = &claim.other {
            let reason = format!("one user may not act as another, {other:?}");
            return refuse(Some(claim.user), &reason);
        }
        if self.mechanism == Mechanism::Plain {
            self.claim = Some(claim);
            return Answer::Work;
        }
        Answer::Accept { user: claim.user, additional_data }
    }
}

impl Exchange for ServerExchange {
    fn step(&mut self, said: Option<&[u8]>) -> Answer {
        let said = match said {
            Some(said) => said,
            // An init without a response: of EXTERNAL it says as much as an empty one, the others have to say something.
            None if self.mechanism == Mechanism::External => &[],
            None => return Answer::Say(Vec::new()),
        };
        if !self.may_see(said) {
            return refuse(None, "what the peer says isn't the mechanism's");
        }
        let is_scram = Hash::of(self.mechanism).is_some();
        if is_scram && !self.is_first {
            // It takes a few hashes only, but whoever checks passwords may want to check fewer of them.
            self.proof = Some(said.to_vec());
            return Answer::Work;
        }
        if is_scram {
            let mut attributes = said.split(|byte| *byte == b',').skip(2);
            let name = attributes.next().and_then(|attribute| attribute.strip_prefix(b"n="));
            self.name = name.and_then(|name| std::str::from_utf8(name).ok()).map(user_name);
        }
        self.is_first = false;
        self.take(said)
    }

    fn work(&mut self) -> Answer {
        if let Some(proof) = self.proof.take() {
            return self.take(&proof);
        }
        let Some(claim) = self.claim.take() else { return refuse(None, "there is no password to check") };
        let keys = self.book.keys(&claim.user, None);
        let is_right = keys.is_some_and(|keys| keys.are_of(&claim.password));
        if is_right {
            Answer::Accept { user: claim.user, additional_data: None }
        } else {
            refuse(Some(claim.user), "no such user, or the wrong password")
        }
    }

    fn accepted(&mut self, _: Option<&[u8]>) -> Result<(), String> {
        Ok(())
    }
}

impl ServerExchange {
    /// Has rsasl take what the client says.
    fn take(&mut self, said: &[u8]) -> Answer {
        let mut answer = Vec::new();
        match self.session.step(Some(said), &mut answer) {
            Ok(State::Running) => Answer::Say(answer),
            Ok(State::Finished(_)) => match self.session.validation() {
                Some(claim) => self.claimed(claim, (!answer.is_empty()).then_some(answer)),
                None => refuse(self.name.take(), "no such user, or the wrong password"),
            },
            Err(error) => {
                refuse(self.name.take(), &format!("what the peer says isn't the mechanism's: {error}"))
            }
        }
    }
}
