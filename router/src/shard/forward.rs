//! From an incoming transfer to the outgoing links.
//!
//! # Cost
//! A delivery of one frame whose receiver has credit takes the straight way: the front of the message is
//! glanced at, a receiver chosen, and the payload copied once, from the receive buffer into the outgoing
//! connection's output. Nothing is allocated.

use super::fan_out::FanOut;
use super::front::{DEFAULT_PRIORITY, Depth, Found, Front, scan, strip};
use super::links::{Direction, RouterLink};
use super::message_log::Way;
use super::neighbours::RECEIVER_CAPACITY;
use super::payload::HeldFor;
use super::queue::Egress;
use super::{Core, DeliveryRef, Party, Peer, Source};
use crate::base::id::{AddressKey, ConnectionKey, FanOutKey, LinkKey};
use crate::base::limits::MESSAGE_FRONT_BYTES_MAX;
use crate::engine::{Arrived, Fault};
use crate::routing::choose::{Load, balanced, closest};
use crate::routing::{Address, Treatment};
use ringmain_codec::{Condition, DeliveryState, Rejected};
use smallvec::SmallVec;

/// Outgoing links, and the number of a delivery in the queue of each.
pub type Targets = SmallVec<[(LinkKey, u64); 1]>;

/// A delivery of which not all has come.
pub enum Current {
    /// Its front isn't complete.
    Front(Beginning),
    /// It is on its way to these, as copies of one if there is a fan-out.
    Streaming(Targets, Option<FanOutKey>),
    /// What still comes of it is thrown away.
    Discarding,
}

/// What has come of a delivery whose front isn't complete.
pub struct Beginning {
    bytes: Vec<u8>,
    /// How much there must be before looking at it again is worth it.
    look_again_at: usize,
    session: HeldFor,
}

/// A delivery as it goes to one receiver.
#[derive(Clone, Copy)]
pub(super) struct Outgoing {
    /// Where it comes from.
    pub source: Source,
    /// If it is one of several copies: which.
    pub fan_out: Option<(FanOutKey, u32)>,
    /// Its priority among those that wait.
    pub priority: u8,
}

impl Core {
    /// Takes one transfer frame.
    #[inline]
    pub(super) fn transfer(&mut self, connection: ConnectionKey, arrived: &Arrived<'_>) {
        let Some(key) = arrived.user.map(LinkKey) else { return };
        let Some(link) = self.links.get_mut(key) else { return };
        let (address, party) = (link.address, link.party);
        let Direction::In(ingress) = &mut link.direction else { return };
        // Looked at when the turn ends, whatever becomes of the delivery.
        ingress.mark_due(key, &mut self.credit_due);
        let is_logged = ingress.is_logged;
        let source = Source {
            delivery: DeliveryRef { connection, link: arrived.link, key, delivery_id: arrived.delivery_id },
            party,
            settled: arrived.settled,
            message_format: arrived.message_format,
            is_governed: ingress.is_governed,
        };
        let next = if arrived.first {
            link.counters.begin(arrived.settled, self.second);
            let counters = &mut self.counters[party as usize];
            counters.ingress += 1;
            counters.presettled += u64::from(arrived.settled);
            if !arrived.settled {
                self.follow_to_settlement(&source.delivery, party);
            }
            if is_logged {
                self.log_message(key, Way::Received, arrived.payload);
            }
            if arrived.aborted { None } else { self.route(source, address, arrived.payload, arrived.more) }
        } else {
            let current = ingress.current.take();
            self.transfer_on(source, address, current, arrived)
        };
        if next.is_some()
            && let Some(ingress) = self.links.get_mut(key).and_then(RouterLink::ingress_mut)
        {
            ingress.current = next;
        }
    }

    /// Takes a frame that isn't its delivery's first. Returns what the next one will meet.
    fn transfer_on(
        &mut self,
        source: Source,
        address: Option<AddressKey>,
        current: Option<Current>,
        arrived: &Arrived<'_>,
    ) -> Option<Current> {
        match current {
            None | Some(Current::Discarding) => arrived.more.then_some(Current::Discarding),
            Some(Current::Front(beginning)) if arrived.aborted => {
                self.release_bytes(beginning.session, beginning.bytes.len());
                None
            }
            Some(Current::Front(beginning)) => self.begin_on(source, address, beginning, arrived),
            Some(Current::Streaming(targets, fan_out)) if arrived.aborted => {
                self.abort_streaming(targets, fan_out);
                None
            }
            Some(Current::Streaming(mut targets, fan_out)) => {
                if source.settled
                    && let Some(fan_out) = fan_out.filter(|&key| !self.is_fan_out_settled(key))
                {
                    self.settle_fan_out(fan_out, None);
                }
                targets.retain(|&mut (target, sequence)| {
                    self.append(target, sequence, &source, arrived.payload, arrived.more)
                });
                if let Some(fan_out) = fan_out {
                    self.end_frame(fan_out, arrived.more);
                }
                arrived.more.then(|| self.stream_on(targets, fan_out))
            }
        }
    }

    /// Adds a frame to the beginning of a delivery, and looks whether that is enough to route it.
    fn begin_on(
        &mut self,
        source: Source,
        address: Option<AddressKey>,
        mut beginning: Beginning,
        arrived: &Arrived<'_>,
    ) -> Option<Current> {
        let before = beginning.bytes.len();
        beginning.bytes.extend_from_slice(arrived.payload);
        if arrived.more && beginning.bytes.len() < beginning.look_again_at {
            self.hold_bytes(&source, arrived.payload.len());
            return Some(Current::Front(beginning));
        }
        self.release_bytes(beginning.session, before);
        self.route(source, address, &beginning.bytes, arrived.more)
    }

    /// What is done with the copies of a delivery behind each frame.
    fn end_frame(&mut self, fan_out: FanOutKey, more: bool) {
        self.end_sharing(fan_out);
        if !more && self.is_fan_out_settled(fan_out) {
            self.end_fan_out(fan_out);
        }
    }

    /// What the next frame of a delivery will meet. If nobody is left who would have it, the record of a
    /// settled one's copies has nothing more to share. (An unsettled one's goes with its last outcome.)
    fn stream_on(&mut self, targets: Targets, fan_out: Option<FanOutKey>) -> Current {
        if !targets.is_empty() {
            return Current::Streaming(targets, fan_out);
        }
        if let Some(fan_out) = fan_out.filter(|&key| self.is_fan_out_settled(key)) {
            self.end_fan_out(fan_out);
        }
        Current::Discarding
    }

    /// Gives up what was begun of a delivery, at all of its receivers.
    pub(super) fn abort_streaming(&mut self, targets: Targets, fan_out: Option<FanOutKey>) {
        for (target, sequence) in targets {
            self.abort(target, sequence);
        }
        if let Some(fan_out) = fan_out {
            self.end_fan_out(fan_out);
        }
    }

    /// A sender is gone: what it had only begun is given up.
    pub(super) fn give_up_current(&mut self, current: Option<Current>) {
        match current {
            Some(Current::Front(beginning)) => {
                self.release_bytes(beginning.session, beginning.bytes.len());
            }
            Some(Current::Streaming(targets, fan_out)) => self.abort_streaming(targets, fan_out),
            Some(Current::Discarding) | None => {}
        }
    }

    /// Decides where a delivery goes, as soon as enough of it has come, and sends it on its way. Returns
    /// what its next frame will meet. `address` is that of the sender's link, if it isn't anonymous.
    fn route(
        &mut self,
        source: Source,
        address: Option<AddressKey>,
        payload: &[u8],
        more: bool,
    ) -> Option<Current> {
        if payload.is_empty() && more {
            // Nothing goes anywhere before there is something of it.
            return Some(self.wait_for_front(&source, payload));
        }
        let depth =
            if address.is_some() && !source.is_governed { Depth::Annotations } else { Depth::Properties };
        let found = if source.message_format == 0 || address.is_none() {
            match scan(payload, !more, depth) {
                Front::Ready(found) => found,
                Front::Incomplete if payload.len() <= MESSAGE_FRONT_BYTES_MAX => {
                    return Some(self.wait_for_front(&source, payload));
                }
                Front::Incomplete => {
                    let fault = Fault::describe(
                        Condition::PRECONDITION_FAILED,
                        format!(
                            "the annotations and properties of a message are longer than \
                             {MESSAGE_FRONT_BYTES_MAX} bytes"
                        ),
                    );
                    return self.reject(&source, &fault, more);
                }
                Front::Invalid(fault) => return self.reject(&source, &fault, more),
            }
        } else {
            // Another format than AMQP's own (§3.2): its bytes mean nothing here.
            Found { priority: DEFAULT_PRIORITY, to: None, user_id: None, router_annotations: None }
        };
        if source.is_governed
            && let Err(fault) = self.may_send(&source, &found, address.is_none())
        {
            return self.reject(&source, &fault, more);
        }
        let address = match address {
            Some(address) => Some(address),
            None => {
                let Some(to) = found.to.filter(|to| !to.is_empty()) else {
                    let fault =
                        Fault::new(Condition::PRECONDITION_FAILED, "Routing failure: no address present");
                    return self.reject(&source, &fault, more);
                };
                match self.find_destination(to) {
                    Ok(address) => address,
                    Err(fault) => return self.reject(&source, &fault, more),
                }
            }
        };
        self.spread(source, address, &found, payload, more)
    }

    fn wait_for_front(&mut self, source: &Source, payload: &[u8]) -> Current {
        let session = self.hold_bytes(source, payload.len());
        Current::Front(Beginning { bytes: payload.to_vec(), look_again_at: payload.len() * 2, session })
    }

    /// The address that an anonymous sender's message names, if it has receivers anywhere.
    fn find_destination(&mut self, to: &str) -> Result<Option<AddressKey>, Fault> {
        let snapshot = self.routes.load();
        let to = Address::parse(to, &snapshot.router_id);
        let to = to.in_phase(snapshot.ingress_phase(to));
        let key = match self.addresses.find(to) {
            Some(key) => key,
            None if self.neighbours.is_empty()
                || self.addresses.with_key(to, |key| snapshot.consumers(key).is_empty()) =>
            {
                if snapshot.settings(to).treatment == Treatment::Unavailable {
                    return Err(Fault::new(
                        Condition::NOT_FOUND,
                        "Deliveries cannot be sent to an unavailable address",
                    ));
                }
                return Ok(None);
            }
            // It has receivers on other shards only.
            None => self.addresses.find_or_insert(to, snapshot),
        };
        self.want_remotes(key);
        self.addresses.forget_unused(key);
        Ok(Some(key))
    }

    /// Chooses the receivers of a delivery and sends it to them.
    fn spread(
        &mut self,
        source: Source,
        address: Option<AddressKey>,
        found: &Found<'_>,
        payload: &[u8],
        more: bool,
    ) -> Option<Current> {
        let Some(address) = address.and_then(|address| self.addresses.get_mut(address)) else {
            return self.undeliverable(&source, more);
        };
        // What comes from another shard stays here: that shard has seen to the others.
        let here_only = source.party == Party::Shard;
        let remotes = if here_only { &[][..] } else { address.remotes.as_slice() };
        let here = address.receivers.len();
        let candidates = here + remotes.len();
        let candidate =
            |place: usize| if place < here { address.receivers[place] } else { remotes[place - here].link };
        match source.party {
            Party::Client => address.counters.ingress += 1,
            Party::Container => {
                address.counters.ingress += 1;
                address.counters.ingress_route_container += 1;
            }
            Party::Agent => address.counters.from_container += 1,
            Party::Shard => {}
        }
        let priority = address.settings.priority.unwrap_or(found.priority);
        let chosen = match address.settings.treatment {
            Treatment::Balanced => {
                let links = &self.links;
                balanced(candidates, &mut address.turn, |place| {
                    let share = if place < here { 1 } else { remotes[place - here].receivers };
                    load(links.get(candidate(place)), share)
                })
            }
            Treatment::Closest => {
                let weights = remotes.iter().map(|remote| remote.receivers);
                closest(std::iter::repeat_n(1, here).chain(weights), &mut address.turn)
            }
            Treatment::Multicast if candidates > 1 => {
                address.counters.egress += here as u64;
                let receivers: SmallVec<[LinkKey; 8]> = (0..candidates).map(candidate).collect();
                return self.send_copies(source, &receivers, priority, found, payload, more);
            }
            Treatment::Multicast => (candidates == 1).then_some(0),
            Treatment::Unavailable => None,
        };
        let Some(chosen) = chosen else { return self.undeliverable(&source, more) };
        let target = candidate(chosen);
        if chosen >= here {
            // Counted by the shard that it goes to.
        } else if address.in_process > 0 {
            address.counters.to_container += 1;
        } else {
            address.counters.egress += 1;
        }
        let outgoing = Outgoing { source, fan_out: None, priority };
        let sequence = self.send_stripped(target, outgoing, found, payload, more);
        if !more {
            return None;
        }
        // A receiver that can't take it has made its sender's rest worthless already.
        Some(sequence.map_or(Current::Discarding, |sequence| {
            Current::Streaming(SmallVec::from_elem((target, sequence), 1), None)
        }))
    }

    /// Sends a copy to each receiver.
    fn send_copies(
        &mut self,
        source: Source,
        receivers: &[LinkKey],
        priority: u8,
        found: &Found<'_>,
        payload: &[u8],
        more: bool,
    ) -> Option<Current> {
        let fan_out = self.fan_outs.insert(FanOut::new(source, receivers, self.spare.copies()));
        self.set_peer(&source, Peer::FanOut(fan_out, 0));
        let mut targets = Targets::new();
        for (copy, &receiver) in (0..).zip(receivers) {
            let outgoing = Outgoing { source, fan_out: Some((fan_out, copy)), priority };
            let sequence = self.send_stripped(receiver, outgoing, found, payload, more);
            self.copy_sent(fan_out, copy, sequence);
            if more && let Some(sequence) = sequence {
                targets.push((receiver, sequence));
            }
        }
        self.end_frame(fan_out, more);
        more.then(|| self.stream_on(targets, Some(fan_out)))
    }

    /// Sends a delivery without what routers annotated, where either end's listener takes that out.
    fn send_stripped(
        &mut self,
        target: LinkKey,
        outgoing: Outgoing,
        found: &Found<'_>,
        payload: &[u8],
        more: bool,
    ) -> Option<u64> {
        if let Some(annotations) = &found.router_annotations {
            let from = self.connections.get(outgoing.source.delivery.connection);
            let to = self.links.get(target).and_then(|link| self.connections.get(link.connection));
            if from.is_some_and(|slot| slot.listener.strip_in)
                || to.is_some_and(|slot| slot.listener.strip_out)
            {
                return self.send(target, outgoing, &strip(payload, annotations), more);
            }
        }
        self.send(target, outgoing, payload, more)
    }

    /// Notes with an unsettled incoming delivery where its other end is.
    #[inline]
    pub(super) fn set_peer(&mut self, source: &Source, peer: Peer) {
        if source.settled {
            return;
        }
        let delivery = &source.delivery;
        if let Some(slot) = self.connections.get_mut(delivery.connection)
            && let Some(place) = slot.engine.incoming_mut(delivery.link.channel, delivery.delivery_id)
        {
            *place = peer;
        }
    }

    /// Nobody is there to receive: an unsettled delivery is released, a settled one dropped and counted.
    fn undeliverable(&mut self, source: &Source, more: bool) -> Option<Current> {
        if source.settled {
            self.count_drop(source, None);
        } else {
            self.settle_source(source, Some(&DeliveryState::Released));
        }
        more.then_some(Current::Discarding)
    }

    /// Rejects a delivery on its sender's account.
    fn reject(&mut self, source: &Source, fault: &Fault, more: bool) -> Option<Current> {
        if source.settled {
            self.count_drop(source, None);
        } else {
            let state = DeliveryState::Rejected(Rejected { error: Some(fault.error()) });
            self.settle_source(source, Some(&state));
        }
        more.then_some(Current::Discarding)
    }

    /// Counts a settled delivery that was dropped, with its sender's link and the receiver's that it was
    /// for.
    pub(super) fn count_drop(&mut self, source: &Source, target: Option<LinkKey>) {
        self.counters[source.party as usize].dropped_presettled += 1;
        for key in [Some(source.delivery.key), target].into_iter().flatten() {
            if let Some(link) = self.links.get_mut(key) {
                link.counters.dropped_presettled += 1;
            }
        }
    }

    /// Makes a delivery's sender send the rest of it to nobody: a receiver is out of the game. (Within a
    /// transfer, whose delivery is taken out of its link, `append` says the same.)
    pub(super) fn stop_streaming(&mut self, source: &Source, target: LinkKey) {
        let Some(ingress) = self.links.get_mut(source.delivery.key).and_then(RouterLink::ingress_mut) else {
            return;
        };
        if let Some(Current::Streaming(mut targets, fan_out)) =
            ingress.current.take_if(|current| matches!(current, Current::Streaming(..)))
        {
            targets.retain(|(other, _)| *other != target);
            let next = self.stream_on(targets, fan_out);
            if let Some(ingress) = self.links.get_mut(source.delivery.key).and_then(RouterLink::ingress_mut) {
                ingress.current = Some(next);
            }
        }
    }
}

/// How busy a link is, for each of the `receivers` that it leads to.
fn load(link: Option<&RouterLink>, receivers: u32) -> Load {
    link.map_or(Load { outstanding: u32::MAX, capacity: 0 }, |link| Load {
        outstanding: link.egress().map_or(u32::MAX, Egress::outstanding).div_ceil(receivers.max(1)),
        capacity: if link.remote { RECEIVER_CAPACITY } else { link.capacity },
    })
}
