//! Whether a thread that has gone to sleep must be woken, and by whom.
//!
//! # Why no wake-up is lost
//! The consumer says that it sleeps and then looks at its rings once more; a producer publishes and
//! then looks whether the consumer sleeps. Between the two, each has a `SeqCst` fence, so one of the fences
//! comes first: if it is the consumer's, the producer sees that it sleeps, and rings; if it is the
//! producer's, the consumer finds what was published. The same holds for a producer that sees that
//! somebody else has rung already: the consumer will wake up, and look again before its next sleep.
//!
//! # Cost
//! A producer pays one fence and one load of a line that changes only when the consumer sleeps or wakes,
//! per batch. A consumer that never sleeps pays nothing.

use crate::base::sync::{AtomicU32, CacheLine, Ordering, fence};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// What the threads that send to a consumer know of its sleep. One per consumer, shared by all.
///
/// The consumer goes to sleep like this; what blocks must return when a bell rings, also one that rang before
/// it began to block (as an eventfd or a message between io_urings does):
///
/// ```text
/// sleeper.prepare_sleep();
/// if any ring has something { sleeper.cancel_sleep() } else { block; sleeper.awake() }
/// ```
///
/// A bell may ring once though the consumer didn't go to sleep, or woke up for another reason: the consumer
/// must put up with waking for nothing.
#[derive(Debug)]
pub struct Sleeper {
    state: CacheLine<AtomicU32>,
}

impl Default for Sleeper {
    fn default() -> Self {
        Self::new()
    }
}

impl Sleeper {
    /// That of a consumer that is awake.
    #[must_use]
    pub fn new() -> Self {
        Self { state: CacheLine(AtomicU32::new(AWAKE)) }
    }

    /// The consumer is about to block. It has to look at all of its rings after this, and may block only
    /// if they are all empty.
    pub fn prepare_sleep(&self) {
        self.state.0.store(ASLEEP, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The consumer has found something and doesn't block. A bell may be on its way all the same.
    pub fn cancel_sleep(&self) {
        self.awake();
    }

    /// The consumer has stopped blocking, for whatever reason.
    pub fn awake(&self) {
        // Relaxed: a producer that still reads the old value rings a bell for nothing. Not stored again where it
        // holds already: producers read the line each time that they publish.
        if self.state.0.load(Ordering::Relaxed) != AWAKE {
            self.state.0.store(AWAKE, Ordering::Relaxed);
        }
    }

    /// Whether the caller, a producer that has published something since it last asked, must ring. `true` for
    /// one producer only, each time that the consumer sleeps or is about to.
    #[must_use = "a bell that isn't rung leaves the consumer asleep"]
    #[inline]
    pub fn must_ring(&self) -> bool {
        fence(Ordering::SeqCst);
        self.state.0.load(Ordering::Relaxed) == ASLEEP && self.claim_bell()
    }

    #[cold]
    fn claim_bell(&self) -> bool {
        self.state.0.compare_exchange(ASLEEP, AWAKE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, not(ringmain_loom)))]
mod tests {
    use super::Sleeper;
    use crate::mem::ring::ring;
    use std::sync::Arc;
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn one_producer_rings_each_time_that_the_consumer_sleeps() {
        let sleeper = Sleeper::new();
        assert!(!sleeper.must_ring());
        sleeper.prepare_sleep();
        assert!(sleeper.must_ring());
        assert!(!sleeper.must_ring());
        sleeper.awake();
        assert!(!sleeper.must_ring());
        sleeper.prepare_sleep();
        sleeper.cancel_sleep();
        assert!(!sleeper.must_ring());
    }

    /// Two producers wake a consumer that sleeps whenever it can; everything arrives without a time-out.
    #[test]
    fn stress_no_wake_up_is_lost() {
        const PATIENCE: Duration = Duration::from_secs(30);
        let sleeper = Arc::new(Sleeper::new());
        let (mut producers, mut consumers): (Vec<_>, Vec<_>) = (0..2).map(|_| ring::<u64>(16)).unzip();
        let end = Instant::now() + Duration::from_millis(500);
        let consumer = thread::spawn({
            let sleeper = sleeper.clone();
            move || {
                let (mut open, mut taken) = (2, 0u64);
                while open > 0 {
                    let before = taken;
                    for consumer in &mut consumers {
                        while let Some(number) = consumer.pop() {
                            taken += 1;
                            open -= u32::from(number == u64::MAX);
                        }
                    }
                    if taken != before {
                        continue;
                    }
                    sleeper.prepare_sleep();
                    if consumers.iter_mut().all(|consumer| consumer.is_empty()) {
                        let asleep = Instant::now();
                        thread::park_timeout(PATIENCE);
                        assert!(asleep.elapsed() < PATIENCE, "a wake-up was lost");
                    }
                    sleeper.awake();
                }
                taken
            }
        });
        let bell = consumer.thread().clone();
        let sent: u64 = thread::scope(|scope| {
            let threads: Vec<_> = producers
                .drain(..)
                .map(|mut producer| {
                    let (sleeper, bell) = (&sleeper, &bell);
                    scope.spawn(move || {
                        let mut number = 0u64;
                        let mut ended = false;
                        while !ended {
                            ended = Instant::now() >= end;
                            while producer.push(if ended { u64::MAX } else { number }).is_err() {
                                thread::yield_now();
                            }
                            number += 1;
                            producer.publish();
                            if sleeper.must_ring() {
                                bell.unpark();
                            }
                            if number.is_multiple_of(5) {
                                thread::yield_now();
                            }
                        }
                        number
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(consumer.join().unwrap(), sent);
    }
}
