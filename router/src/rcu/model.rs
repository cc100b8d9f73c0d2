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
        let place = Arc::new(UnsafeCell::new(number));
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

/// Bounded: two preemptions find what fewer than three threads' worth of bad luck can cause.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// One writer publishes twice and reclaims in between and after; two readers turn, look and sleep.
#[test]
fn loom_cell_with_two_readers() {
    explore(2, || {
        let (values, places): (Vec<_>, Vec<_>) = (0..3).map(Tracked::new).unzip();
        let mut values = values.into_iter();
        let (mut publisher, readers) = cell(values.next().unwrap(), 2);
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
        for value in values {
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
        let (values, _places): (Vec<_>, Vec<_>) = (0..3).map(Tracked::new).unzip();
        let mut values = values.into_iter();
        let (mut publisher, mut readers) = cell(values.next().unwrap(), 1);
        let mut reader = readers.pop().unwrap();
        let thread = thread::spawn(move || {
            for _ in 0..2 {
                reader.begin_turn();
                reader.load().look();
                reader.sleep();
            }
        });
        for value in values {
            publisher.publish(value);
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
        let (values, places): (Vec<_>, Vec<_>) = (0..2).map(Tracked::new).unzip();
        let mut values = values.into_iter();
        let (mut publisher, mut readers) = cell(values.next().unwrap(), 1);
        let mut reader = readers.pop().unwrap();
        let thread = thread::spawn(move || {
            reader.begin_turn();
            reader.load().look();
            reader.begin_turn();
            reader.load().look();
        });
        publisher.publish(values.next().unwrap());
        drop(publisher);
        thread.join().unwrap();
        for place in places {
            // SAFETY: all threads but this one have ended.
            assert_eq!(place.with(|number| unsafe { *number }), DROPPED);
        }
    });
}
