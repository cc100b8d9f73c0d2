//! Every schedule of small programs over the cell, explored by loom (`scripts/loom`).

use super::cell;
use crate::base::sync::{Arc, UnsafeCell};
use loom::thread;

/// Dropping is a write and looking is a read, of a place that stays where it is: loom reports them if
/// nothing makes one happen before the other, and a value that was dropped shows.
struct Tracked(Arc<UnsafeCell<u32>>);

const DROPPED: u32 = u32::MAX;

// SAFETY: whether this is true is what loom is asked.
unsafe impl Send for Tracked {}
// SAFETY: as above.
unsafe impl Sync for Tracked {}

impl Tracked {
    fn new(number: u32) -> (Self, Arc<UnsafeCell<u32>>) {
        let place = Arc::new(UnsafeCell::new(DROPPED));
        // SAFETY: nobody else has it yet. Written here so that it matters whether readers may see it.
        place.with_mut(|value| unsafe { *value = number });
        (Self(place.clone()), place)
    }

    fn look(&self) -> u32 {
        // SAFETY: loom checks that nobody writes.
        let number = self.0.with(|number| unsafe { *number });
        assert_ne!(number, DROPPED);
        number
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        // SAFETY: loom checks that nobody else looks.
        self.0.with_mut(|number| unsafe { *number = DROPPED });
    }
}

/// `preemptions` is how often loom takes a thread off that could go on. Two for three threads take seconds;
/// three take a minute each.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// One writer publishes twice and reclaims in between and after; two readers turn, look and sleep.
#[test]
fn loom_cell_with_two_readers() {
    explore(2, || {
        let (value, place) = Tracked::new(0);
        let mut places = vec![place];
        let (mut publisher, readers) = cell(value, 2);
        let threads: Vec<_> = readers
            .into_iter()
            .map(|mut reader| {
                thread::spawn(move || {
                    reader.begin_turn();
                    let first = reader.load().look();
                    reader.begin_turn();
                    let second = reader.load().look();
                    assert!(first <= second);
                    reader.sleep();
                    reader.begin_turn();
                    assert!(second <= reader.load().look());
                })
            })
            .collect();
        for number in 1..3 {
            let (value, place) = Tracked::new(number);
            places.push(place);
            publisher.publish(value);
            publisher.reclaim();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(publisher.reclaim(), 0);
        drop(publisher);
        for place in places {
            // SAFETY: all threads but this one have ended.
            assert_eq!(place.with(|number| unsafe { *number }), DROPPED);
        }
    });
}

/// A reader that falls asleep and wakes up again and again while the writer reclaims: where the fences
/// are needed. With one reader loom may preempt more often.
#[test]
fn loom_cell_waking_while_the_writer_reclaims() {
    explore(4, || {
        let (mut publisher, mut readers) = cell(Tracked::new(0).0, 1);
        let mut reader = readers.pop().unwrap();
        let thread = thread::spawn(move || {
            for _ in 0..2 {
                reader.begin_turn();
                reader.load().look();
                reader.sleep();
            }
        });
        for number in 1..3 {
            publisher.publish(Tracked::new(number).0);
            publisher.reclaim();
        }
        thread.join().unwrap();
        assert_eq!(publisher.reclaim(), 0);
    });
}

/// The publisher goes while a reader still looks.
#[test]
fn loom_cell_reader_outlives_the_publisher() {
    explore(4, || {
        let (first, first_place) = Tracked::new(0);
        let (mut publisher, mut readers) = cell(first, 1);
        let mut reader = readers.pop().unwrap();
        let thread = thread::spawn(move || {
            reader.begin_turn();
            reader.load().look();
            reader.begin_turn();
            reader.load().look();
        });
        let (second, second_place) = Tracked::new(1);
        publisher.publish(second);
        drop(publisher);
        thread.join().unwrap();
        for place in [first_place, second_place] {
            // SAFETY: all threads but this one have ended.
            assert_eq!(place.with(|number| unsafe { *number }), DROPPED);
        }
    });
}
