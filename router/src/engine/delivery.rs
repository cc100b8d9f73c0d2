//! Deliveries (AMQP 1.0 §2.6.12): what is known of an unsettled one, and dispositions in ranges.

use super::event::LinkRef;
use crate::base::id::{Channel, Handle, Serial};
use ringmain_codec::{DeliveryState, Role};

/// An unsettled delivery, with what the engine's user keeps with it.
#[derive(Clone, Copy, Debug)]
pub struct Unsettled<D> {
    /// Its link within the session.
    pub handle: Handle,
    /// What the engine's user keeps with it.
    pub data: D,
}

/// A delivery that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct NewDelivery<D> {
    /// The message-format of the message.
    pub message_format: u32,
    /// Whether it goes settled.
    pub settled: bool,
    /// Its tag, unique among the unsettled deliveries of the link.
    pub tag: [u8; 8],
    /// What is kept with it while it is unsettled.
    pub data: D,
}

/// What became of a payload that was to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// How many of its bytes have gone.
    pub consumed: usize,
    /// Whether its last frame (which may be empty) has gone too. If not, the session's window is closed
    /// or the output is full, and the rest must be offered again later.
    pub complete: bool,
}

/// A disposition of the peer (§2.7.6), and how far its deliveries were taken.
#[derive(Clone, Copy, Debug)]
pub struct Disposed<'b> {
    /// The session.
    pub channel: Channel,
    /// The *peer's* role: `Receiver` speaks of what we sent, `Sender` of what it sent.
    pub role: Role,
    /// Whether the peer has settled them.
    pub settled: bool,
    /// Their state; `None` changes nothing.
    pub state: Option<DeliveryState<'b>>,
    /// The next number to look at; `None` once all were looked at.
    pub(super) next: Option<Serial>,
    pub(super) last: Serial,
}

/// One delivery that a disposition is about.
#[derive(Clone, Copy, Debug)]
pub struct DisposedDelivery<D> {
    /// Its link.
    pub link: LinkRef,
    /// Its number.
    pub delivery_id: Serial,
    /// What was kept with it.
    pub data: D,
}

/// A delivery state without data, which can be sent for many deliveries at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlainState {
    /// No state: only the settlement is told.
    None,
    /// Accepted.
    Accepted,
    /// Released.
    Released,
    /// Modified with nothing but delivery-failed.
    Failed,
}

impl PlainState {
    /// The plain form of `state`, if it has no data.
    #[must_use]
    pub fn of(state: Option<&DeliveryState<'_>>) -> Option<Self> {
        match state {
            None => Some(Self::None),
            Some(DeliveryState::Accepted) => Some(Self::Accepted),
            Some(DeliveryState::Released) => Some(Self::Released),
            Some(DeliveryState::Modified(modified))
                if modified.delivery_failed == Some(true)
                    && modified.undeliverable_here.is_none()
                    && modified.message_annotations.is_none() =>
            {
                Some(Self::Failed)
            }
            Some(
                DeliveryState::Modified(_)
                | DeliveryState::Received(_)
                | DeliveryState::Rejected(_)
                | DeliveryState::Declared(_)
                | DeliveryState::Transactional(_)
                | DeliveryState::Other(_),
            ) => None,
        }
    }

    /// The state as it goes into a performative.
    #[must_use]
    pub fn state(self) -> Option<DeliveryState<'static>> {
        match self {
            Self::None => None,
            Self::Accepted => Some(DeliveryState::Accepted),
            Self::Released => Some(DeliveryState::Released),
            Self::Failed => Some(DeliveryState::Modified(ringmain_codec::Modified {
                delivery_failed: Some(true),
                undeliverable_here: None,
                message_annotations: None,
            })),
        }
    }
}

/// Dispositions of consecutive deliveries with the same plain state, not sent yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingDisposition {
    first: Serial,
    last: Serial,
    settled: bool,
    state: PlainState,
}

impl PendingDisposition {
    /// The disposition of one delivery.
    #[must_use]
    pub fn new(delivery_id: Serial, settled: bool, state: PlainState) -> Self {
        Self { first: delivery_id, last: delivery_id, settled, state }
    }

    /// Takes `next` in, if it says the same of the delivery that follows.
    pub fn extend(&mut self, next: &Self) -> bool {
        let continues =
            next.first == self.last.next() && next.settled == self.settled && next.state == self.state;
        if continues {
            self.last = next.last;
        }
        continues
    }

    /// The performative for the range.
    #[must_use]
    pub fn disposition(&self, role: Role) -> ringmain_codec::Disposition<'static> {
        ringmain_codec::Disposition {
            role,
            first: self.first.0,
            last: (self.last != self.first).then_some(self.last.0),
            settled: self.settled,
            state: self.state.state(),
            batchable: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_grows_only_by_the_next_delivery_with_the_same_outcome() {
        let accepted = |id| PendingDisposition::new(Serial(id), true, PlainState::Accepted);
        let mut range = accepted(u32::MAX);
        assert!(range.extend(&accepted(0)), "the numbers wrap");
        assert!(!range.extend(&accepted(2)), "a gap");
        assert!(!range.extend(&PendingDisposition::new(Serial(1), true, PlainState::Released)));
        assert!(!range.extend(&PendingDisposition::new(Serial(1), false, PlainState::Accepted)));
        assert_eq!(range.first, Serial(u32::MAX));
        assert_eq!(range.last, Serial(0));
    }
}
