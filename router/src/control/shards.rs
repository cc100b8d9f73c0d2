//! The threads of the shards: starting them together, and ending them.

use super::handle::ShardsHandle;
use super::registry::{Reconfigure, Registry, shard_name};
use crate::base::id::ListenerId;
use crate::base::limits::REPORTS_MAX;
use crate::io::driver::Driver as _;
use crate::io::uring::{UringDoorbell, UringDriver, UringSizes};
use crate::log;
use crate::log::{Level, Module};
use crate::routing::Snapshot;
use crate::shard::authentication::Workers;
use crate::shard::guard::Guard;
use crate::shard::idle::Idle;
use crate::shard::mailbox::{Mailbox, Message};
use crate::shard::seat::{Presence, Seat, seats};
use crate::shard::slots::ListenerSettings;
use crate::shard::turn::{Others, Shard};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc as reports, oneshot};

/// How often a full mailbox is tried again, and how soon.
const MAILBOX_TRIES: u32 = 500;
const MAILBOX_PAUSE: Duration = Duration::from_millis(1);

/// The threads of the shards, as the control thread knows them.
pub(super) struct Shards {
    mailboxes: Vec<Mailbox<UringDriver>>,
    ended: Vec<oneshot::Receiver<()>>,
    threads: Vec<JoinHandle<Result<(), String>>>,
    presences: Arc<[Presence]>,
    reconfigure: reports::UnboundedSender<Reconfigure>,
}

/// What shards do while there is nothing to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idling {
    /// Whether they block.
    pub(super) idle: Idle,
    /// How long the kernel polls devices before they do; zero: not at all.
    pub(super) napi: Duration,
}

impl Idling {
    /// Lets the kernel poll devices for a shard, if that is wanted. Where it can't, everything works as without.
    fn busy_poll_devices(self, driver: &mut UringDriver, shard: usize) {
        if self.napi.is_zero() {
            return;
        }
        let Err(error) = driver.busy_poll_devices(self.napi) else { return };
        // All shards run on the same kernel.
        if shard == 0 {
            log!(
                Module::Server,
                Level::Warning,
                "'napiMicroseconds' changes nothing: this kernel can't poll network devices for an io_uring \
                 ({error}); it takes Linux 6.9 or newer, built with CONFIG_NET_RX_BUSY_POLL"
            );
        }
    }
}

/// What a shard's thread needs to know of the others before it can start.
struct Introduction {
    doorbells: Vec<UringDoorbell>,
    mailboxes: Vec<Mailbox<UringDriver>>,
    reports: reports::Sender<crate::shard::mailbox::Report>,
}

/// What a shard's thread tells once its ring is there.
type Ready = (usize, UringDoorbell, Mailbox<UringDriver>);

/// The CPUs that this process may run on.
pub(super) fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Starts a shard for each of `cpus`, and returns when they know each other.
pub(super) fn start(
    snapshot: Snapshot,
    settings: &[ListenerSettings],
    cpus: &[Option<usize>],
    idling: Idling,
    workers: Arc<dyn Workers>,
) -> Result<(Shards, Registry), String> {
    let guard = Arc::new(Guard::default());
    let (publisher, seats) = seats(cpus.len(), snapshot.clone());
    let (report, reported) = reports::channel(REPORTS_MAX);
    let (ready, is_ready) = mpsc::channel();
    let (link, linked) = mpsc::channel();
    let presences = seats[0].presences.clone();
    let (reconfigure, reconfigurations) = reports::unbounded_channel();
    let mut shards =
        Shards { mailboxes: Vec::new(), ended: Vec::new(), threads: Vec::new(), presences, reconfigure };
    let mut introduce = Vec::new();
    for (seat, cpu) in seats.into_iter().zip(cpus) {
        let (introduction, introduced) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let seat_number = seat.id.0;
        let start = Start {
            cpu: *cpu,
            seat,
            settings: settings.to_vec(),
            idling,
            workers: workers.clone(),
            guard: guard.clone(),
            ready: ready.clone(),
            introduced,
            linked: Linked { number: seat_number, tell: Some(link.clone()) },
        };
        let thread = std::thread::Builder::new()
            .name(shard_name(start.seat.id))
            .spawn(move || {
                let _end = end;
                start.run()
            })
            .map_err(|error| format!("can't start a thread: {error}"))?;
        introduce.push(introduction);
        shards.ended.push(ended);
        shards.threads.push(thread);
    }
    drop(ready);
    drop(link);
    let mut all: Vec<Ready> = is_ready.iter().take(cpus.len()).collect();
    if all.len() < cpus.len() {
        drop(introduce);
        return Err(shards.join().err().unwrap_or_else(|| "a shard ended at once".to_owned()));
    }
    all.sort_by_key(|(number, ..)| *number);
    shards.mailboxes = all.iter().map(|(_, _, mailbox)| mailbox.clone()).collect();
    for introduction in introduce {
        let sent = introduction.send(Introduction {
            doorbells: all.iter().map(|(_, doorbell, _)| doorbell.clone()).collect(),
            mailboxes: shards.mailboxes.clone(),
            reports: report.clone(),
        });
        if sent.is_err() {
            return Err(shards.join().err().unwrap_or_else(|| "a shard ended at once".to_owned()));
        }
    }
    // The others wait for one that fails: they aren't waited for.
    linked.iter().take(cpus.len()).collect::<Result<Vec<()>, String>>()?;
    let registry = Registry::new(snapshot, publisher, reported, reconfigurations, shards.mailboxes.clone());
    Ok((shards, registry))
}

/// What a shard's thread starts with.
struct Start {
    cpu: Option<usize>,
    seat: Seat,
    settings: Vec<ListenerSettings>,
    idling: Idling,
    workers: Arc<dyn Workers>,
    guard: Arc<Guard>,
    ready: mpsc::Sender<Ready>,
    introduced: mpsc::Receiver<Introduction>,
    linked: Linked,
}

/// Tells whether a shard's connections to the others are open. Dropped before, it says that they never will be.
struct Linked {
    number: u16,
    tell: Option<mpsc::Sender<Result<(), String>>>,
}

impl Linked {
    /// The other end waits for just this.
    fn tell(&mut self, outcome: Result<(), String>) {
        if let Some(tell) = self.tell.take() {
            let _nobody = tell.send(outcome);
        }
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        self.tell(Err(format!("shard {} ended before it was linked with the others", self.number)));
    }
}

impl Start {
    /// The life of a shard's thread. It is pinned before it allocates, so that its memory lies near it.
    fn run(mut self) -> Result<(), String> {
        let number = usize::from(self.seat.id.0);
        if let Some(cpu) = self.cpu {
            let mut set = CpuSet::new();
            set.set(cpu);
            sched_setaffinity(None, &set)
                .map_err(|error| format!("can't pin shard {number} to CPU {cpu}: {error}"))?;
        }
        let unusable = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::OutOfMemory => {
                    "; raise the limit of locked memory (`ulimit -l`, or LimitMEMLOCK in the unit of systemd)"
                }
                _ => "",
            };
            format!("can't set up the io_uring of shard {number}: {error}{hint}")
        };
        let mut driver = UringDriver::new(UringSizes::default()).map_err(unusable)?;
        self.idling.busy_poll_devices(&mut driver, number);
        let (mailbox, messages) = Mailbox::new(driver.waker());
        let doorbell = driver.doorbell().map_err(unusable)?;
        let alone = self.ready.send((number, doorbell, mailbox)).is_err();
        // While one of these is there, a shard that couldn't start would be waited for.
        drop(self.ready);
        let Some(others) = self.introduced.recv().ok().filter(|_| !alone) else {
            // Another shard couldn't start, which is told elsewhere.
            return Ok(());
        };
        let others =
            Others { doorbells: others.doorbells, mailboxes: others.mailboxes, reports: others.reports };
        let shard = Shard::new(driver, self.seat, others, self.settings, messages);
        let mut shard = shard.with_idle(self.idling.idle).with_workers(self.workers).with_guard(self.guard);
        let failed = |error: io::Error| format!("the io_uring of shard {number} failed: {error}");
        while !shard.is_linked() {
            if let Err(error) = shard.turn().map_err(failed) {
                self.linked.tell(Err(error.clone()));
                return Err(error);
            }
        }
        self.linked.tell(Ok(()));
        shard.run().map_err(failed)
    }
}

impl Shards {
    /// What all see of each shard.
    pub(super) fn presences(&self) -> Arc<[Presence]> {
        self.presences.clone()
    }

    /// Lets connections come. One shard accepts for all.
    pub(super) fn listen(&self, sockets: Vec<(ListenerId, TcpListener)>) {
        for (listener, socket) in sockets {
            self.send(0, Message::Listen { listener, socket });
        }
    }

    /// The mailbox of each shard, by its number.
    pub(super) fn mailboxes(&self) -> Vec<Mailbox<UringDriver>> {
        self.mailboxes.clone()
    }

    /// Where changes of the configuration of addresses go.
    pub(super) fn reconfigure(&self) -> reports::UnboundedSender<Reconfigure> {
        self.reconfigure.clone()
    }

    /// What tasks of the control thread tell the shards by.
    pub(super) fn handle(&self) -> ShardsHandle {
        ShardsHandle::new(&self.mailboxes, self.presences.clone())
    }

    /// Tells all shards to close their connections and to end.
    pub(super) fn shut_down(&self) {
        for shard in 0..self.mailboxes.len() {
            self.send(shard, Message::Shutdown);
        }
    }

    /// Puts a message into a shard's mailbox. A full one is emptied within a turn; a shard that is gone has
    /// nothing to be told.
    fn send(&self, shard: usize, mut message: Message<UringDriver>) {
        for _ in 0..MAILBOX_TRIES {
            match self.mailboxes[shard].send(message) {
                Ok(()) => return,
                Err(again) => message = again,
            }
            std::thread::sleep(MAILBOX_PAUSE);
        }
    }

    /// Waits until a shard has ended.
    pub(super) async fn first_ended(&mut self) {
        let mut ended = std::pin::pin!(std::future::poll_fn(|context| {
            let over = self
                .ended
                .iter_mut()
                .any(|ended| !ended.is_terminated() && std::pin::Pin::new(ended).poll(context).is_ready());
            if over { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        }));
        ended.as_mut().await;
    }

    /// Waits until all shards have ended.
    pub(super) async fn all_ended(&mut self) {
        for ended in &mut self.ended {
            if !ended.is_terminated() {
                let _ = ended.await;
            }
        }
    }

    /// The first failure of a shard, if there was one.
    pub(super) fn join(&mut self) -> Result<(), String> {
        let ends = self.threads.drain(..).map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err("a shard panicked, which is a fault of the router".to_owned()))
        });
        // All are waited for, whatever the first says.
        ends.collect::<Vec<_>>().into_iter().collect()
    }
}
