//! As whom our end introduces itself.

use super::Mechanism;
use super::keys::{Hash, ITERATIONS_MAX, ITERATIONS_MIN, prepare};
use super::screen;
use super::server::MECHANISMS;
use crate::engine::sasl::{Answer, Began, Credentials, Exchange, Transport};
use rsasl::callback::{Context, Request, SessionCallback, SessionData};
use rsasl::config::SASLConfig;
use rsasl::mechname::Mechname;
use rsasl::prelude::Registry;
use rsasl::prelude::{SASLClient, Session, SessionError};
use rsasl::property::{AuthId, Password as PasswordProperty};
use std::fmt;
use std::sync::Arc;

/// A password. It doesn't get into logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// A password.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Password {
    /// Doesn't show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// What our end may use, and what it has for that.
pub struct Identification {
    mechanisms: Option<Vec<Mechanism>>,
    has_user: bool,
    config: Arc<SASLConfig>,
}

impl fmt::Debug for Identification {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identification").field("mechanisms", &self.mechanisms).finish_non_exhaustive()
    }
}

/// What rsasl's mechanisms ask.
struct Callback {
    user: Option<(String, String)>,
    /// The password as SCRAM has it (RFC 5802 §2.2).
    prepared: String,
}

impl SessionCallback for Callback {
    fn callback(
        &self,
        session: &SessionData,
        _: &Context<'_>,
        request: &mut Request<'_>,
    ) -> Result<(), SessionError> {
        let is_scram =
            Mechanism::from_name(session.mechanism().mechanism.as_str()).and_then(Hash::of).is_some();
        if let Some((user, password)) = &self.user {
            let password = if is_scram { &self.prepared } else { password };
            request.satisfy::<AuthId>(user)?.satisfy::<PasswordProperty>(password.as_bytes())?;
        }
        Ok(())
    }
}

impl Identification {
    /// What our end may use: `mechanisms`, or any if it is `None`; and a user with its password.
    ///
    /// # Errors
    /// User or password can't be one: a sentence for the user.
    pub fn new(mechanisms: Option<Vec<Mechanism>>, user: Option<(String, Password)>) -> Result<Self, String> {
        let user = user.map(|(user, Password(password))| (user, password));
        let mut prepared = String::new();
        if let Some((name, password)) = &user {
            prepare(name).map_err(|reason| format!("the user's name can't be used: {reason}"))?;
            prepared = prepare(password)
                .map_err(|reason| format!("the password can't be used: {reason}"))?
                .into_owned();
        }
        let has_user = user.is_some();
        let config = SASLConfig::builder()
            .with_registry(Registry::with_mechanisms(&MECHANISMS))
            .with_callback(Callback { user, prepared })
            .map_err(|error| format!("can't set up SASL: {error}"))?;
        Ok(Self { mechanisms, has_user, config })
    }

    /// Why a mechanism can't be used on such a connection; `None`: it can.
    fn obstacle(&self, mechanism: Mechanism, transport: &Transport) -> Option<&'static str> {
        let is_named = self.mechanisms.as_ref().is_some_and(|named| named.contains(&mechanism));
        if !is_named && self.mechanisms.is_some() {
            return Some("isn't among the mechanisms that may be used");
        }
        match mechanism {
            // Where nobody has said so, a certificate must be there to show.
            Mechanism::External if !transport.is_encrypted => Some("needs TLS"),
            Mechanism::External if !is_named && transport.external_identity.is_none() => {
                Some("needs a certificate")
            }
            Mechanism::ScramSha512 | Mechanism::ScramSha256 | Mechanism::ScramSha1 | Mechanism::Plain
                if !self.has_user =>
            {
                Some("needs user and password")
            }
            // Whoever listens on an open line hears the password, and whoever answers there has it.
            Mechanism::Plain if !transport.is_encrypted && !is_named => {
                Some("isn't used without TLS unless the mechanisms name it")
            }
            Mechanism::External
            | Mechanism::ScramSha512
            | Mechanism::ScramSha256
            | Mechanism::ScramSha1
            | Mechanism::Plain
            | Mechanism::Anonymous => None,
        }
    }
}

impl Credentials for Identification {
    fn choose(&self, offered: &[&str], transport: &Transport) -> Result<Began, String> {
        let mut obstacles = Vec::new();
        for mechanism in Mechanism::ALL {
            if !offered.contains(&mechanism.name()) {
                continue;
            }
            if let Some(obstacle) = self.obstacle(mechanism, transport) {
                obstacles.push(format!("{mechanism} {obstacle}"));
                continue;
            }
            return begin(&self.config, mechanism);
        }
        let why = if obstacles.is_empty() {
            "none of which is known here".to_owned()
        } else {
            obstacles.join("; ")
        };
        Err(format!("the peer offers [{}]: {why}", offered.join(" ")))
    }
}

fn begin(config: &Arc<SASLConfig>, mechanism: Mechanism) -> Result<Began, String> {
    let exchange: Box<dyn Exchange> = if mechanism == Mechanism::Anonymous {
        Box::new(Anonymous)
    } else {
        let failed = |error: &dyn fmt::Display| format!("can't begin with {mechanism}: {error}");
        let name = Mechname::parse(mechanism.name().as_bytes()).map_err(|error| failed(&error))?;
        let session =
            SASLClient::new(config.clone()).start_suggested(&[name]).map_err(|error| failed(&error))?;
        Box::new(ClientExchange { mechanism, session, stage: Stage::First })
    };
    Ok(Began { mechanism: mechanism.name(), exchange })
}

/// We say nothing of ourselves.
#[derive(Debug)]
struct Anonymous;

impl Exchange for Anonymous {
    fn step(&mut self, said: Option<&[u8]>) -> Answer {
        match said {
            None => Answer::Say(b"anonymous".to_vec()),
            Some(_) => Answer::Say(Vec::new()),
        }
    }

    fn work(&mut self) -> Answer {
        Answer::Say(Vec::new())
    }

    fn accepted(&mut self, _: Option<&[u8]>) -> Result<(), String> {
        Ok(())
    }
}

/// How far our end of an exchange is.
enum Stage {
    /// Nothing was said.
    First,
    /// We have said who we are.
    Introduced,
    /// Of SCRAM: the server's first message is to be worked on.
    Salted(Vec<u8>),
    /// Of SCRAM: our proof has gone, the server's is to come.
    Proven,
    /// Nothing more is to be said.
    Done,
}

/// One exchange of ours.
struct ClientExchange {
    mechanism: Mechanism,
    session: Session,
    stage: Stage,
}

impl fmt::Debug for ClientExchange {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientExchange").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}

fn fail(reason: impl Into<String>) -> Answer {
    Answer::Refuse { user: None, reason: reason.into() }
}

impl ClientExchange {
    fn say(&mut self, said: Option<&[u8]>, next: Stage) -> Answer {
        let mut answer = Vec::new();
        match self.session.step(said, &mut answer) {
            Ok(_) => {
                self.stage = next;
                Answer::Say(answer)
            }
            Err(error) => fail(format!("{} failed: {error}", self.mechanism)),
        }
    }

    /// Holds the server's proof against what we know.
    fn check_proof(&mut self, proof: &[u8]) -> Result<(), String> {
        self.stage = Stage::Done;
        if !screen::are_attributes(proof) {
            return Err("what the peer says isn't the mechanism's".to_owned());
        }
        let is_proven = self.session.step(Some(proof), &mut Vec::new()).is_ok();
        is_proven
            .then_some(())
            .ok_or_else(|| "the peer doesn't know the password: it isn't who it should be".to_owned())
    }
}

impl Exchange for ClientExchange {
    fn step(&mut self, said: Option<&[u8]>) -> Answer {
        let is_scram = Hash::of(self.mechanism).is_some();
        match (&self.stage, said) {
            (Stage::First, _) => self.say(None, Stage::Introduced),
            (Stage::Introduced, Some(said)) if is_scram => match rounds(said) {
                Ok(()) => {
                    self.stage = Stage::Salted(said.to_vec());
                    Answer::Work
                }
                Err(reason) => fail(reason),
            },
            // Some servers say their last word before the outcome, and wait for an empty one of ours.
            (Stage::Proven, Some(said)) => match self.check_proof(said) {
                Ok(()) => Answer::Say(Vec::new()),
                Err(reason) => fail(reason),
            },
            (Stage::Introduced | Stage::Salted(_) | Stage::Proven | Stage::Done, _) => {
                fail(format!("a challenge came where {} has none", self.mechanism))
            }
        }
    }

    fn work(&mut self) -> Answer {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Salted(said) => self.say(Some(&said), Stage::Proven),
            Stage::First | Stage::Introduced | Stage::Proven | Stage::Done => {
                fail("there is nothing to work on")
            }
        }
    }

    fn accepted(&mut self, additional_data: Option<&[u8]>) -> Result<(), String> {
        match (&self.stage, additional_data) {
            (Stage::Proven, Some(proof)) => self.check_proof(proof),
            (Stage::Proven | Stage::Salted(_), None) | (Stage::Salted(_), Some(_)) => {
                Err("the peer accepts us without showing that it knows the password".to_owned())
            }
            (Stage::Introduced, _) if Hash::of(self.mechanism).is_some() => {
                Err("the peer accepts us without having asked for the password".to_owned())
            }
            (Stage::First | Stage::Introduced | Stage::Done, _) => Ok(()),
        }
    }
}

/// Whether a server's first message asks for no more work than we do, and for no less than makes sense: who asks for a single
/// round wants to try passwords.
fn rounds(server_first: &[u8]) -> Result<(), String> {
    if !screen::are_attributes(server_first) {
        return Err("what the peer says isn't the mechanism's".to_owned());
    }
    let mut attributes = server_first.split(|byte| *byte == b',');
    let rounds = attributes
        .find_map(|attribute| attribute.strip_prefix(b"i="))
        .and_then(|number| std::str::from_utf8(number).ok())
        .and_then(|number| number.parse::<u32>().ok())
        .ok_or("the peer doesn't say how many rounds the password is to be hashed")?;
    if (ITERATIONS_MIN..=ITERATIONS_MAX).contains(&rounds) {
        Ok(())
    } else {
        Err(format!(
            "the peer wants the password hashed in {rounds} rounds; from {ITERATIONS_MIN} to {ITERATIONS_MAX} are done here"
        ))
    }
}
