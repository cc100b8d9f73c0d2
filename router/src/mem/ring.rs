//! A bounded ring from one thread to another.
//!
//! # Cost
//! No lock, and no allocation after the ring is made. Each side keeps its own index and a copy of the
//! other's, and looks at the other's only when the copy says full or empty; a batch is made visible, or
//! its places are given back, by one store. Both are lines of their own, so a ring that is neither full nor
//! empty moves a line between the cores once per batch and index, beside the items themselves.
//!
//! # How it is sound
//! Both indices only grow (they wrap at the width of `usize`, of which the capacity is a divisor). The
//! places from the consumer's released index up to the producer's published one belong to the consumer,
//! all others to the producer. Ownership passes with a `Release` store of the one's index and an
//! `Acquire` load of it by the other.

use crate::base::sync::{Arc, AtomicUsize, CacheLine, Ordering, UnsafeCell};
use std::fmt;
use std::mem::MaybeUninit;

struct Shared<T> {
    /// Up to here the producer has published.
    published: CacheLine<AtomicUsize>,
    /// Up to here the consumer has given places back.
    released: CacheLine<AtomicUsize>,
    /// A power of two of places, each holding an item if it lies between the two.
    places: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: items go from one thread to another, hence `T: Send`. A place is touched only by the side that
// owns it, see the top of this file.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    #[inline]
    fn place(&self, index: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.places[index & (self.places.len() - 1)]
    }

    /// Drops the items from index `from` up to `to`.
    ///
    /// # Safety
    /// There is an item in each of these places, the caller owns them, and nobody takes these items again.
    unsafe fn drop_items(&self, from: usize, to: usize) {
        let mut index = from;
        while index != to {
            // SAFETY: the caller's promise.
            self.place(index).with_mut(|item| unsafe { (*item).assume_init_drop() });
            index = index.wrapping_add(1);
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Both sides are gone, and each brought its index up to date.
        let from = self.released.0.load(Ordering::Relaxed);
        let to = self.published.0.load(Ordering::Relaxed);
        // SAFETY: what was published and not taken is still there, and nobody else is.
        unsafe { self.drop_items(from, to) };
    }
}

/// Makes a ring of `capacity` places.
///
/// Costs `capacity` times the size of an item, and 0.5 KiB.
///
/// # Panics
/// If `capacity` isn't a power of two: our own fault.
#[must_use]
pub fn ring<T: Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    assert!(capacity.is_power_of_two(), "the capacity of a ring is a power of two");
    let shared = Arc::new(Shared {
        published: CacheLine(AtomicUsize::new(0)),
        released: CacheLine(AtomicUsize::new(0)),
        places: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
    });
    (
        Producer { shared: shared.clone(), next: 0, published: 0, released: 0 },
        Consumer { shared, next: 0, released: 0, published: 0 },
    )
}

/// The end of a ring that puts items in.
pub struct Producer<T: Send> {
    shared: Arc<Shared<T>>,
    /// Where the next item goes.
    next: usize,
    /// Up to here we have published.
    published: usize,
    /// Up to here, at least, the consumer has given places back.
    released: usize,
}

impl<T: Send> Producer<T> {
    /// How many items fit now: all that do, or at least half of the capacity.
    ///
    /// Only the consumer changes it between two pushes, and only upwards: what fits now may be promised.
    #[inline]
    #[must_use]
    pub fn room(&mut self) -> usize {
        let capacity = self.shared.places.len();
        // Half a ring is enough to go on with, and then the consumer's line is left alone.
        if self.known_room() < capacity.div_ceil(2) {
            self.look_for_room();
        }
        self.known_room()
    }

    /// Adds an item, which the consumer will see after the next [`publish`](Self::publish).
    ///
    /// # Errors
    /// The item itself, if the ring is full.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.known_room() == 0 {
            self.look_for_room();
            if self.known_room() == 0 {
                return Err(item);
            }
        }
        // SAFETY: the place is ours: the consumer has released it, and we haven't published it since.
        // What was in it has been taken out.
        self.shared.place(self.next).with_mut(|place| unsafe { (*place).write(item) });
        self.next = self.next.wrapping_add(1);
        Ok(())
    }

    /// Makes everything that was pushed visible. Returns whether anything was.
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.published == self.next {
            return false;
        }
        self.published = self.next;
        // Release: the items are there before the index.
        self.shared.published.0.store(self.next, Ordering::Release);
        true
    }

    #[inline]
    fn known_room(&self) -> usize {
        self.shared.places.len() - self.next.wrapping_sub(self.released)
    }

    fn look_for_room(&mut self) {
        // Acquire: the consumer has taken the items out before it gave their places back.
        self.released = self.shared.released.0.load(Ordering::Acquire);
    }
}

impl<T: Send> Drop for Producer<T> {
    /// Frees what was pushed and not published; nobody will see it.
    fn drop(&mut self) {
        // SAFETY: these were pushed, are ours as long as they aren't published, and never will be.
        unsafe { self.shared.drop_items(self.published, self.next) };
    }
}

impl<T: Send> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("capacity", &self.shared.places.len())
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// The end of a ring that takes items out.
pub struct Consumer<T: Send> {
    shared: Arc<Shared<T>>,
    /// Where the next item is taken.
    next: usize,
    /// Up to here we have given places back.
    released: usize,
    /// Up to here, at least, the producer has published.
    published: usize,
}

impl<T: Send> Consumer<T> {
    /// Takes the oldest item out. Its place goes back with the next [`release`](Self::release), which also
    /// happens here when there is no item.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            self.release();
            return None;
        }
        // SAFETY: the place is ours: the producer has published it, and we haven't released it. It holds
        // an item, which is taken once because `next` goes on.
        let item = self.shared.place(self.next).with(|place| unsafe { (*place).assume_init_read() });
        self.next = self.next.wrapping_add(1);
        Some(item)
    }

    /// Whether there is nothing to take now. For a consumer that is about to sleep, see
    /// [`Sleeper`](super::doorbell::Sleeper).
    #[inline]
    #[must_use]
    pub fn is_empty(&mut self) -> bool {
        if self.next == self.published {
            // Acquire: the items are there before the index.
            self.published = self.shared.published.0.load(Ordering::Acquire);
        }
        self.next == self.published
    }

    /// Gives the places of all items that were taken back to the producer.
    #[inline]
    pub fn release(&mut self) {
        if self.released != self.next {
            self.released = self.next;
            // Release: the items have been taken out before their places are given back.
            self.shared.released.0.store(self.next, Ordering::Release);
        }
    }
}

impl<T: Send> Drop for Consumer<T> {
    /// Gives back what was taken. What is left goes with the ring, when the producer goes too.
    fn drop(&mut self) {
        self.release();
    }
}

impl<T: Send> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("capacity", &self.shared.places.len())
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(ringmain_loom)))]
mod tests {
    use super::ring;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn items_are_seen_when_published_and_places_come_back_when_released() {
        let (mut producer, mut consumer) = ring(4);
        assert_eq!(producer.room(), 4);
        for number in 0..4 {
            producer.push(number).unwrap();
        }
        assert_eq!(producer.push(4), Err(4));
        assert_eq!(consumer.pop(), None, "nothing is published");
        assert!(producer.publish());
        assert!(!producer.publish());
        assert!(!consumer.is_empty());
        assert_eq!((consumer.pop(), consumer.pop()), (Some(0), Some(1)));
        assert_eq!(producer.room(), 0, "nothing is released");
        consumer.release();
        assert_eq!(producer.room(), 2);
        assert_eq!((consumer.pop(), consumer.pop()), (Some(2), Some(3)));
        assert_eq!(producer.room(), 2);
        assert_eq!(consumer.pop(), None);
        for number in 4..8 {
            producer.push(number).expect("an empty ring is released by itself");
        }
    }

    #[test]
    fn dropping_frees_what_is_left_on_either_side() {
        let item = Arc::new(());
        for producer_first in [false, true] {
            let (mut producer, mut consumer) = ring(8);
            for round in 0..2 {
                for _ in 0..3 {
                    producer.push(item.clone()).unwrap();
                }
                if round == 0 {
                    producer.publish();
                }
            }
            assert!(consumer.pop().is_some());
            assert_eq!(Arc::strong_count(&item), 6);
            if producer_first {
                drop(producer);
                assert_eq!(Arc::strong_count(&item), 3, "what wasn't published is gone");
                assert!(consumer.pop().is_some());
                drop(consumer);
            } else {
                drop(consumer);
                drop(producer);
            }
            assert_eq!(Arc::strong_count(&item), 1);
        }
    }

    #[test]
    #[should_panic(expected = "power of two")]
    fn a_capacity_that_is_no_power_of_two_is_refused() {
        let _ = ring::<()>(0);
    }

    proptest::proptest! {
        /// Any order of operations does what a queue with two marks does.
        #[test]
        fn a_ring_is_a_queue(operations in proptest::collection::vec(0u8..12, 0..300), exponent in 0u32..4) {
            let capacity = 1usize << exponent;
            let (mut producer, mut consumer) = ring(capacity);
            let (mut pushed, mut visible) = (VecDeque::new(), VecDeque::new());
            let (mut number, mut unreleased) = (0, 0);
            for operation in operations {
                let used = pushed.len() + visible.len() + unreleased;
                match operation {
                    0..5 => {
                        let expected = if used < capacity { Ok(()) } else { Err(Box::new(number)) };
                        assert_eq!(producer.push(Box::new(number)), expected);
                        if used < capacity {
                            pushed.push_back(number);
                        }
                        number += 1;
                    }
                    5..7 => {
                        assert_eq!(producer.publish(), !pushed.is_empty());
                        visible.append(&mut pushed);
                    }
                    7..10 => {
                        let expected = visible.pop_front();
                        assert_eq!(consumer.pop().map(|item| *item), expected);
                        unreleased = if expected.is_some() { unreleased + 1 } else { 0 };
                    }
                    10 => {
                        consumer.release();
                        unreleased = 0;
                    }
                    _ => {
                        let room = producer.room();
                        assert!(room <= capacity - used);
                        assert!(room == capacity - used || room >= capacity.div_ceil(2));
                    }
                }
            }
        }
    }

    /// Batches of all sizes between two threads, through a ring that is often full and often empty.
    #[test]
    fn stress_a_ring_keeps_order_and_loses_nothing() {
        let (mut producer, mut consumer) = ring(64);
        let end = Instant::now() + Duration::from_millis(500);
        let consumer = thread::spawn(move || {
            let mut expected = 0u64;
            loop {
                match consumer.pop() {
                    Some(None) => return expected,
                    Some(Some(item)) => {
                        let item: Box<u64> = item;
                        assert_eq!(*item, expected);
                        expected += 1;
                        if expected.is_multiple_of(7) {
                            consumer.release();
                        }
                    }
                    None => thread::yield_now(),
                }
            }
        });
        let mut number = 0u64;
        while Instant::now() < end {
            let batch = number % 67 + 1;
            let room = producer.room() as u64;
            for _ in 0..batch.min(room) {
                producer.push(Some(Box::new(number))).unwrap();
                number += 1;
            }
            if !producer.publish() {
                thread::yield_now();
            }
        }
        while producer.push(None).is_err() {
            thread::yield_now();
        }
        producer.publish();
        assert_eq!(consumer.join().unwrap(), number);
    }

    /// What the ring asks of its items: that they can go to another thread, and no more.
    #[test]
    fn items_need_not_be_shared_between_threads() {
        let (mut producer, mut consumer) = ring(1);
        producer.push(std::cell::Cell::new(1)).unwrap();
        producer.publish();
        let item = thread::spawn(move || consumer.pop()).join().unwrap();
        assert_eq!(item.map(std::cell::Cell::into_inner), Some(1));
    }
}
