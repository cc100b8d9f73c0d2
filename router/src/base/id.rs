//! Newtypes for the numbers of AMQP and of the router, so that swapping two of them doesn't compile.

use core::cmp::Ordering;
use core::fmt;

/// The index and the generation of an entry in a [`KeyedSlab`](super::slab::KeyedSlab).
///
/// The generation tells an entry from an earlier one in the same place, so that a late answer for
/// something that has gone is recognised and dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The place in the slab.
    pub index: u32,
    /// How often the place had been used before.
    pub generation: u32,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub Key);

        impl From<Key> for $name {
            fn from(key: Key) -> Self {
                Self(key)
            }
        }

        impl From<$name> for Key {
            fn from(key: $name) -> Self {
                key.0
            }
        }
    };
}

key! {
    /// A connection of one shard.
    ConnectionKey
}
key! {
    /// An address in a shard's own table.
    AddressKey
}
key! {
    /// A link as the shard sees it: an attached link of one of its connections.
    LinkKey
}
key! {
    /// An auto-link on one of the connections that it is for.
    AutoLinkKey
}
key! {
    /// A delivery that has more than one outgoing copy (multicast).
    FanOutKey
}

/// A shard: a thread with its ring, its buffers and its connections.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ShardId(pub u16);

/// A listener: those of the configuration in its order, then those that management makes. No number is given
/// twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ListenerId(pub u32);

/// A session of a connection: the number of the channel on which *we* send its frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Channel(pub u16);

/// A link of a session: the handle that *we* assigned to it (AMQP 1.0 §2.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Handle(pub u32);

/// A number in serial arithmetic (RFC 1982, 32 bits): delivery-ids, transfer-ids, delivery counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Serial(pub u32);

impl Serial {
    /// The number `count` later.
    #[must_use]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// The following number.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// How far this number lies after `earlier`; negative if it lies before it.
    ///
    /// Numbers exactly 2^31 apart count as before (RFC 1982 leaves them undefined).
    #[must_use]
    pub const fn distance_from(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }
}

impl PartialOrd for Serial {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.distance_from(*other).cmp(&0))
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Serial;

    /// RFC 1982 §3.2: the order of two numbers doesn't change where they wrap.
    #[test]
    fn serial_order_survives_the_wrap() {
        let before = Serial(u32::MAX);
        assert!(before < before.next());
        assert_eq!(before.next(), Serial(0));
        assert_eq!(Serial(2).distance_from(Serial(u32::MAX)), 3);
        assert_eq!(Serial(u32::MAX).distance_from(Serial(2)), -3);
    }
}
