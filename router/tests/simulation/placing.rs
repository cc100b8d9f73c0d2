//! Where accepted connections go: to the shard with the fewest, or to the one that their listener names.

use crate::client::Policy;
use crate::exchange::{Numbers, check, disturb, finish, options, populate};
use crate::message::Message as Text;
use crate::seeds::for_seeds;
use crate::world::{World, listener};
use ringmain::base::id::ShardId;
use ringmain::base::limits::MESSAGES_MAX;
use ringmain::engine::Settings;
use ringmain::io::sim::{PeerEnd, SimDriver, SimOptions};
use ringmain::shard::mailbox::{Mailbox, Message};
use ringmain::shard::slots::ListenerSettings;
use std::sync::Arc;

fn settings() -> Settings {
    Settings { idle_timeout: None, ..Settings::default() }
}

/// A listener whose connections all go to `shard`.
fn listener_of(shard: u16) -> ListenerSettings {
    ListenerSettings { shard: Some(ShardId(shard)), ..listener() }
}

/// Leaves no room in a mailbox, with messages that ask for nothing.
fn fill(mailbox: &Mailbox<SimDriver>) {
    for _ in 0..=MESSAGES_MAX {
        if mailbox.send(Message::Changed(Arc::default())).is_err() {
            return;
        }
    }
    panic!("a mailbox takes more than {MESSAGES_MAX} messages");
}

/// Turns one shard so often that it has seen to what waits, while no other turns.
fn turn_alone(world: &mut World, shard: usize) {
    for _ in 0..8 {
        world.shards[shard].turn().expect("the simulated driver doesn't fail");
    }
}

/// A client connects to the first shard. Where it comes to.
fn connect_and_find(world: &mut World) -> (usize, usize) {
    let before = world.counts();
    let client = world.connect(settings());
    world.settle();
    let after = world.counts();
    let mut grown = (0..before.len()).filter(|&shard| after[shard] == before[shard] + 1);
    let shard = grown.next().expect("it is counted");
    assert_eq!((grown.next(), after.iter().sum::<u32>()), (None, before.iter().sum::<u32>() + 1));
    (client, shard)
}

/// What a shard is counted to have is what its driver has.
fn expect_true_counts(world: &World) {
    let counts: Vec<usize> = world.counts().iter().map(|&count| count as usize).collect();
    let open: Vec<usize> = world.networks.iter().map(|network| network.connections()).collect();
    assert_eq!(counts, open);
}

#[test]
fn connections_go_to_the_shard_with_the_fewest() {
    let mut world = World::with_placing(3, 1, SimOptions::default(), listener());
    let mut of_shard = vec![Vec::new(); 3];
    for round in 1..=3 {
        for _ in 0..3 {
            let (client, shard) = connect_and_find(&mut world);
            of_shard[shard].push(client);
        }
        assert_eq!(world.counts(), [round; 3]);
    }
    // Those of one shard go; it is given the next ones.
    let now = world.now();
    of_shard[1].iter().for_each(|&client| world.clients[client].close(now));
    world.settle();
    assert_eq!(world.counts(), [3, 0, 3]);
    for _ in 0..3 {
        assert_eq!(connect_and_find(&mut world).1, 1);
    }
    expect_true_counts(&world);
    world.close_all();
}

/// A connection counts from the moment that it is given away: a crowd that comes in one turn is spread.
#[test]
fn those_on_their_way_to_a_shard_count() {
    let mut world = World::with_placing(3, 1, SimOptions::default(), listener());
    for _ in 0..9 {
        world.connect(settings());
    }
    turn_alone(&mut world, 0);
    assert_eq!(world.counts(), [3; 3], "the other shards haven't turned");
    world.settle();
    expect_true_counts(&world);
    world.close_all();
}

#[test]
fn a_listener_names_its_shard() {
    let mut world = World::with_placing(3, 1, SimOptions::default(), listener_of(2));
    for accepting in [0, 1, 2, 0] {
        world.connect_to(accepting, settings());
    }
    world.settle();
    assert_eq!(world.counts(), [0, 0, 4]);
    expect_true_counts(&world);
    world.close_all();
}

/// Who listens on the shard that is named, and who was accepted there, talk as those of different shards do.
#[test]
fn a_connection_that_was_handed_over_is_served_like_any_other() {
    let mut world = World::with_placing(2, 1, SimOptions::default(), listener());
    let (receiving, one) = connect_and_find(&mut world);
    let (sending, other) = connect_and_find(&mut world);
    assert_ne!(one, other);
    world.clients[receiving].receive_from("a", 10, Policy::Accept);
    world.settle();
    let message = |number| Text { number, size: 20_000, to: None, presettled: false, priority: None };
    world.clients[sending].send_to(Some("a"), (1..=20).map(message).collect());
    world.settle();
    assert_eq!(world.clients[receiving].receivers[0].got, (1..=20).collect::<Vec<u64>>());
    check(&world, false);
    world.close_all();
}

/// Who finds the mailbox full keeps the connection: nobody is turned away, nobody is counted twice.
#[test]
fn a_connection_stays_where_it_was_accepted_if_the_other_shard_is_behind() {
    let mut world = World::with_placing(2, 1, SimOptions::default(), listener());
    fill(&world.mailboxes[1]);
    for _ in 0..4 {
        world.connect(settings());
    }
    turn_alone(&mut world, 0);
    assert_eq!(world.counts(), [4, 0]);
    turn_alone(&mut world, 1);
    world.settle();
    expect_true_counts(&world);
    // From now on the other has its share.
    for _ in 0..4 {
        assert_eq!(connect_and_find(&mut world).1, 1);
    }
    assert_eq!(world.counts(), [4, 4]);
    world.close_all();
}

#[test]
fn a_connection_for_a_shard_that_is_shutting_down_is_closed_and_not_counted() {
    let mut world = World::with_placing(2, 1, SimOptions::default(), listener_of(1));
    assert!(world.mailboxes[1].send(Message::Shutdown).is_ok());
    let client = world.connect(settings());
    turn_alone(&mut world, 0);
    assert_eq!(world.counts(), [0, 1]);
    assert_eq!(world.clients[client].peer.ended(), None);
    turn_alone(&mut world, 1);
    assert_eq!(world.counts(), [0, 0]);
    assert!(matches!(world.clients[client].peer.ended(), Some(PeerEnd::Closed | PeerEnd::Reset)));
}

/// Shards that turn in any order, mailboxes that are full, clients that go before they are served: every connection
/// is on one shard or gone, and counted there or not at all.
#[test]
fn whatever_the_schedule_connections_are_counted_where_they_are() {
    let mut handed = 0;
    for_seeds("whatever_the_schedule_connections_are_counted_where_they_are", 120, |seed| {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x9_1ace);
        let options = options(&mut random);
        let count = random.usize(2..5);
        let named = (random.u8(0..4) == 0).then(|| random.usize(0..count));
        let listener = named.map_or_else(listener, |shard| listener_of(u16::try_from(shard).expect("small")));
        let mut world = World::with_placing(count, seed, options, listener);
        let mut numbers = Numbers { last: 0, size_max: (options.buffer_size * 8).clamp(2000, 60_000) };
        for _ in 0..random.usize(2..8) {
            let full = (random.u8(0..3) == 0).then(|| random.usize(0..count));
            if let Some(full) = full {
                fill(&world.mailboxes[full]);
            }
            for _ in 0..random.usize(1..4) {
                populate(&mut world, &mut numbers, &mut random);
            }
            for _ in 0..random.usize(0..30) {
                let shard = random.usize(0..count);
                if Some(shard) != full {
                    world.shards[shard].turn().expect("the simulated driver doesn't fail");
                }
                if random.u8(0..16) == 0 {
                    let client = random.usize(0..world.clients.len());
                    world.clients[client].die();
                }
            }
            (0..count).for_each(|shard| turn_alone(&mut world, shard));
            for _ in 0..random.usize(0..40) {
                world.turn();
            }
            disturb(&mut world, &mut numbers, &mut random);
        }
        world.settle();
        finish(&mut world);
        check(&world, true);
        expect_true_counts(&world);
        handed += world.counts().iter().sum::<u32>();
        world.close_all();
    });
    assert!(handed > 0, "clients were served");
}
