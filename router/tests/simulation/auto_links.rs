//! Auto-links with a broker that refuses, detaches, ends sessions and breaks off: whatever it accepted reaches the
//! consumer, and the shards keep nothing.

use crate::broker::{Broker, CONTAINER};
use crate::client::{Fate, Policy};
use crate::message::Message;
use crate::seeds::for_seeds;
use crate::state::State;
use crate::world::{World, listener};
use ringmain::base::id::ListenerId;
use ringmain::engine::Settings;
use ringmain::io::sim::{SimNetwork, SimOptions};
use ringmain::shard::auto_links::{AutoLink, AutoLinkDirection, AutoLinkPeer, AutoLinkState};
use ringmain::shard::mailbox::Message as ShardMessage;
use ringmain::shard::slots::{ConnectionRole, ListenerSettings};
use std::sync::Arc;
use std::time::Duration;

/// Steps in which the broker misbehaves, and how long one takes. The retries of a link are seconds apart.
const STEPS: usize = 120;
const STEP: Duration = Duration::from_millis(250);

/// The longest that a lost link takes to come back, and more.
const CALM: Duration = Duration::from_secs(30);

/// Messages sent in each step, and when all is calm again.
const EACH_STEP: u64 = 3;
const AT_LAST: u64 = 10;

fn auto_link(direction: AutoLinkDirection, address: &str) -> Arc<AutoLink> {
    let peer = Some(AutoLinkPeer::Container(CONTAINER.to_owned()));
    let node = Some("queue".to_owned());
    Arc::new(AutoLink::new(address.to_owned(), direction, Some(address.to_owned()), node, 0, peer))
}

/// Turns until nothing is under way.
fn settle(world: &mut World, broker: &mut Broker) {
    let mut quiet = 0;
    for _ in 0..400_000 {
        let worked = world.turn() | broker.work(world.now());
        quiet = if worked { 0 } else { quiet + 1 };
        if quiet == 20 {
            return;
        }
    }
    panic!("the world never comes to rest: {:?}", world.holdings());
}

fn pass(world: &mut World, broker: &mut Broker, time: Duration) {
    let end = world.now() + time;
    while world.now() < end {
        settle(world, broker);
        world.networks.iter().for_each(|network| network.advance(STEP));
        let now = world.now();
        world.clients.iter_mut().for_each(|client| client.expire(now));
        broker.expire(now);
    }
    settle(world, broker);
}

fn tell(world: &World, message: impl Fn() -> ShardMessage<ringmain::io::sim::SimDriver>) {
    for mailbox in &world.mailboxes {
        assert!(mailbox.send(message()).is_ok(), "a mailbox that is emptied has room");
    }
}

fn run(shards: usize, seed: u64) {
    let listener = ListenerSettings { role: ConnectionRole::RouteContainer, ..listener() };
    let mut world = World::with_shards(shards, seed, SimOptions::default(), listener);
    let links = [auto_link(AutoLinkDirection::Out, "in"), auto_link(AutoLinkDirection::In, "out")];
    for link in &links {
        tell(&world, || ShardMessage::AddAutoLink(link.clone()));
    }
    let settings = Settings { idle_timeout: None, ..Settings::default() };
    let (producer, consumer) =
        (world.connect_to(0, settings.clone()), world.connect_to(shards - 1, settings));
    let plan = |number| Message { number, size: 100, to: None, presettled: false, priority: None };
    world.clients[producer].send_to(Some("in"), Vec::new());
    let receives = world.clients[consumer].receive_from("out", 10, Policy::Accept);
    world.clients[consumer].receivers[receives].may_repeat = true;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut broker = Broker::new(seed);
    broker.refuses_one_in = 4;
    let mut connect = {
        let mut random = random.fork();
        move |world: &World, broker: &mut Broker| {
            let network: &SimNetwork = &world.networks[random.usize(0..shards)];
            broker.connect(network.connect(ListenerId(0)), world.now());
        }
    };
    let mut numbers = 0..;
    for _ in 0..STEPS {
        let more = numbers.by_ref().take(EACH_STEP as usize).map(plan);
        world.clients[producer].senders[0].plan.extend(more);
        match random.u8(0..12) {
            0..4 if !broker.is_connected() => connect(&world, &mut broker),
            4 => broker.detach_one(),
            5 => broker.end_one(),
            6 if random.bool() => broker.reset(),
            _ => {}
        }
        // Not all at once: what is under way meets what the broker does.
        for _ in 0..random.usize(0..30) {
            world.turn();
            broker.work(world.now());
        }
        if random.bool() {
            pass(&mut world, &mut broker, STEP);
        }
    }
    broker.refuses_one_in = 0;
    if !broker.is_connected() {
        connect(&world, &mut broker);
    }
    pass(&mut world, &mut broker, CALM);
    let last: Vec<Message> = numbers.take(AT_LAST as usize).map(plan).collect();
    world.clients[producer].senders[0].plan.extend(last);
    pass(&mut world, &mut broker, STEP);

    assert_eq!(broker.links(), (1, 1), "each link is back");
    for link in &links {
        assert_eq!(link.status().state, AutoLinkState::Active);
        assert!(link.status().last_error.is_none());
    }
    let sender = &world.clients[producer].senders[0];
    assert!(sender.plan.is_empty(), "everything was sent");
    let got = &world.clients[consumer].receivers[receives].messages;
    let all = STEPS as u64 * EACH_STEP + AT_LAST;
    assert_eq!(sender.fates.len() as u64, all, "each has its outcome");
    for (number, fate) in &sender.fates {
        let is_accepted = *fate == Fate::Told(Some(State::Accepted));
        assert!(is_accepted || *number < all - AT_LAST, "message {number} has an open way: {fate:?}");
        assert!(!is_accepted || got.contains_key(number), "message {number} is lost");
    }
    assert_eq!(broker.stored(), 0, "and the broker has none left");

    // Given up, the links go, and the connection stays.
    for link in &links {
        tell(&world, || ShardMessage::RemoveAutoLink(link.clone()));
    }
    settle(&mut world, &mut broker);
    assert_eq!(broker.links(), (0, 0));
    for link in &links {
        assert_eq!(link.status().state, AutoLinkState::Inactive);
    }
    broker.reset();
    world.close_all();
}

#[test]
fn a_broker_that_comes_and_goes() {
    for_seeds("a_broker_that_comes_and_goes", 12, |seed| run(1, seed));
}

#[test]
fn a_broker_that_comes_and_goes_with_several_shards() {
    for_seeds("a_broker_that_comes_and_goes_with_several_shards", 8, |seed| run(3, seed));
}
