//! A scripted conversation in which one connection is reset, after each byte in each direction in turn:
//! the shard keeps nothing of it, the others lose nothing but what they had with it.

use crate::client::{Fate, Policy};
use crate::exchange::check;
use crate::message::Message;
use crate::seeds::for_each_seed_in;
use crate::state::State;
use crate::world::{World, listener};
use ringmain::engine::Settings;
use ringmain::io::sim::SimOptions;
use ringmain_codec::ReceiverSettleMode;
use std::time::Duration;

const VICTIM: usize = 0;
const OTHER: usize = 1;
const BYSTANDER: usize = 2;

fn message(number: u64, size: usize) -> Message {
    Message { number, size, to: None, presettled: false, priority: None }
}

/// Three clients: one that will be reset, one that deals with it, one that has nothing to do with it. Their
/// receivers come first.
fn clients(policy: Policy, shards: usize) -> World {
    let mut listener = listener();
    listener.engine.max_frame_size = 512;
    let options =
        SimOptions { latency_max: Duration::from_micros(1), is_ragged: false, ..SimOptions::default() };
    let mut world = World::with_shards(shards, 1, options, listener);
    let settings = Settings { max_frame_size: 512, idle_timeout: None, ..Settings::default() };
    for client in [VICTIM, OTHER, BYSTANDER] {
        world.connect_to(client % shards, settings.clone());
    }
    let victim = &mut world.clients[VICTIM];
    victim.receive_from("b", 10, policy);
    victim.receive_from("m/1", 10, policy);
    let other = &mut world.clients[OTHER];
    other.receive_from("a", 10, policy);
    other.receive_from("m/1", 10, policy);
    world.clients[BYSTANDER].receive_from("c/9", 2, Policy::Accept);
    world
}

/// What they send each other.
fn talk(world: &mut World) {
    if world.shards.len() > 1 {
        // Receivers on other shards are known a little later.
        world.settle();
    }
    let victim = &mut world.clients[VICTIM];
    victim.send_to(
        Some("a"),
        vec![message(1, 10), message(2, 500), Message { presettled: true, ..message(3, 10) }],
    );
    let second = victim.send_to(Some("a"), vec![message(4, 10)]);
    victim.senders[second].settle = ReceiverSettleMode::Second;
    victim.send_to(None, vec![Message { to: Some("m/1".to_owned()), ..message(5, 10) }]);
    let other = &mut world.clients[OTHER];
    other.send_to(Some("b"), vec![message(11, 500), message(12, 0)]);
    other.send_to(Some("m/1"), vec![message(14, 500)]);
    let messages = (20..24).map(|number| message(number, 50)).collect();
    world.clients[BYSTANDER].send_to(Some("c/9"), messages);
}

/// What must hold when the dust has settled.
fn check_after(world: &mut World) {
    world.settle();
    assert!(world.clients[VICTIM].is_over());
    let other = &world.clients[OTHER];
    for (index, receiver) in other.receivers.iter().enumerate() {
        // What the victim had sent, and what isn't settled yet, is settled by the router in its place; what
        // the other one sent to itself stays as it is.
        for number in receiver.unsettled.values() {
            assert!(*number > 10, "receiver {index} is left alone with {number}");
        }
    }
    world.clients[OTHER].settle_kept(0, Policy::Accept);
    world.clients[OTHER].settle_kept(1, Policy::Accept);
    world.settle();
    // The victim's addresses lead nowhere now, or to nobody who takes anything: what wasn't sent waits.
    check(world, true);
    let other = &world.clients[OTHER];
    assert!(other.owed().is_empty(), "outcomes are missing for {:?}", other.owed());
    let bystander = &world.clients[BYSTANDER];
    let fates: Vec<&Fate> = bystander.senders[0].fates.values().collect();
    assert_eq!(fates, vec![&Fate::Told(Some(State::Accepted)); 4], "the bystander notices nothing");
    assert_eq!(bystander.receivers[0].got, (20..24).collect::<Vec<u64>>());
    let holdings = world.holdings();
    assert_eq!((holdings.connections, holdings.waiting, holdings.fan_outs), (2, 0, 0));
    assert_eq!(holdings.partial_bytes, 0);
    world.close_all();
}

/// Which way the byte went after which the victim is reset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToRouter,
    ToVictim,
}

fn resets_at_every_byte(name: &'static str, policy: Policy, way: Way, shards: usize, every: u64) {
    let mut whole = clients(policy, shards);
    talk(&mut whole);
    whole.settle();
    let peer = &whole.clients[VICTIM].peer;
    let bytes = match way {
        Way::ToRouter => peer.sent_total(),
        Way::ToVictim => peer.received_total(),
    };
    let came = |index: usize| {
        whole.clients[index].receivers.iter().map(|receiver| receiver.got.len()).sum::<usize>()
    };
    assert_eq!([came(OTHER), came(VICTIM)], [6, 4], "the conversation takes place");
    assert!(bytes > 1000, "{bytes} bytes");
    for_each_seed_in(name, 0..bytes / every + 1, |step| {
        let mut world = clients(policy, shards);
        let peer = &world.clients[VICTIM].peer;
        match way {
            Way::ToRouter => peer.reset_after_sent(step * every),
            Way::ToVictim => peer.reset_after_received(step * every),
        }
        talk(&mut world);
        check_after(&mut world);
    });
}

#[test]
fn a_reset_after_any_byte_to_the_router_leaves_nothing_behind() {
    let name = "a_reset_after_any_byte_to_the_router_leaves_nothing_behind";
    resets_at_every_byte(name, Policy::Accept, Way::ToRouter, 1, 1);
}

#[test]
fn a_reset_after_any_byte_of_the_router_leaves_nothing_behind() {
    let name = "a_reset_after_any_byte_of_the_router_leaves_nothing_behind";
    resets_at_every_byte(name, Policy::Accept, Way::ToVictim, 1, 1);
}

#[test]
fn a_reset_after_any_byte_to_the_router_while_nothing_is_settled_leaves_nothing_behind() {
    let name = "a_reset_after_any_byte_to_the_router_while_nothing_is_settled_leaves_nothing_behind";
    resets_at_every_byte(name, Policy::Keep, Way::ToRouter, 1, 1);
}

#[test]
fn a_reset_after_any_byte_of_the_router_while_nothing_is_settled_leaves_nothing_behind() {
    let name = "a_reset_after_any_byte_of_the_router_while_nothing_is_settled_leaves_nothing_behind";
    resets_at_every_byte(name, Policy::Keep, Way::ToVictim, 1, 1);
}

/// The same where the victim and the other one are on two shards; not at every byte, since the conversation is
/// the same, and takes longer.
#[test]
fn a_reset_seen_from_another_shard_leaves_nothing_behind() {
    let name = "a_reset_seen_from_another_shard_leaves_nothing_behind";
    for way in [Way::ToRouter, Way::ToVictim] {
        resets_at_every_byte(name, Policy::Accept, way, 2, 17);
        resets_at_every_byte(name, Policy::Keep, way, 2, 19);
    }
}
