//! The engine against input that keeps to no rule: frames that are right by themselves in an order that
//! isn't, fields at random, and bytes that are nothing.

use crate::hostile_peer::{Peer, hostile_users};
use crate::seeds::{for_seeds, trace};
use crate::wire::Watch;
use ringmain::base::buffer::{BufferPool, Output};
use ringmain::base::id::{Channel, Key, Serial};
use ringmain::base::limits::SASL_EARLY_BYTES_MAX;
use ringmain::base::time::Instant;
use ringmain::engine::sasl::{Authenticator, Credentials, Duty, Exchange, Transport};
use ringmain::engine::settings::SaslPolicy;
use ringmain::engine::{Attachment, Cause, Connection, Event, Fault, LinkRef, NewDelivery, Settings, Side};
use ringmain::sasl::{Identification, ListenerAuthenticator, Mechanism, Password, UserStore};
use ringmain_codec::{
    Condition, DeliveryState, ProtocolHeader, ReceiverSettleMode, Role, SenderSettleMode, Source, Target,
    TargetNode,
};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

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
    /// An exchange that has something to compute.
    at_work: Option<Box<dyn Exchange>>,
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
            // The peer may know it as soon as time passes.
            Event::Sasl(Duty::Refuse { .. }) => self.connection.refuse_at(Instant(0)),
            Event::Sasl(Duty::Work(exchange)) => {
                assert!(self.at_work.is_none(), "one exchange works at a time");
                self.at_work = Some(exchange);
            }
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
        let new = NewDelivery { message_format: 0, settled: random.bool(), tag: [1; 8], data: 0, stamp: 0 };
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

/// The users of all runs. (Their salts differ from process to process, which changes no run's course.)
fn users() -> Arc<UserStore> {
    static USERS: OnceLock<Arc<UserStore>> = OnceLock::new();
    USERS.get_or_init(hostile_users).clone()
}

fn authenticator(random: &mut fastrand::Rng) -> Arc<dyn Authenticator> {
    let mechanisms = random.bool().then(|| Mechanism::ALL.into_iter().filter(|_| random.bool()).collect());
    let is_authentication_required = random.bool();
    Arc::new(ListenerAuthenticator { mechanisms, is_authentication_required, users: users() })
}

fn credentials(random: &mut fastrand::Rng) -> Arc<dyn Credentials> {
    let mechanisms = random.bool().then(|| Mechanism::ALL.into_iter().filter(|_| random.bool()).collect());
    let user = random.bool().then(|| ("fred".to_owned(), Password::new("secret".to_owned())));
    Arc::new(Identification::new(mechanisms, user).expect("a user and a password"))
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
        authenticator: random.bool().then(|| authenticator(&mut random)),
        credentials: random.bool().then(|| credentials(&mut random)),
        sasl_frame_max: [512, 4096][random.usize(0..2)],
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
        at_work: None,
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
        if random.u8(0..3) == 0
            && let Some(mut exchange) = user.at_work.take()
        {
            let answer = exchange.work();
            if let Some(event) = user.connection.recv_worked(exchange, answer, now, &mut user.out) {
                user.event(event, &mut random);
            }
            // It comes once more.
            let early = user.connection.take_early();
            assert!(early.len() <= SASL_EARLY_BYTES_MAX);
            came -= early.len();
            inbox.splice(0..0, early);
        }
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

/// Exchanges alone, many of them: each begins anew, since the first fault ends one.
fn exchange(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..20 {
        let side = if random.bool() { Side::Acceptor } else { Side::Initiator };
        let mechanisms = Some(Mechanism::ALL.to_vec());
        let user = Some(("fred".to_owned(), Password::new("secret".to_owned())));
        let credentials = Identification::new(mechanisms.clone(), user).expect("a user and a password");
        let authenticator =
            ListenerAuthenticator { mechanisms, is_authentication_required: true, users: users() };
        let settings = Settings {
            container_id: "us".into(),
            sasl: SaslPolicy::Required,
            authenticator: Some(Arc::new(authenticator)),
            credentials: Some(Arc::new(credentials)),
            ..Settings::default()
        };
        let now = Instant(5_000_000_000);
        let mut out = Output::new(BufferPool::default());
        let mut connection: Connection<u64> = Connection::new(Rc::new(settings), side, now, &mut out);
        connection.set_transport(Transport {
            is_encrypted: random.bool(),
            external_identity: random.bool().then(|| "fred".into()),
            ..Transport::default()
        });
        let mut peer = Peer::new(random.fork(), 1);
        let mut inbox = ProtocolHeader::SASL.to_bytes().to_vec();
        inbox.extend(peer.exchange(side));
        let mut rest = &inbox[..];
        let (mut refused, mut closed) = (false, false);
        let mut cut = random.usize(0..=rest.len());
        loop {
            let progress = connection.recv(&rest[..cut], now, &mut out);
            rest = &rest[progress.consumed..];
            let mut event = progress.event;
            if let Some(Event::Sasl(Duty::Work(mut exchange))) = event {
                assert!(!refused && !closed);
                let answer = exchange.work();
                event = connection.recv_worked(exchange, answer, now, &mut out);
            }
            match event {
                Some(Event::Sasl(Duty::Refuse { .. })) => {
                    assert!(!refused && !closed && side == Side::Acceptor);
                    refused = true;
                    connection.refuse_at(now);
                    let event = connection.handle_timeout(now, &mut out);
                    closed = matches!(event, Some(Event::Closed(_)));
                    assert!(closed, "{event:?}");
                }
                Some(Event::Closed(_)) => {
                    assert!(!closed, "it ends once");
                    closed = true;
                }
                Some(other) => panic!("{other:?}"),
                None if cut == rest.len() + progress.consumed => break,
                None => {}
            }
            cut = if progress.consumed == 0 { rest.len() } else { random.usize(0..=rest.len()) };
        }
        assert!(!(refused && connection.is_authenticated()));
        // Our header, and for each frame of the peer one of 512 bytes at the most.
        assert!(out.take_bytes().len() <= 8 + 6 * 512);
    }
}

#[test]
fn sasl_exchanges_of_any_kind_are_borne() {
    for_seeds("sasl_exchanges_of_any_kind_are_borne", 500, exchange);
}
