//! What the contract of [`Driver`] promises, tried on every driver that there is.
//!
//! The tests play a shard and its peers in one thread, in turns, so that the same test runs over real
//! sockets and over the simulated network.

mod mark;

pub(super) use mark::{
    a_look_brings_what_is_below_the_mark, a_look_waits_for_a_buffer, bytes_below_the_mark_are_not_reported,
    closing_and_pausing_while_looked_at, looking_at_random_keeps_the_order,
};

use super::driver::{Chunk, Chunks, Completion, Driver};
use crate::base::id::{ConnectionKey, ListenerId};
use crate::base::slab::KeyedSlab;
use core::time::Duration;
use std::io;

/// A peer's end of a connection.
pub(super) trait Peer {
    /// Writes as much of `bytes` as goes without waiting, and returns how much that was.
    fn write(&mut self, bytes: &[u8]) -> usize;
    /// Reads what is there, at most `most` bytes.
    fn read(&mut self, most: usize) -> Vec<u8>;
    /// Whether the shard's direction has ended, or the connection was reset. To be asked after reading.
    fn has_ended(&mut self) -> bool;
    /// Ends this direction.
    fn shutdown(&mut self);
    /// Resets the connection.
    fn reset(&mut self);
}

/// A driver that listens as listener 0, and a way to connect to it.
pub(super) trait Stand {
    type Driver: Driver;
    type Peer: Peer;
    /// Receive buffers of the driver.
    const BUFFERS: usize;
    fn driver(&mut self) -> &mut Self::Driver;
    fn connect(&mut self) -> Self::Peer;
}

/// What a test shard knows of a connection.
struct Record {
    received: Vec<u8>,
    ended: Option<Option<io::Error>>,
    sent: Vec<(Chunks, io::Result<()>)>,
    is_closed: bool,
    is_closing: bool,
}

/// A test shard over a stand. Its connections stay in the slab after they are closed, unless removed.
struct Shard<S: Stand> {
    stand: S,
    connections: KeyedSlab<ConnectionKey, Record>,
    accepted: Vec<ConnectionKey>,
    held: Vec<(ConnectionKey, <S::Driver as Driver>::Received)>,
    is_holding: bool,
    wakes: usize,
    failures: usize,
}

/// Time after which a test that waits for something has failed.
const PATIENCE: Duration = Duration::from_secs(20);

impl<S: Stand> Shard<S> {
    fn new(stand: S) -> Self {
        Self {
            stand,
            connections: KeyedSlab::default(),
            accepted: Vec::new(),
            held: Vec::new(),
            is_holding: false,
            wakes: 0,
            failures: 0,
        }
    }

    fn driver(&mut self) -> &mut S::Driver {
        self.stand.driver()
    }

    fn connect(&mut self) -> (S::Peer, ConnectionKey) {
        let peer = self.stand.connect();
        let before = self.accepted.len();
        self.until(|shard| shard.accepted.len() > before);
        (peer, self.accepted[before])
    }

    fn record(&self, key: ConnectionKey) -> &Record {
        self.connections.get(key).expect("the test knows the connection")
    }

    fn turn(&mut self) {
        let deadline = self.driver().now() + Duration::from_millis(2);
        self.driver().submit_and_wait(Some(deadline)).expect("the driver works");
        while let Some(completion) = self.driver().next_completion() {
            self.complete(completion);
        }
    }

    fn complete(
        &mut self,
        completion: Completion<<S::Driver as Driver>::Socket, <S::Driver as Driver>::Received>,
    ) {
        match completion {
            Completion::Accepted { listener, socket, peer: _ } => {
                assert_eq!(listener, ListenerId(0));
                let key = self.connections.insert(Record {
                    received: Vec::new(),
                    ended: None,
                    sent: Vec::new(),
                    is_closed: false,
                    is_closing: false,
                });
                self.accepted.push(key);
                self.driver().open(key, socket);
            }
            Completion::AcceptFailed { listener: _, error: _ } => self.failures += 1,
            Completion::Received { connection, buffer } => {
                let bytes = self.stand.driver().bytes(&buffer).to_vec();
                assert!(!bytes.is_empty());
                let record = self.connections.get_mut(connection).expect("the driver knows the key");
                assert!(record.ended.is_none() && !record.is_closing && !record.is_closed);
                record.received.extend(bytes);
                if self.is_holding {
                    self.held.push((connection, buffer));
                } else {
                    self.driver().release(buffer);
                }
            }
            Completion::ReceiveEnded { connection, error } => {
                let record = self.connections.get_mut(connection).expect("the driver knows the key");
                assert!(!record.is_closing && !record.is_closed);
                assert!(record.ended.replace(error).is_none(), "an end comes once");
            }
            Completion::Sent { connection, chunks, result } => {
                let record = self.connections.get_mut(connection).expect("the driver knows the key");
                assert!(!record.is_closed);
                record.sent.push((chunks, result));
            }
            Completion::Closed { connection } => {
                let record = self.connections.get_mut(connection).expect("the driver knows the key");
                assert!(record.is_closing && !record.is_closed, "the shard closes, and once");
                record.is_closed = true;
            }
            Completion::Woken => self.wakes += 1,
        }
    }

    fn until(&mut self, mut is_reached: impl FnMut(&mut Self) -> bool) {
        let start = self.driver().now();
        while !is_reached(self) {
            assert!(self.driver().now().since(start) < PATIENCE, "it is never reached");
            self.turn();
        }
    }

    fn turns(&mut self, count: usize) {
        for _ in 0..count {
            self.turn();
        }
    }

    fn send(&mut self, key: ConnectionKey, parts: &[&[u8]]) {
        let chunks = parts.iter().map(|part| Chunk { bytes: (*part).into(), filled: part.len() }).collect();
        self.driver().send(key, chunks);
    }

    fn close(&mut self, key: ConnectionKey) {
        self.connections.get_mut(key).expect("the test knows the connection").is_closing = true;
        self.driver().close(key);
    }

    fn close_and_wait(&mut self, key: ConnectionKey) {
        self.close(key);
        self.until(|shard| shard.record(key).is_closed);
    }

    fn release_held(&mut self) {
        for (_, buffer) in core::mem::take(&mut self.held) {
            self.driver().release(buffer);
        }
    }
}

/// Bytes that no shift or swap of pieces leaves equal.
fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    core::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

/// Writes all of `bytes` while the shard turns.
fn write_all<S: Stand>(shard: &mut Shard<S>, peer: &mut S::Peer, bytes: &[u8]) {
    let mut written = 0;
    shard.until(|_| {
        written += peer.write(&bytes[written..]);
        written == bytes.len()
    });
}

/// Reads until the shard's direction has ended.
fn read_to_end<S: Stand>(shard: &mut Shard<S>, peer: &mut S::Peer) -> Vec<u8> {
    let mut all = Vec::new();
    shard.until(|_| {
        all.extend(peer.read(usize::MAX));
        peer.has_ended()
    });
    all
}

pub(super) fn echo_of_many_connections<S: Stand>(stand: S) {
    const PEERS: usize = 40;
    const BYTES: usize = 30_000;
    let mut shard = Shard::new(stand);
    let mut peers: Vec<_> = (0..PEERS).map(|_| shard.connect()).collect();
    let mut written = [0; PEERS];
    let mut echoed = [0; PEERS];
    let mut sends = [0; PEERS];
    let mut read: Vec<Vec<u8>> = vec![Vec::new(); PEERS];
    let expected: Vec<_> = (0..PEERS).map(|peer| pattern(BYTES, peer as u64)).collect();
    shard.until(|shard| {
        for (index, (peer, key)) in peers.iter_mut().enumerate() {
            let piece = (written[index] + 10 + 37 * index).min(BYTES);
            written[index] += peer.write(&expected[index][written[index]..piece.max(written[index])]);
            read[index].extend(peer.read(usize::MAX));
            let record = shard.connections.get(*key).expect("it is open");
            if record.sent.len() == sends[index] && record.received.len() > echoed[index] {
                let part = record.received[echoed[index]..].to_vec();
                echoed[index] += part.len();
                sends[index] += 1;
                shard.send(*key, &[&part]);
            }
        }
        read.iter().all(|read| read.len() == BYTES)
    });
    assert_eq!(read, expected);
    for (_, key) in peers {
        assert!(shard.record(key).sent.iter().all(|(_, result)| result.is_ok()));
        shard.close(key);
    }
}

pub(super) fn large_chunks_to_a_slow_reader<S: Stand>(stand: S) {
    const MIB: usize = 1 << 20;
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    let bytes = pattern(6 * MIB, 1);
    let parts: Vec<&[u8]> = bytes.chunks(MIB).collect();
    shard.send(key, &parts);
    shard.turns(20);
    assert!(shard.record(key).sent.is_empty(), "the peer hasn't read: the send is under way");
    let mut read = Vec::new();
    shard.until(|_| {
        read.extend(peer.read(50_000));
        read.len() == bytes.len()
    });
    assert!(read == bytes);
    shard.until(|shard| !shard.record(key).sent.is_empty());
    let (chunks, result) = &shard.record(key).sent[0];
    assert!(result.is_ok());
    assert!(chunks.iter().zip(&parts).all(|(chunk, part)| chunk.bytes[..] == **part));
    assert_eq!(chunks.len(), parts.len());
}

pub(super) fn many_small_chunks_in_one_send<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    let bytes = pattern(5_000, 2);
    // More parts than the kernel takes in one call, some of them empty.
    let parts: Vec<&[u8]> = bytes.chunks(2).flat_map(|part| [part, &[]]).collect();
    shard.send(key, &parts);
    let mut read = Vec::new();
    shard.until(|shard| {
        read.extend(peer.read(usize::MAX));
        read.len() == bytes.len() && shard.record(key).sent.len() == 1
    });
    assert_eq!(read, bytes);
}

pub(super) fn only_the_filled_part_is_sent<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    let chunk = |bytes: &[u8], filled| Chunk { bytes: bytes.into(), filled };
    let chunks = [chunk(b"abXX", 2), chunk(b"XXXX", 0), chunk(b"cX", 1)].into_iter().collect();
    shard.driver().send(key, chunks);
    shard.until(|shard| shard.record(key).sent.len() == 1);
    shard.send(key, &[]);
    shard.until(|shard| shard.record(key).sent.len() == 2);
    assert!(shard.record(key).sent.iter().all(|(_, result)| result.is_ok()));
    shard.close(key);
    assert_eq!(read_to_end(&mut shard, &mut peer), b"abc");
}

pub(super) fn static_bytes_are_sent_like_others<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    let mut got = Vec::new();
    for round in 1..=3 {
        shard.driver().send_static(key, b"static");
        shard.until(|shard| shard.record(key).sent.len() == 2 * round - 1);
        shard.send(key, &[b"chunk"]);
        shard.until(|shard| shard.record(key).sent.len() == 2 * round);
        shard.until(|_| {
            got.extend(peer.read(64));
            got.len() == 11 * round
        });
    }
    assert_eq!(got, b"staticchunk".repeat(3));
    let chunks = shard.record(key).sent.iter().map(|(chunks, result)| (chunks.len(), result.is_ok()));
    assert_eq!(chunks.collect::<Vec<_>>(), [(0, true), (1, true)].repeat(3));
    shard.close(key);
    shard.driver().send_static(key, b"late");
    shard.until(|shard| shard.record(key).is_closed);
    assert!(
        shard.record(key).sent.last().is_some_and(|(chunks, result)| chunks.is_empty() && result.is_err())
    );
}

pub(super) fn reset_during_a_send<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    shard.send(key, &[&pattern(8 << 20, 3), b"end"]);
    shard.turns(10);
    assert!(shard.record(key).sent.is_empty());
    peer.reset();
    shard.until(|shard| !shard.record(key).sent.is_empty() && shard.record(key).ended.is_some());
    let (chunks, result) = &shard.record(key).sent[0];
    assert_eq!(chunks.len(), 2);
    assert!(result.is_err());
    shard.close_and_wait(key);
}

pub(super) fn close_while_a_send_is_stuck<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    let bytes = pattern(8 << 20, 4);
    shard.send(key, &[&bytes]);
    shard.turns(10);
    assert!(shard.record(key).sent.is_empty());
    shard.close(key);
    shard.driver().close(key);
    let read = read_to_end(&mut shard, &mut peer);
    peer.shutdown();
    shard.until(|shard| shard.record(key).is_closed);
    assert!(!read.is_empty() && read.len() < bytes.len() && bytes.starts_with(&read));
    let (chunks, result) = &shard.record(key).sent[0];
    assert_eq!(chunks.len(), 1);
    assert!(result.is_err());
}

pub(super) fn a_pause_holds_bytes_back<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    shard.driver().pause_receiving(key);
    shard.turns(10);
    let bytes = pattern(300_000, 5);
    let mut written = peer.write(&bytes);
    shard.turns(20);
    // One `Received` may have been under way.
    let early = shard.record(key).received.len();
    shard.turns(20);
    assert_eq!(shard.record(key).received.len(), early);
    assert!(early <= 16 * 1024);
    shard.driver().resume_receiving(key);
    shard.until(|shard| {
        written += peer.write(&bytes[written..]);
        shard.record(key).received.len() == bytes.len()
    });
    assert!(shard.record(key).received == bytes);
}

pub(super) fn pausing_and_resuming_at_random_loses_nothing<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    let bytes = pattern(500_000, 6);
    let mut random = fastrand::Rng::with_seed(6);
    let mut written = 0;
    shard.until(|shard| {
        let piece = (written + random.usize(1..=5_000)).min(bytes.len());
        written += peer.write(&bytes[written..piece]);
        match random.u8(0..4) {
            0 => shard.driver().pause_receiving(key),
            1 => {
                shard.driver().pause_receiving(key);
                shard.driver().resume_receiving(key);
            }
            _ => shard.driver().resume_receiving(key),
        }
        shard.record(key).received.len() == bytes.len()
    });
    assert!(shard.record(key).received == bytes);
    peer.shutdown();
    shard.driver().resume_receiving(key);
    shard.until(|shard| shard.record(key).ended.is_some());
    shard.close_and_wait(key);
}

pub(super) fn a_paused_connection_learns_of_a_reset<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    shard.driver().pause_receiving(key);
    shard.turns(5);
    peer.reset();
    shard.until(|shard| shard.record(key).ended.is_some());
    assert!(shard.record(key).ended.as_ref().is_some_and(Option::is_some));
    shard.close_and_wait(key);
}

pub(super) fn closing_a_paused_connection<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    shard.driver().pause_receiving(key);
    shard.turns(5);
    peer.write(&pattern(100_000, 7));
    shard.turns(5);
    shard.close(key);
    assert!(read_to_end(&mut shard, &mut peer).is_empty());
    peer.shutdown();
    shard.until(|shard| shard.record(key).is_closed);
}

pub(super) fn receiving_goes_on_after_buffers_ran_out<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let mut peers: Vec<_> = (0..4).map(|_| shard.connect()).collect();
    shard.is_holding = true;
    let bytes = pattern(1_500_000, 8);
    let mut written = [0; 4];
    let feed = |peers: &mut Vec<(S::Peer, ConnectionKey)>, written: &mut [usize; 4]| {
        for ((peer, _), written) in peers.iter_mut().zip(written) {
            *written += peer.write(&bytes[*written..]);
        }
    };
    shard.until(|shard| {
        feed(&mut peers, &mut written);
        shard.held.len() == S::BUFFERS
    });
    shard.turns(20);
    assert_eq!(shard.held.len(), S::BUFFERS);
    // One at a time first, then all.
    for _ in 0..8 {
        let (_, buffer) = shard.held.swap_remove(0);
        shard.driver().release(buffer);
        shard.until(|shard| {
            feed(&mut peers, &mut written);
            shard.held.len() == S::BUFFERS
        });
    }
    shard.is_holding = false;
    shard.release_held();
    shard.until(|shard| {
        feed(&mut peers, &mut written);
        peers.iter().all(|(_, key)| shard.record(*key).received.len() == bytes.len())
    });
    assert!(peers.iter().all(|(_, key)| shard.record(*key).received == bytes));
}

pub(super) fn closing_while_starved<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut first, first_key) = shard.connect();
    let (mut second, second_key) = shard.connect();
    shard.is_holding = true;
    let bytes = pattern(1_500_000, 9);
    let mut written = 0;
    shard.until(|shard| {
        written += first.write(&bytes[written..]);
        shard.held.len() == S::BUFFERS
    });
    second.write(b"waits for a buffer");
    shard.turns(10);
    shard.close(first_key);
    shard.close(second_key);
    first.shutdown();
    second.shutdown();
    shard.until(|shard| shard.record(first_key).is_closed && shard.record(second_key).is_closed);
    // Buffers outlive their connection.
    let (_, buffer) = &shard.held[0];
    assert!(bytes.starts_with(shard.stand.driver().bytes(buffer)));
    shard.release_held();
    shard.is_holding = false;
    let (mut third, third_key) = shard.connect();
    third.write(b"served");
    shard.until(|shard| shard.record(third_key).received == b"served");
}

pub(super) fn an_orderly_end_comes_after_the_bytes<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    let bytes = pattern(100_000, 10);
    write_all(&mut shard, &mut peer, &bytes);
    peer.shutdown();
    shard.until(|shard| shard.record(key).ended.is_some());
    assert!(matches!(shard.record(key).ended, Some(None)));
    assert!(shard.record(key).received == bytes);
    // The other direction is still open.
    shard.send(key, &[b"answer"]);
    shard.until(|shard| shard.record(key).sent.len() == 1);
    assert!(shard.record(key).sent[0].1.is_ok());
    shard.close(key);
    assert_eq!(read_to_end(&mut shard, &mut peer), b"answer");
    shard.until(|shard| shard.record(key).is_closed);
}

pub(super) fn closing_delivers_what_was_sent_though_the_peer_keeps_sending<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    let answer = pattern(40_000, 11);
    let noise = pattern(10_000, 12);
    peer.write(&noise);
    shard.turns(3);
    shard.send(key, &[&answer]);
    shard.until(|shard| shard.record(key).sent.len() == 1);
    shard.close(key);
    let mut read = Vec::new();
    for _ in 0..20 {
        peer.write(&noise);
        shard.turn();
        read.extend(peer.read(2_500));
    }
    read.extend(read_to_end(&mut shard, &mut peer));
    assert!(read == answer);
    peer.shutdown();
    shard.until(|shard| shard.record(key).is_closed);
}

pub(super) fn closing_ends_although_the_peer_never_does<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    shard.close(key);
    shard.until(|shard| {
        peer.write(b"and on and on");
        shard.record(key).is_closed
    });
}

pub(super) fn a_place_is_used_again_after_closed<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    for round in 0..20_u8 {
        let (mut peer, key) = shard.connect();
        assert_eq!(key.0.index, 0);
        assert_eq!(key.0.generation, u32::from(round));
        peer.write(&[round]);
        shard.until(|shard| shard.record(key).received == [round]);
        if round % 2 == 0 {
            peer.reset();
        } else {
            peer.shutdown();
        }
        shard.close_and_wait(key);
        shard.connections.remove(key);
        // Calls for a connection that has gone do nothing, though another one takes its place.
        shard.driver().pause_receiving(key);
        shard.driver().resume_receiving(key);
        shard.driver().close(key);
    }
}

pub(super) fn an_unwanted_socket_is_closed_by_dropping_it<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let mut peer = shard.stand.connect();
    let mut is_dropped = false;
    while !is_dropped {
        shard.driver().submit_and_wait(None).expect("the driver works");
        while let Some(completion) = shard.driver().next_completion() {
            is_dropped |= matches!(completion, Completion::Accepted { .. });
            drop(completion);
        }
    }
    assert!(read_to_end(&mut shard, &mut peer).is_empty());
}

pub(super) fn a_wake_ends_the_wait<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let waker = shard.driver().waker();
    for round in 1..=3 {
        waker.wake();
        waker.wake();
        shard.driver().submit_and_wait(None).expect("the driver works");
        let completion = shard.driver().next_completion().expect("the wake");
        assert!(matches!(completion, Completion::Woken));
        shard.turns(3);
        assert!(shard.wakes <= 3 * round, "a wake is reported once, or a little more");
    }
}

pub(super) fn a_deadline_ends_the_wait<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    shard.turns(3);
    let before = shard.driver().now();
    let deadline = before + Duration::from_millis(20);
    shard.driver().submit_and_wait(Some(deadline)).expect("the driver works");
    let now = shard.driver().now();
    assert!(now >= deadline);
    // One that has passed doesn't wait.
    shard.driver().submit_and_wait(Some(before)).expect("the driver works");
    assert!(shard.driver().now().since(now) < Duration::from_millis(20));
}

pub(super) fn no_one_is_accepted_after_stop_listening<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    shard.driver().stop_listening();
    shard.turns(5);
    peer.write(b"still here");
    shard.until(|shard| shard.record(key).received == b"still here");
    assert_eq!(shard.accepted.len(), 1);
}

pub(super) fn one_listener_stops_alone<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    shard.driver().stop_listening_on(ListenerId(1));
    let (mut peer, key) = shard.connect();
    shard.driver().stop_listening_on(ListenerId(0));
    shard.turns(5);
    peer.write(b"still here");
    shard.until(|shard| shard.record(key).received == b"still here");
    assert_eq!(shard.accepted.len(), 1);
}

pub(super) fn a_full_shard_lets_others_wait<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (_first, _) = shard.connect();
    shard.driver().pause_accepting();
    shard.turns(5);
    let mut second = shard.stand.connect();
    second.write(b"patient");
    shard.turns(5);
    assert_eq!(shard.accepted.len(), 1);
    shard.driver().resume_accepting();
    shard.until(|shard| shard.accepted.len() == 2);
    let key = shard.accepted[1];
    shard.until(|shard| shard.record(key).received == b"patient");
    // Both before the driver is told of either.
    shard.driver().pause_accepting();
    shard.driver().resume_accepting();
    shard.connect();
}

/// Makes one test of each promise, over all stands that the iterator `$stands` yields.
macro_rules! contract_tests {
    ($stands:expr, $($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                $stands.into_iter().for_each(crate::io::contract::$name);
            }
        )*
    };
    ($stands:expr) => {
        crate::io::contract::contract_tests!(
            $stands,
            echo_of_many_connections,
            large_chunks_to_a_slow_reader,
            many_small_chunks_in_one_send,
            only_the_filled_part_is_sent,
            static_bytes_are_sent_like_others,
            reset_during_a_send,
            close_while_a_send_is_stuck,
            a_pause_holds_bytes_back,
            pausing_and_resuming_at_random_loses_nothing,
            a_paused_connection_learns_of_a_reset,
            closing_a_paused_connection,
            receiving_goes_on_after_buffers_ran_out,
            closing_while_starved,
            an_orderly_end_comes_after_the_bytes,
            closing_delivers_what_was_sent_though_the_peer_keeps_sending,
            closing_ends_although_the_peer_never_does,
            a_place_is_used_again_after_closed,
            an_unwanted_socket_is_closed_by_dropping_it,
            bytes_below_the_mark_are_not_reported,
            a_look_brings_what_is_below_the_mark,
            looking_at_random_keeps_the_order,
            closing_and_pausing_while_looked_at,
            a_look_waits_for_a_buffer,
            a_wake_ends_the_wait,
            a_deadline_ends_the_wait,
            a_full_shard_lets_others_wait,
            no_one_is_accepted_after_stop_listening,
            one_listener_stops_alone,
        );
    };
}
pub(super) use contract_tests;
