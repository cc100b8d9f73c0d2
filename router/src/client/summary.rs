//! The line in which a client sums up.

use core::fmt;
use core::time::Duration;

use super::options::OutcomeChoice;
use ringmain_codec::DeliveryState;

/// The shortest time over which a rate is shown, in seconds.
const RATE_SECONDS_MIN: f64 = 0.01;

/// What became of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Outcomes {
    pub(super) accepted: u64,
    pub(super) rejected: u64,
    pub(super) released: u64,
    pub(super) modified: u64,
    /// Settled without an outcome, or with one that isn't known.
    pub(super) other: u64,
    /// Settled by the sender.
    pub(super) presettled: u64,
}

impl Outcomes {
    /// Counts the outcome that a receiver gave; `None`: it settled without one.
    pub(super) fn count_state(&mut self, state: Option<&DeliveryState<'_>>) {
        match state {
            Some(DeliveryState::Accepted) => self.accepted += 1,
            Some(DeliveryState::Rejected(_)) => self.rejected += 1,
            Some(DeliveryState::Released) => self.released += 1,
            Some(DeliveryState::Modified(_)) => self.modified += 1,
            Some(
                DeliveryState::Received(_)
                | DeliveryState::Declared(_)
                | DeliveryState::Transactional(_)
                | DeliveryState::Other(_),
            )
            | None => self.other += 1,
        }
    }

    /// Counts the outcome that we give.
    pub(super) fn count_choice(&mut self, choice: OutcomeChoice) {
        match choice {
            OutcomeChoice::Accept => self.accepted += 1,
            OutcomeChoice::Reject => self.rejected += 1,
            OutcomeChoice::Release => self.released += 1,
            OutcomeChoice::Modify => self.modified += 1,
        }
    }

    /// How many messages are settled.
    pub(super) const fn total(&self) -> u64 {
        self.accepted + self.rejected + self.released + self.modified + self.other + self.presettled
    }

    /// Whether any message has another outcome than accepted.
    pub(super) const fn has_refusals(&self) -> bool {
        self.rejected + self.released + self.modified + self.other > 0
    }
}

/// Everything that the line says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    /// `sent` or `received`.
    pub(super) verb: &'static str,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) elapsed: Duration,
    pub(super) outcomes: Outcomes,
}

impl fmt::Display for Summary {
    /// `sent 1000 messages, 200.0 kB in 0.52 s (1923 messages/s, 384.6 kB/s): 990 accepted, 10 released`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.messages == 1 { "" } else { "s" };
        write!(f, "{} {} message{plural}, {}", self.verb, self.messages, Bytes(self.bytes as f64))?;
        let seconds = self.elapsed.as_secs_f64();
        // A few messages are over too soon for a rate to mean anything.
        if seconds >= RATE_SECONDS_MIN {
            write!(
                f,
                " in {seconds:.2} s ({:.0} messages/s, {}/s)",
                self.messages as f64 / seconds,
                Bytes(self.bytes as f64 / seconds)
            )?;
        }
        let outcomes = self.outcomes;
        let mut separator = ": ";
        for (count, name) in [
            (outcomes.accepted, "accepted"),
            (outcomes.rejected, "rejected"),
            (outcomes.released, "released"),
            (outcomes.modified, "modified"),
            (outcomes.other, "settled without an outcome"),
            (outcomes.presettled, "presettled"),
            (self.messages.saturating_sub(outcomes.total()), "not settled"),
        ] {
            if count > 0 {
                write!(f, "{separator}{count} {name}")?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// A number of bytes with the unit that suits it.
struct Bytes(f64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scaled, unit) = match self.0 {
            bytes if bytes < 1e3 => return write!(f, "{bytes:.0} B"),
            bytes if bytes < 1e6 => (bytes / 1e3, "kB"),
            bytes if bytes < 1e9 => (bytes / 1e6, "MB"),
            bytes => (bytes / 1e9, "GB"),
        };
        write!(f, "{scaled:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcomes, Summary};
    use core::time::Duration;

    #[test]
    fn the_line() {
        let summary = Summary {
            verb: "sent",
            messages: 1000,
            bytes: 200_000,
            elapsed: Duration::from_millis(500),
            outcomes: Outcomes { accepted: 980, released: 15, ..Outcomes::default() },
        };
        assert_eq!(
            summary.to_string(),
            "sent 1000 messages, 200.0 kB in 0.50 s (2000 messages/s, 400.0 kB/s): \
             980 accepted, 15 released, 5 not settled"
        );
        let one = Summary {
            verb: "received",
            messages: 1,
            bytes: 10,
            elapsed: Duration::from_micros(10),
            outcomes: Outcomes { presettled: 1, ..Outcomes::default() },
        };
        assert_eq!(one.to_string(), "received 1 message, 10 B: 1 presettled");
    }
}
