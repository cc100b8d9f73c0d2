//! Entries by consecutive serial numbers, as deliveries have them.

use super::id::Serial;
use std::collections::{BTreeMap, VecDeque};

/// How far the oldest entry may lie behind the newest before it moves out of the dense part.
///
/// Dense places cost one entry each, whether used or not: at 24 bytes an entry, 96 KiB at the most.
const DENSE_MAX: usize = 4096;

/// A map from consecutive [`Serial`] numbers to entries that go in about the order in which they came.
///
/// # Cost
/// Adding, finding and removing a recent entry is an index into a ring. An entry that stays while
/// thousands come and go moves to a tree, so one delivery that is never settled neither holds up the
/// others nor makes the ring grow.
#[derive(Debug)]
pub struct SerialMap<T> {
    /// The number of the first place of `dense`.
    first: Serial,
    dense: VecDeque<Option<T>>,
    /// Entries before `first`.
    stragglers: BTreeMap<u32, T>,
    len: usize,
}

impl<T> SerialMap<T> {
    /// An empty map whose first entry will have the number `next`.
    #[must_use]
    pub fn starting_at(next: Serial) -> Self {
        Self { first: next, dense: VecDeque::new(), stragglers: BTreeMap::new(), len: 0 }
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
    #[must_use]
    pub fn next(&self) -> Serial {
        // `dense` never holds more than DENSE_MAX places.
        #[allow(clippy::cast_possible_truncation)]
        self.first.plus(self.dense.len() as u32)
    }

    /// Adds an entry under the next number.
    pub fn push(&mut self, value: T) -> Serial {
        let serial = self.next();
        if self.dense.len() == DENSE_MAX {
            self.retire_front();
        }
        self.dense.push_back(Some(value));
        self.len += 1;
        serial
    }

    /// Passes over the next number: there will never be an entry under it.
    pub fn skip(&mut self) {
        if self.dense.is_empty() {
            self.first = self.first.next();
            return;
        }
        if self.dense.len() == DENSE_MAX {
            self.retire_front();
        }
        self.dense.push_back(None);
    }

    fn retire_front(&mut self) {
        if let Some(Some(value)) = self.dense.pop_front() {
            self.stragglers.insert(self.first.0, value);
        }
        self.first = self.first.next();
        self.drop_empty_front();
    }

    fn drop_empty_front(&mut self) {
        while let Some(None) = self.dense.front() {
            self.dense.pop_front();
            self.first = self.first.next();
        }
    }

    fn dense_index(&self, serial: Serial) -> Option<usize> {
        let distance = serial.distance_from(self.first);
        usize::try_from(distance).ok().filter(|index| *index < self.dense.len())
    }

    /// The entry under `serial`.
    #[must_use]
    pub fn get(&self, serial: Serial) -> Option<&T> {
        match self.dense_index(serial) {
            Some(index) => self.dense[index].as_ref(),
            None => self.stragglers.get(&serial.0),
        }
    }

    /// The entry under `serial`.
    pub fn get_mut(&mut self, serial: Serial) -> Option<&mut T> {
        match self.dense_index(serial) {
            Some(index) => self.dense[index].as_mut(),
            None => self.stragglers.get_mut(&serial.0),
        }
    }

    /// Takes the entry under `serial` out.
    pub fn remove(&mut self, serial: Serial) -> Option<T> {
        let value = match self.dense_index(serial) {
            Some(index) => {
                let value = self.dense[index].take();
                if index == 0 {
                    self.drop_empty_front();
                }
                value
            }
            None => self.stragglers.remove(&serial.0),
        };
        if value.is_some() {
            self.len -= 1;
        }
        value
    }

    /// The first entry numbered from `from` to `last`, both included.
    ///
    /// Its work is bounded by the entries and places that exist, not by the width of the range.
    #[must_use]
    pub fn first_within(&self, from: Serial, last: Serial) -> Option<Serial> {
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
        let start = usize::try_from(from.distance_from(self.first)).unwrap_or(0);
        let end = usize::try_from(last.distance_from(self.first)).ok()?.min(self.dense.len().checked_sub(1)?);
        (start..=end).find(|&index| self.dense[index].is_some()).map(|index| {
            #[allow(clippy::cast_possible_truncation)] // below DENSE_MAX
            self.first.plus(index as u32)
        })
    }

    /// All entries, oldest first as far as they are dense.
    pub fn iter(&self) -> impl Iterator<Item = (Serial, &T)> {
        let first = self.first;
        let stragglers = self.stragglers.iter().map(|(&serial, value)| (Serial(serial), value));
        let dense = self.dense.iter().enumerate().filter_map(move |(index, value)| {
            #[allow(clippy::cast_possible_truncation)] // below DENSE_MAX
            value.as_ref().map(|value| (first.plus(index as u32), value))
        });
        stragglers.chain(dense)
    }

    /// Gives back the memory of a burst that is over.
    pub fn shrink(&mut self) {
        if self.dense.is_empty() {
            self.dense = VecDeque::new();
        }
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
