//! The scripted peer.
//!
//! It does what a test tells it, right or wrong, and holds the router to the specification while it does:
//! a frame that is larger than the peer announced, a transfer without window or credit, a delivery-id out of
//! order, a channel beyond channel-max or an outcome of a delivery that isn't unsettled fail the test at once.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use ringmain_codec::{
    Attach, Begin, Close, DeliveryState, Detach, Disposition, Encode, End, Flow, FrameKind, Open,
    Performative, ProtocolHeader, Role, Source, Symbol, Target, TargetNode, Transfer, Writer, split_frame,
    write_frame,
};
use rustix::net::RecvFlags;

use super::frame::Frame;
use super::link::{Delivery, Link, LinkId, Outcomes};
use super::session::Session;

/// How long the router may take to anything that it must do. Only a fault makes a test wait so long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The incoming-window that a session of the peer begins with, unless the test says otherwise.
const WINDOW: u32 = 1_000_000;

/// What an open of the peer says.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// The largest frame that the peer takes.
    pub max_frame_size: u32,
    /// The highest channel that the peer takes.
    pub channel_max: u16,
    /// Its idle time-out in milliseconds.
    pub idle_time_out: Option<u32>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { max_frame_size: 65_536, channel_max: u16::MAX, idle_time_out: None }
    }
}

/// One end of a connection with the router.
pub struct Peer {
    stream: TcpStream,
    /// Bytes that came and aren't taken yet, from `taken` on.
    input: Vec<u8>,
    taken: usize,
    /// Frames to be sent.
    output: Vec<u8>,
    /// Whether the router has closed its side of the socket.
    ended: bool,
    frames: u64,
    max_frame_size: u32,
    channel_max: u16,
    router_max_frame_size: u32,
    /// By the peer's channel.
    sessions: BTreeMap<u16, Session>,
    /// The peer's channels, by the router's.
    channels: BTreeMap<u16, u16>,
    /// Frames that came while the test waited for others.
    pending: VecDeque<(u64, Frame)>,
    /// Complete deliveries that the test hasn't taken.
    deliveries: VecDeque<Delivery>,
    /// What became of the peer's own deliveries.
    pub outcomes: Outcomes,
    next_link: u32,
}

impl Peer {
    /// Connects and sends nothing.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the router accepts connections");
        stream.set_nodelay(true).expect("a socket of TCP");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time-out that isn't zero");
        Self {
            stream,
            input: Vec::new(),
            taken: 0,
            output: Vec::new(),
            ended: false,
            frames: 0,
            max_frame_size: ringmain_codec::MIN_MAX_FRAME_SIZE,
            channel_max: u16::MAX,
            router_max_frame_size: ringmain_codec::MIN_MAX_FRAME_SIZE,
            sessions: BTreeMap::new(),
            channels: BTreeMap::new(),
            pending: VecDeque::new(),
            deliveries: VecDeque::new(),
            outcomes: Outcomes::default(),
            next_link: 0,
        }
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    // ---- sending ----

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        self.flush();
    }

    /// Sends bytes written in hexadecimal, blanks ignored.
    #[track_caller]
    pub fn send_raw(&mut self, hex: &str) {
        let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("two digits")).collect();
        self.send_bytes(&bytes);
    }

    /// Sends a protocol header.
    pub fn send_header(&mut self, header: ProtocolHeader) {
        self.send_bytes(&header.to_bytes());
    }

    /// Sends one frame.
    #[track_caller]
    pub fn send(&mut self, channel: u16, performative: Performative<'_>, payload: &[u8]) {
        self.queue(channel, performative, payload);
        self.flush();
    }

    /// Adds a frame to those that `flush` sends.
    pub fn queue(&mut self, channel: u16, performative: Performative<'_>, payload: &[u8]) {
        self.account_sent(channel, &performative);
        self.append_frame(FrameKind::Amqp, channel, &performative, payload);
    }

    /// Sends an empty frame.
    pub fn send_empty_frame(&mut self) {
        self.send_raw("00000008 02000000");
    }

    /// Sends a frame of the SASL layer.
    pub fn send_sasl(&mut self, body: &impl Encode) {
        self.append_frame(FrameKind::Sasl, 0, body, &[]);
        self.flush();
    }

    fn append_frame(&mut self, kind: FrameKind, channel: u16, body: &impl Encode, payload: &[u8]) {
        let start = self.output.len();
        let mut room = 1024;
        loop {
            self.output.resize(start + room + payload.len(), 0);
            let mut writer = Writer::new(&mut self.output[start..]);
            let written = write_frame(&mut writer, kind, channel, |writer| {
                body.encode(writer)?;
                writer.extend(payload)
            });
            let length = writer.len();
            if written.is_ok() {
                self.output.truncate(start + length);
                return;
            }
            room *= 4;
        }
    }

    /// Sends what was queued.
    #[track_caller]
    pub fn flush(&mut self) {
        let output = std::mem::take(&mut self.output);
        self.stream.write_all(&output).expect("the router takes what is sent");
        self.output = output;
        self.output.clear();
    }

    /// The same, but the router may have closed the socket.
    pub fn try_flush(&mut self) -> bool {
        let output = std::mem::take(&mut self.output);
        self.stream.write_all(&output).is_ok()
    }

    fn account_sent(&mut self, channel: u16, performative: &Performative<'_>) {
        match performative {
            Performative::Open(open) => {
                self.max_frame_size = open.max_frame_size;
                self.channel_max = open.channel_max;
            }
            Performative::Begin(begin) => {
                self.sessions.insert(channel, Session::new(begin));
            }
            Performative::End(_) => {
                if let Some(session) = self.sessions.get(&channel)
                    && session.router_channel.is_none()
                {
                    self.sessions.remove(&channel);
                }
            }
            Performative::Attach(attach) => {
                if let Some(session) = self.sessions.get_mut(&channel) {
                    session.links.entry(attach.handle).or_insert_with(|| Link::new(attach));
                }
            }
            Performative::Flow(flow) => {
                let Some(session) = self.sessions.get_mut(&channel) else { return };
                session.flow_sent(flow);
                if let Some(link) = flow.handle.and_then(|handle| session.links.get_mut(&handle)) {
                    link.flow_sent(flow);
                }
            }
            Performative::Transfer(transfer) => self.account_transfer_sent(channel, transfer),
            Performative::Disposition(disposition) => {
                if disposition.role == Role::Sender
                    && disposition.settled
                    && let Some(session) = self.sessions.get_mut(&channel)
                {
                    let last = disposition.last.unwrap_or(disposition.first);
                    session.unsettled.retain(|id| !(disposition.first..=last).contains(id));
                }
            }
            Performative::Detach(_) | Performative::Close(_) => {}
        }
    }

    fn account_transfer_sent(&mut self, channel: u16, transfer: &Transfer<'_>) {
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        session.next_outgoing_id = session.next_outgoing_id.wrapping_add(1);
        session.remote_incoming_window = session.remote_incoming_window.saturating_sub(1);
        let Some(link) = session.links.get_mut(&transfer.handle) else { return };
        let id = match link.sending {
            Some(id) => id,
            None => {
                link.delivery_count = link.delivery_count.wrapping_add(1);
                link.credit = link.credit.saturating_sub(1);
                let id = transfer.delivery_id.unwrap_or(session.next_delivery_id);
                session.next_delivery_id = id.wrapping_add(1);
                session.unsettled.insert(id);
                id
            }
        };
        link.sending = (transfer.more && !transfer.aborted).then_some(id);
        if transfer.settled == Some(true) || transfer.aborted {
            session.unsettled.remove(&id);
        }
    }

    // ---- receiving ----

    /// The next frame, if one comes within `patience`. Everything that the peer keeps account of is brought
    /// up to date with it.
    #[track_caller]
    pub fn poll(&mut self, patience: Duration) -> Option<Frame> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(frame) = self.take_frame() {
                self.frames += 1;
                self.account_received(&frame);
                return Some(frame);
            }
            if self.ended || !self.read(deadline) {
                return None;
            }
        }
    }

    fn take_frame(&mut self) -> Option<Frame> {
        let input = &self.input[self.taken..];
        let (frame, rest) = split_frame(input, u32::MAX).expect("the router's frames are well-formed")?;
        let size = input.len() - rest.len();
        assert!(
            size <= self.max_frame_size as usize,
            "a frame of {size} bytes, though the peer takes no more than {}",
            self.max_frame_size
        );
        let frame = Frame {
            channel: frame.channel,
            size,
            at: Instant::now(),
            sasl: frame.kind == FrameKind::Sasl,
            body: frame.body.to_vec(),
        };
        self.taken += size;
        Some(frame)
    }

    /// Reads what is there, waiting for it until `deadline`; tells whether something came.
    fn read(&mut self, deadline: Instant) -> bool {
        const PIECE: usize = 256 * 1024;
        self.input.drain(..self.taken);
        self.taken = 0;
        let start = self.input.len();
        self.input.resize(start + PIECE, 0);
        let left = deadline.saturating_duration_since(Instant::now());
        let result = if left.is_zero() {
            rustix::net::recv(&self.stream, &mut self.input[start..], RecvFlags::DONTWAIT)
                .map(|(count, _)| count)
                .map_err(std::io::Error::from)
        } else {
            self.stream.set_read_timeout(Some(left)).expect("a time-out that isn't zero");
            self.stream.read(&mut self.input[start..])
        };
        let count = match result {
            Ok(0) => {
                self.ended = true;
                0
            }
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                self.ended = true;
                0
            }
            Err(error) => panic!("the socket fails: {error}"),
        };
        self.input.truncate(start + count);
        count > 0
    }

    fn account_received(&mut self, frame: &Frame) {
        let Some((performative, payload)) = frame.performative() else { return };
        assert!(
            frame.channel <= self.channel_max,
            "a frame on channel {}, though the peer's channel-max is {}: {frame:?}",
            frame.channel,
            self.channel_max
        );
        let frames = self.frames;
        if let Performative::Begin(begin) = &performative {
            let ours = begin.remote_channel.expect("a begin that answers the peer's");
            let session = self.sessions.get_mut(&ours).expect("a begin that answers the peer's");
            session.begun(frame.channel, begin);
            self.channels.insert(frame.channel, ours);
            return;
        }
        match performative {
            Performative::Open(open) => {
                assert!(open.max_frame_size >= 512, "a max-frame-size below 512 is never legal (§2.7.1)");
                assert!(!open.container_id.is_empty(), "a container-id is mandatory (§2.7.1)");
                self.router_max_frame_size = open.max_frame_size;
            }
            Performative::Close(_) | Performative::Begin(_) => {}
            Performative::Attach(_)
            | Performative::Flow(_)
            | Performative::Transfer(_)
            | Performative::Disposition(_)
            | Performative::Detach(_)
            | Performative::End(_) => {
                let Some(&ours) = self.channels.get(&frame.channel) else {
                    panic!("a frame on channel {}, where no session is: {frame:?}", frame.channel);
                };
                self.account_in_session(ours, frame.channel, &performative, payload, frames);
            }
        }
    }

    fn account_in_session(
        &mut self,
        channel: u16,
        router_channel: u16,
        performative: &Performative<'_>,
        payload: &[u8],
        frame: u64,
    ) {
        let session = self.sessions.get_mut(&channel).expect("a session that is mapped");
        match performative {
            Performative::Attach(attach) => {
                let known = session.links.iter_mut().find(|(_, link)| {
                    link.name == attach.name && link.role != attach.role && link.router_handle.is_none()
                });
                let Some((&handle, link)) = known else {
                    panic!("an attach that answers none of the peer's: {attach:?}");
                };
                link.attached(attach);
                let before = session.handles.insert(attach.handle, handle);
                assert_eq!(before, None, "the router uses handle {} twice", attach.handle);
            }
            Performative::Flow(flow) => {
                session.flow_received(flow);
                if let Some(router_handle) = flow.handle {
                    let handle = session.handles.get(&router_handle).expect("a flow on an attached handle");
                    let link = session.links.get_mut(handle).expect("a link that is attached");
                    link.flow_received(flow);
                }
            }
            Performative::Transfer(transfer) => {
                let handle =
                    *session.handles.get(&transfer.handle).expect("a transfer on an attached handle");
                let first = session.links.get(&handle).is_some_and(|link| link.receiving.is_none());
                session.transfer_received(transfer, first);
                let link = session.links.get_mut(&handle).expect("a link that is attached");
                let id = LinkId { channel, handle };
                if let Some(delivery) = link.transfer_received(id, transfer, payload, frame) {
                    self.deliveries.push_back(delivery);
                }
            }
            Performative::Disposition(disposition) => {
                self.account_disposition(channel, disposition);
            }
            Performative::Detach(detach) => {
                let handle = session.handles.remove(&detach.handle).expect("a detach of an attached handle");
                session.links.remove(&handle);
            }
            Performative::End(_) => {
                self.channels.remove(&router_channel);
                session.router_channel = None;
            }
            Performative::Open(_) | Performative::Begin(_) | Performative::Close(_) => {}
        }
    }

    fn account_disposition(&mut self, channel: u16, disposition: &Disposition<'_>) {
        let session = self.sessions.get_mut(&channel).expect("a session that is mapped");
        if disposition.role == Role::Sender {
            return;
        }
        let mut id = disposition.first;
        loop {
            assert!(
                session.unsettled.contains(&id),
                "the router speaks of delivery {id}, which isn't unsettled: {disposition:?}"
            );
            if disposition.settled {
                session.unsettled.remove(&id);
                self.outcomes.count(disposition.state.as_ref());
            }
            if id == disposition.last.unwrap_or(disposition.first) {
                return;
            }
            id = id.wrapping_add(1);
        }
    }

    // ---- expectations ----

    /// Waits for a frame with a performative of that name. Frames that the test hasn't asked for yet are kept
    /// for when it does, but an end that it hasn't asked for fails it.
    #[track_caller]
    pub fn expect(&mut self, name: &str) -> Frame {
        self.expect_where(name, |_| true)
    }

    /// Waits for a frame with a performative of that name for which `is_it` holds.
    #[track_caller]
    pub fn expect_where(&mut self, name: &str, mut is_it: impl FnMut(&Frame) -> bool) -> Frame {
        let place = self.pending.iter().position(|(_, frame)| frame.name() == name && is_it(frame));
        if let Some((_, frame)) = place.and_then(|place| self.pending.remove(place)) {
            return frame;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Some(frame) = self.poll(deadline.saturating_duration_since(Instant::now())) else {
                let why = if self.ended { "the router closed the socket" } else { "nothing came" };
                panic!("expected {name}, but {why}; other frames before: {:?}", self.pending);
            };
            if frame.name() == name && is_it(&frame) {
                return frame;
            }
            self.keep(name, frame);
        }
    }

    #[track_caller]
    fn keep(&mut self, expected: &str, frame: Frame) {
        let is_end = matches!(frame.name(), "detach" | "end" | "close");
        assert!(!is_end, "expected {expected}, got {frame:?}");
        if !frame.is_empty() {
            self.pending.push_back((self.frames, frame));
        }
    }

    /// The next frame that isn't empty, whatever it is.
    #[track_caller]
    pub fn expect_any(&mut self) -> Frame {
        if let Some((_, frame)) = self.pending.pop_front() {
            return frame;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let frame = self.poll(deadline.saturating_duration_since(Instant::now())).expect("a frame");
            if !frame.is_empty() {
                return frame;
            }
        }
    }

    /// Waits for a complete delivery, on any link.
    #[track_caller]
    pub fn expect_delivery(&mut self) -> Delivery {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(delivery) = self.deliveries.pop_front() {
                let LinkId { channel, handle } = delivery.link;
                let router_handle =
                    self.sessions.get(&channel).and_then(|session| session.links.get(&handle)?.router_handle);
                self.pending.retain(|(number, frame)| {
                    let is_part = frame.name() == "transfer"
                        && Some(frame.transfer().handle) == router_handle
                        && *number <= delivery.last_frame;
                    !is_part
                });
                return delivery;
            }
            let Some(frame) = self.poll(deadline.saturating_duration_since(Instant::now())) else {
                let why = if self.ended { "the router closed the socket" } else { "nothing came" };
                panic!("expected a delivery, but {why}; other frames before: {:?}", self.pending);
            };
            if frame.name() != "transfer" {
                self.keep("a delivery", frame);
            }
        }
    }

    /// Waits for a disposition, by the router as receiver, that speaks of this delivery.
    #[track_caller]
    pub fn expect_outcome(&mut self, id: u32) -> Frame {
        self.expect_where("disposition", |frame| {
            let disposition = frame.disposition();
            let last = disposition.last.unwrap_or(disposition.first);
            disposition.role == Role::Receiver && (disposition.first..=last).contains(&id)
        })
    }

    /// Waits for the router to close the connection with an error of this condition, answers, and waits for
    /// it to close the socket. Its open may come before. Returns the error's description.
    #[track_caller]
    pub fn expect_closed_with(&mut self, condition: &str) -> String {
        let close = self.expect_close();
        let error =
            close.close().error.unwrap_or_else(|| panic!("a close with {condition}, not without error"));
        assert_eq!(error.condition.0, condition, "{:?}", error.description);
        let description = error.description.unwrap_or_default().to_owned();
        self.append_frame(FrameKind::Amqp, 0, &Performative::Close(Close::default()), &[]);
        self.try_flush();
        self.expect_end_of_stream();
        description
    }

    /// Waits for a close, whatever comes before it.
    #[track_caller]
    pub fn expect_close(&mut self) -> Frame {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Some(frame) = self.poll(deadline.saturating_duration_since(Instant::now())) else {
                let why = if self.ended { "the router closed the socket" } else { "nothing came" };
                panic!("expected a close, but {why}");
            };
            if frame.name() == "close" {
                return frame;
            }
        }
    }

    /// Waits for the router to close its side of the socket.
    #[track_caller]
    pub fn expect_end_of_stream(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while let Some(frame) = self.poll(deadline.saturating_duration_since(Instant::now())) {
            panic!("expected the end of the stream, got {frame:?}");
        }
        assert!(self.ended, "the router didn't close the socket");
    }

    /// Waits for the router to detach a link with an error of this condition, and answers. Returns the error's
    /// description.
    #[track_caller]
    pub fn expect_detached_with(&mut self, link: LinkId, condition: &str) -> String {
        let router_handle = self.link(link).router_handle;
        let frame = self.expect_where("detach", |frame| Some(frame.detach().handle) == router_handle);
        let detach = frame.detach();
        assert!(detach.closed, "a link that can't go on is closed, not only detached (§2.6.5)");
        let error = detach.error.unwrap_or_else(|| panic!("a detach with {condition}, not without error"));
        assert_eq!(error.condition.0, condition, "{:?}", error.description);
        let answer = Detach { handle: link.handle, closed: true, error: None };
        self.send(link.channel, Performative::Detach(answer), &[]);
        error.description.unwrap_or_default().to_owned()
    }

    /// Waits for the router to end a session with an error, and answers. Returns its condition.
    #[track_caller]
    pub fn expect_ended(&mut self, channel: u16) -> String {
        let frame = self.expect("end");
        let condition = frame.end().error.expect("an end with an error").condition.0.to_owned();
        self.send(channel, Performative::End(End::default()), &[]);
        condition
    }

    /// Makes sure that no frame comes for so many milliseconds, and that none came unasked before; flows and
    /// empty frames may.
    #[track_caller]
    pub fn expect_nothing_for(&mut self, ms: u64) {
        self.expect_only_for(ms, &["flow"]);
    }

    /// Makes sure that for so many milliseconds only frames of these names (and empty ones) come, and that no
    /// others came unasked before.
    #[track_caller]
    pub fn expect_only_for(&mut self, ms: u64, names: &[&str]) {
        let deadline = Instant::now() + Duration::from_millis(ms);
        loop {
            if let Some((_, frame)) = self.pending.iter().find(|(_, frame)| !names.contains(&frame.name())) {
                panic!("expected nothing, got {frame:?}");
            }
            match self.poll(deadline.saturating_duration_since(Instant::now())) {
                Some(frame) if frame.is_empty() => {}
                Some(frame) => self.pending.push_back((self.frames, frame)),
                None => {
                    assert!(!self.ended, "the router closed the socket");
                    return;
                }
            }
        }
    }

    /// Forgets the frames that came unasked.
    pub fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// A complete delivery that has come already, if there is one.
    pub fn take_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    // ---- the ordinary course of things ----

    /// Exchanges protocol headers and opens, without SASL. Returns the router's open.
    #[track_caller]
    pub fn open_with(&mut self, options: OpenOptions) -> Frame {
        self.send_header(ProtocolHeader::AMQP);
        let OpenOptions { max_frame_size, channel_max, idle_time_out } = options;
        let open =
            Open { container_id: "peer", max_frame_size, channel_max, idle_time_out, ..Open::default() };
        self.send(0, Performative::Open(open), &[]);
        self.expect_header(ProtocolHeader::AMQP);
        self.expect("open")
    }

    /// Waits for a protocol header, which must be this one.
    #[track_caller]
    pub fn expect_header(&mut self, header: ProtocolHeader) {
        let deadline = Instant::now() + PATIENCE;
        while self.input.len() - self.taken < ProtocolHeader::LEN {
            assert!(!self.ended && Instant::now() < deadline, "no protocol header came");
            self.read(deadline);
        }
        let found = &self.input[self.taken..self.taken + ProtocolHeader::LEN];
        assert_eq!(found, header.to_bytes(), "the protocol header");
        self.taken += ProtocolHeader::LEN;
    }

    /// Begins a session on the lowest free channel.
    #[track_caller]
    pub fn begin(&mut self) -> u16 {
        self.begin_with(WINDOW)
    }

    /// Begins a session with this incoming-window.
    #[track_caller]
    pub fn begin_with(&mut self, incoming_window: u32) -> u16 {
        let channel = (0..).find(|channel| !self.sessions.contains_key(channel)).expect("a free channel");
        let begin = Begin { incoming_window, outgoing_window: u32::MAX >> 1, ..Begin::default() };
        self.send(channel, Performative::Begin(begin), &[]);
        self.expect_where("begin", |frame| frame.begin().remote_channel == Some(channel));
        channel
    }

    /// Sends an attach with a name and a handle of the peer's choice; the rest is as `attach` says.
    #[track_caller]
    pub fn send_attach(&mut self, channel: u16, attach: Attach<'_>) -> LinkId {
        let handle = {
            let session = self.sessions.get(&channel).expect("a session that was begun");
            (0..).find(|handle| !session.links.contains_key(handle)).expect("a free handle")
        };
        let name = format!("link-{}", self.next_link);
        self.next_link += 1;
        let attach = Attach { name: &name, handle, ..attach };
        self.send(channel, Performative::Attach(attach), &[]);
        LinkId { channel, handle }
    }

    /// Attaches a link and waits for the router's attach.
    #[track_caller]
    pub fn attach(&mut self, channel: u16, attach: Attach<'_>) -> (LinkId, Frame) {
        let link = self.send_attach(channel, attach);
        let name = self.link(link).name.clone();
        let answer = self.expect_where("attach", |frame| frame.attach().name == name);
        (link, answer)
    }

    /// Attaches a sender to an address, on channel 0.
    #[track_caller]
    pub fn attach_sender(&mut self, address: &str) -> LinkId {
        self.attach(0, sender(Some(address))).0
    }

    /// Attaches a sender without an address, on channel 0.
    #[track_caller]
    pub fn attach_anonymous(&mut self) -> LinkId {
        self.attach(0, sender(None)).0
    }

    /// Attaches a receiver to an address, on channel 0, and grants credit.
    #[track_caller]
    pub fn attach_receiver(&mut self, address: &str, credit: u32) -> LinkId {
        let (link, _) = self.attach(0, receiver(address));
        if credit > 0 {
            self.grant(link, credit);
        }
        link
    }

    /// Detaches (closes) a link and waits for the router's answer.
    #[track_caller]
    pub fn detach(&mut self, link: LinkId) {
        let router_handle = self.link(link).router_handle;
        let detach = Detach { handle: link.handle, closed: true, error: None };
        self.send(link.channel, Performative::Detach(detach), &[]);
        let answer = self.expect_where("detach", |frame| Some(frame.detach().handle) == router_handle);
        assert!(answer.detach().closed && answer.detach().error.is_none(), "{answer:?}");
    }

    /// Closes the connection and waits until the router has done so too.
    #[track_caller]
    pub fn close(mut self) {
        self.send(0, Performative::Close(Close::default()), &[]);
        let close = self.expect_close();
        assert!(close.close().error.is_none(), "{close:?}");
        self.expect_end_of_stream();
    }

    /// The state of a link.
    #[track_caller]
    pub fn link(&self, link: LinkId) -> &Link {
        self.session(link.channel).links.get(&link.handle).expect("a link that was attached")
    }

    /// The state of a link.
    #[track_caller]
    pub fn link_mut(&mut self, link: LinkId) -> &mut Link {
        let session = self.sessions.get_mut(&link.channel).expect("a session that was begun");
        session.links.get_mut(&link.handle).expect("a link that was attached")
    }

    /// The state of a session.
    #[track_caller]
    pub fn session(&self, channel: u16) -> &Session {
        self.sessions.get(&channel).expect("a session that was begun")
    }

    /// The largest frame that the router takes.
    pub fn router_max_frame_size(&self) -> u32 {
        self.router_max_frame_size
    }

    /// As receiver: grants credit from here on, whatever was granted before.
    #[track_caller]
    pub fn grant(&mut self, link: LinkId, credit: u32) {
        let count = self.link(link).delivery_count;
        self.send_flow(link, count, credit, false);
    }

    /// As receiver: sends a flow with this delivery-count, link-credit and drain.
    #[track_caller]
    pub fn send_flow(&mut self, link: LinkId, delivery_count: u32, credit: u32, drain: bool) {
        self.queue_flow(link, delivery_count, credit, drain);
        self.flush();
    }

    /// The same, but `flush` sends it.
    #[track_caller]
    pub fn queue_flow(&mut self, link: LinkId, delivery_count: u32, credit: u32, drain: bool) {
        let flow = Flow {
            handle: Some(link.handle),
            delivery_count: Some(delivery_count),
            link_credit: Some(credit),
            drain,
            ..self.session(link.channel).flow()
        };
        self.queue(link.channel, Performative::Flow(flow), &[]);
    }

    /// Opens a session's incoming-window to so many frames.
    #[track_caller]
    pub fn open_window(&mut self, channel: u16, incoming_window: u32) {
        let flow = Flow { incoming_window, ..self.session(channel).flow() };
        self.send(channel, Performative::Flow(flow), &[]);
    }

    /// As sender: waits until there is at least so much credit.
    #[track_caller]
    pub fn await_credit(&mut self, link: LinkId, credit: u32) {
        self.await_state("credit", |peer| peer.link(link).credit >= credit);
    }

    /// Takes frames until `is_so` holds; `what` says what that is.
    #[track_caller]
    pub fn await_state(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            let Some(frame) = self.poll(deadline.saturating_duration_since(Instant::now())) else {
                let why = if self.ended { "the router closed the socket" } else { "it didn't come" };
                panic!("expected {what}, but {why}; frames before: {:?}", self.pending);
            };
            if frame.name() == "flow" {
                continue;
            }
            self.keep(what, frame);
        }
    }

    /// Sends a whole delivery, waiting for credit and window. Returns its delivery-id.
    #[track_caller]
    pub fn send_delivery(&mut self, link: LinkId, message: &[u8], settled: bool) -> u32 {
        if self.link(link).credit == 0 {
            self.await_credit(link, 1);
        }
        let id = self.queue_delivery(link, message, settled);
        self.flush();
        id
    }

    /// Queues a whole delivery. The credit must be there; for the window it waits.
    #[track_caller]
    pub fn queue_delivery(&mut self, link: LinkId, message: &[u8], settled: bool) -> u32 {
        const HEADER_MAX: usize = 64;
        let piece = self.router_max_frame_size as usize - HEADER_MAX;
        let id = self.session(link.channel).next_delivery_id;
        let tag = id.to_be_bytes();
        let mut rest = message;
        let mut first = true;
        loop {
            if self.session(link.channel).remote_incoming_window == 0 {
                self.flush();
                self.await_state("a window", |peer| peer.session(link.channel).remote_incoming_window > 0);
            }
            let (part, left) = rest.split_at(rest.len().min(piece));
            let more = !left.is_empty();
            let transfer = if first {
                first_transfer(link, id, &tag, settled, more)
            } else {
                Transfer { handle: link.handle, more, ..Transfer::default() }
            };
            self.queue(link.channel, Performative::Transfer(transfer), part);
            if !more {
                return id;
            }
            (rest, first) = (left, false);
        }
    }

    /// Sends one frame of a delivery as it is.
    #[track_caller]
    pub fn send_transfer(&mut self, channel: u16, transfer: Transfer<'_>, payload: &[u8]) {
        self.send(channel, Performative::Transfer(transfer), payload);
    }

    /// As receiver: tells the state of one delivery.
    #[track_caller]
    pub fn dispose(&mut self, delivery: &Delivery, settled: bool, state: Option<DeliveryState<'_>>) {
        self.dispose_range(delivery.link.channel, delivery.id, delivery.id, settled, state);
    }

    /// As receiver: accepts and settles one delivery.
    #[track_caller]
    pub fn accept(&mut self, delivery: &Delivery) {
        self.dispose(delivery, true, Some(DeliveryState::Accepted));
    }

    /// As receiver: tells the state of a range of deliveries.
    #[track_caller]
    pub fn dispose_range(
        &mut self,
        channel: u16,
        first: u32,
        last: u32,
        settled: bool,
        state: Option<DeliveryState<'_>>,
    ) {
        let last = (last != first).then_some(last);
        let disposition =
            Disposition { role: Role::Receiver, first, last, settled, state, ..Disposition::default() };
        self.send(channel, Performative::Disposition(disposition), &[]);
    }

    /// As sender: settles one of the peer's own deliveries.
    #[track_caller]
    pub fn settle(&mut self, channel: u16, id: u32, state: Option<DeliveryState<'_>>) {
        let disposition =
            Disposition { role: Role::Sender, first: id, settled: true, state, ..Disposition::default() };
        self.send(channel, Performative::Disposition(disposition), &[]);
    }
}

/// The attach of a sender to an address, or of an anonymous one.
pub fn sender(address: Option<&str>) -> Attach<'_> {
    Attach {
        role: Role::Sender,
        source: Some(Source::default()),
        target: Some(Target::Node(TargetNode { address, ..TargetNode::default() })),
        initial_delivery_count: Some(0),
        ..Attach::default()
    }
}

/// The attach of a receiver from an address.
pub fn receiver(address: &str) -> Attach<'_> {
    Attach {
        role: Role::Receiver,
        source: Some(Source { address: Some(address), ..Source::default() }),
        target: Some(Target::Node(TargetNode::default())),
        ..Attach::default()
    }
}

/// The first frame of a delivery.
pub fn first_transfer(link: LinkId, id: u32, tag: &[u8], settled: bool, more: bool) -> Transfer<'_> {
    Transfer {
        handle: link.handle,
        delivery_id: Some(id),
        delivery_tag: Some(tag),
        message_format: Some(0),
        settled: settled.then_some(true),
        more,
        ..Transfer::default()
    }
}

/// Whether an error's condition is this one.
pub fn is_condition(error: Option<ringmain_codec::Error<'_>>, condition: &str) -> bool {
    error.is_some_and(|error| error.condition == Symbol(condition))
}
