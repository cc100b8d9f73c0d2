//! The addresses in use on one shard, and which of its links use them.

use super::address::Address;
use super::snapshot::{AddressSettings, Snapshot};
use crate::base::id::{AddressKey, LinkKey};
use crate::base::slab::KeyedSlab;
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
    /// The links that send to it.
    pub senders: Vec<LinkKey>,
    /// Where the next round of choosing a receiver begins.
    pub turn: usize,
}

impl LocalAddress {
    /// The address as it was written, without its class's letter.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.name[1..]
    }
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
            senders: Vec::new(),
            turn: 0,
        });
        self.by_name.insert(name, key);
        key
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

    /// Takes a link off an address. An address that no link uses any more is forgotten.
    pub fn remove_link(&mut self, key: AddressKey, link: LinkKey) {
        let Some(address) = self.addresses.get_mut(key) else { return };
        address.receivers.retain(|&receiver| receiver != link);
        if let Some(place) = address.senders.iter().position(|&sender| sender == link) {
            address.senders.swap_remove(place);
        }
        if address.receivers.is_empty() && address.senders.is_empty() {
            self.by_name.remove(&address.name);
            self.addresses.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::Key;
    use crate::routing::snapshot::Treatment;

    #[test]
    fn an_address_that_nobody_uses_is_forgotten() {
        let snapshot = Snapshot::new("R".into(), Treatment::Balanced);
        let mut table = AddressTable::default();
        for round in 0..10_000 {
            let text = format!("temp.{round}");
            let key = table.find_or_insert(Address::parse(&text, "R"), &snapshot);
            let link = LinkKey(Key { index: 0, generation: round });
            table.get_mut(key).unwrap().receivers.push(link);
            assert_eq!(table.find(Address::parse(&text, "R")), Some(key));
            table.remove_link(key, link);
            assert_eq!(table.find(Address::parse(&text, "R")), None);
        }
        assert!(table.is_empty());
        assert!(table.by_name.is_empty());
    }
}
