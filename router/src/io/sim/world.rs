//! The state of the simulated network, and what happens in it.

use super::SimOptions;
use super::peer::PeerEnd;
use crate::base::id::{ConnectionKey, ListenerId};
use crate::base::time::Instant;
use crate::io::driver::{ACCEPT_PAUSE, Chunks};
use core::cmp::Reverse;
use core::time::Duration;
use std::cell::RefCell;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io;
use std::rc::Weak;

/// Names a line: the two directions between one peer and the shard.
pub(super) type LineId = usize;

/// Something to do at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Event {
    /// The line has reached its listener.
    Accept(LineId),
    /// The shard may receive.
    Receive(LineId),
    /// The shard's send may go on.
    Send(LineId),
    /// Closing goes on.
    Close(LineId),
}

/// A completion, before the driver puts sockets into it.
#[derive(Debug)]
pub(super) enum Happening {
    Accepted { listener: ListenerId, line: LineId },
    AcceptFailed { listener: ListenerId, error: io::Error },
    Received { connection: ConnectionKey, bytes: Box<[u8]> },
    ReceiveEnded { connection: ConnectionKey, error: Option<io::Error> },
    Sent { connection: ConnectionKey, chunks: Chunks, result: io::Result<()> },
    Closed { connection: ConnectionKey },
    Woken,
}

/// What has become of a listener.
#[derive(Default)]
pub(super) struct Listener {
    pub(super) is_open: bool,
    pub(super) is_stopped: bool,
    pub(super) failures: VecDeque<io::Error>,
}

/// What the shard has done with its end of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Waits to be accepted.
    Backlog,
    /// A socket that isn't a connection yet.
    Socket,
    /// A connection.
    Open(ConnectionKey),
    /// A connection that is being closed.
    Closing(ConnectionKey),
    /// Closed.
    Gone,
}

/// How the peer has ended its direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// Not.
    No,
    /// In order: the end stands behind the bytes.
    InOrder,
    /// In order, and it takes nothing any more.
    Closed,
    /// By a reset, which drops the bytes.
    Reset,
}

/// A send of the shard.
pub(super) struct Sending {
    chunks: Chunks,
    /// What comes behind the chunks.
    lasting: &'static [u8],
    sent: usize,
}

impl Sending {
    pub(super) fn new(chunks: Chunks, lasting: &'static [u8]) -> Self {
        Self { chunks, lasting, sent: 0 }
    }

    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.iter().map(|chunk| &chunk.bytes[..chunk.filled]).chain([self.lasting])
    }
}

/// A line between a peer and the shard.
pub(super) struct Line {
    pub(super) listener: Option<ListenerId>,
    pub(super) stage: Stage,
    /// Written by the peer, not received by the shard yet.
    pub(super) to_shard: VecDeque<u8>,
    /// How many bytes the shard has received.
    pub(super) received: u64,
    pub(super) ended: Ended,
    /// The peer resets once the shard has received so many bytes.
    pub(super) reset_after_sent: Option<u64>,
    /// Handed to the kernel by the shard, not read by the peer yet.
    pub(super) to_peer: VecDeque<u8>,
    /// How many bytes the kernel was handed.
    pub(super) handed: u64,
    /// The peer resets once so many bytes were handed over.
    pub(super) reset_after_received: Option<u64>,
    /// Whether the peer reads all that comes.
    pub(super) is_reading: bool,
    /// What the shard's end has become, for the peer.
    pub(super) end: Option<PeerEnd>,
    pub(super) is_paused: bool,
    /// So many bytes are worth a `Received`.
    receive_mark: usize,
    /// Whether there were as many, and not all of them were received.
    is_worth: bool,
    /// Whether what is there is to be received though it isn't as many.
    is_looked_at: bool,
    /// One more `Received` may come although receiving is paused.
    is_late: bool,
    has_reported_end: bool,
    is_receive_due: bool,
    is_send_due: bool,
    sending: Option<Sending>,
    /// Where the line is now, if its socket went to another network's driver.
    pub(super) moved: Option<(Weak<RefCell<World>>, LineId)>,
}

impl Line {
    fn new(listener: Option<ListenerId>, stage: Stage) -> Self {
        Self {
            listener,
            stage,
            to_shard: VecDeque::new(),
            received: 0,
            ended: Ended::No,
            reset_after_sent: None,
            to_peer: VecDeque::new(),
            handed: 0,
            reset_after_received: None,
            is_reading: true,
            end: None,
            is_paused: false,
            receive_mark: 1,
            is_worth: false,
            is_looked_at: false,
            is_late: false,
            has_reported_end: false,
            is_receive_due: false,
            is_send_due: false,
            sending: None,
            moved: None,
        }
    }
}

/// The network.
pub(super) struct World {
    pub(super) options: SimOptions,
    random: fastrand::Rng,
    pub(super) now: Instant,
    pub(super) is_clock_held: bool,
    pub(super) is_accepting: bool,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    sequence: u64,
    pub(super) listeners: BTreeMap<ListenerId, Listener>,
    pub(super) lines: Vec<Line>,
    /// By the index of the key, the line that was last opened with it.
    line_by_index: BTreeMap<u32, LineId>,
    pub(super) happened: VecDeque<Happening>,
    pub(super) buffers_held: usize,
}

fn reset_error() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionReset)
}

impl World {
    pub(super) fn new(seed: u64, options: SimOptions) -> Self {
        Self {
            options,
            random: fastrand::Rng::with_seed(seed),
            now: Instant(1_000_000_000),
            is_clock_held: false,
            is_accepting: true,
            events: BinaryHeap::new(),
            sequence: 0,
            listeners: BTreeMap::new(),
            lines: Vec::new(),
            line_by_index: BTreeMap::new(),
            happened: VecDeque::new(),
            buffers_held: 0,
        }
    }

    pub(super) fn add_line(&mut self, listener: Option<ListenerId>, stage: Stage) -> LineId {
        self.lines.push(Line::new(listener, stage));
        self.lines.len() - 1
    }

    /// Gives up the line of a socket that goes to another network.
    pub(super) fn take_line(&mut self, id: LineId) -> Line {
        core::mem::replace(&mut self.lines[id], Line::new(None, Stage::Gone))
    }

    /// Takes the line of a socket that comes from another network.
    pub(super) fn adopt_line(&mut self, line: Line) -> LineId {
        self.lines.push(line);
        self.lines.len() - 1
    }

    /// The line of `key`, until `Closed` has come for it.
    pub(super) fn line_of(&self, key: ConnectionKey) -> Option<LineId> {
        let id = self.line_by_index.get(&key.0.index).copied()?;
        match self.lines[id].stage {
            Stage::Open(of) | Stage::Closing(of) => (of == key).then_some(id),
            Stage::Backlog | Stage::Socket | Stage::Gone => None,
        }
    }

    /// Whether `key` is a connection that is not being closed.
    pub(super) fn is_open(&self, key: ConnectionKey) -> bool {
        self.line_of(key).is_some_and(|id| self.lines[id].stage == Stage::Open(key))
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// When the next event is.
    pub(super) fn next_event_at(&self) -> Option<Instant> {
        self.events.peek().map(|Reverse((at, _, _))| *at)
    }

    /// A random part of the latency.
    pub(super) fn latency(&mut self) -> Duration {
        let nanoseconds = u64::try_from(self.options.latency_max.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random.u64(0..=nanoseconds))
    }

    fn schedule_at(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    pub(super) fn schedule(&mut self, event: Event) {
        let at = self.now + self.latency();
        self.schedule_at(at, event);
    }

    /// Lets the listeners look at those who wait for them.
    pub(super) fn kick_backlog(&mut self) {
        for id in 0..self.lines.len() {
            if self.lines[id].stage == Stage::Backlog {
                self.schedule(Event::Accept(id));
            }
        }
    }

    /// Lets the shard receive on the line, if there is something.
    pub(super) fn kick_receive(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        if !line.is_receive_due && matches!(line.stage, Stage::Open(_)) {
            line.is_receive_due = true;
            self.schedule(Event::Receive(id));
        }
    }

    /// Lets the shard's send on the line go on, if there is one.
    pub(super) fn kick_send(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        if !line.is_send_due && line.sending.is_some() {
            line.is_send_due = true;
            self.schedule(Event::Send(id));
        }
    }

    /// A random part, at least 1, of `most` (at least 1).
    fn cut(&mut self, most: usize) -> usize {
        if !self.options.is_ragged {
            return most;
        }
        match self.random.u8(0..4) {
            0 => 1,
            1 => self.random.usize(1..=most.min(16)),
            2 => self.random.usize(1..=most),
            _ => most,
        }
    }

    /// Does everything that is due.
    pub(super) fn run_due_events(&mut self) {
        while self.next_event_at().is_some_and(|at| at <= self.now) {
            let Some(Reverse((_, _, event))) = self.events.pop() else { return };
            match event {
                Event::Accept(id) => self.accept(id),
                Event::Receive(id) => self.receive(id),
                Event::Send(id) => self.go_on_sending(id),
                Event::Close(id) => self.go_on_closing(id),
            }
        }
    }

    fn accept(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        let Some(listener_id) = line.listener else { return };
        if line.stage != Stage::Backlog || line.ended == Ended::Reset {
            return;
        }
        let listener = self.listeners.entry(listener_id).or_default();
        if listener.is_stopped {
            line.stage = Stage::Gone;
            line.end = Some(PeerEnd::Reset);
        } else if listener.is_open && self.is_accepting {
            if let Some(error) = listener.failures.pop_front() {
                self.happened.push_back(Happening::AcceptFailed { listener: listener_id, error });
                self.schedule_at(self.now + ACCEPT_PAUSE, Event::Accept(id));
            } else {
                line.stage = Stage::Socket;
                self.happened.push_back(Happening::Accepted { listener: listener_id, line: id });
            }
        }
    }

    /// # Panics
    /// If the place of `key` is in use.
    pub(super) fn open(&mut self, id: LineId, key: ConnectionKey) {
        let before = self.line_by_index.insert(key.0.index, id);
        let is_free = before.is_none_or(|before| self.lines[before].stage == Stage::Gone);
        assert!(is_free, "a key's place is used again only after Closed");
        self.lines[id].stage = Stage::Open(key);
        self.kick_receive(id);
    }

    /// The shard dropped the socket without making it a connection.
    pub(super) fn abandon(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        if line.stage == Stage::Socket {
            line.stage = Stage::Gone;
            let is_unread = !line.to_shard.is_empty();
            line.end = Some(if is_unread { PeerEnd::Reset } else { PeerEnd::Closed });
        }
    }

    pub(super) fn pause(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        line.is_paused = true;
        line.is_late = line.is_receive_due;
    }

    pub(super) fn resume(&mut self, id: LineId) {
        self.lines[id].is_paused = false;
        self.kick_receive(id);
    }

    pub(super) fn set_receive_mark(&mut self, id: LineId, bytes: u32) {
        self.lines[id].receive_mark = bytes as usize;
        self.kick_receive(id);
    }

    pub(super) fn look(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        if matches!(line.stage, Stage::Open(_)) && !line.is_paused {
            line.is_looked_at = true;
            // A look doesn't wait: it is made in the next wait, whatever else is due later.
            self.schedule_at(self.now, Event::Receive(id));
        }
    }

    fn receive(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        line.is_receive_due = false;
        let Stage::Open(connection) = line.stage else { return };
        if line.has_reported_end {
            return;
        }
        if line.ended == Ended::Reset {
            line.has_reported_end = true;
            self.happened.push_back(Happening::ReceiveEnded { connection, error: Some(reset_error()) });
            return;
        }
        let is_late = core::mem::take(&mut line.is_late);
        if line.is_paused && !is_late {
            return;
        }
        if line.to_shard.is_empty() {
            line.is_looked_at = false;
            if line.ended != Ended::No {
                line.has_reported_end = true;
                self.happened.push_back(Happening::ReceiveEnded { connection, error: None });
            }
            return;
        }
        if self.buffers_held >= self.options.buffer_count {
            return;
        }
        let line = &mut self.lines[id];
        line.is_worth |= line.to_shard.len() >= line.receive_mark || line.ended != Ended::No;
        line.is_worth |= core::mem::take(&mut line.is_looked_at);
        if !line.is_worth {
            return;
        }
        let mut most = line.to_shard.len().min(self.options.buffer_size);
        if let Some(limit) = line.reset_after_sent {
            most = most.min(usize::try_from(limit.saturating_sub(line.received)).unwrap_or(usize::MAX));
        }
        if most > 0 {
            let length = self.cut(most);
            let line = &mut self.lines[id];
            let bytes: Box<[u8]> = line.to_shard.drain(..length).collect();
            line.received += length as u64;
            line.is_worth = !line.to_shard.is_empty();
            self.buffers_held += 1;
            self.happened.push_back(Happening::Received { connection, bytes });
        }
        let line = &self.lines[id];
        if line.reset_after_sent.is_some_and(|limit| line.received >= limit) {
            self.reset(id);
        } else if !line.to_shard.is_empty() || line.ended != Ended::No {
            self.kick_receive(id);
        }
    }

    /// A buffer came back.
    pub(super) fn release_buffer(&mut self) {
        let was_starved = self.buffers_held >= self.options.buffer_count;
        self.buffers_held -= 1;
        if was_starved {
            for id in 0..self.lines.len() {
                if !self.lines[id].to_shard.is_empty() {
                    self.kick_receive(id);
                }
            }
        }
    }

    /// # Panics
    /// If a send is under way already.
    pub(super) fn send(&mut self, id: LineId, connection: ConnectionKey, sending: Sending) {
        let line = &mut self.lines[id];
        assert!(line.sending.is_none(), "one send at a time");
        assert!(
            sending.chunks.iter().all(|chunk| chunk.filled <= chunk.bytes.len()),
            "a chunk is filled within its buffer"
        );
        match line.stage {
            Stage::Open(_) => {
                line.sending = Some(sending);
                self.kick_send(id);
            }
            Stage::Backlog | Stage::Socket | Stage::Closing(_) | Stage::Gone => {
                let result = Err(io::ErrorKind::NotConnected.into());
                self.happened.push_back(Happening::Sent { connection, chunks: sending.chunks, result });
            }
        }
    }

    fn go_on_sending(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        line.is_send_due = false;
        let (Stage::Open(connection) | Stage::Closing(connection)) = line.stage else { return };
        let Some(sending) = &line.sending else { return };
        let left = sending.parts().map(<[u8]>::len).sum::<usize>() - sending.sent;
        let error = match line.ended {
            Ended::Reset => {
                Some(if line.has_reported_end { io::ErrorKind::BrokenPipe.into() } else { reset_error() })
            }
            // What is sent to a peer that has closed makes it reset.
            Ended::Closed => {
                self.reset(id);
                Some(io::ErrorKind::BrokenPipe.into())
            }
            Ended::No | Ended::InOrder => None,
        };
        if let Some(error) = error {
            return self.end_send(id, connection, Err(error));
        }
        let line = &self.lines[id];
        let room = if line.is_reading {
            usize::MAX
        } else {
            self.options.socket_buffer.saturating_sub(line.to_peer.len())
        };
        let mut most = left.min(room);
        if let Some(limit) = line.reset_after_received {
            most = most.min(usize::try_from(limit.saturating_sub(line.handed)).unwrap_or(usize::MAX));
        }
        let length = if most > 0 { self.cut(most) } else { 0 };
        self.hand_over(id, length);
        let line = &self.lines[id];
        if line.reset_after_received.is_some_and(|limit| line.handed >= limit) {
            self.reset(id);
        }
        if length == left {
            self.end_send(id, connection, Ok(()));
        } else if length > 0 || self.lines[id].ended == Ended::Reset {
            self.kick_send(id);
        }
    }

    /// Moves the next `length` bytes of the send to the peer.
    fn hand_over(&mut self, id: LineId, length: usize) {
        let line = &mut self.lines[id];
        let Some(sending) = &mut line.sending else { return };
        let (mut skip, mut left) = (sending.sent, length);
        for part in sending.parts() {
            let skipped = skip.min(part.len());
            let bytes = &part[skipped..];
            let bytes = &bytes[..left.min(bytes.len())];
            line.to_peer.extend(bytes);
            skip -= skipped;
            left -= bytes.len();
        }
        sending.sent += length;
        line.handed += length as u64;
    }

    fn end_send(&mut self, id: LineId, connection: ConnectionKey, result: io::Result<()>) {
        if let Some(sending) = self.lines[id].sending.take() {
            self.happened.push_back(Happening::Sent { connection, chunks: sending.chunks, result });
        }
    }

    pub(super) fn close(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        if let Stage::Open(connection) = line.stage {
            line.stage = Stage::Closing(connection);
            self.schedule(Event::Close(id));
        }
    }

    fn go_on_closing(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        let Stage::Closing(connection) = line.stage else { return };
        if line.sending.is_some() {
            self.end_send(id, connection, Err(io::Error::from_raw_os_error(libc::ECANCELED)));
            self.schedule(Event::Close(id));
            return;
        }
        line.stage = Stage::Gone;
        line.to_shard.clear();
        line.end.get_or_insert(PeerEnd::Closed);
        self.happened.push_back(Happening::Closed { connection });
    }

    /// The peer resets the line.
    pub(super) fn reset(&mut self, id: LineId) {
        let line = &mut self.lines[id];
        if line.ended == Ended::Reset {
            return;
        }
        line.ended = Ended::Reset;
        line.end = Some(PeerEnd::Reset);
        line.to_shard.clear();
        self.kick_receive(id);
        self.kick_send(id);
    }
}
