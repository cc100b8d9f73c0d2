//! Peers that keep to no rule, beside clients that do: the shard bears them, forgets them, and lets them
//! spoil nothing for the others.

use crate::client::{Client, Fate, Policy};
use crate::hostile_peer::{Peer, hostile_users};
use crate::message::Message;
use crate::seeds::{for_seeds, trace};
use crate::wire::Watch;
use crate::world::{World, listener};
use ringmain::base::id::ListenerId;
use ringmain::engine::settings::SaslPolicy;
use ringmain::engine::{Settings, Side};
use ringmain::io::sim::{SimOptions, SimPeer};
use ringmain::sasl::{ListenerAuthenticator, Mechanism};
use std::sync::Arc;
use std::time::Duration;

struct Hostile {
    peer: SimPeer,
    frames: Peer,
    watch: Watch,
    is_reading: bool,
}

impl Hostile {
    fn new(world: &World, random: &mut fastrand::Rng) -> Self {
        let shard = random.usize(0..world.shards.len());
        let peer = world.networks[shard].connect(ListenerId(0));
        let mut frames = Peer::new(random.fork(), 4);
        peer.write(&frames.prefix(Side::Acceptor, SaslPolicy::Optional));
        let mut watch = Watch::new();
        watch.frame_max = 3000;
        Self { peer, frames, watch, is_reading: true }
    }

    fn work(&mut self, random: &mut fastrand::Rng) {
        if self.is_reading {
            let frames = &mut self.frames;
            let is_over = self.watch.is_closed();
            let bytes = self.peer.read_all();
            assert!(!is_over || bytes.is_empty());
            self.watch.take(&bytes, |channel, performative, _| {
                trace!("  hostile -> {channel} {performative:?}");
                frames.recv(channel, performative);
            });
        }
        for _ in 0..random.usize(0..6) {
            let mut bytes = self.frames.frame();
            if !bytes.is_empty() && random.u16(0..400) == 0 {
                let at = random.usize(0..bytes.len());
                bytes[at] ^= 1 << random.u8(0..8);
            }
            self.peer.write(&bytes);
        }
        match random.u16(0..600) {
            0 => self.peer.reset(),
            1 => self.peer.close(),
            2 => self.peer.shutdown(),
            3 => {
                self.is_reading = false;
                self.peer.stop_reading();
            }
            _ => {}
        }
    }
}

fn messages(numbers: std::ops::Range<u64>) -> Vec<Message> {
    let message = |number| Message {
        number,
        size: number as usize % 900,
        to: None,
        presettled: number % 5 == 0,
        priority: None,
    };
    numbers.map(message).collect()
}

/// Two clients that deal with one another on an address that hostile peers don't guess, and with whoever
/// else is there on one that they do.
fn decent_clients(world: &mut World) {
    for index in 0..2u64 {
        let shard = index as usize % world.shards.len();
        let client = world.connect_to(shard, Settings { max_frame_size: 1000, ..Settings::default() });
        let other = 1 - index;
        let client: &mut Client = &mut world.clients[client];
        client.receive_from(&format!("private{index}"), 10, Policy::Accept);
        client.send_to(Some(&format!("private{other}")), messages(index * 1000..index * 1000 + 40));
    }
}

#[test]
fn hostile_peers_spoil_nothing_for_others() {
    let mut answers = 0;
    let users = hostile_users();
    for_seeds("hostile_peers_spoil_nothing_for_others", 150, |seed| {
        let mut random = fastrand::Rng::with_seed(seed ^ 0xBAD);
        let mut listener = listener();
        listener.engine.channel_max = 4;
        if random.bool() {
            // PLAIN is named, or it wouldn't be offered.
            let mechanisms = random.bool().then(|| Mechanism::ALL.to_vec());
            let users = users.clone();
            let authenticator =
                ListenerAuthenticator { mechanisms, is_authentication_required: random.bool(), users };
            listener.engine.authenticator = Some(Arc::new(authenticator));
        }
        listener.engine.max_frame_size = [512, 4096][random.usize(0..2)];
        listener.max_message_size = [0, 400][random.usize(0..2)];
        listener.link_capacity = [1, 10, 250][random.usize(0..3)];
        if listener.max_message_size > 0 {
            listener.max_message_size = 2000;
        }
        let options = SimOptions {
            is_ragged: random.bool(),
            latency_max: Duration::from_micros(5),
            ..SimOptions::default()
        };
        let shards = [1, 1, 2, 3][random.usize(0..4)];
        let mut world = World::with_shards(shards, seed, options, listener);
        let mut hostiles: Vec<Hostile> = Vec::new();
        for round in 0..random.usize(20..250) {
            if round == 3 {
                decent_clients(&mut world);
            }
            if hostiles.len() < 4 && random.u8(0..10) == 0 {
                hostiles.push(Hostile::new(&world, &mut random));
            }
            for hostile in &mut hostiles {
                hostile.work(&mut random);
            }
            hostiles.retain(|hostile| {
                let is_over = hostile.peer.ended().is_some();
                answers += if is_over { hostile.watch.frames } else { 0 };
                !is_over
            });
            world.turn();
            if random.u8(0..40) == 0 {
                world.pass(Duration::from_millis(random.u64(0..5000)));
            }
        }
        world.settle();
        for client in &world.clients {
            for sender in &client.senders {
                assert_eq!(sender.fates.len(), 40);
                for (number, fate) in &sender.fates {
                    let expected = if number % 5 == 0 {
                        Fate::Presettled
                    } else {
                        Fate::Told(Some(crate::state::State::Accepted))
                    };
                    assert_eq!(*fate, expected, "message {number}");
                }
            }
            assert_eq!(client.receivers[0].got.len(), 40);
        }
        for hostile in &hostiles {
            hostile.peer.reset();
        }
        world.close_all();
    });
    println!("{answers} frames in answer");
}
