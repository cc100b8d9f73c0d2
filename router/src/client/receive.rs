//! `ringmain receive`.

use core::time::Duration;
use std::io::{self, Write as _};

use super::endpoint::Endpoint;
use super::failure::{Failure, Status};
use super::options::{OutcomeChoice, Print, ReceiveOptions};
use super::summary::{Outcomes, Summary};
use super::wire::{User, Wire};
use super::{conclude, show};
use crate::base::time::Instant;
use crate::engine::{Arrived, Event, LinkRef};
use ringmain_codec::{DeliveryState, Modified, Rejected, Role, SenderSettleMode};

/// The longest message that is kept in order to be printed.
const PRINTED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Receives messages as the options say, prints them and the summary, and tells how the process is to end.
#[must_use]
pub fn receive(options: &ReceiveOptions) -> Status {
    let mut receiver = Receiver::new(options);
    let result = Wire::connect(&options.target, options.timeout.0, &options.sasl, &options.tls)
        .and_then(|mut wire| wire.run(&mut receiver));
    let result = result.and_then(|()| receiver.endpoint.timed_out());
    let is_enough = options.count.is_none_or(|count| receiver.received >= count);
    let result = match result {
        // Without a count the time-out is the end that was asked for.
        Err(Failure::TimedOut(_)) if options.count.is_none() && receiver.was_attached => Ok(()),
        other => other,
    };
    let finished = if is_enough { Status::Done } else { Status::Unfinished };
    let summary = (!options.quiet).then(|| receiver.summary());
    conclude(result, finished, summary.as_ref(), None)
}

struct Receiver<'o> {
    options: &'o ReceiveOptions,
    endpoint: Endpoint,
    was_attached: bool,
    received: u64,
    bytes: u64,
    outcomes: Outcomes,
    /// The delivery under way: what is kept of it for printing, and its length.
    message: Vec<u8>,
    length: u64,
    first: Option<Instant>,
    last: Instant,
    printed: io::BufWriter<io::Stdout>,
}

impl<'o> Receiver<'o> {
    fn new(options: &'o ReceiveOptions) -> Self {
        let mode = if options.presettled { SenderSettleMode::Settled } else { SenderSettleMode::Mixed };
        Self {
            options,
            endpoint: Endpoint::new(Role::Receiver, Some(&options.target.address), mode, options.timeout.0),
            was_attached: false,
            received: 0,
            bytes: 0,
            outcomes: Outcomes::default(),
            message: Vec::new(),
            length: 0,
            first: None,
            last: Instant(0),
            printed: io::BufWriter::new(io::stdout()),
        }
    }

    fn summary(&self) -> Summary {
        Summary {
            verb: "received",
            messages: self.received,
            bytes: self.bytes,
            elapsed: self.first.map_or(Duration::ZERO, |first| self.last.since(first)),
            outcomes: self.outcomes,
        }
    }

    /// How many messages are still wanted.
    fn wanted(&self) -> u64 {
        self.options.count.map_or(u64::MAX, |count| count - self.received)
    }

    /// Grants credit when half of it is used up, but never for more messages than are wanted.
    fn grant(&self, link: LinkRef, wire: &mut Wire) {
        let Some(state) = wire.connection.link(link) else { return };
        // A delivery under way has used its credit, and isn't counted as received yet.
        let under_way = u64::from(state.receiving.is_some());
        let wanted = u32::try_from(self.wanted().saturating_sub(under_way)).unwrap_or(u32::MAX);
        let credit = self.options.credit.min(wanted);
        if state.credit < credit && state.credit <= self.options.credit / 2 {
            wire.connection.send_credit(link, credit, false, &mut wire.out);
        }
    }

    fn recv_transfer(&mut self, arrived: &Arrived<'_>, wire: &mut Wire) -> Result<(), Failure> {
        let now = wire.now();
        self.endpoint.touch(now);
        // Beyond what was asked for: the rest is left to whoever comes next.
        if self.endpoint.link().is_none() || self.wanted() == 0 {
            return Ok(());
        }
        self.first.get_or_insert(now);
        self.length += arrived.payload.len() as u64;
        if self.options.print != Print::None && self.length <= PRINTED_BYTES_MAX as u64 {
            self.message.extend_from_slice(arrived.payload);
        }
        if arrived.more {
            return Ok(());
        }
        if !arrived.aborted {
            self.received += 1;
            self.bytes += self.length;
            self.last = now;
            self.print(arrived)
                .map_err(|error| Failure::Failed(format!("can't write to standard output: {error}")))?;
            self.settle(arrived, wire);
        }
        self.message.clear();
        self.length = 0;
        Ok(())
    }

    fn settle(&mut self, arrived: &Arrived<'_>, wire: &mut Wire) {
        if arrived.settled {
            self.outcomes.presettled += 1;
            return;
        }
        self.outcomes.count_choice(self.options.outcome);
        let state = match self.options.outcome {
            OutcomeChoice::Accept => DeliveryState::Accepted,
            OutcomeChoice::Reject => DeliveryState::Rejected(Rejected::default()),
            OutcomeChoice::Release => DeliveryState::Released,
            OutcomeChoice::Modify => {
                DeliveryState::Modified(Modified { delivery_failed: Some(true), ..Modified::default() })
            }
        };
        let id = arrived.delivery_id;
        wire.connection.dispose_incoming(arrived.link, id, true, Some(&state), &mut wire.out);
    }

    fn print(&mut self, arrived: &Arrived<'_>) -> io::Result<()> {
        let is_kept = self.length <= PRINTED_BYTES_MAX as u64;
        match self.options.print {
            Print::None => Ok(()),
            Print::Body if is_kept => writeln!(self.printed, "{}", show::body(&self.message)),
            Print::Body => writeln!(self.printed, "({} bytes, too long to be printed)", self.length),
            Print::Full => {
                let settled = if arrived.settled { ", presettled" } else { "" };
                writeln!(self.printed, "message {}: {} bytes{settled}", self.received, self.length)?;
                if is_kept {
                    writeln!(self.printed, "{}", show::full(&self.message))
                } else {
                    writeln!(self.printed, "  (too long to be printed)")
                }
            }
        }
    }
}

impl User for Receiver<'_> {
    fn on_event(&mut self, event: Event<'_>, wire: &mut Wire) -> Result<(), Failure> {
        match self.endpoint.on_event(event, wire)? {
            Some(Event::Transfer(arrived)) => self.recv_transfer(&arrived, wire),
            Some(Event::Disposition(mut disposed)) => {
                // The sender settles what we have settled already; it is taken note of and no more.
                while wire.connection.next_disposed(&mut disposed).is_some() {}
                Ok(())
            }
            Some(
                Event::Flow { .. }
                | Event::SenderFlow { .. }
                | Event::WindowOpened(_)
                | Event::Sasl(_)
                | Event::Opened(_)
                | Event::Begun(_)
                | Event::AttachRequested { .. }
                | Event::Attached { .. }
                | Event::Detached { .. }
                | Event::Ended { .. }
                | Event::Closed(_),
            )
            | None => Ok(()),
        }
    }

    fn on_turn(&mut self, wire: &mut Wire) -> Result<bool, Failure> {
        self.printed
            .flush()
            .map_err(|error| Failure::Failed(format!("can't write to standard output: {error}")))?;
        if let Some(link) = self.endpoint.link() {
            self.was_attached = true;
            if self.wanted() == 0 {
                self.endpoint.finish(wire);
            } else {
                self.grant(link, wire);
            }
        }
        self.endpoint.turn(wire, "a message");
        Ok(false)
    }

    fn on_interrupt(&mut self, wire: &mut Wire) {
        self.endpoint.finish(wire);
    }

    fn next_turn(&self) -> Option<Instant> {
        self.endpoint.deadline()
    }
}
