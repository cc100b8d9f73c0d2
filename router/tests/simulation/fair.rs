//! A peer that sends as fast as it can, beside one that asks and waits for its answer. What is counted is
//! turns, not time.

use crate::wire::{Watch, frame};
use crate::world::World;
use ringmain::base::id::ListenerId;
use ringmain::base::limits::{BUFFERS_DEFERRED_MAX, CONNECTION_BYTES_PER_TURN_MAX};
use ringmain::io::sim::{SimOptions, SimPeer};
use ringmain_codec::{Begin, Flow, Open, Performative, ProtocolHeader};
use std::time::Duration;

const BUFFER: usize = 16 * 1024;

/// Everything arrives at once, in whole buffers: all of a flood is there when a turn begins.
const AT_ONCE: SimOptions = SimOptions {
    latency_max: Duration::ZERO,
    is_ragged: false,
    socket_buffer: 64 * 1024,
    buffer_size: BUFFER,
    buffer_count: 256,
};

/// What a peer is heard of in one turn at the most: its share, and the buffer that exceeds it.
const HEARD_MAX: usize = CONNECTION_BYTES_PER_TURN_MAX as usize + BUFFER;

struct Raw {
    peer: SimPeer,
    watch: Watch,
    flows: usize,
}

impl Raw {
    fn open(world: &mut World) -> Self {
        let peer = world.networks[0].connect(ListenerId(0));
        peer.write(&ProtocolHeader::AMQP.to_bytes());
        peer.write(&frame(0, &Open { container_id: "raw", max_frame_size: 1 << 16, ..Open::default() }, &[]));
        peer.write(&frame(0, &Begin { incoming_window: 100, outgoing_window: 100, ..Begin::default() }, &[]));
        world.settle();
        let mut raw = Self { peer, watch: Watch::new(), flows: 0 };
        raw.watch.frame_max = 1 << 16;
        raw.read();
        raw
    }

    fn read(&mut self) {
        let flows = &mut self.flows;
        self.watch.take(&self.peer.read_all(), |_, performative, _| {
            *flows += usize::from(matches!(performative, Performative::Flow(_)));
        });
    }

    /// Asks for the state of the session (AMQP 1.0 §2.5.6, echo).
    fn ask(&self) {
        self.peer.write(&flow(true));
    }
}

fn flow(echo: bool) -> Vec<u8> {
    let flow = Flow {
        next_incoming_id: Some(0),
        incoming_window: 100,
        next_outgoing_id: 0,
        outgoing_window: 100,
        echo,
        ..Flow::default()
    };
    frame(0, &flow, &[])
}

/// Frames that ask for nothing, of `bytes` bytes together or a little less.
fn flood(bytes: usize) -> Vec<u8> {
    let one = flow(false);
    one.repeat(bytes / one.len())
}

#[test]
fn one_that_floods_does_not_keep_another_from_its_answers() {
    const FLOOD: usize = 8 << 20;
    let mut world = World::new(1, AT_ONCE);
    let flooding = Raw::open(&mut world);
    let mut asking = Raw::open(&mut world);
    flooding.peer.write(&flood(FLOOD));
    let (mut rounds, mut turns_of_flood) = (0, 0);
    let answers_before = asking.flows;
    while !world.networks[0].is_idle() || world.networks[0].buffers_held() > 0 {
        asking.ask();
        let asked = asking.flows;
        let mut turns = 0;
        while asking.flows == asked {
            assert!(turns < 3, "round {rounds}: no answer in {turns} turns");
            world.shards[0].turn().expect("the simulated driver doesn't fail");
            turns += 1;
            asking.read();
        }
        rounds += 1;
        turns_of_flood += turns;
    }
    assert_eq!(asking.flows - answers_before, rounds);
    assert!(
        turns_of_flood >= FLOOD / HEARD_MAX,
        "a flood of {FLOOD} bytes was heard in {turns_of_flood} turns"
    );
    assert!(rounds >= turns_of_flood / 3, "{rounds} answers in {turns_of_flood} turns");
    assert_eq!(flooding.peer.unreceived(), 0);
    assert_eq!(flooding.peer.ended(), None);
}

/// However much it sends, it doesn't keep the receive buffers that others need.
#[test]
fn one_that_floods_does_not_hold_the_buffers() {
    let mut world = World::new(1, AT_ONCE);
    let flooding = Raw::open(&mut world);
    flooding.peer.write(&flood(16 << 20));
    world.shards[0].turn().expect("the simulated driver doesn't fail");
    // What was there before it was paused is still heard, in its time.
    while world.networks[0].buffers_held() > usize::from(BUFFERS_DEFERRED_MAX) {
        world.shards[0].turn().expect("the simulated driver doesn't fail");
    }
    let received = flooding.peer.sent_total();
    while world.networks[0].buffers_held() > 1 {
        assert_eq!(flooding.peer.sent_total(), received, "it isn't read until what waits is heard");
        world.shards[0].turn().expect("the simulated driver doesn't fail");
    }
    world.settle();
    assert_eq!(flooding.peer.unreceived(), 0, "it is read again");
    assert_eq!(world.networks[0].buffers_held(), 0);
}

/// The order of what a peer says is kept, its end included.
#[test]
fn the_end_comes_behind_the_flood() {
    let mut world = World::new(1, AT_ONCE);
    let mut flooding = Raw::open(&mut world);
    flooding.peer.write(&flood(1 << 20));
    flooding.ask();
    flooding.peer.shutdown();
    world.settle();
    flooding.read();
    assert_eq!(flooding.flows, 1, "what it asked last was heard before it ended");
    assert!(flooding.peer.ended().is_some());
    world.expect_empty();
}
