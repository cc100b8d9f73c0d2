//! Connections that only keep alive (AMQP 1.0 §2.4.5): their beats wake nobody, and nothing else is late for it.

use crate::wire::{Watch, frame};
use crate::world::{IDLE, World};
use ringmain::base::id::ListenerId;
use ringmain::io::sim::{SimOptions, SimPeer};
use ringmain_codec::{Begin, Flow, Open, Performative, ProtocolHeader};
use std::time::Duration;

const BEAT: [u8; 8] = [0, 0, 0, 8, 2, 0, 0, 0];

/// A peer that has opened a session, and whose beats need not be reported any more.
struct Resting {
    world: World,
    peer: SimPeer,
    watch: Watch,
    flows: usize,
}

impl Resting {
    fn new(seed: u64, options: SimOptions) -> Self {
        Self::announcing(seed, options, None)
    }

    /// One that wants to hear something in each `idle_time_out` ms.
    fn announcing(seed: u64, options: SimOptions, idle_time_out: Option<u32>) -> Self {
        let mut world = World::with_listener(seed, options, crate::world::listener());
        let peer = world.networks[0].connect(ListenerId(0));
        peer.write(&ProtocolHeader::AMQP.to_bytes());
        let open = Open { container_id: "raw", max_frame_size: 1 << 16, idle_time_out, ..Open::default() };
        peer.write(&frame(0, &open, &[]));
        peer.write(&frame(0, &Begin { incoming_window: 100, outgoing_window: 100, ..Begin::default() }, &[]));
        world.pass(Duration::from_secs(2));
        let mut resting = Self { world, peer, watch: Watch::new(), flows: 0 };
        resting.watch.frame_max = 1 << 16;
        resting.read();
        resting.beat();
        assert_eq!(resting.peer.unreceived(), 0, "the first one is heard");
        resting
    }

    fn read(&mut self) {
        let flows = &mut self.flows;
        self.watch.take(&self.peer.read_all(), |_, performative, _| {
            *flows += usize::from(matches!(performative, Performative::Flow(_)));
        });
    }

    fn beat(&mut self) {
        self.peer.write(&BEAT);
        self.world.settle();
    }

    /// How long it took until `count` questions were answered in all.
    fn settle_until_answered(&mut self, count: usize) -> Duration {
        let before = self.world.now();
        self.world.settle();
        self.read();
        assert_eq!(self.flows, count);
        self.world.now().since(before)
    }
}

/// A flow that asks for an answer (AMQP 1.0 §2.5.6, echo).
fn question() -> Vec<u8> {
    let flow = Flow {
        next_incoming_id: Some(0),
        incoming_window: 100,
        next_outgoing_id: 0,
        outgoing_window: 100,
        echo: true,
        ..Flow::default()
    };
    frame(0, &flow, &[])
}

fn smooth() -> SimOptions {
    SimOptions { is_ragged: false, ..SimOptions::default() }
}

#[test]
fn a_beat_lies_until_it_is_looked_at() {
    let mut resting = Resting::new(1, smooth());
    resting.world.pass(Duration::from_secs(1));
    resting.beat();
    assert_eq!(resting.peer.unreceived(), BEAT.len());
    resting.world.pass(IDLE / 2);
    assert_eq!(resting.peer.unreceived(), 0);
}

/// However often the peer beats, it is never taken for silent, and one that misses a beat is looked at again.
#[test]
fn a_peer_that_beats_is_kept() {
    for (seed, seconds) in (1..).zip([1, 3, 4, 5, 8, 11, 15]) {
        let mut resting = Resting::new(seed, SimOptions::default());
        for _ in 0..20 {
            resting.world.pass(Duration::from_secs(seconds));
            resting.beat();
        }
        assert_eq!(resting.peer.ended(), None, "a beat each {seconds} s");
        resting.peer.write(&question());
        resting.settle_until_answered(1);
    }
}

#[test]
fn what_is_more_than_a_beat_is_answered_at_once() {
    for seed in 0..20 {
        let mut resting = Resting::new(seed, SimOptions::default());
        for round in 1..4 {
            // With beats that lie before it or without, in one piece or byte by byte.
            resting.world.pass(Duration::from_secs(round));
            if round != 2 {
                resting.beat();
            }
            let question = question();
            let pieces = if seed % 2 == 0 { question.len() } else { 1 };
            for piece in question.chunks(pieces) {
                resting.peer.write(piece);
                resting.world.turn();
            }
            let took = resting.settle_until_answered(usize::try_from(round).expect("small"));
            assert!(took < Duration::from_millis(100), "seed {seed}, round {round}: {took:?}");
            assert_eq!(resting.peer.unreceived(), 0);
            // It rests again.
            resting.world.pass(Duration::from_secs(2));
            resting.beat();
        }
    }
}

/// A peer at rest hears of us in each of its time-outs, with a quarter of it to spare, and half of a short one.
#[test]
fn a_peer_at_rest_hears_of_us_in_time() {
    for (seed, announced) in (1..).zip([1_000, 4_000, 8_000, 11_000, 16_000, 30_000, 100_000]) {
        let mut resting = Resting::announcing(seed, smooth(), Some(announced));
        resting.read();
        let (mut last, mut longest, mut beats) = (resting.world.now(), Duration::ZERO, 0_u32);
        let step = Duration::from_millis(20);
        let steps = 40 * announced / 200;
        for number in 0..steps {
            resting.world.pass(step);
            if number % 350 == 0 {
                resting.beat();
            }
            let came = resting.peer.read_all();
            if !came.is_empty() {
                assert_eq!(came, BEAT, "nothing but one beat");
                longest = longest.max(resting.world.now().since(last));
                (last, beats) = (resting.world.now(), beats + 1);
            }
        }
        let announced = Duration::from_millis(announced.into());
        let share = if announced < Duration::from_secs(8) { announced / 2 } else { announced / 4 * 3 };
        // A deadline is late by a sixty-fourth at the most, and what comes is noticed after a step.
        let most = share + share / 64 + step * 2;
        assert!(longest <= most && beats >= 4, "{announced:?}: {beats} beats, {longest:?} between two");
    }
}

/// A peer that falls silent is closed after the time-out, and not long after it.
#[test]
fn a_peer_that_falls_silent_is_closed() {
    let mut resting = Resting::new(1, smooth());
    resting.world.pass(Duration::from_secs(1));
    resting.beat();
    let last = resting.world.now();
    resting.world.pass(IDLE - Duration::from_secs(1));
    resting.read();
    assert!(!resting.watch.is_closed());
    while !resting.watch.is_closed() {
        resting.world.pass(Duration::from_millis(500));
        resting.read();
        let silent = resting.world.now().since(last);
        assert!(silent <= IDLE * 3 / 2 + Duration::from_secs(1), "{silent:?}");
    }
    assert!(resting.world.now().since(last) >= IDLE);
}
