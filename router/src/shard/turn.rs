//! The loop of a shard: one turn after another (design: completions in, work, output out).

use super::Core;
use super::activity::Doing;
use super::authentication::{Worked, Workers};
use super::guard::{Guard, HalfOpen, TooMany};
use super::idle::Idle;
use super::mailbox::{DialledEvent, Mailbox, Message, Report};
use super::neighbours::Neighbour;
use super::seat::{Presence, Seat};
use super::share::Late;
use super::slots::{ListenerSettings, Origin, SharedSettings};
use super::tls::Shaken;
use crate::base::buffer::EMPTY_FRAME;
use crate::base::id::{ConnectionKey, ListenerId, ShardId};
use crate::base::limits::{
    COMPLETIONS_PER_TURN_MAX, CONNECTIONS_MAX, HELD_BYTES_MAX, OUTPUT_ANSWERS_MAX, OUTPUT_BACKLOG_MAX,
    OUTPUT_MAX,
};
use crate::base::time::Instant;
use crate::engine::Fault;
use crate::io::driver::{Chunks, Completion, Driver};
use crate::log;
use crate::log::{Level, Module};
use crate::routing::Snapshot;
use ringmain_codec::Condition;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

/// How long peers have, when the router stops, to answer its close.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(800);

/// How soon a report is tried again that the control thread had no room for.
const REPORT_RETRY: Duration = Duration::from_millis(1);

/// A shard with its driver.
pub struct Shard<D: Driver> {
    pub(super) driver: D,
    pub(super) core: Core,
    listeners: HashMap<ListenerId, SharedSettings>,
    mailbox: Receiver<Message<D>>,
    presences: Arc<[Presence]>,
    neighbours: Vec<Neighbour<D::Doorbell>>,
    pub(super) mailboxes: Vec<Mailbox<D>>,
    /// Who does what takes long; `None`: the shard itself.
    pub(super) workers: Option<Arc<dyn Workers>>,
    /// What comes back from them.
    pub(super) worked: (mpsc::Sender<Worked>, Receiver<Worked>),
    /// The same of TLS handshakes.
    pub(super) shaken: (mpsc::Sender<Shaken>, Receiver<Shaken>),
    reports: Option<Sender<Report>>,
    shutdown: Option<Instant>,
    idle: Idle,
    /// When something last came: the spinning of [`Idle::SpinThenBlock`] counts from there.
    came_at: Instant,
    /// Tells turns apart, for whose share of which turn is used up.
    pub(super) turn: u32,
    /// What waits for a later turn, in order.
    pub(super) deferred: VecDeque<(ConnectionKey, Late<D::Received>)>,
    /// Connections at rest that were looked at in the last turn.
    pub(super) looked_at: Vec<ConnectionKey>,
}

/// How a shard reaches the other shards and the control thread.
pub struct Others<D: Driver> {
    /// What wakes each shard, by its number.
    pub doorbells: Vec<D::Doorbell>,
    /// The mailbox of each shard.
    pub mailboxes: Vec<Mailbox<D>>,
    /// Where it reports its receivers to.
    pub reports: Sender<Report>,
}

impl<D: Driver> Shard<D> {
    /// A shard without others, that serves connections of `listeners`, by their [`ListenerId`].
    pub fn alone(
        driver: D,
        snapshot: Snapshot,
        listeners: Vec<ListenerSettings>,
        mailbox: Receiver<Message<D>>,
    ) -> Self {
        let (_publisher, seat) = Seat::alone(snapshot);
        Self::seated(driver, seat, None, listeners, mailbox)
    }

    /// A shard among others.
    pub fn new(
        driver: D,
        seat: Seat,
        others: Others<D>,
        listeners: Vec<ListenerSettings>,
        mailbox: Receiver<Message<D>>,
    ) -> Self {
        Self::seated(driver, seat, Some(others), listeners, mailbox)
    }

    fn seated(
        driver: D,
        seat: Seat,
        others: Option<Others<D>>,
        listeners: Vec<ListenerSettings>,
        mailbox: Receiver<Message<D>>,
    ) -> Self {
        let listeners = (0..).map(ListenerId).zip(listeners.into_iter().map(SharedSettings::new)).collect();
        let Seat { id, presences, rings, mut routes } = seat;
        routes.begin_turn();
        let mut core = Core::new(id, presences.len(), routes);
        core.set_now(driver.now());
        let mut neighbours = Vec::new();
        let (doorbells, mailboxes, reports) = match others {
            Some(others) => (others.doorbells, others.mailboxes, Some(others.reports)),
            None => (Vec::new(), Vec::new(), None),
        };
        for ((number, rings), doorbell) in (0..).zip(rings).zip(doorbells) {
            let Some(rings) = rings else { continue };
            let shard = ShardId(number);
            let connection = core.open_neighbour(shard);
            neighbours.push(Neighbour { shard, rings, connection, doorbell, pushed: false });
        }
        let came_at = core.now;
        Self {
            driver,
            core,
            listeners,
            mailbox,
            presences,
            neighbours,
            mailboxes,
            workers: None,
            worked: mpsc::channel(),
            shaken: mpsc::channel(),
            reports,
            shutdown: None,
            idle: Idle::default(),
            came_at,
            turn: 0,
            deferred: VecDeque::new(),
            looked_at: Vec::new(),
        }
    }

    /// The same shard, which does this while there is nothing to do.
    #[must_use]
    pub fn with_idle(mut self, idle: Idle) -> Self {
        self.idle = idle;
        self
    }

    /// The same shard, which has these threads do what takes long.
    #[must_use]
    pub fn with_workers(mut self, workers: Arc<dyn Workers>) -> Self {
        self.workers = Some(workers);
        self
    }

    /// The same shard, which shares with the others what it knows of those who haven't shown who they are.
    #[must_use]
    pub fn with_guard(mut self, guard: Arc<Guard>) -> Self {
        self.core.guard = guard;
        self
    }

    /// Whether the connections to all other shards are open: from then on clients may come.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        self.core.is_linked()
    }

    /// Starts accepting on a listener's socket.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn listen(&mut self, listener: ListenerId, socket: D::Listener) -> io::Result<()> {
        self.driver.listen(listener, socket)
    }

    /// Turns until it is told to shut down and everything is closed.
    ///
    /// # Errors
    /// When the driver fails for good.
    pub fn run(&mut self) -> io::Result<()> {
        while !self.is_done() {
            self.turn()?;
        }
        self.doing(Doing::Waiting);
        Ok(())
    }

    /// Whether the shard was told to shut down and has nothing left to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.shutdown.is_some_and(|deadline| {
            // Nobody waits for the router's own connections.
            let internal = self.neighbours.len() + usize::from(self.core.agent.is_some());
            self.core.connections.len() == internal || self.core.now >= deadline
        })
    }

    /// What the shard holds and has counted.
    #[must_use]
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// One turn. The only clock read, bounded work, one send per connection.
    ///
    /// # Errors
    /// When the driver fails for good.
    pub fn turn(&mut self) -> io::Result<()> {
        let deadline = self.prepare_wait();
        self.doing(Doing::Waiting);
        let waited = self.driver.submit_and_wait(deadline);
        let presence = &self.presences[usize::from(self.core.shard.0)];
        presence.sleeper.awake();
        presence.activity.begin_turn();
        self.core.routes.begin_turn();
        waited?;
        self.doing(Doing::Completions);
        self.core.set_now(self.driver.now());
        self.turn = self.turn.wrapping_add(1);
        self.take_deferred();
        let mut batch = 0;
        while batch < COMPLETIONS_PER_TURN_MAX {
            let Some(completion) = self.driver.next_completion() else { break };
            self.take(completion);
            batch += 1;
        }
        let mut came = batch > 0;
        if came {
            self.core.measuring.meters.batches.record(batch as u64, 1);
        }
        self.doing(Doing::HandOffs);
        came |= self.recv_hand_offs();
        if came {
            self.came_at = self.core.now;
        }
        self.doing(Doing::Timers);
        self.core.expire_timers();
        self.look_at_resting();
        if !self.core.exchanges_due.is_empty() {
            self.let_work();
        }
        self.shake_hands();
        self.doing(Doing::Credit);
        self.core.grant_credit();
        self.core.end_all_retired();
        self.core.end_sessions_of_auto_links();
        self.report();
        self.doing(Doing::Flush);
        self.flush();
        self.end_shortage();
        self.ring_doorbells();
        self.measure();
        self.core.survey();
        Ok(())
    }

    /// Measures how long what went straight in this turn took.
    #[inline]
    fn measure(&mut self) {
        if self.core.has_forwarded() {
            self.core.measure_turn(self.driver.read_clock());
        }
    }

    /// Publishes what the shard turns to.
    #[inline]
    fn doing(&self, doing: Doing) {
        self.presences[usize::from(self.core.shard.0)].activity.set(doing);
    }

    /// Decides whether the next wait may block, and returns until when it may: not at all if there is something
    /// to do, or while the shard spins. Says that the shard sleeps if it may.
    pub(super) fn prepare_wait(&mut self) -> Option<Instant> {
        if self.idle.spins(self.core.now.since(self.came_at)) {
            std::hint::spin_loop();
            return Some(self.core.now);
        }
        self.core.routes.sleep();
        self.presences[usize::from(self.core.shard.0)].sleeper.prepare_sleep();
        // Whoever pushes from here on rings the doorbell.
        let handed = self.neighbours.iter_mut().any(|neighbour| !neighbour.rings.from.is_empty());
        let surveys = self.core.is_surveying();
        if handed || surveys || !self.core.dirty.is_empty() || !self.deferred.is_empty() {
            return Some(self.core.now);
        }
        let retry = self.core.is_report_waiting().then(|| self.core.now + REPORT_RETRY);
        [self.core.next_deadline(), self.shutdown, retry].into_iter().flatten().min()
    }

    /// Takes what the other shards have pushed. Tells whether there was something.
    fn recv_hand_offs(&mut self) -> bool {
        let mut came = false;
        for neighbour in &mut self.neighbours {
            came |= !neighbour.rings.from.is_empty();
            // Whoever waits for room is woken like one that was given something.
            neighbour.pushed |= neighbour.recv(&mut self.core);
            let waits =
                self.core.connections.get(neighbour.connection).is_some_and(|slot| slot.out.pending() > 0);
            if waits {
                self.core.mark_dirty(neighbour.connection);
            }
        }
        came
    }

    /// Tells the control thread what has changed. What it can't take now goes with the next turn.
    fn report(&mut self) {
        let Some(reports) = &self.reports else { return };
        let Some(report) = self.core.take_report() else { return };
        match reports.try_send(report) {
            Ok(()) => {}
            Err(TrySendError::Full(report) | TrySendError::Closed(report)) => self.core.untake_report(report),
        }
    }

    /// Shows the other shards what was pushed in this turn, and wakes those that sleep.
    fn ring_doorbells(&mut self) {
        for neighbour in &mut self.neighbours {
            if !std::mem::take(&mut neighbour.pushed) {
                continue;
            }
            neighbour.rings.to.publish();
            if self.presences[usize::from(neighbour.shard.0)].sleeper.must_ring() {
                self.driver.ring_doorbell(&neighbour.doorbell);
            }
        }
    }

    fn take(&mut self, completion: Completion<D::Socket, D::Received>) {
        match completion {
            Completion::Received { connection, buffer } => self.received(connection, buffer),
            Completion::Sent { connection, chunks, result } => self.sent(connection, chunks, result),
            Completion::Accepted { listener, socket, peer } => {
                let Some(settings) = self.listeners.get(&listener) else { return };
                if self.shutdown.is_some() {
                    return;
                }
                // Who operates the router from its own machine can do so whatever comes from outside.
                if !peer.ip().to_canonical().is_loopback() && self.driver.is_last_descriptor(&socket) {
                    return self.turn_away(listener, peer, TooMany::OfProcess);
                }
                let half_open = self.core.guard.admit(listener, peer.ip(), settings.listener.half_open);
                let half_open = match half_open {
                    Ok(half_open) => Some(half_open),
                    Err(limit) => return self.turn_away(listener, peer, limit),
                };
                let shard = self.place(settings.listener.shard);
                self.presences[usize::from(shard.0)].connections.fetch_add(1, Ordering::Relaxed);
                if shard == self.core.shard {
                    self.serve(listener, socket, peer, half_open);
                } else {
                    self.hand_over(shard, listener, socket, peer, half_open);
                }
            }
            Completion::AcceptFailed { listener, error } => log!(
                Module::Server,
                Level::Error,
                "Listener {} can't accept connections for now: {error}. It goes on trying; raise the limit of \
                 open files (ulimit -n) if this one is too low",
                listener.0
            ),
            Completion::ReceiveEnded { connection, error } => self.receive_ended(connection, error),
            Completion::Closed { connection } => {
                self.core.agent.take_if(|agent| *agent == connection);
                let gone = self.core.connections.remove(connection);
                if gone.is_some_and(|slot| slot.party.is_outside()) {
                    let me = usize::from(self.core.shard.0);
                    self.presences[me].connections.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Completion::Woken => {
                self.take_worked();
                self.take_shaken();
                while let Ok(message) = self.mailbox.try_recv() {
                    self.take_message(message);
                }
            }
        }
    }

    fn take_message(&mut self, message: Message<D>) {
        match message {
            Message::Shutdown => self.shut_down(),
            Message::Changed(keys) => {
                // This turn may have begun before the snapshot was published that the message speaks of.
                self.core.routes.begin_turn();
                self.core.consumers_changed(&keys);
            }
            Message::Published(sequence) => self.core.published(sequence),
            Message::Adopt { listener, socket, peer, half_open } => {
                self.serve(listener, socket, peer, half_open);
            }
            Message::Listen { listener, socket } => {
                if self.shutdown.is_none()
                    && let Err(error) = self.listen(listener, socket)
                {
                    log!(
                        Module::Server,
                        Level::Critical,
                        "Listener {} can't accept connections: {error}",
                        listener.0
                    );
                }
            }
            Message::AddListener { listener, settings } => {
                self.listeners.insert(listener, SharedSettings::new(ListenerSettings::clone(&settings)));
            }
            Message::RemoveListener(listener) => {
                self.driver.stop_listening_on(listener);
                self.listeners.remove(&listener);
            }
            Message::Dialled { settings, socket, peer, dialler } => {
                self.serve_dialled(*settings, socket, peer, dialler);
            }
            Message::HangUp(connection) => self.core.hang_up(connection),
            // A router that stops needs no management any more.
            Message::Agent(_) if self.shutdown.is_some() => {}
            Message::Agent(socket) => {
                let key = self.core.accept_agent();
                self.driver.open(key, socket);
            }
            Message::Survey(survey) => self.core.begin_survey(survey),
            Message::Close { connection, reply } => {
                // Whoever asked may have stopped waiting.
                let _gone = reply.send(self.core.close_for_management(connection));
            }
            Message::Trace { connection, is_on, reply } => {
                // Whoever asked may have stopped waiting.
                let _gone = reply.send(self.core.set_trace(connection, is_on));
            }
            Message::RetireTls { profile, oldest } => self.core.retire_tls(&profile, oldest),
            Message::AddAutoLink(auto_link) => self.core.add_auto_link(&auto_link),
            Message::RemoveAutoLink(auto_link) => self.core.remove_auto_link(&auto_link),
        }
    }

    /// The shard for a new connection: the one that its listener names, or the one with the fewest.
    fn place(&self, named: Option<ShardId>) -> ShardId {
        let exists = |shard: &ShardId| usize::from(shard.0) < self.presences.len();
        named.filter(exists).unwrap_or_else(|| {
            (0..)
                .zip(self.presences.iter())
                .min_by_key(|(_, presence)| presence.connections.load(Ordering::Relaxed))
                .map_or(self.core.shard, |(number, _)| ShardId(number))
        })
    }

    /// Serves a connection here that was dialled.
    fn serve_dialled(
        &mut self,
        settings: ListenerSettings,
        socket: D::Socket,
        peer: SocketAddr,
        dialler: Sender<DialledEvent>,
    ) {
        if self.shutdown.is_some() || self.core.connections.len() >= CONNECTIONS_MAX {
            let me = usize::from(self.core.shard.0);
            self.presences[me].connections.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let key = self.core.dial(peer, &SharedSettings::new(settings), dialler);
        self.driver.open(key, socket);
    }

    /// Serves a connection here.
    fn serve(
        &mut self,
        listener: ListenerId,
        socket: D::Socket,
        peer: SocketAddr,
        half_open: Option<HalfOpen>,
    ) {
        let settings = self.listeners.get(&listener);
        let full = self.core.connections.len() >= CONNECTIONS_MAX;
        if full {
            log!(
                Module::Server,
                Level::Error,
                "A connection from {peer} is closed: the shard has {CONNECTIONS_MAX}"
            );
        }
        let settings = settings.filter(|_| self.shutdown.is_none() && !full);
        let counted = settings.and_then(|_| self.core.count_client(peer));
        if let (Some(settings), Some(counted)) = (settings, counted) {
            let key = self.core.accept(peer, settings, half_open, counted);
            self.driver.open(key, socket);
        } else {
            let me = usize::from(self.core.shard.0);
            self.presences[me].connections.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Notes that a connection was closed as soon as it came, since too many aren't open yet.
    fn turn_away(&mut self, listener: ListenerId, peer: SocketAddr, limit: TooMany) {
        self.core.refused_half_open += 1;
        // Whoever floods the router doesn't flood its log: the 1st is told, the 2nd, the 4th, and so on.
        if !self.core.refused_half_open.is_power_of_two() {
            return;
        }
        let reason = match limit {
            TooMany::OfListener => "too many aren't open yet ('maxHalfOpen')",
            TooMany::OfBlock => "too many from that network aren't open yet ('maxHalfOpenPerNetwork')",
            TooMany::OfProcess => {
                "the last descriptors are kept for the router itself; raise the limit of open files"
            }
        };
        log!(
            Module::Server,
            Level::Warning,
            "A connection from {peer} to listener {} is closed at once: {reason}. Closed so in all: {}",
            listener.0,
            self.core.refused_half_open
        );
    }

    /// Gives an accepted connection to another shard, or serves it here if that one is behind.
    fn hand_over(
        &mut self,
        shard: ShardId,
        listener: ListenerId,
        socket: D::Socket,
        peer: SocketAddr,
        half_open: Option<HalfOpen>,
    ) {
        let message = Message::Adopt { listener, socket, peer, half_open };
        let Some(Err(message)) =
            self.mailboxes.get(usize::from(shard.0)).map(|mailbox| mailbox.send(message))
        else {
            return;
        };
        self.presences[usize::from(shard.0)].connections.fetch_sub(1, Ordering::Relaxed);
        self.presences[usize::from(self.core.shard.0)].connections.fetch_add(1, Ordering::Relaxed);
        if let Message::Adopt { listener, socket, peer, half_open } = message {
            self.serve(listener, socket, peer, half_open);
        }
    }

    fn shut_down(&mut self) {
        if self.shutdown.is_some() {
            return;
        }
        self.driver.stop_listening();
        self.shutdown = Some(self.core.now + SHUTDOWN_TIMEOUT);
        self.core.close_all(&Fault::new(Condition::CONNECTION_FORCED, "the router is shutting down"));
    }

    fn sent(&mut self, connection: ConnectionKey, chunks: Chunks, result: io::Result<()>) {
        for chunk in chunks {
            self.core.pool.give_back(chunk);
        }
        let Some(slot) = self.core.connections.get_mut(connection) else { return };
        slot.sending = false;
        slot.progress = self.core.now;
        let drained = slot.out.pending() < OUTPUT_BACKLOG_MAX;
        if let Err(error) = result {
            slot.out.clear();
            self.core.receive_ended(connection, Some(&error));
            self.close(connection);
            return;
        }
        if drained {
            if std::mem::take(&mut slot.paused) && slot.is_read() {
                slot.engine.heard(self.core.now);
                self.driver.resume_receiving(connection);
            }
            self.core.unblock(connection);
        }
        self.core.mark_dirty(connection);
    }

    /// Gives what each connection has to send to the kernel, and closes those that have said everything.
    fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.core.dirty);
        for connection in dirty.drain(..) {
            self.flush_connection(connection);
        }
        // What this made dirty is seen to in the next turn, which doesn't wait then.
        if self.core.dirty.is_empty() {
            self.core.dirty = dirty;
        }
    }

    fn flush_connection(&mut self, connection: ConnectionKey) {
        let now = self.core.now;
        let Some(slot) = self.core.connections.get_mut(connection) else { return };
        slot.dirty = false;
        if !slot.over {
            slot.engine.flush(&mut slot.out);
        }
        if slot.closing {
            slot.out.clear();
            return;
        }
        if slot.held_for.is_some() {
            return;
        }
        if let Origin::Neighbour(shard) = slot.origin {
            self.flush_neighbour(shard);
            return;
        }
        let pending = slot.out.pending();
        if pending > OUTPUT_MAX && !slot.over {
            self.core.close_overloaded(connection);
        }
        let Some(slot) = self.core.connections.get_mut(connection) else { return };
        if slot.out.pending() > 0
            && !slot.sending
            && slot.is_plain()
            && !slot.is_traced()
            && slot.out.take_empty_frame()
        {
            slot.sending = true;
            slot.progress = now;
            slot.engine.spoke(now);
            self.driver.send_static(connection, EMPTY_FRAME);
        } else if !slot.sending {
            let chunks = slot.next_chunks(&self.core.pool);
            if !chunks.is_empty() {
                slot.sending = true;
                slot.progress = now;
                slot.engine.spoke(now);
                self.driver.send(connection, chunks);
            }
        }
        let was_read = slot.is_read();
        slot.paused |= pending > OUTPUT_ANSWERS_MAX;
        if self.core.held_bytes > HELD_BYTES_MAX && slot.held_bytes > 0 && !slot.over_budget {
            slot.over_budget = true;
            self.core.over_budget.push(connection);
        }
        if was_read && (slot.paused || slot.over_budget) {
            self.driver.pause_receiving(connection);
        }
        let said_all = slot.is_all_sent() && !slot.sending && (slot.engine.is_finished() || slot.peer_ended);
        if said_all && !slot.engine.is_given_up() && slot.say_goodbye() {
            // The end of the records goes with a flush of its own.
            self.core.mark_dirty(connection);
            return;
        }
        if said_all || slot.engine.is_given_up() {
            slot.out.clear();
            self.close(connection);
        } else {
            self.core.arm(connection);
        }
    }

    /// Reads the connections again that weren't because too much payload was held, once much of it has gone.
    fn end_shortage(&mut self) {
        if self.core.over_budget.is_empty() || self.core.held_bytes > HELD_BYTES_MAX / 2 {
            return;
        }
        for connection in std::mem::take(&mut self.core.over_budget) {
            let Some(slot) = self.core.connections.get_mut(connection) else { continue };
            slot.over_budget = false;
            if slot.is_read() {
                slot.engine.heard(self.core.now);
                self.driver.resume_receiving(connection);
            }
        }
    }

    fn flush_neighbour(&mut self, shard: ShardId) {
        let Some(neighbour) = self.neighbours.iter_mut().find(|neighbour| neighbour.shard == shard) else {
            return;
        };
        neighbour.send(&mut self.core);
        let Some(slot) = self.core.connections.get(neighbour.connection) else { return };
        if neighbour.pushed && !slot.blocked.is_empty() && slot.out.pending() < OUTPUT_BACKLOG_MAX {
            self.core.unblock(neighbour.connection);
        }
    }

    pub(super) fn close(&mut self, connection: ConnectionKey) {
        if let Some(slot) = self.core.connections.get_mut(connection)
            && !std::mem::replace(&mut slot.closing, true)
        {
            self.driver.close(connection);
        }
    }
}
