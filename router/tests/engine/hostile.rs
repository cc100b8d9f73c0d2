//! The engine against input that keeps to no rule: frames that are right by themselves in an order that
//! isn't, fields at random, and bytes that are nothing.

use crate::seeds::{for_seeds, trace};
use crate::wire::{Watch, frame, frame_of};
use ringmain::base::buffer::{BufferPool, Output};
use ringmain::base::id::{Channel, Key, Serial};
use ringmain::base::time::Instant;
use ringmain::engine::settings::SaslPolicy;
use ringmain::engine::{Attachment, Cause, Connection, Event, Fault, LinkRef, NewDelivery, Settings, Side};
use ringmain_codec::{
    Attach, Begin, Close, Condition, Coordinator, DeliveryState, Detach, Disposition, End, Error, Flow,
    FrameKind, Modified, Open, Performative, ProtocolHeader, Received, ReceiverSettleMode, Rejected, Role,
    SaslCode, SaslInit, SaslMechanisms, SaslOutcome, SenderSettleMode, Source, Symbol, Symbols, Target,
    TargetNode, Transfer,
};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

/// Draws the peer's frames: mostly such that they mean something, since what is refused at the door tells
/// little.
struct Peer {
    random: fastrand::Rng,
    /// One frame in so many isn't right.
    wildness: u8,
    /// The highest channel that it uses.
    channel_max: u16,
    /// The peer's sessions, by its channels.
    sessions: BTreeMap<u16, Session>,
    /// The peer's channels, by the engine's.
    channels: BTreeMap<u16, u16>,
    /// Begins of the engine that wait for an answer.
    begins: Vec<u16>,
    /// Attaches of the engine that wait for an answer.
    attaches: Vec<(u16, String, Role)>,
    /// The peer's channels on which it owes an end.
    ends: Vec<u16>,
}

#[derive(Default)]
struct Session {
    links: BTreeMap<u32, Role>,
    /// Links on which a delivery is under way.
    under_way: BTreeSet<u32>,
    next_delivery_id: u32,
}

impl Peer {
    fn new(random: fastrand::Rng, channel_max: u16) -> Self {
        let mut peer = Self {
            random,
            wildness: 0,
            channel_max: channel_max.min(2),
            sessions: BTreeMap::new(),
            channels: BTreeMap::new(),
            begins: Vec::new(),
            attaches: Vec::new(),
            ends: Vec::new(),
        };
        peer.wildness = [40, 150, 255][peer.random.usize(0..3)];
        peer
    }

    /// Takes note of what the engine sent.
    fn recv(&mut self, channel: u16, performative: &Performative<'_>) {
        match performative {
            Performative::Begin(begin) => match begin.remote_channel {
                None => self.begins.push(channel),
                Some(ours) => {
                    self.channels.insert(channel, ours);
                }
            },
            Performative::Attach(attach) => {
                // It may be an answer; answering answers is among the things that can happen.
                self.attaches.push((channel, attach.name.to_owned(), attach.role));
            }
            Performative::End(_) => self.ends.extend(self.channels.remove(&channel)),
            Performative::Open(_)
            | Performative::Flow(_)
            | Performative::Transfer(_)
            | Performative::Disposition(_)
            | Performative::Detach(_)
            | Performative::Close(_) => {}
        }
    }

    fn is_wild(&mut self) -> bool {
        let wildness = self.wildness;
        self.chance(wildness)
    }

    /// Mostly a small number, now and then any.
    fn number(&mut self) -> u32 {
        match self.random.u8(0..12) {
            0 => self.random.u32(..),
            1 => u32::MAX - self.random.u32(0..3),
            2 => (i32::MAX as u32).wrapping_add(self.random.u32(0..3)),
            _ => self.random.u32(0..4),
        }
    }

    fn maybe(&mut self) -> Option<u32> {
        if self.random.u8(0..3) > 0 { Some(self.number()) } else { None }
    }

    fn channel(&mut self) -> u16 {
        let known: Vec<u16> = self.sessions.keys().copied().collect();
        if known.is_empty() || self.is_wild() {
            return if self.chance(3) { self.random.u16(..) } else { self.random.u16(0..3) };
        }
        known[self.random.usize(0..known.len())]
    }

    /// A link of a session, if there is one with that role (of the peer's).
    fn handle(&mut self, channel: u16, role: Option<Role>) -> Option<u32> {
        if self.is_wild() {
            return Some(self.number());
        }
        let session = self.sessions.get(&channel)?;
        let links: Vec<u32> = session
            .links
            .iter()
            .filter(|(_, of)| role.is_none_or(|role| role == **of))
            .map(|(handle, _)| *handle)
            .collect();
        (!links.is_empty()).then(|| links[self.random.usize(0..links.len())])
    }

    fn chance(&mut self, one_in: u8) -> bool {
        self.random.u8(0..one_in) == 0
    }

    fn text(&mut self) -> String {
        let length = if self.chance(20) { self.random.usize(0..900) } else { self.random.usize(0..3) };
        std::iter::repeat_with(|| self.random.char('a'..='c')).take(length).collect()
    }

    fn open(&mut self) -> Vec<u8> {
        let container = "c".repeat(self.random.usize(0..200));
        let open = Open {
            container_id: &container,
            max_frame_size: if self.is_wild() { self.number() } else { self.random.u32(512..3000) },
            channel_max: [1, 5, u16::MAX][self.random.usize(0..3)],
            idle_time_out: if self.chance(4) { Some(self.random.u32(100..3000)) } else { None },
            ..Open::default()
        };
        frame(u16::from(self.is_wild()), &open, &[])
    }

    fn with_state<R>(&mut self, act: impl FnOnce(Option<DeliveryState<'_>>) -> R) -> R {
        let text = self.text();
        let error = Error { condition: Symbol("amqp:some"), description: Some(&text), info: None };
        let state = match self.random.u8(0..8) {
            0 | 1 => Some(DeliveryState::Accepted),
            2 => Some(DeliveryState::Released),
            3 => Some(DeliveryState::Rejected(Rejected { error: Some(error) })),
            4 => {
                Some(DeliveryState::Modified(Modified { delivery_failed: Some(true), ..Modified::default() }))
            }
            5 => Some(DeliveryState::Received(Received { section_number: 1, section_offset: 7 })),
            _ => None,
        };
        act(state)
    }

    fn frame(&mut self) -> Vec<u8> {
        if self.sessions.is_empty() && !self.is_wild() {
            return self.begin();
        }
        if let Some(channel) = self.ends.pop()
            && self.sessions.remove(&channel).is_some()
        {
            return frame(channel, &End { error: None }, &[]);
        }
        let channel = self.channel();
        match self.random.u8(0..60) {
            0 | 1 => self.begin(),
            2..8 => self.attach(channel),
            8..18 => self.flow(channel),
            18..40 => self.transfer(channel),
            40..50 => {
                let first = self.delivery_id_near(channel);
                let last = match self.random.u8(0..8) {
                    0 => Some(self.number()),
                    1..4 => None,
                    _ => Some(first.wrapping_add(self.random.u32(0..5))),
                };
                let role = self.role();
                let settled = self.random.bool();
                self.with_state(|state| {
                    frame(channel, &Disposition { role, first, last, settled, state, batchable: false }, &[])
                })
            }
            50..54 => {
                let text = self.text();
                let error = Error { condition: Symbol("amqp:some"), description: Some(&text), info: None };
                let Some(handle) = self.handle(channel, None) else { return Vec::new() };
                if let Some(session) = self.sessions.get_mut(&channel) {
                    session.links.remove(&handle);
                    session.under_way.remove(&handle);
                }
                frame(channel, &Detach { handle, closed: self.random.bool(), error: Some(error) }, &[])
            }
            54 if self.chance(3) => {
                self.sessions.remove(&channel);
                frame(channel, &End { error: None }, &[])
            }
            55 if self.is_wild() => frame(0, &Close { error: None }, &[]),
            56 if self.is_wild() => self.open(),
            57 if self.is_wild() => {
                frame_of(FrameKind::Sasl, 0, &SaslOutcome { code: SaslCode::Ok, additional_data: None }, &[])
            }
            _ => vec![0, 0, 0, 8, 2, 0, 0, 0],
        }
    }

    fn begin(&mut self) -> Vec<u8> {
        let remote_channel = if self.is_wild() { Some(self.random.u16(0..3)) } else { self.begins.pop() };
        let free = (0..=self.channel_max).find(|channel| !self.sessions.contains_key(channel));
        let channel = match free {
            Some(free) if !self.is_wild() => free,
            Some(_) | None if self.is_wild() => self.random.u16(0..5),
            Some(_) | None => return Vec::new(),
        };
        self.sessions.insert(channel, Session::default());
        if let Some(remote) = remote_channel {
            self.channels.insert(remote, channel);
        }
        let begin = Begin {
            remote_channel,
            next_outgoing_id: self.number(),
            incoming_window: self.number(),
            outgoing_window: self.number(),
            handle_max: if self.chance(4) { self.number() } else { u32::MAX },
            ..Begin::default()
        };
        frame(channel, &begin, &[])
    }

    fn flow(&mut self, channel: u16) -> Vec<u8> {
        let handle = if self.chance(5) { None } else { self.handle(channel, None) };
        let flow = Flow {
            next_incoming_id: self.maybe(),
            incoming_window: self.number(),
            next_outgoing_id: self.number(),
            outgoing_window: self.number(),
            handle,
            delivery_count: self.maybe(),
            link_credit: self.maybe(),
            available: self.maybe(),
            drain: self.chance(4),
            echo: self.chance(3),
            properties: None,
        };
        frame(channel, &flow, &[])
    }

    fn role(&mut self) -> Role {
        if self.random.bool() { Role::Sender } else { Role::Receiver }
    }

    fn delivery_id_near(&mut self, channel: u16) -> u32 {
        let next = self.sessions.get(&channel).map_or(0, |session| session.next_delivery_id);
        if self.is_wild() { self.number() } else { next.wrapping_sub(self.random.u32(0..8)) }
    }

    fn attach(&mut self, channel: u16) -> Vec<u8> {
        let answer = if self.random.bool() { self.attaches.pop() } else { None };
        let (channel, name, role) = match answer {
            Some((theirs, name, role)) => {
                let Some(&ours) = self.channels.get(&theirs) else { return Vec::new() };
                (ours, name, role.opposite())
            }
            None => (channel, self.text(), self.role()),
        };
        let session = self.sessions.entry(channel).or_default();
        let free = (0..).find(|handle| !session.links.contains_key(handle)).unwrap_or(0);
        let handle = if self.is_wild() { self.number() } else { free };
        self.sessions.entry(channel).or_default().links.insert(handle, role);
        let address = self.text();
        let source = Source { address: Some(&address), dynamic: self.random.bool(), ..Source::default() };
        let target = match self.random.u8(0..6) {
            0 => Target::Coordinator(Coordinator { capabilities: Symbols::None }),
            _ => Target::Node(TargetNode { address: Some(&address), ..TargetNode::default() }),
        };
        let attach = Attach {
            name: &name,
            handle,
            role,
            snd_settle_mode: [
                SenderSettleMode::Mixed,
                SenderSettleMode::Settled,
                SenderSettleMode::Unsettled,
            ][self.random.usize(0..3)],
            rcv_settle_mode: [ReceiverSettleMode::First, ReceiverSettleMode::Second][self.random.usize(0..2)],
            source: if self.chance(4) { None } else { Some(source) },
            target: if self.chance(4) { None } else { Some(target) },
            initial_delivery_count: self.maybe(),
            max_message_size: self.maybe().map(u64::from),
            ..Attach::default()
        };
        frame(channel, &attach, &[])
    }

    fn transfer(&mut self, channel: u16) -> Vec<u8> {
        let Some(handle) = self.handle(channel, Some(Role::Sender)) else { return Vec::new() };
        let mut payload = vec![0; self.random.usize(0..300)];
        self.random.fill(&mut payload);
        let is_wild = self.is_wild();
        let (more, aborted) = (self.random.bool(), self.chance(12));
        let Some(session) = self.sessions.get_mut(&channel) else { return Vec::new() };
        let is_first = !session.under_way.contains(&handle) ^ is_wild;
        let right = session.next_delivery_id;
        if is_first {
            session.next_delivery_id = right.wrapping_add(1);
        }
        if more && !aborted {
            session.under_way.insert(handle);
        } else {
            session.under_way.remove(&handle);
        }
        let delivery_id = if self.is_wild() { self.maybe() } else { is_first.then_some(right) };
        let tag = [7; 40];
        let tag = &tag[..if self.is_wild() { 40 } else { 4 }];
        let settled = [None, Some(true), Some(false)][self.random.usize(0..3)];
        let resume = self.is_wild();
        let has_tag = is_first ^ self.is_wild();
        self.with_state(|state| {
            let transfer = Transfer {
                handle,
                delivery_id,
                delivery_tag: has_tag.then_some(tag),
                message_format: Some(0),
                settled,
                more,
                aborted,
                resume,
                state,
                ..Transfer::default()
            };
            frame(channel, &transfer, &payload)
        })
    }

    /// The beginning of the conversation, mostly as it should be.
    fn prefix(&mut self, side: Side, sasl: SaslPolicy) -> Vec<u8> {
        let mut bytes = Vec::new();
        if sasl == SaslPolicy::Required || (side == Side::Acceptor && self.random.bool()) {
            bytes.extend(ProtocolHeader::SASL.to_bytes());
            bytes.extend(match side {
                Side::Acceptor => {
                    let mechanism = Symbol(if self.is_wild() { "PLAIN" } else { "ANONYMOUS" });
                    let init = SaslInit { mechanism, initial_response: None, hostname: None };
                    frame_of(FrameKind::Sasl, 0, &init, &[])
                }
                Side::Initiator => {
                    let sasl_server_mechanisms = Symbols::Slice(&["PLAIN", "ANONYMOUS"]);
                    let mut frames =
                        frame_of(FrameKind::Sasl, 0, &SaslMechanisms { sasl_server_mechanisms }, &[]);
                    let code = if self.is_wild() { SaslCode::Auth } else { SaslCode::Ok };
                    let outcome = SaslOutcome { code, additional_data: None };
                    frames.extend(frame_of(FrameKind::Sasl, 0, &outcome, &[]));
                    frames
                }
            });
        }
        bytes.extend(ProtocolHeader::AMQP.to_bytes());
        if !self.is_wild() {
            bytes.extend(self.open());
        }
        bytes
    }
}

/// The engine's user: keeps to the rules, and holds every event against what came before.
struct User {
    connection: Connection<u64>,
    out: Output,
    sessions: BTreeSet<Channel>,
    links: BTreeMap<LinkRef, Known>,
    closed: u32,
    next_number: u32,
    /// Payload that was sent of the user's own accord.
    sent: usize,
}

struct Known {
    number: u32,
    role: Role,
    is_attached: bool,
    current: Option<Serial>,
}

impl User {
    /// An attach can't be answered: its session ends.
    fn end_unanswerable(&mut self, channel: Channel, fault: &Fault) {
        self.connection.send_end(channel, Some(fault), &mut self.out);
        assert!(self.sessions.remove(&channel));
        let links: Vec<LinkRef> = self.links.keys().filter(|link| link.channel == channel).copied().collect();
        links.into_iter().for_each(|link| self.lose(link));
        self.connection.clear_session(channel);
    }

    fn event(&mut self, event: Event<'_>, random: &mut fastrand::Rng) {
        trace!("<- {event:?}");
        assert_eq!(self.closed, 0, "nothing comes after the close: {event:?}");
        match event {
            Event::Opened(_) => self.connection.send_open(&mut self.out),
            Event::Begun(channel) => {
                // Also answers a begin of ours.
                self.sessions.insert(channel);
                if random.u8(0..3) == 0 {
                    self.attach(channel, random);
                }
            }
            Event::AttachRequested { link, attach } => {
                assert!(self.sessions.contains(&link.channel));
                assert!(!self.links.contains_key(&link));
                if random.u8(0..5) == 0 {
                    let fault = Fault::new(Condition::NOT_FOUND, "no");
                    let refused = self.connection.refuse_link(link, &attach, &fault, &mut self.out);
                    self.connection.clear_link(link);
                    if let Err(fault) = refused {
                        self.end_unanswerable(link.channel, &fault);
                    }
                    return;
                }
                let attachment = Attachment {
                    source: attach.source,
                    target: attach.target,
                    snd_settle_mode: attach.snd_settle_mode,
                    rcv_settle_mode: attach.rcv_settle_mode,
                    max_message_size: if random.bool() { 0 } else { 500 },
                };
                if let Err(fault) = self.connection.accept_link(link, &attachment, &mut self.out) {
                    self.end_unanswerable(link.channel, &fault);
                    return;
                }
                self.add(link, attach.role.opposite(), true);
                if attach.role == Role::Sender {
                    let credit = random.u32(0..200);
                    self.connection.send_credit(link, credit, false, &mut self.out);
                }
            }
            Event::Attached { link, .. } => {
                let known = self.links.get_mut(&link).expect("a link that we attached");
                assert!(!known.is_attached);
                known.is_attached = true;
            }
            Event::Flow { link, user } => {
                assert_eq!(self.known(link, user).role, Role::Sender);
                let _ = self.connection.take_window_opened(link.channel);
                if random.bool() {
                    self.send(link, random);
                }
                self.connection.answer_flow(link, random.u32(0..3), &mut self.out);
            }
            Event::SenderFlow { link, user } => {
                assert_eq!(self.known(link, user).role, Role::Receiver);
                let credit = random.u32(0..20);
                self.connection.send_credit(link, credit, random.bool(), &mut self.out);
            }
            Event::WindowOpened(channel) => {
                assert!(self.sessions.contains(&channel));
                assert!(self.connection.take_window_opened(channel));
            }
            Event::Transfer(arrived) => {
                let known = self.known(arrived.link, arrived.user);
                assert!(known.is_attached && known.role == Role::Receiver);
                match known.current {
                    None => assert!(arrived.first),
                    Some(current) => assert!(!arrived.first && arrived.delivery_id == current),
                }
                known.current = arrived.more.then_some(arrived.delivery_id);
                assert!(!(arrived.aborted && arrived.more));
                let (link, id) = (arrived.link, arrived.delivery_id);
                if !arrived.settled && random.bool() {
                    let settled = random.bool();
                    let state = DeliveryState::Released;
                    self.connection.dispose_incoming(link, id, settled, Some(&state), &mut self.out);
                }
                if random.u8(0..3) == 0 {
                    let session = self.connection.hold(link.channel, arrived.payload.len());
                    self.connection.release(link.channel, session, arrived.payload.len());
                }
            }
            Event::Disposition(mut disposed) => {
                let mut most = 100_000;
                while let Some(found) = self.connection.next_disposed(&mut disposed) {
                    let known = self.links.get(&found.link).expect("its link is there");
                    let sent = known.role == Role::Sender;
                    assert_eq!(sent, disposed.role == Role::Receiver);
                    most -= 1;
                    assert!(most > 0, "a disposition ends");
                    if sent && !disposed.settled {
                        let channel = found.link.channel;
                        self.connection.dispose_outgoing(
                            channel,
                            found.delivery_id,
                            true,
                            None,
                            &mut self.out,
                        );
                    }
                }
            }
            Event::Detached { link, user, .. } => {
                self.known(link, user);
                self.lose(link);
                self.connection.clear_link(link);
            }
            Event::Ended { channel, cause } => {
                assert!(self.sessions.remove(&channel));
                drop(cause);
                let links: Vec<LinkRef> =
                    self.links.keys().filter(|link| link.channel == channel).copied().collect();
                links.into_iter().for_each(|link| self.lose(link));
                self.connection.clear_session(channel);
            }
            Event::Closed(cause) => {
                self.closed += 1;
                if let Cause::Ours(fault) = cause {
                    assert!(!fault.description.is_empty());
                }
                self.connection.silence();
                for channel in self.connection.channels() {
                    self.connection.clear_session(channel);
                }
                self.links.clear();
                self.sessions.clear();
                let holdings = self.connection.holdings();
                assert_eq!((holdings.links, holdings.names, holdings.unsettled), (0, 0, 0));
            }
        }
    }

    fn known(&mut self, link: LinkRef, user: Option<Key>) -> &mut Known {
        let known = self.links.get_mut(&link).expect("a link that is attached");
        assert_eq!(user.map(|user| user.index), Some(known.number));
        known
    }

    fn add(&mut self, link: LinkRef, role: Role, is_attached: bool) {
        self.next_number += 1;
        let number = self.next_number;
        let before = self.links.insert(link, Known { number, role, is_attached, current: None });
        assert!(before.is_none());
        self.connection.set_user(link, Some(Key { index: number, generation: 0 }));
    }

    fn lose(&mut self, link: LinkRef) {
        self.links.remove(&link).expect("a link is lost once");
        let _ = self.connection.take_unsettled_of(link);
    }

    fn attach(&mut self, channel: Channel, random: &mut fastrand::Rng) {
        let role = if random.bool() { Role::Sender } else { Role::Receiver };
        let attachment = Attachment {
            source: Some(Source::default()),
            target: Some(Target::Node(TargetNode::default())),
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            max_message_size: 0,
        };
        let name = ["a", "b", "aa"][random.usize(0..3)];
        if let Some(link) = self.connection.send_attach(channel, name, role, &attachment, &mut self.out) {
            self.add(link, role, false);
        }
    }

    fn send(&mut self, link: LinkRef, random: &mut fastrand::Rng) {
        if self.connection.link(link).is_some_and(|link| link.sending.is_some()) {
            let payload = vec![1; random.usize(0..800)];
            self.sent += payload.len() + 1000;
            let more = random.bool();
            self.connection.send_payload(link, &payload, more, &mut self.out);
            return;
        }
        let Some(credit) = self.connection.take_credit(link) else { return };
        let new = NewDelivery { message_format: 0, settled: random.bool(), tag: [1; 8], data: 0 };
        self.connection.begin_delivery(link, credit, new).expect("the link has credit");
        let payload = vec![1; random.usize(0..3000)];
        self.sent += 2 * payload.len() + 1000;
        let more = random.bool();
        self.connection.send_payload(link, &payload, more, &mut self.out);
    }

    /// Something of its own accord.
    fn act(&mut self, random: &mut fastrand::Rng, now: Instant) {
        if !self.connection.is_open() || self.closed > 0 {
            return;
        }
        self.sent += 1000;
        let links: Vec<LinkRef> = self.links.keys().copied().collect();
        let link = (!links.is_empty()).then(|| links[random.usize(0..links.len())]);
        match (random.u8(0..12), link) {
            (0..3, _) if random.u8(0..8) > 0 => {}
            (0, _) => {
                if let Some(channel) = self.connection.send_begin(&mut self.out) {
                    self.sessions.insert(channel);
                    self.attach(channel, random);
                }
            }
            (1, Some(link)) => {
                self.connection.send_detach(link, random.bool(), None, &mut self.out);
                self.lose(link);
                self.connection.clear_link(link);
            }
            (2, Some(link)) => {
                let channel = link.channel;
                self.connection.send_end(channel, None, &mut self.out);
                self.sessions.remove(&channel);
                let links: Vec<LinkRef> = links.into_iter().filter(|link| link.channel == channel).collect();
                links.into_iter().for_each(|link| self.lose(link));
                self.connection.clear_session(channel);
            }
            (3 | 4, Some(link)) if self.links[&link].role == Role::Sender => self.send(link, random),
            (5, Some(link)) if self.links[&link].role == Role::Receiver => {
                let credit = random.u32(0..50);
                self.connection.send_credit(link, credit, random.bool(), &mut self.out);
            }
            (6, Some(link)) if self.links[&link].role == Role::Sender => {
                self.connection.abort_delivery(link, &mut self.out);
            }
            (7, _) if random.u8(0..20) == 0 => self.connection.send_close(None, now, &mut self.out),
            _ => {}
        }
    }
}

fn run(seed: u64, is_corrupt: bool) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let side = if random.bool() { Side::Acceptor } else { Side::Initiator };
    let settings = Settings {
        container_id: "us".into(),
        max_frame_size: [512, 4096, 65_536][random.usize(0..3)],
        channel_max: [0, 2, 32_767][random.usize(0..3)],
        session_frames_max: [2, 50, u32::MAX >> 1][random.usize(0..3)],
        sasl: if random.bool() { SaslPolicy::Required } else { SaslPolicy::Optional },
        idle_timeout: Some(Duration::from_secs(4)),
        handshake_timeout: Some(Duration::from_secs(4)),
        ..Settings::default()
    };
    let (sasl, channel_max) = (settings.sasl, settings.channel_max);
    let mut now = Instant(5_000_000_000);
    let mut out = Output::new(BufferPool::default());
    let connection = Connection::new(Rc::new(settings), side, now, &mut out);
    let mut user = User {
        connection,
        out,
        sessions: BTreeSet::new(),
        links: BTreeMap::new(),
        closed: 0,
        next_number: 0,
        sent: 0,
    };
    let mut peer = Peer::new(random.fork(), channel_max);
    let mut watch = Watch::new();
    watch.frame_max = 3000;
    let mut inbox = peer.prefix(side, sasl);
    let mut frames = 4;
    let (mut came, mut went) = (0, 0);
    for _ in 0..random.usize(0..250) {
        for _ in 0..random.usize(0..4) {
            let mut bytes = peer.frame();
            frames += 1;
            if is_corrupt && random.u8(0..40) == 0 && !bytes.is_empty() {
                let at = random.usize(0..bytes.len());
                bytes[at] ^= 1 << random.u8(0..8);
            }
            if is_corrupt && random.u8(0..60) == 0 {
                let mut garbage = vec![0; random.usize(0..40)];
                random.fill(&mut garbage);
                bytes.extend(garbage);
            }
            inbox.extend(bytes);
        }
        // What comes is cut anywhere.
        let cut = random.usize(0..=inbox.len());
        let mut consumed = 0;
        user.connection.heard(now);
        loop {
            let progress = user.connection.recv(&inbox[consumed..cut], now, &mut user.out);
            assert!(consumed + progress.consumed <= cut);
            consumed += progress.consumed;
            let Some(event) = progress.event else { break };
            user.event(event, &mut random);
        }
        came += consumed;
        inbox.drain(..consumed);
        user.act(&mut random, now);
        if user.closed == 0 {
            user.connection.flush(&mut user.out);
        }
        if random.u8(0..20) == 0 {
            now = now + Duration::from_millis(random.u64(0..3000));
            if user.connection.poll_timeout().is_some_and(|deadline| deadline <= now)
                && let Some(event) = user.connection.handle_timeout(now, &mut user.out)
            {
                user.event(event, &mut random);
            }
        }
        let bytes = user.out.take_bytes();
        if !bytes.is_empty() {
            user.connection.spoke(now);
        }
        went += bytes.len();
        watch.take(&bytes, |channel, performative, _| {
            trace!("-> {channel} {performative:?}");
            peer.recv(channel, performative);
        });
        assert!(went <= user.sent + 2 * (came + inbox.len()) + 1500 * frames, "{went} bytes for {came}");
    }
    assert!(user.closed == 0 || watch.is_closed() || watch.frames == 0 || !user.connection.is_open());
    watch.frames
}

#[test]
fn frames_in_any_order_with_any_fields_are_borne() {
    let mut answers = 0;
    for_seeds("frames_in_any_order_with_any_fields_are_borne", 1200, |seed| answers += run(seed, false));
    println!("{answers} frames in answer");
}

#[test]
fn bytes_that_are_nothing_are_borne() {
    for_seeds("bytes_that_are_nothing_are_borne", 800, |seed| {
        run(seed ^ 0xBAD, true);
    });
}
