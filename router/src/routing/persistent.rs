//! A map from names to values of which a copy costs nothing, and a change to one copy costs the change.
//!
//! It is what the routing snapshot is made of: the writer changes its own map, and publishes a clone.
//!
//! # Shape
//! A trie over the bits of the names' hashes. A branch has [`FAN_OUT`] children, chosen by the next bits;
//! a child is a branch, or a bucket of a few entries, or nothing. A bucket that overflows becomes a
//! branch; a branch whose entries would fit a bucket with room to spare becomes one.
//!
//! ```text
//! map -> branch [ . B . b . . b . ]         B branch, b bucket, . nothing
//!                   |   |
//!                   |   +-> bucket: entries [hash, end of its name, value] and the text of all names
//!                   +-> branch [ b b . b ... ]
//! ```
//!
//! Clones share nodes, by reference counts. A change copies the nodes on its way that are shared, and
//! changes those in place that aren't: a batch between two clones copies each node once at the most.
//!
//! # Cost
//! A look-up hashes the name and follows about log₈(n/4) pointers: 6 for a million names. The first
//! change after a clone copies that many branches, of 8 pointers and reference counts each, and a bucket.
//! Names lie in their bucket's text rather than each in an allocation of its own, because a copy would have to
//! count a reference to each, and with a million names that is a cache miss each; copying a few hundred
//! bytes isn't. Dropping the last clone frees node by node, all in one go: about 0.1 µs a name.
//!
//! # Names are the peers' choice
//! The hash is SipHash with a random key of each map's own, so nobody can aim at a bucket. Should all bits
//! of two hashes be the same, their bucket grows beyond its size. The depth is at most [`DEPTH_MAX`],
//! whatever the names are.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::Arc;

/// How many bits of a hash choose a child.
const BITS: u32 = 3;

/// How many children a branch has.
pub const FAN_OUT: usize = 1 << BITS;

/// How many branches may lie above a bucket: those that the hash has bits for.
pub const DEPTH_MAX: usize = u64::BITS.div_ceil(BITS) as usize;

/// Entries of a bucket beyond which it becomes a branch.
const BUCKET_ENTRIES_MAX: usize = 8;

/// Entries of a branch at which it becomes a bucket. Less than fit, so that a name that comes and goes
/// doesn't turn one into the other each time.
const MERGED_ENTRIES: usize = 4;

/// A map from names to values. See the top of this file.
#[derive(Clone)]
pub struct PersistentMap<V, S = RandomState> {
    root: Child<V>,
    hasher: S,
}

enum Child<V> {
    Empty,
    Branch(Arc<Branch<V>>),
    Bucket(Arc<Bucket<V>>),
}

struct Branch<V> {
    /// How many entries lie below it.
    len: usize,
    children: [Child<V>; FAN_OUT],
}

#[derive(Clone)]
struct Bucket<V> {
    entries: Vec<Entry<V>>,
    /// The names of all entries, in their order.
    text: String,
}

#[derive(Clone)]
struct Entry<V> {
    hash: u64,
    /// Where its name ends in the bucket's text. It begins where the one before ends.
    end: usize,
    value: V,
}

impl<V> Default for PersistentMap<V> {
    fn default() -> Self {
        Self::with_hasher(RandomState::new())
    }
}

impl<V> PersistentMap<V> {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<V, S> PersistentMap<V, S> {
    /// An empty map that hashes with `hasher`. For tests; names that peers choose need a random one.
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        Self { root: Child::Empty, hasher }
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.root.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All entries, in no particular order.
    pub fn iter(&self) -> Iter<'_, V> {
        self.root.iter()
    }
}

impl<V, S: BuildHasher> PersistentMap<V, S> {
    /// The value of `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&V> {
        self.root.get(self.hasher.hash_one(name), name)
    }
}

impl<V: Clone, S: BuildHasher> PersistentMap<V, S> {
    /// Gives `name` a value; returns the one that it had.
    pub fn insert(&mut self, name: &str, value: V) -> Option<V> {
        let hash = self.hasher.hash_one(name);
        // Looked up first, so that the counts on the way down can be set on the way down.
        let added = usize::from(self.root.get(hash, name).is_none());
        let mut child = &mut self.root;
        let mut shift = 0;
        loop {
            match child {
                Child::Branch(branch) => {
                    let branch = Arc::make_mut(branch);
                    branch.len += added;
                    child = &mut branch.children[slot(hash, shift)];
                    shift += BITS;
                }
                Child::Bucket(bucket) => {
                    if let Some(place) = bucket.find(hash, name) {
                        let entry = &mut Arc::make_mut(bucket).entries[place];
                        return Some(mem::replace(&mut entry.value, value));
                    }
                    if bucket.entries.len() < BUCKET_ENTRIES_MAX || shift >= u64::BITS {
                        Bucket::push(bucket, hash, name, value);
                        return None;
                    }
                    // On the next round, the new entry goes into one of its buckets.
                    let split = Branch::split(bucket, shift);
                    *child = Child::Branch(Arc::new(split));
                }
                Child::Empty => {
                    let mut bucket = Bucket::with_capacity(1, name.len());
                    bucket.add(hash, name, value);
                    *child = Child::Bucket(Arc::new(bucket));
                    return None;
                }
            }
        }
    }

    /// Takes the entry of `name` out and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        let hash = self.hasher.hash_one(name);
        // So that nothing is copied for a name that isn't there.
        self.root.get(hash, name)?;
        let mut child = &mut self.root;
        let mut shift = 0;
        loop {
            child.merge(MERGED_ENTRIES + 1);
            match child {
                Child::Branch(branch) => {
                    let branch = Arc::make_mut(branch);
                    branch.len -= 1;
                    child = &mut branch.children[slot(hash, shift)];
                    shift += BITS;
                }
                Child::Bucket(bucket) => {
                    let place = bucket.find(hash, name)?;
                    let value = Bucket::remove(bucket, place);
                    if bucket.entries.is_empty() {
                        *child = Child::Empty;
                    }
                    return Some(value);
                }
                Child::Empty => return None,
            }
        }
    }
}

impl<V: fmt::Debug, S> fmt::Debug for PersistentMap<V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'m, V, S> IntoIterator for &'m PersistentMap<V, S> {
    type Item = (&'m str, &'m V);
    type IntoIter = Iter<'m, V>;

    fn into_iter(self) -> Iter<'m, V> {
        self.iter()
    }
}

/// Which child the bits of `hash` from `shift` on choose. There are bits left: `shift` is less than 64.
#[inline]
fn slot(hash: u64, shift: u32) -> usize {
    // At most FAN_OUT - 1.
    #[allow(clippy::cast_possible_truncation)]
    let slot = (hash >> shift) as usize & (FAN_OUT - 1);
    slot
}

impl<V> Child<V> {
    fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Branch(branch) => branch.len,
            Self::Bucket(bucket) => bucket.entries.len(),
        }
    }

    fn get(&self, hash: u64, name: &str) -> Option<&V> {
        let mut child = self;
        let mut rest = hash;
        loop {
            match child {
                Self::Empty => return None,
                Self::Branch(branch) => {
                    child = &branch.children[slot(rest, 0)];
                    rest >>= BITS;
                }
                Self::Bucket(bucket) => {
                    let place = bucket.find(hash, name)?;
                    return Some(&bucket.entries[place].value);
                }
            }
        }
    }

    fn iter(&self) -> Iter<'_, V> {
        Iter { branches: vec![std::slice::from_ref(self).iter()], bucket: None }
    }
}

impl<V: Clone> Child<V> {
    /// Turns a branch with at most `most` entries into a bucket.
    fn merge(&mut self, most: usize) {
        let Self::Branch(branch) = self else { return };
        if branch.len > most {
            return;
        }
        let text = self.iter().map(|(name, _)| name.len()).sum();
        let mut bucket = Bucket::with_capacity(self.len(), text);
        let mut entries = self.iter();
        while let Some((name, entry)) = entries.next_entry() {
            bucket.add(entry.hash, name, entry.value.clone());
        }
        *self = Self::Bucket(Arc::new(bucket));
    }
}

// Not derived: children are shared, whether values can be cloned or not.
impl<V> Clone for Child<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Empty => Self::Empty,
            Self::Branch(branch) => Self::Branch(branch.clone()),
            Self::Bucket(bucket) => Self::Bucket(bucket.clone()),
        }
    }
}

impl<V> Clone for Branch<V> {
    fn clone(&self) -> Self {
        Self { len: self.len, children: self.children.clone() }
    }
}

impl<V: Clone> Branch<V> {
    /// A branch with the entries of `bucket`, spread by the bits of their hashes from `shift` on.
    fn split(bucket: &Bucket<V>, shift: u32) -> Self {
        let mut branch = Self { len: bucket.entries.len(), children: [const { Child::Empty }; FAN_OUT] };
        for (name, entry) in bucket.iter() {
            match &mut branch.children[slot(entry.hash, shift)] {
                Child::Bucket(bucket) => Bucket::push(bucket, entry.hash, name, entry.value.clone()),
                empty @ (Child::Empty | Child::Branch(_)) => {
                    let mut bucket = Bucket::with_capacity(1, name.len());
                    bucket.add(entry.hash, name, entry.value.clone());
                    *empty = Child::Bucket(Arc::new(bucket));
                }
            }
        }
        branch
    }
}

impl<V> Bucket<V> {
    fn with_capacity(entries: usize, text: usize) -> Self {
        Self { entries: Vec::with_capacity(entries), text: String::with_capacity(text) }
    }

    fn add(&mut self, hash: u64, name: &str, value: V) {
        self.text.push_str(name);
        self.entries.push(Entry { hash, end: self.text.len(), value });
    }

    fn start(&self, place: usize) -> usize {
        place.checked_sub(1).map_or(0, |before| self.entries[before].end)
    }

    fn name(&self, place: usize) -> &str {
        &self.text[self.start(place)..self.entries[place].end]
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &Entry<V>)> {
        self.entries.iter().enumerate().map(|(place, entry)| (self.name(place), entry))
    }

    #[inline]
    fn find(&self, hash: u64, name: &str) -> Option<usize> {
        (0..self.entries.len()).find(|&place| self.entries[place].hash == hash && self.name(place) == name)
    }
}

impl<V: Clone> Bucket<V> {
    /// Adds an entry, to a copy if the bucket is shared.
    fn push(bucket: &mut Arc<Self>, hash: u64, name: &str, value: V) {
        if let Some(bucket) = Arc::get_mut(bucket) {
            // Buckets are many, and their entries few: no room to grow is kept.
            bucket.entries.reserve_exact(1);
            bucket.text.reserve_exact(name.len());
            bucket.add(hash, name, value);
            return;
        }
        let mut copy = Self::with_capacity(bucket.entries.len() + 1, bucket.text.len() + name.len());
        copy.entries.extend_from_slice(&bucket.entries);
        copy.text.push_str(&bucket.text);
        copy.add(hash, name, value);
        *bucket = Arc::new(copy);
    }

    /// Takes an entry out, of a copy if the bucket is shared.
    fn remove(bucket: &mut Arc<Self>, place: usize) -> V {
        let bucket = Arc::make_mut(bucket);
        let range = bucket.start(place)..bucket.entries[place].end;
        for later in &mut bucket.entries[place + 1..] {
            later.end -= range.len();
        }
        bucket.text.drain(range);
        let value = bucket.entries.remove(place).value;
        bucket.text.shrink_to_fit();
        bucket.entries.shrink_to_fit();
        value
    }
}

/// The entries of a [`PersistentMap`], in no particular order.
pub struct Iter<'m, V> {
    /// What is left of the branches above the bucket. Grows to [`DEPTH_MAX`] at the most.
    branches: Vec<std::slice::Iter<'m, Child<V>>>,
    /// The bucket at which we are, and the place of its next entry.
    bucket: Option<(&'m Bucket<V>, usize)>,
}

impl<'m, V> Iter<'m, V> {
    fn next_entry(&mut self) -> Option<(&'m str, &'m Entry<V>)> {
        loop {
            if let Some((bucket, place)) = &mut self.bucket
                && let Some(entry) = bucket.entries.get(*place)
            {
                let name = bucket.name(*place);
                *place += 1;
                return Some((name, entry));
            }
            match self.branches.last_mut()?.next() {
                Some(Child::Empty) => {}
                Some(Child::Branch(branch)) => self.branches.push(branch.children.iter()),
                Some(Child::Bucket(bucket)) => self.bucket = Some((bucket, 0)),
                None => {
                    self.branches.pop();
                }
            }
        }
    }
}

impl<'m, V> Iterator for Iter<'m, V> {
    type Item = (&'m str, &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_entry().map(|(name, entry)| (name, &entry.value))
    }
}

impl<V> fmt::Debug for Iter<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("depth", &self.branches.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "persistent_tests.rs"]
mod tests;
