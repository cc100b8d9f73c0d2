//! A connection's way through the SASL layer (AMQP 1.0 §5.3.2): between the protocol headers.

use super::connection::{Connection, Stage, Step};
use super::event::{Cause, Event};
use super::sasl::{self, Answer, Duty, Exchange, Identity, Layer, SaslState, SaslStep, Transport};
use super::settings::Side;
use super::violation::{Fault, Violation};
use super::write;
use crate::base::buffer::Output;
use crate::base::limits::SASL_EARLY_BYTES_MAX;
use crate::base::time::Instant;
use ringmain_codec::{Condition, FrameKind, ProtocolHeader, split_frame};

/// What a connection has only until its peer is known.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    layer: Layer,
    transport: Transport,
    /// What came while an exchange was at work.
    early: Vec<u8>,
    /// Why the peer is refused, and when it may know.
    refusal: Option<(Fault, Option<Instant>)>,
}

impl Handshake {
    /// What is known of the way that the bytes take.
    pub(super) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// When the peer may know that it is refused.
    pub(super) fn refused_at(&self) -> Option<Instant> {
        self.refusal.as_ref().and_then(|(_, at)| *at)
    }
}

impl<D: Copy + Default> Connection<D> {
    /// Tells what is known of the way that the bytes take, before the first of them is received. Until then it counts as
    /// plain.
    pub fn set_transport(&mut self, transport: Transport) {
        self.handshake.transport = transport;
    }

    /// What is known of the way that the bytes take.
    #[must_use]
    pub fn transport(&self) -> &Transport {
        &self.handshake.transport
    }

    /// Who the peers are to each other; `None`: they haven't gone through the SASL layer.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Starts the SASL layer behind its protocol header.
    pub(super) fn start_sasl(&mut self, out: &mut Output) -> Result<(), Fault> {
        let Handshake { layer, transport, .. } = &mut *self.handshake;
        self.stage = Stage::Sasl(layer.start(self.side, &self.settings, transport, out)?);
        Ok(())
    }

    pub(super) fn recv_sasl<'b>(
        &mut self,
        state: SaslState,
        input: &'b [u8],
        now: Instant,
        out: &mut Output,
    ) -> Step<'b> {
        match state {
            SaslState::Working => return self.recv_early(input, now),
            // What it says can't help it any more.
            SaslState::Refusing => return Ok((!input.is_empty()).then_some((None, &[]))),
            SaslState::ExpectInit
            | SaslState::ExpectResponse
            | SaslState::ExpectMechanisms
            | SaslState::ExpectOutcome => {}
        }
        // The layer has no close: what is wrong in it ends the connection without a word.
        let (frame, rest) = match split_frame(input, self.settings.sasl_frame_max) {
            Ok(None) => return Ok(None),
            Ok(Some(split)) => split,
            Err(malformed) => return Ok(Some((Some(self.fail_silently(malformed.into(), now)), &[]))),
        };
        if frame.kind != FrameKind::Sasl {
            let fault = Fault::new(Condition::FRAMING_ERROR, "an AMQP frame came inside the SASL layer");
            return Ok(Some((Some(self.fail_silently(fault, now)), &[])));
        }
        let Handshake { layer, transport, .. } = &mut *self.handshake;
        match layer.recv(state, frame.body, &self.settings, transport, out) {
            Ok(step) => {
                let event = self.take_sasl_step(step, now, out);
                // Behind a failure nothing is understood.
                let rest = if self.stage == Stage::Discard { &[] } else { rest };
                Ok(Some((event, rest)))
            }
            Err(Violation::Connection(fault) | Violation::Session(_, fault) | Violation::Link(_, fault)) => {
                Ok(Some((Some(self.fail_silently(fault, now)), &[])))
            }
        }
    }

    /// Keeps what comes while an exchange is at work: the peer may send its next protocol header and its open before
    /// it knows the outcome.
    fn recv_early<'b>(&mut self, input: &'b [u8], now: Instant) -> Step<'b> {
        if input.is_empty() {
            return Ok(None);
        }
        let early = &mut self.handshake.early;
        if early.len() + input.len() > SASL_EARLY_BYTES_MAX {
            let fault = Fault::new(Condition::FRAMING_ERROR, "too much came before the SASL outcome");
            return Ok(Some((Some(self.fail_silently(fault, now)), &[])));
        }
        early.extend_from_slice(input);
        Ok(Some((None, &[])))
    }

    /// Takes an exchange back that has done its [work](Duty::Work). Afterwards give what
    /// [`take_early`](Self::take_early) returns to [`recv`](Self::recv).
    pub fn recv_worked(
        &mut self,
        exchange: Box<dyn Exchange>,
        answer: Answer,
        now: Instant,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        if self.stage != Stage::Sasl(SaslState::Working) {
            return None;
        }
        let hostname = self.settings.hostname.as_deref();
        let step = self.handshake.layer.recv_worked(self.side, exchange, answer, hostname, out);
        self.take_sasl_step(step, now, out)
    }

    /// What came while an exchange was at work.
    #[must_use]
    pub fn take_early(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.handshake.early)
    }

    /// Lets a peer know from `at` on that it is [refused](Duty::Refuse). Until the user has called it the peer knows
    /// nothing, unless the time for its open is up.
    pub fn refuse_at(&mut self, at: Instant) {
        if let Some((_, when)) = &mut self.handshake.refusal {
            *when = Some(at);
        }
    }

    /// Tells the peer that it is refused, if it may know by now.
    pub(super) fn refuse_in_time(&mut self, now: Instant, out: &mut Output) -> Option<Event<'static>> {
        let (fault, _) = self.handshake.refusal.take_if(|(_, at)| at.is_some_and(|at| at <= now))?;
        sasl::send_refusal(out);
        Some(self.fail_silently(fault, now))
    }

    fn take_sasl_step(&mut self, step: SaslStep, now: Instant, out: &mut Output) -> Option<Event<'static>> {
        match step {
            SaslStep::Continue(state) => {
                self.stage = Stage::Sasl(state);
                None
            }
            SaslStep::Duty(state, duty) => {
                self.stage = Stage::Sasl(state);
                if let Duty::Refuse { mechanism, reason, .. } = &duty {
                    self.handshake.refusal = Some((refusal(mechanism, reason), None));
                }
                Some(Event::Sasl(duty))
            }
            SaslStep::Done(identity) => {
                self.identity = Some(identity);
                self.handshake.layer = Layer::default();
                self.stage = Stage::HeaderAfterSasl;
                if self.side == Side::Initiator {
                    write::bytes(out, &ProtocolHeader::AMQP.to_bytes());
                    self.send_open(out);
                }
                None
            }
            SaslStep::Failed(fault) => Some(self.fail_silently(fault, now)),
        }
    }

    pub(super) fn fail_silently(&mut self, fault: Fault, now: Instant) -> Event<'static> {
        self.end_silently(now);
        Event::Closed(Cause::Ours(fault))
    }
}

/// What the log says when the connection of a refused peer closes.
fn refusal(mechanism: &str, reason: &str) -> Fault {
    let description = if mechanism.is_empty() {
        reason.to_owned()
    } else {
        // The reason is logged where it is known who it was.
        format!("Authentication failed [mech={mechanism}]")
    };
    Fault::describe(Condition::UNAUTHORIZED_ACCESS, description)
}
