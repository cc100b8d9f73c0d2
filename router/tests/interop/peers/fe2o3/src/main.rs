//! Interop peer on fe2o3-amqp. `../README.md` says what it is told and what it reports.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::exit;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use fe2o3_amqp::connection::{Connection, ConnectionHandle};
use fe2o3_amqp::link::{ReceiverAttachError, SenderAttachError};
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::{Session, SessionHandle};
use fe2o3_amqp::types::definitions::{self, ErrorCondition, Fields, ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp::types::messaging::{
    Body, Data, Message, MessageId, Modified, Outcome, Properties, Source, Target,
};
use fe2o3_amqp::types::primitives::{Binary, OrderedMap, Symbol, Value};
use fe2o3_amqp::{Delivery, Receiver, Sendable, Sender, link::receiver::CreditMode};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const PATTERN_LENGTH: usize = 251;

/// fe2o3-amqp 0.18 answers a refusal twice, and its second detach (which it means to suppress) hits the next link if that
/// one has got the handle again by then. So the next attach waits for the first link to be forgotten.
const REFUSAL_WAIT: Duration = Duration::from_millis(100);

/// fe2o3-amqp answers a drain also after its own detach, which is a breach (AMQP 1.0 §2.6.6). The router drains senders to an
/// address whose last receiver leaves, and that is when a responder is told to stop: so it lets the answer go out first.
const LAST_DRAIN_WAIT: Duration = Duration::from_millis(200);

/// How long after asking for a drain the link is taken to be drained. fe2o3-amqp keeps its own credit figure when the
/// sender's flow arrives and reports nothing, so the end of a drain can't be seen through it.
const DRAIN_WAIT: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    Send,
    Receive,
    Request,
    Respond,
}

#[derive(Clone, Parser)]
struct Options {
    role: Role,
    #[arg(long)]
    url: String,
    #[arg(long)]
    address: Option<String>,
    #[arg(long, default_value_t = 1)]
    count: usize,
    #[arg(long, default_value_t = 100)]
    size: usize,
    #[arg(long)]
    presettled: bool,
    #[arg(long, value_delimiter = ',')]
    to: Vec<String>,
    #[arg(long)]
    pause_after: Option<usize>,
    #[arg(long, default_value_t = 100)]
    credit: u32,
    #[arg(long)]
    drain_after: Option<usize>,
    #[arg(long, value_delimiter = ',', default_value = "accepted")]
    outcomes: Vec<String>,
    #[arg(long)]
    anonymous: bool,
    #[arg(long)]
    max_frame_size: Option<u32>,
    #[arg(long)]
    incoming_window: Option<u32>,
    #[arg(long)]
    refused: Option<String>,
}

impl Options {
    fn address(&self) -> String {
        self.address.clone().unwrap_or_else(|| fail("no --address"))
    }
}

/// What standard input can say.
#[derive(PartialEq, Eq)]
enum Word {
    Go,
    Stop,
}

fn report(event: &str, fields: Json) {
    let mut line = Map::from_iter([("event".to_owned(), json!(event))]);
    if let Json::Object(fields) = fields {
        line.extend(fields);
    }
    let mut output = std::io::stdout().lock();
    if writeln!(output, "{}", Json::Object(line)).and_then(|()| output.flush()).is_err() {
        exit(1);
    }
}

fn fail(why: impl std::fmt::Display) -> ! {
    report("failed", json!({ "why": why.to_string() }));
    exit(1);
}

/// `result`'s value, or the end of the peer with what was being done and why it failed.
fn must<T, E: std::fmt::Debug>(doing: &str, result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| fail(format!("{doing}: {error:?}")))
}

fn body_of(index: usize, size: usize) -> Vec<u8> {
    (0..size).map(|j| ((index + 7 * (j % PATTERN_LENGTH)) % 256) as u8).collect()
}

fn message_of(index: usize, size: usize, to: Option<&str>, reply_to: Option<&str>) -> Message<Data> {
    let mut properties =
        Properties::builder().message_id(MessageId::Ulong(index as u64)).subject(format!("message {index}"));
    if let Some(to) = to {
        properties = properties.to(to);
    }
    if let Some(reply_to) = reply_to {
        properties = properties.reply_to(reply_to);
    }
    Message::builder().properties(properties.build()).data(Binary::from(body_of(index, size))).build()
}

/// AMQP data as the nearest JSON value.
fn plain(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Ubyte(value) => json!(value),
        Value::Ushort(value) => json!(value),
        Value::Uint(value) => json!(value),
        Value::Ulong(value) => json!(value),
        Value::Byte(value) => json!(value),
        Value::Short(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::Long(value) => json!(value),
        Value::String(value) => json!(value),
        Value::Symbol(value) => json!(value.as_str()),
        other => json!(format!("{other:?}")),
    }
}

fn plain_fields(fields: &Fields) -> Json {
    fields.iter().map(|(key, value)| (key.as_str().to_owned(), plain(value))).collect::<Map<_, _>>().into()
}

fn plain_id(id: &Option<MessageId>) -> Json {
    match id {
        Some(MessageId::Ulong(id)) => json!(id),
        Some(MessageId::String(id)) => json!(id),
        Some(other) => json!(format!("{other:?}")),
        None => Json::Null,
    }
}

fn content_of(delivery: &Delivery<Body<Value>>) -> Vec<u8> {
    match delivery.body().try_as_data() {
        Ok(sections) => sections.flat_map(|section| section.iter().copied()).collect(),
        Err(other) => fail(format!("the body is not made of data sections: {other:?}")),
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn condition_name(condition: &ErrorCondition) -> String {
    let symbol = match condition {
        ErrorCondition::AmqpError(condition) => Symbol::from(condition),
        ErrorCondition::ConnectionError(condition) => Symbol::from(condition),
        ErrorCondition::SessionError(condition) => Symbol::from(condition),
        ErrorCondition::LinkError(condition) => Symbol::from(condition),
        ErrorCondition::Custom(condition) => condition.clone(),
    };
    symbol.as_str().to_owned()
}

struct Peer {
    options: Options,
    connection: ConnectionHandle<()>,
    session: SessionHandle<()>,
    words: mpsc::UnboundedReceiver<Word>,
    links: usize,
}

impl Peer {
    async fn connect(options: Options, words: mpsc::UnboundedReceiver<Word>) -> Self {
        let mut connection = Connection::builder()
            .container_id(format!("fe2o3-peer-{}", std::process::id()))
            .sasl_profile(SaslProfile::Anonymous);
        if let Some(size) = options.max_frame_size {
            connection = connection.max_frame_size(size);
        }
        let mut connection = must("open", connection.open(options.url.as_str()).await);
        let mut session = Session::builder();
        if let Some(window) = options.incoming_window {
            session = session.incoming_window(window);
        }
        let session = must("begin", session.begin(&mut connection).await);
        Self { options, connection, session, words, links: 0 }
    }

    fn link_name(&mut self) -> String {
        self.links += 1;
        format!("fe2o3-peer-{}-{}", std::process::id(), self.links)
    }

    /// `address`: `None` for an anonymous sender.
    async fn sender(&mut self, address: Option<&str>) -> Result<Sender, SenderAttachError> {
        let mut target = Target::builder();
        if let Some(address) = address {
            target = target.address(address);
        }
        let mode =
            if self.options.presettled { SenderSettleMode::Settled } else { SenderSettleMode::Unsettled };
        Sender::builder()
            .name(self.link_name())
            .target(target.build())
            .sender_settle_mode(mode)
            .attach(&mut self.session)
            .await
    }

    async fn receiver(&mut self, source: Source) -> Result<Receiver, ReceiverAttachError> {
        Receiver::builder()
            .name(self.link_name())
            .source(source)
            .receiver_settle_mode(ReceiverSettleMode::First)
            // Credit is given by hand: it is what the scenarios are about.
            .credit_mode(CreditMode::Manual)
            .attach(&mut self.session)
            .await
    }

    async fn try_refused(&mut self) {
        let Some(address) = self.options.refused.clone() else { return };
        let error = match self.options.role {
            Role::Send | Role::Request => match self.sender(Some(&address)).await {
                Ok(_) => fail("the link to --refused was attached"),
                Err(SenderAttachError::RemoteClosedWithError(error)) => error,
                Err(error) => fail(format!("attach to --refused: {error:?}")),
            },
            Role::Receive | Role::Respond => {
                match self.receiver(Source::builder().address(address).build()).await {
                    Ok(_) => fail("the link to --refused was attached"),
                    Err(ReceiverAttachError::RemoteClosedWithError(error)) => error,
                    Err(error) => fail(format!("attach to --refused: {error:?}")),
                }
            }
        };
        report(
            "refused",
            json!({ "condition": condition_name(&error.condition), "description": error.description }),
        );
        tokio::time::sleep(REFUSAL_WAIT).await;
    }

    async fn run(mut self) {
        self.try_refused().await;
        match self.options.role {
            Role::Send => self.send().await,
            Role::Receive | Role::Respond => self.receive().await,
            Role::Request => self.request().await,
        }
        must("end", self.session.end().await);
        must("close", self.connection.close().await);
        report("done", Json::Null);
    }

    async fn send(&mut self) {
        let options = self.options.clone();
        let address = options.to.is_empty().then(|| options.address());
        let mut sender = must("attach", self.sender(address.as_deref()).await);
        let mut pending = JoinSet::new();
        for index in 0..options.count {
            if options.pause_after == Some(index) {
                report("paused", json!({ "sent": index }));
                match self.words.recv().await {
                    Some(Word::Go) => {}
                    Some(Word::Stop) | None => fail("stopped before all was sent"),
                }
            }
            let to = (!options.to.is_empty()).then(|| options.to[index % options.to.len()].as_str());
            let message = message_of(index, options.size, to, None);
            if options.presettled {
                let sendable = Sendable::builder().message(message).settled(true).build();
                must("send", sender.send(sendable).await);
            } else {
                // Not `send`, which would wait for the outcome of each before the next.
                let outcome = must("send", sender.send_batchable(message).await);
                pending.spawn(async move { report_outcome(index, must("outcome", outcome.await)) });
            }
        }
        while let Some(reported) = pending.join_next().await {
            must("outcome", reported);
        }
        must("detach", sender.close().await);
    }

    async fn receive(&mut self) {
        let options = self.options.clone();
        let source = Source::builder().address(options.address()).build();
        let mut receiver = must("attach", self.receiver(source).await);
        must("flow", receiver.set_credit(options.credit).await);
        report("ready", Json::Null);
        let mut senders = HashMap::new();
        let mut received = 0;
        let mut drained_at = None;
        loop {
            let wait_for_drain = async {
                match drained_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let delivery = tokio::select! {
                delivery = receiver.recv::<Body<Value>>() => must("receive", delivery),
                word = self.words.recv() => match word {
                    Some(Word::Go) => fail("told to go, but not paused"),
                    Some(Word::Stop) | None => break,
                },
                () = wait_for_drain => {
                    drained_at = None;
                    report("drained", json!({ "received": received, "credit": null }));
                    must("flow", receiver.set_credit(options.credit).await);
                    continue;
                }
            };
            let body = content_of(&delivery);
            let properties = delivery.message().properties.clone().unwrap_or_default();
            report(
                "received",
                json!({
                    "id": plain_id(&properties.message_id),
                    "subject": properties.subject,
                    "size": body.len(),
                    "sha256": sha256(&body),
                    // A `Delivery` doesn't tell whether it came settled.
                    "settled": null,
                    "reply_to": properties.reply_to,
                }),
            );
            settle(&receiver, &delivery, &options.outcomes[received % options.outcomes.len()]).await;
            received += 1;
            if options.role == Role::Respond {
                self.respond(&mut senders, properties, body).await;
            }
            match options.drain_after {
                None if receiver.credit() <= options.credit / 2 => {
                    must("flow", receiver.set_credit(options.credit).await);
                }
                Some(after) if received == after => {
                    must("drain", receiver.drain().await);
                    drained_at = Some(tokio::time::Instant::now() + DRAIN_WAIT);
                }
                None | Some(_) => {}
            }
        }
        if !senders.is_empty() {
            tokio::time::sleep(LAST_DRAIN_WAIT).await;
        }
        for (_, sender) in senders {
            must("detach", sender.close().await);
        }
        must("detach", receiver.close().await);
    }

    async fn respond(&mut self, senders: &mut HashMap<String, Sender>, request: Properties, body: Vec<u8>) {
        let reply_to = request.reply_to.unwrap_or_else(|| fail("a request without reply-to"));
        let id = request.message_id.unwrap_or_else(|| fail("a request without message-id"));
        let properties = Properties::builder().to(reply_to.clone()).correlation_id(id);
        let reply = Message::builder().properties(properties.build()).data(Binary::from(body)).build();
        let address = if self.options.anonymous { String::new() } else { reply_to };
        if !senders.contains_key(&address) {
            let target = (!address.is_empty()).then_some(address.as_str());
            let sender = must("attach for the reply", self.sender(target).await);
            senders.insert(address.clone(), sender);
        }
        if let Some(sender) = senders.get_mut(&address) {
            match must("reply", sender.send(reply).await) {
                Outcome::Accepted(_) => {}
                other => fail(format!("the reply was not accepted: {other:?}")),
            }
        }
    }

    async fn request(&mut self) {
        let options = self.options.clone();
        let mut receiver = must("attach", self.receiver(Source::builder().dynamic(true).build()).await);
        must("flow", receiver.set_credit(options.credit).await);
        let Some(reply_to) = receiver.source().as_ref().and_then(|source| source.address.clone()) else {
            fail("no address in the attach for a dynamic source")
        };
        report("ready", json!({ "address": reply_to }));
        let mut sender = must("attach", self.sender(Some(&options.address())).await);
        for index in 0..options.count {
            let message = message_of(index, options.size, None, Some(&reply_to));
            match must("request", sender.send(message).await) {
                Outcome::Accepted(_) => {}
                other => fail(format!("the request was not accepted: {other:?}")),
            }
            let reply = must("receive", receiver.recv::<Body<Value>>().await);
            must("accept", receiver.accept(&reply).await);
            let body = content_of(&reply);
            let id =
                reply.message().properties.as_ref().and_then(|properties| properties.correlation_id.clone());
            report("reply", json!({ "id": plain_id(&id), "size": body.len(), "sha256": sha256(&body) }));
        }
        must("detach", sender.close().await);
        must("detach", receiver.close().await);
    }
}

fn report_outcome(index: usize, outcome: Outcome) {
    let mut fields = match &outcome {
        Outcome::Accepted(_) => json!({ "outcome": "accepted" }),
        Outcome::Rejected(rejected) => match &rejected.error {
            Some(error) => json!({
                "outcome": "rejected",
                "condition": condition_name(&error.condition),
                "description": error.description,
                "info": error.info.as_deref().map(plain_fields),
            }),
            None => json!({ "outcome": "rejected" }),
        },
        Outcome::Released(_) => json!({ "outcome": "released" }),
        Outcome::Modified(modified) => json!({
            "outcome": "modified",
            "delivery_failed": modified.delivery_failed.unwrap_or(false),
            "undeliverable_here": modified.undeliverable_here.unwrap_or(false),
            "annotations": modified.message_annotations.as_ref().map(plain_fields),
        }),
    };
    fields["id"] = json!(index);
    report("outcome", fields);
}

async fn settle(receiver: &Receiver, delivery: &Delivery<Body<Value>>, outcome: &str) {
    let settled = match outcome {
        "accepted" => receiver.accept(delivery).await,
        "rejected" => {
            let info = fields([
                ("reason", Value::String("taste".into())),
                ("tries", Value::Int(3)),
                ("final", Value::Bool(true)),
            ]);
            let condition = ErrorCondition::Custom(Symbol::from("interop:refused"));
            let error = definitions::Error::new(condition, String::from("no thanks"), info);
            receiver.reject(delivery, error).await
        }
        "rejected-bare" => receiver.reject(delivery, None).await,
        "released" => receiver.release(delivery).await,
        "modified" => {
            let annotations =
                fields([("x-opt-reason", Value::String("taste".into())), ("x-opt-tries", Value::Int(3))]);
            let modified = Modified {
                delivery_failed: Some(true),
                undeliverable_here: Some(true),
                message_annotations: Some(annotations),
            };
            receiver.modify(delivery, modified).await
        }
        "modified-bare" => {
            let modified =
                Modified { delivery_failed: Some(true), undeliverable_here: None, message_annotations: None };
            receiver.modify(delivery, modified).await
        }
        other => fail(format!("unknown outcome {other}")),
    };
    must("settle", settled);
}

fn fields<const N: usize>(entries: [(&str, Value); N]) -> Fields {
    let mut fields = OrderedMap::new();
    for (key, value) in entries {
        fields.insert(Symbol::from(key), value);
    }
    fields
}

fn main() {
    let options = Options::parse();
    let (say, words) = mpsc::unbounded_channel();
    // A thread, for a blocking read of standard input that nothing has to cancel: it ends with the process.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let word = if line.trim() == "go" { Word::Go } else { Word::Stop };
            if say.send(word).is_err() {
                return;
            }
        }
        let _ = say.send(Word::Stop);
    });
    let runtime = must("start", tokio::runtime::Builder::new_current_thread().enable_all().build());
    runtime.block_on(async { Peer::connect(options, words).await.run().await });
    // Not by the runtime's end, which would wait for the thread that reads standard input.
    exit(0);
}
