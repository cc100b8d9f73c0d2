//! A peer that keeps to no rule: frames that are right by themselves, in an order that mostly makes sense and
//! now and then doesn't, with fields at random.

use crate::wire::{frame, frame_of};
use ringmain::engine::Side;
use ringmain::engine::settings::SaslPolicy;
use ringmain::sasl::keys::Hash;
use ringmain::sasl::{UserStore, Users};
use ringmain_codec::{
    Attach, Begin, Close, Coordinator, DeliveryState, Detach, Disposition, End, Error, Flow, FrameKind,
    Modified, Open, Performative, ProtocolHeader, Received, ReceiverSettleMode, Rejected, Role,
    SaslChallenge, SaslCode, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse, SenderSettleMode, Source,
    Symbol, Symbols, Target, TargetNode, Transfer,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The mechanisms of its SASL layer; the last one is nobody's.
const MECHANISMS: [&str; 7] =
    ["PLAIN", "ANONYMOUS", "EXTERNAL", "SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512", "X-NONE"];

/// What it says there. The user is that of the tests that have one.
const SAID: [&[u8]; 13] = [
    b"\0fred\0secret",
    b"\0fred\0wrong",
    b"fred\0fred\0secret",
    b"eve\0fred\0secret",
    b"",
    b"n,,n=fred,r=fyko+d2lbbFgONRv9qkxdawL",
    b"y,a=fred,n=fred,r=fyko",
    b"p=tls-unique,,n=fred,r=fyko",
    b"c=biws,r=fyko,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL,x=y,p=AAAA",
    b"r=fyko+d2lbbFgONRv9qkxdawL,s=QSXCR+Q6sek8bf92,i=4096",
    b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    b"e=invalid-proof",
];

/// Users among whom the peer's user is.
pub fn hostile_users() -> Arc<UserStore> {
    let mut users = Users::default();
    users.set("fred", "secret", &Hash::ALL, 4096).expect("a user");
    Arc::new(UserStore::new(users).expect("the system has random numbers"))
}

/// Draws the peer's frames: mostly such that they mean something, since what is refused at the door tells
/// little.
pub struct Peer {
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
    /// The peer's links, by the engine's channel and handle.
    handles: BTreeMap<(u16, u32), (u16, u32)>,
}

struct Link {
    role: Role,
    name: String,
    /// As sender: deliveries that it may send.
    credit: u32,
}

#[derive(Default)]
struct Session {
    links: BTreeMap<u32, Link>,
    /// Links on which a delivery is under way.
    under_way: BTreeSet<u32>,
    next_delivery_id: u32,
    /// Transfers that came.
    came: u32,
}

impl Peer {
    pub fn new(random: fastrand::Rng, channel_max: u16) -> Self {
        let mut peer = Self {
            random,
            wildness: 0,
            channel_max: channel_max.min(2),
            sessions: BTreeMap::new(),
            channels: BTreeMap::new(),
            begins: Vec::new(),
            attaches: Vec::new(),
            ends: Vec::new(),
            handles: BTreeMap::new(),
        };
        peer.wildness = [0, 60, 255][peer.random.usize(0..3)];
        peer
    }

    /// Takes note of what the engine sent.
    pub fn recv(&mut self, channel: u16, performative: &Performative<'_>) {
        match performative {
            Performative::Begin(begin) => match begin.remote_channel {
                None => self.begins.push(channel),
                Some(ours) => {
                    self.channels.insert(channel, ours);
                }
            },
            Performative::Attach(attach) => {
                let session =
                    self.channels.get(&channel).and_then(|ours| Some((*ours, self.sessions.get(ours)?)));
                let ours = session.and_then(|(ours, session)| {
                    let is_it = |link: &Link| link.name == attach.name && link.role == attach.role.opposite();
                    Some((ours, *session.links.iter().find(|(_, link)| is_it(link))?.0))
                });
                match ours {
                    Some(ours) => {
                        self.handles.insert((channel, attach.handle), ours);
                    }
                    None => self.attaches.push((channel, attach.name.to_owned(), attach.role)),
                }
            }
            Performative::Flow(flow) => {
                let ours = flow.handle.and_then(|handle| self.handles.get(&(channel, handle)));
                if let Some(&(channel, handle)) = ours
                    && let Some(session) = self.sessions.get_mut(&channel)
                    && let Some(link) = session.links.get_mut(&handle)
                {
                    link.credit = flow.link_credit.unwrap_or(0);
                }
            }
            Performative::End(_) => self.ends.extend(self.channels.remove(&channel)),
            Performative::Transfer(_) => {
                let ours = self.channels.get(&channel);
                if let Some(session) = ours.and_then(|ours| self.sessions.get_mut(ours)) {
                    session.came = session.came.wrapping_add(1);
                }
            }
            Performative::Open(_)
            | Performative::Disposition(_)
            | Performative::Detach(_)
            | Performative::Close(_) => {}
        }
    }

    fn is_wild(&mut self) -> bool {
        let wildness = self.wildness;
        wildness > 0 && self.chance(wildness)
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
            .filter(|(_, link)| role.is_none_or(|role| role == link.role))
            .filter(|(handle, link)| {
                role != Some(Role::Sender) || link.credit > 0 || session.under_way.contains(handle)
            })
            .map(|(handle, _)| *handle)
            .collect();
        (!links.is_empty()).then(|| links[self.random.usize(0..links.len())])
    }

    fn chance(&mut self, one_in: u8) -> bool {
        self.random.u8(0..one_in) == 0
    }

    fn text(&mut self) -> String {
        let length = if self.chance(40) { self.random.usize(0..900) } else { self.random.usize(0..5) };
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

    pub fn frame(&mut self) -> Vec<u8> {
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
            0 if self.chance(2) => self.begin(),
            1..6 => self.attach(channel),
            6..18 => self.flow(channel),
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
            50 | 51 if self.chance(2) => {
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
            incoming_window: if self.chance(4) { self.number() } else { 100 },
            outgoing_window: self.number(),
            handle_max: if self.chance(4) { self.number() } else { u32::MAX },
            ..Begin::default()
        };
        frame(channel, &begin, &[])
    }

    fn flow(&mut self, channel: u16) -> Vec<u8> {
        let handle = if self.chance(5) { None } else { self.handle(channel, None) };
        let came = self.sessions.get(&channel).map(|session| session.came);
        let flow = Flow {
            next_incoming_id: if self.chance(8) { self.maybe() } else { came },
            incoming_window: if self.chance(4) { self.number() } else { 100 },
            next_outgoing_id: self.number(),
            outgoing_window: self.number(),
            handle,
            delivery_count: self.maybe(),
            link_credit: if self.chance(4) { self.maybe() } else { Some(self.random.u32(0..50)) },
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
        let link = Link { role, name: name.clone(), credit: 0 };
        self.sessions.entry(channel).or_default().links.insert(handle, link);
        let address = match self.random.u8(0..16) {
            0 => self.text(),
            1 => "u/x".to_owned(),
            2 => String::new(),
            3..8 => "m/1".to_owned(),
            _ => "q".to_owned(),
        };
        let source = Source { address: Some(&address), dynamic: self.chance(10), ..Source::default() };
        let target = match self.random.u8(0..20) {
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
            source: if self.chance(20) { None } else { Some(source) },
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
        match self.random.u8(0..8) {
            0 => {}
            // A section of properties with a `to`, for anonymous senders, before one of data.
            1 | 2 => {
                let to: &[u8] = [&b"q"[..], b"m/1", b"none"][self.random.usize(0..3)];
                let mut front =
                    vec![0, 0x53, 0x73, 0xc0, 5 + to.len() as u8, 3, 0x40, 0x40, 0xa1, to.len() as u8];
                front.extend(to);
                front.extend([0, 0x53, 0x75, 0xb0, 0, 0, 1, 44]);
                payload.splice(0..0, front);
            }
            _ => {
                payload.splice(0..0, [0, 0x53, 0x75, 0xb0, 0, 0, 1, 44]);
            }
        }
        let is_wild = self.is_wild();
        let (more, aborted) = (self.random.bool(), self.chance(12));
        let Some(session) = self.sessions.get_mut(&channel) else { return Vec::new() };
        let is_first = !session.under_way.contains(&handle) ^ is_wild;
        let right = session.next_delivery_id;
        if is_first && let Some(link) = session.links.get_mut(&handle) {
            link.credit = link.credit.saturating_sub(1);
        }
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

    /// SASL frames in an order that now and then makes sense, with more or less of a mechanism's messages in them.
    pub fn exchange(&mut self, side: Side) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mechanism = MECHANISMS[self.random.usize(..MECHANISMS.len())];
        if side == Side::Initiator {
            let mechanisms: Vec<&str> = (0..self.random.usize(1..5))
                .map(|_| MECHANISMS[self.random.usize(..MECHANISMS.len())])
                .collect();
            let sasl_server_mechanisms = Symbols::Slice(&mechanisms);
            bytes.extend(frame_of(FrameKind::Sasl, 0, &SaslMechanisms { sasl_server_mechanisms }, &[]));
        }
        for _ in 0..self.random.usize(1..5) {
            let said = self.said(mechanism);
            // The kinds of frame that the side which is tried takes, mostly.
            let kind = match side {
                Side::Acceptor if !self.is_wild() => self.random.u8(0..2),
                Side::Initiator if !self.is_wild() => self.random.u8(2..4),
                Side::Acceptor | Side::Initiator => self.random.u8(0..5),
            };
            bytes.extend(match kind {
                0 => {
                    let mechanism = Symbol(mechanism);
                    let initial_response = self.random.bool().then_some(said.as_slice());
                    frame_of(
                        FrameKind::Sasl,
                        0,
                        &SaslInit { mechanism, initial_response, hostname: None },
                        &[],
                    )
                }
                1 => frame_of(FrameKind::Sasl, 0, &SaslResponse { response: &said }, &[]),
                2 => frame_of(FrameKind::Sasl, 0, &SaslChallenge { challenge: &said }, &[]),
                3 => {
                    let code = if self.random.bool() { SaslCode::Ok } else { SaslCode::SysTemp };
                    let additional_data = self.random.bool().then_some(said.as_slice());
                    frame_of(FrameKind::Sasl, 0, &SaslOutcome { code, additional_data }, &[])
                }
                _ => {
                    let sasl_server_mechanisms = Symbols::Slice(&MECHANISMS);
                    frame_of(FrameKind::Sasl, 0, &SaslMechanisms { sasl_server_mechanisms }, &[])
                }
            });
        }
        bytes
    }

    /// A mechanism's message, right or not quite.
    fn said(&mut self, mechanism: &str) -> Vec<u8> {
        let its = match mechanism {
            "PLAIN" => &SAID[..5],
            name if name.starts_with("SCRAM") => &SAID[4..],
            _ => &SAID,
        };
        let mut said = its[self.random.usize(..its.len())].to_vec();
        match self.random.u8(0..6) {
            0 => said.truncate(self.random.usize(0..=said.len())),
            1 if !said.is_empty() => {
                let at = self.random.usize(..said.len());
                said[at] = self.random.u8(..);
            }
            2 => {
                let at = self.random.usize(0..=said.len());
                said.insert(at, b",=\0"[self.random.usize(0..3)]);
            }
            3 if self.is_wild() => said.extend(vec![b'x'; self.random.usize(0..600)]),
            _ => {}
        }
        said
    }

    /// The beginning of the conversation, mostly as it should be.
    pub fn prefix(&mut self, side: Side, sasl: SaslPolicy) -> Vec<u8> {
        let mut bytes = Vec::new();
        if sasl == SaslPolicy::Required || (side == Side::Acceptor && self.random.bool()) {
            bytes.extend(ProtocolHeader::SASL.to_bytes());
            bytes.extend(match side {
                Side::Acceptor | Side::Initiator if self.random.u8(0..3) == 0 => self.exchange(side),
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
