//! The simulated driver keeps the contract of the real one, and does what its handle says.

use super::*;
use crate::base::id::{ConnectionKey, Key, ListenerId};
use crate::base::time::Instant;
use crate::io::contract::{Peer, Stand, contract_tests};
use crate::io::driver::{ACCEPT_PAUSE, Chunk, Completion, Driver};
use std::io;

impl Peer for SimPeer {
    fn write(&mut self, bytes: &[u8]) -> usize {
        SimPeer::write(self, bytes);
        bytes.len()
    }

    fn read(&mut self, most: usize) -> Vec<u8> {
        SimPeer::read(self, most)
    }

    fn has_ended(&mut self) -> bool {
        self.ended().is_some()
    }

    fn shutdown(&mut self) {
        SimPeer::shutdown(self);
    }

    fn reset(&mut self) {
        SimPeer::reset(self);
    }
}

struct SimStand {
    network: SimNetwork,
    driver: SimDriver,
}

impl SimStand {
    fn new(seed: u64, is_ragged: bool) -> Self {
        let options = SimOptions { is_ragged, buffer_count: Self::BUFFERS, ..SimOptions::default() };
        let network = SimNetwork::with_options(seed, options);
        let mut driver = network.driver();
        driver.listen(ListenerId(0), network.listener()).expect("to listen");
        Self { network, driver }
    }
}

impl Stand for SimStand {
    type Driver = SimDriver;
    type Peer = SimPeer;
    const BUFFERS: usize = 32;

    fn driver(&mut self) -> &mut SimDriver {
        &mut self.driver
    }

    fn connect(&mut self) -> SimPeer {
        let peer = self.network.connect(ListenerId(0));
        peer.stop_reading();
        peer
    }
}

mod ragged {
    use super::*;
    contract_tests!((0..8).map(|seed| SimStand::new(seed, true)));
}

mod smooth {
    use super::*;
    contract_tests!((0..2).map(|seed| SimStand::new(seed, false)));
}

const KEY: ConnectionKey = ConnectionKey(Key { index: 0, generation: 0 });

/// A network with one open connection.
fn connected(seed: u64) -> (SimNetwork, SimDriver, SimPeer) {
    let network = SimNetwork::new(seed);
    let mut driver = network.driver();
    let (socket, peer) = network.socket();
    driver.open(KEY, socket);
    (network, driver, peer)
}

/// Turns until nothing is under way; says what happened, and when.
fn settle(network: &SimNetwork, driver: &mut SimDriver) -> Vec<(Instant, String)> {
    let mut trace = Vec::new();
    while !network.is_idle() {
        driver.submit_and_wait(None).expect("the simulation works");
        while let Some(completion) = driver.next_completion() {
            trace.push((driver.now(), format!("{completion:?}")));
            if let Completion::Received { buffer, .. } = completion {
                driver.release(buffer);
            }
        }
    }
    trace
}

/// Turns until nothing is under way; says what was received, and whether a reset came.
fn receive_all(network: &SimNetwork, driver: &mut SimDriver) -> (Vec<u8>, bool) {
    let (mut received, mut is_reset) = (Vec::new(), false);
    while !network.is_idle() {
        driver.submit_and_wait(None).expect("the simulation works");
        while let Some(completion) = driver.next_completion() {
            match completion {
                Completion::Received { connection: KEY, buffer } => {
                    received.extend_from_slice(driver.bytes(&buffer));
                    driver.release(buffer);
                }
                Completion::ReceiveEnded { connection: KEY, error: Some(error) } => {
                    is_reset = error.kind() == io::ErrorKind::ConnectionReset;
                }
                Completion::Sent { connection: KEY, .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
    (received, is_reset)
}

fn chunk(bytes: &[u8]) -> Chunk {
    Chunk { bytes: bytes.into(), filled: bytes.len() }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let (network, mut driver, peer) = connected(seed);
        peer.write(&[7; 5_000]);
        driver.send(KEY, [chunk(&[9; 3_000])].into_iter().collect());
        peer.reset_after_sent(4_000);
        settle(&network, &mut driver)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_peer_resets_at_the_very_byte_that_it_sent() {
    let bytes = *b"twelve bytes";
    for at in 0..=bytes.len() {
        for seed in 0..10 {
            let (network, mut driver, peer) = connected(seed);
            peer.reset_after_sent(at as u64);
            peer.write(&bytes);
            let (received, is_reset) = receive_all(&network, &mut driver);
            assert_eq!(received, &bytes[..at]);
            assert!(is_reset);
            assert_eq!(peer.ended(), Some(PeerEnd::Reset));
        }
    }
}

#[test]
fn a_peer_resets_at_the_very_byte_that_it_received() {
    let bytes = *b"twelve bytes";
    for at in 0..=bytes.len() {
        for seed in 0..10 {
            let (network, mut driver, peer) = connected(seed);
            peer.reset_after_received(at as u64);
            driver.send(KEY, [chunk(&bytes)].into_iter().collect());
            let (_, is_reset) = receive_all(&network, &mut driver);
            assert_eq!(peer.read_all(), &bytes[..at]);
            assert!(is_reset);
        }
    }
}

#[test]
fn a_failed_accept_is_tried_again_after_the_pause() {
    let network = SimNetwork::new(1);
    let mut driver = network.driver();
    driver.listen(ListenerId(3), network.listener()).expect("to listen");
    network.fail_accept(ListenerId(3), io::Error::from_raw_os_error(libc::EMFILE));
    let peer = network.connect(ListenerId(3));
    let trace = settle(&network, &mut driver);
    let [(failed, failure), (accepted, acceptance)] = &trace[..] else { panic!("{trace:?}") };
    assert!(failure.starts_with("AcceptFailed") && acceptance.starts_with("Accepted"));
    assert!(accepted.since(*failed) >= ACCEPT_PAUSE);
    // `settle` has dropped the socket.
    assert_eq!(peer.ended(), Some(PeerEnd::Closed));
}

#[test]
fn a_peer_may_connect_before_the_listener_is_there_but_not_after_it_has_gone() {
    let network = SimNetwork::new(1);
    let mut driver = network.driver();
    let early = network.connect(ListenerId(0));
    assert!(settle(&network, &mut driver).is_empty());
    driver.listen(ListenerId(0), network.listener()).expect("to listen");
    assert_eq!(settle(&network, &mut driver).len(), 1);
    driver.stop_listening();
    let late = network.connect(ListenerId(0));
    assert!(settle(&network, &mut driver).is_empty());
    assert_eq!((early.ended(), late.ended()), (Some(PeerEnd::Closed), Some(PeerEnd::Reset)));
}

#[test]
fn a_held_clock_moves_only_when_it_is_told() {
    let (network, mut driver, _peer) = connected(1);
    settle(&network, &mut driver);
    network.hold_clock(true);
    let start = network.now();
    let deadline = start + Duration::from_secs(1);
    driver.submit_and_wait(Some(deadline)).expect("the simulation works");
    assert_eq!(driver.now(), start);
    network.advance(Duration::from_secs(2));
    driver.submit_and_wait(Some(deadline)).expect("the simulation works");
    assert_eq!(driver.now(), start + Duration::from_secs(2));
    network.hold_clock(false);
    driver.submit_and_wait(Some(start + Duration::from_secs(3))).expect("the simulation works");
    assert_eq!(driver.now(), start + Duration::from_secs(3));
}

#[test]
fn sending_to_a_peer_that_has_closed_fails_and_resets() {
    let (network, mut driver, peer) = connected(1);
    peer.close();
    settle(&network, &mut driver);
    driver.send(KEY, [chunk(b"too late")].into_iter().collect());
    let trace = settle(&network, &mut driver);
    assert!(trace[0].1.contains("Err("), "{trace:?}");
    assert!(peer.read_all().is_empty());
}

#[test]
fn a_socket_that_goes_to_another_networks_driver_takes_its_peer_along() {
    let (accepting, serving) = (SimNetwork::new(1), SimNetwork::new(2));
    let (mut acceptor, mut driver) = (accepting.driver(), serving.driver());
    acceptor.listen(ListenerId(0), accepting.listener()).expect("to listen");
    let peer = accepting.connect(ListenerId(0));
    peer.write(b"before ");
    acceptor.submit_and_wait(None).expect("the simulation works");
    let Some(Completion::Accepted { socket, .. }) = acceptor.next_completion() else { panic!("nobody came") };
    peer.write(b"between ");
    driver.open(KEY, socket);
    peer.write(b"after");
    assert_eq!(receive_all(&serving, &mut driver), (b"before between after".to_vec(), false));
    driver.send(KEY, [chunk(b"an answer")].into_iter().collect());
    settle(&serving, &mut driver);
    assert_eq!(peer.read_all(), b"an answer");
    assert_eq!((accepting.connections(), serving.connections()), (0, 1));
    peer.reset();
    assert_eq!(receive_all(&serving, &mut driver), (Vec::new(), true));
    assert!(accepting.is_idle());
}
