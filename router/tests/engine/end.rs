//! One end of a connection with a user that plays by the rules, and keeps its own books.

use crate::delivery::{Delivery, Outcome};
use crate::seeds::trace;
use crate::state::State;
use ringmain::base::buffer::{BufferPool, Output};
use ringmain::base::id::{Channel, Key, Serial};
use ringmain::base::time::Instant;
use ringmain::engine::{
    Arrived, Attachment, Cause, Connection, Disposed, Event, Fault, LinkRef, NewDelivery, Settings, Side,
};
use ringmain_codec::{
    Attach, Condition, Flow, FrameKind, ReceiverSettleMode, Role, SenderSettleMode, Source, Target,
    TargetNode, Writer, write_frame,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// What is kept with an unsettled delivery: its number plus one.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Mark(pub usize);

/// What both ends' deliveries have in common.
#[derive(Default)]
pub struct Book {
    pub deliveries: Vec<Delivery>,
    /// By the sending link's number: deliveries whose first frame hasn't come yet.
    pub under_way: BTreeMap<u32, VecDeque<usize>>,
    pub links: u32,
}

/// A delivery that isn't sent whole.
pub struct Active {
    pub number: usize,
    offset: usize,
    /// What was offered and hasn't gone: up to where, and whether more was to follow.
    offered: Option<(usize, bool)>,
    is_aborting: bool,
}

/// A link as its user sees it.
pub struct Link {
    pub number: u32,
    pub peer_number: Option<u32>,
    pub role: Role,
    pub is_attached: bool,
    /// As sender: messages that wait.
    pub backlog: u32,
    pub active: Option<Active>,
    /// As sender: whether there is a reason to try to send (again).
    pub is_ready: bool,
    /// As receiver: the delivery that isn't whole yet.
    pub current: Option<usize>,
    /// As receiver: the delivery-count up to which credit was ever granted.
    granted: Serial,
}

/// An unsettled delivery.
pub struct Unsettled {
    pub link: LinkRef,
    pub id: Serial,
    pub number: usize,
    /// The terminal state that the receiver has told.
    pub terminal: Option<State>,
}

pub struct End {
    pub name: char,
    pub connection: Connection<Mark>,
    pub out: Output,
    inbox: Vec<u8>,
    /// On their way to the other end.
    pub wire: VecDeque<u8>,
    pub sessions: BTreeSet<Channel>,
    /// Those of the connection's sessions that this end began.
    pub begun: BTreeSet<Channel>,
    pub links: BTreeMap<LinkRef, Link>,
    pub unsettled_in: Vec<Unsettled>,
    pub unsettled_out: Vec<Unsettled>,
    pub held: Vec<(Channel, u32, usize)>,
    pub closed: u32,
    pub is_opened: bool,
}

fn sender_settles(mode: SenderSettleMode, random: &mut fastrand::Rng) -> bool {
    match mode {
        SenderSettleMode::Unsettled => false,
        SenderSettleMode::Settled => true,
        SenderSettleMode::Mixed => random.bool(),
    }
}

impl End {
    pub fn new(name: char, settings: Settings, side: Side, now: Instant) -> Self {
        let mut out = Output::new(BufferPool::default());
        let connection = Connection::new(Rc::new(settings), side, now, &mut out);
        Self {
            name,
            connection,
            out,
            inbox: Vec::new(),
            wire: VecDeque::new(),
            sessions: BTreeSet::new(),
            begun: BTreeSet::new(),
            links: BTreeMap::new(),
            unsettled_in: Vec::new(),
            unsettled_out: Vec::new(),
            held: Vec::new(),
            closed: 0,
            is_opened: false,
        }
    }

    pub fn is_usable(&self) -> bool {
        self.connection.is_open() && self.closed == 0
    }

    /// Puts what was written on the wire.
    pub fn collect(&mut self, flush: bool, now: Instant) {
        if flush {
            self.connection.flush(&mut self.out);
        }
        let bytes = self.out.take_bytes();
        if !bytes.is_empty() {
            self.connection.spoke(now);
            self.wire.extend(bytes);
        }
    }

    /// Takes bytes of the other end.
    pub fn recv(&mut self, bytes: &[u8], book: &mut Book, random: &mut fastrand::Rng, now: Instant) {
        self.connection.heard(now);
        self.inbox.extend_from_slice(bytes);
        let inbox = std::mem::take(&mut self.inbox);
        let mut consumed = 0;
        loop {
            let progress = self.connection.recv(&inbox[consumed..], now, &mut self.out);
            consumed += progress.consumed;
            let Some(event) = progress.event else { break };
            self.event(event, book, random);
        }
        self.inbox = inbox[consumed..].to_vec();
        assert!(self.inbox.len() < 70_000, "an incomplete frame is no longer than the largest");
    }

    fn event(&mut self, event: Event<'_>, book: &mut Book, random: &mut fastrand::Rng) {
        trace!("{} <- {event:?}", self.name);
        match event {
            Event::Opened(_) => {
                self.is_opened = true;
                self.connection.send_open(&mut self.out);
            }
            Event::Sasl(duty) => panic!("it takes an anonymous peer for another: {duty:?}"),
            Event::Begun(channel) => {
                self.sessions.insert(channel);
            }
            Event::AttachRequested { link, attach } => self.attach_requested(link, &attach, book, random),
            Event::Attached { link, attach } => {
                let role = self.links[&link].role;
                let peer_number = number_in(&attach, role);
                let known = self.links.get_mut(&link).expect("a link that we attached");
                known.peer_number = peer_number;
                known.is_attached = true;
                known.is_ready = true;
            }
            Event::Flow { link, user } => {
                self.check_user(link, user);
                let known = self.links.get_mut(&link).expect("a flow is for a link that is there");
                assert_eq!(known.role, Role::Sender);
                known.is_ready = true;
                self.answer(link);
                self.window_opened(link.channel);
            }
            Event::SenderFlow { link, user } => {
                self.check_user(link, user);
                assert_eq!(self.links[&link].role, Role::Receiver);
                self.window_opened(link.channel);
            }
            Event::WindowOpened(channel) => {
                assert!(self.sessions.contains(&channel));
                self.window_opened(channel);
            }
            Event::Transfer(arrived) => self.transfer(&arrived, book, random),
            Event::Disposition(disposed) => self.disposition(disposed, book),
            Event::Detached { link, user, cause, .. } => {
                expect_peer(&cause);
                self.check_user(link, user);
                assert!(self.links.contains_key(&link), "a link goes once");
                self.lose_link(link, book);
                self.connection.clear_link(link);
            }
            Event::Ended { channel, cause } => {
                expect_peer(&cause);
                assert!(self.sessions.contains(&channel), "a session goes once");
                self.lose_session(channel, book);
                self.connection.clear_session(channel);
            }
            Event::Closed(cause) => {
                expect_peer(&cause);
                self.closed += 1;
                self.lose_all(book);
            }
        }
    }

    fn check_user(&self, link: LinkRef, user: Option<Key>) {
        let number = self.links.get(&link).map(|link| link.number);
        assert_eq!(user.map(|key| key.index), number, "what was kept with {link:?}");
    }

    fn window_opened(&mut self, channel: Channel) {
        if self.connection.take_window_opened(channel) {
            for (link, known) in &mut self.links {
                known.is_ready |= link.channel == channel;
            }
        }
    }

    fn add_link(&mut self, link: LinkRef, number: u32, role: Role, peer_number: Option<u32>) {
        let known = Link {
            number,
            peer_number,
            role,
            is_attached: false,
            backlog: 0,
            active: None,
            is_ready: false,
            current: None,
            granted: Serial(0),
        };
        assert!(self.links.insert(link, known).is_none(), "a handle is used once at a time");
        self.connection.set_user(link, Some(Key { index: number, generation: 7 }));
    }

    fn attach_requested(
        &mut self,
        link: LinkRef,
        attach: &Attach<'_>,
        book: &mut Book,
        random: &mut fastrand::Rng,
    ) {
        assert!(!self.links.contains_key(&link), "a handle is used once at a time");
        if random.u8(0..12) == 0 {
            let fault = Fault::new(Condition::NOT_FOUND, "not today");
            self.connection.refuse_link(link, attach, &fault, &mut self.out).expect("the answer fits");
            self.connection.clear_link(link);
            return;
        }
        let role = attach.role.opposite();
        book.links += 1;
        let number = book.links;
        self.add_link(link, number, role, number_in(attach, role));
        let text = number.to_string();
        let (source, target) = ends(&text, role);
        let attachment = Attachment {
            source: Some(source),
            target: Some(target),
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            max_message_size: 0,
        };
        self.connection.accept_link(link, &attachment, &mut self.out).expect("the answer fits");
        self.links.get_mut(&link).expect("just added").is_attached = true;
    }

    /// Attaches a link of ours.
    pub fn attach(
        &mut self,
        channel: Channel,
        name: &str,
        role: Role,
        book: &mut Book,
        random: &mut fastrand::Rng,
    ) {
        book.links += 1;
        let number = book.links;
        let text = number.to_string();
        let (source, target) = ends(&text, role);
        let attachment = Attachment {
            source: Some(source),
            target: Some(target),
            snd_settle_mode: [
                SenderSettleMode::Mixed,
                SenderSettleMode::Settled,
                SenderSettleMode::Unsettled,
            ][random.usize(0..3)],
            rcv_settle_mode: [ReceiverSettleMode::First, ReceiverSettleMode::Second][random.usize(0..2)],
            max_message_size: if random.bool() { 0 } else { random.u64(100..5000) },
        };
        if let Some(link) = self.connection.send_attach(channel, name, role, &attachment, &mut self.out) {
            trace!("{} attaches {link:?} number {number} '{name}' as {role:?}", self.name);
            self.add_link(link, number, role, None);
        }
    }

    fn transfer(&mut self, arrived: &Arrived<'_>, book: &mut Book, random: &mut fastrand::Rng) {
        let link = arrived.link;
        self.check_user(link, arrived.user);
        let known = self.links.get_mut(&link).expect("a transfer comes on a link that is there");
        assert_eq!(known.role, Role::Receiver);
        assert_eq!(arrived.first, known.current.is_none());
        let number = if let Some(current) = known.current {
            current
        } else {
            let sender = known.peer_number.expect("the sender's attach came first");
            let next = book.under_way.get_mut(&sender).and_then(VecDeque::pop_front);
            let number = next.expect("a delivery that was begun");
            let count = self.connection.link(link).expect("the link is there").delivery_count;
            assert!(count.distance_from(known.granted) <= 0, "beyond the credit ever granted");
            number
        };
        let delivery = &mut book.deliveries[number];
        if arrived.first {
            assert_eq!(arrived.message_format, delivery.message_format);
            assert_eq!(arrived.settled, delivery.presettled);
            delivery.came_as = Some((link, arrived.delivery_id));
            if !arrived.settled && !arrived.aborted {
                let place = self.connection.incoming_mut(link.channel, arrived.delivery_id);
                *place.expect("an unsettled delivery is known") = Mark(number + 1);
                let id = arrived.delivery_id;
                self.unsettled_in.push(Unsettled { link, id, number, terminal: None });
            }
        }
        assert_eq!(delivery.came_as, Some((link, arrived.delivery_id)));
        known.current = arrived.more.then_some(number);
        if arrived.aborted {
            assert!(!arrived.more && arrived.payload.is_empty());
            self.unsettled_in.retain(|unsettled| unsettled.number != number);
            if delivery.at_receiver.is_none() {
                delivery.end_at_receiver(Outcome::Aborted);
            }
            return;
        }
        delivery.recv(arrived.payload);
        if !arrived.payload.is_empty() && random.u8(0..3) == 0 {
            // More than the payload, so that small payloads close windows too.
            let bytes = arrived.payload.len() * random.usize(1..400);
            let session = self.connection.hold(link.channel, bytes);
            self.held.push((link.channel, session, bytes));
        }
        if !arrived.more {
            assert_eq!(delivery.came, delivery.size, "all of it came");
            delivery.is_complete = true;
            if arrived.settled && delivery.presettled {
                delivery.end_at_receiver(Outcome::Presettled);
            }
        }
    }

    fn disposition(&mut self, mut disposed: Disposed<'_>, book: &mut Book) {
        let state = disposed.state.as_ref().map(State::of);
        while let Some(found) = self.connection.next_disposed(&mut disposed) {
            let list = match disposed.role {
                Role::Receiver => &mut self.unsettled_out,
                Role::Sender => &mut self.unsettled_in,
            };
            let place = list
                .iter()
                .position(|unsettled| (unsettled.link, unsettled.id) == (found.link, found.delivery_id))
                .expect("a disposition is about a delivery that isn't settled");
            let number = list[place].number;
            assert_eq!(found.data, Mark(number + 1));
            let delivery = &mut book.deliveries[number];
            let (told, role) = match disposed.role {
                Role::Receiver => (&delivery.told_by_receiver, Role::Receiver),
                Role::Sender => (&delivery.told_by_sender, Role::Sender),
            };
            assert!(state.iter().all(|state| told.contains(state)), "{state:?} wasn't told: {delivery:?}");
            if disposed.settled {
                list.remove(place);
                match role {
                    Role::Receiver => delivery.end_at_sender(Outcome::Theirs(state.clone())),
                    Role::Sender => delivery.end_at_receiver(Outcome::Theirs(state.clone())),
                }
            } else if role == Role::Receiver && state.as_ref().is_some_and(State::is_terminal) {
                list[place].terminal.clone_from(&state);
            }
        }
    }

    /// Sends a flow that asks for an answer, which the engine never does by itself.
    pub fn echo(&mut self, channel: Channel, link: Option<LinkRef>, now: Instant) {
        self.collect(true, now);
        let Some(session) = self.connection.session(channel) else { return };
        let state = link.and_then(|link| session.link(link.handle));
        let flow = Flow {
            next_incoming_id: session.remote_channel.map(|_| session.flow.next_incoming_id.0),
            incoming_window: session.flow.incoming_window,
            next_outgoing_id: session.flow.next_outgoing_id.0,
            outgoing_window: 1000,
            handle: link.map(|link| link.handle.0),
            delivery_count: state.map(|state| state.delivery_count.0),
            link_credit: state.map(|state| state.credit),
            drain: state.is_some_and(|state| state.drain),
            echo: true,
            ..Flow::default()
        };
        let mut room = [0; 512];
        let mut writer = Writer::new(&mut room);
        write_frame(&mut writer, FrameKind::Amqp, channel.0, |writer| writer.put(&flow)).expect("it fits");
        self.wire.extend(writer.written());
        self.connection.spoke(now);
    }

    /// Sends something on a link: the next part of a delivery, or a new one. `all`: as much as there is.
    pub fn send_some(&mut self, link: LinkRef, all: bool, book: &mut Book, random: &mut fastrand::Rng) {
        let Some(known) = self.links.get_mut(&link) else { return };
        if !known.is_ready || !known.is_attached {
            return;
        }
        if known.active.is_none() && !self.begin(link, book, random) {
            return;
        }
        let Some(known) = self.links.get_mut(&link) else { return };
        let Some(active) = &mut known.active else { return };
        if active.is_aborting {
            return self.abort(link, book);
        }
        let delivery = &book.deliveries[active.number];
        let (to, more) = active.offered.unwrap_or_else(|| {
            let to = if all { delivery.size } else { random.usize(active.offset..=delivery.size) };
            (to, to < delivery.size || (!all && random.u8(0..8) == 0))
        });
        let payload = delivery.payload(active.offset, to);
        let sent = self.connection.send_payload(link, &payload, more, &mut self.out);
        active.offset += sent.consumed;
        active.offered = (!sent.complete).then_some((to, more));
        trace!("{} sends {}..{to} of {} (more: {more}): {sent:?}", self.name, active.offset, active.number);
        if !sent.complete {
            known.is_ready = false;
        } else if !more {
            assert_eq!(active.offset, delivery.size);
            let number = active.number;
            known.active = None;
            if book.deliveries[number].presettled {
                book.deliveries[number].end_at_sender(Outcome::Presettled);
            }
        }
        self.answer(link);
    }

    fn begin(&mut self, link: LinkRef, book: &mut Book, random: &mut fastrand::Rng) -> bool {
        let Some(known) = self.links.get_mut(&link) else { return false };
        if known.backlog == 0 {
            return false;
        }
        let Some(credit) = self.connection.take_credit(link) else {
            known.is_ready = false;
            return false;
        };
        let state = self.connection.link(link).expect("the link is there");
        let limit = if state.max_message_size == 0 { 20_000 } else { state.max_message_size as usize };
        let size = match random.u8(0..4) {
            0 => random.usize(0..20),
            1 | 2 => random.usize(0..600),
            _ => random.usize(0..20_000),
        };
        let size = size.min(limit);
        let settled = sender_settles(state.snd_settle_mode, random);
        let number = book.deliveries.len();
        let message_format = random.u32(0..3);
        let new = NewDelivery {
            message_format,
            settled,
            tag: (number as u64).to_be_bytes(),
            data: Mark(number + 1),
            stamp: 0,
        };
        let id = self.connection.begin_delivery(link, credit, new).expect("the link is there");
        trace!(
            "{} begins delivery {number} ({size} bytes, settled: {settled}) as {id} on {link:?}",
            self.name
        );
        book.deliveries.push(Delivery {
            number,
            size,
            message_format,
            presettled: settled,
            came_as: None,
            came: 0,
            is_complete: false,
            told_by_receiver: Vec::new(),
            told_by_sender: Vec::new(),
            at_sender: None,
            at_receiver: None,
        });
        book.under_way.entry(known.number).or_default().push_back(number);
        if !settled {
            self.unsettled_out.push(Unsettled { link, id, number, terminal: None });
        }
        known.backlog -= 1;
        known.active = Some(Active { number, offset: 0, offered: None, is_aborting: false });
        true
    }

    /// Gives the delivery under way up.
    pub fn abort(&mut self, link: LinkRef, book: &mut Book) {
        let Some(known) = self.links.get_mut(&link) else { return };
        let Some(active) = &mut known.active else { return };
        active.is_aborting = true;
        let number = active.number;
        trace!("{} aborts delivery {number}", self.name);
        if !self.connection.abort_delivery(link, &mut self.out) {
            known.is_ready = false;
            return;
        }
        known.active = None;
        self.unsettled_out.retain(|unsettled| unsettled.number != number);
        if book.deliveries[number].at_sender.is_none() {
            book.deliveries[number].end_at_sender(Outcome::Aborted);
        }
        self.answer(link);
    }

    /// Answers what the link's receiver asked.
    fn answer(&mut self, link: LinkRef) {
        let Some(known) = self.links.get(&link) else { return };
        let available = known.backlog + u32::from(known.active.is_some());
        self.connection.answer_flow(link, available, &mut self.out);
    }

    pub fn grant(&mut self, link: LinkRef, credit: u32, drain: bool) {
        let Some(state) = self.connection.link(link) else { return };
        let limit = state.delivery_count.plus(credit);
        let Some(known) = self.links.get_mut(&link) else { return };
        if limit.distance_from(known.granted) > 0 {
            known.granted = limit;
        }
        trace!("{} grants {credit} on {link:?} (drain: {drain})", self.name);
        self.connection.send_credit(link, credit, drain, &mut self.out);
    }

    /// As receiver: tells the state of a delivery, and settles it if it may.
    pub fn dispose_in(&mut self, place: usize, settled: bool, state: Option<State>, book: &mut Book) {
        let unsettled = &mut self.unsettled_in[place];
        let (link, id, number) = (unsettled.link, unsettled.id, unsettled.number);
        let delivery = &mut book.deliveries[number];
        trace!("{} says of delivery {number}: {state:?}, settled: {settled}", self.name);
        let is_settled = match &state {
            None => self.connection.dispose_incoming(link, id, settled, None, &mut self.out),
            Some(told) => {
                delivery.told_by_receiver.push(told.clone());
                told.with(|told| {
                    self.connection.dispose_incoming(link, id, settled, Some(told), &mut self.out)
                })
            }
        };
        if is_settled {
            delivery.end_at_receiver(Outcome::Ours(state));
            self.unsettled_in.remove(place);
        } else if let Some(terminal) = state.filter(State::is_terminal) {
            unsettled.terminal = Some(terminal);
        }
    }

    /// As sender: tells its own state of a delivery, and settles it if `settled`.
    pub fn dispose_out(&mut self, place: usize, settled: bool, state: Option<State>, book: &mut Book) {
        let unsettled = &self.unsettled_out[place];
        let (link, id, number) = (unsettled.link, unsettled.id, unsettled.number);
        let delivery = &mut book.deliveries[number];
        trace!("{} says as sender of delivery {number}: {state:?}, settled: {settled}", self.name);
        match &state {
            None => self.connection.dispose_outgoing(link.channel, id, settled, None, &mut self.out),
            Some(told) => {
                delivery.told_by_sender.push(told.clone());
                told.with(|told| {
                    self.connection.dispose_outgoing(link.channel, id, settled, Some(told), &mut self.out);
                });
            }
        }
        if settled {
            delivery.end_at_sender(Outcome::Ours(state));
            self.unsettled_out.remove(place);
        }
    }

    pub fn detach(&mut self, link: LinkRef, closed: bool, fault: Option<&Fault>, book: &mut Book) {
        trace!("{} detaches {link:?}", self.name);
        assert!(self.connection.send_detach(link, closed, fault, &mut self.out));
        self.lose_link(link, book);
        self.connection.clear_link(link);
    }

    pub fn end(&mut self, channel: Channel, fault: Option<&Fault>, book: &mut Book) {
        trace!("{} ends {channel:?}", self.name);
        assert!(self.connection.send_end(channel, fault, &mut self.out));
        self.lose_session(channel, book);
        self.connection.clear_session(channel);
    }

    fn lose_link(&mut self, link: LinkRef, book: &mut Book) {
        let known = self.links.remove(&link).expect("the link is there");
        if let Some(active) = &known.active
            && book.deliveries[active.number].presettled
        {
            book.deliveries[active.number].end_at_sender(Outcome::Lost);
        }
        if let Some(current) = known.current
            && book.deliveries[current].presettled
        {
            book.deliveries[current].end_at_receiver(Outcome::Lost);
        }
        let left = self.connection.take_unsettled_of(link);
        let lost_out: Vec<usize> = take_of(&mut self.unsettled_out, link);
        let lost_in: Vec<usize> = take_of(&mut self.unsettled_in, link);
        let lost = lost_out.iter().chain(&lost_in).copied();
        assert_eq!(sorted(left.iter().map(|(_, unsettled)| unsettled.data.0 - 1)), sorted(lost));
        lost_out.into_iter().for_each(|number| book.deliveries[number].end_at_sender(Outcome::Lost));
        lost_in.into_iter().for_each(|number| book.deliveries[number].end_at_receiver(Outcome::Lost));
    }

    fn lose_session(&mut self, channel: Channel, book: &mut Book) {
        self.sessions.remove(&channel);
        let links: Vec<LinkRef> = self.links.keys().filter(|link| link.channel == channel).copied().collect();
        let known: Vec<LinkRef> = self
            .connection
            .users(channel)
            .into_iter()
            .filter_map(|(link, user)| user.map(|_| link))
            .collect();
        assert_eq!(links, known, "the links of a session");
        links.into_iter().for_each(|link| self.lose_link(link, book));
        self.held.retain(|(held, ..)| *held != channel);
    }

    pub fn lose_all(&mut self, book: &mut Book) {
        self.connection.silence();
        for channel in self.connection.channels() {
            self.lose_session(channel, book);
            self.connection.clear_session(channel);
        }
        assert!(self.links.is_empty() && self.unsettled_in.is_empty() && self.unsettled_out.is_empty());
        self.sessions.clear();
    }
}

fn sorted(numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut numbers: Vec<usize> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

fn take_of(list: &mut Vec<Unsettled>, link: LinkRef) -> Vec<usize> {
    let lost =
        list.iter().filter(|unsettled| unsettled.link == link).map(|unsettled| unsettled.number).collect();
    list.retain(|unsettled| unsettled.link != link);
    lost
}

fn expect_peer(cause: &Cause<'_>) {
    match cause {
        Cause::Peer(_) => {}
        Cause::Ours(fault) => panic!("both ends keep to the rules, and yet: {fault}"),
    }
}

/// Where a link's number stands in an attach: in the terminus of the end that it belongs to.
fn ends(number: &str, role: Role) -> (Source<'_>, Target<'_>) {
    let mut source = Source::default();
    let mut target = TargetNode::default();
    match role {
        Role::Sender => source.address = Some(number),
        Role::Receiver => target.address = Some(number),
    }
    (source, Target::Node(target))
}

/// The number of the other end's link.
fn number_in(attach: &Attach<'_>, our_role: Role) -> Option<u32> {
    let text = match our_role {
        Role::Receiver => attach.source?.address?,
        Role::Sender => match attach.target? {
            Target::Node(node) => node.address?,
            Target::Coordinator(_) => return None,
        },
    };
    text.parse().ok()
}
