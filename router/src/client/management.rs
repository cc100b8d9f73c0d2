//! Requests to management nodes, and their replies (router-protocol reference §10).
//!
//! One connection: a receiver with a dynamic address for replies, and a sender to each node that is asked.

use core::fmt;
use core::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::failure::Failure;
use super::json::{AsAmqp, from_amqp};
use super::sasl::SaslOptions;
use super::tls::TlsOptions;
use super::url::Bus;
use super::wire::{User, Wire};
use crate::base::id::Channel;
use crate::base::time::Instant;
use crate::engine::{Arrived, Attachment, Cause, Event, LinkRef, NewDelivery};
use ringmain_codec::{
    DeliveryState, Full, Properties, ReceiverSettleMode, Role, SectionKind, Sections, SenderSettleMode,
    Source, Target, TargetNode, Value, Writer,
};

/// The address of the management node of the router that one is connected to.
pub const NODE: &str = "$management";

/// Results that are asked for at a time.
const PAGE_ROWS: usize = 500;

/// Credit for replies: one request is under way at a time.
const CREDIT: u32 = 16;

/// The longest reply that is taken.
const REPLY_BYTES_MAX: usize = 512 << 20;

/// How long a polite end may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest request; what is longer can't be what its user meant.
const REQUEST_BYTES_MAX: usize = 64 << 20;

/// Why a request has no good reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// There is no connection, or it was lost: a sentence.
    Connection(String),
    /// The router is there, but no answer came in time: a sentence.
    TimedOut(String),
    /// The router refused what was asked for.
    Refused {
        /// The status (AMQP management; HTTP's numbers).
        code: i64,
        /// What the router says of it.
        description: String,
    },
    /// The user stopped it (SIGINT, SIGTERM).
    Stopped,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(message) | Self::TimedOut(message) => f.write_str(message),
            Self::Refused { code, description } => {
                write!(f, "the router refused it ({code}): {description}")
            }
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Failed(message) => Self::Connection(message),
            Failure::TimedOut(message) => Self::TimedOut(message),
            Failure::Stopped => Self::Stopped,
        }
    }
}

/// What is asked.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Request {
    /// The application properties, `operation` among them.
    pub properties: Map<String, Json>,
    /// The body.
    pub body: Json,
}

impl Request {
    /// A request for an operation, with an empty map for a body.
    #[must_use]
    pub fn new(operation: &str) -> Self {
        let mut properties = Map::new();
        properties.insert("operation".to_owned(), operation.into());
        Self { properties, body: Json::Object(Map::new()) }
    }

    /// The same with a property; nothing is added for `None`.
    #[must_use]
    pub fn with<'t>(mut self, key: &str, value: impl Into<Option<&'t str>>) -> Self {
        if let Some(value) = value.into() {
            self.properties.insert(key.to_owned(), value.into());
        }
        self
    }

    /// The same with a number for a property.
    #[must_use]
    pub fn with_number(mut self, key: &str, value: usize) -> Self {
        self.properties.insert(key.to_owned(), value.into());
        self
    }

    /// The same with this body.
    #[must_use]
    pub fn with_body(mut self, body: Json) -> Self {
        self.body = body;
        self
    }
}

/// An entity: its attributes by name, in the order in which the router tells them. Those without a value are
/// left out.
pub type Entity = Map<String, Json>;

/// A connection over which management nodes are asked.
pub struct Management {
    wire: Wire,
    state: State,
}

impl Management {
    /// Connects. Each answer may take `timeout`; `None`: for ever.
    ///
    /// # Errors
    /// [`Fault`]: nobody listens there, or who does speaks no AMQP or wants no such client.
    pub fn connect(
        bus: &Bus,
        timeout: Option<Duration>,
        sasl: &SaslOptions,
        tls: &TlsOptions,
    ) -> Result<Self, Fault> {
        let wire = Wire::connect(&bus.target(NODE), timeout, sasl, tls)?;
        let mut management = Self { wire, state: State::new(timeout) };
        management.run_until("the router's answer", |state| state.reply_to.is_some())?;
        Ok(management)
    }

    /// Asks the node at `address` and waits for its reply: the reply's body.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn call(&mut self, address: &str, request: &Request) -> Result<Json, Fault> {
        let reply_to = self.state.reply_to.clone().unwrap_or_default();
        self.state.correlation_id += 1;
        let message = encode(&reply_to, self.state.correlation_id, request)
            .ok_or_else(|| Fault::Connection("the request is too long to be sent".to_owned()))?;
        self.state.reply = None;
        let node = self.state.node(address);
        self.state.request = Some(Outgoing { node, message, begun: None });
        let waiting = format!("an answer of {address}");
        let result =
            self.run_until(&waiting, |state| state.reply.is_some() || state.nodes[node].refused.is_some());
        if let Some(why) = self.state.nodes[node].refused.take() {
            self.state.request = None;
            self.state.nodes[node].link = Link::None;
            return Err(Fault::Connection(format!("the router refuses requests to {address}: {why}")));
        }
        if let Err(Fault::TimedOut(message)) = result {
            // What isn't sent by now is never sent.
            let is_sent = self.state.request.take().is_none();
            let why = if is_sent { "" } else { ": nobody takes requests there" };
            return Err(Fault::TimedOut(format!("{message}{why}")));
        }
        result?;
        let Some(Reply { code, description, body }) = self.state.reply.take() else {
            return Err(Fault::Connection("the connection ended before the answer".to_owned()));
        };
        match code {
            200..=299 => Ok(body),
            code => Err(Fault::Refused { code, description }),
        }
    }

    /// Asks for all entities of a type (its whole name; `None`: whatever there is), or the first `limit` of them,
    /// page by page. Of each the attributes `names`; none means all.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn query(
        &mut self,
        address: &str,
        entity_type: Option<&str>,
        names: &[&str],
        limit: Option<usize>,
    ) -> Result<Vec<Entity>, Fault> {
        let mut entities: Vec<Entity> = Vec::new();
        loop {
            let wanted = limit.map_or(PAGE_ROWS, |limit| PAGE_ROWS.min(limit - entities.len()));
            if wanted == 0 {
                return Ok(entities);
            }
            let request = Request::new("QUERY")
                .with("type", "org.amqp.management")
                .with("name", "self")
                .with("entityType", entity_type)
                .with_number("count", wanted)
                .with_number("offset", entities.len())
                .with_body(json!({ "attributeNames": names }));
            let page = table(&self.call(address, &request)?)?;
            let rows = page.len();
            entities.extend(page);
            if let Some(limit) = limit {
                entities.truncate(limit);
            }
            // A node that knows no pages gives everything at once.
            if rows != wanted {
                return Ok(entities);
            }
        }
    }

    /// Keeps the connection up for this long.
    ///
    /// # Errors
    /// [`Fault`]: it was lost meanwhile, or the user stopped it.
    pub fn rest(&mut self, duration: Duration) -> Result<(), Fault> {
        let until = self.wire.now() + duration;
        loop {
            self.state.deadline = Some(until);
            if self.wire.step(&mut self.state)? {
                return Err(Fault::Connection("the router closed the connection".to_owned()));
            }
            self.state.check_stopped()?;
            if self.wire.now() >= until {
                return Ok(());
            }
        }
    }

    /// Ends the connection in good order, if the router lets it.
    pub fn close(mut self) {
        self.wire.connection.send_close(None, self.wire.now(), &mut self.wire.out);
        let until = self.wire.now() + CLOSE_TIMEOUT;
        self.state.deadline = Some(until);
        while self.wire.now() < until {
            match self.wire.step(&mut self.state) {
                Ok(false) => {}
                // Everything that was asked has been answered: how it ends doesn't matter.
                Ok(true) | Err(_) => return,
            }
        }
    }

    fn run_until(&mut self, waiting_for: &str, is_there: impl Fn(&State) -> bool) -> Result<(), Fault> {
        let timeout = self.state.timeout;
        let until = timeout.map(|timeout| self.wire.now() + timeout);
        self.state.deadline = until;
        while !is_there(&self.state) {
            if let (Some(until), Some(timeout)) = (until, timeout)
                && self.wire.now() >= until
            {
                let seconds = timeout.as_secs_f64();
                return Err(Fault::TimedOut(format!("timed out: waited {seconds} s for {waiting_for}")));
            }
            if self.wire.step(&mut self.state)? {
                return Err(Fault::Connection("the router closed the connection".to_owned()));
            }
            self.state.check_stopped()?;
        }
        Ok(())
    }
}

/// The rows of a QUERY's reply as entities.
fn table(body: &Json) -> Result<Vec<Entity>, Fault> {
    let fault = || Fault::Connection("the answer to QUERY isn't a table".to_owned());
    let names = body.get("attributeNames").and_then(Json::as_array).ok_or_else(fault)?;
    let rows = body.get("results").and_then(Json::as_array).ok_or_else(fault)?;
    let entity = |row: &Json| -> Option<Entity> {
        let pairs = names.iter().zip(row.as_array()?).filter(|(_, value)| !value.is_null());
        pairs.map(|(name, value)| Some((name.as_str()?.to_owned(), value.clone()))).collect()
    };
    rows.iter().map(|row| entity(row).ok_or_else(fault)).collect()
}

/// A request as a message; `None`: it is too long.
fn encode(reply_to: &str, correlation_id: u64, request: &Request) -> Option<Vec<u8>> {
    let write = |writer: &mut Writer<'_>| -> Result<(), Full> {
        let mut id = [0; 16];
        let mut id_writer = Writer::new(&mut id);
        id_writer.put(&correlation_id)?;
        let correlation_id = Value::from_encoded(id_writer.into_written()).ok();
        writer.put(&Properties { reply_to: Some(reply_to), correlation_id, ..Properties::default() })?;
        writer.described(SectionKind::ApplicationProperties.descriptor().code, |writer| {
            writer.map(|writer| {
                request.properties.iter().try_for_each(|(key, value)| {
                    writer.put(key.as_str())?;
                    writer.put(&AsAmqp(value))
                })
            })
        })?;
        writer
            .described(SectionKind::AmqpValue.descriptor().code, |writer| writer.put(&AsAmqp(&request.body)))
    };
    let mut room = 4096;
    while room <= REQUEST_BYTES_MAX {
        let mut buffer = vec![0; room];
        let mut writer = Writer::new(&mut buffer);
        if write(&mut writer).is_ok() {
            let length = writer.len();
            buffer.truncate(length);
            return Some(buffer);
        }
        room *= 4;
    }
    None
}

/// A reply.
struct Reply {
    code: i64,
    description: String,
    body: Json,
}

impl Reply {
    /// Reads a message; `None` if it isn't the reply with this number.
    fn read(message: &[u8], correlation_id: u64) -> Option<Self> {
        let mut reply = Self { code: 0, description: String::new(), body: Json::Null };
        let mut is_mine = false;
        let mut sections = Sections::new(message);
        // What follows a body that was read whole is of no interest.
        while let Ok(Some(section)) = sections.next() {
            match section.kind {
                SectionKind::Properties => {
                    let id = Properties::from_section(&section).ok()?.correlation_id;
                    is_mine = id.and_then(|id| id.as_i64()) == i64::try_from(correlation_id).ok();
                }
                SectionKind::ApplicationProperties => {
                    let text = |name| section.value.get(name).and_then(|value| value.as_str());
                    reply.code = section.value.get("statusCode").and_then(|code| code.as_i64()).unwrap_or(0);
                    reply.description = text("statusDescription").unwrap_or_default().to_owned();
                }
                SectionKind::AmqpValue => {
                    reply.body = from_amqp(&section.value);
                    break;
                }
                SectionKind::Header
                | SectionKind::DeliveryAnnotations
                | SectionKind::MessageAnnotations
                | SectionKind::Data
                | SectionKind::AmqpSequence
                | SectionKind::Footer => {}
            }
        }
        is_mine.then_some(reply)
    }
}

/// The sender to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    None,
    Attaching(LinkRef),
    Attached(LinkRef),
}

struct Node {
    address: String,
    link: Link,
    refused: Option<String>,
}

/// A request that hasn't been sent whole.
struct Outgoing {
    /// Its place in [`State::nodes`].
    node: usize,
    message: Vec<u8>,
    /// How much of it has gone.
    begun: Option<usize>,
}

/// The conversation.
struct State {
    timeout: Option<Duration>,
    channel: Option<Channel>,
    receiver: Option<LinkRef>,
    /// The address for replies, once there is one.
    reply_to: Option<String>,
    nodes: Vec<Node>,
    request: Option<Outgoing>,
    correlation_id: u64,
    /// Of the reply under way.
    partial: Vec<u8>,
    reply: Option<Reply>,
    /// Until when to wait for something to happen.
    deadline: Option<Instant>,
    is_stopped: bool,
}

impl State {
    fn new(timeout: Option<Duration>) -> Self {
        Self {
            timeout,
            channel: None,
            receiver: None,
            reply_to: None,
            nodes: Vec::new(),
            request: None,
            correlation_id: 0,
            partial: Vec::new(),
            reply: None,
            deadline: None,
            is_stopped: false,
        }
    }

    /// The place of a node.
    fn node(&mut self, address: &str) -> usize {
        if let Some(place) = self.nodes.iter().position(|node| node.address == address) {
            return place;
        }
        self.nodes.push(Node { address: address.to_owned(), link: Link::None, refused: None });
        self.nodes.len() - 1
    }

    fn check_stopped(&self) -> Result<(), Fault> {
        if self.is_stopped { Err(Fault::Stopped) } else { Ok(()) }
    }

    fn attach_receiver(&mut self, channel: Channel, wire: &mut Wire) -> Result<(), Failure> {
        let attachment = Attachment {
            source: Some(Source { dynamic: true, ..Source::default() }),
            target: Some(Target::Node(TargetNode::default())),
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            max_message_size: 0,
        };
        attach(channel, Role::Receiver, &attachment, wire).map(|link| self.receiver = Some(link))
    }

    fn recv_attached(&mut self, link: LinkRef, attach: &ringmain_codec::Attach<'_>, wire: &mut Wire) {
        if self.receiver == Some(link) {
            // The reason of a refusal comes with the detach that must follow (§2.6.3).
            if let Some(address) = attach.source.as_ref().and_then(|source| source.address) {
                self.reply_to = Some(address.to_owned());
                wire.connection.send_credit(link, CREDIT, false, &mut wire.out);
            }
        } else if attach.target.is_some()
            && let Some(node) = self.nodes.iter_mut().find(|node| node.link == Link::Attaching(link))
        {
            node.link = Link::Attached(link);
        }
    }

    fn recv_detached(&mut self, link: LinkRef, cause: &Cause<'_>, wire: &mut Wire) -> Result<(), Failure> {
        wire.connection.clear_link(link);
        let why = cause.describe().unwrap_or_else(|| "it gives no reason".to_owned());
        if self.receiver == Some(link) {
            return Err(Failure::Failed(format!("the router refuses an address for replies: {why}")));
        }
        let is_its = |node: &&mut Node| [Link::Attaching(link), Link::Attached(link)].contains(&node.link);
        if let Some(node) = self.nodes.iter_mut().find(is_its) {
            node.link = Link::None;
            node.refused = Some(why);
        }
        Ok(())
    }

    fn recv_transfer(&mut self, arrived: &Arrived<'_>, wire: &mut Wire) -> Result<(), Failure> {
        if arrived.aborted {
            self.partial.clear();
            return Ok(());
        }
        if self.partial.len() + arrived.payload.len() > REPLY_BYTES_MAX {
            return Err(Failure::Failed("the answer is longer than anything that could be shown".to_owned()));
        }
        self.partial.extend_from_slice(arrived.payload);
        if arrived.more {
            return Ok(());
        }
        let message = core::mem::take(&mut self.partial);
        if !arrived.settled {
            let id = arrived.delivery_id;
            let accepted = Some(&DeliveryState::Accepted);
            wire.connection.dispose_incoming(arrived.link, id, true, accepted, &mut wire.out);
        }
        wire.connection.send_credit(arrived.link, CREDIT, false, &mut wire.out);
        // The answer to a request that was given up is passed over.
        if let Some(reply) = Reply::read(&message, self.correlation_id) {
            self.reply = Some(reply);
        }
        Ok(())
    }

    /// Sends of the request what credit and window allow.
    fn send(&mut self, wire: &mut Wire) -> Result<(), Failure> {
        let (Some(channel), Some(request)) = (self.channel, &mut self.request) else { return Ok(()) };
        let node = &mut self.nodes[request.node];
        let link = match node.link {
            Link::Attached(link) => link,
            Link::Attaching(_) => return Ok(()),
            Link::None => {
                let attachment = Attachment {
                    source: Some(Source::default()),
                    target: Some(Target::Node(TargetNode {
                        address: Some(&node.address),
                        ..TargetNode::default()
                    })),
                    snd_settle_mode: SenderSettleMode::Settled,
                    rcv_settle_mode: ReceiverSettleMode::First,
                    max_message_size: 0,
                };
                node.link = Link::Attaching(attach(channel, Role::Sender, &attachment, wire)?);
                return Ok(());
            }
        };
        let done = match request.begun {
            Some(done) => done,
            None => {
                let Some(credit) = wire.connection.take_credit(link) else { return Ok(()) };
                let tag = self.correlation_id.to_be_bytes();
                let delivery = NewDelivery { message_format: 0, settled: true, tag, data: (), stamp: 0 };
                if wire.connection.begin_delivery(link, credit, delivery).is_none() {
                    return Ok(());
                }
                0
            }
        };
        let sent = wire.connection.send_payload(link, &request.message[done..], false, &mut wire.out);
        if sent.complete {
            self.request = None;
        } else {
            request.begun = Some(done + sent.consumed);
        }
        Ok(())
    }
}

fn attach(
    channel: Channel,
    role: Role,
    attachment: &Attachment<'_>,
    wire: &mut Wire,
) -> Result<LinkRef, Failure> {
    let name = format!("ringmain-{:016x}", fastrand::u64(..));
    let link = wire.connection.send_attach(channel, &name, role, attachment, &mut wire.out);
    link.ok_or_else(|| Failure::Failed("the router's session allows no link".to_owned()))
}

fn ended(what: &str, cause: &Cause<'_>) -> Failure {
    Failure::Failed(cause.describe().map_or_else(|| what.to_owned(), |why| format!("{what}: {why}")))
}

impl User for State {
    fn on_event(&mut self, event: Event<'_>, wire: &mut Wire) -> Result<(), Failure> {
        match event {
            Event::Opened(_) => {
                if wire.connection.send_begin(&mut wire.out).is_none() {
                    return Err(Failure::Failed("the router allows no session".to_owned()));
                }
            }
            Event::Begun(channel) => {
                self.channel = Some(channel);
                self.attach_receiver(channel, wire)?;
            }
            Event::Attached { link, attach } => self.recv_attached(link, &attach, wire),
            Event::Detached { link, cause, .. } => self.recv_detached(link, &cause, wire)?,
            Event::Transfer(arrived) => self.recv_transfer(&arrived, wire)?,
            Event::Ended { cause, .. } => return Err(ended("the router ended the session", &cause)),
            Event::Closed(cause) if cause.describe().is_some() => {
                return Err(ended("the router closed the connection", &cause));
            }
            Event::AttachRequested { link, attach } => {
                let fault = crate::engine::Fault::new(
                    ringmain_codec::Condition::NOT_ALLOWED,
                    "a management client takes no links",
                );
                // An answer that doesn't fit the router's frames is no answer: it can tell by itself.
                let _answered = wire.connection.refuse_link(link, &attach, &fault, &mut wire.out);
            }
            // Requests are settled, so that nothing is to be learnt of their deliveries.
            Event::Disposition(mut disposed) => {
                while wire.connection.next_disposed(&mut disposed).is_some() {}
            }
            // Credit and window are looked at on every turn.
            Event::Flow { link, .. } => {
                wire.connection.answer_flow(link, 0, &mut wire.out);
            }
            // The wire does what is to be done in the SASL layer.
            Event::Sasl(_) | Event::Closed(_) | Event::SenderFlow { .. } | Event::WindowOpened(_) => {}
        }
        Ok(())
    }

    fn on_turn(&mut self, wire: &mut Wire) -> Result<bool, Failure> {
        self.send(wire)?;
        Ok(false)
    }

    fn on_interrupt(&mut self, _: &mut Wire) {
        self.is_stopped = true;
    }

    fn next_turn(&self) -> Option<Instant> {
        self.deadline
    }
}
