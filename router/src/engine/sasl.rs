//! The SASL layer (AMQP 1.0 §5.3), either side: which frame comes when.
//!
//! What is in the frames is the mechanisms' business, which the engine doesn't know: an [`Authenticator`] begins an
//! [`Exchange`] for a client's choice, [`Credentials`] choose among what a server offers. Neither has input or output
//! of its own. An exchange whose next step takes long says so ([`Answer::Work`]): the engine hands it to the
//! connection's user, who lets it work where nobody waits, and gives it back.
//!
//! Without them the one mechanism is ANONYMOUS (RFC 4505), which has no secret and needs no exchange.

use super::settings::{Settings, Side};
use super::violation::{Fault, Violation};
use super::write;
use crate::base::buffer::Output;
use ringmain_codec::{
    Condition, SaslChallenge, SaslCode, SaslFrame, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse,
    Symbol, Symbols,
};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The mechanism that asks for nothing.
pub const ANONYMOUS: &str = "ANONYMOUS";

/// What is known of the way that a connection's bytes take.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transport {
    /// Whether it is encrypted.
    pub is_encrypted: bool,
    /// Who the client, be it the peer or we, is by its certificate: the name for EXTERNAL. `None`: it has none to show.
    pub external_identity: Option<Arc<str>>,
    /// How it is encrypted; `None`: not at all, or not by this router.
    pub encryption: Option<Encryption>,
}

/// How a connection's bytes are encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encryption {
    /// The protocol's version, such as `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, as OpenSSL calls it.
    pub cipher: &'static str,
    /// The bits of its key.
    pub key_bits: u16,
}

/// Who a listener's clients must show to be, and how.
pub trait Authenticator: fmt::Debug + Send + Sync {
    /// The names of the mechanisms that are offered on such a connection. An empty list ends it.
    fn mechanisms(&self, transport: &Transport) -> Vec<&'static str>;

    /// Begins an exchange by the mechanism that a client chose. `None`: it isn't offered on such a connection.
    fn begin(&self, mechanism: &str, transport: &Transport) -> Option<Began>;
}

/// As whom our end introduces itself.
pub trait Credentials: fmt::Debug + Send + Sync {
    /// Chooses among the mechanisms that a server offers.
    ///
    /// # Errors
    /// None of them is one of ours: a sentence for the user.
    fn choose(&self, offered: &[&str], transport: &Transport) -> Result<Began, String>;
}

/// An exchange that begins.
#[derive(Debug)]
pub struct Began {
    /// The mechanism's name.
    pub mechanism: &'static str,
    /// What it says.
    pub exchange: Box<dyn Exchange>,
}

/// One end of an exchange by a mechanism (RFC 4422 §3).
pub trait Exchange: fmt::Debug + Send {
    /// Takes what the peer says; `None`: as acceptor, an init without a response; as initiator, nothing yet.
    fn step(&mut self, said: Option<&[u8]>) -> Answer;

    /// Does what [`Answer::Work`] announced. It may take long, and is called on any thread.
    fn work(&mut self) -> Answer;

    /// As initiator: takes what comes with the outcome that the peer accepts us, which may show that the peer knows the
    /// secret too.
    ///
    /// # Errors
    /// It doesn't know it: a sentence for the user.
    fn accepted(&mut self, additional_data: Option<&[u8]>) -> Result<(), String>;
}

/// What an exchange says to what it was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Tell the peer this: as acceptor in a challenge, as initiator in the init or a response.
    Say(Vec<u8>),
    /// As acceptor: the peer is who it says.
    Accept {
        /// Its name.
        user: String,
        /// What goes with the outcome.
        additional_data: Option<Vec<u8>>,
    },
    /// The peer isn't who it says, or doesn't keep to the mechanism: why, for the log. Without secrets.
    Refuse {
        /// The name that it gave, as far as it was understood.
        user: Option<String>,
        /// What was wrong.
        reason: String,
    },
    /// Nothing can be said before [`Exchange::work`] was done.
    Work,
}

/// Who the peers are to each other, once the layer was gone through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The mechanism by which it was shown.
    pub mechanism: &'static str,
    /// The name: as acceptor the peer's, as initiator our own; `None`: it wasn't given.
    pub user: Option<Rc<str>>,
}

/// What the user of a connection has to do in the SASL layer.
#[derive(Debug)]
pub enum Duty {
    /// Let it [work](Exchange::work), and give it and its answer to
    /// [`recv_worked`](super::Connection::recv_worked).
    Work(Box<dyn Exchange>),
    /// The peer isn't who it says. It is told no earlier than [`refuse_at`](super::Connection::refuse_at) says, and then
    /// sent away.
    Refuse {
        /// The name that it gave, as far as it was understood.
        user: Option<String>,
        /// The mechanism; empty: one that isn't offered.
        mechanism: &'static str,
        /// What was wrong.
        reason: String,
    },
}

/// What the next SASL frame must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SaslState {
    /// As acceptor: the peer's init.
    ExpectInit,
    /// As acceptor: the peer's response to a challenge.
    ExpectResponse,
    /// As initiator: the peer's mechanisms.
    ExpectMechanisms,
    /// As initiator: the peer's outcome, or a challenge.
    ExpectOutcome,
    /// Nothing yet: an exchange is at work. What comes is kept for later.
    Working,
    /// Nothing: the peer is refused as soon as it may know it.
    Refusing,
}

/// Where the layer is after a frame.
#[derive(Debug)]
pub(super) enum SaslStep {
    /// More frames are to come.
    Continue(SaslState),
    /// The exchange has work to do, or the peer is to be refused.
    Duty(SaslState, Duty),
    /// The peer is who it says; AMQP follows.
    Done(Identity),
    /// As initiator: it failed; nothing follows.
    Failed(Fault),
}

/// The exchange under way on a connection.
#[derive(Debug, Default)]
pub(super) struct Layer {
    mechanism: &'static str,
    exchange: Option<Box<dyn Exchange>>,
    /// As initiator: whether our init has gone.
    is_init_sent: bool,
}

impl Layer {
    /// Starts the layer behind its protocol header.
    pub(super) fn start(
        &mut self,
        side: Side,
        settings: &Settings,
        transport: &Transport,
        out: &mut Output,
    ) -> Result<SaslState, Fault> {
        match side {
            Side::Acceptor => {
                let mechanisms = match &settings.authenticator {
                    None => vec![ANONYMOUS],
                    Some(authenticator) => authenticator.mechanisms(transport),
                };
                if mechanisms.is_empty() {
                    return Err(Fault::new(
                        Condition::UNAUTHORIZED_ACCESS,
                        "none of the listener's SASL mechanisms can be used on such a connection",
                    ));
                }
                let frame = SaslMechanisms { sasl_server_mechanisms: Symbols::Slice(&mechanisms) };
                write::sasl(out, &frame).map_err(|_| TOO_LONG)?;
                Ok(SaslState::ExpectInit)
            }
            Side::Initiator => Ok(SaslState::ExpectMechanisms),
        }
    }

    /// Takes one frame of the peer.
    pub(super) fn recv(
        &mut self,
        state: SaslState,
        body: &[u8],
        settings: &Settings,
        transport: &Transport,
        out: &mut Output,
    ) -> Result<SaslStep, Violation> {
        let frame = SaslFrame::decode(body)?;
        match (state, frame) {
            (SaslState::ExpectInit, SaslFrame::Init(init)) => {
                Ok(self.recv_init(&init, settings, transport, out))
            }
            (SaslState::ExpectResponse, SaslFrame::Response(response)) => {
                Ok(self.recv_said(Some(response.response), out))
            }
            (SaslState::ExpectMechanisms, SaslFrame::Mechanisms(mechanisms)) => {
                Ok(self.recv_mechanisms(&mechanisms, settings, transport, out))
            }
            (SaslState::ExpectOutcome, SaslFrame::Challenge(challenge)) => {
                let Some(exchange) = &mut self.exchange else {
                    return Err(unexpected("sasl-challenge"));
                };
                let answer = exchange.step(Some(challenge.challenge));
                Ok(self.send_answer(answer, settings.hostname.as_deref(), out))
            }
            (SaslState::ExpectOutcome, SaslFrame::Outcome(outcome)) => Ok(self.recv_outcome(&outcome)),
            (
                SaslState::ExpectInit
                | SaslState::ExpectResponse
                | SaslState::ExpectMechanisms
                | SaslState::ExpectOutcome
                | SaslState::Working
                | SaslState::Refusing,
                SaslFrame::Init(_)
                | SaslFrame::Mechanisms(_)
                | SaslFrame::Challenge(_)
                | SaslFrame::Response(_)
                | SaslFrame::Outcome(_),
            ) => Err(unexpected(frame.name())),
        }
    }

    /// Takes an exchange back that has done its work.
    pub(super) fn recv_worked(
        &mut self,
        side: Side,
        exchange: Box<dyn Exchange>,
        answer: Answer,
        hostname: Option<&str>,
        out: &mut Output,
    ) -> SaslStep {
        self.exchange = Some(exchange);
        match side {
            Side::Acceptor => self.recv_answer(answer, out),
            Side::Initiator => self.send_answer(answer, hostname, out),
        }
    }

    fn recv_init(
        &mut self,
        init: &SaslInit<'_>,
        settings: &Settings,
        transport: &Transport,
        out: &mut Output,
    ) -> SaslStep {
        let chosen = init.mechanism.0;
        let began = match &settings.authenticator {
            None if chosen == ANONYMOUS => {
                return self.accept(ANONYMOUS, "anonymous".to_owned(), None, out);
            }
            None => None,
            Some(authenticator) => authenticator.begin(chosen, transport),
        };
        let Some(Began { mechanism, exchange }) = began else {
            // §5.3.3.2: a mechanism that wasn't offered is an authentication failure, and the connection closes.
            let reason = format!("the peer chose the SASL mechanism '{chosen}', which wasn't offered");
            return refuse("", None, reason);
        };
        self.mechanism = mechanism;
        self.exchange = Some(exchange);
        self.recv_said(init.initial_response, out)
    }

    fn recv_said(&mut self, said: Option<&[u8]>, out: &mut Output) -> SaslStep {
        let answer = match &mut self.exchange {
            Some(exchange) => exchange.step(said),
            None => Answer::Refuse { user: None, reason: "no exchange is under way".to_owned() },
        };
        self.recv_answer(answer, out)
    }

    /// As acceptor: does what the exchange answers.
    fn recv_answer(&mut self, answer: Answer, out: &mut Output) -> SaslStep {
        match answer {
            Answer::Say(challenge) => match write::sasl(out, &SaslChallenge { challenge: &challenge }) {
                Ok(()) => SaslStep::Continue(SaslState::ExpectResponse),
                Err(_) => refuse(self.mechanism, None, TOO_LONG.description.into_owned()),
            },
            Answer::Accept { user, additional_data } => {
                self.accept(self.mechanism, user, additional_data, out)
            }
            Answer::Refuse { user, reason } => refuse(self.mechanism, user, reason),
            Answer::Work => self.give_work(),
        }
    }

    fn accept(
        &mut self,
        mechanism: &'static str,
        user: String,
        additional_data: Option<Vec<u8>>,
        out: &mut Output,
    ) -> SaslStep {
        let outcome = SaslOutcome { code: SaslCode::Ok, additional_data: additional_data.as_deref() };
        match write::sasl(out, &outcome) {
            Ok(()) => SaslStep::Done(Identity { mechanism, user: Some(user.into()) }),
            Err(_) => refuse(mechanism, Some(user), TOO_LONG.description.into_owned()),
        }
    }

    fn give_work(&mut self) -> SaslStep {
        match self.exchange.take() {
            Some(exchange) => SaslStep::Duty(SaslState::Working, Duty::Work(exchange)),
            None => SaslStep::Failed(Fault::new(Condition::INTERNAL_ERROR, "no SASL exchange is under way")),
        }
    }

    fn recv_mechanisms(
        &mut self,
        mechanisms: &SaslMechanisms<'_>,
        settings: &Settings,
        transport: &Transport,
        out: &mut Output,
    ) -> SaslStep {
        let offered = mechanisms.sasl_server_mechanisms;
        let hostname = settings.hostname.as_deref();
        let Some(credentials) = &settings.credentials else {
            if !offered.contains(ANONYMOUS) {
                let offered: Vec<&str> = offered.iter().collect();
                return failed(format!(
                    "the peer offers [{}] and not ANONYMOUS, and there is neither user nor password for another",
                    offered.join(" ")
                ));
            }
            self.mechanism = ANONYMOUS;
            return self.send_answer(Answer::Say(b"anonymous".to_vec()), hostname, out);
        };
        let offered: Vec<&str> = offered.iter().collect();
        match credentials.choose(&offered, transport) {
            Ok(Began { mechanism, mut exchange }) => {
                self.mechanism = mechanism;
                let answer = exchange.step(None);
                self.exchange = Some(exchange);
                self.send_answer(answer, hostname, out)
            }
            Err(reason) => failed(reason),
        }
    }

    /// As initiator: does what the exchange answers.
    fn send_answer(&mut self, answer: Answer, hostname: Option<&str>, out: &mut Output) -> SaslStep {
        match answer {
            Answer::Say(response) => {
                let is_first = !std::mem::replace(&mut self.is_init_sent, true);
                let written = if is_first {
                    let mechanism = Symbol(self.mechanism);
                    let initial_response = Some(response.as_slice());
                    write::sasl(out, &SaslInit { mechanism, initial_response, hostname })
                } else {
                    write::sasl(out, &SaslResponse { response: &response })
                };
                match written {
                    Ok(()) => SaslStep::Continue(SaslState::ExpectOutcome),
                    Err(_) => SaslStep::Failed(TOO_LONG),
                }
            }
            Answer::Work => self.give_work(),
            Answer::Accept { .. } => failed("the mechanism ended before its time".to_owned()),
            Answer::Refuse { reason, .. } => failed(reason),
        }
    }

    fn recv_outcome(&mut self, outcome: &SaslOutcome<'_>) -> SaslStep {
        let because = match outcome.code {
            SaslCode::Ok => {
                let proof = match &mut self.exchange {
                    Some(exchange) => exchange.accepted(outcome.additional_data),
                    None => Ok(()),
                };
                return match proof {
                    Ok(()) => SaslStep::Done(Identity { mechanism: self.mechanism, user: None }),
                    Err(reason) => failed(reason),
                };
            }
            SaslCode::Auth => "the peer didn't accept the credentials",
            SaslCode::Sys => "the peer's authentication failed because of a system error",
            SaslCode::SysPerm => "the peer's authentication failed for good because of a system error",
            SaslCode::SysTemp => "the peer's authentication failed for now because of a system error",
        };
        failed(format!("{because} [mech={}]", self.mechanism))
    }
}

/// A peer that answers with so much that our next frame wouldn't fit 512 bytes (§5.3.1) doesn't mean well.
const TOO_LONG: Fault =
    Fault::new(Condition::UNAUTHORIZED_ACCESS, "the answer to what the peer said doesn't fit a SASL frame");

/// The outcome that tells the peer that it isn't who it says.
pub(super) fn send_refusal(out: &mut Output) {
    // Two bytes and what is around them always fit.
    let _ = write::sasl(out, &SaslOutcome { code: SaslCode::Auth, additional_data: None });
}

fn refuse(mechanism: &'static str, user: Option<String>, reason: String) -> SaslStep {
    SaslStep::Duty(SaslState::Refusing, Duty::Refuse { user, mechanism, reason })
}

fn failed(description: String) -> SaslStep {
    SaslStep::Failed(Fault::describe(Condition::UNAUTHORIZED_ACCESS, description))
}

fn unexpected(frame: &str) -> Violation {
    Violation::connection(
        Condition::NOT_ALLOWED,
        format!("{frame} came where the SASL exchange expects something else"),
    )
}
