//! A virtual peer: the other end of a connection, in the hands of the test.

use super::world::{Ended, LineId, World};
use std::cell::RefCell;
use std::rc::Rc;

/// How the connection ended, as the peer sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerEnd {
    /// The shard closed it, in order.
    Closed,
    /// It was reset, by either side, or refused.
    Reset,
}

/// A virtual peer. Dropping it changes nothing; see [`SimPeer::close`].
pub struct SimPeer {
    world: Rc<RefCell<World>>,
    line: LineId,
}

impl SimPeer {
    pub(super) fn new(world: Rc<RefCell<World>>, line: LineId) -> Self {
        Self { world, line }
    }

    /// Does something with the line, in the network in which it is now: the shard that accepted it may have
    /// handed the socket to another one.
    fn with_line<Outcome>(&self, act: impl FnOnce(&mut World, LineId) -> Outcome) -> Outcome {
        let moved = self.world.borrow().lines[self.line].moved.clone();
        match moved {
            None => act(&mut self.world.borrow_mut(), self.line),
            Some((world, line)) => {
                let world = world.upgrade().expect("the network that the socket went to is there");
                act(&mut world.borrow_mut(), line)
            }
        }
    }

    /// Sends `bytes`. The peer's own buffer is unlimited; [`SimPeer::unreceived`] says how much is in it.
    /// After the end of either side it does nothing.
    pub fn write(&self, bytes: &[u8]) {
        self.with_line(|world, id| {
            let line = &mut world.lines[id];
            if line.ended == Ended::No && line.end.is_none() {
                line.to_shard.extend(bytes);
                world.kick_receive(id);
            }
        });
    }

    /// How many of the bytes written the shard has not received.
    #[must_use]
    pub fn unreceived(&self) -> usize {
        self.with_line(|world, id| world.lines[id].to_shard.len())
    }

    /// What the shard has sent since the last call.
    #[must_use]
    pub fn read_all(&self) -> Vec<u8> {
        self.read(usize::MAX)
    }

    /// At most `most` of the bytes that the shard has sent. Makes room for a send that waits for it.
    #[must_use]
    pub fn read(&self, most: usize) -> Vec<u8> {
        self.with_line(|world, id| {
            let line = &mut world.lines[id];
            let length = most.min(line.to_peer.len());
            let bytes: Vec<u8> = line.to_peer.drain(..length).collect();
            if length > 0 {
                world.kick_send(id);
            }
            bytes
        })
    }

    /// Stops taking bytes beyond the socket's buffer: the shard's sends stay under way once it is full.
    pub fn stop_reading(&self) {
        self.with_line(|world, id| world.lines[id].is_reading = false);
    }

    /// Ends [`SimPeer::stop_reading`].
    pub fn start_reading(&self) {
        self.with_line(|world, id| {
            world.lines[id].is_reading = true;
            world.kick_send(id);
        });
    }

    /// Ends the peer's direction, in order: the shard receives what was written, then the end.
    pub fn shutdown(&self) {
        self.end(Ended::InOrder);
    }

    /// Ends both directions, in order: what the shard sends from now on is answered by a reset.
    pub fn close(&self) {
        self.end(Ended::Closed);
    }

    fn end(&self, ended: Ended) {
        self.with_line(|world, id| {
            let line = &mut world.lines[id];
            if line.ended != Ended::Reset {
                line.ended = ended;
                world.kick_receive(id);
                world.kick_send(id);
            }
        });
    }

    /// Resets the connection at once. What the shard has not received is lost, and what it is sending.
    pub fn reset(&self) {
        self.with_line(World::reset);
    }

    /// Resets the connection once the shard has received exactly `bytes` bytes of this peer.
    pub fn reset_after_sent(&self, bytes: u64) {
        self.with_line(|world, id| {
            let line = &mut world.lines[id];
            line.reset_after_sent = Some(bytes);
            if line.received >= bytes {
                world.reset(id);
            }
        });
    }

    /// Resets the connection once the shard has sent exactly `bytes` bytes to this peer.
    pub fn reset_after_received(&self, bytes: u64) {
        self.with_line(|world, id| {
            let line = &mut world.lines[id];
            line.reset_after_received = Some(bytes);
            if line.handed >= bytes {
                world.reset(id);
            }
        });
    }

    /// How the connection ended; `None` while it lasts, or while bytes that came before the end are unread.
    #[must_use]
    pub fn ended(&self) -> Option<PeerEnd> {
        self.with_line(|world, id| {
            let line = &world.lines[id];
            line.end.filter(|&end| end == PeerEnd::Reset || line.to_peer.is_empty())
        })
    }

    /// How many bytes the shard has received of this peer.
    #[must_use]
    pub fn sent_total(&self) -> u64 {
        self.with_line(|world, id| world.lines[id].received)
    }

    /// How many bytes the shard has sent to this peer, read or not.
    #[must_use]
    pub fn received_total(&self) -> u64 {
        self.with_line(|world, id| world.lines[id].handed)
    }
}
