//! Finding out who peers are: the work of SASL exchanges, which other threads do, and those who fail.

use super::Core;
use super::slots::Origin;
use super::turn::Shard;
use crate::base::id::ConnectionKey;
use crate::engine::sasl::{Answer, Duty, Exchange};
use crate::io::driver::Driver;
use crate::log;
use crate::log::{Level, Module};
use std::time::Duration;

/// An exchange that has done its work, and what came of it.
#[derive(Debug)]
pub(super) struct Worked {
    connection: ConnectionKey,
    exchange: Box<dyn Exchange>,
    answer: Answer,
}

/// Something that takes long, and isn't done on a shard's thread.
pub type Job = Box<dyn FnOnce() + Send>;

/// Threads that do what takes long.
pub trait Workers: Send + Sync {
    /// Has a job done.
    ///
    /// # Errors
    /// It comes back if too many wait already.
    fn give(&self, job: Job) -> Result<(), Job>;
}

impl Core {
    /// Does what the engine asks for before it is known who a peer is.
    pub(super) fn take_duty(&mut self, key: ConnectionKey, duty: Duty) {
        match duty {
            Duty::Work(exchange) => self.exchanges_due.push((key, exchange)),
            Duty::Refuse { user, mechanism, reason } => self.refuse(key, user.as_deref(), mechanism, &reason),
        }
    }

    /// Counts an attempt that failed, and lets its peer wait for the answer.
    fn refuse(&mut self, key: ConnectionKey, user: Option<&str>, mechanism: &str, reason: &str) {
        let now = self.now;
        let Some(slot) = self.connections.get_mut(key) else { return };
        self.authentication_failures += 1;
        let (failures, delay) =
            slot.origin.address().map_or((1, Duration::ZERO), |address| self.guard.failed(address.ip(), now));
        slot.engine.refuse_at(now + delay);
        // The name is what the peer sent: its control characters don't get into the log.
        let who = user.map_or_else(|| "of nobody by name".to_owned(), |user| format!("as {user:?}"));
        let how = if mechanism.is_empty() { String::new() } else { format!(" by {mechanism}") };
        log!(
            Module::Server,
            Level::Warning,
            "[C{}] Authentication of {} {who}{how} failed: {reason} (failures from there lately: {failures}; it is told in \
             {:.1} s)",
            slot.id,
            slot.host(),
            delay.as_secs_f64()
        );
    }

    /// Gives an exchange that has done its work back to its connection.
    fn worked(&mut self, worked: Worked) {
        let Worked { connection: key, exchange, answer } = worked;
        let now = self.now;
        let Some(slot) = self.connections.get_mut(key).filter(|slot| !slot.over) else { return };
        let event = slot.engine.recv_worked(exchange, answer, now, &mut slot.out);
        self.mark_dirty(key);
        if let Some(event) = event {
            self.handle_event(key, event);
        }
        let Some(slot) = self.connections.get_mut(key) else { return };
        let early = slot.engine.take_early();
        if !early.is_empty() {
            self.recv_bytes(key, &early);
        }
    }
}

impl<D: Driver> Shard<D> {
    /// Lets exchanges work that have something to do: on the workers' threads, or here if there are none.
    #[cold]
    pub(super) fn let_work(&mut self) {
        let now = self.core.now;
        for (connection, mut exchange) in std::mem::take(&mut self.core.exchanges_due) {
            let Some(slot) = self.core.connections.get(connection) else { continue };
            let is_client = matches!(slot.origin, Origin::Client(_));
            let address = slot.origin.address().filter(|_| is_client);
            if address.is_some_and(|address| !self.core.guard.may_try(address.ip(), now)) {
                self.core.turn_away(connection, "too many failed attempts from its address wait to be told");
                continue;
            }
            let (Some(workers), Some(mailbox)) =
                (&self.workers, self.mailboxes.get(usize::from(self.core.shard.0)))
            else {
                let answer = exchange.work();
                self.core.worked(Worked { connection, exchange, answer });
                continue;
            };
            let (done, waker) = (self.worked.0.clone(), mailbox.waker());
            let given = workers.give(Box::new(move || {
                let answer = exchange.work();
                // A shard that is gone has nothing to be told.
                if done.send(Worked { connection, exchange, answer }).is_ok() {
                    waker.wake();
                }
            }));
            if given.is_err() {
                self.core.turn_away(connection, "too many wait for their passwords to be checked");
            }
        }
    }

    /// Takes what the workers are done with. There is never more of it than they take on.
    pub(super) fn take_worked(&mut self) {
        while let Ok(worked) = self.worked.1.try_recv() {
            self.core.worked(worked);
        }
    }
}
