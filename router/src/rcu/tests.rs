//! One thread through each rule, then threads that publish and turn as fast as they can.

use super::cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A value that counts those alive, and of which a torn or freed copy shows.
struct Counted {
    number: u64,
    inverse: u64,
    text: String,
    alive: Arc<AtomicUsize>,
}

impl Counted {
    fn new(number: u64, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self { number, inverse: !number, text: number.to_string(), alive: alive.clone() }
    }

    fn check(&self) -> u64 {
        assert_eq!(self.inverse, !self.number);
        assert_eq!(self.text, self.number.to_string());
        self.number
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.inverse = self.number;
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_value_waits_for_every_reader_that_is_in_a_turn() {
    let alive = Arc::default();
    let (mut publisher, mut readers) = cell(Counted::new(0, &alive), 2);
    let mut second = readers.pop().unwrap();
    let mut first = readers.pop().unwrap();
    first.begin_turn();
    second.begin_turn();
    publisher.publish(Counted::new(1, &alive));
    assert_eq!(publisher.reclaim(), 1);
    assert_eq!((first.load().check(), second.load().check()), (0, 0), "a turn sees one version");
    first.begin_turn();
    assert_eq!(publisher.reclaim(), 1);
    assert_eq!((first.load().check(), second.load().check()), (1, 0));
    second.sleep();
    assert_eq!(publisher.reclaim(), 0);
    assert_eq!(alive.load(Ordering::Relaxed), 1);
}

#[test]
fn a_stuck_reader_holds_back_what_came_after_its_version_and_nothing_before() {
    let alive = Arc::default();
    let (mut publisher, mut readers) = cell(Counted::new(0, &alive), 1);
    readers[0].begin_turn();
    publisher.publish(Counted::new(1, &alive));
    readers[0].begin_turn();
    publisher.publish(Counted::new(2, &alive));
    publisher.publish(Counted::new(3, &alive));
    assert_eq!(publisher.reclaim(), 2, "0 is free, 1 is held, 2 waits behind it");
    assert_eq!(readers[0].load().check(), 1);
    readers[0].begin_turn();
    assert_eq!((readers[0].load().check(), publisher.current().check()), (3, 3));
    assert_eq!(publisher.reclaim(), 0);
}

#[test]
fn a_sleeping_reader_holds_nothing_back_and_wakes_on_the_newest() {
    let alive = Arc::default();
    let (mut publisher, mut readers) = cell(Counted::new(0, &alive), 1);
    for number in 1..100 {
        publisher.publish(Counted::new(number, &alive));
        assert_eq!(publisher.reclaim(), 0);
        if number % 10 == 0 {
            assert_eq!(readers[0].load().check(), number, "to load begins a turn");
            readers[0].sleep();
            readers[0].sleep();
        }
    }
    assert_eq!(alive.load(Ordering::Relaxed), 1);
}

#[test]
fn a_dropped_reader_holds_nothing_back() {
    let alive = Arc::default();
    let (mut publisher, mut readers) = cell(Counted::new(0, &alive), 1);
    readers[0].begin_turn();
    publisher.publish(Counted::new(1, &alive));
    assert_eq!(publisher.reclaim(), 1);
    drop(readers);
    assert_eq!(publisher.reclaim(), 0);
}

#[test]
fn a_reader_may_outlive_the_publisher() {
    let alive = Arc::default();
    let (mut publisher, mut readers) = cell(Counted::new(0, &alive), 2);
    readers[0].begin_turn();
    publisher.publish(Counted::new(1, &alive));
    drop(publisher);
    assert_eq!(readers[0].load().check(), 0);
    assert_eq!(readers[1].load().check(), 1);
    readers[0].begin_turn();
    assert_eq!(readers[0].load().check(), 1);
    drop(readers);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn without_readers_everything_is_free_at_once() {
    let alive = Arc::default();
    let (mut publisher, readers) = cell(Counted::new(0, &alive), 0);
    assert!(readers.is_empty());
    publisher.publish(Counted::new(1, &alive));
    assert_eq!(publisher.reclaim(), 0);
    drop(publisher);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

/// Readers see only whole values, in the order of their publication, and all are freed in the end.
#[test]
fn stress_publishing_under_turning_and_sleeping_readers() {
    const WAITING_MAX: usize = 1000;
    let alive = Arc::default();
    let (mut publisher, readers) = cell(Counted::new(0, &alive), 3);
    let stop = AtomicBool::new(false);
    let published = thread::scope(|scope| {
        for (sleepiness, mut reader) in readers.into_iter().enumerate() {
            let stop = &stop;
            scope.spawn(move || {
                let (mut last, mut turn) = (0, 0u64);
                while !stop.load(Ordering::Relaxed) {
                    reader.begin_turn();
                    let number = reader.load().check();
                    assert!(number >= last, "{number} after {last}");
                    assert_eq!(reader.load().check(), number);
                    last = number;
                    turn += 1;
                    if sleepiness > 0 && turn.is_multiple_of(3 * sleepiness as u64) {
                        reader.sleep();
                        thread::yield_now();
                    }
                }
            });
        }
        let end = Instant::now() + Duration::from_millis(1000);
        let mut number = 0;
        while Instant::now() < end {
            number += 1;
            publisher.publish(Counted::new(number, &alive));
            while publisher.reclaim() > WAITING_MAX {
                thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
        number
    });
    assert!(published > 0);
    assert_eq!(publisher.reclaim(), 0);
    assert_eq!(alive.load(Ordering::Relaxed), 1);
    drop(publisher);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}
