//! The tools ask a peer that answers as `qdrouterd` did in a recorded conversation: a router R1 with a neighbour R2,
//! and a client that has attached a receiver to `demo/a` with a credit of 5.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use ringmain_codec::{
    Attach, Close, Performative, Properties, Role, SectionKind, Sections, Source, Value, Writer, split_frame,
};

use crate::program::{Said, run};
use crate::stat::cells;
use crate::support::{Peer, message};

/// How long one poll of the peer waits.
const GLANCE: Duration = Duration::from_millis(20);

/// The sections of recorded replies behind the properties, by the entity type of the QUERY; and the refusal of one
/// that isn't known.
struct Recording {
    tables: BTreeMap<String, Vec<u8>>,
    refusal: Vec<u8>,
}

impl Recording {
    /// `None` where there are no recordings.
    fn load() -> Option<Self> {
        let folder = std::env::var_os("RINGMAIN_TESTDATA")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
        let file = std::fs::read_to_string(folder.join("transcripts/s7-q-management.jsonl")).ok();
        if file.is_none() {
            eprintln!("SKIPPED: no recordings here: set RINGMAIN_TESTDATA to a folder with transcripts/");
        }
        let (mut partial, mut asked) = (BTreeMap::<(bool, u32), Vec<u8>>::new(), BTreeMap::new());
        let mut recording = Self { tables: BTreeMap::new(), refusal: Vec::new() };
        for line in file?.lines().skip(1) {
            let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            if line["kind"] != "amqp" || line["performative"] != "transfer" {
                continue;
            }
            let is_request = line["from"] == "connector";
            let hex = line["hex"].as_str().expect("a frame");
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
            let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
            let (frame, _) = split_frame(&bytes, u32::MAX).expect("a frame").expect("a whole frame");
            let (performative, payload) = Performative::decode(frame.body).expect("a performative");
            let Performative::Transfer(transfer) = performative else { panic!("it was called a transfer") };
            let whole = partial.entry((is_request, transfer.handle)).or_default();
            whole.extend_from_slice(payload);
            if transfer.more {
                continue;
            }
            let Some(of) = Message::read(&std::mem::take(whole)) else { continue };
            match (is_request, asked.get(&of.id)) {
                (true, _) if of.operation == "QUERY" => {
                    asked.insert(of.id, of.entity_type);
                }
                (false, Some(entity_type)) if entity_type == "org.example.nothing" => {
                    recording.refusal = of.rest
                }
                // Some ask for a few attributes, or for a few rows: the longest has all.
                (false, Some(entity_type)) => {
                    let known = recording.tables.entry(entity_type.clone()).or_default();
                    if of.rest.len() > known.len() {
                        *known = of.rest;
                    }
                }
                (_, _) => {}
            }
        }
        assert!(!recording.refusal.is_empty() && recording.tables.len() > 4, "{:?}", recording.tables.keys());
        Some(recording)
    }

    /// Runs `ringmain` with these arguments against a peer that answers from the recording.
    fn answer(&self, arguments: &str) -> Said {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let command = format!("{arguments} -b {}", listener.local_addr().expect("an address"));
        let tool = std::thread::spawn(move || run(&command));
        let mut peer = Peer::accept_on(&listener);
        peer.serve_open("R1");
        let attach = peer.expect_where("attach", |frame| frame.attach().role == Role::Receiver);
        assert!(attach.attach().source.expect("a source").dynamic);
        let source = Source { address: Some("amqp:/_topo/0/R1/temp.1"), dynamic: true, ..Source::default() };
        let target = attach.attach().target;
        let replies =
            peer.answer_attach(&attach, Attach { source: Some(source), target, ..Attach::default() });
        let attach = peer.expect_attach_to("$management");
        let requests = peer.take_link(&attach);
        peer.grant(requests, 100);
        loop {
            if let Some(delivery) = peer.take_delivery() {
                let request = Message::read(&delivery.payload).expect("a request");
                let rest = self.tables.get(&request.entity_type).unwrap_or(&self.refusal);
                peer.send_delivery(replies, &reply(&request.id, rest), true);
            }
            match peer.poll(GLANCE) {
                Some(frame) if frame.name() == "close" => break,
                // It may also go without a word.
                None if tool.is_finished() => break,
                Some(_) | None => {}
            }
        }
        peer.queue(0, Performative::Close(Close::default()), &[]);
        peer.try_flush();
        tool.join().expect("the tool ran")
    }
}

/// What matters of a message.
struct Message {
    /// The correlation-id as it is encoded.
    id: Vec<u8>,
    operation: String,
    entity_type: String,
    /// What stands behind the properties.
    rest: Vec<u8>,
}

impl Message {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut read =
            Self { id: Vec::new(), operation: String::new(), entity_type: String::new(), rest: Vec::new() };
        let mut sections = Sections::new(bytes);
        while let Ok(Some(section)) = sections.next() {
            match section.kind {
                SectionKind::Properties => {
                    let properties = Properties::from_section(&section).expect("well-formed properties");
                    read.id = properties.correlation_id?.encoded().to_vec();
                    read.rest = bytes[sections.offset()..].to_vec();
                }
                SectionKind::ApplicationProperties => {
                    let text = |name| section.value.get(name).and_then(|value| value.as_str()).unwrap_or("");
                    read.operation = text("operation").to_owned();
                    read.entity_type = text("entityType").to_owned();
                }
                _ => {}
            }
        }
        Some(read)
    }
}

fn reply(id: &[u8], rest: &[u8]) -> Vec<u8> {
    let correlation_id = Value::from_encoded(id).ok();
    let mut bytes = message::encoded(|writer: &mut Writer<'_>| {
        writer.put(&Properties { correlation_id, ..Properties::default() })
    });
    bytes.extend_from_slice(rest);
    bytes
}

#[test]
fn what_qdrouterd_says_is_shown() {
    let Some(recording) = Recording::load() else { return };
    let out = recording.answer("stat -l").ok();
    let heads = ["type", "dir", "class", "addr", "phs", "cap", "pri", "cred"];
    let of = |addr: &str| cells(&out, "Router Links", addr, &heads);
    assert_eq!(of(" demo/a "), ["endpoint", "out", "mobile", "demo/a", "0", "250", "4", "5"], "{out}");
    assert_eq!(of("qdhello"), ["router-control", "out", "local", "qdhello", "", "250", "9", "250"], "{out}");

    let out = recording.answer("stat -a").ok();
    let heads = ["class", "addr", "distrib", "local", "remote"];
    let of = |addr: &str| cells(&out, "Router Addresses", addr, &heads);
    assert_eq!(of(" demo/a "), ["mobile", "demo/a", "balanced", "1", "0"], "{out}");
    assert_eq!(of(" R2 "), ["router", "R2", "closest", "0", "1"], "{out}");

    let out = recording.answer("stat -c").ok();
    let heads = ["container", "role", "dir", "security", "authentication"];
    let of = |container: &str| cells(&out, "Connections", container, &heads);
    assert_eq!(of(" R2 "), ["R2", "inter-router", "in", "no-security", "anonymous-user"], "{out}");
    assert_eq!(of(" M1 "), ["M1", "normal", "in", "no-security", "anonymous-user"], "{out}");

    let out = recording.answer("stat -n -v").ok();
    let heads = ["router-id", "next-hop", "cost", "neighbors"];
    let of = |id: &str| cells(&out, "Routers in the Network", id, &heads);
    assert_eq!(of("  R1  "), ["R1", "(self)", "", "R2"], "{out}");
    assert_eq!(of("  R2  "), ["R2", "-", "1", "R1"], "{out}");

    let out = recording.answer("stat").ok();
    let of = |name: &str| cells(&out, "Router Statistics", &format!("  {name}  "), &["value"])[0].clone();
    // The recorded QUERY of the router asks for three attributes.
    assert_eq!(["Router Id", "Mode", "Links"].map(of), ["R1", "interior", "26"], "{out}");
    assert!(!out.contains("Uptime"), "{out}");

    // What it doesn't know is told as it tells it.
    let said = recording.answer("manage query --type org.example.nothing");
    assert!(said.status == 1 && said.err.contains("No such entity type"), "{said:?}");
    let out = recording.answer("stat -p").ok();
    assert!(out.contains("No policy statistics"), "{out}");
}
