//! The load generator: one thread that plays all senders and all receivers of a load.
//!
//! It is to be faster than whatever it measures, so it does as little as the protocol allows: frames are
//! templates, one read and one write per connection and turn, no allocation once it runs. How fast it is by
//! itself is measured at the start of each run ([`Endpoint::Itself`]).

pub mod connection;
pub mod frames;
pub mod pace;
mod receive;
mod setup;
#[cfg(test)]
mod tests;
pub mod topology;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::interrupt;
use connection::{Connection, Link, NO_LINK, Stage};
use pace::{Drive, Pace};
use topology::{LoadSpec, Purpose, Slow};

pub use setup::hello;

/// What is read at once, over all connections.
const SCRATCH_BYTES: usize = 512 * 1024;

/// The latencies that are told apart: 1 ns to a minute, three digits.
const LATENCY_MAX: u64 = 60_000_000_000;

/// Where a load goes.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A program that speaks AMQP 1.0.
    Amqp {
        /// Where it listens.
        address: SocketAddr,
        /// User and password for SASL PLAIN; `None` for ANONYMOUS.
        login: Option<(String, String)>,
    },
    /// A program that forwards frames between the connections 2k and 2k + 1, in the order of their making.
    Raw(SocketAddr),
    /// The generator itself: senders are connected straight to their receivers.
    Itself,
}

/// What a generator has seen so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Messages sent.
    pub sent: u64,
    /// Messages that were settled as accepted, if they weren't sent settled.
    pub accepted: u64,
    /// Messages that were settled with another outcome.
    pub not_accepted: u64,
    /// Messages (copies) received by the receivers that count.
    pub received: u64,
}

impl Counters {
    /// What has come since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            accepted: self.accepted - earlier.accepted,
            not_accepted: self.not_accepted - earlier.not_accepted,
            received: self.received - earlier.received,
        }
    }
}

/// All connections of a load, attached and ready.
pub struct Generator {
    spec: LoadSpec,
    poll: rustix::fd::OwnedFd,
    events: Vec<epoll::Event>,
    connections: Vec<Connection>,
    links: Vec<Link>,
    /// The links that the drive makes send.
    driven: Vec<usize>,
    /// The links that answer requests.
    repliers: Vec<usize>,
    /// By pair: the sender of requests and the sender of answers.
    pairs: Vec<(u32, u32)>,
    dirty: Vec<usize>,
    scratch: Box<[u8]>,
    started: Instant,
    drive: Drive,
    paced_links: u64,
    /// What was seen.
    pub counters: Counters,
    /// Since when latencies are recorded.
    latencies: Option<(u64, Histogram<u64>)>,
    is_blocking: bool,
    next_heartbeat: u64,
}

/// An empty histogram of nanoseconds.
///
/// # Panics
/// Never: the bounds are valid ones.
pub fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX, 3).expect("valid bounds")
}

impl Generator {
    /// Nanoseconds since the generator was made.
    #[inline]
    pub fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether it sleeps when there is nothing to do (`true`) or looks again at once.
    pub fn set_blocking(&mut self, is_blocking: bool) {
        self.is_blocking = is_blocking;
    }

    /// Sends as much as window and credit allow, from now on.
    pub fn drive_window(&mut self) {
        self.drive = Drive::Window;
    }

    /// Sends `rate` messages per second over all senders, from now on.
    pub fn drive_paced(&mut self, rate: f64) {
        for link in &self.driven {
            self.links[*link].paced = 0;
        }
        let start = self.now() + 1_000_000;
        self.drive = Drive::Paced(Pace { start, rate, links: self.paced_links, end: u64::MAX });
    }

    /// Ends the open loop: sends and awaits what was due until now, at most for `patience`. Gives how many
    /// messages were due since `from`.
    ///
    /// # Errors
    /// A connection or link is lost.
    pub fn finish_paced(&mut self, from: u64, patience: Duration) -> Result<u64> {
        let Drive::Paced(mut pace) = self.drive else { return Ok(0) };
        pace.end = self.now();
        self.drive = Drive::Paced(pace);
        let all = pace.due_before(pace.end);
        let copies = self.spec.copies() as u64;
        let limit = pace.end + u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        while self.overdue() > 0 || self.counters.received < self.counters.sent * copies {
            if self.turn(limit)? >= limit {
                break;
            }
        }
        Ok((all - pace.due_before(from)) * copies)
    }

    /// Sends nothing more.
    pub fn drive_idle(&mut self) {
        self.drive = Drive::Idle;
    }

    /// Records the latencies of messages that are (or were to be) sent from now on. Gives the time.
    pub fn record(&mut self) -> u64 {
        let now = self.now();
        self.latencies = Some((now, latency_histogram()));
        now
    }

    /// What was recorded.
    pub fn take_latencies(&mut self) -> Histogram<u64> {
        self.latencies.take().map_or_else(latency_histogram, |(_, latencies)| latencies)
    }

    /// Messages that are sent and not settled.
    pub fn in_flight(&self) -> u64 {
        self.driven.iter().map(|link| u64::from(self.links[*link].in_flight)).sum()
    }

    /// How late the open loop is: messages that were due by now and aren't sent yet.
    pub fn overdue(&self) -> u64 {
        match self.drive {
            Drive::Idle | Drive::Window => 0,
            Drive::Paced(pace) => {
                let sent: u64 = self.driven.iter().map(|link| self.links[*link].paced).sum();
                pace.due_before(self.now()).saturating_sub(sent)
            }
        }
    }

    /// Runs for `time`.
    ///
    /// # Errors
    /// A connection or link is lost.
    pub fn run_for(&mut self, time: Duration) -> Result<()> {
        let end = self.now() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        while self.turn(end)? < end {}
        Ok(())
    }

    /// Sends nothing more and runs until everything sent is settled or received, at most for `time`. Whether
    /// that was reached.
    ///
    /// # Errors
    /// A connection or link is lost.
    pub fn drain(&mut self, time: Duration) -> Result<bool> {
        self.drive_idle();
        let end = self.now() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let copies = self.spec.copies() as u64;
        loop {
            let is_received = self.counters.received >= self.counters.sent * copies;
            if is_received && (self.spec.is_presettled || self.in_flight() == 0) {
                return Ok(true);
            }
            if self.turn(end)? >= end {
                return Ok(false);
            }
        }
    }

    /// Runs until `is_done` says so.
    fn run_until(&mut self, patience: Duration, what: &str, is_done: impl Fn(&Self) -> bool) -> Result<()> {
        let end = self.now() + u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        while !is_done(self) {
            if self.turn(end)? >= end {
                bail!("waited {} s for {what}", patience.as_secs_f64());
            }
        }
        Ok(())
    }

    /// One turn: what has come, what is to go. Gives the time.
    fn turn(&mut self, end: u64) -> Result<u64> {
        interrupt::check()?;
        let timeout = self.patience(end);
        self.events.clear();
        match epoll::wait(&self.poll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll_wait"),
        }
        for at in 0..self.events.len() {
            let event = self.events[at];
            let index = event.data.u64() as usize;
            let flags = event.flags;
            if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
                self.read(index)?;
            }
            if flags.contains(epoll::EventFlags::OUT) {
                self.mark_dirty(index);
            }
        }
        let now = self.now();
        self.send_replies();
        self.send_driven(now);
        if self.spec.receiver_rate.is_some() {
            match self.spec.slow {
                Slow::Credit => self.grant_paced(now),
                Slow::Reading => self.pace_reading(now)?,
            }
        }
        if now >= self.next_heartbeat {
            self.send_heartbeats(now);
        }
        self.flush()?;
        Ok(now)
    }

    /// How long the next wait may be.
    fn patience(&self, end: u64) -> Timespec {
        let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
        let can_sleep = match self.drive {
            Drive::Idle => true,
            Drive::Window | Drive::Paced(_) => self.is_blocking,
        };
        if !can_sleep || !self.dirty.is_empty() {
            return nothing;
        }
        let nanos = match self.drive {
            Drive::Idle | Drive::Window => end.saturating_sub(self.now()).min(1_000_000),
            Drive::Paced(_) => 50_000,
        };
        Timespec { tv_sec: 0, tv_nsec: nanos.try_into().unwrap_or(0) }
    }

    #[inline]
    fn mark_dirty(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !connection.is_dirty {
            connection.is_dirty = true;
            self.dirty.push(index);
        }
    }

    /// Sends one message on a link if credit, window and room allow. True if it did.
    #[inline]
    fn send(&mut self, link: usize, stamp: u64) -> bool {
        let state = &mut self.links[link];
        let connection = &mut self.connections[state.connection];
        let has_room = connection.has_room();
        let session = &mut connection.sessions[usize::from(state.channel)];
        let Some(template) = &state.template else { return false };
        if !has_room || state.credit == 0 || session.remote_incoming_window < template.frames {
            return false;
        }
        let id = if self.spec.is_presettled {
            let id = session.next_delivery_id;
            session.next_delivery_id = id.wrapping_add(1);
            id
        } else {
            state.in_flight += 1;
            session.begin_delivery(u32::try_from(link).unwrap_or(NO_LINK))
        };
        template.append(&mut connection.out, id, stamp);
        state.credit -= 1;
        state.delivery_count = state.delivery_count.wrapping_add(1);
        session.remote_incoming_window -= template.frames;
        session.next_outgoing_id = session.next_outgoing_id.wrapping_add(template.frames);
        if !connection.is_dirty {
            connection.is_dirty = true;
            self.dirty.push(state.connection);
        }
        true
    }

    fn send_driven(&mut self, now: u64) {
        match self.drive {
            Drive::Idle => {}
            Drive::Window => {
                for at in 0..self.driven.len() {
                    let link = self.driven[at];
                    while (self.spec.is_presettled || self.links[link].in_flight < self.spec.in_flight)
                        && self.send(link, now)
                    {
                        self.counters.sent += 1;
                    }
                }
            }
            Drive::Paced(pace) => {
                for at in 0..self.driven.len() {
                    let link = self.driven[at];
                    loop {
                        let due = pace.due(at as u64, self.links[link].paced);
                        if due > now || due >= pace.end || !self.send(link, due) {
                            break;
                        }
                        self.links[link].paced += 1;
                        self.counters.sent += 1;
                    }
                }
            }
        }
    }

    /// Answers requests, as far as credit allows.
    fn send_replies(&mut self) {
        for at in 0..self.repliers.len() {
            let link = self.repliers[at];
            while let Some(&stamp) = self.links[link].replies.front() {
                if !self.send(link, stamp) {
                    break;
                }
                self.links[link].replies.pop_front();
            }
        }
    }

    /// Grants credit by the clock: receivers that are slower than their senders.
    fn grant_paced(&mut self, now: u64) {
        let Some(rate) = self.spec.receiver_rate else { return };
        let allowed = (now as f64 * rate as f64 / 1e9) as u64;
        for link in 0..self.links.len() {
            if !self.links[link].purpose.is_measured() || !self.links[link].is_attached {
                continue;
            }
            let open = allowed.saturating_sub(self.links[link].received);
            let credit = u32::try_from(open).unwrap_or(u32::MAX).min(self.spec.credit);
            // Not a flow for each single message.
            if credit >= self.links[link].credit + self.spec.credit.div_ceil(10) {
                self.grant(link, credit);
            }
        }
    }

    /// Grants a receiver's peer `credit` in all.
    fn grant(&mut self, link: usize, credit: u32) {
        let state = &mut self.links[link];
        state.credit = credit;
        let connection = state.connection;
        let flow = (state.handle, state.delivery_count, credit);
        let channel = state.channel;
        self.connections[connection].send_flow(channel, Some(flow));
        self.mark_dirty(connection);
    }

    /// Shows peers that ask for it that we are there (AMQP 1.0 §2.4.5), and says when to come back.
    fn send_heartbeats(&mut self, now: u64) {
        self.next_heartbeat = now + 100_000_000;
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            if connection.heartbeat > 0 && now - connection.spoke >= connection.heartbeat {
                connection.out.extend_from_slice(&[0, 0, 0, 8, 2, 0, 0, 0]);
                connection.spoke = now;
                self.mark_dirty(index);
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        for at in (0..self.dirty.len()).rev() {
            let index = self.dirty[at];
            let connection = &mut self.connections[index];
            let is_done = match connection.flush() {
                Ok(is_done) => is_done,
                // What the peer said before it hung up is still to be read, and says more.
                Err(_) if matches!(connection.stage, Stage::Closed(_)) => {
                    connection.out.clear();
                    true
                }
                Err(error) => return Err(error).context("can't send to the target"),
            };
            connection.is_dirty = false;
            if connection.awaits_room == is_done {
                connection.awaits_room = !is_done;
                self.poll_for(index)?;
            }
        }
        self.dirty.clear();
        Ok(())
    }

    /// Asks the poller for what a connection waits for now.
    fn poll_for(&self, index: usize) -> Result<()> {
        let connection = &self.connections[index];
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, !connection.is_paused);
        flags.set(epoll::EventFlags::OUT, connection.awaits_room);
        epoll::modify(&self.poll, &connection.socket, epoll::EventData::new_u64(index as u64), flags)?;
        Ok(())
    }

    /// Whether receivers grant credit by the clock, not by what they have received.
    fn grants_by_the_clock(&self) -> bool {
        self.spec.receiver_rate.is_some() && self.spec.slow == Slow::Credit
    }

    /// Fails if a link isn't attached any more, saying why.
    pub fn check_links(&self) -> Result<()> {
        for link in &self.links {
            if let Some(fault) = &link.fault {
                bail!("link {}: {fault}", link.name);
            }
        }
        Ok(())
    }

    /// The sender of requests whose answers a link receives.
    fn requester_of(&self, purpose: Purpose) -> Option<usize> {
        match purpose {
            Purpose::ConsumeReplies { pair } => Some(self.pairs[pair].0 as usize),
            Purpose::Produce { .. }
            | Purpose::Consume { .. }
            | Purpose::Request { .. }
            | Purpose::Serve { .. }
            | Purpose::Reply { .. } => None,
        }
    }
}
