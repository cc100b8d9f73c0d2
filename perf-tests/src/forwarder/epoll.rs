//! The forwarder with epoll, read and write.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;

use super::pairs::{Direction, partner};

/// What is read at once.
const READ_BYTES: usize = 64 * 1024;

/// While so much waits for a connection, its partner isn't read.
const BACKLOG_BYTES_MAX: usize = 1024 * 1024;

/// Names the listener among the events.
const LISTENER: u64 = u64::MAX;

struct Connection {
    socket: TcpStream,
    direction: Direction,
    out: Vec<u8>,
    written: usize,
    is_dirty: bool,
    /// What the poller is asked for.
    wanted: epoll::EventFlags,
}

/// Forwards until the process is ended.
///
/// # Errors
/// The kernel's, of what can't be gone on without.
pub fn run(listener: &TcpListener, spin: Duration) -> Result<()> {
    listener.set_nonblocking(true)?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
    let mut dirty = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        wait(&poll, &mut events, spin)?;
        for event in &events {
            if event.data.u64() == LISTENER {
                accept(listener, &poll, &mut connections)?;
                continue;
            }
            let (index, flags) = (event.data.u64() as usize, event.flags);
            let is_alive = !flags.contains(epoll::EventFlags::OUT) || flush(&poll, &mut connections, index)?;
            let is_alive = is_alive
                && (!flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP)
                    || read(&mut connections, index, &mut buffer, &mut dirty));
            if !is_alive {
                end(&mut connections, index);
            }
        }
        for index in dirty.drain(..) {
            if !flush(&poll, &mut connections, index)? {
                end(&mut connections, index);
            }
        }
    }
}

fn wait(poll: &OwnedFd, events: &mut Vec<epoll::Event>, spin: Duration) -> Result<()> {
    let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
    events.clear();
    if !spin.is_zero() {
        let start = Instant::now();
        while start.elapsed() < spin {
            if epoll::wait(poll, spare_capacity(events), Some(&nothing))? > 0 {
                return Ok(());
            }
        }
    }
    match epoll::wait(poll, spare_capacity(events), None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn accept(listener: &TcpListener, poll: &OwnedFd, connections: &mut Vec<Option<Connection>>) -> Result<()> {
    loop {
        let socket = match listener.accept() {
            Ok((socket, _)) => socket,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // With nobody left, pairs begin anew.
        if connections.iter().all(Option::is_none) {
            connections.clear();
        }
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let data = epoll::EventData::new_u64(connections.len() as u64);
        epoll::add(poll, &socket, data, epoll::EventFlags::IN)?;
        connections.push(Some(Connection {
            socket,
            direction: Direction::default(),
            out: Vec::new(),
            written: 0,
            is_dirty: false,
            wanted: epoll::EventFlags::IN,
        }));
    }
}

/// Reads once and gives the frames to the partner. False if the connection is at its end.
fn read(
    connections: &mut [Option<Connection>],
    index: usize,
    buffer: &mut [u8],
    dirty: &mut Vec<usize>,
) -> bool {
    let Some(connection) = &mut connections[index] else { return true };
    let count = match connection.socket.read(buffer) {
        Ok(0) => return false,
        Ok(count) => count,
        Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    };
    let mut direction = std::mem::take(&mut connection.direction);
    let Some(Some(other)) = connections.get_mut(partner(index)) else { return false };
    let is_sound = direction.forward(&buffer[..count], &mut other.out);
    if !other.is_dirty && !other.out.is_empty() {
        other.is_dirty = true;
        dirty.push(partner(index));
    }
    if let Some(connection) = &mut connections[index] {
        connection.direction = direction;
    }
    is_sound
}

/// Writes what waits. False if the connection is at its end.
fn flush(poll: &OwnedFd, connections: &mut [Option<Connection>], index: usize) -> Result<bool> {
    let Some(connection) = &mut connections[index] else { return Ok(true) };
    connection.is_dirty = false;
    let mut is_alive = true;
    while connection.written < connection.out.len() {
        match connection.socket.write(&connection.out[connection.written..]) {
            Ok(count) => connection.written += count,
            Err(error) => {
                is_alive = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
                break;
            }
        }
    }
    if connection.written == connection.out.len() {
        connection.out.clear();
        connection.written = 0;
    }
    let backlog = connection.out.len() - connection.written;
    want(poll, connection, index, epoll::EventFlags::OUT, backlog > 0)?;
    if let Some(Some(other)) = connections.get_mut(partner(index)) {
        want(poll, other, partner(index), epoll::EventFlags::IN, backlog < BACKLOG_BYTES_MAX)?;
    }
    Ok(is_alive)
}

/// Asks the poller for `flag` or not, if that is a change.
fn want(
    poll: &OwnedFd,
    connection: &mut Connection,
    index: usize,
    flag: epoll::EventFlags,
    is_on: bool,
) -> Result<()> {
    let mut wanted = connection.wanted;
    wanted.set(flag, is_on);
    if wanted != connection.wanted {
        connection.wanted = wanted;
        epoll::modify(poll, &connection.socket, epoll::EventData::new_u64(index as u64), wanted)?;
    }
    Ok(())
}

/// Closes a connection and its partner.
fn end(connections: &mut [Option<Connection>], index: usize) {
    for index in [index, partner(index)] {
        if let Some(slot) = connections.get_mut(index) {
            *slot = None;
        }
    }
}
