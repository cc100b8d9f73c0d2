//! `ringmain send`.

use core::time::Duration;

use super::conclude;
use super::endpoint::Endpoint;
use super::failure::{Failure, Status};
use super::message::Payload;
use super::options::SendOptions;
use super::summary::{Outcomes, Summary};
use super::wire::{User, Wire};
use crate::base::time::Instant;
use crate::engine::{Disposed, Event, LinkRef, NewDelivery};
use ringmain_codec::{DeliveryState, Role, SenderSettleMode};

/// Sends messages as the options say, prints the summary, and tells how the process is to end.
#[must_use]
pub fn send(options: &SendOptions) -> Status {
    let mut sender = Sender::new(options);
    let result = Wire::connect(&options.target, options.timeout.0, &options.sasl, &options.tls)
        .and_then(|mut wire| wire.run(&mut sender));
    let result = result.and_then(|()| sender.endpoint.timed_out());
    let finished = if !sender.is_done() {
        Status::Unfinished
    } else if sender.outcomes.has_refusals() {
        Status::NotAccepted
    } else {
        Status::Done
    };
    let summary = (!options.quiet).then(|| sender.summary());
    conclude(result, finished, summary.as_ref(), sender.rejection.as_deref())
}

struct Sender<'o> {
    options: &'o SendOptions,
    payload: Payload,
    endpoint: Endpoint,
    /// Deliveries that have begun.
    begun: u64,
    /// Deliveries that have gone completely.
    sent: u64,
    /// How much of the delivery under way has gone.
    offset: Option<u64>,
    outcomes: Outcomes,
    /// Why the first message was rejected.
    rejection: Option<String>,
    /// When the first message went, and the last thing happened.
    first: Option<Instant>,
    last: Instant,
    /// The receiver asked for our flow state.
    is_flow_due: bool,
}

impl<'o> Sender<'o> {
    fn new(options: &'o SendOptions) -> Self {
        let address = (!options.anonymous).then_some(options.target.address.as_str());
        let mode = if options.presettled { SenderSettleMode::Settled } else { SenderSettleMode::Unsettled };
        Self {
            options,
            payload: Payload::new(options),
            endpoint: Endpoint::new(Role::Sender, address, mode, options.timeout.0),
            begun: 0,
            sent: 0,
            offset: None,
            outcomes: Outcomes::default(),
            rejection: None,
            first: None,
            last: Instant(0),
            is_flow_due: false,
        }
    }

    /// Whether every message has gone and its outcome is known.
    fn is_done(&self) -> bool {
        self.sent == self.options.count && self.outcomes.total() == self.options.count
    }

    fn summary(&self) -> Summary {
        Summary {
            verb: "sent",
            messages: self.sent,
            bytes: self.sent * self.payload.len(),
            elapsed: self.first.map_or(Duration::ZERO, |first| self.last.since(first)),
            outcomes: self.outcomes,
        }
    }

    /// When the next message may begin, as far as `--rate` is concerned.
    fn due(&self) -> Option<Instant> {
        let (rate, first) = (self.options.rate?, self.first?);
        Some(first + Duration::from_secs_f64(self.begun as f64 / f64::from(rate)))
    }

    /// Sends as much as credit, window, rate and backlog allow. True if it was the backlog that stopped it.
    fn send(&mut self, link: LinkRef, wire: &mut Wire) -> bool {
        while wire.has_room() {
            if self.offset.is_none() && !self.begin(link, wire) {
                return false;
            }
            let Some(offset) = self.offset else { return false };
            let (chunk, more) = self.payload.chunk(offset);
            let sent = wire.connection.send_payload(link, chunk, more, &mut wire.out);
            let offset = offset + sent.consumed as u64;
            if sent.consumed > 0 {
                self.endpoint.touch(wire.now());
            }
            if !sent.complete {
                self.offset = Some(offset);
                return false;
            }
            if more {
                self.offset = Some(offset);
            } else {
                self.offset = None;
                self.sent += 1;
                self.last = wire.now();
                self.endpoint.touch(self.last);
                self.outcomes.presettled += u64::from(self.options.presettled);
            }
        }
        true
    }

    /// Begins the next delivery, if it may.
    fn begin(&mut self, link: LinkRef, wire: &mut Wire) -> bool {
        let now = wire.now();
        if self.begun == self.options.count || self.due().is_some_and(|due| due > now) {
            return false;
        }
        let Some(credit) = wire.connection.take_credit(link) else { return false };
        let delivery = NewDelivery {
            message_format: 0,
            settled: self.options.presettled,
            tag: self.begun.to_be_bytes(),
            data: (),
            stamp: 0,
        };
        if wire.connection.begin_delivery(link, credit, delivery).is_none() {
            return false;
        }
        self.begun += 1;
        self.offset = Some(0);
        self.first.get_or_insert(now);
        true
    }

    /// Takes the outcomes that a disposition tells; a receiver that hasn't settled is settled for.
    fn recv_disposition(&mut self, mut disposed: Disposed<'_>, wire: &mut Wire) {
        let state = disposed.state;
        let is_outcome = disposed.settled || state.as_ref().is_some_and(DeliveryState::is_terminal);
        while let Some(delivery) = wire.connection.next_disposed(&mut disposed) {
            if !is_outcome {
                continue;
            }
            if !disposed.settled {
                let (channel, id) = (delivery.link.channel, delivery.delivery_id);
                wire.connection.dispose_outgoing(channel, id, true, None, &mut wire.out);
            }
            self.outcomes.count_state(state.as_ref());
            if let Some(DeliveryState::Rejected(rejected)) = &state
                && self.rejection.is_none()
            {
                self.rejection = Some(match &rejected.error {
                    Some(error) => {
                        format!("{}: {}", error.condition, error.description.unwrap_or("no description"))
                    }
                    None => "no reason given".to_owned(),
                });
            }
        }
        self.last = wire.now();
        self.endpoint.touch(self.last);
    }
}

impl User for Sender<'_> {
    fn on_event(&mut self, event: Event<'_>, wire: &mut Wire) -> Result<(), Failure> {
        match self.endpoint.on_event(event, wire)? {
            Some(Event::Disposition(disposed)) => self.recv_disposition(disposed, wire),
            Some(Event::Flow { .. }) => self.is_flow_due = true,
            // The window is looked at on every turn.
            Some(Event::WindowOpened(_)) | None => {}
            Some(
                Event::SenderFlow { .. }
                | Event::Transfer(_)
                | Event::Sasl(_)
                | Event::Opened(_)
                | Event::Begun(_)
                | Event::AttachRequested { .. }
                | Event::Attached { .. }
                | Event::Detached { .. }
                | Event::Ended { .. }
                | Event::Closed(_),
            ) => {}
        }
        Ok(())
    }

    fn on_turn(&mut self, wire: &mut Wire) -> Result<bool, Failure> {
        let mut wants_room = false;
        if let Some(link) = self.endpoint.link() {
            wants_room = self.send(link, wire);
            if core::mem::take(&mut self.is_flow_due) {
                let waiting = u32::try_from(self.options.count - self.begun).unwrap_or(u32::MAX);
                wire.connection.answer_flow(link, waiting, &mut wire.out);
            }
            if self.is_done() {
                self.endpoint.finish(wire);
            }
        }
        let waiting_for = if self.sent < self.options.count {
            "credit: nobody receives from the address, or not fast enough"
        } else {
            "the outcomes of messages"
        };
        self.endpoint.turn(wire, waiting_for);
        Ok(wants_room)
    }

    fn on_interrupt(&mut self, wire: &mut Wire) {
        self.endpoint.finish(wire);
    }

    fn next_turn(&self) -> Option<Instant> {
        let is_waiting = self.endpoint.link().is_some() && self.begun < self.options.count;
        let due = if is_waiting { self.due() } else { None };
        [due, self.endpoint.deadline()].into_iter().flatten().min()
    }
}
