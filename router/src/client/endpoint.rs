//! The way to one attached link and back: open, begin, attach; detach, close.

use std::time::Duration;

use super::failure::Failure;
use super::wire::Wire;
use crate::base::id::Channel;
use crate::base::time::Instant;
use crate::engine::{Attachment, Cause, Event, LinkRef};
use ringmain_codec::{ReceiverSettleMode, Role, SenderSettleMode, Source, Symbols, Target, TargetNode};

/// How long the router has for its detach before the connection is closed without it.
const DETACH_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcomes that a client understands.
const OUTCOMES: &[&str] =
    &["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"];

/// Where the conversation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The router's open is due.
    Opening,
    /// Its begin is due.
    Beginning,
    /// Its attach is due.
    Attaching,
    /// Messages may go.
    Attached(LinkRef),
    /// Its detach is due, until then.
    Detaching(LinkRef, Instant),
    /// Its close is due; the engine sees to that.
    Closing,
}

/// A client's one link on its one session.
pub(super) struct Endpoint {
    stage: Stage,
    role: Role,
    /// `None`: the anonymous terminus.
    address: Option<String>,
    snd_settle_mode: SenderSettleMode,
    timeout: Option<Duration>,
    /// When something moved last.
    moved: Instant,
    /// What it waited for too long.
    timed_out: Option<String>,
}

impl Endpoint {
    /// A link that isn't there yet.
    pub(super) fn new(
        role: Role,
        address: Option<&str>,
        snd_settle_mode: SenderSettleMode,
        timeout: Option<Duration>,
    ) -> Self {
        let address = address.map(str::to_owned);
        Self {
            stage: Stage::Opening,
            role,
            address,
            snd_settle_mode,
            timeout,
            moved: Instant(0),
            timed_out: None,
        }
    }

    /// The link, while messages may go.
    pub(super) fn link(&self) -> Option<LinkRef> {
        match self.stage {
            Stage::Attached(link) => Some(link),
            Stage::Opening | Stage::Beginning | Stage::Attaching | Stage::Detaching(..) | Stage::Closing => {
                None
            }
        }
    }

    /// Something moved: the time-out counts from now.
    pub(super) fn touch(&mut self, now: Instant) {
        self.moved = now;
    }

    /// When the time-out (or another deadline) is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Opening | Stage::Beginning | Stage::Attaching | Stage::Attached(_) => {
                self.timeout.map(|timeout| self.moved + timeout)
            }
            Stage::Detaching(_, until) => Some(until),
            Stage::Closing => None,
        }
    }

    /// Goes on with what time demands. Where nothing has moved for too long, it ends the conversation in
    /// good order; `waiting_for` says what was waited for while attached.
    pub(super) fn turn(&mut self, wire: &mut Wire, waiting_for: &str) {
        let now = wire.now();
        if let Stage::Detaching(link, until) = self.stage
            && (now >= until || wire.connection.link(link).is_none())
        {
            self.close(wire);
        }
        let waiting_for = match self.stage {
            Stage::Opening | Stage::Beginning => "the router's answer",
            Stage::Attaching => "the router's answer to the link",
            Stage::Attached(_) => waiting_for,
            Stage::Detaching(..) | Stage::Closing => return,
        };
        if let (Some(timeout), Some(deadline)) = (self.timeout, self.deadline())
            && now >= deadline
        {
            self.timed_out = Some(format!("timed out: waited {} s for {waiting_for}", timeout.as_secs_f64()));
            self.finish(wire);
        }
    }

    /// What it waited for too long, if that ended it.
    pub(super) fn timed_out(&self) -> Result<(), Failure> {
        self.timed_out.clone().map_or(Ok(()), |message| Err(Failure::TimedOut(message)))
    }

    /// Takes an event of the way; gives back those of an attached link.
    ///
    /// # Errors
    /// The link, the session or the connection ended without our doing.
    pub(super) fn on_event<'b>(
        &mut self,
        event: Event<'b>,
        wire: &mut Wire,
    ) -> Result<Option<Event<'b>>, Failure> {
        match event {
            Event::Opened(_) => {
                self.touch(wire.now());
                self.stage = Stage::Beginning;
                match wire.connection.send_begin(&mut wire.out) {
                    Some(_) => Ok(None),
                    None => Err(Failure::Failed("the router allows no session".to_owned())),
                }
            }
            Event::Begun(channel) => {
                self.touch(wire.now());
                self.attach(channel, wire)?;
                Ok(None)
            }
            Event::Attached { link, attach } => {
                self.touch(wire.now());
                let is_refused = match self.role {
                    Role::Sender => attach.target.is_none(),
                    Role::Receiver => attach.source.is_none(),
                };
                // The reason of a refusal comes with the detach that must follow (§2.6.3).
                if !is_refused && self.stage == Stage::Attaching {
                    self.stage = Stage::Attached(link);
                }
                Ok(None)
            }
            Event::Detached { link, cause, .. } => {
                wire.connection.clear_link(link);
                match self.stage {
                    Stage::Attaching => Err(ended("the router refused the link", &cause)),
                    Stage::Opening | Stage::Beginning | Stage::Attached(_) => {
                        Err(ended("the router detached the link", &cause))
                    }
                    Stage::Detaching(..) | Stage::Closing => {
                        self.close(wire);
                        Ok(None)
                    }
                }
            }
            Event::Ended { cause, .. } => self.is_over("the router ended the session", &cause),
            Event::Closed(cause) => self.is_over("the router closed the connection", &cause),
            Event::AttachRequested { link, attach } => {
                let fault = crate::engine::Fault::new(
                    ringmain_codec::Condition::NOT_ALLOWED,
                    "a command-line client takes no links",
                );
                // An answer that doesn't fit the router's frames is no answer: it can tell by itself.
                let _answered = wire.connection.refuse_link(link, &attach, &fault, &mut wire.out);
                Ok(None)
            }
            Event::Sasl(_)
            | Event::Flow { .. }
            | Event::SenderFlow { .. }
            | Event::WindowOpened(_)
            | Event::Transfer(_)
            | Event::Disposition(_) => Ok(Some(event)),
        }
    }

    fn attach(&mut self, channel: Channel, wire: &mut Wire) -> Result<(), Failure> {
        self.stage = Stage::Attaching;
        let address = self.address.as_deref();
        let (source_address, target_address) = match self.role {
            Role::Sender => (None, address),
            Role::Receiver => (address, None),
        };
        let attachment = Attachment {
            source: Some(Source {
                address: source_address,
                outcomes: Symbols::Slice(OUTCOMES),
                ..Source::default()
            }),
            target: Some(Target::Node(TargetNode { address: target_address, ..TargetNode::default() })),
            snd_settle_mode: self.snd_settle_mode,
            rcv_settle_mode: ReceiverSettleMode::First,
            max_message_size: 0,
        };
        let name = format!("ringmain-{:016x}", fastrand::u64(..));
        let attached = wire.connection.send_attach(channel, &name, self.role, &attachment, &mut wire.out);
        attached.map(|_| ()).ok_or_else(|| Failure::Failed("the router's session allows no link".to_owned()))
    }

    fn is_over<'b>(&mut self, what: &str, cause: &Cause<'_>) -> Result<Option<Event<'b>>, Failure> {
        match self.stage {
            Stage::Opening | Stage::Beginning | Stage::Attaching | Stage::Attached(_) => {
                Err(ended(what, cause))
            }
            Stage::Detaching(..) | Stage::Closing => {
                self.stage = Stage::Closing;
                Ok(None)
            }
        }
    }

    /// The work is done, or given up: detach in order that everything sent is known to be taken, then
    /// close.
    pub(super) fn finish(&mut self, wire: &mut Wire) {
        match self.stage {
            Stage::Attached(link) => {
                wire.connection.send_detach(link, true, None, &mut wire.out);
                self.stage = Stage::Detaching(link, wire.now() + DETACH_TIMEOUT);
            }
            Stage::Opening | Stage::Beginning | Stage::Attaching => self.close(wire),
            Stage::Detaching(..) | Stage::Closing => {}
        }
    }

    fn close(&mut self, wire: &mut Wire) {
        self.stage = Stage::Closing;
        wire.connection.send_close(None, wire.now(), &mut wire.out);
    }
}

fn ended(what: &str, cause: &Cause<'_>) -> Failure {
    match cause.describe() {
        Some(reason) => Failure::Failed(format!("{what}: {reason}")),
        None => Failure::Failed(what.to_owned()),
    }
}
