//! Operations and their statuses (acceptance list "Management"; router-protocol reference §10).

use crate::datum::{Datum, map, text, texts};
use crate::manager::{DISPATCH, Manager, SKUPPER, request};
use crate::support::{Router, receiver};

#[test]
fn what_cannot_be_done_has_the_status_that_scripts_expect() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let listener = format!("{DISPATCH}listener");
    let missing = manager.ask([("type", text(&listener))], map([]));
    assert_eq!(missing.status, 400, "{}", missing.description);
    let unknown = manager.ask([("operation", text("FROBNICATE"))], map([]));
    assert_eq!(unknown.status, 501, "{}", unknown.description);
    manager.read(&listener, "nobody").expect(404, "No entity with name=nobody");
    manager.read(&format!("{DISPATCH}connection"), "nobody").expect(404, "Not Found");
    manager.read("nothing", "nobody").expect(400, "No such entity type 'nothing'");
    let other_type = manager.read(&listener, "router/R");
    other_type.expect(
        400,
        "Entity type 'org.apache.qpid.dispatch.router' does not match requested type \
         'org.apache.qpid.dispatch.listener'",
    );
    let update = [("operation", text("UPDATE")), ("type", text(&listener)), ("name", text("x"))];
    manager.ask(update, map([("cost", Datum::Int(2))])).expect(
        501,
        "Operation 'UPDATE' not implemented for 'org.apache.qpid.dispatch.listener' ['CREATE', 'DELETE', 'READ']",
    );
    let connections = manager.query(&format!("{DISPATCH}connection"), &["identity"]);
    let delete = [
        ("operation", text("DELETE")),
        ("type", text(&format!("{DISPATCH}connection"))),
        ("identity", connections[0][0].clone()),
    ];
    manager.ask(delete, map([])).expect(403, "Forbidden");
    let read = [("operation", text("READ")), ("type", text(&listener))];
    manager.ask(read, map([])).expect(400, "org.apache.qpid.dispatch.listener: No name or identity provided");
}

#[test]
fn a_query_without_a_type_tells_of_everything() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let names = ["type", "identity", "linkName", "key", "container", "module"];
    let reply = manager.ask([("operation", text("QUERY"))], map([("attributeNames", texts(&names))]));
    assert_eq!(reply.status, 200);
    assert_eq!(*reply.body.get("attributeNames"), texts(&names));
    let rows = reply.body.get("results").items();
    let of = |name: &str| {
        let wanted = text(&format!("{DISPATCH}{name}"));
        rows.iter().filter(|row| row.items()[0] == wanted).count()
    };
    for (name, least) in [
        ("management", 1),
        ("router", 1),
        ("listener", 1),
        ("log", 10),
        ("logStats", 10),
        ("allocator", 2),
        ("router.node", 1),
        ("connection", 1),
        ("router.link", 2),
        ("router.address", 3),
    ] {
        assert!(of(name) >= least, "{name}: {} of {rows:?}", of(name));
    }
}

#[test]
fn the_node_is_reached_under_all_of_its_addresses() {
    let router = Router::start();
    let addresses = [
        "$management",
        "_local/$management",
        "amqp:/_local/$management",
        "amqp:/_topo/0/R/$management",
        "_topo/all/R/$management",
        "_edge/R/$management",
    ];
    for address in addresses {
        let mut manager = Manager::of(router.peer(), address);
        let nodes = manager.ask([("operation", text("GET-MGMT-NODES"))], map([]));
        assert_eq!(nodes.body, texts(&["amqp:/_topo/0/R/$management"]), "{address}");
    }
}

#[test]
fn nobody_else_receives_what_is_for_the_node() {
    let router = Router::start();
    let mut peer = router.peer();
    for address in ["$management", "_local/$management"] {
        let (link, answer) = peer.attach(0, receiver(address));
        assert!(answer.attach().source.is_none(), "{answer:?}");
        peer.expect_detached_with(link, "amqp:not-allowed");
    }
}

#[test]
fn garbage_is_passed_over() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let reply_to = manager.reply_to.clone();
    let id = Datum::Null;
    manager.send(b"this is no message");
    manager.send(&[0x00, 0x53, 0x77, 0x40]);
    // A body of another type, properties of other types.
    let odd = map([("operation", Datum::Int(7)), ("entityType", Datum::List(Vec::new()))]);
    manager.send(&request(&reply_to, &id, &odd, &Datum::Int(1), None));
    assert_eq!(manager.receive().status, 400);
    let wrong = map([("operation", text("QUERY")), ("entityType", text("log")), ("count", text("many"))]);
    for names in [text("name"), Datum::List(vec![Datum::Int(1)])] {
        manager.send(&request(&reply_to, &id, &wrong, &map([("attributeNames", names)]), None));
        let reply = manager.receive();
        assert_eq!(
            (reply.status, reply.description.as_str()),
            (400, "'attributeNames' must be a list of strings")
        );
    }
}

#[test]
fn pages_make_up_the_whole() {
    let router = Router::start();
    let mut peer = router.peer();
    for number in 0..30 {
        peer.attach_receiver(&format!("page/{number}"), 0);
    }
    let mut manager = Manager::new(&router);
    let whole: Vec<Datum> = manager.query("router.address", &["key"]).into_iter().flatten().collect();
    assert_eq!(whole.len(), 33, "{whole:?}");
    let mut pages = Vec::new();
    for offset in (0..).step_by(7) {
        let page = manager.ask(
            [
                ("operation", text("QUERY")),
                ("entityType", text("router.address")),
                ("offset", Datum::Int(offset)),
                ("count", Datum::Int(7)),
            ],
            map([("attributeNames", texts(&["key"]))]),
        );
        let rows = page.body.get("results").items().to_vec();
        assert!(rows.len() <= 7);
        if rows.is_empty() {
            break;
        }
        pages.extend(rows.iter().map(|row| row.items()[0].clone()));
    }
    assert_eq!(pages, whole);
}

#[test]
fn operations_are_told_in_the_order_that_tools_know() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    for prefix in [DISPATCH, SKUPPER] {
        let link = format!("{prefix}router.link");
        let reply =
            manager.ask([("operation", text("GET-OPERATIONS")), ("entityType", text(&link))], map([]));
        assert_eq!(*reply.body.get(&link), texts(&["UPDATE", "READ"]));
    }
}

#[test]
fn the_log_is_told() {
    let router = Router::start();
    // Clients may come a moment before this is logged.
    router.await_log("Operational");
    let mut manager = Manager::new(&router);
    let log = manager.ask([("operation", text("GET-LOG")), ("limit", Datum::Int(500))], map([]));
    let lines = log.body.items();
    assert!(!lines.is_empty() && lines.len() <= 500);
    let operational = lines.iter().find(|line| line.items()[2].str().starts_with("Operational"));
    let [module, level, _, _, _, time] = operational.expect("the line that scripts wait for").items() else {
        panic!("six members: {operational:?}");
    };
    assert_eq!((module.str(), level.str()), ("SERVER", "notice"));
    assert!(matches!(time, Datum::Double(time) if *time > 1.7e9), "{time:?}");
    let two = manager.ask([("operation", text("GET-LOG")), ("limit", Datum::Int(2))], map([]));
    assert_eq!(two.body.items().len(), 2);
}

#[test]
fn both_forms_of_the_schema_say_the_same() {
    let router = Router::start();
    let mut manager = Manager::new(&router);
    let schema = manager.ask([("operation", text("GET-SCHEMA"))], map([])).body;
    assert_eq!(*schema.get("prefix"), text("org.apache.qpid.dispatch"));
    let role = schema.get("entityTypes").get("listener").get("attributes").get("role");
    assert!(role.get("type").items().contains(&text("normal")), "{role:?}");
    assert_eq!(*role.get("default"), text("normal"));
    for (indent, is_long) in [(None, false), (Some(Datum::Int(2)), true)] {
        let json = match indent {
            None => manager.ask([("operation", text("GET-JSON-SCHEMA"))], map([])),
            Some(indent) => {
                manager.ask([("operation", text("GET-JSON-SCHEMA")), ("indent", indent)], map([]))
            }
        };
        assert_eq!(json.body.str().contains("\n  \"prefix\""), is_long);
        let json: serde_json::Value = serde_json::from_str(json.body.str()).expect("JSON");
        assert_eq!(as_json(&schema), json);
    }
}

fn as_json(datum: &Datum) -> serde_json::Value {
    match datum {
        Datum::Null => serde_json::Value::Null,
        Datum::Bool(value) => (*value).into(),
        Datum::Text(text) => text.clone().into(),
        Datum::List(items) => items.iter().map(as_json).collect(),
        Datum::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.str().to_owned(), as_json(value)));
            serde_json::Value::Object(entries.collect())
        }
        number => number.number().into(),
    }
}
