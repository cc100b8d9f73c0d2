//! What a test knows of each delivery: its payload, and what became of it at either end.

use crate::state::State;
use ringmain::base::id::Serial;
use ringmain::engine::LinkRef;

/// How a delivery ended, as one end sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was settled when it was sent.
    Presettled,
    /// This end settled it.
    Ours(Option<State>),
    /// The other end did.
    Theirs(Option<State>),
    /// Its sender gave it up halfway.
    Aborted,
    /// The link, the session or the connection went before it was settled.
    Lost,
}

/// One delivery.
#[derive(Debug)]
pub struct Delivery {
    pub number: usize,
    pub size: usize,
    pub message_format: u32,
    pub presettled: bool,
    /// Its link and number at the receiving end, once its first frame has come.
    pub came_as: Option<(LinkRef, Serial)>,
    /// How much of it has come, and whether that was all.
    pub came: usize,
    pub is_complete: bool,
    /// States that each end has told of it.
    pub told_by_receiver: Vec<State>,
    pub told_by_sender: Vec<State>,
    /// How it ended.
    pub at_sender: Option<Outcome>,
    pub at_receiver: Option<Outcome>,
}

impl Delivery {
    /// Its payload from `from` to `to`.
    pub fn payload(&self, from: usize, to: usize) -> Vec<u8> {
        (from..to).map(|at| byte(self.number, at)).collect()
    }

    /// A part of the payload came.
    pub fn recv(&mut self, part: &[u8]) {
        for (at, &found) in part.iter().enumerate() {
            let at = self.came + at;
            assert_eq!(found, byte(self.number, at), "byte {at} of delivery {}", self.number);
        }
        self.came += part.len();
        assert!(self.came <= self.size, "more than there was of delivery {}", self.number);
    }

    pub fn end_at_sender(&mut self, outcome: Outcome) {
        assert_eq!(self.at_sender, None, "a second end ({outcome:?}) at its sender for {self:?}");
        self.at_sender = Some(outcome);
    }

    pub fn end_at_receiver(&mut self, outcome: Outcome) {
        assert_eq!(self.at_receiver, None, "a second end ({outcome:?}) at its receiver for {self:?}");
        self.at_receiver = Some(outcome);
    }

    /// What must hold once nothing is under way.
    pub fn check(&self) {
        let at_sender = self.at_sender.as_ref().unwrap_or_else(|| panic!("no end at its sender: {self:?}"));
        let crossed = |other: Option<&Outcome>| {
            matches!(other, Some(Outcome::Ours(_) | Outcome::Theirs(_) | Outcome::Lost))
        };
        let other = self.at_receiver.as_ref();
        let agrees = match at_sender {
            Outcome::Presettled => match other {
                Some(Outcome::Presettled) => self.is_complete && self.came == self.size,
                other => matches!(other, None | Some(Outcome::Lost)),
            },
            // The receiver may have settled it meanwhile, or lost the link, or seen the abort of what was
            // settled halfway before it heard of that.
            Outcome::Ours(state) => match other {
                Some(Outcome::Theirs(seen)) => seen == state || seen.is_none(),
                other => matches!(other, None | Some(Outcome::Aborted)) || crossed(other),
            },
            Outcome::Theirs(seen) => matches!(other, Some(Outcome::Ours(state)) if state == seen),
            Outcome::Aborted => matches!(other, None | Some(Outcome::Aborted)) || crossed(other),
            Outcome::Lost => {
                !matches!(other, Some(Outcome::Aborted | Outcome::Presettled)) || self.presettled
            }
        };
        assert!(agrees, "its ends don't agree: {self:?}");
        if matches!(other, Some(Outcome::Ours(_) | Outcome::Theirs(_)))
            && !matches!(at_sender, Outcome::Aborted)
        {
            assert!(self.came <= self.size);
        }
    }
}

fn byte(number: usize, at: usize) -> u8 {
    let mixed = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ (at as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed >> 29) as u8
}
