//! The connections of a shard.

use super::guard::{HalfOpen, HalfOpenLimits};
use super::mailbox::DialledEvent;
use super::policy::Governed;
use super::rest::Rest;
use super::share::Share;
use super::tls::{Tls, TlsSettings};
use super::{Core, Party, Peer};
use crate::base::buffer::Output;
use crate::base::id::{ConnectionKey, LinkKey, ShardId};
use crate::base::time::Instant;
use crate::engine::sasl::Transport;
use crate::engine::{Connection, OfDelivery, Progress, Settings, Side};
use crate::routing::policy;
use ringmain_codec::{Symbol, Value, Writer};
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// What a connection is for (the attribute `role` of its listener or connector).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ConnectionRole {
    /// Clients.
    #[default]
    Normal,
    /// A broker or the like: auto-links are attached to its nodes.
    RouteContainer,
}

impl ConnectionRole {
    /// The name that the configuration and management have for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::RouteContainer => "route-container",
        }
    }
}

/// What the configuration of a listener or connector means for its connections, beside the engine's settings. The default asks
/// for nothing, and gives no credit.
#[derive(Clone, Debug, Default)]
pub struct ListenerSettings {
    /// What our open says and our end keeps to.
    pub engine: Settings,
    /// The name of the listener or connector; empty: it has none.
    pub name: String,
    /// What the connections are for.
    pub role: ConnectionRole,
    /// Of a connection that we dial: HOST:PORT, as the configuration or the peer itself named it.
    pub dialled: Option<String>,
    /// The shard that serves its connections; `None`: the one with the fewest.
    pub shard: Option<ShardId>,
    /// The credit that a sender has at the most.
    pub link_capacity: u32,
    /// The largest message taken, in bytes; 0: any.
    pub max_message_size: u64,
    /// The vhost whose policy holds for its connections, whatever they ask for.
    pub policy_vhost: Option<String>,
    /// Whether annotations of routers are taken out of what comes.
    pub strip_in: bool,
    /// Whether annotations of routers are taken out of what goes.
    pub strip_out: bool,
    /// Whether the frames of its connections are logged, whatever the log's levels are.
    pub trace: bool,
    /// How its connections are encrypted; `None`: not at all.
    pub tls: Option<Arc<TlsSettings>>,
    /// Whether they are encrypted before their bytes come to the shard.
    pub is_encrypted_outside: bool,
    /// How many connections may be under way to their open.
    pub half_open: HalfOpenLimits,
    /// What of messages is logged: names of `messageLoggingComponents`; empty: nothing.
    pub logged_components: Vec<String>,
    /// What the configuration adds to the open's properties: keys, and their encoded values.
    pub open_properties: Vec<(String, Vec<u8>)>,
}

/// The settings of a listener as a shard keeps them.
#[derive(Clone, Debug)]
pub struct SharedSettings {
    /// For the engine.
    pub engine: Rc<Settings>,
    /// All of them.
    pub listener: Rc<ListenerSettings>,
}

impl SharedSettings {
    /// Makes them ready to be shared by a shard's connections.
    #[must_use]
    pub fn new(settings: ListenerSettings) -> Self {
        Self { engine: Rc::new(settings.engine.clone()), listener: Rc::new(settings) }
    }
}

/// One connection.
pub struct Slot {
    /// Its number in logs, unique in the life of the router.
    pub id: u64,
    /// The protocol.
    pub engine: Connection<Peer>,
    /// What it has to send.
    pub out: Output,
    /// What encrypts that, and decrypts what comes; `None`: nothing does.
    pub(super) tls: Option<Box<Tls>>,
    /// The beginning of a frame whose rest hasn't come yet.
    pub partial: Vec<u8>,
    /// Its listener's settings.
    pub listener: Rc<ListenerSettings>,
    /// Where it comes from.
    pub origin: Origin,
    /// Who is at its other end.
    pub party: Party,
    /// Who dialled it, and waits to hear what becomes of it.
    pub dialler: Option<Sender<DialledEvent>>,
    /// The peer's container-id.
    pub container: Box<str>,
    /// Whether a send is under way.
    pub sending: bool,
    /// Whether it is in the list of those to flush.
    pub dirty: bool,
    /// Whether it isn't read because its peer doesn't take what we send.
    pub paused: bool,
    /// Whether it isn't read because the shard holds too much payload.
    pub over_budget: bool,
    /// Whether it only keeps alive.
    pub(super) rest: Rest,
    /// What it has had of the turn.
    pub share: Share,
    /// Payload of it that stays in the router for now.
    pub held_bytes: usize,
    /// Links that are attached on it, or being attached.
    pub links: usize,
    /// When the kernel last took something for it.
    pub progress: Instant,
    /// Whether the peer sends nothing more: the socket is closed when what we have to say has gone.
    pub peer_ended: bool,
    /// Outgoing links that wait for the output to drain or a window to open.
    pub blocked: VecDeque<LinkKey>,
    /// The moment that its earliest entry among the timers stands for.
    pub armed: Option<Instant>,
    /// Whether its sessions and links have been dealt with: it is only waited for to go.
    pub over: bool,
    /// Whether the driver was told to close it.
    pub closing: bool,
    /// The report that its output waits for.
    pub held_for: Option<u64>,
    /// What the policy allows it, where it governs it.
    pub governed: Option<Box<Governed>>,
    /// Counts it with the clients of the router.
    pub counted: Option<policy::counts::Presence>,
    /// The largest message taken, in bytes; 0: any.
    pub max_message_size: u64,
    /// Whether that limit is the policy's, which closes the connection of who exceeds it.
    pub closes_on_large_message: bool,
    /// Counts it until the peer's open has come.
    pub half_open: Option<HalfOpen>,
    /// When the peer's open came.
    pub opened_at: Instant,
    /// When a delivery last came or went; the driver's zero: none has.
    pub last_delivery: Instant,
    /// The properties of the peer's open, encoded; empty: it has none.
    pub properties: Box<[u8]>,
    /// Whether its frames are logged, whatever the log's levels are.
    pub trace: bool,
}

/// Where a connection comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A client at that address.
    Client(SocketAddr),
    /// We dialled that address, for a connector.
    Connector(SocketAddr),
    /// Another shard of this router.
    Neighbour(ShardId),
    /// This router's management agent.
    Agent,
}

impl Slot {
    /// Puts it into the list of those that have something to flush at the end of the turn.
    #[inline]
    pub fn mark_dirty(&mut self, key: ConnectionKey, list: &mut Vec<ConnectionKey>) {
        if !self.dirty {
            self.dirty = true;
            list.push(key);
        }
    }

    /// Whether both of its ends are the router's own: nobody outside is told of it.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        !self.party.is_outside()
    }

    /// Whether it leads to another shard.
    #[inline]
    #[must_use]
    pub fn is_neighbour(&self) -> bool {
        matches!(self.origin, Origin::Neighbour(_))
    }

    /// Which side opened it, as logs and management have it.
    #[must_use]
    pub fn direction(&self) -> &'static str {
        match self.origin {
            Origin::Client(_) => "in",
            Origin::Connector(_) => "out",
            Origin::Neighbour(_) | Origin::Agent => "internal",
        }
    }

    /// The same as a word before the peer's address.
    #[must_use]
    pub(super) fn preposition(&self) -> &'static str {
        match self.origin {
            Origin::Client(_) | Origin::Neighbour(_) | Origin::Agent => "from",
            Origin::Connector(_) => "to",
        }
    }

    /// The peer's host and port: as they were named where we dialled, else as the kernel tells them.
    #[must_use]
    pub fn host(&self) -> String {
        self.listener.dialled.clone().unwrap_or_else(|| self.origin.to_string())
    }

    /// The SASL mechanism that the peers went through; `None`: they left the layer out.
    #[must_use]
    pub fn mechanism(&self) -> Option<&'static str> {
        self.engine.identity().map(|identity| identity.mechanism)
    }

    /// Whether it is encrypted, as logs have it: the version of TLS, `yes` or `no`.
    #[must_use]
    pub fn encryption(&self) -> &'static str {
        let transport = self.engine.transport();
        match transport.encryption {
            Some(encryption) => encryption.version,
            None if transport.is_encrypted => "yes",
            None => "no",
        }
    }

    /// The peer's name: that by which it has authenticated itself, or `anonymous`.
    #[must_use]
    pub fn user(&self) -> &str {
        self.engine.identity().and_then(|identity| identity.user.as_deref()).unwrap_or("anonymous")
    }

    /// Tells who dialled it that it is over, and why. Of several reasons the first is told.
    pub(super) fn tell_ended(&mut self, reason: impl FnOnce() -> String) {
        if let Some(dialler) = self.dialler.take() {
            // There is room for it: a dialler is told at most two things.
            let _ = dialler.try_send(DialledEvent::Ended(reason()));
        }
    }
}

impl Origin {
    /// The address of a peer outside.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Client(address) | Self::Connector(address) => Some(*address),
            Self::Neighbour(_) | Self::Agent => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(address) | Self::Connector(address) => fmt::Display::fmt(address, f),
            Self::Neighbour(shard) => write!(f, "shard-{}", shard.0),
            Self::Agent => f.write_str("agent"),
        }
    }
}

impl Core {
    /// Makes a slot for an accepted connection.
    pub(super) fn accept(
        &mut self,
        address: SocketAddr,
        settings: &SharedSettings,
        half_open: Option<HalfOpen>,
        counted: policy::counts::Presence,
    ) -> ConnectionKey {
        let key = self.add_slot(Origin::Client(address), settings, Side::Acceptor);
        if let Some(slot) = self.connections.get_mut(key) {
            slot.half_open = half_open;
            slot.counted = Some(counted);
        }
        key
    }

    /// Makes a slot for a connection that was dialled.
    pub(super) fn dial(
        &mut self,
        address: SocketAddr,
        settings: &SharedSettings,
        dialler: Sender<DialledEvent>,
    ) -> ConnectionKey {
        let key = self.add_slot(Origin::Connector(address), settings, Side::Initiator);
        if let Some(slot) = self.connections.get_mut(key) {
            slot.dialler = Some(dialler);
        }
        self.govern_dialled(key);
        key
    }

    /// Makes a slot for a connection.
    pub(super) fn add_slot(
        &mut self,
        origin: Origin,
        settings: &SharedSettings,
        side: Side,
    ) -> ConnectionKey {
        let party = match (origin, settings.listener.role) {
            (Origin::Neighbour(_), _) => Party::Shard,
            (Origin::Agent, _) => Party::Agent,
            (Origin::Client(_) | Origin::Connector(_), ConnectionRole::Normal) => Party::Client,
            (Origin::Client(_) | Origin::Connector(_), ConnectionRole::RouteContainer) => Party::Container,
        };
        let id = self.next_connection_id;
        self.next_connection_id += self.id_step;
        let mut out = Output::new(self.pool.clone());
        let mut engine = Connection::new(settings.engine.clone(), side, self.now, &mut out);
        if settings.listener.is_encrypted_outside {
            engine.set_transport(Transport { is_encrypted: true, ..Transport::default() });
        }
        engine.set_open_properties(open_properties(&settings.listener.open_properties, id));
        let key = self.connections.insert(Slot {
            id,
            engine,
            out,
            tls: settings.listener.tls.as_ref().map(|tls| Box::new(Tls::new(tls, self.pool.clone()))),
            partial: Vec::new(),
            listener: settings.listener.clone(),
            origin,
            party,
            dialler: None,
            container: Box::default(),
            sending: false,
            dirty: false,
            paused: false,
            over_budget: false,
            rest: Rest::default(),
            share: Share::default(),
            held_bytes: 0,
            links: 0,
            progress: self.now,
            peer_ended: false,
            blocked: VecDeque::new(),
            armed: None,
            over: false,
            closing: false,
            held_for: None,
            governed: None,
            counted: None,
            max_message_size: settings.listener.max_message_size,
            closes_on_large_message: false,
            half_open: None,
            opened_at: self.now,
            last_delivery: Instant::default(),
            properties: Box::default(),
            trace: settings.listener.trace,
        });
        self.mark_dirty(key);
        if side == Side::Initiator {
            self.begin_tls(key);
        }
        key
    }

    /// Takes what the peer of a connection sent.
    pub(super) fn recv(&mut self, key: ConnectionKey, bytes: &[u8]) {
        let Some(slot) = self.connections.get_mut(key) else { return };
        if slot.is_traced() {
            slot.trace_received(bytes);
        }
        slot.mark_dirty(key, &mut self.dirty);
        slot.engine.heard(self.now);
        let party = slot.party as usize;
        let before = self.counters[party].ingress;
        self.recv_bytes(key, bytes);
        if self.counters[party].ingress != before
            && let Some(slot) = self.connections.get_mut(key)
        {
            slot.last_delivery = self.now;
        }
    }

    pub(super) fn recv_bytes(&mut self, key: ConnectionKey, bytes: &[u8]) {
        let Some(slot) = self.connections.get_mut(key) else { return };
        let mut rest = bytes;
        let mut unit = std::mem::take(&mut slot.partial);
        if !unit.is_empty() {
            rest = self.complete_unit(key, &mut unit, rest);
        }
        if unit.is_empty() {
            let consumed = self.recv_units(key, rest);
            rest = &rest[consumed..];
            if !rest.is_empty() {
                if unit.capacity() == 0 {
                    unit = self.spare.buffer();
                }
                unit.extend_from_slice(rest);
            }
        }
        match self.connections.get_mut(key) {
            Some(slot) if !unit.is_empty() => slot.partial = unit,
            // A connection holds memory for this only while frames straddle buffers.
            Some(_) | None => self.spare.keep_buffer(unit),
        }
    }

    /// Adds to `unit`, the beginning of a frame, what completes it, and takes it. Returns what is left of
    /// `rest`; `unit` is empty if it was completed.
    fn complete_unit<'b>(&mut self, key: ConnectionKey, unit: &mut Vec<u8>, mut rest: &'b [u8]) -> &'b [u8] {
        loop {
            let Some(slot) = self.connections.get(key) else {
                unit.clear();
                return &[];
            };
            let wanted = slot.engine.unit_len(unit).saturating_sub(unit.len());
            let taken = wanted.min(rest.len());
            unit.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            let consumed = self.recv_units(key, unit);
            unit.drain(..consumed);
            if unit.is_empty() || rest.is_empty() {
                return rest;
            }
        }
    }

    /// Takes all complete frames, and returns how many bytes they were.
    fn recv_units(&mut self, key: ConnectionKey, bytes: &[u8]) -> usize {
        let now = self.now;
        let mut consumed = 0;
        loop {
            let Some(slot) = self.connections.get_mut(key) else { return bytes.len() };
            let progress = match slot.engine.recv_delivery(&bytes[consumed..], now, &mut slot.out) {
                OfDelivery::Transfer(arrived, len) => {
                    consumed += len;
                    self.transfer(key, &arrived);
                    continue;
                }
                OfDelivery::Disposition(disposed, len) => {
                    consumed += len;
                    self.disposition(key, disposed);
                    continue;
                }
                OfDelivery::Done(Progress { consumed: len, event: None }) => {
                    consumed += len;
                    continue;
                }
                OfDelivery::Done(progress) => progress,
                OfDelivery::Other => slot.engine.recv(&bytes[consumed..], now, &mut slot.out),
            };
            consumed += progress.consumed;
            match progress.event {
                Some(event) => self.handle_event(key, event),
                None => return consumed,
            }
        }
    }
}

/// The properties of an open: an encoded map of who we are, the connection's number, and what the
/// configuration adds.
fn open_properties(added: &[(String, Vec<u8>)], id: u64) -> Box<[u8]> {
    let size: usize = added.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
    let mut room = vec![0; size + 256];
    let mut writer = Writer::new(&mut room);
    let written = writer.map(|writer| {
        writer.put(&Symbol("product"))?;
        writer.put("ringmain")?;
        writer.put(&Symbol("version"))?;
        writer.put(env!("CARGO_PKG_VERSION"))?;
        writer.put(&Symbol("qd.conn-id"))?;
        // An int, as the existing routers have it.
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        writer.put(&(id as i32))?;
        for (key, value) in added {
            if let Ok(value) = Value::from_encoded(value) {
                writer.put(&Symbol(key))?;
                writer.put(&value)?;
            }
        }
        Ok(())
    });
    match written {
        Ok(()) => writer.written().into(),
        Err(_) => Box::default(),
    }
}
