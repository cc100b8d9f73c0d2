//! Two connections of the router in memory: a sender's and a receiver's, and what the shard does between them.
//!
//! The peers are frames written beforehand. Left out are the shard's queues, its choice of a receiver, and all
//! input and output: what is measured here is the engine's part of a delivery, without the rest of a turn.

use crate::frames;
use ringmain::base::buffer::{BufferPool, Output};
use ringmain::base::id::Serial;
use ringmain::base::time::Instant;
use ringmain::engine::{Attachment, Connection, Event, LinkRef, NewDelivery, OfDelivery, Settings, Side};
use ringmain_codec::{ProtocolHeader, Role};
use std::rc::Rc;

/// Where a delivery came from: kept with the copy that went out.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    delivery_id: Serial,
}

struct End {
    connection: Connection<Origin>,
    out: Output,
    link: LinkRef,
}

impl End {
    /// A connection on which the peer has attached a link of the given role.
    fn new(peer_role: Role, pool: &BufferPool) -> Self {
        let settings = Settings { container_id: "R".to_owned(), ..Settings::default() };
        let mut out = Output::new(pool.clone());
        let mut connection = Connection::new(Rc::new(settings), Side::Acceptor, Instant(0), &mut out);
        let input = [
            ProtocolHeader::AMQP.to_bytes().to_vec(),
            frames::frame(&frames::open(), &[]),
            frames::frame(&frames::begin(), &[]),
            frames::frame(&frames::attach("link", peer_role), &[]),
        ]
        .concat();
        let mut link = None;
        let mut rest = input.as_slice();
        while !rest.is_empty() {
            let progress = connection.recv(rest, Instant(0), &mut out);
            rest = &rest[progress.consumed..];
            match progress.event {
                Some(Event::Opened(_)) => connection.send_open(&mut out),
                Some(Event::AttachRequested { link: requested, attach }) => {
                    let attachment = Attachment {
                        source: attach.source,
                        target: attach.target,
                        snd_settle_mode: attach.snd_settle_mode,
                        rcv_settle_mode: attach.rcv_settle_mode,
                        max_message_size: 0,
                    };
                    connection.accept_link(requested, &attachment, &mut out).expect("the answer fits");
                    link = Some(requested);
                }
                Some(Event::Begun(_)) | None => {}
                Some(other) => panic!("the examples are in order, but: {other:?}"),
            }
        }
        out.clear();
        Self { connection, out, link: link.expect("the peer has attached") }
    }
}

/// The router's end of a sender's connection and of a receiver's.
pub struct Pair {
    from: End,
    to: End,
    message: Vec<u8>,
    /// The sender's next delivery.
    next_sent: u32,
    /// The delivery of ours that the receiver settles next.
    next_settled: u32,
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}

impl Pair {
    /// Attached links with credit for 2^31 deliveries.
    ///
    /// # Panics
    /// If the engine doesn't take the examples: then it is broken, or they are.
    #[must_use]
    pub fn new() -> Self {
        let pool = BufferPool::default();
        let mut from = End::new(Role::Sender, &pool);
        let mut to = End::new(Role::Receiver, &pool);
        from.connection.send_credit(from.link, i32::MAX as u32, false, &mut from.out);
        from.out.clear();
        let flow = frames::frame(&frames::flow(i32::MAX as u32), &[]);
        to.connection.recv(&flow, Instant(0), &mut to.out);
        assert!(to.connection.has_credit(to.link), "the receiver has granted credit");
        // Numbers from 256 on are of one length on the wire.
        Self { from, to, message: frames::message(), next_sent: 1000, next_settled: 0 }
    }

    /// The sender's next `count` deliveries: unsettled, one frame each, [`frames::BODY_BYTES`] of data.
    pub fn transfers(&mut self, count: u32) -> Vec<u8> {
        let ids = self.next_sent..self.next_sent + count;
        self.next_sent += count;
        ids.flat_map(|id| frames::frame(&frames::transfer(id, &id.to_be_bytes()), &self.message)).collect()
    }

    /// The receiver accepts the next `count` deliveries, all by one frame or each by its own.
    pub fn dispositions(&mut self, count: u32, ranged: bool) -> Vec<u8> {
        let first = self.next_settled;
        self.next_settled += count;
        if ranged {
            return frames::frame(&frames::accepted(first, Some(first + count - 1)), &[]);
        }
        (first..first + count).flat_map(|id| frames::frame(&frames::accepted(id, None), &[])).collect()
    }

    /// Takes what the sender sent, and sends each delivery on to the receiver.
    ///
    /// # Panics
    /// If the engine refuses any of it.
    #[inline(never)]
    pub fn forward(&mut self, mut input: &[u8]) {
        while !input.is_empty() {
            let found = self.from.connection.recv_delivery(input, Instant(0), &mut self.from.out);
            let OfDelivery::Transfer(arrived, consumed) = found else { panic!("no transfer, but {found:?}") };
            input = &input[consumed..];
            let to = &mut self.to;
            let delivery = NewDelivery {
                message_format: arrived.message_format,
                settled: arrived.settled,
                tag: u64::from(arrived.delivery_id.0).to_be_bytes(),
                data: Origin { delivery_id: arrived.delivery_id },
                stamp: 0,
            };
            let payload = arrived.payload;
            let (_, sent) = to
                .connection
                .send_delivery(to.link, delivery, payload, arrived.more, &mut to.out)
                .expect("credit doesn't run out, and the link is attached");
            assert!(sent.complete, "the window doesn't close");
        }
    }

    /// Takes the receiver's dispositions, settles the deliveries towards the sender, and writes what that makes.
    ///
    /// # Panics
    /// If the engine refuses any of it.
    #[inline(never)]
    pub fn settle(&mut self, mut input: &[u8]) {
        let (from, to) = (&mut self.from, &mut self.to);
        while !input.is_empty() {
            let found = to.connection.recv_delivery(input, Instant(0), &mut to.out);
            let OfDelivery::Disposition(mut disposed, consumed) = found else {
                panic!("no disposition, but {found:?}")
            };
            input = &input[consumed..];
            let state = disposed.state;
            while let Some(delivery) = to.connection.next_disposed(&mut disposed) {
                let id = delivery.data.delivery_id;
                from.connection.dispose_incoming(from.link, id, true, state.as_ref(), &mut from.out);
            }
        }
        from.connection.flush(&mut from.out);
    }

    /// Throws away what would be sent: how many bytes to the sender, and to the receiver.
    pub fn discard_output(&mut self) -> (usize, usize) {
        let pending = (self.from.out.pending(), self.to.out.pending());
        self.from.out.clear();
        self.to.out.clear();
        pending
    }

    /// Deliveries that nobody has settled, at the sender's connection and at the receiver's.
    #[must_use]
    pub fn unsettled(&self) -> (usize, usize) {
        (self.from.connection.holdings().unsettled, self.to.connection.holdings().unsettled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringmain_codec::{DeliveryState, Performative, split_frame};

    /// What comes out is what the benchmarks claim to measure.
    #[test]
    fn deliveries_go_on_and_their_outcomes_come_back() {
        for ranged in [false, true] {
            let mut pair = Pair::new();
            let transfers = pair.transfers(3);
            pair.forward(&transfers);
            assert_eq!(pair.unsettled(), (3, 3));
            let sent = pair.to.out.take_bytes();
            let mut rest = sent.as_slice();
            for id in 0..3 {
                let (frame, after) = split_frame(rest, frames::FRAME_MAX).unwrap().unwrap();
                let (performative, payload) = Performative::decode(frame.body).unwrap();
                let Performative::Transfer(transfer) = performative else { panic!("{performative:?}") };
                assert_eq!((transfer.delivery_id, payload), (Some(id), frames::message().as_slice()));
                rest = after;
            }
            assert!(rest.is_empty());

            let dispositions = pair.dispositions(3, ranged);
            pair.settle(&dispositions);
            assert_eq!(pair.unsettled(), (0, 0));
            let told = pair.from.out.take_bytes();
            let (frame, rest) = split_frame(&told, frames::FRAME_MAX).unwrap().unwrap();
            let (performative, _) = Performative::decode(frame.body).unwrap();
            let Performative::Disposition(disposition) = performative else { panic!("{performative:?}") };
            assert_eq!((disposition.first, disposition.last), (1000, Some(1002)));
            assert_eq!(disposition.state, Some(DeliveryState::Accepted));
            assert!(rest.is_empty());
        }
    }
}
