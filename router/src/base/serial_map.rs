//! Entries by consecutive serial numbers, as deliveries have them.

use super::id::Serial;
use std::collections::BTreeMap;

/// How far the oldest entry may lie behind the newest before it moves out of the dense part.
///
/// Dense places cost one entry each, whether used or not: at 40 bytes an entry, 160 KiB at the most.
const DENSE_MAX: usize = 4096;

/// Places of a map that has any.
const DENSE_MIN: usize = 4;

/// A map from consecutive [`Serial`] numbers to entries that go in about the order in which they came.
///
/// # Cost
/// Adding, finding and removing a recent entry is an index into a ring. An entry that stays while
/// thousands come and go moves to a tree, so one delivery that is never settled neither holds up the
/// others nor makes the ring grow.
#[derive(Debug)]
pub struct SerialMap<T> {
    /// The number of the first place in use of `dense`.
    first: Serial,
    /// How many places are in use, from there on. Those behind are empty.
    places: u32,
    /// The places: as many as a power of two, or none. A number's place is its remainder.
    dense: Vec<Option<T>>,
    /// Entries before `first`.
    stragglers: BTreeMap<u32, T>,
    len: usize,
}

impl<T> SerialMap<T> {
    /// An empty map whose first entry will have the number `next`.
    #[must_use]
    pub fn starting_at(next: Serial) -> Self {
        Self { first: next, places: 0, dense: Vec::new(), stragglers: BTreeMap::new(), len: 0 }
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number that the next entry will have.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Serial {
        self.first.plus(self.places)
    }

    /// Adds an entry under the next number.
    #[inline]
    pub fn push(&mut self, value: T) -> Serial {
        let serial = self.next();
        if self.places as usize == self.dense.len() {
            self.make_place();
        }
        let at = self.place(serial);
        self.dense[at] = Some(value);
        self.places += 1;
        self.len += 1;
        serial
    }

    /// Passes over the next number: there will never be an entry under it.
    #[inline]
    pub fn skip(&mut self) {
        if self.places == 0 {
            self.first = self.first.next();
            return;
        }
        if self.places as usize == self.dense.len() {
            self.make_place();
        }
        self.places += 1;
    }

    /// Makes room behind the places that are all in use: more of them, or the oldest entry leaves.
    #[cold]
    fn make_place(&mut self) {
        if self.dense.len() == DENSE_MAX {
            let at = self.place(self.first);
            if let Some(value) = self.dense[at].take() {
                self.stragglers.insert(self.first.0, value);
            }
            self.drop_empty_front();
            return;
        }
        let size = (self.dense.len() * 2).max(DENSE_MIN);
        let mut dense: Vec<Option<T>> = Vec::new();
        dense.resize_with(size, || None);
        for number in 0..self.places {
            let serial = self.first.plus(number);
            let at = self.place(serial);
            dense[serial.0 as usize & (size - 1)] = self.dense[at].take();
        }
        self.dense = dense;
    }

    /// Where a number in use has its place.
    #[inline]
    fn place(&self, serial: Serial) -> usize {
        serial.0 as usize & self.dense.len().wrapping_sub(1)
    }

    #[inline]
    fn drop_empty_front(&mut self) {
        while self.places > 0 && self.dense[self.place(self.first)].is_none() {
            self.first = self.first.next();
            self.places -= 1;
        }
    }

    /// The place of a number that has one.
    #[inline]
    fn dense_index(&self, serial: Serial) -> Option<usize> {
        (serial.0.wrapping_sub(self.first.0) < self.places).then(|| self.place(serial))
    }

    /// The entry under `serial`.
    #[inline]
    #[must_use]
    pub fn get(&self, serial: Serial) -> Option<&T> {
        match self.dense_index(serial) {
            Some(index) => self.dense[index].as_ref(),
            None => self.straggler(serial),
        }
    }

    #[cold]
    fn straggler(&self, serial: Serial) -> Option<&T> {
        self.stragglers.get(&serial.0)
    }

    /// The entry under `serial`.
    #[inline]
    pub fn get_mut(&mut self, serial: Serial) -> Option<&mut T> {
        match self.dense_index(serial) {
            Some(index) => self.dense[index].as_mut(),
            None => self.straggler_mut(serial),
        }
    }

    #[cold]
    fn straggler_mut(&mut self, serial: Serial) -> Option<&mut T> {
        self.stragglers.get_mut(&serial.0)
    }

    /// Takes the entry under `serial` out.
    #[inline]
    pub fn remove(&mut self, serial: Serial) -> Option<T> {
        let Some(index) = self.dense_index(serial) else { return self.remove_straggler(serial) };
        let value = self.dense[index].take()?;
        self.len -= 1;
        if serial == self.first {
            self.drop_empty_front();
        }
        Some(value)
    }

    #[cold]
    fn remove_straggler(&mut self, serial: Serial) -> Option<T> {
        let value = self.stragglers.remove(&serial.0)?;
        self.len -= 1;
        Some(value)
    }

    /// The first entry numbered from `from` to `last`, both included.
    ///
    /// Its work is bounded by the entries and places that exist, not by the width of the range.
    #[inline]
    #[must_use]
    pub fn first_within(&self, from: Serial, last: Serial) -> Option<Serial> {
        // The usual case: the first of the range is there.
        if self.dense_index(from).is_some_and(|index| self.dense[index].is_some())
            && last.distance_from(from) >= 0
            && self.stragglers.is_empty()
        {
            return Some(from);
        }
        self.search_within(from, last)
    }

    fn search_within(&self, from: Serial, last: Serial) -> Option<Serial> {
        if last.distance_from(from) < 0 {
            return None;
        }
        if !self.stragglers.is_empty() {
            let straggler = if from.0 <= last.0 {
                self.stragglers.range(from.0..=last.0).next()
            } else {
                self.stragglers.range(from.0..).next().or_else(|| self.stragglers.range(..=last.0).next())
            };
            if let Some((&serial, _)) = straggler {
                return Some(Serial(serial));
            }
        }
        let start = u32::try_from(from.distance_from(self.first)).unwrap_or(0);
        let end = u32::try_from(last.distance_from(self.first)).ok()?.min(self.places.checked_sub(1)?);
        (start..=end)
            .map(|number| self.first.plus(number))
            .find(|&serial| self.dense[self.place(serial)].is_some())
    }

    /// All entries, oldest first as far as they are dense.
    pub fn iter(&self) -> impl Iterator<Item = (Serial, &T)> {
        let stragglers = self.stragglers.iter().map(|(&serial, value)| (Serial(serial), value));
        let dense = (0..self.places).filter_map(|number| {
            let serial = self.first.plus(number);
            self.dense[self.place(serial)].as_ref().map(|value| (serial, value))
        });
        stragglers.chain(dense)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn an_entry_that_stays_does_not_make_the_ring_grow() {
        let mut map = SerialMap::starting_at(Serial(u32::MAX - 10));
        let stuck = map.push(0);
        for value in 1..100_000 {
            let serial = map.push(value);
            assert_eq!(map.remove(serial), Some(value));
        }
        assert!(map.dense.len() <= DENSE_MAX);
        assert_eq!(map.len(), 1);
        assert_eq!(map.first_within(stuck, stuck.plus(100_000)), Some(stuck));
        assert_eq!(map.remove(stuck), Some(0));
        assert!(map.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Against a plain hash map, across the wrap of the numbers.
        #[test]
        fn behaves_as_a_map(start in any::<u32>(), steps in prop::collection::vec((0..4u8, 0..20_000u32), 0..300)) {
            let mut map = SerialMap::starting_at(Serial(start));
            let mut model: HashMap<u32, u32> = HashMap::new();
            let mut next = Serial(start);
            for (step, number) in steps {
                match step {
                    0 => {
                        for value in 0..number % 5000 {
                            prop_assert_eq!(map.push(value), next);
                            model.insert(next.0, value);
                            next = next.next();
                        }
                    }
                    1 => {
                        map.skip();
                        next = next.next();
                    }
                    2 => {
                        let serial = Serial(next.0.wrapping_sub(number));
                        prop_assert_eq!(map.remove(serial), model.remove(&serial.0));
                    }
                    _ => {
                        let from = Serial(next.0.wrapping_sub(number));
                        let last = from.plus(number / 2);
                        let found = map.first_within(from, last);
                        let expected = (0..=number / 2).map(|i| from.plus(i)).find(|s| model.contains_key(&s.0));
                        prop_assert_eq!(found, expected);
                    }
                }
                prop_assert_eq!(map.len(), model.len());
                prop_assert_eq!(map.next(), next);
            }
        }
    }
}
