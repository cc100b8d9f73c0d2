//! Deliveries (AMQP 1.0 §2.6.12): what is known of an unsettled one, and dispositions in ranges.

use super::event::LinkRef;
use crate::base::id::{Channel, Handle, Key, Serial};
use crate::base::limits::DESCRIPTION_BYTES_MAX;
use ringmain_codec::{Cursor, Decode, DeliveryState, Encode, ReceiverSettleMode, Role, Writer};
use std::rc::Rc;

/// An unsettled delivery, with what the engine's user keeps with it.
#[derive(Clone, Copy, Debug)]
pub struct Unsettled<D> {
    /// Its link within the session.
    pub handle: Handle,
    /// What the engine's user keeps with it.
    pub data: D,
    /// Whether its receiver has given it a terminal state, which is final.
    pub terminal: bool,
    /// When its receiver settles it: as its link says, or as its sender said for this one (§2.7.5).
    pub rcv_settle_mode: ReceiverSettleMode,
    /// What its user noted when it was begun, such as a time; 0 of one that came.
    pub stamp: u16,
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
    /// What its user notes with it while it is unsettled, such as a time.
    pub stamp: u16,
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
    /// The disposition's hint of that name.
    pub batchable: bool,
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
    /// What the engine's user keeps with that, if the link is still there.
    pub user: Option<Key>,
    /// Its number.
    pub delivery_id: Serial,
    /// What was kept with it.
    pub data: D,
    /// Whether it had a terminal state before: no other state counts any more (§2.6.12).
    pub was_terminal: bool,
    /// What was noted when it was begun.
    pub stamp: u16,
}

/// The longest encoded state that is kept for a range; longer ones go at once, each in a frame of its own.
const KEPT_STATE_BYTES_MAX: usize = 1024;

/// A delivery state, kept until it is known for how many deliveries it holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeptState {
    /// No state: only the settlement is told.
    None,
    /// Accepted.
    Accepted,
    /// Released.
    Released,
    /// Any other, encoded.
    Encoded(Rc<[u8]>),
}

impl KeptState {
    /// Keeps `state`; `None` if it is too long for that.
    #[must_use]
    pub fn keep(state: Option<&DeliveryState<'_>>) -> Option<Self> {
        match state {
            None => Some(Self::None),
            Some(DeliveryState::Accepted) => Some(Self::Accepted),
            Some(DeliveryState::Released) => Some(Self::Released),
            Some(
                state @ (DeliveryState::Modified(_)
                | DeliveryState::Received(_)
                | DeliveryState::Rejected(_)
                | DeliveryState::Declared(_)
                | DeliveryState::Transactional(_)
                | DeliveryState::Other(_)),
            ) => {
                let mut room = [0; KEPT_STATE_BYTES_MAX];
                let mut writer = Writer::new(&mut room);
                state.encode(&mut writer).ok()?;
                Some(Self::Encoded(writer.written().into()))
            }
        }
    }

    /// Whether a state of this many encoded bytes is short enough for any peer's frames.
    fn fits_any_frame(&self) -> bool {
        match self {
            Self::None | Self::Accepted | Self::Released => true,
            Self::Encoded(encoded) => encoded.len() <= DESCRIPTION_BYTES_MAX,
        }
    }

    /// The state as it goes into a performative.
    #[must_use]
    pub fn state(&self) -> Option<DeliveryState<'_>> {
        match self {
            Self::None => None,
            Self::Accepted => Some(DeliveryState::Accepted),
            Self::Released => Some(DeliveryState::Released),
            Self::Encoded(encoded) => DeliveryState::decode(&mut Cursor::new(encoded), "state").ok(),
        }
    }
}

/// Dispositions of consecutive deliveries with the same state, not sent yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingDisposition {
    first: Serial,
    last: Serial,
    settled: bool,
    batchable: bool,
    state: KeptState,
}

impl PendingDisposition {
    /// The disposition of one delivery, if it can be kept.
    #[must_use]
    pub fn new(
        delivery_id: Serial,
        settled: bool,
        batchable: bool,
        state: Option<&DeliveryState<'_>>,
    ) -> Option<Self> {
        let state = KeptState::keep(state).filter(KeptState::fits_any_frame)?;
        Some(Self { first: delivery_id, last: delivery_id, settled, batchable, state })
    }

    /// Takes the delivery that follows in, if the same is said of it and its state is one of the plain ones.
    #[inline]
    pub fn extend_by(
        &mut self,
        delivery_id: Serial,
        settled: bool,
        batchable: bool,
        state: Option<&DeliveryState<'_>>,
    ) -> bool {
        let same_state = matches!(
            (&self.state, state),
            (KeptState::None, None)
                | (KeptState::Accepted, Some(DeliveryState::Accepted))
                | (KeptState::Released, Some(DeliveryState::Released))
        );
        let continues = same_state
            && delivery_id == self.last.next()
            && settled == self.settled
            && batchable == self.batchable;
        if continues {
            self.last = delivery_id;
        }
        continues
    }

    /// Takes `next` in, if it says the same of the delivery that follows.
    pub fn extend(&mut self, next: &Self) -> bool {
        let says_the_same =
            next.settled == self.settled && next.batchable == self.batchable && next.state == self.state;
        let continues = next.first == self.last.next() && says_the_same;
        if continues {
            self.last = next.last;
        }
        continues
    }

    /// The performative for the range.
    #[must_use]
    pub fn disposition(&self, role: Role) -> ringmain_codec::Disposition<'_> {
        ringmain_codec::Disposition {
            role,
            first: self.first.0,
            last: (self.last != self.first).then_some(self.last.0),
            settled: self.settled,
            state: self.state.state(),
            batchable: self.batchable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_grows_only_by_the_next_delivery_with_the_same_outcome() {
        let one = |id, state: &DeliveryState<'_>| {
            PendingDisposition::new(Serial(id), true, false, Some(state)).unwrap()
        };
        let mut range = one(u32::MAX, &DeliveryState::Accepted);
        let accepted = Some(&DeliveryState::Accepted);
        for (id, settled, batchable, state) in [
            (1, true, false, accepted),
            (0, false, false, accepted),
            (0, true, true, accepted),
            (0, true, false, Some(&DeliveryState::Released)),
            (0, true, false, None),
        ] {
            assert!(
                !range.extend_by(Serial(id), settled, batchable, state),
                "{id} {settled} {batchable} {state:?}"
            );
        }
        assert!(range.clone().extend_by(Serial(0), true, false, accepted));
        assert!(range.extend(&one(0, &DeliveryState::Accepted)), "the numbers wrap");
        assert!(!range.extend(&one(2, &DeliveryState::Accepted)), "a gap");
        assert!(!range.extend(&one(1, &DeliveryState::Released)));
        let unsettled =
            PendingDisposition::new(Serial(1), false, false, Some(&DeliveryState::Accepted)).unwrap();
        assert!(!range.extend(&unsettled));
        assert_eq!(range.first, Serial(u32::MAX));
        assert_eq!(range.last, Serial(0));
        let failed = |id| {
            let modified = ringmain_codec::Modified { delivery_failed: Some(true), ..Default::default() };
            one(id, &DeliveryState::Modified(modified))
        };
        let mut range = failed(7);
        assert!(range.extend(&failed(8)), "states with data are the same if their data are");
    }
}
