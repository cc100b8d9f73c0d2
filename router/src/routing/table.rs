//! The addresses in use on one shard, and which of its links use them.

use super::address::Address;
use super::snapshot::{AddressSettings, Snapshot};
use crate::base::id::{AddressKey, LinkKey, ShardId};
use crate::base::slab::KeyedSlab;
use core::ops::Range;
use smallvec::SmallVec;
use std::collections::HashMap;

/// An address that at least one link of the shard uses.
#[derive(Debug)]
pub struct LocalAddress {
    /// The address with its class's letter.
    name: Box<str>,
    /// What the configuration says of it.
    pub settings: AddressSettings,
    /// The links that receive from it, in the order in which their turn comes.
    pub receivers: Vec<LinkKey>,
    /// How many of the receivers count as destinations, for which senders get credit.
    pub destinations: usize,
    /// The other shards with receivers, and the links to them.
    pub remotes: SmallVec<[Remote; 1]>,
    /// Whether other shards' receivers matter here: something here sends to it.
    pub wants_remotes: bool,
    /// The links that send to it.
    pub senders: Vec<LinkKey>,
    /// Where the next round of choosing a receiver begins.
    pub turn: usize,
    /// How many of the receivers are the router's own, in this process.
    pub in_process: u32,
    /// What became of deliveries to it.
    pub counters: AddressCounters,
}

/// What is counted of an address, since it came into use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AddressCounters {
    /// Deliveries to it that came from outside.
    pub ingress: u64,
    /// Deliveries (each copy counted) for receivers outside.
    pub egress: u64,
    /// Deliveries for a receiver in this process.
    pub to_container: u64,
    /// Deliveries that came from this process.
    pub from_container: u64,
    /// Those of `ingress` that came from a broker.
    pub ingress_route_container: u64,
    /// Deliveries that left for a broker.
    pub egress_route_container: u64,
}

impl LocalAddress {
    /// The address with its class's letter: its key in the snapshot.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.name
    }

    /// Whether senders here get credit for receivers of other shards.
    #[must_use]
    pub fn has_remote_destinations(&self) -> bool {
        self.remotes.iter().any(|remote| remote.destinations > 0)
    }

    fn is_unused(&self) -> bool {
        self.receivers.is_empty() && self.senders.is_empty() && self.remotes.is_empty()
    }

    /// The address as it was written, without its class's letter.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.name[1..]
    }
}

/// Another shard with receivers of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remote {
    /// The shard.
    pub shard: ShardId,
    /// The link that leads there.
    pub link: LinkKey,
    /// How many receivers it has.
    pub receivers: u32,
    /// How many of them count as destinations.
    pub destinations: u32,
}

/// How a link uses an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// It receives from it.
    Receiver,
    /// It sends to it.
    Sender,
    /// It leads to another shard's receivers.
    Remote,
}

/// All addresses in use on one shard.
#[derive(Debug, Default)]
pub struct AddressTable {
    by_name: HashMap<Box<str>, AddressKey>,
    addresses: KeyedSlab<AddressKey, LocalAddress>,
    /// Where names are put together for look-ups.
    scratch: String,
}

impl AddressTable {
    /// How many addresses are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether none is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The address in use, if it is.
    pub fn find(&mut self, address: Address<'_>) -> Option<AddressKey> {
        self.scratch.clear();
        self.scratch.push(address.class.letter());
        self.scratch.push_str(address.text);
        self.by_name.get(self.scratch.as_str()).copied()
    }

    /// Calls `look` with the key of an address.
    pub fn with_key<R>(&mut self, address: Address<'_>, look: impl FnOnce(&str) -> R) -> R {
        self.scratch.clear();
        self.scratch.push(address.class.letter());
        self.scratch.push_str(address.text);
        look(&self.scratch)
    }

    /// The address in use under that key, if it is.
    #[must_use]
    pub fn find_key(&self, key: &str) -> Option<AddressKey> {
        self.by_name.get(key).copied()
    }

    /// Forgets an address that was put in for a look-up and that nothing uses.
    pub fn forget_unused(&mut self, key: AddressKey) {
        if let Some(address) = self.addresses.get(key).filter(|address| address.is_unused()) {
            self.by_name.remove(&address.name);
            self.addresses.remove(key);
        }
    }

    /// The address in use, which it is from now on.
    pub fn find_or_insert(&mut self, address: Address<'_>, snapshot: &Snapshot) -> AddressKey {
        if let Some(key) = self.find(address) {
            return key;
        }
        let name: Box<str> = self.scratch.as_str().into();
        let key = self.addresses.insert(LocalAddress {
            name: name.clone(),
            settings: snapshot.settings(address),
            receivers: Vec::new(),
            destinations: 0,
            remotes: SmallVec::new(),
            wants_remotes: false,
            senders: Vec::new(),
            turn: 0,
            in_process: 0,
            counters: AddressCounters::default(),
        });
        self.by_name.insert(name, key);
        key
    }

    /// How many places there are, used or not: [`Self::at_places`] looks at one after the other.
    #[must_use]
    pub fn places(&self) -> usize {
        self.addresses.places()
    }

    /// The addresses in use at these places.
    pub fn at_places(&self, places: Range<usize>) -> impl Iterator<Item = &LocalAddress> {
        self.addresses.at_places(places).map(|(_, address)| address)
    }

    /// An address in use.
    #[inline]
    #[must_use]
    pub fn get(&self, key: AddressKey) -> Option<&LocalAddress> {
        self.addresses.get(key)
    }

    /// An address in use.
    #[inline]
    pub fn get_mut(&mut self, key: AddressKey) -> Option<&mut LocalAddress> {
        self.addresses.get_mut(key)
    }

    /// Takes a link off an address, from its place among those that use it in the same way; the last of them
    /// takes that place and is returned. An address that no link uses any more is forgotten.
    pub fn remove_link(&mut self, key: AddressKey, link: LinkKey, how: Use, place: usize) -> Option<LinkKey> {
        let address = self.addresses.get_mut(key)?;
        let list = match how {
            Use::Receiver => &mut address.receivers,
            Use::Sender => &mut address.senders,
            Use::Remote => {
                address.remotes.retain(|remote| remote.link != link);
                self.forget_unused(key);
                return None;
            }
        };
        if list.get(place) == Some(&link) {
            list.swap_remove(place);
        }
        let moved = list.get(place).copied();
        self.forget_unused(key);
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::Key;
    use crate::routing::snapshot::Treatment;

    #[test]
    fn an_address_that_nobody_uses_is_forgotten() {
        let snapshot = Snapshot::new("R", Treatment::Balanced);
        let mut table = AddressTable::default();
        for round in 0..10_000 {
            let text = format!("temp.{round}");
            let key = table.find_or_insert(Address::parse(&text, "R"), &snapshot);
            let link = LinkKey(Key { index: 0, generation: round });
            table.get_mut(key).unwrap().receivers.push(link);
            assert_eq!(table.find(Address::parse(&text, "R")), Some(key));
            table.remove_link(key, link, Use::Receiver, 0);
            assert_eq!(table.find(Address::parse(&text, "R")), None);
        }
        assert!(table.is_empty());
        assert!(table.by_name.is_empty());
    }
}
