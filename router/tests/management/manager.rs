//! A client of the management node: a sender of requests, and a receiver with a dynamic address for replies.

use ringmain_codec::{
    Attach, Properties, Role, SectionKind, Sections, Source, Target, TargetNode, Value, Writer,
};

use crate::datum::{Datum, map, text, texts};
use crate::support::{Delivery, LinkId, Peer, Router, message};

/// The prefix of `qdrouterd`'s types.
pub const DISPATCH: &str = "org.apache.qpid.dispatch.";

/// The prefix of `skrouterd`'s types.
pub const SKUPPER: &str = "io.skupper.router.";

/// Credit for replies.
const CREDIT: u32 = 10_000;

/// A client of the management node.
pub struct Manager {
    pub peer: Peer,
    requests: LinkId,
    replies: LinkId,
    pub reply_to: String,
    next: u64,
}

/// A reply.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: i32,
    pub description: String,
    pub body: Datum,
    pub correlation_id: Datum,
    pub settled: bool,
}

impl Manager {
    /// A client on a connection of its own.
    pub fn new(router: &Router) -> Self {
        Self::of(router.peer(), "$management")
    }

    /// A client that sends its requests to `address`.
    pub fn of(mut peer: Peer, address: &str) -> Self {
        let dynamic = Attach {
            role: Role::Receiver,
            source: Some(Source { dynamic: true, ..Source::default() }),
            target: Some(Target::Node(TargetNode::default())),
            ..Attach::default()
        };
        let (replies, answer) = peer.attach(0, dynamic);
        let reply_to =
            answer.attach().source.and_then(|source| source.address).expect("an address").to_owned();
        peer.grant(replies, CREDIT);
        let requests = peer.attach_sender(address);
        Self { peer, requests, replies, reply_to, next: 0 }
    }

    /// Sends a request and waits for its reply.
    pub fn ask<const N: usize>(&mut self, properties: [(&str, Datum); N], body: Datum) -> Reply {
        let correlation_id = Datum::Ulong(self.next);
        self.next += 1;
        let request = request(&self.reply_to, &correlation_id, &map(properties), &body, None);
        self.send(&request);
        let reply = self.receive();
        assert_eq!(reply.correlation_id, correlation_id);
        reply
    }

    /// Takes the credit for replies back.
    pub fn take_no_more(&mut self) {
        self.peer.grant(self.replies, 0);
    }

    /// Sends a request that is a message already.
    pub fn send(&mut self, request: &[u8]) {
        self.peer.send_delivery(self.requests, request, true);
    }

    /// Waits for a reply.
    pub fn receive(&mut self) -> Reply {
        let delivery = self.peer.expect_delivery();
        assert_eq!(delivery.link, self.replies);
        let count = self.peer.link(self.replies).delivery_count;
        let limit = self.peer.link(self.replies).limit;
        if limit.wrapping_sub(count) < CREDIT / 2 {
            self.peer.grant(self.replies, CREDIT);
        }
        Reply::read(&delivery)
    }

    /// QUERY of a type: the columns and the rows.
    #[track_caller]
    pub fn query(&mut self, entity_type: &str, names: &[&str]) -> Vec<Vec<Datum>> {
        let reply = self.ask(
            [("operation", text("QUERY")), ("entityType", text(entity_type))],
            map([("attributeNames", texts(names))]),
        );
        assert_eq!((reply.status, reply.description.as_str()), (200, "OK"), "QUERY {entity_type}");
        if !names.is_empty() {
            assert_eq!(*reply.body.get("attributeNames"), texts(names));
        }
        reply.body.get("results").items().iter().map(|row| row.items().to_vec()).collect()
    }

    /// READ by name: the attributes.
    #[track_caller]
    pub fn read(&mut self, of_type: &str, name: &str) -> Reply {
        self.ask([("operation", text("READ")), ("type", text(of_type)), ("name", text(name))], map([]))
    }

    /// CREATE.
    pub fn create(&mut self, of_type: &str, name: &str, attributes: Datum) -> Reply {
        self.ask([("operation", text("CREATE")), ("type", text(of_type)), ("name", text(name))], attributes)
    }

    /// DELETE by name.
    pub fn delete(&mut self, of_type: &str, name: &str) -> Reply {
        self.ask([("operation", text("DELETE")), ("type", text(of_type)), ("name", text(name))], map([]))
    }
}

impl Reply {
    fn read(delivery: &Delivery) -> Self {
        let Parts { properties, application_properties, body } = Parts::read(&delivery.payload);
        let correlation_id = properties.expect("a reply has properties");
        Self {
            status: i32::try_from(application_properties.get("statusCode").number()).expect("a status"),
            description: application_properties.get("statusDescription").str().to_owned(),
            body: body.expect("a reply has a body"),
            correlation_id: correlation_id.correlation_id,
            settled: delivery.settled,
        }
    }

    /// That it is a refusal with this status and text.
    #[track_caller]
    pub fn expect(&self, status: i32, description: &str) {
        assert_eq!((self.status, self.description.as_str()), (status, description), "{:?}", self.body);
    }
}

/// What a test needs of a message's properties.
#[derive(Clone, Debug, PartialEq)]
pub struct Ids {
    pub to: Option<String>,
    pub reply_to: Option<String>,
    pub correlation_id: Datum,
}

/// A message, taken apart.
pub struct Parts {
    pub properties: Option<Ids>,
    pub application_properties: Datum,
    pub body: Option<Datum>,
}

impl Parts {
    pub fn read(message: &[u8]) -> Self {
        let mut parts = Self { properties: None, application_properties: map([]), body: None };
        let mut sections = Sections::new(message);
        while let Some(section) = sections.next().expect("a well-formed message") {
            match section.kind {
                SectionKind::Properties => {
                    let properties = Properties::from_section(&section).expect("well-formed properties");
                    parts.properties = Some(Ids {
                        to: properties.to.map(str::to_owned),
                        reply_to: properties.reply_to.map(str::to_owned),
                        correlation_id: properties.correlation_id.map_or(Datum::Null, Datum::of),
                    });
                }
                SectionKind::ApplicationProperties => parts.application_properties = Datum::of(section.value),
                SectionKind::AmqpValue => {
                    parts.body = Some(Datum::of(section.value));
                    // Some of qdrouterd's refusals have a stray value behind the body.
                    break;
                }
                SectionKind::Header => {}
                other => panic!("an unexpected section: {}", other.name()),
            }
        }
        parts
    }
}

/// A request as a message.
pub fn request(
    reply_to: &str,
    correlation_id: &Datum,
    properties: &Datum,
    body: &Datum,
    to: Option<&str>,
) -> Vec<u8> {
    let correlation_id = encoded(correlation_id);
    let mut room = vec![0; 64 * 1024];
    let mut writer = Writer::new(&mut room);
    let id = Value::from_encoded(&correlation_id).expect("just encoded");
    let reply_to = Some(reply_to).filter(|reply_to| !reply_to.is_empty());
    writer
        .put(&Properties { to, reply_to, correlation_id: Some(id), ..Properties::default() })
        .and_then(|()| {
            let code = SectionKind::ApplicationProperties.descriptor().code;
            writer.described(code, |writer| writer.put(properties))
        })
        .and_then(|()| writer.described(SectionKind::AmqpValue.descriptor().code, |writer| writer.put(body)))
        .expect("room for a request");
    writer.written().to_vec()
}

fn encoded(datum: &Datum) -> Vec<u8> {
    let mut room = vec![0; 1024];
    let mut writer = Writer::new(&mut room);
    writer.put(datum).expect("room for a value");
    writer.written().to_vec()
}

/// Any message, for traffic.
pub fn any_message() -> Vec<u8> {
    message::data(&[1; 64])
}
