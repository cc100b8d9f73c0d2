//! A client: a connection to the shard, with senders and receivers that do what they are told and keep
//! account of it. It is strict: what the router does against the rules is a panic.

use crate::message::Message;
use crate::seeds::trace;
use crate::state::State;
use crate::wire::Watch;
use ringmain::base::buffer::{BufferPool, Output};
use ringmain::base::id::{Channel, Key, Serial};
use ringmain::base::time::Instant;
use ringmain::engine::{
    Arrived, Attachment, Cause, Connection, Disposed, Event, LinkRef, NewDelivery, Settings, Side,
};
use ringmain::io::sim::SimPeer;
use ringmain_codec::{ReceiverSettleMode, Role, SenderSettleMode, Source, Target, TargetNode};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// How a sender's delivery ended, as the sender knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Sent and forgotten.
    Presettled,
    /// The router told this.
    Told(Option<State>),
    /// The sender gave it up halfway.
    Aborted,
    /// The sender's link or connection went first.
    Lost,
}

pub struct Sender {
    /// `None`: each message says where it goes.
    pub address: Option<String>,
    /// Which of the client's sessions it is in.
    pub session: usize,
    pub link: Option<LinkRef>,
    pub is_attached: bool,
    pub plan: VecDeque<Message>,
    /// The message under way, its bytes, how many have gone, and what is offered.
    active: Option<Active>,
    /// Bytes that it sends at a time.
    pub piece: usize,
    pub settle: ReceiverSettleMode,
    /// All that was begun.
    pub sent: BTreeMap<u64, Message>,
    pub fates: BTreeMap<u64, Fate>,
    pub is_detached: bool,
    /// Whether it sends nothing for now.
    pub is_held: bool,
}

struct Active {
    number: u64,
    bytes: Vec<u8>,
    gone: usize,
}

/// What a receiver does with what it gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    Accept,
    /// An outcome by the message's number.
    Mixed,
    /// Nothing, for now.
    Keep,
}

pub struct Receiver {
    pub address: String,
    /// Which of the client's sessions it is in.
    pub session: usize,
    /// Whether it keeps its session's window to itself: bytes that it holds.
    pub keeps_window: bool,
    kept: usize,
    pub link: Option<LinkRef>,
    pub is_attached: bool,
    /// The credit that it keeps up; none: it grants nothing.
    pub credit: u32,
    pub policy: Policy,
    pub settle: (SenderSettleMode, ReceiverSettleMode),
    partial: Vec<u8>,
    current: Option<(Serial, bool)>,
    /// All that came whole, in order.
    pub got: Vec<u64>,
    pub messages: BTreeMap<u64, Vec<u8>>,
    /// What it told of each.
    pub told: BTreeMap<u64, State>,
    /// What it hasn't settled.
    pub unsettled: BTreeMap<u32, u64>,
    pub aborted: usize,
    /// Messages of which the router said that they are settled, before this end did.
    pub settled_by_router: BTreeSet<u64>,
    pub is_detached: bool,
    /// Whether what is sent may come more than once: something between sender and receiver sends it again.
    pub may_repeat: bool,
    /// The dynamic address that the router made up.
    pub given_address: Option<String>,
}

pub struct Client {
    pub name: String,
    pub peer: SimPeer,
    pub engine: Connection<u64>,
    out: Output,
    inbox: Vec<u8>,
    watch: Watch,
    /// Its sessions, in the order in which its links name them.
    sessions: Vec<Channel>,
    is_begun: bool,
    pub senders: Vec<Sender>,
    pub receivers: Vec<Receiver>,
    /// Why the connection is over.
    pub closed: Option<String>,
    /// Whether the client is gone without a word.
    pub is_dead: bool,
    /// Whether it reads nothing for now. Its timers go on.
    pub is_stalled: bool,
    /// Whether it writes one byte at a time.
    pub is_trickling: bool,
    /// What it hasn't written yet, because it trickles.
    unwritten: VecDeque<u8>,
    random: fastrand::Rng,
}

impl Client {
    pub fn new(name: &str, peer: SimPeer, settings: Settings, seed: u64, now: Instant) -> Self {
        let mut out = Output::new(BufferPool::default());
        let mut watch = Watch::new();
        watch.frame_max = settings.max_frame_size;
        let settings = Settings { container_id: name.to_owned(), ..settings };
        let engine = Connection::new(Rc::new(settings), Side::Initiator, now, &mut out);
        Self {
            name: name.to_owned(),
            peer,
            engine,
            out,
            inbox: Vec::new(),
            watch,
            sessions: Vec::new(),
            is_begun: false,
            senders: Vec::new(),
            receivers: Vec::new(),
            closed: None,
            is_dead: false,
            is_stalled: false,
            is_trickling: false,
            unwritten: VecDeque::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Adds a sender, which attaches as soon as it can.
    pub fn send_to(&mut self, address: Option<&str>, plan: Vec<Message>) -> usize {
        self.senders.push(Sender {
            address: address.map(str::to_owned),
            session: 0,
            link: None,
            is_attached: false,
            plan: plan.into(),
            active: None,
            piece: usize::MAX,
            settle: ReceiverSettleMode::First,
            sent: BTreeMap::new(),
            fates: BTreeMap::new(),
            is_detached: false,
            is_held: false,
        });
        self.senders.len() - 1
    }

    /// Adds a receiver, which attaches as soon as it can.
    pub fn receive_from(&mut self, address: &str, credit: u32, policy: Policy) -> usize {
        self.receivers.push(Receiver {
            address: address.to_owned(),
            session: 0,
            keeps_window: false,
            kept: 0,
            link: None,
            is_attached: false,
            credit,
            policy,
            settle: (SenderSettleMode::Mixed, ReceiverSettleMode::First),
            partial: Vec::new(),
            current: None,
            got: Vec::new(),
            messages: BTreeMap::new(),
            told: BTreeMap::new(),
            unsettled: BTreeMap::new(),
            aborted: 0,
            settled_by_router: BTreeSet::new(),
            is_detached: false,
            may_repeat: false,
            given_address: None,
        });
        self.receivers.len() - 1
    }

    pub fn is_over(&self) -> bool {
        self.is_dead || self.closed.is_some()
    }

    /// Reads what came, does what is to do, and writes. Whether anything was read or written.
    pub fn work(&mut self, now: Instant) -> bool {
        if self.is_dead {
            return false;
        }
        let bytes = if self.is_stalled { Vec::new() } else { self.peer.read_all() };
        self.watch.take(&bytes, |channel, performative, payload| {
            trace!("  -> {} {channel} {performative:?} +{}", "client", payload.len());
        });
        let mut has_worked = !bytes.is_empty();
        if has_worked {
            self.engine.heard(now);
        }
        self.inbox.extend(bytes);
        let inbox = std::mem::take(&mut self.inbox);
        let mut consumed = 0;
        loop {
            let progress = self.engine.recv(&inbox[consumed..], now, &mut self.out);
            consumed += progress.consumed;
            let Some(event) = progress.event else { break };
            self.event(event);
        }
        self.inbox = inbox[consumed..].to_vec();
        if self.peer.ended().is_some() && self.closed.is_none() {
            self.lose("the socket is closed");
        }
        if self.closed.is_none() {
            self.act();
            self.engine.flush(&mut self.out);
        }
        let bytes = self.out.take_bytes();
        if !bytes.is_empty() {
            has_worked = true;
            self.engine.spoke(now);
            self.unwritten.extend(bytes);
        }
        if !self.is_trickling {
            self.write(usize::MAX);
        }
        has_worked
    }

    fn write(&mut self, most: usize) {
        let count = self.unwritten.len().min(most);
        if count > 0 {
            let bytes: Vec<u8> = self.unwritten.drain(..count).collect();
            self.peer.write(&bytes);
        }
    }

    /// Lets the client's own timers run out.
    pub fn expire(&mut self, now: Instant) {
        if self.is_over() {
            return;
        }
        if self.is_trickling {
            self.write(1);
        }
        if self.is_stalled {
            // It would hear the router if it read.
            self.engine.heard(now);
        }
        while self.engine.poll_timeout().is_some_and(|deadline| deadline <= now) {
            let event = self.engine.handle_timeout(now, &mut self.out);
            assert!(event.is_none(), "{} hears nothing of the router: {event:?}", self.name);
        }
    }

    fn event(&mut self, event: Event<'_>) {
        trace!("{} <- {event:?}", self.name);
        match event {
            Event::Opened(open) => assert_eq!(open.container_id, "R"),
            Event::Sasl(duty) => panic!("it takes an anonymous peer for another: {duty:?}"),
            Event::Begun(_) => self.is_begun = true,
            Event::AttachRequested { .. } => panic!("the router attaches nothing of its own"),
            Event::Attached { link, attach } => match attach.role.opposite() {
                Role::Sender => self.sender_at(link).is_attached = true,
                Role::Receiver => {
                    let address = attach.source.and_then(|source| source.address).map(str::to_owned);
                    let receiver = self.receiver_at(link);
                    receiver.is_attached = true;
                    receiver.given_address = address;
                    self.grant(link);
                }
            },
            Event::Flow { link, .. } => {
                let _ = self.engine.take_window_opened(link.channel);
                self.answer(link);
            }
            Event::SenderFlow { link, .. } => {
                let _ = self.engine.take_window_opened(link.channel);
            }
            Event::WindowOpened(channel) => {
                let _ = self.engine.take_window_opened(channel);
            }
            Event::Transfer(arrived) => self.transfer(&arrived),
            Event::Disposition(disposed) => self.disposition(disposed),
            Event::Detached { link, cause, .. } => {
                let Cause::Peer(_) = &cause else { panic!("{}: {:?}", self.name, cause.describe()) };
                self.lose_link(link);
                self.engine.clear_link(link);
            }
            Event::Ended { cause, .. } => panic!("{}: the session ended: {:?}", self.name, cause.describe()),
            Event::Closed(cause) => match &cause {
                Cause::Peer(_) => {
                    let why = cause.describe().unwrap_or_else(|| "closed".to_owned());
                    self.lose(&why);
                }
                Cause::Ours(fault) => panic!("{}: the router is at fault: {fault}", self.name),
            },
        }
    }

    fn sender_at(&mut self, link: LinkRef) -> &mut Sender {
        self.senders.iter_mut().find(|sender| sender.link == Some(link)).expect("a sender of that link")
    }

    fn receiver_at(&mut self, link: LinkRef) -> &mut Receiver {
        self.receivers
            .iter_mut()
            .find(|receiver| receiver.link == Some(link))
            .expect("a receiver of that link")
    }

    /// The connection is over.
    fn lose(&mut self, why: &str) {
        trace!("{} is over: {why}", self.name);
        self.closed = Some(why.to_owned());
        let links: Vec<LinkRef> = self.links().collect();
        links.into_iter().for_each(|link| self.lose_link(link));
    }

    fn links(&self) -> impl Iterator<Item = LinkRef> + '_ {
        let senders =
            self.senders.iter().filter(|sender| !sender.is_detached).filter_map(|sender| sender.link);
        let receivers = self
            .receivers
            .iter()
            .filter(|receiver| !receiver.is_detached)
            .filter_map(|receiver| receiver.link);
        senders.chain(receivers)
    }

    fn lose_link(&mut self, link: LinkRef) {
        for sender in
            self.senders.iter_mut().filter(|sender| sender.link == Some(link) && !sender.is_detached)
        {
            sender.is_detached = true;
            sender.is_attached = false;
            sender.link = None;
            sender.active = None;
            for number in sender.sent.keys() {
                sender.fates.entry(*number).or_insert(Fate::Lost);
            }
        }
        for receiver in
            self.receivers.iter_mut().filter(|receiver| receiver.link == Some(link) && !receiver.is_detached)
        {
            receiver.is_detached = true;
            receiver.is_attached = false;
            receiver.link = None;
            receiver.partial.clear();
            receiver.current = None;
        }
        let _ = self.engine.take_unsettled_of(link);
    }

    /// Begins, attaches, sends: whatever is due and possible.
    fn act(&mut self) {
        if !self.engine.is_open() {
            return;
        }
        let senders = self.senders.iter().map(|sender| sender.session);
        let last = senders.chain(self.receivers.iter().map(|receiver| receiver.session)).max().unwrap_or(0);
        while self.sessions.len() <= last {
            let channel = self.engine.send_begin(&mut self.out).expect("few sessions");
            self.sessions.push(channel);
        }
        self.attach();
        for index in 0..self.senders.len() {
            self.send(index);
        }
        let links: Vec<LinkRef> = self
            .receivers
            .iter()
            .filter(|receiver| receiver.is_attached)
            .filter_map(|receiver| receiver.link)
            .collect();
        for link in links {
            self.grant(link);
        }
    }

    fn attach(&mut self) {
        for index in 0..self.senders.len() {
            let sender = &self.senders[index];
            if sender.link.is_some() || sender.is_detached {
                continue;
            }
            let node = TargetNode { address: sender.address.as_deref(), ..TargetNode::default() };
            let attachment = Attachment {
                source: Some(Source::default()),
                target: Some(Target::Node(node)),
                snd_settle_mode: SenderSettleMode::Mixed,
                rcv_settle_mode: sender.settle,
                max_message_size: 0,
            };
            let channel = self.sessions[sender.session];
            let name = format!("s{index}");
            let link = self.engine.send_attach(channel, &name, Role::Sender, &attachment, &mut self.out);
            self.senders[index].link = link;
            self.mark(link, index);
        }
        for index in 0..self.receivers.len() {
            let receiver = &self.receivers[index];
            if receiver.link.is_some() || receiver.is_detached {
                continue;
            }
            let dynamic = receiver.address.is_empty();
            let address = (!dynamic).then_some(receiver.address.as_str());
            let attachment = Attachment {
                source: Some(Source { address, dynamic, ..Source::default() }),
                target: Some(Target::Node(TargetNode::default())),
                snd_settle_mode: receiver.settle.0,
                rcv_settle_mode: receiver.settle.1,
                max_message_size: 0,
            };
            let channel = self.sessions[receiver.session];
            let name = format!("r{index}");
            let link = self.engine.send_attach(channel, &name, Role::Receiver, &attachment, &mut self.out);
            self.receivers[index].link = link;
            self.mark(link, index);
        }
    }

    fn mark(&mut self, link: Option<LinkRef>, index: usize) {
        if let Some(link) = link {
            let index = u32::try_from(index).expect("few links");
            self.engine.set_user(link, Some(Key { index, generation: 0 }));
        }
    }

    /// Keeps a receiver's credit up.
    fn grant(&mut self, link: LinkRef) {
        let target = self.receiver_at(link).credit;
        let Some(state) = self.engine.link(link) else { return };
        if target > 0 && state.credit <= target / 2 {
            self.engine.send_credit(link, target, false, &mut self.out);
        }
    }

    fn answer(&mut self, link: LinkRef) {
        let sender = self.sender_at(link);
        // What is held back isn't available.
        let waiting = if sender.is_held { 0 } else { sender.plan.len() };
        let waiting = waiting + usize::from(sender.active.is_some());
        let available = u32::try_from(waiting).expect("few messages");
        self.engine.answer_flow(link, available, &mut self.out);
    }

    fn send(&mut self, index: usize) {
        loop {
            let sender = &mut self.senders[index];
            let Some(link) = sender.link.filter(|_| sender.is_attached && !sender.is_held) else { return };
            if sender.active.is_none() {
                if sender.plan.is_empty() {
                    return;
                }
                let Some(credit) = self.engine.take_credit(link) else { return };
                let Some(message) = sender.plan.pop_front() else { return };
                trace!("{} sends {message:?}", self.name);
                let new = NewDelivery {
                    message_format: 0,
                    settled: message.presettled,
                    tag: message.number.to_be_bytes(),
                    data: message.number + 1,
                    stamp: 0,
                };
                let _ = self.engine.begin_delivery(link, credit, new).expect("the link is there");
                sender.active = Some(Active { number: message.number, bytes: message.encode(), gone: 0 });
                sender.sent.insert(message.number, message);
            }
            let Some(active) = &mut sender.active else { return };
            let to = active.bytes.len().min(active.gone.saturating_add(sender.piece));
            let more = to < active.bytes.len();
            let sent = self.engine.send_payload(link, &active.bytes[active.gone..to], more, &mut self.out);
            active.gone += sent.consumed;
            if !sent.complete {
                return;
            }
            if more {
                if sender.piece < usize::MAX && self.random.bool() {
                    // The rest comes another time.
                    return;
                }
                continue;
            }
            let number = active.number;
            sender.active = None;
            if sender.sent[&number].presettled {
                sender.fates.insert(number, Fate::Presettled);
            }
            self.answer(link);
        }
    }

    /// Gives up what a sender has half sent.
    pub fn abort(&mut self, index: usize) {
        let sender = &mut self.senders[index];
        let (Some(link), Some(active)) = (sender.link, &sender.active) else { return };
        let number = active.number;
        if self.engine.abort_delivery(link, &mut self.out) {
            trace!("{} aborts {number}", self.name);
            sender.active = None;
            sender.fates.entry(number).or_insert(Fate::Aborted);
        }
    }

    pub fn is_sending(&self, index: usize) -> bool {
        self.senders[index].active.is_some()
    }

    fn transfer(&mut self, arrived: &Arrived<'_>) {
        let link = arrived.link;
        let receiver = self.receiver_at(link);
        assert_eq!(arrived.first, receiver.current.is_none());
        receiver.current = arrived.more.then_some((arrived.delivery_id, arrived.settled));
        receiver.partial.extend_from_slice(arrived.payload);
        if receiver.keeps_window {
            // So much that the window shrinks to nothing, whatever its unit.
            let bytes = 1 << 20;
            receiver.kept += bytes;
            self.engine.hold(link.channel, bytes);
        }
        let receiver = self.receiver_at(link);
        if arrived.aborted {
            receiver.partial.clear();
            receiver.aborted += 1;
            return;
        }
        if arrived.more {
            return;
        }
        let encoded = std::mem::take(&mut receiver.partial);
        let number = Message::number_in(&encoded);
        let is_known = receiver.messages.contains_key(&number);
        assert!(!is_known || receiver.may_repeat, "message {number} came twice to the same link");
        receiver.got.push(number);
        receiver.messages.insert(number, encoded);
        if arrived.settled {
            receiver.settled_by_router.insert(number);
        } else {
            receiver.unsettled.insert(arrived.delivery_id.0, number);
            if let Some(mark) = self.engine.incoming_mut(link.channel, arrived.delivery_id) {
                *mark = number + 1;
            }
            self.decide(link, arrived.delivery_id);
        }
    }

    fn decide(&mut self, link: LinkRef, id: Serial) {
        let receiver =
            self.receivers.iter_mut().find(|receiver| receiver.link == Some(link)).expect("it is there");
        let number = receiver.unsettled[&id.0];
        let state = match receiver.policy {
            Policy::Keep => return,
            Policy::Accept => State::Accepted,
            Policy::Mixed => match number % 7 {
                0 => State::Released,
                1 => State::Rejected(format!("no {number}")),
                2 => State::Modified(Some(true), None),
                3 => State::Modified(Some(false), Some(true)),
                _ => State::Accepted,
            },
        };
        receiver.told.insert(number, state.clone());
        let settled =
            state.with(|state| self.engine.dispose_incoming(link, id, true, Some(state), &mut self.out));
        if settled {
            receiver.unsettled.remove(&id.0);
        }
    }

    /// Opens the window again that a receiver kept to itself.
    pub fn open_window(&mut self, index: usize) {
        let receiver = &mut self.receivers[index];
        receiver.keeps_window = false;
        let session = self.sessions[receiver.session];
        let generation = self.engine.hold(session, 0);
        self.engine.release(session, generation, std::mem::take(&mut receiver.kept));
    }

    /// Settles what was kept, by a new policy.
    pub fn settle_kept(&mut self, index: usize, policy: Policy) {
        self.receivers[index].policy = policy;
        let Some(link) = self.receivers[index].link else { return };
        let kept: Vec<u32> = self.receivers[index]
            .unsettled
            .iter()
            .filter(|(_, number)| !self.receivers[index].told.contains_key(number))
            .map(|(id, _)| *id)
            .collect();
        kept.into_iter().for_each(|id| self.decide(link, Serial(id)));
    }

    fn disposition(&mut self, mut disposed: Disposed<'_>) {
        let state = disposed.state.as_ref().map(State::of);
        while let Some(found) = self.engine.next_disposed(&mut disposed) {
            match disposed.role {
                Role::Receiver => {
                    let sender = self
                        .senders
                        .iter_mut()
                        .find(|sender| sender.link == Some(found.link))
                        .expect("the router speaks of a link that is there");
                    let number = found.data - 1;
                    if disposed.settled {
                        let before = sender.fates.insert(number, Fate::Told(state.clone()));
                        assert_eq!(before, None, "{}: two outcomes for {number}", self.name);
                    } else if state.as_ref().is_some_and(State::is_terminal) {
                        let before = sender.fates.insert(number, Fate::Told(state.clone()));
                        assert_eq!(before, None, "{}: two outcomes for {number}", self.name);
                        let (channel, id) = (found.link.channel, found.delivery_id);
                        self.engine.dispose_outgoing(
                            channel,
                            id,
                            true,
                            disposed.state.as_ref(),
                            &mut self.out,
                        );
                    }
                }
                Role::Sender => {
                    let receiver = self
                        .receivers
                        .iter_mut()
                        .find(|receiver| receiver.link == Some(found.link))
                        .expect("the router speaks of a link that is there");
                    if disposed.settled
                        && let Some(number) = receiver.unsettled.remove(&found.delivery_id.0)
                        && !receiver.told.contains_key(&number)
                    {
                        receiver.settled_by_router.insert(number);
                    }
                }
            }
        }
    }

    pub fn detach_sender(&mut self, index: usize) {
        if let Some(link) = self.senders[index].link {
            trace!("{} detaches sender {index}", self.name);
            self.engine.send_detach(link, true, None, &mut self.out);
            self.lose_link(link);
            self.engine.clear_link(link);
        }
        self.senders[index].is_detached = true;
    }

    pub fn detach_receiver(&mut self, index: usize) {
        if let Some(link) = self.receivers[index].link {
            trace!("{} detaches receiver {index}", self.name);
            self.engine.send_detach(link, true, None, &mut self.out);
            self.lose_link(link);
            self.engine.clear_link(link);
        }
        self.receivers[index].is_detached = true;
    }

    /// Closes the connection in order.
    pub fn close(&mut self, now: Instant) {
        if !self.is_over() {
            trace!("{} closes", self.name);
            self.engine.send_close(None, now, &mut self.out);
            let links: Vec<LinkRef> = self.links().collect();
            links.into_iter().for_each(|link| self.lose_link(link));
        }
    }

    /// Goes without a word.
    pub fn die(&mut self) {
        if !self.is_dead {
            trace!("{} is reset", self.name);
            self.peer.reset();
            if self.closed.is_none() {
                self.lose("reset");
            }
            self.is_dead = true;
        }
    }

    /// Whether every message that was sent whole on a link that is still there has its outcome.
    pub fn owed(&self) -> Vec<u64> {
        self.senders
            .iter()
            .flat_map(|sender| sender.sent.keys().filter(|number| !sender.fates.contains_key(number)))
            .copied()
            .collect()
    }
}
