//! The recorded conversations of a client with the management of `qdrouterd` (Q) and of `skrouterd` (S): the
//! same requests to this router, and its replies compared with theirs field by field.
//!
//! Where this router answers otherwise on purpose, [`rule`] says how, and why. The recorded routers were part
//! of a network of two and this one is alone, so what they say of the other one isn't compared.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringmain_codec::{Attach, FrameKind, Performative, Role, split_frame};

use crate::datum::{Datum, map, text, texts};
use crate::manager::{DISPATCH, Ids, Manager, Parts, Reply, SKUPPER, request};
use crate::support::{LinkId, Router, Setup};

/// What has to be the same.
enum Rule {
    /// Status, description and body.
    Same,
    /// The same, but for these entries of the body (a map).
    SameBut(&'static [&'static str]),
    /// Status and description; of the body (a map) all that was recorded, but for these entries. There may be
    /// more.
    AtLeast(&'static [&'static str]),
    /// The columns that were recorded, in their order, and maybe more; of rows that have this value in this
    /// column, all values but for those in the columns named last.
    Rows(&'static [(&'static str, &'static str, &'static [&'static str])]),
    /// The columns, and this result.
    Results(Datum),
    /// Something else: status and description.
    Refused(i32, &'static str),
    /// Something else: 200 with this body.
    Ok(Datum),
    /// 200, and what else there is, is looked at elsewhere.
    OkOnly,
    /// Nothing, as was recorded.
    Silence,
    /// It is about what this router doesn't have.
    Skip,
}

/// What the listener's attributes of a test can't have in common with those of a recording.
const LISTENER: &[&str] = &[
    "port",
    "identity",
    "idleTimeoutSeconds",
    // `qdrouterd` shows no link capacity where it has its default, and 0 for a time-out that it doesn't have.
    "linkCapacity",
    "initialHandshakeTimeoutSeconds",
];

/// What the router's attributes can't have in common.
const ROUTER: &[&str] =
    &["mode", "workerThreads", "hostName", "addrCount", "linkCount", "nodeCount", "saslConfigName"];

fn rule(number: u64, is_skupper: bool) -> Rule {
    let of_router = |name: &str| text(&name.replace("R1", "R"));
    match number {
        1 => Rule::Rows(&[
            ("key", "M0demo/a", &[]),
            ("key", "M0$management", &[]),
            ("key", "L$management", &[]),
            ("key", "Mdemo/a", &[]),
            ("key", "M$management", &[]),
        ]),
        2 => Rule::Rows(&[
            // Names are each client's own. The rate isn't known, and a histogram over the routers of a
            // network needs a network.
            ("owningAddr", "M0demo/a", LINK),
            ("owningAddr", "Mdemo/a", LINK),
        ]),
        3 => Rule::Rows(&[("role", "normal", CONNECTION)]),
        4 | 56 => Rule::Rows(&[("id", "R", &["linkState", "instance", "lastTopoChange"])]),
        5 => Rule::Rows(&[("name", "clients", LISTENER)]),
        6 => Rule::Rows(&[
            ("key", "M0demo/a", &[]),
            ("key", "M0$management", &[]),
            ("key", "L$management", &[]),
            ("key", "Mdemo/a", &[]),
            ("key", "M$management", &[]),
        ]),
        7 => Rule::Results(Datum::Null),
        // `qdrouterd` turns the name that it doesn't know into 'name', which no tool can use; acceptance
        // list: exactly the columns that were asked for, null where there is nothing.
        8 => Rule::OkOnly,
        10 => Rule::Rows(&[("name", "clients", &["port"])]),
        // A short name is as good as a whole one, and letter case plays no part, for all types alike.
        11 | 53 => Rule::OkOnly,
        12 => Rule::Rows(&[("id", "R", &[])]),
        // S answers 200; in Q only the short name does.
        13 | 14 if is_skupper => Rule::AtLeast(ROUTER),
        13 | 14 => Rule::OkOnly,
        15 if !is_skupper => {
            Rule::Refused(400, "org.apache.qpid.dispatch.router: No name or identity provided")
        }
        // Both refuse to read the management node by the name of its type in the standard.
        16 => Rule::OkOnly,
        17 | 21..=24 | 71 => Rule::SameBut(&["identity"]),
        // Both leave these without any reply.
        25 | 44 | 67 => Rule::Refused(403, "Forbidden"),
        68 if !is_skupper => Rule::Refused(403, "Forbidden"),
        // No type is named, so these are answered in qdrouterd's names.
        29..=31 | 57 if is_skupper => Rule::Skip,
        29 => Rule::AtLeast(&["org.apache.qpid.dispatch.dummy"]),
        30 => Rule::AtLeast(&[
            // PROFILE is one of Python.
            "org.apache.qpid.dispatch.management",
            "org.apache.qpid.dispatch.dummy",
        ]),
        31 => Rule::AtLeast(&["org.apache.qpid.dispatch.dummy"]),
        32 | 59 => Rule::Ok(Datum::List(vec![text("amqp:/_topo/0/R/$management")])),
        // Attributes of qdrouterd are known under either name.
        36 if is_skupper => Rule::AtLeast(&[]),
        // Without PROFILE, and where no type is named, in qdrouterd's names.
        41 => Rule::Refused(501, FROBNICATE),
        73 => Rule::Refused(501, DELETE),
        43 => Rule::Refused(400, "No 'operation' property"),
        54 => Rule::Results(Datum::List(vec![Datum::List(vec![of_router("R1")])])),
        55 => Rule::Refused(400, "The body of a QUERY must be a map"),
        57 => Rule::OkOnly,
        // The other router.
        58 => Rule::Skip,
        60 if is_skupper => Rule::OkOnly,
        60 => Rule::AtLeast(ROUTER),
        61 => Rule::OkOnly,
        62 if is_skupper => Rule::OkOnly,
        48 | 50 => Rule::AtLeast(LISTENER),
        // Where no type is named with its prefix, the answer is in qdrouterd's names.
        52 | 74 if is_skupper => Rule::OkOnly,
        52 | 74 => Rule::AtLeast(LISTENER),
        64 => Rule::AtLeast(&[]),
        69 => Rule::Rows(&[
            ("prefix", "mc", &["identity"]),
            ("prefix", "zx", &["identity"]),
            ("pattern", "zw.*.q", &["identity"]),
            ("prefix", "zv", &["identity"]),
        ]),
        76 | 77 => Rule::Silence,
        _ => Rule::Same,
    }
}

const FROBNICATE: &str = "Operation 'FROBNICATE' not implemented for 'org.apache.qpid.dispatch.management' \
    ['GET-SCHEMA', 'GET-JSON-SCHEMA', 'GET-LOG', 'QUERY', 'GET-TYPES', 'GET-ANNOTATIONS', 'GET-OPERATIONS', \
    'GET-ATTRIBUTES', 'GET-MGMT-NODES', 'READ']";

const DELETE: &str = "Operation 'DELETE' not implemented for 'org.apache.qpid.dispatch.management' \
    ['GET-SCHEMA', 'GET-JSON-SCHEMA', 'GET-LOG', 'QUERY', 'GET-TYPES', 'GET-ANNOTATIONS', 'GET-OPERATIONS', \
    'GET-ATTRIBUTES', 'GET-MGMT-NODES', 'READ']";

const LINK: &[&str] =
    &["name", "identity", "linkName", "connectionId", "ingressHistogram", "settleRate", "zeroCreditSeconds"];

const CONNECTION: &[&str] = &[
    "name",
    "identity",
    "host",
    "container",
    // This client leaves the SASL layer out.
    "sasl",
    "isAuthenticated",
    "uptimeSeconds",
    "lastDlvSeconds",
];

/// A recorded request with its reply, if there was one.
struct Exchange {
    request: Parts,
    is_anonymous: bool,
    reply: Option<Parts>,
}

fn recording(name: &str) -> Option<Vec<Exchange>> {
    let folder = std::env::var_os("RINGMAIN_TESTDATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let file = std::fs::read_to_string(folder.join("transcripts").join(name)).ok();
    if file.is_none() {
        eprintln!("SKIPPED: no recordings here: set RINGMAIN_TESTDATA to a folder with transcripts/");
    }
    let file = file?;
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut payloads: BTreeMap<(bool, u32), Vec<u8>> = BTreeMap::new();
    let mut anonymous = None;
    for line in file.lines().skip(1) {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let is_request = line["from"] == "connector";
        if line["kind"] != "amqp" || line.get("hex_cut_from_bytes").is_some() {
            continue;
        }
        let hex = line["hex"].as_str().expect("a frame");
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
            .collect();
        let (frame, _) = split_frame(&bytes, u32::MAX).expect("a frame").expect("a whole frame");
        assert_eq!(frame.kind, FrameKind::Amqp);
        let (performative, payload) = Performative::decode(frame.body).expect("a performative");
        match performative {
            Performative::Attach(Attach { role: Role::Sender, handle, target, .. }) if is_request => {
                let Some(ringmain_codec::Target::Node(node)) = target else { continue };
                if node.address.is_none() {
                    anonymous = Some(handle);
                }
            }
            Performative::Transfer(transfer) => {
                let whole = payloads.entry((is_request, transfer.handle)).or_default();
                whole.extend_from_slice(payload);
                if transfer.more {
                    continue;
                }
                let parts = Parts::read(&std::mem::take(whole));
                if is_request {
                    let is_anonymous = anonymous == Some(transfer.handle);
                    exchanges.push(Exchange { request: parts, is_anonymous, reply: None });
                } else {
                    let id = number_of(&parts);
                    let exchange = exchanges.iter_mut().find(|exchange| number_of(&exchange.request) == id);
                    exchange.expect("a reply to a request").reply = Some(parts);
                }
            }
            _ => {}
        }
    }
    Some(exchanges)
}

/// The number of a request in the recording, which its correlation-id says; one has a number itself.
fn number_of(parts: &Parts) -> u64 {
    match &parts.properties.as_ref().expect("properties").correlation_id {
        Datum::Text(id) => id.strip_prefix("req-").and_then(|id| id.parse().ok()).expect("req-N"),
        _ => 54,
    }
}

/// The recorded router's id is R1, this one's R; and the ports of the recording may be in use here.
fn renamed(datum: &Datum) -> Datum {
    match datum {
        Datum::Text(text) => Datum::Text(match text.as_str() {
            "R1" => "R".to_owned(),
            port if port.len() == 5 && port.starts_with("207") => "0".to_owned(),
            other => other.replace("/R1", "/R"),
        }),
        Datum::List(items) => Datum::List(items.iter().map(renamed).collect()),
        Datum::Map(entries) => {
            Datum::Map(entries.iter().map(|(key, value)| (renamed(key), renamed(value))).collect())
        }
        other => other.clone(),
    }
}

#[test]
fn recorded_requests_to_qdrouterd() {
    replay("s7-q-management.jsonl", false);
}

#[test]
fn recorded_requests_to_skrouterd() {
    replay("s7-s-management.jsonl", true);
}

fn replay(name: &str, is_skupper: bool) {
    let Some(exchanges) = recording(name) else { return };
    assert!(exchanges.len() >= 77, "{}", exchanges.len());
    let router = Router::with(Setup {
        listener: "    name: clients\n    role: normal\n",
        sections: "address {\n    prefix: mc\n    distribution: multicast\n}\n",
        ..Setup::default()
    });
    let mut peer = router.peer();
    peer.attach_receiver("demo/a", 5);
    let mut manager = Manager::of(peer, "$management");
    let anonymous = manager.peer.attach_anonymous();
    let mut compared = 0;
    for exchange in &exchanges {
        let number = number_of(&exchange.request);
        if matches!(rule(number, is_skupper), Rule::Skip) {
            continue;
        }
        let what = format!("{name}: request {number} {:?}", exchange.request.application_properties);
        let reply = ask(&mut manager, anonymous, exchange);
        let recorded = exchange.reply.as_ref().map(|parts| {
            (
                parts.application_properties.get("statusCode").number(),
                renamed(parts.application_properties.get("statusDescription")),
                renamed(parts.body.as_ref().expect("a body")),
            )
        });
        compare(&what, rule(number, is_skupper), recorded, reply);
        compared += 1;
    }
    assert!(compared >= 65, "{compared}");
    // Those that nobody waits for have done no harm.
    let nodes = manager.ask([("operation", text("GET-MGMT-NODES"))], map([]));
    assert_eq!(nodes.status, 200);
}

/// Sends a recorded request as this client's own. `None`: no reply is due.
fn ask(manager: &mut Manager, anonymous: LinkId, exchange: &Exchange) -> Option<Reply> {
    let Parts { properties, application_properties, body } = &exchange.request;
    let Ids { to, reply_to, correlation_id } = properties.as_ref().expect("properties");
    let own = reply_to.as_ref().map_or("", |_| manager.reply_to.as_str());
    let to = to.as_ref().map(|to| to.replace("/R1/", "/R/"));
    let message = request(
        own,
        correlation_id,
        &renamed(application_properties),
        &renamed(body.as_ref().expect("a body")),
        to.as_deref(),
    );
    if exchange.is_anonymous {
        manager.peer.send_delivery(anonymous, &message, true);
    } else {
        manager.send(&message);
    }
    reply_to.as_ref()?;
    let reply = manager.receive();
    assert_eq!(reply.correlation_id, *correlation_id, "it comes back in its own type");
    assert!(reply.settled, "replies are sent settled");
    Some(reply)
}

fn compare(what: &str, rule: Rule, recorded: Option<(i64, Datum, Datum)>, reply: Option<Reply>) {
    if let Rule::Silence = rule {
        assert!(recorded.is_none() && reply.is_none(), "{what}");
        return;
    }
    let reply = reply.expect("a reply is due");
    let status = (i64::from(reply.status), text(&reply.description));
    match rule {
        Rule::Refused(status, description) => {
            assert_eq!((reply.status, reply.description.as_str()), (status, description), "{what}");
            return;
        }
        Rule::Ok(body) => {
            assert_eq!((reply.status, &reply.body), (200, &body), "{what}");
            return;
        }
        Rule::OkOnly => {
            assert_eq!((reply.status, reply.description.as_str()), (200, "OK"), "{what}");
            return;
        }
        Rule::Same | Rule::SameBut(_) | Rule::AtLeast(_) | Rule::Rows(_) | Rule::Results(_) => {}
        Rule::Silence | Rule::Skip => unreachable!("seen to before"),
    }
    let (code, description, body) = recorded.expect("a recorded reply");
    assert_eq!(status, (code, description), "{what}: {:?}", reply.body);
    match rule {
        Rule::Same => assert_eq!(reply.body, body, "{what}"),
        Rule::SameBut(but) => assert_eq!(without(&reply.body, but), without(&body, but), "{what}"),
        Rule::AtLeast(but) => at_least(what, &reply.body, &without(&body, but)),
        Rule::Rows(rows) => {
            let columns = names(body.get("attributeNames"));
            let ours = names(reply.body.get("attributeNames"));
            // The last column that skrouterd sends has no name, and no value.
            let expected: Vec<&String> = columns.iter().filter(|name| !name.is_empty()).collect();
            let shown: Vec<&String> = ours.iter().filter(|name| columns.contains(name)).collect();
            assert_eq!(shown, expected, "{what}: columns");
            let mut found = 0;
            for (column, value, but) in rows {
                let row = |table: &Datum, names: &[String]| {
                    let place = names.iter().position(|name| name == column)?;
                    let rows = table.get("results").items();
                    rows.iter().rfind(|row| row.items()[place] == text(value)).cloned()
                };
                let (Some(recorded), Some(reply)) = (row(&body, &columns), row(&reply.body, &ours)) else {
                    continue;
                };
                found += 1;
                for (name, recorded) in columns.iter().zip(recorded.items()) {
                    if name.is_empty() || but.contains(&name.as_str()) {
                        continue;
                    }
                    let place = ours.iter().position(|other| other == name).expect("it is among the columns");
                    assert_eq!(reply.items()[place], *recorded, "{what}: {column}={value}: {name}");
                }
            }
            assert!(found > 0, "{what}: none of the rows is there");
        }
        Rule::Results(results) => {
            assert_eq!(reply.body.get("attributeNames"), body.get("attributeNames"), "{what}");
            match results {
                Datum::Null => {
                    let count = body.get("results").items().len();
                    assert_eq!(reply.body.get("results").items().len(), count, "{what}");
                }
                results => assert_eq!(*reply.body.get("results"), results, "{what}"),
            }
        }
        Rule::Refused(..) | Rule::Ok(_) | Rule::OkOnly | Rule::Silence | Rule::Skip => {
            unreachable!("seen to before")
        }
    }
}

fn names(list: &Datum) -> Vec<String> {
    list.items().iter().map(|name| name.str().to_owned()).collect()
}

fn without(map: &Datum, but: &[&str]) -> BTreeMap<String, Datum> {
    let Datum::Map(entries) = map else { panic!("not a map: {map:?}") };
    let kept = entries.iter().map(|(key, value)| (key.str().to_owned(), value.clone()));
    kept.filter(|(key, _)| !but.contains(&key.as_str())).collect()
}

/// All that was recorded is there, with the same value; of a list, all items in the same order.
fn at_least(what: &str, ours: &Datum, recorded: &BTreeMap<String, Datum>) {
    for (key, recorded) in recorded {
        let value = ours.find(key).unwrap_or_else(|| panic!("{what}: no '{key}'"));
        match (value, recorded) {
            (Datum::List(items), Datum::List(expected)) => {
                let shown: Vec<&Datum> = items.iter().filter(|item| expected.contains(item)).collect();
                assert_eq!(shown, expected.iter().collect::<Vec<_>>(), "{what}: {key}");
            }
            (value, recorded) => assert_eq!(value, recorded, "{what}: {key}"),
        }
    }
}

/// The columns of each type that both recordings show are told by name, so that nothing above passes for want
/// of a recording.
#[test]
fn short_and_whole_names_and_letter_case_mean_the_same() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    for name in ["router.address".to_owned(), format!("{DISPATCH}router.address")] {
        let reply = manager.ask(
            [("operation", text("query")), ("entityType", text(&name))],
            map([("attributeNames", texts(&["key", "bogusAttribute"]))]),
        );
        assert_eq!(reply.status, 200);
        assert_eq!(*reply.body.get("attributeNames"), texts(&["key", "bogusAttribute"]));
        let rows = reply.body.get("results").items();
        assert!(rows.contains(&Datum::List(vec![text("M0$management"), Datum::Null])), "{rows:?}");
    }
    let rows = manager.query(&format!("{SKUPPER}router.address"), &["key"]);
    assert!(rows.contains(&vec![text("M$management")]), "{rows:?}");
}
