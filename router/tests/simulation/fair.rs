//! A peer that sends as fast as it can, beside one that asks and waits for its answer. What is counted is
//! turns, not time.

use crate::client::Policy;
use crate::message::Message;
use crate::wire::{Watch, frame};
use crate::world::{World, listener};
use ringmain::base::id::ListenerId;
use ringmain::base::limits::{
    BUFFERS_DEFERRED_MAX, CONNECTION_BYTES_PER_TURN_MAX, HAND_OFF_BYTES_PER_TURN_MAX, HAND_OFFS_MAX,
    LARGE_CHUNK_BYTES, OUTPUT_BACKLOG_MAX,
};
use ringmain::engine::Settings;
use ringmain::io::sim::{SimOptions, SimPeer};
use ringmain::shard::Party;
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
        Self::open_on(world, 0)
    }

    fn open_on(world: &mut World, shard: usize) -> Self {
        let peer = world.networks[shard].connect(ListenerId(0));
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

/// What another shard passes on as fast as it can takes a bounded part of each turn, however much of it waits: who is
/// served here has answers, and what others send from there gets through.
#[test]
fn a_flood_from_another_shard_keeps_nobody_from_their_answers() {
    const FLOODING: usize = 8;
    const MESSAGES: u64 = 400;
    const SIZE: usize = 8 * 1024;
    /// What is taken of the ring in one turn at the most: the chunk at hand goes beyond the bound.
    const TAKEN_MAX: usize = HAND_OFF_BYTES_PER_TURN_MAX + LARGE_CHUNK_BYTES;
    /// What is said beside the flood waits at the most for a full ring and a full backlog.
    const THROUGH_MAX: usize =
        (HAND_OFFS_MAX * LARGE_CHUNK_BYTES + OUTPUT_BACKLOG_MAX) / HAND_OFF_BYTES_PER_TURN_MAX + 4;
    let settings = Settings { max_frame_size: 1 << 16, idle_timeout: None, ..Settings::default() };
    let message = |number, size| Message { number, size, to: None, presettled: false, priority: None };
    let mut world = World::with_shards(2, 1, AT_ONCE, listener());
    let taking = world.connect_to(1, settings.clone());
    let flooded = world.clients[taking].receive_from("flooded", 100_000, Policy::Accept);
    let calm = world.connect_to(1, settings.clone());
    let heard = world.clients[calm].receive_from("calm", 1000, Policy::Accept);
    world.settle();
    let mut asking = Raw::open_on(&mut world, 1);
    let speaking = world.connect_to(0, settings.clone());
    let said = world.clients[speaking].send_to(Some("calm"), Vec::new());
    for number in 0..FLOODING as u64 {
        let client = world.connect_to(0, settings.clone());
        let plan =
            (0..MESSAGES).map(|message_number| message(1000 + number * MESSAGES + message_number, SIZE));
        world.clients[client].send_to(Some("flooded"), plan.collect());
    }
    let (mut rounds, mut most, mut slowest) = (0_u64, 0, 0);
    while world.clients[taking].receivers[flooded].got.len() < FLOODING * MESSAGES as usize {
        rounds += 1;
        assert!(rounds < 10_000, "the flood never ends");
        asking.ask();
        let asked = asking.flows;
        world.clients[speaking].senders[said].plan.push_back(message(rounds, 10));
        let mut turns = 0;
        while asking.flows == asked || (world.clients[calm].receivers[heard].got.len() as u64) < rounds {
            assert!(turns < THROUGH_MAX, "round {rounds}: nothing came through in {turns} turns");
            // The shard that passes the flood on turns more often than the one that takes it.
            for _ in 0..8 {
                let now = world.now();
                for client in &mut world.clients {
                    client.work(now);
                }
                world.shards[0].turn().expect("the simulated driver doesn't fail");
            }
            let before = world.shards[1].core().counters(Party::Shard).ingress;
            world.turn();
            let came =
                usize::try_from(world.shards[1].core().counters(Party::Shard).ingress - before).expect("few");
            most = most.max(came * SIZE);
            turns += 1;
            asking.read();
            assert!(asking.flows > asked || turns < 3, "round {rounds}: no answer in {turns} turns");
        }
        slowest = slowest.max(turns);
    }
    println!("{rounds} rounds, {most} bytes in a turn, {slowest} turns");
    assert!(
        most > HAND_OFF_BYTES_PER_TURN_MAX / 2,
        "no more than {most} bytes came in a turn: that is no flood"
    );
    assert!(most <= TAKEN_MAX, "{most} bytes were taken in a turn");
    asking.peer.close();
    world.settle();
    world.close_all();
}
