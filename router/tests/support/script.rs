//! The ordinary course of things: what a test needs around the one thing that it tries.

use std::time::{Duration, Instant};

use ringmain_codec::{
    Attach, Begin, Close, DeliveryState, Detach, Disposition, Flow, Open, Performative, ProtocolHeader, Role,
    Source, Symbol, Target, TargetNode, Transfer,
};

use super::frame::Frame;
use super::link::{Delivery, Link, LinkId};
use super::peer::{OpenOptions, PATIENCE, Peer};
use super::session::Session;

/// The incoming-window that a session of the peer begins with, unless the test says otherwise.
const WINDOW: u32 = 1_000_000;

impl Peer {
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
        let link = self.queue_attach(channel, attach);
        self.flush();
        link
    }

    /// The same, but `flush` sends it.
    #[track_caller]
    pub fn queue_attach(&mut self, channel: u16, attach: Attach<'_>) -> LinkId {
        let handle = {
            let session = self.sessions.get(&channel).expect("a session that was begun");
            (0..).find(|handle| !session.links.contains_key(handle)).expect("a free handle")
        };
        let name = format!("link-{}", self.next_link);
        self.next_link += 1;
        let attach = Attach { name: &name, handle, ..attach };
        self.queue(channel, Performative::Attach(attach), &[]);
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

    /// Answers the router's detach.
    #[track_caller]
    pub fn answer_detach(&mut self, link: LinkId) {
        let detach = Detach { handle: link.handle, closed: true, error: None };
        self.send(link.channel, Performative::Detach(detach), &[]);
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

    /// The state of a session.
    #[track_caller]
    pub fn session_mut(&mut self, channel: u16) -> &mut Session {
        self.sessions.get_mut(&channel).expect("a session that was begun")
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

    /// Sends many deliveries as fast as credit and window allow, and takes what comes meanwhile.
    #[track_caller]
    pub fn send_many(
        &mut self,
        link: LinkId,
        count: usize,
        settled: bool,
        mut message: impl FnMut(usize) -> Vec<u8>,
    ) {
        const BATCH: usize = 64;
        for number in 0..count {
            if number % BATCH == 0 {
                self.flush();
                while self.absorb(Duration::ZERO) {}
            }
            while self.link(link).credit == 0 {
                self.flush();
                assert!(self.absorb(PATIENCE), "no credit for delivery {number}");
            }
            self.queue_delivery(link, &message(number), settled);
        }
        self.flush();
    }

    /// Takes one frame, if one comes, and keeps no more of it than the peer's account. Tells whether one
    /// came; an end fails the test.
    #[track_caller]
    pub fn absorb(&mut self, patience: Duration) -> bool {
        let Some(frame) = self.poll(patience) else { return false };
        assert!(!matches!(frame.name(), "detach" | "end" | "close"), "the router ends something: {frame:?}");
        true
    }

    /// Takes frames, as `absorb` does, until `is_so` holds; `what` says what that is.
    #[track_caller]
    pub fn absorb_until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        while !is_so(self) {
            assert!(self.absorb(PATIENCE), "it didn't come: {what}");
        }
    }

    /// Queues a whole delivery. The credit must be there; for the window it waits.
    #[track_caller]
    pub fn queue_delivery(&mut self, link: LinkId, message: &[u8], settled: bool) -> u32 {
        self.queue_part(link, message, settled, false)
    }

    /// Sends a part of a delivery, in frames of the size that the router takes; `more` says whether this is
    /// its last part. Whether it is the first is known. The credit must be there; for the window it waits.
    #[track_caller]
    pub fn send_part(&mut self, link: LinkId, part: &[u8], more: bool) -> u32 {
        let id = self.queue_part(link, part, false, more);
        self.flush();
        id
    }

    #[track_caller]
    fn queue_part(&mut self, link: LinkId, part: &[u8], settled: bool, more: bool) -> u32 {
        const HEADER_MAX: usize = 64;
        let piece = self.router_max_frame_size as usize - HEADER_MAX;
        let id = self.link(link).sending.unwrap_or(self.session(link.channel).next_delivery_id);
        let tag = id.to_be_bytes();
        let mut rest = part;
        loop {
            if self.session(link.channel).remote_incoming_window == 0 {
                self.flush();
                self.absorb_until("a window", |peer| peer.session(link.channel).remote_incoming_window > 0);
            }
            let (now, later) = rest.split_at(rest.len().min(piece));
            let more = more || !later.is_empty();
            let transfer = if self.link(link).sending.is_none() {
                first_transfer(link, id, &tag, settled, more)
            } else {
                Transfer { handle: link.handle, more, ..Transfer::default() }
            };
            self.queue(link.channel, Performative::Transfer(transfer), now);
            if later.is_empty() {
                return id;
            }
            rest = later;
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
