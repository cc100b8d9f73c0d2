//! The map against the standard library's, with good hashes and with hopeless ones; what clones share.

use super::*;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::hash::Hasher;

/// A hash that keeps only the bits of a mask: none, few, or only the last that the trie looks at.
#[derive(Clone, Copy, Debug)]
struct Masked(u64);

struct MaskedHasher(std::hash::DefaultHasher, u64);

impl BuildHasher for Masked {
    type Hasher = MaskedHasher;

    fn build_hasher(&self) -> MaskedHasher {
        MaskedHasher(std::hash::DefaultHasher::new(), self.0)
    }
}

impl Hasher for MaskedHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.finish() & self.1
    }
}

const MASKS: [u64; 5] = [u64::MAX, 0, 0b11, 0b111_000_111, 0b11 << 62];

#[derive(Clone, Debug)]
enum Operation {
    Insert(String, u32),
    Remove(String),
    Clone,
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0u32..200).prop_map(|number| format!("orders.{number}")),
        1 => "[a-zé/._]{0,12}",
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (name(), any::<u32>()).prop_map(|(name, value)| Operation::Insert(name, value)),
        6 => name().prop_map(Operation::Remove),
        1 => Just(Operation::Clone),
    ]
}

fn assert_same<S: BuildHasher + Clone>(map: &PersistentMap<u32, S>, model: &HashMap<String, u32>) {
    assert_eq!(map.len(), model.len());
    assert_eq!(map.is_empty(), model.is_empty());
    let found: HashMap<String, u32> = map.iter().map(|(name, &value)| (name.to_owned(), value)).collect();
    assert_eq!(&found, model);
    assert_eq!(map.iter().count(), model.len(), "no name twice");
    for (name, value) in model {
        assert_eq!(map.get(name), Some(value));
    }
    assert_shape(&map.root, 0, 0, 0);
}

/// Checks what the shape promises: counts, sizes, and every entry where its hash says.
fn assert_shape<V>(child: &Child<V>, shift: u32, prefix: u64, depth: usize) {
    assert!(depth <= DEPTH_MAX);
    match child {
        Child::Empty => {}
        Child::Bucket(bucket) => {
            assert!(!bucket.entries.is_empty());
            assert!(bucket.entries.len() <= BUCKET_ENTRIES_MAX || shift >= u64::BITS);
            assert_eq!(bucket.entries.last().unwrap().end, bucket.text.len());
            let known = if shift >= u64::BITS { u64::MAX } else { (1 << shift) - 1 };
            assert!(bucket.entries.iter().all(|entry| entry.hash & known == prefix));
        }
        Child::Branch(branch) => {
            assert_eq!(branch.len, branch.children.iter().map(Child::len).sum::<usize>());
            assert!(branch.len > MERGED_ENTRIES);
            for (number, child) in (0u64..).zip(&branch.children) {
                // The last branch has fewer bits than it has children.
                if u64::BITS - shift < BITS && number >> (u64::BITS - shift) != 0 {
                    assert_eq!(child.len(), 0);
                } else {
                    assert_shape(child, shift + BITS, prefix | number << shift, depth + 1);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn it_is_a_map_and_clones_keep_their_content(
        operations in prop::collection::vec(operation(), 0..400),
        mask in prop::sample::select(&MASKS),
    ) {
        let mut map = PersistentMap::with_hasher(Masked(mask));
        let mut model = HashMap::new();
        let mut clones = Vec::new();
        for operation in operations {
            match operation {
                Operation::Insert(name, value) => {
                    assert_eq!(map.insert(&name, value), model.insert(name, value));
                }
                Operation::Remove(name) => assert_eq!(map.remove(&name), model.remove(&name)),
                Operation::Clone => clones.push((map.clone(), model.clone())),
            }
        }
        clones.push((map, model));
        for (map, model) in &clones {
            assert_same(map, model);
        }
    }
}

fn numbered(count: u32) -> PersistentMap<u32> {
    let mut map = PersistentMap::new();
    for number in 0..count {
        map.insert(&number.to_string(), number);
    }
    map
}

/// Adds the nodes of a map to `known`, by where they are, and returns how many it didn't know. Below a node
/// that it knows there is nothing new.
fn learn<V, S>(map: &PersistentMap<V, S>, known: &mut HashSet<usize>) -> usize {
    let before = known.len();
    let mut left = vec![&map.root];
    while let Some(child) = left.pop() {
        match child {
            Child::Empty => {}
            Child::Bucket(bucket) => {
                known.insert(Arc::as_ptr(bucket) as usize);
            }
            Child::Branch(branch) => {
                if known.insert(Arc::as_ptr(branch) as usize) {
                    left.extend(&branch.children);
                }
            }
        }
    }
    known.len() - before
}

fn nodes<V, S>(map: &PersistentMap<V, S>) -> HashSet<usize> {
    let mut known = HashSet::new();
    learn(map, &mut known);
    known
}

/// One change after a clone makes as many nodes as the tree is deep, whatever its size. (A full bucket
/// turns into a branch with up to 8 buckets.)
#[test]
fn a_change_copies_its_way_and_no_more() {
    let mut map = numbered(100_000);
    let mut known = nodes(&map);
    // Kept, so that no node is made where an old one was.
    let mut clones = Vec::new();
    for number in 0..1000 {
        for change in ["insert", "replace", "remove"] {
            clones.push(map.clone());
            match change {
                "insert" => map.insert(&format!("new {number}"), 0),
                "replace" => map.insert(&number.to_string(), 0),
                _ => map.remove(&format!("new {number}")),
            };
            let made = learn(&map, &mut known);
            assert!((1..=8 + FAN_OUT).contains(&made), "{change} made {made} nodes");
        }
    }
}

/// What a batch has copied it changes in place.
#[test]
fn a_batch_copies_each_node_once() {
    let mut map = numbered(10_000);
    let before = map.clone();
    for number in 0..10_000 {
        map.insert(&number.to_string(), number + 1);
    }
    let copied = nodes(&map);
    assert!(copied.is_disjoint(&nodes(&before)));
    for number in 0..10_000 {
        map.insert(&number.to_string(), number + 2);
    }
    assert_eq!(nodes(&map), copied);
    assert!((0..10_000).all(|number| before.get(&number.to_string()) == Some(&number)));
}

/// A name that isn't there is no change.
#[test]
fn removing_nothing_copies_nothing() {
    let mut map = numbered(1000);
    let before = map.clone();
    assert_eq!(map.remove("nobody"), None);
    assert_eq!(nodes(&map), nodes(&before));
}

/// Temporary addresses come and go; what is left of them is nothing.
#[test]
fn memory_follows_the_entries_down() {
    let mut map = numbered(20_000);
    for number in 10..20_000u32 {
        assert_eq!(map.remove(&number.to_string()), Some(number));
    }
    assert!(nodes(&map).len() <= 1 + FAN_OUT);
    for number in 0..10u32 {
        assert_eq!(map.remove(&number.to_string()), Some(number));
    }
    assert!(map.is_empty());
    assert!(nodes(&map).is_empty());
}

/// The values of an old clone are dropped with it, and no later or earlier.
#[test]
fn values_live_as_long_as_a_map_that_has_them() {
    let value = Arc::new(());
    let mut map = PersistentMap::new();
    for number in 0..100 {
        map.insert(&number.to_string(), value.clone());
    }
    let old = map.clone();
    for number in 0..100 {
        map.remove(&number.to_string());
    }
    assert!(Arc::strong_count(&value) > 100);
    drop(old);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// All hashes the same: one bucket below the deepest branch, which still works.
#[test]
fn names_whose_hashes_are_equal_are_told_apart() {
    let mut map = PersistentMap::with_hasher(Masked(0));
    for number in 0..500u32 {
        assert_eq!(map.insert(&number.to_string(), number), None);
    }
    assert_shape(&map.root, 0, 0, 0);
    for number in 0..500u32 {
        assert_eq!(map.remove(&number.to_string()), Some(number));
    }
    assert!(map.is_empty());
}

/// Two maps don't hash alike, so what collides in one says nothing of another.
#[test]
fn every_map_has_a_hash_key_of_its_own() {
    let (one, other) = (PersistentMap::<()>::new(), PersistentMap::<()>::new());
    assert_ne!(one.hasher.hash_one("name"), other.hasher.hash_one("name"));
}
