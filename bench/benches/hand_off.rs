//! Hand-off between two shards' threads: how long it takes from the push of a batch until its last item is
//! taken on the other side.
//!
//! Each thread is on a CPU of its own. They throw a batch to and fro, and half of a round trip is one way.
//! "spinning": both sides look at their rings without end. "sleeping": both block in their io_uring
//! whenever the ring is empty, and the doorbell goes by a message from ring to ring, as between shards.

use criterion::Criterion;
use ringmain::io::driver::Driver;
use ringmain::io::uring::{UringDoorbell, UringDriver, UringSizes, probe};
use ringmain::mem::doorbell::Sleeper;
use ringmain::mem::ring::{Consumer, Producer, ring};
use ringmain_bench::pin;
use ringmain_bench::samples::{Samples, clock_ns};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Places of a ring: those of the rings between shards.
const PLACES: usize = ringmain::base::limits::HAND_OFFS_MAX;

/// An item: as many bytes as what shards hand over.
type Item = [u64; 4];
const _: () = assert!(size_of::<Item>() == size_of::<ringmain::shard::seat::HandOff>());

/// The item that ends the partner.
const END: u64 = u64::MAX;

/// How one side waits for the other.
trait Wait {
    /// What was pushed is published: the other side is to know.
    fn published(&mut self);
    /// Returns when `consumer` may have something.
    fn wait(&mut self, consumer: &mut Consumer<Item>);
}

/// By looking.
struct Spin;

impl Wait for Spin {
    fn published(&mut self) {}

    fn wait(&mut self, consumer: &mut Consumer<Item>) {
        while consumer.is_empty() {
            std::hint::spin_loop();
        }
    }
}

/// By blocking in its io_uring.
struct Sleep {
    driver: UringDriver,
    /// This side's.
    own: Arc<Sleeper>,
    other: Arc<Sleeper>,
    bell: UringDoorbell,
    /// How often this side blocked.
    blocked: u64,
}

impl Wait for Sleep {
    fn published(&mut self) {
        if self.other.must_ring() {
            self.driver.ring_doorbell(&self.bell);
        }
    }

    /// A turn as a shard's: the bell goes out with the wait. Where there is something already, a bell that
    /// is still here goes out without a wait.
    fn wait(&mut self, consumer: &mut Consumer<Item>) {
        while consumer.is_empty() {
            self.own.prepare_sleep();
            if consumer.is_empty() {
                self.driver.submit_and_wait(None).expect("the ring works");
                self.blocked += 1;
                self.own.awake();
            } else {
                self.own.cancel_sleep();
                let now = self.driver.now();
                self.driver.submit_and_wait(Some(now)).expect("the ring works");
            }
            while self.driver.next_completion().is_some() {}
        }
    }
}

/// One side's ends of the two rings.
struct Side<W> {
    to: Producer<Item>,
    from: Consumer<Item>,
    wait: W,
}

impl<W: Wait> Side<W> {
    fn send(&mut self, batch: usize, mark: u64) {
        for number in 0..batch as u64 {
            assert!(self.to.push([number, mark, 0, 0]).is_ok(), "the other side has taken the last batch");
        }
        self.to.publish();
        self.wait.published();
    }

    /// Takes a batch; whether it was not the last one.
    fn recv(&mut self, batch: usize) -> bool {
        let mut goes_on = true;
        for _ in 0..batch {
            let item = loop {
                if let Some(item) = self.from.pop() {
                    break item;
                }
                self.wait.wait(&mut self.from);
            };
            goes_on &= item[1] != END;
        }
        self.from.release();
        goes_on
    }
}

/// Throws batches to and fro, and gives back how long each round took.
fn play<W: Wait>(side: &mut Side<W>, batch: usize, rounds: u64) -> Samples {
    let mut samples = Samples::default();
    let mut before = Instant::now();
    for _ in 0..rounds {
        side.send(batch, 0);
        side.recv(batch);
        let now = Instant::now();
        samples.push(now - before);
        before = now;
    }
    samples
}

/// Answers each batch until told to end.
fn answer<W: Wait>(side: &mut Side<W>, batch: usize, ended: &AtomicBool) {
    while side.recv(batch) {
        side.send(batch, 0);
    }
    ended.store(true, Ordering::Release);
}

fn rings() -> (Producer<Item>, Consumer<Item>, Producer<Item>, Consumer<Item>) {
    let (to_there, from_here) = ring(PLACES);
    let (to_here, from_there) = ring(PLACES);
    (to_there, from_there, to_here, from_here)
}

fn driver() -> UringDriver {
    // Nothing is received here.
    let sizes =
        UringSizes { buffer_count: 8, buffer_size: 4096, submission_entries: 64, completion_entries: 256 };
    UringDriver::new(sizes).expect("an io_uring")
}

/// A partner on another CPU, and this thread's side of it.
struct Game<W> {
    side: Side<W>,
    batch: usize,
    partner: Option<thread::JoinHandle<()>>,
    ended: Arc<AtomicBool>,
}

fn spinning(cpus: &[usize], batch: usize) -> Game<Spin> {
    let (to, from, to_here, from_here) = rings();
    let ended = Arc::new(AtomicBool::new(false));
    let (cpus, over) = (cpus.to_vec(), ended.clone());
    let partner = thread::spawn(move || {
        pin::to_place(&cpus, 1);
        answer(&mut Side { to: to_here, from: from_here, wait: Spin }, batch, &over);
    });
    Game { side: Side { to, from, wait: Spin }, batch, partner: Some(partner), ended }
}

fn sleeping(cpus: &[usize], batch: usize) -> Game<Sleep> {
    let (to, from, to_here, from_here) = rings();
    let ended = Arc::new(AtomicBool::new(false));
    let driver = driver();
    let (here, there) = (Arc::new(Sleeper::new()), Arc::new(Sleeper::new()));
    let (tell, told) = mpsc::channel();
    let bell = driver.doorbell().expect("a descriptor");
    let partner = thread::spawn({
        let (own, other, cpus, over) = (there.clone(), here.clone(), cpus.to_vec(), ended.clone());
        move || {
            pin::to_place(&cpus, 1);
            let driver = self::driver();
            tell.send(driver.doorbell().expect("a descriptor")).expect("the other side waits for it");
            let wait = Sleep { driver, own, other, bell, blocked: 0 };
            answer(&mut Side { to: to_here, from: from_here, wait }, batch, &over);
        }
    });
    let bell = told.recv().expect("the other side's bell");
    let wait = Sleep { driver, own: here, other: there, bell, blocked: 0 };
    Game { side: Side { to, from, wait }, batch, partner: Some(partner), ended }
}

impl Game<Spin> {
    fn end(mut self) {
        self.side.send(self.batch, END);
        self.join();
    }
}

impl Game<Sleep> {
    /// Ends the partner; how many times this side blocked.
    fn end(mut self) -> u64 {
        self.side.send(self.batch, END);
        let now = self.side.wait.driver.now();
        self.side.wait.driver.submit_and_wait(Some(now)).expect("the ring works");
        self.join();
        self.side.wait.blocked
    }
}

impl<W> Game<W> {
    fn join(&mut self) {
        if let Some(partner) = self.partner.take() {
            partner.join().expect("the partner ends in good order");
        }
        assert!(self.ended.load(Ordering::Acquire));
    }
}

/// Half of a round trip, as often as Criterion wants it.
fn one_way(game: &mut Side<impl Wait>, batch: usize, iterations: u64, all: &mut Samples) -> Duration {
    let mut samples = play(game, batch, iterations);
    all.extend(&samples);
    samples.typical(iterations) / 2
}

fn main() {
    let cpus = pin::allowed();
    pin::to_place(&cpus, 0);
    if cpus.len() < 2 {
        println!("one CPU only: what follows is time slices of the scheduler, not hand-off");
    }
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let mut lines = Vec::new();
    let mut group = criterion.benchmark_group("hand-off");
    for batch in [1, 16] {
        let mut game = spinning(&cpus, batch);
        let mut all = Samples::default();
        group.bench_function(format!("to a spinning thread, batch of {batch}"), |bencher| {
            bencher.iter_custom(|iterations| one_way(&mut game.side, batch, iterations, &mut all));
        });
        game.end();
        lines.push(all.line(&format!("spinning, batch of {batch}"), 2));
    }
    if let Err(unsupported) = probe() {
        println!("SKIPPED: the sleeping side: {unsupported}");
    } else {
        for batch in [1, 16] {
            let mut game = sleeping(&cpus, batch);
            let mut all = Samples::default();
            group.bench_function(format!("to a sleeping thread, batch of {batch}"), |bencher| {
                bencher.iter_custom(|iterations| one_way(&mut game.side, batch, iterations, &mut all));
            });
            let blocked = game.end();
            lines.push(format!(
                "{}   (blocked {blocked} times)",
                all.line(&format!("sleeping, batch of {batch}"), 2)
            ));
        }
    }
    group.finish();
    println!("\nOne way, warming up included (reading the clock: {} ns of each round trip):", clock_ns());
    println!("{}", Samples::head());
    for line in lines {
        println!("{line}");
    }
}
