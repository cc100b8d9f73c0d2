//! What a completion was for: the 64 bits of user data that travel with each operation.

use crate::base::id::Key;

/// The largest index that a connection or a listener may have: 24 bits of user data.
pub(super) const INDEX_MAX: u32 = (1 << 24) - 1;

/// The kinds of operation that the driver has under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// Multishot accept of a listener.
    Accept = 1,
    /// Multishot receive of a connection.
    Receive = 2,
    /// Poll for errors and hang-up only, so that a paused connection learns of a reset.
    Watch = 3,
    /// The one send of a connection.
    Send = 4,
    /// A receive of a connection being closed, whose bytes are thrown away.
    Drain = 5,
    /// Closing the descriptor.
    Close = 6,
    /// The cancellation of another operation. Reported only when it fails, and ignored.
    Cancel = 7,
    /// Multishot poll of the event descriptor that other threads write to.
    Wake = 8,
    /// A message from another shard's ring, which no operation of ours waits for; or, on that ring, the
    /// sending of one that failed, because the shard is gone.
    Doorbell = 9,
    /// The time-out of the ring's waits.
    Alarm = 10,
    /// A receive that doesn't wait, of what the multishot receive holds to be too little.
    Look = 11,
}

/// An operation: its kind, and whose it is.
///
/// ```text
///  63      56 55            32 31                          0
/// +----------+----------------+-----------------------------+
/// |   kind   |     index      |         generation          |
/// +----------+----------------+-----------------------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Op {
    /// What is being done.
    pub kind: Kind,
    /// The connection's key, or the listener's index with generation 0.
    pub key: Key,
}

impl Op {
    /// An operation of the entry `key`, whose index is at most [`INDEX_MAX`].
    pub(super) const fn new(kind: Kind, key: Key) -> Self {
        Self { kind, key }
    }

    /// An operation of the driver as a whole.
    pub(super) const fn global(kind: Kind) -> Self {
        Self { kind, key: Key { index: 0, generation: 0 } }
    }

    /// The user data that stands for the operation.
    pub(super) const fn encode(self) -> u64 {
        debug_assert!(self.key.index <= INDEX_MAX);
        (self.kind as u64) << 56 | (self.key.index as u64) << 32 | self.key.generation as u64
    }

    /// The operation that `user_data` stands for; `None` if no operation of this driver has it.
    pub(super) const fn decode(user_data: u64) -> Option<Self> {
        let kind = match user_data >> 56 {
            1 => Kind::Accept,
            2 => Kind::Receive,
            3 => Kind::Watch,
            4 => Kind::Send,
            5 => Kind::Drain,
            6 => Kind::Close,
            7 => Kind::Cancel,
            8 => Kind::Wake,
            9 => Kind::Doorbell,
            10 => Kind::Alarm,
            11 => Kind::Look,
            _ => return None,
        };
        let index = (user_data >> 32) as u32 & INDEX_MAX;
        Some(Self { kind, key: Key { index, generation: user_data as u32 } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_survives_its_encoding() {
        let kinds = [
            Kind::Accept,
            Kind::Receive,
            Kind::Watch,
            Kind::Send,
            Kind::Drain,
            Kind::Close,
            Kind::Cancel,
            Kind::Wake,
            Kind::Doorbell,
            Kind::Alarm,
            Kind::Look,
        ];
        for kind in kinds {
            for (index, generation) in [(0, 0), (1, u32::MAX), (INDEX_MAX, 1), (INDEX_MAX, u32::MAX)] {
                let op = Op::new(kind, Key { index, generation });
                assert_eq!(Op::decode(op.encode()), Some(op));
            }
        }
        assert_eq!(Op::decode(0), None);
        assert_eq!(Op::decode(u64::MAX), None);
    }
}
