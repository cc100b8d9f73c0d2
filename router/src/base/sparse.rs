//! A map from numbers that a peer chooses (channels, handles) to what they stand for.

use std::collections::HashMap;

/// Numbers below this are looked up by index: peers count from 0 (AMQP 1.0 §2.6.2).
const DENSE_MAX: u32 = 256;

/// A map from a peer's numbers to small values.
///
/// Low numbers cost an index; high ones, which a peer may choose freely (up to 2^32 - 1 for handles),
/// a hash look-up. So the memory follows the number of entries, never the numbers.
#[derive(Debug)]
pub struct SparseMap<V> {
    dense: Vec<Option<V>>,
    // Few connections need one, and a map takes six times the place of a pointer.
    #[allow(clippy::box_collection)]
    sparse: Option<Box<HashMap<u32, V>>>,
}

impl<V> Default for SparseMap<V> {
    fn default() -> Self {
        Self { dense: Vec::new(), sparse: None }
    }
}

impl<V: Copy> SparseMap<V> {
    /// What `number` stands for.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> Option<V> {
        if number < DENSE_MAX {
            self.dense.get(number as usize).copied().flatten()
        } else {
            self.sparse.as_ref()?.get(&number).copied()
        }
    }

    /// How many numbers stand for something.
    #[must_use]
    pub fn len(&self) -> usize {
        let sparse = self.sparse.as_ref().map_or(0, |sparse| sparse.len());
        self.dense.iter().flatten().count() + sparse
    }

    /// Whether none does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes `number` stand for `value`.
    pub fn insert(&mut self, number: u32, value: V) {
        if number < DENSE_MAX {
            let index = number as usize;
            if self.dense.len() <= index {
                self.dense.resize(index + 1, None);
            }
            self.dense[index] = Some(value);
        } else {
            self.sparse.get_or_insert_default().insert(number, value);
        }
    }

    /// Forgets `number`.
    pub fn remove(&mut self, number: u32) -> Option<V> {
        if number < DENSE_MAX {
            self.dense.get_mut(number as usize)?.take()
        } else {
            self.sparse.as_mut()?.remove(&number)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SparseMap;

    #[test]
    fn low_and_high_numbers_are_kept_apart() {
        let mut map = SparseMap::default();
        for number in [0, 255, 256, u32::MAX] {
            assert_eq!(map.get(number), None);
            map.insert(number, number);
        }
        for number in [0, 255, 256, u32::MAX] {
            assert_eq!(map.get(number), Some(number));
            assert_eq!(map.remove(number), Some(number));
            assert_eq!(map.get(number), None);
        }
        assert_eq!(map.dense.len(), 256);
    }
}
