//! The other shards: what is handed to them and what comes from them.
//!
//! Two shards talk AMQP with each other, over a connection whose bytes go through a pair of rings. For each
//! address that something here sends to and that another shard has receivers of, a link leads there, in a
//! session of its own, so that a receiver that takes nothing holds up nobody else. Credit, windows, outcomes
//! in ranges, aborted deliveries, drains: all of it is what it is between a client and the router, and
//! what holds on one shard holds across two.
//!
//! # Cost
//! A delivery that crosses is encoded and decoded once more and copied once more. Chunks go by reference, as
//! many as a turn filled, with one doorbell, which is rung only for a shard that sleeps.

use super::links::{Direction, LinkCounters, RouterLink};
use super::mailbox::{Change, Report};
use super::queue::Egress;
use super::seat::{HandOff, Rings};
use super::slots::{ListenerSettings, SharedSettings};
use super::{Core, Party, slots};
use crate::base::id::{AddressKey, ConnectionKey, LinkKey, ShardId};
use crate::base::limits::{
    CHUNKS_PER_SEND_MAX, HAND_OFF_BYTES_PER_TURN_MAX, HAND_OFFS_PER_TURN_MAX, SENT_FRAME_MAX,
    UNSETTLED_PER_LINK_MAX,
};
use crate::engine::settings::SaslPolicy;
use crate::engine::{Attachment, Cause, LinkRef, Settings, Side};
use crate::log;
use crate::log::{Level, Module};
use crate::routing::{Address, Consumer, Remote};
use ringmain_codec::{Attach, ReceiverSettleMode, Role, SenderSettleMode, Source, Target, TargetNode};
use std::sync::atomic::Ordering;

/// Deliveries that may be open on one link between two shards. Those who sent them are limited already, each
/// by its own link's capacity.
const LINK_CAPACITY: u32 = 1 << 20;

/// The outstanding deliveries that are reasonable for each receiver of another shard.
pub(super) const RECEIVER_CAPACITY: u32 = 250;

/// Another shard, as this one knows it.
pub(super) struct Neighbour<Doorbell> {
    /// Which one it is.
    pub shard: ShardId,
    /// The rings.
    pub rings: Rings,
    /// The connection that goes through them.
    pub connection: ConnectionKey,
    /// What wakes it.
    pub doorbell: Doorbell,
    /// Whether something was pushed for it since its doorbell was last thought of.
    pub pushed: bool,
}

/// What both ends of a connection between shards say and keep to.
pub(super) fn settings() -> SharedSettings {
    SharedSettings::new(ListenerSettings {
        engine: Settings {
            container_id: "shard".to_owned(),
            hostname: None,
            max_frame_size: SENT_FRAME_MAX,
            channel_max: u16::MAX,
            idle_timeout: None,
            handshake_timeout: None,
            session_frames_max: u32::MAX >> 1,
            sasl: SaslPolicy::Optional,
            offered_capabilities: &[],
            desired_capabilities: &[],
            ..Settings::default()
        },
        link_capacity: UNSETTLED_PER_LINK_MAX,
        ..ListenerSettings::default()
    })
}

impl<Doorbell> Neighbour<Doorbell> {
    /// Pushes what the connection has to send, as far as the ring has room.
    pub(super) fn send(&mut self, core: &mut Core) {
        let Some(slot) = core.connections.get_mut(self.connection) else { return };
        while slot.out.pending() > 0 {
            if self.rings.to.room() == 0 {
                self.rings.to_is_full.store(true, Ordering::SeqCst);
                if self.rings.to.room() == 0 {
                    // The other shard rings us when it has made room.
                    return;
                }
                self.rings.to_is_full.store(false, Ordering::SeqCst);
            }
            let most = self.rings.to.room().min(CHUNKS_PER_SEND_MAX);
            for chunk in slot.out.take_chunks(most) {
                // There is room for as many as were taken.
                if self.rings.to.push(HandOff::Frames(chunk, core.now)).is_err() {
                    log!(Module::Server, Level::Critical, "a hand-off found no room in its ring");
                }
                self.pushed = true;
                core.measuring.meters.handed_over += 1;
            }
        }
    }

    /// Takes what the other shard has pushed. Tells whether it waits for the room that this made.
    pub(super) fn recv(&mut self, core: &mut Core) -> bool {
        let (mut taken, mut bytes) = (0, 0);
        while taken < HAND_OFFS_PER_TURN_MAX && bytes < HAND_OFF_BYTES_PER_TURN_MAX {
            let Some(hand_off) = self.rings.from.pop() else { break };
            taken += 1;
            match hand_off {
                HandOff::Frames(chunk, since) => {
                    bytes += chunk.filled;
                    core.measuring.meters.taken_over += 1;
                    let before = core.forwarded_in_turn();
                    core.recv(self.connection, &chunk.bytes[..chunk.filled]);
                    core.note_crossing(since, core.forwarded_in_turn() - before);
                    // Where there is no room it is freed here.
                    if self.rings.to.room() > 0 {
                        self.pushed |= self.rings.to.push(HandOff::Returned(chunk)).is_ok();
                    }
                }
                HandOff::Returned(chunk) => core.pool.give_back(chunk),
            }
        }
        if taken == 0 {
            return false;
        }
        self.rings.from.release();
        self.rings.from_is_full.swap(false, Ordering::SeqCst)
    }
}

impl Core {
    /// Opens our end of the connection to another shard. Of two shards the lower one speaks first.
    pub(super) fn open_neighbour(&mut self, shard: ShardId) -> ConnectionKey {
        let side = if self.shard < shard { Side::Initiator } else { Side::Acceptor };
        let key = self.add_slot(slots::Origin::Neighbour(shard), &settings(), side);
        let index = usize::from(shard.0);
        if self.neighbours.len() <= index {
            self.neighbours.resize(index + 1, None);
        }
        self.neighbours[index] = Some(key);
        key
    }

    /// Whether the connections to all other shards are open.
    pub(super) fn is_linked(&self) -> bool {
        self.neighbours
            .iter()
            .flatten()
            .all(|&key| self.connections.get(key).is_some_and(|slot| slot.engine.is_open()))
    }

    /// Answers another shard's attach: something there sends to an address that has receivers here.
    pub(super) fn attach_neighbour(&mut self, key: ConnectionKey, link: LinkRef, attach: &Attach<'_>) {
        let Some(Target::Node(node)) = attach.target else { return };
        let Some(address) = node.address.and_then(Address::from_key) else { return };
        let address = self.addresses.find_or_insert(address, self.routes.load());
        let attachment = |max_message_size| Attachment {
            source: attach.source,
            target: attach.target,
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            max_message_size,
        };
        let direction = Direction::In(super::links::Ingress::default());
        let Some(link_key) = self.add_link(key, link, attach, Some(address), direction, attachment) else {
            return;
        };
        self.add_sender(address, link_key);
        self.credit_due(link_key);
    }

    /// From now on other shards' receivers of an address matter here.
    pub(super) fn want_remotes(&mut self, key: AddressKey) {
        let Some(address) = self.addresses.get_mut(key) else { return };
        if !std::mem::replace(&mut address.wants_remotes, true) {
            self.sync_remotes(key);
        }
    }

    /// The snapshot says something new of these addresses.
    pub(super) fn consumers_changed(&mut self, keys: &[std::sync::Arc<str>]) {
        for key in keys {
            if let Some(key) = self.addresses.find_key(key)
                && self.addresses.get(key).is_some_and(|address| address.wants_remotes)
            {
                self.sync_remotes(key);
            }
        }
    }

    /// Attaches links to the shards that have receivers of an address by the snapshot, and gives up those to
    /// shards that have none any more.
    fn sync_remotes(&mut self, key: AddressKey) {
        let Some(address) = self.addresses.get_mut(key) else { return };
        let consumers = self.routes.load().consumers(address.key());
        let reachable = address.has_remote_destinations();
        let mut retired = Vec::new();
        address.remotes.retain(|remote| {
            let consumer = consumers.iter().find(|consumer| consumer.shard == remote.shard);
            match consumer {
                Some(consumer) => {
                    remote.receivers = consumer.receivers;
                    remote.destinations = consumer.destinations;
                }
                None => retired.push(remote.link),
            }
            consumer.is_some()
        });
        let missing: Vec<Consumer> = consumers
            .iter()
            .filter(|consumer| consumer.shard != self.shard)
            .filter(|consumer| !address.remotes.iter().any(|remote| remote.shard == consumer.shard))
            .copied()
            .collect();
        for consumer in missing {
            self.attach_remote(key, consumer);
        }
        for link in retired {
            self.retire(link);
        }
        if self.addresses.get(key).is_some_and(|address| address.has_remote_destinations() != reachable) {
            self.senders_due(Some(key));
        }
        self.addresses.forget_unused(key);
    }

    fn attach_remote(&mut self, address_key: AddressKey, consumer: Consumer) {
        let Consumer { shard, receivers, destinations } = consumer;
        let Some(&Some(connection)) = self.neighbours.get(usize::from(shard.0)) else { return };
        let Some(address) = self.addresses.get_mut(address_key) else { return };
        let Some(slot) = self.connections.get_mut(connection) else { return };
        let id = self.next_link_id;
        self.next_link_id += self.id_step;
        let target = TargetNode { address: Some(address.key()), ..TargetNode::default() };
        let attachment = Attachment {
            source: Some(Source::default()),
            target: Some(Target::Node(target)),
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            max_message_size: 0,
        };
        let attached = slot.engine.send_begin(&mut slot.out).and_then(|channel| {
            slot.engine.send_attach(channel, &id.to_string(), Role::Sender, &attachment, &mut slot.out)
        });
        let Some(link) = attached else {
            log!(
                Module::RouterCore,
                Level::Error,
                "No session is left between shards {} and {}: messages to '{}' reach no receiver there",
                self.shard.0,
                shard.0,
                address.text()
            );
            return;
        };
        let link_key = self.links.insert(RouterLink {
            id,
            connection,
            link,
            address: Some(address_key),
            remote: true,
            party: Party::Shard,
            auto_link: None,
            place: 0,
            max_message_size: 0,
            capacity: LINK_CAPACITY,
            direction: Direction::Out(Egress::new(SenderSettleMode::Mixed)),
            counters: LinkCounters::default(),
        });
        slot.engine.set_user(link, Some(link_key.into()));
        address.remotes.push(Remote { shard, link: link_key, receivers, destinations });
        self.mark_dirty(connection);
    }

    /// Gives a link to another shard up: what waits is released, since there is no receiver that credit would
    /// come for, and once nothing of what went there is open, it ends.
    fn retire(&mut self, key: LinkKey) {
        let Some(link) = self.links.get_mut(key) else { return };
        let Some(egress) = link.egress_mut() else { return };
        egress.retiring = true;
        self.release_waiting(key);
        self.end_retired(key);
    }

    /// Ends links that were to be given up and of which something has ended.
    pub(super) fn end_all_retired(&mut self) {
        for key in std::mem::take(&mut self.retired) {
            self.end_retired(key);
        }
    }

    /// Ends a link that was to be given up, if nothing is open on it any more.
    fn end_retired(&mut self, key: LinkKey) {
        let Some(link) = self.links.get(key) else { return };
        if !link.egress().is_some_and(|egress| egress.retiring && egress.outstanding() == 0) {
            return;
        }
        let (connection, link_ref) = (link.connection, link.link);
        self.link_lost(key, Vec::new(), &Cause::Peer(None));
        if let Some(slot) = self.connections.get_mut(connection) {
            slot.engine.send_detach(link_ref, true, None, &mut slot.out);
            slot.engine.clear_link(link_ref);
            slot.engine.send_end(link_ref.channel, None, &mut slot.out);
            slot.engine.clear_session(link_ref.channel);
        }
        self.mark_dirty(connection);
    }

    /// Notes that the number of an address's receivers here has changed, for the other shards to be told.
    pub(super) fn report_receivers(&mut self, key: AddressKey) {
        self.report(key, 0);
    }

    fn report(&mut self, key: AddressKey, going: usize) {
        if self.neighbours.is_empty() {
            return;
        }
        if let Some(address) = self.addresses.get(key) {
            let count = |links: usize| u32::try_from(links).unwrap_or(u32::MAX);
            self.report.changes.push(Change {
                key: address.key().into(),
                receivers: count(address.receivers.len() - going),
                destinations: count(address.destinations),
            });
        }
    }

    /// Notes that a receiver is about to go.
    pub(super) fn report_receiver_gone(&mut self, key: AddressKey) {
        self.report(key, 1);
    }

    /// Holds the output of a connection back until the other shards see what was reported last: a client
    /// whose attach is answered can be reached from everywhere.
    pub(super) fn hold_until_reported(&mut self, connection: ConnectionKey) {
        if self.neighbours.is_empty() {
            return;
        }
        let sequence = self.report.sequence;
        if let Some(slot) = self.connections.get_mut(connection) {
            slot.held_for = Some(sequence);
            self.held.push_back((sequence, connection));
        }
    }

    /// All reports up to `sequence` are in the snapshot.
    pub(super) fn published(&mut self, sequence: u64) {
        while let Some(&(held_for, connection)) = self.held.front()
            && held_for <= sequence
        {
            self.held.pop_front();
            if let Some(slot) = self.connections.get_mut(connection) {
                slot.held_for.take_if(|held_for| *held_for <= sequence);
                self.mark_dirty(connection);
            }
        }
    }

    /// What is to be reported, if anything.
    pub(super) fn take_report(&mut self) -> Option<Report> {
        if self.report.changes.is_empty() {
            return None;
        }
        let sequence = self.report.sequence;
        let next = Report { shard: self.shard, sequence: sequence + 1, changes: Vec::new() };
        Some(std::mem::replace(&mut self.report, next))
    }

    /// Whether there is something to report.
    pub(super) fn is_report_waiting(&self) -> bool {
        !self.report.changes.is_empty()
    }

    /// Takes a report back that couldn't be delivered; it goes with the next one.
    pub(super) fn untake_report(&mut self, report: Report) {
        let later = std::mem::replace(&mut self.report, report);
        self.report.changes.extend(later.changes);
    }
}
