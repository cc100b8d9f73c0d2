//! The forwarder with one io_uring: multishot accept and receive, a ring of buffers, one send a turn and
//! connection.
//!
//! It doesn't share code with the router's driver, so that a fault there can't hide by being in both. The only
//! unsafe code of this package is here. What connections have outstanding is bounded by the credit that the
//! generator's receivers grant, so there is no back-pressure of its own.
#![allow(unsafe_code)]

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use io_uring::types::{BufRingEntry, Fd};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::pairs::{Direction, partner};

/// Receive buffers; a power of two.
const BUFFERS: u16 = 64;
const BUFFER_BYTES: usize = 16 * 1024;

const SUBMISSIONS: u32 = 1024;
const COMPLETIONS: u32 = 8192;

/// What a completion is of; the connection stands in the lower half of the user data.
const ACCEPT: u64 = 1 << 32;
const RECEIVE: u64 = 2 << 32;
const SEND: u64 = 3 << 32;

/// What the kernel wants aligned like a page.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

const _: () = assert!(BUFFERS as usize * size_of::<BufRingEntry>() <= size_of::<Page>());

/// Buffers that the kernel fills.
struct Buffers {
    memory: Vec<u8>,
    entries: Box<Page>,
    tail: u16,
}

impl Buffers {
    fn new() -> Self {
        let memory = vec![0; usize::from(BUFFERS) * BUFFER_BYTES];
        let mut buffers = Self { memory, entries: Box::new(Page([0; 4096])), tail: 0 };
        for id in 0..BUFFERS {
            buffers.offer(id);
        }
        buffers.publish();
        buffers
    }

    fn base(&mut self) -> *mut BufRingEntry {
        (&raw mut *self.entries).cast()
    }

    /// Puts a buffer into the ring; the kernel sees it after [`publish`](Self::publish).
    fn offer(&mut self, id: u16) {
        let place = usize::from(self.tail & (BUFFERS - 1));
        let address = self.memory.as_ptr() as u64 + u64::from(id) * BUFFER_BYTES as u64;
        // SAFETY: `place` is below BUFFERS, and so inside of the page; the kernel doesn't look at the entry
        // before the tail says so.
        let entry = unsafe { &mut *self.base().add(place) };
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&mut self) {
        // SAFETY: the tail lies, aligned, in the first entry, and only this thread writes it.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.base()).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    fn bytes(&self, id: u16, length: usize) -> &[u8] {
        let start = usize::from(id) * BUFFER_BYTES;
        &self.memory[start..start + length]
    }
}

struct Connection {
    socket: OwnedFd,
    direction: Direction,
    /// What waits to be sent.
    out: Vec<u8>,
    /// What is being sent, from `sent` on: the kernel reads it, so it stays as it is until the completion.
    sending: Vec<u8>,
    sent: usize,
    is_sending: bool,
    is_receiving: bool,
    is_ending: bool,
    is_dirty: bool,
}

struct Forwarder {
    ring: IoUring,
    buffers: Buffers,
    connections: Vec<Option<Connection>>,
    dirty: Vec<usize>,
    listener: Fd,
}

/// Forwards until the process is ended.
///
/// # Errors
/// The kernel's, of what can't be gone on without.
pub fn run(listener: &TcpListener, spin: Duration) -> Result<()> {
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS)
        .context("can't set up an io_uring (is kernel.io_uring_disabled set?)")?;
    let mut buffers = Buffers::new();
    // SAFETY: the page holds BUFFERS entries and stays where it is; `Forwarder` drops the ring before it.
    unsafe { ring.submitter().register_buf_ring_with_flags(buffers.base() as u64, BUFFERS, 0, 0)? };
    let listener = Fd(listener.as_raw_fd());
    let mut forwarder = Forwarder { ring, buffers, connections: Vec::new(), dirty: Vec::new(), listener };
    forwarder.push(&opcode::AcceptMulti::new(listener).build().user_data(ACCEPT))?;
    loop {
        forwarder.wait(spin)?;
        forwarder.turn()?;
    }
}

impl Forwarder {
    fn push(&mut self, entry: &squeue::Entry) -> Result<()> {
        loop {
            // SAFETY: what entries name are descriptors of connections and buffers that are sent: both are kept
            // until the completions of all their operations are there (`end_if_idle`).
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    fn wait(&mut self, spin: Duration) -> Result<()> {
        if !spin.is_zero() {
            let start = Instant::now();
            loop {
                if !self.ring.submission().is_empty() || self.ring.submission().taskrun() {
                    self.ring.submit()?;
                }
                if !self.ring.completion().is_empty() {
                    return Ok(());
                }
                if start.elapsed() >= spin {
                    break;
                }
                std::hint::spin_loop();
            }
        }
        match self.ring.submit_and_wait(1) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn turn(&mut self) -> Result<()> {
        while let Some(entry) = { self.ring.completion().next() } {
            let index = (entry.user_data() & 0xffff_ffff) as usize;
            match entry.user_data() & !0xffff_ffff {
                ACCEPT => self.accepted(&entry)?,
                RECEIVE => self.received(index, &entry)?,
                SEND => self.sent(index, entry.result())?,
                other => bail!("a completion of {other:x}, which was never asked for"),
            }
        }
        self.buffers.publish();
        while let Some(index) = self.dirty.pop() {
            if let Some(connection) = &mut self.connections[index] {
                connection.is_dirty = false;
            }
            self.send(index)?;
        }
        Ok(())
    }

    fn accepted(&mut self, entry: &cqueue::Entry) -> Result<()> {
        if !cqueue::more(entry.flags()) {
            self.push(&opcode::AcceptMulti::new(self.listener).build().user_data(ACCEPT))?;
        }
        if entry.result() < 0 {
            return Err(io::Error::from_raw_os_error(-entry.result())).context("accept");
        }
        // With nobody left, pairs begin anew.
        if self.connections.iter().all(Option::is_none) {
            self.connections.clear();
        }
        // SAFETY: the kernel has just made this descriptor for us.
        let socket = unsafe { OwnedFd::from_raw_fd(entry.result()) };
        rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
        self.connections.push(Some(Connection {
            socket,
            direction: Direction::default(),
            out: Vec::new(),
            sending: Vec::new(),
            sent: 0,
            is_sending: false,
            is_receiving: false,
            is_ending: false,
            is_dirty: false,
        }));
        self.receive(self.connections.len() - 1)
    }

    fn receive(&mut self, index: usize) -> Result<()> {
        let Some(connection) = &mut self.connections[index] else { return Ok(()) };
        connection.is_receiving = true;
        let socket = Fd(connection.socket.as_raw_fd());
        self.push(&opcode::RecvMulti::new(socket, 0).build().user_data(RECEIVE | index as u64))
    }

    fn received(&mut self, index: usize, entry: &cqueue::Entry) -> Result<()> {
        let Some(connection) = &mut self.connections[index] else { return Ok(()) };
        let is_over = !cqueue::more(entry.flags());
        connection.is_receiving = !is_over;
        let buffer = cqueue::buffer_select(entry.flags());
        match (usize::try_from(entry.result()), buffer) {
            (Ok(length), Some(id)) if length > 0 => {
                let mut direction = std::mem::take(&mut connection.direction);
                let is_sound = match self.connections.get_mut(partner(index)) {
                    Some(Some(other)) => {
                        let is_sound = direction.forward(self.buffers.bytes(id, length), &mut other.out);
                        if !other.is_dirty {
                            other.is_dirty = true;
                            self.dirty.push(partner(index));
                        }
                        is_sound
                    }
                    Some(None) | None => false,
                };
                self.buffers.offer(id);
                if let Some(connection) = &mut self.connections[index] {
                    connection.direction = direction;
                }
                if !is_sound {
                    self.end_pair(index);
                } else if is_over {
                    self.receive(index)?;
                }
            }
            (Err(_), None) if entry.result() == -105 => {
                // ENOBUFS: those in use are given back within this turn.
                self.buffers.publish();
                self.receive(index)?;
            }
            (Ok(_) | Err(_), Some(id)) => {
                self.buffers.offer(id);
                self.end_pair(index);
            }
            (Ok(_) | Err(_), None) => self.end_pair(index),
        }
        self.end_if_idle(index);
        Ok(())
    }

    fn send(&mut self, index: usize) -> Result<()> {
        let Some(connection) = &mut self.connections[index] else { return Ok(()) };
        if connection.is_sending || connection.is_ending {
            return Ok(());
        }
        if connection.sent == connection.sending.len() {
            if connection.out.is_empty() {
                return Ok(());
            }
            connection.sending.clear();
            connection.sent = 0;
            std::mem::swap(&mut connection.sending, &mut connection.out);
        }
        let rest = &connection.sending[connection.sent..];
        let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fd(connection.socket.as_raw_fd()), rest.as_ptr(), length).build();
        connection.is_sending = true;
        self.push(&entry.user_data(SEND | index as u64))
    }

    fn sent(&mut self, index: usize, result: i32) -> Result<()> {
        let Some(connection) = &mut self.connections[index] else { return Ok(()) };
        connection.is_sending = false;
        match usize::try_from(result) {
            Ok(count) => connection.sent += count,
            Err(_) => self.end_pair(index),
        }
        self.end_if_idle(index);
        self.send(index)
    }

    /// Begins to close a connection and its partner.
    fn end_pair(&mut self, index: usize) {
        for index in [index, partner(index)] {
            if let Some(Some(connection)) = self.connections.get_mut(index)
                && !connection.is_ending
            {
                connection.is_ending = true;
                // Ends what is under way; that the peer was faster is no fault.
                let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Both);
            }
            self.end_if_idle(index);
        }
    }

    /// Closes a connection of which the kernel has nothing any more.
    fn end_if_idle(&mut self, index: usize) {
        if let Some(slot) = self.connections.get_mut(index)
            && slot.as_ref().is_some_and(|it| it.is_ending && !it.is_sending && !it.is_receiving)
        {
            *slot = None;
        }
    }
}
