//! From an incoming transfer to the outgoing links.
//!
//! # Cost
//! A delivery of one frame whose receiver has credit takes the straight way: the front of the message is
//! glanced at, a receiver chosen, and the payload copied once, from the receive buffer into the outgoing
//! connection's output. Nothing is allocated.

use super::fan_out::FanOut;
use super::front::{Depth, Found, Front, scan, strip};
use super::links::Direction;
use super::{Core, DeliveryRef, Peer, Source};
use crate::base::id::{AddressKey, ConnectionKey, FanOutKey, LinkKey};
use crate::base::limits::MESSAGE_FRONT_BYTES_MAX;
use crate::engine::{Arrived, Fault};
use crate::routing::choose::{Load, balanced, closest};
use crate::routing::{Address, Treatment};
use ringmain_codec::{Condition, DeliveryState, Rejected};
use smallvec::SmallVec;

/// An outgoing link, and the number of a delivery there.
pub type Targets = SmallVec<[(LinkKey, u64); 1]>;

/// A delivery of which not all has come.
pub enum Current {
    /// Its front isn't complete: this is what has come.
    Front(Vec<u8>),
    /// It is on its way to these, as copies of one if there is a fan-out.
    Streaming(Targets, Option<FanOutKey>),
    /// What still comes of it is thrown away.
    Discarding,
}

/// A delivery as it goes to one receiver.
#[derive(Clone, Copy)]
pub(super) struct Outgoing {
    /// Where it comes from.
    pub source: Source,
    /// If it is one of several copies.
    pub fan_out: Option<FanOutKey>,
    /// Its priority among those that wait.
    pub priority: u8,
}

impl Core {
    /// Takes one transfer frame.
    #[inline]
    pub(super) fn transfer(&mut self, connection: ConnectionKey, arrived: &Arrived<'_>) {
        let Some(key) = arrived.user.map(LinkKey) else { return };
        let Some(link) = self.links.get_mut(key) else { return };
        let Direction::In(ingress) = &mut link.direction else { return };
        let source = Source {
            delivery: DeliveryRef { connection, link: arrived.link, key, delivery_id: arrived.delivery_id },
            settled: arrived.settled,
            message_format: arrived.message_format,
        };
        if arrived.first {
            ingress.open += 1;
            link.counters.deliveries += 1;
            self.counters.ingress += 1;
            if arrived.settled {
                link.counters.presettled += 1;
                self.counters.presettled += 1;
            }
            let next = if arrived.aborted {
                self.delivery_closed(key);
                None
            } else {
                self.route(source, link_anonymous(self, key), arrived.payload, arrived.more)
            };
            if next.is_some() {
                self.set_current(key, next);
            }
            self.credit_due(key);
            return;
        }
        let current = ingress.current.take();
        let next = self.transfer_on(source, current, arrived);
        self.set_current(key, next);
        self.credit_due(key);
    }

    fn set_current(&mut self, key: LinkKey, current: Option<Current>) {
        if let Some(ingress) = self.links.get_mut(key).and_then(|link| link.ingress_mut()) {
            ingress.current = current;
        }
    }

    /// Takes a frame that isn't its delivery's first.
    fn transfer_on(
        &mut self,
        source: Source,
        current: Option<Current>,
        arrived: &Arrived<'_>,
    ) -> Option<Current> {
        let key = source.delivery.key;
        match current {
            None | Some(Current::Discarding) => arrived.more.then_some(Current::Discarding),
            Some(Current::Front(_)) if arrived.aborted => {
                self.delivery_closed(key);
                None
            }
            Some(Current::Front(mut front)) => {
                front.extend_from_slice(arrived.payload);
                self.route(source, link_anonymous(self, key), &front, arrived.more)
            }
            Some(Current::Streaming(targets, fan_out)) if arrived.aborted => {
                self.abort_streaming(targets, fan_out);
                self.delivery_closed(key);
                None
            }
            Some(Current::Streaming(mut targets, fan_out)) => {
                targets.retain(|&mut (target, sequence)| {
                    self.append(target, sequence, &source, arrived.payload, arrived.more)
                });
                if let Some(fan_out) = fan_out {
                    self.end_sharing(fan_out);
                }
                let next = if targets.is_empty() {
                    Current::Discarding
                } else {
                    Current::Streaming(targets, fan_out)
                };
                arrived.more.then_some(next)
            }
        }
    }

    /// Gives up what was begun of a delivery, at all of its receivers.
    pub(super) fn abort_streaming(&mut self, targets: Targets, fan_out: Option<FanOutKey>) {
        for (target, sequence) in targets {
            self.abort(target, sequence);
        }
        if let Some(fan_out) = fan_out {
            self.fan_outs.remove(fan_out);
        }
    }

    /// Decides where a delivery goes, as soon as enough of it has come, and sends it on its way. Returns
    /// what its next frame will meet.
    fn route(&mut self, source: Source, anonymous: bool, payload: &[u8], more: bool) -> Option<Current> {
        let depth = if anonymous { Depth::Properties } else { Depth::Annotations };
        let found = if source.message_format == 0 || anonymous {
            match scan(payload, !more, depth) {
                Front::Ready(found) => found,
                Front::Incomplete if payload.len() <= MESSAGE_FRONT_BYTES_MAX => {
                    return Some(Current::Front(payload.to_vec()));
                }
                Front::Incomplete => {
                    let fault = Fault::describe(
                        Condition::PRECONDITION_FAILED,
                        format!(
                            "the annotations and properties of a message are longer than {MESSAGE_FRONT_BYTES_MAX} bytes"
                        ),
                    );
                    return self.reject(&source, &fault, more);
                }
                Front::Invalid(fault) => return self.reject(&source, &fault, more),
            }
        } else {
            // Another format than AMQP's own (§3.2): its bytes mean nothing here.
            Found { priority: super::front::DEFAULT_PRIORITY, to: None, router_annotations: None }
        };
        let address = if anonymous {
            let Some(to) = found.to.filter(|to| !to.is_empty()) else {
                let fault = Fault::new(Condition::PRECONDITION_FAILED, "Routing failure: no address present");
                return self.reject(&source, &fault, more);
            };
            let snapshot = self.snapshot.clone();
            let to = Address::parse(to, &snapshot.router_id);
            let used = self.addresses.find(to);
            if used.is_none() && snapshot.settings(to).treatment == Treatment::Unavailable {
                let fault =
                    Fault::new(Condition::NOT_FOUND, "Deliveries cannot be sent to an unavailable address");
                return self.reject(&source, &fault, more);
            }
            used
        } else {
            self.links.get(source.delivery.key).and_then(|link| link.address)
        };
        self.spread(source, address, &found, payload, more)
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
        let priority = address.settings.priority.unwrap_or(found.priority);
        let chosen = match address.settings.treatment {
            Treatment::Balanced => {
                let links = &self.links;
                balanced(&address.receivers, &mut address.turn, |receiver| load(links.get(receiver)))
            }
            Treatment::Closest => closest(&address.receivers, &mut address.turn),
            Treatment::Multicast if address.receivers.len() > 1 => {
                let receivers: SmallVec<[LinkKey; 8]> = address.receivers.iter().copied().collect();
                return Some(self.send_copies(source, &receivers, priority, found, payload, more))
                    .filter(|_| more);
            }
            Treatment::Multicast => address.receivers.first().copied(),
            Treatment::Unavailable => None,
        };
        let Some(target) = chosen else { return self.undeliverable(&source, more) };
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
    ) -> Current {
        let fan_out = self.fan_outs.insert(FanOut::new(source, receivers));
        self.set_peer(&source, Peer::FanOut(fan_out));
        let mut targets = Targets::new();
        for &receiver in receivers {
            let outgoing = Outgoing { source, fan_out: Some(fan_out), priority };
            if let Some(sequence) = self.send_stripped(receiver, outgoing, found, payload, more) {
                targets.push((receiver, sequence));
            }
        }
        self.end_sharing(fan_out);
        Current::Streaming(targets, Some(fan_out))
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
            let strips_in = self
                .connections
                .get(outgoing.source.delivery.connection)
                .is_some_and(|slot| slot.listener.strip_in);
            let strips_out = self
                .links
                .get(target)
                .and_then(|link| self.connections.get(link.connection))
                .is_some_and(|slot| slot.listener.strip_out);
            if strips_in || strips_out {
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
            self.delivery_closed(source.delivery.key);
        } else {
            self.settle_source(source, Some(&DeliveryState::Released));
        }
        more.then_some(Current::Discarding)
    }

    /// Rejects a delivery on its sender's account.
    fn reject(&mut self, source: &Source, fault: &Fault, more: bool) -> Option<Current> {
        if source.settled {
            self.count_drop(source, None);
            self.delivery_closed(source.delivery.key);
        } else {
            let state = DeliveryState::Rejected(Rejected { error: Some(fault.error()) });
            self.settle_source(source, Some(&state));
        }
        more.then_some(Current::Discarding)
    }

    /// Counts a settled delivery that was dropped, with its sender's link and the receiver's that it was
    /// for.
    pub(super) fn count_drop(&mut self, source: &Source, target: Option<LinkKey>) {
        self.counters.dropped_presettled += 1;
        for key in [Some(source.delivery.key), target].into_iter().flatten() {
            if let Some(link) = self.links.get_mut(key) {
                link.counters.dropped_presettled += 1;
            }
        }
    }

    /// Makes a delivery's sender send the rest of it to nobody: a receiver is out of the game.
    pub(super) fn stop_streaming(&mut self, source: &Source, target: LinkKey) {
        let Some(ingress) = self.links.get_mut(source.delivery.key).and_then(|link| link.ingress_mut())
        else {
            return;
        };
        if let Some(Current::Streaming(targets, _)) = &mut ingress.current {
            targets.retain(|(other, _)| *other != target);
            if targets.is_empty() {
                ingress.current = Some(Current::Discarding);
            }
        }
    }
}

fn link_anonymous(core: &Core, key: LinkKey) -> bool {
    core.links.get(key).is_some_and(|link| link.address.is_none())
}

fn load(link: Option<&super::links::RouterLink>) -> Load {
    link.map_or(Load { outstanding: u32::MAX, capacity: 0 }, |link| Load {
        outstanding: link.egress().map_or(u32::MAX, super::queue::Egress::outstanding),
        capacity: link.capacity,
    })
}
