//! Connections (AMQP 1.0 §2.4): protocol headers, the SASL layer, open and close, idle time-outs.

use super::event::{Cause, Event, LinkRef, OfDelivery, Progress};
use super::handshake::Handshake;
use super::sasl::{Identity, SaslState};
use super::session::Session;
use super::settings::{SaslPolicy, Settings, Side};
use super::violation::{Fault, Violation};
use super::write;
use crate::base::buffer::Output;
use crate::base::id::{Channel, Key};
use crate::base::limits::{FRAME_BEFORE_OPEN_MAX, PEER_IDLE_TIMEOUT_MS_MIN};
use crate::base::sparse::SparseMap;
use crate::base::time::Instant;
use ringmain_codec::{
    Close, Condition, FrameKind, MIN_MAX_FRAME_SIZE, Open, Performative, ProtocolHeader, ProtocolId, Symbols,
    Value, split_frame,
};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// How long the peer has for its close, once we have sent ours, before the socket is closed over it.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// An idle time-out of the peer of which a quarter is enough for an empty frame's journey.
const LONG_IDLE_TIMEOUT: Duration = Duration::from_secs(8);

/// What the next bytes must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The peer's first protocol header.
    Header,
    /// A frame of the SASL layer.
    Sasl(SaslState),
    /// The protocol header behind the SASL layer.
    HeaderAfterSasl,
    /// A frame of AMQP.
    Frames,
    /// Nothing more is understood: what comes is thrown away until the socket is closed.
    Discard,
}

/// What the peer's open said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// The largest frame that it takes.
    pub(super) max_frame_size: u32,
    /// The highest channel that it takes.
    pub(super) channel_max: u16,
    /// How often it wants to hear from us.
    idle_timeout: Option<Duration>,
}

/// What a connection holds, in numbers: all zero when its sessions have gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holdings {
    /// Sessions, also those whose end isn't answered yet.
    pub sessions: usize,
    /// Channels on which the peer may send.
    pub channels: usize,
    /// Links, also those whose detach isn't answered yet.
    pub links: usize,
    /// Names of links.
    pub names: usize,
    /// Deliveries that aren't settled, both ways.
    pub unsettled: usize,
}

/// One end of an AMQP connection. `D` is what its user keeps with each unsettled delivery.
#[derive(Debug)]
pub struct Connection<D> {
    pub(super) settings: Rc<Settings>,
    pub(super) side: Side,
    pub(super) stage: Stage,
    open_sent: bool,
    open_received: bool,
    pub(super) close_sent: bool,
    close_received: bool,
    pub(super) peer: Peer,
    /// By our channel.
    pub(super) sessions: Vec<Option<Box<Session<D>>>>,
    /// Our channels, by the peer's.
    pub(super) channels: SparseMap<Channel>,
    /// The links by name: those on which we receive, those on which we send. A name means one link of a
    /// connection in each direction (§2.6.1).
    pub(super) names: [HashMap<Rc<str>, LinkRef>; 2],
    /// Sessions so far, for their generations.
    pub(super) sessions_begun: u32,
    /// Sessions with something to flush.
    pub(super) dirty: SmallVec<[Channel; 4]>,
    started: Instant,
    heard: Instant,
    spoke: Instant,
    at_rest: bool,
    closing_since: Option<Instant>,
    /// The properties of the open, until it is sent: an encoded map.
    open_properties: Box<[u8]>,
    /// Whether nothing but a close may be written any more.
    silent: bool,
    /// Whether the user was told that the connection is closed.
    closed_told: bool,
    /// What was needed until the peer was known.
    pub(super) handshake: Box<Handshake>,
    /// Who it is.
    pub(super) identity: Option<Identity>,
    /// Whether the peer has had its time: the socket goes now, whatever is still to be sent.
    given_up: bool,
}

impl<D: Copy + Default> Connection<D> {
    /// A fresh connection. As initiator it writes its protocol header (and, without SASL, its open).
    #[must_use]
    pub fn new(settings: Rc<Settings>, side: Side, now: Instant, out: &mut Output) -> Self {
        let mut connection = Self {
            settings,
            side,
            stage: Stage::Header,
            open_sent: false,
            open_received: false,
            close_sent: false,
            close_received: false,
            peer: Peer { max_frame_size: MIN_MAX_FRAME_SIZE, channel_max: 0, idle_timeout: None },
            sessions: Vec::new(),
            channels: SparseMap::default(),
            names: [HashMap::new(), HashMap::new()],
            sessions_begun: 0,
            dirty: SmallVec::new(),
            started: now,
            heard: now,
            spoke: now,
            at_rest: false,
            closing_since: None,
            open_properties: Box::default(),
            silent: false,
            closed_told: false,
            handshake: Box::default(),
            identity: None,
            given_up: false,
        };
        match (side, connection.settings.sasl) {
            (Side::Acceptor, SaslPolicy::Optional | SaslPolicy::Required) => {}
            (Side::Initiator, SaslPolicy::Required) => write::bytes(out, &ProtocolHeader::SASL.to_bytes()),
            (Side::Initiator, SaslPolicy::Optional) => {
                write::bytes(out, &ProtocolHeader::AMQP.to_bytes());
                connection.send_open(out);
            }
        }
        connection
    }

    /// Whether the peer's open has come and nothing was closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open_sent && self.open_received && !self.close_sent && !self.close_received
    }

    /// Whether the peer's open has come.
    #[must_use]
    pub fn is_open_received(&self) -> bool {
        self.open_received
    }

    /// Whether the peers went through the SASL layer.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.identity.is_some()
    }

    /// Whether nothing more will be said: once the output has gone, the socket can be closed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.close_received && self.close_sent
    }

    /// Whether the peer has had its time to take our last words and to answer: the socket can be closed
    /// whatever is still to be sent.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Whether we have said our last word: what is in the output is all that will ever be sent.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.close_sent || self.stage == Stage::Discard
    }

    /// Takes bytes of the peer, up to and with the first frame that its user must know of.
    ///
    /// Call it again with the rest while it returns an event. A fault of the peer closes what it concerns
    /// and comes as an event too.
    pub fn recv<'b>(&mut self, input: &'b [u8], now: Instant, out: &mut Output) -> Progress<'b> {
        let mut rest = input;
        loop {
            let before = rest;
            let step = match self.stage {
                Stage::Discard => return Progress { consumed: input.len(), event: None },
                Stage::Header => self.recv_header(rest, now, out),
                Stage::HeaderAfterSasl => self.recv_header_after_sasl(rest, now, out),
                Stage::Sasl(state) => self.recv_sasl(state, rest, now, out),
                Stage::Frames => self.recv_frame(rest, now, out),
            };
            match step {
                Ok(Some((event, left))) => {
                    rest = left;
                    if let Some(event) = event {
                        return Progress { consumed: input.len() - rest.len(), event: Some(event) };
                    }
                }
                Ok(None) => return Progress { consumed: input.len() - before.len(), event: None },
                Err(violation) => {
                    let (event, after) = self.violated(violation, before, now, out);
                    rest = after;
                    if event.is_some() {
                        return Progress { consumed: input.len() - rest.len(), event };
                    }
                }
            }
        }
    }

    /// Takes the next frame if it is a transfer or a disposition, of which a busy connection's input consists. It does
    /// nothing that [`recv`](Self::recv) doesn't do too, but what comes of it isn't moved about as an event.
    #[inline(always)]
    pub fn recv_delivery<'b>(&mut self, input: &'b [u8], now: Instant, out: &mut Output) -> OfDelivery<'b> {
        if self.stage != Stage::Frames || !self.open_received || self.close_sent {
            return OfDelivery::Other;
        }
        let Ok(Some((frame, rest))) = split_frame(input, self.settings.max_frame_size) else {
            return OfDelivery::Other;
        };
        if frame.kind != FrameKind::Amqp {
            return OfDelivery::Other;
        }
        let consumed = input.len() - rest.len();
        let violation = if let Ok(Some((transfer, payload))) = Performative::transfer(frame.body) {
            match self.recv_transfer(frame.channel, &transfer, payload) {
                Ok(Some(arrived)) => return OfDelivery::Transfer(arrived, consumed),
                Ok(None) => return OfDelivery::Done(Progress { consumed, event: None }),
                Err(violation) => violation,
            }
        } else if let Ok(Some(disposition)) = Performative::disposition(frame.body) {
            match self.recv_disposition(frame.channel, &disposition) {
                Ok(Some(disposed)) => return OfDelivery::Disposition(disposed, consumed),
                Ok(None) => return OfDelivery::Done(Progress { consumed, event: None }),
                Err(violation) => violation,
            }
        } else {
            return OfDelivery::Other;
        };
        let (event, rest) = self.violated(violation, input, now, out);
        OfDelivery::Done(Progress { consumed: input.len() - rest.len(), event })
    }

    /// Answers a violation by the frame that `input` begins with. Only that frame is passed over: what follows it is
    /// returned. Where that can't be told, the peer's close can't be found either.
    #[cold]
    fn violated<'b>(
        &mut self,
        violation: Violation,
        input: &'b [u8],
        now: Instant,
        out: &mut Output,
    ) -> (Option<Event<'b>>, &'b [u8]) {
        let event = self.answer_violation(violation, now, out);
        match split_frame(input, self.frame_max()) {
            Ok(Some((_, after))) => (event, after),
            Ok(None) | Err(_) => {
                self.stage = Stage::Discard;
                (event, &[])
            }
        }
    }

    fn recv_header<'b>(&mut self, input: &'b [u8], now: Instant, out: &mut Output) -> Step<'b> {
        let header = match ProtocolHeader::decode(input) {
            Ok(None) => return Ok(None),
            Ok(Some(header)) => header,
            Err(malformed) => return Ok(Some((Some(self.refuse_header(malformed.into(), now, out)), &[]))),
        };
        let rest = &input[ProtocolHeader::LEN..];
        if self.side == Side::Acceptor
            && self.settings.is_encryption_required
            && !self.handshake.transport().is_encrypted
        {
            let fault =
                Fault::new(Condition::UNAUTHORIZED_ACCESS, "Client connection unencrypted - forbidden");
            return Ok(Some((Some(self.refuse_header(fault, now, out)), &[])));
        }
        let sasl_required = self.settings.sasl == SaslPolicy::Required;
        let supported = (header.major, header.minor, header.revision) == (1, 0, 0);
        match (header.id, self.side) {
            (ProtocolId::Amqp, Side::Acceptor) if supported && !sasl_required => {
                write::bytes(out, &ProtocolHeader::AMQP.to_bytes());
                self.stage = Stage::Frames;
            }
            (ProtocolId::Sasl, Side::Acceptor) if supported => {
                write::bytes(out, &ProtocolHeader::SASL.to_bytes());
                if let Err(fault) = self.start_sasl(out) {
                    return Ok(Some((Some(self.fail_silently(fault, now)), &[])));
                }
            }
            (ProtocolId::Amqp, Side::Initiator) if supported && !sasl_required => self.stage = Stage::Frames,
            (ProtocolId::Sasl, Side::Initiator) if supported && sasl_required => {
                if let Err(fault) = self.start_sasl(out) {
                    return Ok(Some((Some(self.fail_silently(fault, now)), &[])));
                }
            }
            (ProtocolId::Amqp | ProtocolId::Tls | ProtocolId::Sasl, Side::Acceptor | Side::Initiator) => {
                let fault = Fault::describe(
                    Condition::NOT_IMPLEMENTED,
                    format!(
                        "the peer {} protocol {:?} {}.{}.{}, which {}",
                        if self.side == Side::Acceptor { "asks for" } else { "answers with" },
                        header.id,
                        header.major,
                        header.minor,
                        header.revision,
                        if self.side == Side::Acceptor { "isn't served here" } else { "we didn't ask for" }
                    ),
                );
                return Ok(Some((Some(self.refuse_header(fault, now, out)), &[])));
            }
        }
        Ok(Some((None, rest)))
    }

    /// Answers a protocol header that isn't served with one that is, after which the socket is closed
    /// (§2.2).
    fn refuse_header(&mut self, fault: Fault, now: Instant, out: &mut Output) -> Event<'static> {
        if self.side == Side::Acceptor {
            let is_too_open =
                self.settings.is_encryption_required && !self.handshake.transport().is_encrypted;
            let served = match self.settings.sasl {
                SaslPolicy::Required | SaslPolicy::Optional if is_too_open => ProtocolHeader::TLS,
                SaslPolicy::Required => ProtocolHeader::SASL,
                SaslPolicy::Optional => ProtocolHeader::AMQP,
            };
            write::bytes(out, &served.to_bytes());
        }
        self.end_silently(now);
        Event::Closed(Cause::Ours(fault))
    }

    fn recv_header_after_sasl<'b>(&mut self, input: &'b [u8], now: Instant, out: &mut Output) -> Step<'b> {
        let header = match ProtocolHeader::decode(input) {
            Ok(None) => return Ok(None),
            Ok(Some(header)) => header,
            Err(malformed) => return Ok(Some((Some(self.refuse_header(malformed.into(), now, out)), &[]))),
        };
        if header != ProtocolHeader::AMQP {
            let fault =
                Fault::new(Condition::NOT_IMPLEMENTED, "only AMQP 1.0.0 is served behind the SASL layer");
            write::bytes(out, &ProtocolHeader::AMQP.to_bytes());
            self.end_silently(now);
            return Ok(Some((Some(Event::Closed(Cause::Ours(fault))), &[])));
        }
        self.stage = Stage::Frames;
        if self.side == Side::Acceptor {
            write::bytes(out, &ProtocolHeader::AMQP.to_bytes());
        }
        Ok(Some((None, &input[ProtocolHeader::LEN..])))
    }

    /// Nothing more is said or understood.
    pub(super) fn end_silently(&mut self, now: Instant) {
        self.stage = Stage::Discard;
        self.close_sent = true;
        self.close_received = true;
        self.closing_since.get_or_insert(now);
    }

    /// The largest frame that the peer may send now (§2.4.1, §2.7.1).
    #[inline]
    fn frame_max(&self) -> u32 {
        if self.open_received { self.settings.max_frame_size } else { FRAME_BEFORE_OPEN_MAX }
    }

    #[inline]
    fn recv_frame<'b>(&mut self, input: &'b [u8], now: Instant, out: &mut Output) -> Step<'b> {
        let Some((frame, rest)) = split_frame(input, self.frame_max())? else { return Ok(None) };
        if frame.kind != FrameKind::Amqp {
            return Err(Violation::connection(
                Condition::FRAMING_ERROR,
                "a SASL frame came outside the SASL layer",
            ));
        }
        if frame.body.is_empty() {
            return Ok(Some((None, rest)));
        }
        let (performative, payload) = Performative::decode(frame.body)?;
        if self.close_sent && !matches!(performative, Performative::Close(_)) {
            return Ok(Some((None, rest)));
        }
        if !self.open_received && !matches!(performative, Performative::Open(_) | Performative::Close(_)) {
            return Err(Violation::connection(
                Condition::NOT_ALLOWED,
                format!("{} came before open", performative.name()),
            ));
        }
        let event = match performative {
            Performative::Transfer(transfer) => {
                self.recv_transfer(frame.channel, &transfer, payload)?.map(Event::Transfer)
            }
            Performative::Disposition(disposition) => {
                self.recv_disposition(frame.channel, &disposition)?.map(Event::Disposition)
            }
            Performative::Flow(flow) => self.recv_flow(frame.channel, &flow, out)?,
            Performative::Open(open) => Some(self.recv_open(frame.channel, open)?),
            Performative::Begin(begin) => self.recv_begin(frame.channel, &begin, out)?,
            Performative::Attach(attach) => {
                let (event, again) = self.recv_attach(frame.channel, attach, out)?;
                if again {
                    // The frame comes once more, after the link that it displaced is out of the way.
                    return Ok(Some((event, input)));
                }
                event
            }
            Performative::Detach(detach) => self.recv_detach(frame.channel, &detach, out)?,
            Performative::End(end) => self.recv_end(frame.channel, &end, out)?,
            Performative::Close(close) => self.recv_close(&close, now, out),
        };
        Ok(Some((event, rest)))
    }

    fn recv_open<'b>(&mut self, channel: u16, open: Open<'b>) -> Result<Event<'b>, Violation> {
        if self.open_received {
            return Err(Violation::connection(Condition::ILLEGAL_STATE, "a second open"));
        }
        if channel != 0 {
            return Err(Violation::connection(
                Condition::FRAMING_ERROR,
                format!("open came on channel {channel} and not on 0"),
            ));
        }
        if open.max_frame_size < MIN_MAX_FRAME_SIZE {
            return Err(Violation::connection(
                Condition::INVALID_FIELD,
                format!("open.max-frame-size {} is below the least allowed, 512", open.max_frame_size),
            ));
        }
        let idle_timeout_ms = open.idle_time_out.filter(|&timeout| timeout != 0);
        if let Some(timeout) = idle_timeout_ms.filter(|&timeout| timeout < PEER_IDLE_TIMEOUT_MS_MIN) {
            return Err(Violation::connection(
                Condition::NOT_ALLOWED,
                format!(
                    "open.idle-time-out {timeout} ms is below the least that is kept to here, \
                     {PEER_IDLE_TIMEOUT_MS_MIN} ms"
                ),
            ));
        }
        self.open_received = true;
        self.peer = Peer {
            max_frame_size: open.max_frame_size,
            channel_max: open.channel_max,
            idle_timeout: idle_timeout_ms.map(|timeout| Duration::from_millis(timeout.into())),
        };
        Ok(Event::Opened(Box::new(open)))
    }

    /// Sets what our open says in its properties: an encoded map, or nothing.
    pub fn set_open_properties(&mut self, encoded: Box<[u8]>) {
        self.open_properties = encoded;
    }

    /// Writes nothing more but a close: what the user still does with the connection's sessions and links
    /// only puts its own house in order.
    pub fn silence(&mut self) {
        self.silent = true;
    }

    /// Whether what concerns sessions and links may still be written.
    #[inline]
    pub(super) fn is_silent(&self) -> bool {
        self.silent || self.close_sent
    }

    /// How long the protocol header or frame is that begins with `start`; where that can't be told yet, how
    /// many bytes are needed to tell. Never more than a frame that we accept.
    #[must_use]
    pub fn unit_len(&self, start: &[u8]) -> usize {
        match self.stage {
            Stage::Header | Stage::HeaderAfterSasl => ProtocolHeader::LEN,
            Stage::Discard => start.len(),
            Stage::Sasl(_) | Stage::Frames => match start.first_chunk::<4>() {
                None => 4,
                Some(&size) => {
                    let most = self.settings.max_frame_size.max(self.settings.sasl_frame_max);
                    (u32::from_be_bytes(size).min(most) as usize).max(8)
                }
            },
        }
    }

    /// Keeps the peer to less than the settings say: to frames and session windows of so many bytes, and so many sessions.
    /// 0 is as the settings say. What our open has told already doesn't change.
    pub fn restrict(&mut self, frame_bytes: u32, window_bytes: u32, sessions: u16) {
        if self.open_sent || (frame_bytes, window_bytes, sessions) == (0, 0, 0) {
            return;
        }
        let settings = Rc::make_mut(&mut self.settings);
        if frame_bytes != 0 {
            settings.max_frame_size = settings.max_frame_size.min(frame_bytes.max(MIN_MAX_FRAME_SIZE));
        }
        if window_bytes != 0 {
            let frames = (window_bytes / settings.max_frame_size).max(1);
            settings.session_frames_max = settings.session_frames_max.min(frames);
        }
        if sessions != 0 {
            settings.sessions_announced = Some(sessions);
        }
    }

    /// Sends our open. Calls after the first do nothing.
    pub fn send_open(&mut self, out: &mut Output) {
        if self.open_sent {
            return;
        }
        self.open_sent = true;
        let settings = self.settings.clone();
        let properties = std::mem::take(&mut self.open_properties);
        let open = Open {
            container_id: &settings.container_id,
            hostname: settings.hostname.as_deref(),
            max_frame_size: settings.max_frame_size,
            channel_max: settings
                .sessions_announced
                .map_or(settings.channel_max, |most| settings.channel_max.min(most.saturating_sub(1))),
            // Half of what we bear, so that a peer which uses up what we announce isn't cut off (§2.4.5).
            idle_time_out: settings
                .idle_timeout
                .map(|timeout| u32::try_from(timeout.as_millis() / 2).unwrap_or(u32::MAX)),
            outgoing_locales: Symbols::None,
            incoming_locales: Symbols::None,
            offered_capabilities: symbols(settings.offered_capabilities),
            desired_capabilities: symbols(settings.desired_capabilities),
            properties: Value::from_encoded(&properties).ok(),
        };
        // Before the peer has said what it takes, that is 512 bytes (§2.4.1).
        let frame_max = self.peer.max_frame_size;
        if write::amqp(out, 0, frame_max, &open).is_err() {
            // What must be left out is what the peer can do without.
            let short = Open { properties: None, hostname: None, ..open };
            write::amqp(out, 0, frame_max, &short)
                .expect("a container-id is checked to fit where it is configured");
        }
    }

    fn recv_close<'b>(&mut self, close: &Close<'b>, now: Instant, out: &mut Output) -> Option<Event<'b>> {
        let was_ours = self.close_sent;
        self.close_received = true;
        self.stage = Stage::Discard;
        self.closing_since.get_or_insert(now);
        if !was_ours {
            self.send_open(out);
            self.flush(out);
            self.close_sent = true;
            // A close without error always fits.
            let _ = write::amqp(out, 0, self.peer.max_frame_size, &Close { error: None });
        }
        self.closed(Cause::Peer(close.error))
    }

    /// The event for the end of the connection, which comes once: after a fault of the peer there may be
    /// another one, or its close.
    fn closed<'b>(&mut self, cause: Cause<'b>) -> Option<Event<'b>> {
        (!std::mem::replace(&mut self.closed_told, true)).then_some(Event::Closed(cause))
    }

    /// Closes the connection. The peer's close, or the lack of one, ends it.
    pub fn send_close(&mut self, fault: Option<&Fault>, now: Instant, out: &mut Output) {
        if self.close_sent {
            return;
        }
        if matches!(self.stage, Stage::Frames) {
            self.send_open(out);
            self.flush(out);
            let close = Close { error: fault.map(Fault::error) };
            if write::amqp(out, 0, self.peer.max_frame_size, &close).is_err() {
                let _ = write::amqp(out, 0, self.peer.max_frame_size, &Close { error: None });
            }
            self.close_sent = true;
            self.closing_since = Some(now);
        } else {
            self.end_silently(now);
        }
    }

    fn answer_violation(
        &mut self,
        violation: Violation,
        now: Instant,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        match violation {
            // What comes behind a close isn't acted upon, whatever is wrong with it.
            Violation::Connection(_) | Violation::Session(..) | Violation::Link(..) if self.close_sent => {
                None
            }
            Violation::Connection(fault) => {
                // What follows is discarded until the peer's close (§2.4.6), or until it takes too long.
                self.send_close(Some(&fault), now, out);
                self.closed(Cause::Ours(fault))
            }
            Violation::Session(channel, fault) => self
                .send_end(channel, Some(&fault), out)
                .then_some(Event::Ended { channel, cause: Cause::Ours(fault) }),
            Violation::Link(link, fault) => {
                let user = self.link(link).and_then(|link| link.user);
                self.send_detach(link, true, Some(&fault), out).then_some(Event::Detached {
                    link,
                    user,
                    closed: true,
                    cause: Cause::Ours(fault),
                })
            }
        }
    }

    /// Notes that the peer sends nothing more, which is as good as its close. What we have to say still goes.
    pub fn peer_ended(&mut self, now: Instant) {
        self.end_silently(now);
    }

    /// Notes that bytes of the peer have come.
    pub fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// When bytes of the peer came last, or were taken to have come.
    #[must_use]
    pub fn last_heard(&self) -> Instant {
        self.heard
    }

    /// Notes that bytes were given to the kernel for the peer.
    pub fn spoke(&mut self, now: Instant) {
        self.spoke = now;
    }

    /// Says whether the peer has had nothing to say but empty frames for a while: then ours may be a little later too.
    pub fn set_at_rest(&mut self, at_rest: bool) {
        self.at_rest = at_rest;
    }

    /// When `handle_timeout` must be called next, unless bytes come or go before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if let Some(since) = self.closing_since {
            return (!self.given_up).then(|| since + CLOSE_TIMEOUT);
        }
        let handshake = if self.open_received {
            None
        } else {
            self.settings.handshake_timeout.map(|limit| self.started + limit)
        };
        let silent =
            if self.open_sent { self.settings.idle_timeout.map(|limit| self.heard + limit) } else { None };
        [handshake, silent, self.beat_due(), self.handshake.refused_at()].into_iter().flatten().min()
    }

    /// When the peer is to hear of us again. A beat halfway leaves the other half for the journey, of which a long
    /// time-out needs less.
    fn beat_due(&self) -> Option<Instant> {
        if self.close_sent {
            return None;
        }
        let limit = self.peer.idle_timeout?;
        let pause = if self.at_rest && limit >= LONG_IDLE_TIMEOUT { limit / 4 * 3 } else { limit / 2 };
        Some(self.spoke + pause)
    }

    /// Sends the empty frame now that would be due before `next`, so that nothing need be done for it until then.
    pub fn beat_ahead(&mut self, next: Instant, now: Instant, out: &mut Output) {
        if self.beat_due().is_some_and(|due| due < next) {
            self.beat(now, out);
        }
    }

    fn beat(&mut self, now: Instant, out: &mut Output) {
        out.put_empty_frame();
        self.spoke = now;
    }

    /// Does what time demands: an empty frame, or the end of a connection that is silent for too long.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Output) -> Option<Event<'static>> {
        if self.closing_since.is_some_and(|since| now >= since + CLOSE_TIMEOUT) {
            self.given_up = true;
            return None;
        }
        if self.close_sent {
            return None;
        }
        if let Some(event) = self.refuse_in_time(now, out) {
            return Some(event);
        }
        if let Some(limit) = self.settings.handshake_timeout
            && !self.open_received
            && now >= self.started + limit
        {
            return self.time_out(Condition::NOT_ALLOWED, "Timeout waiting for initial handshake", now, out);
        }
        if let Some(limit) = self.settings.idle_timeout
            && self.open_sent
            && now >= self.heard + limit
        {
            return self.time_out(Condition::RESOURCE_LIMIT_EXCEEDED, "local-idle-timeout expired", now, out);
        }
        if self.beat_due().is_some_and(|due| now >= due) {
            self.beat(now, out);
        }
        None
    }

    fn time_out(
        &mut self,
        condition: Condition,
        description: &'static str,
        now: Instant,
        out: &mut Output,
    ) -> Option<Event<'static>> {
        self.answer_violation(Violation::Connection(Fault::new(condition, description)), now, out)
    }

    /// How long the peer may be silent, if that is limited.
    #[must_use]
    pub fn idle_timeout(&self) -> Option<Duration> {
        self.settings.idle_timeout
    }

    /// The channels of all sessions.
    #[must_use]
    pub fn channels(&self) -> Vec<Channel> {
        (0u16..)
            .zip(&self.sessions)
            .filter_map(|(channel, session)| session.as_ref().map(|_| Channel(channel)))
            .collect()
    }

    /// What the user keeps with each link of a session.
    #[must_use]
    pub fn users(&self, channel: Channel) -> Vec<(LinkRef, Option<Key>)> {
        self.session(channel).map_or_else(Vec::new, |session| {
            session.links().map(|(handle, link)| (LinkRef { channel, handle }, link.user)).collect()
        })
    }

    /// How much it holds.
    #[must_use]
    pub fn holdings(&self) -> Holdings {
        let sessions = || self.sessions.iter().flatten();
        Holdings {
            sessions: sessions().count(),
            channels: self.channels.len(),
            links: sessions().map(|session| session.links().count()).sum(),
            names: self.names.iter().map(HashMap::len).sum(),
            unsettled: sessions().map(|session| session.incoming.len() + session.outgoing.len()).sum(),
        }
    }

    /// The largest frame that the peer takes.
    #[must_use]
    pub fn peer_max_frame_size(&self) -> u32 {
        self.peer.max_frame_size
    }
}

/// What a received piece led to, and the bytes behind it; `None`: the piece isn't complete yet.
pub(super) type Step<'b> = Result<Option<(Option<Event<'b>>, &'b [u8])>, Violation>;

fn symbols(list: &'static [&'static str]) -> Symbols<'static> {
    if list.is_empty() { Symbols::None } else { Symbols::Slice(list) }
}
