//! Peers that are slow or silent, under the virtual clock: deadlines hold to the moment, and full means
//! back-pressure, not growth.

use crate::client::{Fate, Policy};
use crate::exchange::check;
use crate::message::Message;
use crate::state::State;
use crate::wire::{Watch, frame};
use crate::world::{HANDSHAKE, IDLE, World};
use ringmain::base::id::ListenerId;
use ringmain::base::limits::{OUTPUT_ANSWERS_MAX, OUTPUT_BACKLOG_MAX, SESSION_BUFFER_BYTES};
use ringmain::engine::Settings;
use ringmain::io::sim::{PeerEnd, SimOptions, SimPeer};
use ringmain::shard::mailbox::Message as Mail;
use ringmain_codec::{
    Attach, Begin, Condition, Flow, Open, Performative, ProtocolHeader, Role, Source, Writer,
    write_empty_frame,
};
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);

fn world() -> World {
    World::new(7, SimOptions::default())
}

fn raw_peer(world: &World) -> SimPeer {
    world.networks[0].connect(ListenerId(0))
}

fn opening(idle_time_out: Option<u32>) -> Vec<u8> {
    let mut bytes = ProtocolHeader::AMQP.to_bytes().to_vec();
    bytes.extend(frame(0, &Open { container_id: "raw", idle_time_out, ..Open::default() }, &[]));
    bytes
}

fn empty_frame() -> Vec<u8> {
    let mut room = [0; 8];
    let mut writer = Writer::new(&mut room);
    write_empty_frame(&mut writer).expect("eight bytes");
    writer.written().to_vec()
}

/// The condition of the close that the shard sent, if it did.
fn close_condition(bytes: &[u8]) -> Option<String> {
    let mut watch = Watch::new();
    watch.frame_max = u32::MAX;
    let mut condition = None;
    watch.take(bytes, |_, performative, _| {
        if let Performative::Close(close) = performative {
            condition = Some(close.error.map_or_else(String::new, |error| error.condition.0.to_owned()));
        }
    });
    condition
}

#[test]
fn a_handshake_has_a_deadline() {
    let open = opening(None);
    let beginnings: [&[u8]; 5] = [
        b"",
        b"AMQ",
        &ProtocolHeader::AMQP.to_bytes(),
        &ProtocolHeader::SASL.to_bytes(),
        &open[..open.len() - 1],
    ];
    for beginning in beginnings {
        let mut world = world();
        let peer = raw_peer(&world);
        peer.write(beginning);
        world.settle();
        world.pass(HANDSHAKE - 10 * MILLISECOND);
        assert_eq!(peer.ended(), None, "{beginning:?}: too early");
        assert_eq!(world.holdings().connections, 1);
        // It may have a close to read, and some time to answer it.
        world.pass(20 * MILLISECOND);
        let _ = peer.read_all();
        world.pass(Duration::from_secs(3));
        let _ = peer.read_all();
        assert_eq!(peer.ended(), Some(PeerEnd::Closed), "{beginning:?}: not at all");
        world.expect_empty();
    }
}

#[test]
fn a_handshake_that_trickles_has_the_same_deadline() {
    let mut world = world();
    let peer = raw_peer(&world);
    let open = opening(None);
    let step = HANDSHAKE / 20;
    for byte in &open[..19] {
        peer.write(&[*byte]);
        world.pass(step);
        assert_eq!(peer.ended(), None);
    }
    peer.write(&open[19..20]);
    world.pass(step + Duration::from_secs(3));
    let _ = peer.read_all();
    assert_eq!(peer.ended(), Some(PeerEnd::Closed));
    world.expect_empty();
}

#[test]
fn a_silent_peer_is_given_up_and_a_beating_one_is_not() {
    let mut world = world();
    let (silent, beating) = (raw_peer(&world), raw_peer(&world));
    silent.write(&opening(None));
    beating.write(&opening(None));
    world.settle();
    let announced = {
        let bytes = silent.read_all();
        let mut watch = Watch::new();
        watch.frame_max = u32::MAX;
        let mut announced = None;
        watch.take(&bytes, |_, performative, _| {
            if let Performative::Open(open) = performative {
                announced = open.idle_time_out;
            }
        });
        Duration::from_millis(announced.expect("the shard has an idle time-out").into())
    };
    // §2.4.5: half of what is really borne.
    assert_eq!(announced * 2, IDLE);
    let start = world.now();
    while world.now().since(start) < IDLE - Duration::from_millis(100) {
        let left = (IDLE - Duration::from_millis(100)).saturating_sub(world.now().since(start));
        world.pass(left.min(announced));
        beating.write(&empty_frame());
        assert_eq!(silent.ended(), None, "too early");
    }
    world.pass(Duration::from_millis(200));
    let told = silent.read_all();
    let mut bytes = opening_answer();
    bytes.extend(&told);
    assert_eq!(close_condition(&bytes).as_deref(), Some(Condition::RESOURCE_LIMIT_EXCEEDED.as_str()));
    // It has a moment for its answer; then the socket goes.
    world.pass(Duration::from_secs(3));
    assert_eq!(silent.ended(), Some(PeerEnd::Closed));
    assert_eq!(beating.ended(), None);
    assert_eq!(world.holdings().connections, 1);
    beating.close();
    world.settle();
    world.expect_empty();
}

/// What precedes a close, for a watch that hasn't seen it.
fn opening_answer() -> Vec<u8> {
    opening(None)
}

#[test]
fn the_shard_beats_for_peers_that_ask() {
    let mut world = world();
    let peer = raw_peer(&world);
    peer.write(&opening(Some(1000)));
    world.settle();
    let _ = peer.read_all();
    let mut beats = 0;
    for _ in 0..20 {
        world.pass(Duration::from_secs(1));
        let bytes = peer.read_all();
        assert!(!bytes.is_empty(), "nothing for a second");
        assert_eq!(bytes.len() % 8, 0);
        beats += bytes.len() / 8;
        peer.write(&empty_frame());
    }
    assert!(beats <= 60, "{beats} beats in 20 s are more than needed");
    peer.reset();
    world.settle();
    world.expect_empty();
}

fn messages(numbers: std::ops::Range<u64>, size: usize) -> Vec<Message> {
    numbers.map(|number| Message { number, size, to: None, presettled: false, priority: None }).collect()
}

/// What the shard may hold when one receiver takes nothing: its output, what is in the driver's hands, and
/// one session's worth of payload.
const HELD_MAX: usize = 2 * OUTPUT_BACKLOG_MAX + SESSION_BUFFER_BYTES + 1024 * 1024;

fn held(world: &World) -> usize {
    let holdings = world.holdings();
    holdings.waiting_bytes + holdings.output_bytes + holdings.partial_bytes
}

#[test]
fn a_receiver_that_stops_reading_holds_up_its_sender_and_nobody_else() {
    let mut world = world();
    let slow = world.connect(Settings::default());
    let sender = world.connect(Settings::default());
    let other = world.connect(Settings::default());
    world.clients[slow].receive_from("q", 10_000, Policy::Accept);
    world.settle();
    // 14 MB for a receiver that has credit for all of it.
    let count = 700;
    world.clients[sender].send_to(Some("q"), messages(0..count, 20_000));
    world.clients[slow].is_stalled = true;
    world.clients[slow].peer.stop_reading();
    let mut most = 0;
    for round in 0..20 {
        world.clients[other].receive_from(&format!("q{round}"), 10, Policy::Accept);
        let from = 10_000 + round * 100;
        world.clients[other].send_to(Some(&format!("q{round}")), messages(from..from + 50, 100));
        world.settle();
        most = most.max(held(&world));
    }
    assert!(most < HELD_MAX, "{most} bytes are held");
    assert!(most > OUTPUT_BACKLOG_MAX / 2, "the receiver is really behind: {most}");
    let others = &world.clients[other];
    assert!(others.senders.iter().all(|sender| sender.fates.len() == 50), "others go on");
    assert!(world.clients[sender].senders[0].sent.len() < 600, "its sender waits");
    // It goes on where it was.
    world.clients[slow].is_stalled = false;
    world.clients[slow].peer.start_reading();
    world.settle();
    assert_eq!(world.clients[slow].receivers[0].got, (0..count).collect::<Vec<u64>>());
    check(&world, false);
    world.close_all();
}

#[test]
fn a_stalled_large_message_is_held_up_not_stored() {
    let mut world = world();
    let slow = world.connect(Settings::default());
    let sender = world.connect(Settings::default());
    world.clients[slow].receive_from("large", 1, Policy::Accept);
    world.clients[slow].receive_from("small", 100, Policy::Accept);
    world.settle();
    let size = 14 * 1024 * 1024;
    let large = world.clients[sender].send_to(Some("large"), messages(1..2, size));
    world.clients[sender].senders[large].piece = 100_000;
    world.clients[slow].is_stalled = true;
    world.clients[slow].peer.stop_reading();
    world.settle();
    assert!(world.clients[sender].is_sending(large), "it isn't through");
    let most = held(&world);
    assert!(most < HELD_MAX, "{most} bytes are held");
    // Another link of the same two connections shares their fate; links of others don't.
    let aside = world.connect(Settings::default());
    world.clients[aside].receive_from("aside", 100, Policy::Accept);
    world.clients[aside].send_to(Some("aside"), messages(100..200, 1000));
    world.settle();
    assert_eq!(world.clients[aside].receivers[0].got.len(), 100);
    assert!(held(&world) <= most);
    world.clients[slow].is_stalled = false;
    world.clients[slow].peer.start_reading();
    for _ in 0..100_000 {
        if !world.clients[sender].is_sending(large) {
            break;
        }
        world.turn();
        assert!(held(&world) < HELD_MAX);
    }
    world.settle();
    assert_eq!(world.clients[slow].receivers[0].got, [1]);
    assert_eq!(world.clients[sender].senders[large].fates[&1], Fate::Told(Some(State::Accepted)));
    check(&world, false);
    world.close_all();
}

/// While we don't read from it, because it doesn't take what we send, its silence is ours.
#[test]
fn a_receiver_that_stops_reading_but_beats_is_not_given_up() {
    let mut world = world();
    let slow = world.connect(Settings { idle_timeout: None, ..Settings::default() });
    let sender = world.connect(Settings::default());
    world.clients[slow].receive_from("q", 10_000, Policy::Accept);
    world.settle();
    world.clients[sender].send_to(Some("q"), messages(0..400, 20_000));
    world.clients[slow].is_stalled = true;
    world.clients[slow].peer.stop_reading();
    // The client's own timers run, and its beats are written.
    world.pass(IDLE * 4);
    assert_eq!(world.holdings().connections, 2, "it is alive");
    world.clients[slow].is_stalled = false;
    world.clients[slow].peer.start_reading();
    world.settle();
    assert_eq!(world.clients[slow].receivers[0].got.len(), 400);
    check(&world, false);
    world.close_all();
}

/// A peer that asks and asks, but takes no answer.
#[test]
fn answers_that_nobody_takes_do_not_pile_up() {
    let mut world = world();
    let peer = raw_peer(&world);
    peer.stop_reading();
    peer.write(&opening(None));
    peer.write(&frame(0, &Begin { incoming_window: 100, outgoing_window: 100, ..Begin::default() }, &[]));
    let source = Source { address: Some("q"), ..Source::default() };
    let attach =
        Attach { name: "r", handle: 0, role: Role::Receiver, source: Some(source), ..Attach::default() };
    peer.write(&frame(0, &attach, &[]));
    let flow =
        Flow { echo: true, incoming_window: 100, outgoing_window: 100, handle: Some(0), ..Flow::default() };
    let flow = frame(0, &flow, &[]);
    let mut most = 0;
    for _ in 0..300 {
        for _ in 0..1000 {
            peer.write(&flow);
        }
        world.settle();
        most = most.max(held(&world));
    }
    assert!(most < OUTPUT_ANSWERS_MAX + 64 * 1024, "{most} bytes of answers");
    assert!(peer.unreceived() > 1_000_000, "it isn't read any more");
    // It says nothing that is heard, takes nothing: it goes in its time.
    world.pass(IDLE * 3);
    let _ = peer.read_all();
    assert_eq!(peer.ended(), Some(PeerEnd::Closed));
    world.expect_empty();
}

#[test]
fn a_peer_that_closes_but_takes_nothing_goes_in_its_time() {
    let mut world = world();
    let slow = world.connect(Settings::default());
    let sender = world.connect(Settings::default());
    world.clients[slow].receive_from("q", 10_000, Policy::Accept);
    world.settle();
    world.clients[sender].send_to(Some("q"), messages(0..100, 20_000));
    world.clients[slow].is_stalled = true;
    world.clients[slow].peer.stop_reading();
    world.settle();
    let now = world.now();
    world.clients[slow].close(now);
    world.clients[slow].is_stalled = false;
    world.turn();
    world.clients[slow].is_stalled = true;
    world.settle();
    world.pass(Duration::from_secs(3));
    assert_eq!(world.holdings().connections, 1, "only the sender's is left");
    check(&world, true);
    world.clients[slow].is_dead = true;
    world.close_all();
}

#[test]
fn a_frame_that_trickles_in_is_one_frame() {
    let mut world = world();
    let receiver = world.connect(Settings::default());
    world.clients[receiver].receive_from("q", 10, Policy::Accept);
    let sender = world.connect(Settings::default());
    world.settle();
    world.clients[sender].is_trickling = true;
    world.clients[sender].send_to(Some("q"), messages(0..1, 100));
    // A byte each 250 ms: longer than the idle time-out altogether, but never silent.
    world.pass(Duration::from_secs(120));
    assert_eq!(world.clients[receiver].receivers[0].got, [0]);
    world.clients[sender].is_trickling = false;
    check(&world, false);
    world.close_all();
}

#[test]
fn a_shard_that_stops_tells_everybody() {
    let mut world = world();
    for _ in 0..5 {
        let client = world.connect(Settings::default());
        world.clients[client].receive_from("q", 10, Policy::Accept);
    }
    let dumb = raw_peer(&world);
    dumb.write(&opening(None));
    dumb.stop_reading();
    let fresh = raw_peer(&world);
    world.settle();
    assert!(world.mailboxes[0].send(Mail::Shutdown).is_ok());
    world.settle();
    for client in &world.clients {
        let why = client.closed.as_deref().unwrap_or("nothing");
        assert!(why.starts_with(Condition::CONNECTION_FORCED.as_str()), "{why}");
    }
    assert_eq!(fresh.ended(), Some(PeerEnd::Closed), "one that hadn't opened goes too");
    assert!(!world.shards[0].is_done(), "one peer hasn't answered yet");
    world.pass(Duration::from_secs(1));
    assert!(world.shards[0].is_done(), "and isn't waited for any longer");
}

/// Of two sessions of one connection, one is stalled halfway in a large message, at both its ends.
#[test]
fn a_session_that_stalls_holds_up_no_other_of_its_connections() {
    let mut world = world();
    let receiver = world.connect(Settings::default());
    let sender = world.connect(Settings::default());
    let large = world.clients[receiver].receive_from("large", 1, Policy::Accept);
    let small = world.clients[receiver].receive_from("small", 10, Policy::Accept);
    world.clients[receiver].receivers[large].keeps_window = true;
    world.clients[receiver].receivers[small].session = 1;
    world.settle();
    let size = 14 * 1024 * 1024;
    world.clients[sender].send_to(Some("large"), messages(1..2, size));
    let other = world.clients[sender].send_to(Some("small"), messages(100..300, 1000));
    world.clients[sender].senders[other].session = 1;
    world.settle();
    assert!(world.clients[sender].is_sending(0), "the large one isn't through");
    assert_eq!(world.clients[receiver].receivers[small].got.len(), 200, "the small ones are");
    assert!(held(&world) < SESSION_BUFFER_BYTES + 1024 * 1024, "{} bytes are held", held(&world));
    world.clients[receiver].open_window(large);
    world.settle();
    assert_eq!(world.clients[receiver].receivers[large].got, [1]);
    check(&world, false);
    world.close_all();
}

/// §8.4 of the router protocol's reference: settled deliveries are dropped only where their receiver takes
/// nothing, the newest stay, and each one missing is counted.
#[test]
fn settled_deliveries_are_dropped_only_under_congestion_and_counted() {
    let mut world = world();
    let slow = world.connect(Settings::default());
    let fast = world.connect(Settings::default());
    let sender = world.connect(Settings::default());
    world.clients[slow].receive_from("slow", 0, Policy::Accept);
    world.clients[fast].receive_from("fast", 5, Policy::Accept);
    // One that grants no credit counts as a destination after a while.
    world.pass(Duration::from_secs(4));
    let settled = |numbers: std::ops::Range<u64>| -> Vec<Message> {
        messages(numbers, 100).into_iter().map(|message| Message { presettled: true, ..message }).collect()
    };
    let count = 5000;
    world.clients[sender].send_to(Some("slow"), settled(0..count));
    world.clients[sender].send_to(Some("fast"), settled(10_000..10_000 + count));
    let mut most = 0;
    for _ in 0..40 {
        world.pass(Duration::from_millis(250));
        most = most.max(world.holdings().waiting);
    }
    assert_eq!(
        world.clients[fast].receivers[0].got.len() as u64,
        count,
        "nothing is lost without congestion"
    );
    assert!(world.clients[sender].senders.iter().all(|sender| sender.plan.is_empty()), "senders go on");
    assert!(most <= 4 * 250, "{most} wait");
    world.clients[slow].receivers[0].credit = 1000;
    world.settle();
    let got = &world.clients[slow].receivers[0].got;
    assert_eq!(got.len() as u64 + world.dropped(), count, "each is there or counted");
    assert!(!got.is_empty() && *got.last().expect("one") == count - 1, "the newest stay");
    assert!(got.is_sorted());
    check(&world, false);
    world.close_all();
}
