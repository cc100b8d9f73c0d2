//! The loop of a shard: one turn after another (design: completions in, work, output out).

use super::Core;
use super::mailbox::Message;
use super::slots::{ListenerSettings, SharedSettings};
use crate::base::buffer::Chunk;
use crate::base::id::{ConnectionKey, ListenerId};
use crate::base::limits::{
    CHUNKS_PER_SEND_MAX, COMPLETIONS_PER_TURN_MAX, OUTPUT_ANSWERS_MAX, OUTPUT_BACKLOG_MAX,
};
use crate::base::time::Instant;
use crate::engine::Fault;
use crate::io::driver::{Chunks, Completion, Driver};
use crate::log;
use crate::log::{Level, Module};
use crate::routing::Snapshot;
use ringmain_codec::Condition;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// How long peers have, when the router stops, to answer its close.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(800);

/// A shard with its driver.
pub struct Shard<D: Driver> {
    driver: D,
    core: Core,
    listeners: Vec<SharedSettings>,
    mailbox: Receiver<Message>,
    shutdown: Option<Instant>,
}

impl<D: Driver> Shard<D> {
    /// A shard that serves connections of `listeners`, by their [`ListenerId`].
    pub fn new(
        driver: D,
        snapshot: Arc<Snapshot>,
        listeners: Vec<ListenerSettings>,
        mailbox: Receiver<Message>,
    ) -> Self {
        let listeners = listeners.into_iter().map(SharedSettings::new).collect();
        let mut core = Core::new(snapshot);
        core.now = driver.now();
        Self { driver, core, listeners, mailbox, shutdown: None }
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
        Ok(())
    }

    /// Whether the shard was told to shut down and has nothing left to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.shutdown.is_some_and(|deadline| self.core.connections.is_empty() || self.core.now >= deadline)
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
        let deadline = [self.core.next_deadline(), self.shutdown].into_iter().flatten().min();
        self.driver.submit_and_wait(deadline)?;
        self.core.now = self.driver.now();
        for _ in 0..COMPLETIONS_PER_TURN_MAX {
            let Some(completion) = self.driver.next_completion() else { break };
            self.take(completion);
        }
        self.core.expire_timers();
        self.core.grant_credit();
        self.flush();
        Ok(())
    }

    fn take(&mut self, completion: Completion<D::Socket, D::Received>) {
        match completion {
            Completion::Received { connection, buffer } => {
                self.core.recv(connection, self.driver.bytes(&buffer));
                self.driver.release(buffer);
            }
            Completion::Sent { connection, chunks, result } => self.sent(connection, chunks, result),
            Completion::Accepted { listener, socket, peer } => {
                let Some(settings) = self.listeners.get(usize::from(listener.0)) else { return };
                if self.shutdown.is_some() {
                    return;
                }
                let key = self.core.accept(peer, settings);
                self.driver.open(key, socket);
            }
            Completion::AcceptFailed { listener, error } => log!(
                Module::Server,
                Level::Error,
                "Listener {} can't accept connections for now: {error}. It goes on trying; raise the limit of \
                 open files (ulimit -n) if this one is too low",
                listener.0
            ),
            Completion::ReceiveEnded { connection, error } => {
                self.core.receive_ended(connection, error.as_ref());
                self.close(connection);
            }
            Completion::Closed { connection } => {
                self.core.connections.remove(connection);
            }
            Completion::Woken => {
                while let Ok(message) = self.mailbox.try_recv() {
                    match message {
                        Message::Shutdown => self.shut_down(),
                    }
                }
            }
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
        let drained = slot.out.pending() < OUTPUT_BACKLOG_MAX;
        if let Err(error) = result {
            slot.out.clear();
            self.core.receive_ended(connection, Some(&error));
            self.close(connection);
            return;
        }
        if drained {
            if std::mem::take(&mut slot.paused) {
                self.driver.resume_receiving(connection);
            }
            self.core.unblock(connection);
        }
        self.core.mark_dirty(connection);
    }

    /// Gives what each connection has to send to the kernel, and closes those that have said everything.
    fn flush(&mut self) {
        // Flushing one connection makes none dirty: what it writes concerns itself only.
        let mut dirty = std::mem::take(&mut self.core.dirty);
        for connection in dirty.drain(..) {
            self.flush_connection(connection);
        }
        self.core.dirty = dirty;
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
        let pending = slot.out.pending();
        if pending > 0 && !slot.sending {
            slot.sending = true;
            slot.engine.spoke(now);
            let chunks: Chunks =
                slot.out.take_chunks(CHUNKS_PER_SEND_MAX).collect::<smallvec::SmallVec<[Chunk; 2]>>();
            self.driver.send(connection, chunks);
        }
        if pending > OUTPUT_ANSWERS_MAX && !slot.paused {
            slot.paused = true;
            self.driver.pause_receiving(connection);
        }
        let said_all = slot.engine.is_finished() && slot.out.pending() == 0 && !slot.sending;
        if said_all || slot.engine.is_given_up() {
            slot.out.clear();
            self.close(connection);
        } else {
            self.core.arm(connection);
        }
    }

    fn close(&mut self, connection: ConnectionKey) {
        if let Some(slot) = self.core.connections.get_mut(connection)
            && !std::mem::replace(&mut slot.closing, true)
        {
            self.driver.close(connection);
        }
    }
}
