//! Every schedule of small programs over the ring and the doorbell, explored by loom (`scripts/loom`).

use super::doorbell::Sleeper;
use super::ring::{Consumer, Producer, ring};
use crate::base::sync::Arc;
use loom::thread;

/// `preemptions` is how often loom takes a thread off that could go on. Two for three threads take seconds;
/// three take a minute each.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// More items than places, in batches, between two threads: each place is used again.
#[test]
fn loom_ring_keeps_order() {
    explore(3, || {
        let (mut producer, mut consumer) = ring::<Box<u32>>(2);
        let thread = thread::spawn(move || {
            let mut number = 0;
            while number < 4 {
                match producer.push(Box::new(number)) {
                    Ok(()) => number += 1,
                    Err(_) => thread::yield_now(),
                }
                if number % 2 == 0 {
                    producer.publish();
                }
            }
        });
        let mut expected = 0;
        while expected < 4 {
            match consumer.pop() {
                Some(number) => {
                    assert_eq!(*number, expected);
                    expected += 1;
                }
                None => thread::yield_now(),
            }
        }
        thread.join().unwrap();
    });
}

/// Either end goes first, with items that were never taken and items that were never published.
#[test]
fn loom_ring_frees_what_is_left() {
    explore(3, || {
        let item = Arc::new(());
        let (mut producer, mut consumer) = ring::<Arc<()>>(4);
        let thread = thread::spawn({
            let item = item.clone();
            move || {
                for _ in 0..2 {
                    producer.push(item.clone()).unwrap();
                }
                producer.publish();
                producer.push(item).unwrap();
            }
        });
        consumer.pop();
        drop(consumer);
        thread.join().unwrap();
        assert_eq!(Arc::strong_count(&item), 1);
    });
}

fn send(mut producer: Producer<u32>, sleeper: &Sleeper, consumer: &thread::Thread) {
    for number in 0..2 {
        producer.push(number).unwrap();
        producer.publish();
        if sleeper.must_ring() {
            consumer.unpark();
        }
    }
}

/// Takes all that is there; returns how many that was.
fn drain(consumers: &mut [Consumer<u32>]) -> usize {
    consumers.iter_mut().map(|consumer| std::iter::from_fn(|| consumer.pop()).count()).sum()
}

/// Two producers and a consumer that sleeps whenever it finds nothing. A wake-up that is lost leaves it
/// blocked when both have ended, which loom reports as a deadlock.
#[test]
fn loom_doorbell_wakes_the_consumer() {
    explore(2, || {
        let sleeper = Arc::new(Sleeper::new());
        let (producers, mut consumers): (Vec<_>, Vec<_>) = (0..2).map(|_| ring::<u32>(2)).unzip();
        let consumer = thread::current();
        let threads: Vec<_> = producers
            .into_iter()
            .map(|producer| {
                let (sleeper, consumer) = (sleeper.clone(), consumer.clone());
                thread::spawn(move || send(producer, &sleeper, &consumer))
            })
            .collect();
        let mut taken = 0;
        while taken < 4 {
            taken += drain(&mut consumers);
            if taken == 4 {
                break;
            }
            sleeper.prepare_sleep();
            if consumers.iter_mut().all(Consumer::is_empty) {
                thread::park();
                sleeper.awake();
            } else {
                sleeper.cancel_sleep();
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
