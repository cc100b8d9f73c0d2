//! Threads for what takes long and must not hold up a shard: checking passwords.

use crate::base::limits::PASSWORD_CHECKS_MAX;
use crate::base::lock::Mutex;
use crate::log;
use crate::log::{Level, Module};
use crate::shard::authentication::{Job, Workers};
use rustix::process::nice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError};

/// How much the threads stand back behind others.
const NICENESS: i32 = 5;

/// How many threads there are: on machines with few CPUs one, so that the shards have the others.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() / 4).clamp(1, 4)
}

/// The threads. They are started with the first job.
#[derive(Default)]
pub(super) struct WorkerThreads(Mutex<Option<SyncSender<Job>>>);

impl Workers for WorkerThreads {
    fn give(&self, job: Job) -> Result<(), Job> {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.is_none() {
            *jobs = start();
        }
        let Some(sender) = &*jobs else { return Err(job) };
        sender.try_send(job).map_err(|(TrySendError::Full(job) | TrySendError::Disconnected(job))| job)
    }
}

/// Starts the threads; `None` if none can be started.
fn start() -> Option<SyncSender<Job>> {
    let (sender, jobs) = sync_channel(PASSWORD_CHECKS_MAX);
    let jobs = Arc::new(Mutex::new(jobs));
    let mut started = None;
    for number in 0..threads() {
        let jobs = jobs.clone();
        match std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || work(&jobs)) {
            Ok(_) => started = Some(()),
            Err(error) => {
                log!(Module::Server, Level::Error, "Can't start a thread to check passwords: {error}");
            }
        }
    }
    started.map(|()| sender)
}

/// The life of a thread: one job after the other, until nobody gives any more.
fn work(jobs: &Mutex<Receiver<Job>>) {
    // Where there are too few CPUs the shards come first. A system that doesn't let us is no worse for it.
    let _ = nice(NICENESS);
    loop {
        // Whoever waits for a job holds the lock, and the others wait for the lock.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => {
                // Whoever waits for it is closed when its time is up. The thread is there for the next one.
                if catch_unwind(AssertUnwindSafe(job)).is_err() {
                    log!(
                        Module::Server,
                        Level::Critical,
                        "A worker panicked, which is a fault of the router"
                    );
                }
            }
            Err(_) => return,
        }
    }
}
