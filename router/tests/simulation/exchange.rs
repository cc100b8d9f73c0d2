//! Several clients at once over a network that cuts everything anywhere: each delivery is accounted for.

use crate::client::{Client, Fate, Policy};
use crate::message::Message;
use crate::seeds::for_seeds;
use crate::state::State;
use crate::world::{World, listener};
use ringmain::engine::Settings;
use ringmain::io::sim::SimOptions;
use ringmain_codec::{ReceiverSettleMode, SenderSettleMode};
use std::collections::BTreeMap;
use std::time::Duration;

const ADDRESSES: &[&str] = &["q1", "q2", "c/1", "m/1", "m/2"];

pub fn options(random: &mut fastrand::Rng) -> SimOptions {
    SimOptions {
        latency_max: Duration::from_micros([0, 5, 50, 1000][random.usize(0..4)]),
        is_ragged: random.u8(0..4) > 0,
        socket_buffer: [1024, 65_536][random.usize(0..2)],
        buffer_size: [16, 512, 16_384][random.usize(0..3)],
        buffer_count: [1, 3, 64][random.usize(0..3)],
    }
}

fn client_settings(random: &mut fastrand::Rng) -> Settings {
    Settings {
        max_frame_size: [512, 1000, 16_384, 65_536][random.usize(0..4)],
        session_frames_max: [1, 3, 100, 2000][random.usize(0..4)],
        idle_timeout: None,
        ..Settings::default()
    }
}

/// Draws messages, each with its own number.
pub struct Numbers {
    pub last: u64,
    pub size_max: usize,
}

impl Numbers {
    fn message(&mut self, to: Option<String>, random: &mut fastrand::Rng) -> Message {
        self.last += 1;
        let size = match random.u8(0..20) {
            0 => random.usize(0..self.size_max),
            1..8 => random.usize(0..self.size_max / 20),
            _ => random.usize(0..100),
        };
        let priority = if random.bool() { Some(random.u8(0..10)) } else { None };
        Message { number: self.last, size, to, presettled: random.u8(0..3) == 0, priority }
    }
}

pub fn populate(world: &mut World, numbers: &mut Numbers, random: &mut fastrand::Rng) {
    let settings = client_settings(random);
    let shard = random.usize(0..world.shards.len());
    let index = world.connect_to(shard, settings);
    let client = &mut world.clients[index];
    for _ in 0..random.usize(0..3) {
        add_receiver(client, random);
    }
    for _ in 0..random.usize(0..3) {
        let address = ADDRESSES[random.usize(0..ADDRESSES.len())];
        let is_anonymous = random.u8(0..4) == 0;
        let count = random.usize(0..30);
        let plan = (0..count)
            .map(|_| {
                let to = is_anonymous.then(|| {
                    let nowhere = random.u8(0..8) == 0;
                    let to = if nowhere { "nobody" } else { ADDRESSES[random.usize(0..ADDRESSES.len())] };
                    to.to_owned()
                });
                numbers.message(to, random)
            })
            .collect();
        let sender = client.send_to((!is_anonymous).then_some(address), plan);
        let sender = &mut client.senders[sender];
        sender.piece = [usize::MAX, 700, 20_000][random.usize(0..3)];
        if random.u8(0..4) == 0 {
            sender.settle = ReceiverSettleMode::Second;
        }
    }
}

fn add_receiver(client: &mut Client, random: &mut fastrand::Rng) {
    let address = ADDRESSES[random.usize(0..ADDRESSES.len())];
    let credit = [0, 1, 10, 1000][random.usize(0..4)];
    let policy = [Policy::Accept, Policy::Mixed, Policy::Keep][random.usize(0..3)];
    let receiver = client.receive_from(address, credit, policy);
    let snd = [
        SenderSettleMode::Mixed,
        SenderSettleMode::Mixed,
        SenderSettleMode::Unsettled,
        SenderSettleMode::Settled,
    ][random.usize(0..4)];
    let rcv = if random.u8(0..4) == 0 { ReceiverSettleMode::Second } else { ReceiverSettleMode::First };
    client.receivers[receiver].settle = (snd, rcv);
}

/// What all receivers together know of one message.
#[derive(Default)]
struct Receipts {
    told: Vec<State>,
    came: usize,
    came_settled: usize,
    /// Whether a receiver that got it is gone: what it told last may not have arrived.
    is_lost: bool,
}

/// Holds what the senders heard against what the receivers did.
pub fn check(world: &World, has_losses: bool) {
    let mut receipts: BTreeMap<u64, Receipts> = BTreeMap::new();
    for receiver in world.clients.iter().flat_map(|client| &client.receivers) {
        for number in &receiver.got {
            let receipt = receipts.entry(*number).or_default();
            receipt.came += 1;
            receipt.told.extend(receiver.told.get(number).cloned());
            receipt.is_lost |= receiver.is_detached;
            receipt.came_settled += usize::from(receiver.settled_by_router.contains(number));
        }
    }
    check_order(world);
    let mut sent_presettled = 0;
    let mut came_presettled = 0;
    for sender in world.clients.iter().flat_map(|client| &client.senders) {
        for (number, message) in &sender.sent {
            let address = message.to.as_deref().or(sender.address.as_deref()).expect("it goes somewhere");
            let nothing = Receipts::default();
            let receipt = receipts.get(number).unwrap_or(&nothing);
            let is_multicast = address.starts_with("m/");
            let encoded = message.encode();
            for receiver in world.clients.iter().flat_map(|client| &client.receivers) {
                if let Some(found) = receiver.messages.get(number) {
                    assert_eq!(*found, encoded, "message {number} came as it was sent");
                    assert_eq!(receiver.address, address);
                }
            }
            assert!(is_multicast || receipt.came <= 1, "message {number} went to {} receivers", receipt.came);
            let fate = sender.fates.get(number);
            match fate {
                None => panic!("message {number} to {address} has no outcome ({} came)", receipt.came),
                Some(Fate::Presettled) => {
                    assert!(message.presettled);
                    if !is_multicast {
                        sent_presettled += 1;
                        came_presettled += receipt.came;
                    }
                }
                Some(Fate::Aborted | Fate::Lost) => {}
                Some(Fate::Told(state)) => {
                    let state =
                        state.as_ref().unwrap_or_else(|| panic!("message {number}: settled without a state"));
                    check_outcome(*number, state, receipt, is_multicast, has_losses);
                }
            }
        }
    }
    let dropped = world.dropped();
    if !has_losses {
        assert!(came_presettled <= sent_presettled);
        let missing = (sent_presettled - came_presettled) as u64;
        assert!(missing <= dropped, "{missing} are missing, {dropped} were dropped");
    }
}

/// What one sender sends to one receiver comes in its order, among messages of the same priority.
fn check_order(world: &World) {
    for receiver in world.clients.iter().flat_map(|client| &client.receivers) {
        for sender in world.clients.iter().flat_map(|client| &client.senders) {
            let mut last: BTreeMap<u8, u64> = BTreeMap::new();
            for message in receiver.got.iter().filter_map(|number| sender.sent.get(number)) {
                let before = last.insert(message.priority.unwrap_or(4), message.number);
                assert!(before < Some(message.number), "{before:?} came before {}", message.number);
            }
        }
    }
}

fn check_outcome(number: u64, state: &State, receipt: &Receipts, is_multicast: bool, has_losses: bool) {
    let rank = |state: &State| match state {
        State::Released => 0,
        State::Modified(..) => 1,
        State::Accepted => 2,
        State::Rejected(_) => 3,
        State::Received(..) => panic!("not an outcome"),
    };
    let describe = || format!("message {number}: sender heard {state:?}, receivers told {:?}", receipt.told);
    if !is_multicast {
        match state {
            // A receiver that wants everything settled says nothing.
            State::Accepted => {
                let settled = receipt.came_settled == 1 && receipt.told.is_empty();
                assert!(
                    settled || receipt.told == [State::Accepted] || (has_losses && receipt.came == 0),
                    "{}",
                    describe()
                );
            }
            State::Rejected(_) => assert!(receipt.told.contains(state), "{}", describe()),
            State::Released | State::Modified(..) => {
                let is_theirs = receipt.told.contains(state);
                assert!(is_theirs || receipt.came == 0 || receipt.is_lost, "{}", describe());
            }
            State::Received(..) => panic!("not an outcome"),
        }
        return;
    }
    if has_losses {
        return;
    }
    let mut expected = receipt.told.iter().map(rank).max();
    if receipt.came_settled > 0 {
        expected = expected.max(Some(rank(&State::Accepted)));
    }
    assert_eq!(rank(state), expected.unwrap_or(0), "{}", describe());
}

/// All receivers take everything from now on, and all is settled.
pub fn finish(world: &mut World) {
    for _ in 0..3 {
        for client in &mut world.clients {
            if client.is_over() {
                continue;
            }
            for index in 0..client.receivers.len() {
                client.receivers[index].credit = 1000;
                client.settle_kept(index, Policy::Accept);
            }
        }
        world.settle();
        // Receivers that never granted credit count as destinations only after a while.
        world.pass(Duration::from_secs(4));
    }
}

#[test]
fn every_delivery_is_accounted_for() {
    let mut total = 0;
    for_seeds("every_delivery_is_accounted_for", 120, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let options = options(&mut random);
        let shards = [1, 1, 2, 3][random.usize(0..4)];
        let mut world = World::with_shards(shards, seed, options, listener());
        // A network that moves a few bytes at a time takes long over large messages.
        let mut numbers = Numbers { last: 0, size_max: (options.buffer_size * 8).clamp(2000, 60_000) };
        for _ in 0..random.usize(2..6) {
            populate(&mut world, &mut numbers, &mut random);
        }
        for _ in 0..random.usize(0..200) {
            world.turn();
        }
        world.settle();
        finish(&mut world);
        check(&world, false);
        total += world
            .clients
            .iter()
            .flat_map(|client| &client.receivers)
            .map(|receiver| receiver.got.len())
            .sum::<usize>();
        world.close_all();
    });
    println!("{total} deliveries");
}

#[test]
fn comings_and_goings_lose_nothing_silently() {
    for_seeds("comings_and_goings_lose_nothing_silently", 120, |seed| {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x6011);
        let options = options(&mut random);
        let shards = [1, 1, 2, 3][random.usize(0..4)];
        let mut world = World::with_shards(shards, seed, options, listener());
        // A network that moves a few bytes at a time takes long over large messages.
        let mut numbers = Numbers { last: 0, size_max: (options.buffer_size * 8).clamp(2000, 60_000) };
        for _ in 0..random.usize(2..6) {
            populate(&mut world, &mut numbers, &mut random);
        }
        for _ in 0..random.usize(3..20) {
            for _ in 0..random.usize(0..60) {
                world.turn();
            }
            disturb(&mut world, &mut numbers, &mut random);
        }
        world.settle();
        finish(&mut world);
        check(&world, true);
        world.close_all();
    });
}

pub fn disturb(world: &mut World, numbers: &mut Numbers, random: &mut fastrand::Rng) {
    let now = world.now();
    let index = random.usize(0..world.clients.len());
    let client = &mut world.clients[index];
    if client.is_over() || !client.engine.is_open() {
        return populate(world, numbers, random);
    }
    match random.u8(0..12) {
        0 => client.close(now),
        1 => client.die(),
        2..5 if !client.receivers.is_empty() => {
            let receiver = random.usize(0..client.receivers.len());
            client.detach_receiver(receiver);
        }
        5 if !client.senders.is_empty() => {
            let sender = random.usize(0..client.senders.len());
            client.detach_sender(sender);
        }
        6 | 7 if !client.senders.is_empty() => {
            let sender = random.usize(0..client.senders.len());
            client.abort(sender);
        }
        8 => populate(world, numbers, random),
        9 | 10 if !client.receivers.is_empty() => {
            let receiver = random.usize(0..client.receivers.len());
            client.settle_kept(receiver, Policy::Mixed);
            client.receivers[receiver].credit = 20;
        }
        _ => add_receiver(client, random),
    }
}
