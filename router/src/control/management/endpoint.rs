//! The agent's end of its connection with the router: an ordinary client's, over a pair of sockets.
//!
//! ```text
//! receiver  $management          \
//! receiver  _local/$management    > requests, in order, with their credit
//! sender    (anonymous)           > replies, settled
//! ```
//!
//! So requests and replies go the way of every other message: from any shard, with flow control, in pieces
//! where they are long.

use crate::base::buffer::{BufferPool, Output};
use crate::base::limits::{
    AGENT_OUTPUT_MAX, REPLY_BYTES_MAX, REQUEST_BYTES_MAX, REQUESTS_MAX, SENT_FRAME_MAX,
};
use crate::base::time::Instant;
use crate::engine::settings::SaslPolicy;
use crate::engine::{Arrived, Attachment, Cause, Connection, Event, LinkRef, NewDelivery, Settings, Side};
use crate::routing::MANAGEMENT_NODE;
use ringmain_codec::{DeliveryState, ReceiverSettleMode, Role, SenderSettleMode, Source, Target, TargetNode};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::rc::Rc;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// The names of the two receivers.
const RECEIVERS: [&str; 2] = ["management", "management-local"];

/// The agent's end of its connection.
pub(super) struct Endpoint {
    socket: UnixStream,
    connection: Connection<()>,
    out: Output,
    received: Box<[u8]>,
    /// What came and isn't a whole frame yet.
    input: Vec<u8>,
    /// What goes to the socket now, from `sent` on.
    sending: Vec<u8>,
    sent: usize,
    is_eof: bool,
    receivers: Vec<LinkRef>,
    sender: Option<LinkRef>,
    /// Requests of which not all has come.
    partial: HashMap<LinkRef, Vec<u8>>,
    requests: VecDeque<Vec<u8>>,
    replies: VecDeque<Vec<u8>>,
    /// How much of the first reply has gone; `None`: it isn't begun.
    begun: Option<usize>,
    reply_bytes: usize,
    next_tag: u64,
    /// Why the router ended the connection or a link of it.
    failure: Option<String>,
}

impl Endpoint {
    /// Begins the conversation over `socket`.
    ///
    /// # Errors
    /// The socket can't be used.
    pub(super) fn new(socket: std::os::unix::net::UnixStream, router_id: &str) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let settings = Rc::new(Settings {
            container_id: format!("{router_id}{MANAGEMENT_NODE}"),
            max_frame_size: SENT_FRAME_MAX,
            idle_timeout: None,
            sasl: SaslPolicy::Optional,
            ..Settings::default()
        });
        let mut out = Output::new(BufferPool::default());
        // The clock stands still here: nothing on this connection is timed.
        let connection = Connection::new(settings, Side::Initiator, Instant(0), &mut out);
        Ok(Self {
            socket: UnixStream::from_std(socket)?,
            connection,
            out,
            received: vec![0; READ_BYTES].into_boxed_slice(),
            input: Vec::new(),
            sending: Vec::new(),
            sent: 0,
            is_eof: false,
            receivers: Vec::new(),
            sender: None,
            partial: HashMap::new(),
            requests: VecDeque::new(),
            replies: VecDeque::new(),
            begun: None,
            reply_bytes: 0,
            next_tag: 0,
            failure: None,
        })
    }

    /// Goes on until the links are attached.
    ///
    /// # Errors
    /// The router refused something, or ended the connection.
    pub(super) async fn attach(&mut self) -> io::Result<()> {
        while !(self.sender.is_some() && self.receivers.len() == RECEIVERS.len()) {
            self.go_on().await?;
        }
        // The credit is given now: whoever sends requests finds them taken.
        self.pump();
        self.write()
    }

    /// The next request, as a message. What waits goes meanwhile.
    ///
    /// # Errors
    /// The router ended the connection; it does so when it stops.
    pub(super) async fn next_request(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if self.reply_bytes < REPLY_BYTES_MAX
                && let Some(request) = self.requests.pop_front()
            {
                return Ok(request);
            }
            self.go_on().await?;
        }
    }

    /// Puts a reply among those that go as soon as they can.
    pub(super) fn reply(&mut self, message: Vec<u8>) {
        self.reply_bytes += message.len();
        self.replies.push_back(message);
    }

    /// Writes what can be written, waits for the socket, and takes what came.
    async fn go_on(&mut self) -> io::Result<()> {
        self.grant();
        // The socket may take at once what the output was full of: nothing would wake us for the rest of the replies.
        while self.pump() {
            self.write()?;
            if !self.is_all_sent() {
                break;
            }
        }
        self.write()?;
        if self.is_eof || self.connection.is_finished() {
            let why = self.failure.take().unwrap_or_else(|| "the router closed it".to_owned());
            return Err(io::Error::new(ErrorKind::ConnectionAborted, why));
        }
        let wanted =
            if self.is_all_sent() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
        let ready = self.socket.ready(wanted).await?;
        if ready.is_readable() || ready.is_read_closed() {
            self.read()?;
            self.take_events();
        }
        Ok(())
    }

    /// Whether the socket has taken all that there was.
    fn is_all_sent(&self) -> bool {
        self.sent == self.sending.len() && self.out.pending() == 0
    }

    fn read(&mut self) -> io::Result<()> {
        match self.socket.try_read(&mut self.received) {
            Ok(0) => self.is_eof = true,
            Ok(length) => self.input.extend_from_slice(&self.received[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.connection.flush(&mut self.out);
        loop {
            if self.sent == self.sending.len() {
                if self.out.pending() == 0 {
                    return Ok(());
                }
                self.sending = self.out.take_bytes();
                self.sent = 0;
            }
            match self.socket.try_write(&self.sending[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take_events(&mut self) {
        let mut input = std::mem::take(&mut self.input);
        let mut done = 0;
        loop {
            let progress = self.connection.recv(&input[done..], Instant(0), &mut self.out);
            done += progress.consumed;
            match progress.event {
                Some(event) => self.take_event(event),
                None => break,
            }
        }
        input.drain(..done);
        self.input = input;
    }

    fn take_event(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(_) => {
                if self.connection.send_begin(&mut self.out).is_none() {
                    self.fail("the router allows no session");
                }
            }
            Event::Begun(channel) => self.send_attaches(channel),
            Event::Attached { link, attach } => match attach.role {
                Role::Receiver if attach.target.is_some() => self.sender = Some(link),
                Role::Sender if attach.source.is_some() => self.receivers.push(link),
                // The reason of a refusal comes with the detach that must follow (§2.6.3).
                Role::Receiver | Role::Sender => {}
            },
            Event::Transfer(arrived) => self.take_transfer(&arrived),
            Event::Detached { link, cause, .. } => {
                self.connection.clear_link(link);
                self.end("the router detached a link", &cause);
            }
            Event::Ended { cause, .. } => self.end("the router ended the session", &cause),
            Event::Closed(cause) => self.end("the router closed the connection", &cause),
            // It leaves the SASL layer out.
            Event::Sasl(_)
            | Event::AttachRequested { .. }
            | Event::Flow { .. }
            | Event::SenderFlow { .. }
            | Event::WindowOpened(_)
            | Event::Disposition(_) => {}
        }
    }

    fn end(&mut self, what: &str, cause: &Cause<'_>) {
        let what = cause.describe().map_or_else(|| what.to_owned(), |why| format!("{what}: {why}"));
        self.fail(&what);
    }

    /// The connection is of no use any more.
    fn fail(&mut self, why: &str) {
        self.failure.get_or_insert_with(|| why.to_owned());
        self.connection.send_close(None, Instant(0), &mut self.out);
    }

    fn send_attaches(&mut self, channel: crate::base::id::Channel) {
        let attachment = |address, max_message_size| Attachment {
            source: Some(Source { address, ..Source::default() }),
            target: Some(Target::Node(TargetNode::default())),
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            max_message_size,
        };
        let local = format!("_local/{MANAGEMENT_NODE}");
        let mut all = true;
        for (name, address) in RECEIVERS.into_iter().zip([MANAGEMENT_NODE, local.as_str()]) {
            let attachment = attachment(Some(address), REQUEST_BYTES_MAX);
            let link = self.connection.send_attach(channel, name, Role::Receiver, &attachment, &mut self.out);
            all &= link.is_some();
        }
        let link = self.connection.send_attach(
            channel,
            "replies",
            Role::Sender,
            &attachment(None, 0),
            &mut self.out,
        );
        if !all || link.is_none() {
            self.fail("the router's session allows no link");
        }
    }

    fn take_transfer(&mut self, arrived: &Arrived<'_>) {
        let whole = match self.partial.remove(&arrived.link) {
            Some(mut begun) => {
                begun.extend_from_slice(arrived.payload);
                begun
            }
            None => arrived.payload.to_vec(),
        };
        if arrived.aborted {
            return;
        }
        if arrived.more {
            // No more than the attach's max-message-size comes: the router sees to that.
            self.partial.insert(arrived.link, whole);
            return;
        }
        if !arrived.settled {
            let (link, id) = (arrived.link, arrived.delivery_id);
            self.connection.dispose_incoming(link, id, true, Some(&DeliveryState::Accepted), &mut self.out);
        }
        self.requests.push_back(whole);
    }

    /// Gives credit for requests when half of it is used up. Those that wait here count as used.
    fn grant(&mut self) {
        let waiting = u32::try_from(self.requests.len()).unwrap_or(u32::MAX);
        for &link in &self.receivers {
            let Some(credit) = self.connection.link(link).map(|link| link.credit) else { continue };
            let wanted = REQUESTS_MAX.saturating_sub(waiting);
            if credit <= REQUESTS_MAX / 2 && wanted > credit {
                self.connection.send_credit(link, wanted, false, &mut self.out);
            }
        }
    }

    /// Sends of the replies what credit, window and output allow. Tells whether it was the output that allowed no more.
    fn pump(&mut self) -> bool {
        let Some(link) = self.sender else { return false };
        while let Some(message) = self.replies.front()
            && self.out.pending() < AGENT_OUTPUT_MAX
        {
            let done = match self.begun {
                Some(done) => done,
                None => {
                    let Some(credit) = self.connection.take_credit(link) else { return false };
                    let tag = self.next_tag.to_be_bytes();
                    self.next_tag += 1;
                    let delivery = NewDelivery { message_format: 0, settled: true, tag, data: (), stamp: 0 };
                    if self.connection.begin_delivery(link, credit, delivery).is_none() {
                        return false;
                    }
                    0
                }
            };
            // A piece at a time, so that a reply of many megabytes isn't in the output whole.
            let end = message.len().min(done + AGENT_OUTPUT_MAX);
            let is_last = end == message.len();
            let sent = self.connection.send_payload(link, &message[done..end], !is_last, &mut self.out);
            if !sent.complete || !is_last {
                self.begun = Some(done + sent.consumed);
                if !sent.complete {
                    return false;
                }
                continue;
            }
            self.begun = None;
            if let Some(message) = self.replies.pop_front() {
                self.reply_bytes -= message.len();
            }
        }
        !self.replies.is_empty()
    }
}
