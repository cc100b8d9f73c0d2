//! A slab whose keys carry a generation.

use super::id::Key;
use core::marker::PhantomData;
use core::ops::Range;

/// Entries in places that are used again, each found by a key that is never used again.
///
/// (A generation has 32 bits: a place would have to be used 2^32 times while somebody still keeps
/// its first key.)
#[derive(Debug)]
pub struct KeyedSlab<K, T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    used: usize,
    key: PhantomData<K>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<K, T> Default for KeyedSlab<K, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new(), used: 0, key: PhantomData }
    }
}

impl<K: From<Key> + Into<Key> + Copy, T> KeyedSlab<K, T> {
    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Adds `value` and returns its key.
    pub fn insert(&mut self, value: T) -> K {
        self.insert_with(|_| value)
    }

    /// Adds what `make` returns, which is told its key.
    pub fn insert_with(&mut self, make: impl FnOnce(K) -> T) -> K {
        let index = self.free.pop().unwrap_or_else(|| {
            let index = u32::try_from(self.entries.len()).expect("a slab holds fewer than 2^32 entries");
            self.entries.push(Entry { generation: 0, value: None });
            index
        });
        let entry = &mut self.entries[index as usize];
        let key = K::from(Key { index, generation: entry.generation });
        entry.value = Some(make(key));
        self.used += 1;
        key
    }

    /// The entry of `key`, if it is still there.
    #[must_use]
    pub fn get(&self, key: K) -> Option<&T> {
        let key: Key = key.into();
        let entry = self.entries.get(key.index as usize)?;
        if entry.generation == key.generation { entry.value.as_ref() } else { None }
    }

    /// The entry of `key`, if it is still there.
    pub fn get_mut(&mut self, key: K) -> Option<&mut T> {
        let key: Key = key.into();
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation == key.generation { entry.value.as_mut() } else { None }
    }

    /// Takes the entry of `key` out; from now on the key finds nothing.
    pub fn remove(&mut self, key: K) -> Option<T> {
        let key: Key = key.into();
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(key.index);
        self.used -= 1;
        Some(value)
    }

    /// All entries with their keys, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let index = u32::try_from(index).ok()?;
            entry.value.as_ref().map(|value| (K::from(Key { index, generation: entry.generation }), value))
        })
    }

    /// How many places there are, used or not: [`Self::at_places`] looks at one after the other.
    #[must_use]
    pub fn places(&self) -> usize {
        self.entries.len()
    }

    /// The entries at these places with their keys, in order. Places beyond the last are left out.
    pub fn at_places(&self, places: Range<usize>) -> impl Iterator<Item = (K, &T)> {
        let end = places.end.min(self.entries.len());
        let start = places.start.min(end);
        (places.start..).zip(&self.entries[start..end]).filter_map(|(index, entry)| {
            let index = u32::try_from(index).ok()?;
            entry.value.as_ref().map(|value| (K::from(Key { index, generation: entry.generation }), value))
        })
    }

    /// The keys of all entries, in the order of their places.
    #[must_use]
    pub fn keys(&self) -> Vec<K> {
        self.iter().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::ConnectionKey;

    #[test]
    fn a_key_does_not_find_a_later_entry_in_the_same_place() {
        let mut slab: KeyedSlab<ConnectionKey, &str> = KeyedSlab::default();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!(second.0.index, first.0.index);
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&"second"));
        assert_eq!(slab.len(), 1);
    }
}
