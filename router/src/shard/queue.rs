//! The queue of an outgoing link: what waits there, and what is on its way.

use super::delay::{Second, Told};
use super::forward::Outgoing;
use super::payload::{Charge, Payload, Piece};
use super::{Peer, Source};
use crate::base::id::Serial;
use crate::base::time::Instant;
use crate::engine::NewDelivery;
use ringmain_codec::SenderSettleMode;
use std::collections::VecDeque;
use std::rc::Rc;

/// A delivery that waits, or of which not all has gone.
pub(super) struct Item {
    pub(super) sequence: u64,
    /// When it came here.
    pub(super) since: Instant,
    pub(super) outgoing: Outgoing,
    pub(super) pieces: VecDeque<Piece>,
    /// All of it that has come so far, gone or not.
    pub(super) bytes: u64,
    /// Whether all of it has come.
    pub(super) complete: bool,
    /// Whether its sender gave it up, or its receiver won't have it.
    pub(super) aborted: bool,
    /// What it costs its sender's credit, though it is settled.
    pub(super) charge: Option<Charge>,
}

/// A delivery of which some has gone.
pub(super) struct Active {
    pub(super) item: Item,
    pub(super) delivery_id: Serial,
    /// Whether it went settled.
    pub(super) settled: bool,
    /// Whether it is among the deliveries that the receiver hasn't settled.
    pub(super) unsettled: bool,
}

/// What an outgoing link has.
#[derive(Default)]
pub struct Egress {
    /// Whether the receiver counts as a destination of its address.
    pub destination: bool,
    /// Whether it leads to another shard that has no receiver any more: it ends when nothing is open.
    pub retiring: bool,
    /// Whether the link waits in its connection's list for output to drain or a window to open.
    pub blocked: bool,
    pub(super) settle: Settle,
    pub(super) active: Option<Active>,
    /// What waits, by descending priority.
    pub(super) lanes: Vec<(u8, VecDeque<Item>)>,
    pub(super) waiting: u32,
    /// The most that waited since last nothing did.
    peak: u32,
    /// How many of those that wait are settled, and their bytes.
    pub(super) waiting_settled: u32,
    pub(super) waiting_settled_bytes: usize,
    /// Deliveries that the receiver hasn't settled.
    pub(super) unsettled: u32,
    /// When the receiver last took something.
    pub(super) progress: Instant,
    /// Whether a stall is being watched for.
    pub(super) watched: bool,
    /// What was last said of deliveries that are stuck here, and of credit that doesn't come.
    pub(super) told: Told,
    pub(super) congested: bool,
    /// Whether its messages are logged.
    pub(super) is_logged: bool,
}

/// How deliveries go, by the settle mode of the link's sender (AMQP 1.0 §2.8.2), which is us.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Settle {
    /// All settled.
    Always,
    /// None settled.
    Never,
    /// As they came.
    #[default]
    AsSent,
}

impl Egress {
    /// An outgoing link of which nothing has gone.
    pub(super) fn new(mode: SenderSettleMode) -> Self {
        let settle = match mode {
            SenderSettleMode::Settled => Settle::Always,
            SenderSettleMode::Unsettled => Settle::Never,
            SenderSettleMode::Mixed => Settle::AsSent,
        };
        Self { settle, ..Self::default() }
    }

    /// What the engine is told of a delivery that is to be sent now, under this tag, and that came in this second.
    #[inline]
    pub(super) fn new_delivery(&self, outgoing: &Outgoing, tag: u64, came: Second) -> NewDelivery<Peer> {
        let Source { delivery, party: _, settled: came_settled, message_format, is_governed: _ } =
            outgoing.source;
        let settled = match self.settle {
            Settle::Always => true,
            Settle::Never => false,
            Settle::AsSent => came_settled,
        };
        let data = match outgoing.fan_out {
            _ if came_settled || settled => Peer::None,
            Some((fan_out, copy)) => Peer::FanOut(fan_out, copy),
            None => Peer::Delivery(delivery),
        };
        NewDelivery { message_format, settled, tag: tag.to_be_bytes(), data, stamp: came.0 }
    }

    /// Counts a delivery that has been begun.
    #[inline]
    pub(super) fn begin(&mut self, settled: bool, now: Instant) {
        self.progress = now;
        self.congested = false;
        self.unsettled += u32::from(!settled);
    }

    /// What waits or isn't settled.
    pub fn outstanding(&self) -> u32 {
        let settled_under_way = self.active.as_ref().is_some_and(|active| !active.unsettled);
        self.waiting + self.unsettled + u32::from(settled_under_way)
    }

    /// Deliveries that wait for the receiver, as a flow tells them.
    pub fn available(&self) -> u32 {
        self.waiting + u32::from(self.active.is_some())
    }

    /// Deliveries that came before `limit` and still wait.
    pub(super) fn waiting_since(&self, limit: Instant) -> usize {
        // Each lane is in the order in which its deliveries came.
        self.lanes.iter().map(|(_, lane)| lane.partition_point(|item| item.since < limit)).sum()
    }

    /// The payload of all that waits or is half sent.
    pub(super) fn payloads(&self) -> impl Iterator<Item = &Rc<Payload>> {
        let active = self.active.iter().map(|active| &active.item);
        let waiting = self.lanes.iter().flat_map(|(_, lane)| lane);
        active.chain(waiting).flat_map(|item| &item.pieces).map(|piece| &piece.payload)
    }

    pub(super) fn push(&mut self, item: Item) {
        let priority = item.outgoing.priority;
        let place = self.lanes.iter().position(|(lane, _)| *lane <= priority).unwrap_or(self.lanes.len());
        if self.lanes.get(place).is_none_or(|(lane, _)| *lane != priority) {
            self.lanes.insert(place, (priority, VecDeque::new()));
        }
        self.count_in(&item);
        self.lanes[place].1.push_back(item);
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        let item = self.lanes.iter_mut().find_map(|(_, lane)| lane.pop_front())?;
        self.count_out(&item);
        Some(item)
    }

    /// Gives back the memory of a burst that is over, when a later one took much less.
    pub(super) fn shrink(&mut self) {
        if self.waiting > 0 {
            return;
        }
        let enough = (self.peak as usize * 4).max(LANE_KEPT_MAX);
        if self.lanes.iter().any(|(_, lane)| lane.capacity() > enough) {
            self.lanes = Vec::new();
        }
        self.peak = 0;
    }

    pub(super) fn take(&mut self, sequence: u64) -> Option<Item> {
        let item = self.lanes.iter_mut().find_map(|(_, lane)| {
            let place = lane.binary_search_by_key(&sequence, |item| item.sequence).ok()?;
            lane.remove(place)
        })?;
        self.count_out(&item);
        Some(item)
    }

    pub(super) fn find(&mut self, sequence: u64) -> Option<&mut Item> {
        self.lanes.iter_mut().find_map(|(_, lane)| {
            let place = lane.binary_search_by_key(&sequence, |item| item.sequence).ok()?;
            lane.get_mut(place)
        })
    }

    /// The delivery under way, if it is the one with that number.
    pub(super) fn active_mut(&mut self, sequence: u64) -> Option<&mut Active> {
        self.active.as_mut().filter(|active| active.item.sequence == sequence)
    }

    /// A delivery that waits or is under way.
    pub(super) fn item_mut(&mut self, sequence: u64) -> Option<&mut Item> {
        if self.active_mut(sequence).is_some() {
            return self.active_mut(sequence).map(|active| &mut active.item);
        }
        self.find(sequence)
    }

    /// Takes the oldest settled delivery of the lowest priority that waits.
    pub(super) fn take_oldest_settled(&mut self) -> Option<Item> {
        let item = self.lanes.iter_mut().rev().find_map(|(_, lane)| {
            let place = lane.iter().position(|item| item.outgoing.source.settled)?;
            lane.remove(place)
        })?;
        self.count_out(&item);
        Some(item)
    }

    fn count_in(&mut self, item: &Item) {
        self.waiting += 1;
        self.peak = self.peak.max(self.waiting);
        if item.outgoing.source.settled {
            self.waiting_settled += 1;
            self.waiting_settled_bytes += item.held();
        }
    }

    fn count_out(&mut self, item: &Item) {
        self.waiting -= 1;
        if item.outgoing.source.settled {
            self.waiting_settled -= 1;
            self.waiting_settled_bytes -= item.held();
        }
    }
}

/// Places of an empty lane that are kept for the next deliveries.
const LANE_KEPT_MAX: usize = 32;

impl Item {
    /// How much of the router's memory it takes.
    pub(super) fn held(&self) -> usize {
        self.pieces.iter().map(|piece| piece.payload.charge()).sum()
    }
}
