//! A broker with one queue, to whose node the router attaches links. It keeps what it accepted until somebody has accepted
//! it, and loses links, sessions and connections as it is told.

use crate::message::Message;
use crate::seeds::trace;
use ringmain::base::buffer::{BufferPool, Output};
use ringmain::base::id::{Channel, Key};
use ringmain::base::time::Instant;
use ringmain::engine::{
    Attachment, Connection, Disposed, Event, Fault, LinkRef, NewDelivery, Settings, Side,
};
use ringmain::io::sim::SimPeer;
use ringmain_codec::{Attach, Condition, DeliveryState, ReceiverSettleMode, Role, SenderSettleMode};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// What it takes at a time from the router.
const CREDIT: u32 = 20;

pub const CONTAINER: &str = "broker";

pub struct Broker {
    line: Option<Line>,
    /// The messages that it has, by their numbers.
    stored: BTreeMap<u64, Vec<u8>>,
    /// Those that aren't on their way.
    queue: VecDeque<u64>,
    /// Those that are, and on which link.
    under_way: BTreeMap<u64, LinkRef>,
    /// How many links the router has attached so far, refused ones included.
    pub attaches: usize,
    /// One of so many attaches is refused; 0: none.
    pub refuses_one_in: u8,
    random: fastrand::Rng,
}

/// A connection of it.
struct Line {
    peer: SimPeer,
    engine: Connection<u64>,
    out: Output,
    inbox: Vec<u8>,
    /// The links that it receives on, and what has come of a delivery.
    inputs: BTreeMap<LinkRef, Vec<u8>>,
    /// The links that it sends on.
    outputs: Vec<LinkRef>,
}

impl Broker {
    pub fn new(seed: u64) -> Self {
        Self {
            line: None,
            stored: BTreeMap::new(),
            queue: VecDeque::new(),
            under_way: BTreeMap::new(),
            attaches: 0,
            refuses_one_in: 0,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Speaks to the router over this connection from now on.
    pub fn connect(&mut self, peer: SimPeer, now: Instant) {
        let mut out = Output::new(BufferPool::default());
        let settings =
            Settings { container_id: CONTAINER.to_owned(), idle_timeout: None, ..Settings::default() };
        let engine = Connection::new(Rc::new(settings), Side::Initiator, now, &mut out);
        let inbox = Vec::new();
        self.line = Some(Line { peer, engine, out, inbox, inputs: BTreeMap::new(), outputs: Vec::new() });
    }

    pub fn is_connected(&self) -> bool {
        self.line.is_some()
    }

    /// How many messages it has.
    pub fn stored(&self) -> usize {
        self.stored.len()
    }

    /// How many links are attached: to it, and from it.
    pub fn links(&self) -> (usize, usize) {
        self.line.as_ref().map_or((0, 0), |line| (line.inputs.len(), line.outputs.len()))
    }

    /// Reads, sends, writes. Whether anything was read or written.
    pub fn work(&mut self, now: Instant) -> bool {
        let Some(mut line) = self.line.take() else { return false };
        let bytes = line.peer.read_all();
        let mut has_worked = !bytes.is_empty();
        if has_worked {
            line.engine.heard(now);
        }
        assert!(line.peer.ended().is_none(), "the router doesn't leave its broker");
        line.inbox.extend(bytes);
        let inbox = std::mem::take(&mut line.inbox);
        let mut consumed = 0;
        loop {
            let progress = line.engine.recv(&inbox[consumed..], now, &mut line.out);
            consumed += progress.consumed;
            let Some(event) = progress.event else { break };
            self.event(&mut line, event);
        }
        line.inbox = inbox[consumed..].to_vec();
        self.send(&mut line);
        line.engine.flush(&mut line.out);
        let bytes = line.out.take_bytes();
        if !bytes.is_empty() {
            has_worked = true;
            line.engine.spoke(now);
            line.peer.write(&bytes);
        }
        self.line = Some(line);
        has_worked
    }

    /// Lets its own timers run out.
    pub fn expire(&mut self, now: Instant) {
        let Some(line) = &mut self.line else { return };
        while line.engine.poll_timeout().is_some_and(|deadline| deadline <= now) {
            let event = line.engine.handle_timeout(now, &mut line.out);
            assert!(event.is_none(), "the broker hears nothing of the router: {event:?}");
        }
    }

    fn event(&mut self, line: &mut Line, event: Event<'_>) {
        trace!("broker <- {event:?}");
        match event {
            Event::Opened(open) => assert_eq!(open.container_id, "R"),
            Event::Sasl(duty) => panic!("it takes an anonymous peer for another: {duty:?}"),
            Event::Begun(_) | Event::SenderFlow { .. } => {}
            Event::AttachRequested { link, attach } => self.attach(line, link, &attach),
            Event::Attached { .. } => panic!("the broker attaches nothing"),
            Event::Flow { link, .. } => {
                let _ = line.engine.take_window_opened(link.channel);
                line.engine.answer_flow(link, 0, &mut line.out);
            }
            Event::WindowOpened(channel) => {
                let _ = line.engine.take_window_opened(channel);
            }
            Event::Transfer(arrived) => {
                let partial = line.inputs.get_mut(&arrived.link).expect("a link that was taken");
                partial.extend_from_slice(arrived.payload);
                assert!(!arrived.aborted, "nobody gives up a message here");
                if arrived.more {
                    return;
                }
                let message = std::mem::take(partial);
                let number = Message::number_in(&message);
                if self.stored.insert(number, message).is_none() {
                    self.queue.push_back(number);
                }
                if !arrived.settled {
                    let accepted = Some(&DeliveryState::Accepted);
                    let id = arrived.delivery_id;
                    line.engine.dispose_incoming(arrived.link, id, true, accepted, &mut line.out);
                }
                let credit = line.engine.link(arrived.link).map_or(0, |link| link.credit);
                if credit <= CREDIT / 2 {
                    line.engine.send_credit(arrived.link, CREDIT, false, &mut line.out);
                }
            }
            Event::Disposition(disposed) => self.outcome(line, disposed),
            Event::Detached { link, .. } => {
                self.lose(line, |other| other == link);
                let _ = line.engine.take_unsettled_of(link);
                line.engine.clear_link(link);
            }
            Event::Ended { channel, .. } => {
                self.lose(line, |other| other.channel == channel);
                line.engine.clear_session(channel);
            }
            Event::Closed(cause) => panic!("the router leaves its broker: {:?}", cause.describe()),
        }
    }

    fn attach(&mut self, line: &mut Line, link: LinkRef, attach: &Attach<'_>) {
        self.attaches += 1;
        if self.refuses_one_in > 0 && self.random.u8(0..self.refuses_one_in) == 0 {
            let fault = Fault::new(Condition::NOT_FOUND, "no such queue");
            line.engine.refuse_link(link, attach, &fault, &mut line.out).expect("it fits");
            line.engine.clear_link(link);
            return;
        }
        let attachment = Attachment {
            source: attach.source,
            target: attach.target,
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            max_message_size: 0,
        };
        line.engine.accept_link(link, &attachment, &mut line.out).expect("it fits");
        line.engine.set_user(link, Some(Key { index: 0, generation: 0 }));
        match attach.role {
            Role::Sender => {
                line.inputs.insert(link, Vec::new());
                line.engine.send_credit(link, CREDIT, false, &mut line.out);
            }
            Role::Receiver => line.outputs.push(link),
        }
    }

    /// Sends what is in the queue, as far as there is credit.
    fn send(&mut self, line: &mut Line) {
        for &link in &line.outputs {
            while let Some(number) = self.queue.front().copied() {
                let Some(credit) = line.engine.take_credit(link) else { break };
                let new = NewDelivery {
                    message_format: 0,
                    settled: false,
                    tag: number.to_be_bytes(),
                    data: number + 1,
                    stamp: 0,
                };
                let _ = line.engine.begin_delivery(link, credit, new).expect("the link is there");
                let sent = line.engine.send_payload(link, &self.stored[&number], false, &mut line.out);
                assert!(sent.complete, "the messages fit one frame");
                self.queue.pop_front();
                self.under_way.insert(number, link);
            }
        }
    }

    fn outcome(&mut self, line: &mut Line, mut disposed: Disposed<'_>) {
        let is_accepted = matches!(disposed.state, Some(DeliveryState::Accepted));
        while let Some(found) = line.engine.next_disposed(&mut disposed) {
            if disposed.role == Role::Sender || !disposed.settled {
                continue;
            }
            let number = found.data - 1;
            let link = self.under_way.remove(&number);
            assert_eq!(link, Some(found.link), "an outcome of {number}, which isn't under way there");
            if is_accepted {
                self.stored.remove(&number);
            } else {
                self.queue.push_front(number);
            }
        }
    }

    /// Forgets links. What was under way on them goes back into the queue.
    fn lose(&mut self, line: &mut Line, is_it: impl Fn(LinkRef) -> bool) {
        line.inputs.retain(|link, _| !is_it(*link));
        line.outputs.retain(|link| !is_it(*link));
        let back: Vec<u64> =
            self.under_way.iter().filter(|(_, link)| is_it(**link)).map(|(number, _)| *number).collect();
        for number in back.into_iter().rev() {
            self.under_way.remove(&number);
            self.queue.push_front(number);
        }
    }

    /// Detaches one of its links, with an error.
    pub fn detach_one(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        let all: Vec<LinkRef> = line.inputs.keys().chain(&line.outputs).copied().collect();
        if let Some(&link) = self.random.choice(&all) {
            trace!("broker detaches {link:?}");
            let fault = Fault::new(Condition("amqp:resource-deleted"), "the queue was deleted");
            line.engine.send_detach(link, true, Some(&fault), &mut line.out);
            self.lose(&mut line, |other| other == link);
            let _ = line.engine.take_unsettled_of(link);
            line.engine.clear_link(link);
        }
        self.line = Some(line);
    }

    /// Ends the session of one of its links, with an error.
    pub fn end_one(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        let all: Vec<Channel> = line.inputs.keys().chain(&line.outputs).map(|link| link.channel).collect();
        if let Some(&channel) = self.random.choice(&all) {
            trace!("broker ends {channel:?}");
            let fault = Fault::new(Condition("amqp:internal-error"), "crashed");
            line.engine.send_end(channel, Some(&fault), &mut line.out);
            self.lose(&mut line, |other| other.channel == channel);
            line.engine.clear_session(channel);
        }
        self.line = Some(line);
    }

    /// Goes without a word.
    pub fn reset(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        trace!("broker is reset");
        self.lose(&mut line, |_| true);
        line.peer.reset();
    }
}
