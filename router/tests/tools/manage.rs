//! `ringmain manage`.

use serde_json::{Value, json};

use crate::program::{ask, run_as, run_with};
use crate::support::Router;

/// The entities of a type.
fn query(router: &Router, of_type: &str) -> Vec<Value> {
    ask(router, &format!("manage query --type {of_type}")).json().as_array().expect("a list").clone()
}

#[test]
fn an_address_is_created_read_and_deleted() {
    let router = Router::start();
    let created =
        ask(&router, "manage CREATE --type address --name news prefix=news distribution=multicast").json();
    assert_eq!((&created["prefix"], &created["distribution"]), (&"news".into(), &"multicast".into()));
    assert_eq!(created["type"], "org.apache.qpid.dispatch.router.config.address");
    let read = ask(&router, "manage read --type address --name news").json();
    assert_eq!(read, created);
    let names = ask(&router, "manage query --type address name distribution").json();
    assert_eq!(names, json!([{"name": "news", "distribution": "multicast"}]));
    let said = ask(&router, "manage create --type address --name news prefix=more");
    assert_eq!(said.status, 1);
    assert_eq!(
        said.err,
        "ringmain: the router refuses (400 bad request): Name conflicts with an existing entity\n"
    );
    assert_eq!(ask(&router, "manage delete --type address --name news").ok(), "");
    let said = ask(&router, "manage read --type address --name news");
    assert!(said.status == 1 && said.err.contains("404 not found"), "{said:?}");
}

#[test]
fn several_are_created_from_standard_input() {
    let router = Router::start();
    let arguments = format!("manage create --stdin -b {}", router.address());
    let input = r#"[{"type": "address", "name": "a", "prefix": "a"},
                    {"type": "listener", "name": "in", "host": "127.0.0.1", "port": "0"}]"#;
    let created = run_with(arguments.split(' ').map(str::to_owned).collect(), input).json();
    assert_eq!(created.as_array().map(Vec::len), Some(2), "{created}");
    assert_eq!(created[1]["name"], "in");
    let listeners = query(&router, "listener");
    assert!(listeners.iter().any(|listener| listener["name"] == "in"), "{listeners:?}");
    // One that is wrong after one that is right: the first is there, and both are told.
    let input = r#"[{"type": "address", "name": "b", "prefix": "b"}, {"type": "address", "name": "c"}]"#;
    let said = run_with(arguments.split(' ').map(str::to_owned).collect(), input);
    assert_eq!(said.status, 1);
    assert!(said.out.contains("\"prefix\": \"b\"") && said.err.contains("'prefix' or 'pattern'"), "{said:?}");
}

#[test]
fn a_log_level_is_changed() {
    let router = Router::start();
    let updated = ask(&router, "manage update --type log --name log/AGENT enable=debug+").json();
    assert_eq!(updated["enable"], "debug+");
    let lines = ask(&router, "manage get-log limit=3").json();
    let lines = lines.as_array().expect("a list").clone();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.as_array().is_some_and(|line| line.len() == 6)), "{lines:?}");
}

#[test]
fn what_there_is() {
    let router = Router::start();
    let nodes = ask(&router, "manage get-mgmt-nodes").json();
    assert_eq!(nodes, json!(["amqp:/_topo/0/R/$management"]));
    let operations = ask(&router, "manage get-operations --type router.link").json();
    assert_eq!(operations, json!({"org.apache.qpid.dispatch.router.link": ["UPDATE", "READ"]}));
    let types = ask(&router, "manage GET-TYPES").json();
    assert!(types.get("org.apache.qpid.dispatch.listener").is_some(), "{types}");
    let attributes = ask(&router, "manage get-attributes listener").json();
    let names = attributes["org.apache.qpid.dispatch.listener"].as_array().expect("a list").clone();
    assert!(names.contains(&"stripAnnotations".into()), "{attributes}");
    assert_eq!(ask(&router, "manage get-annotations").json(), json!({}));
    let schema = ask(&router, "manage get-schema").json();
    assert_eq!(schema["prefix"], "org.apache.qpid.dispatch");
    // The same as text that is JSON.
    assert_eq!(ask(&router, "manage get-json-schema").json(), schema);
    let one_line = ask(&router, "manage query --type router --indent -1").ok();
    assert_eq!(one_line.lines().count(), 1);
    let all = ask(&router, "manage query").json();
    assert!(
        all.as_array()
            .is_some_and(|all| all.iter().any(|entity| entity["type"] == "org.apache.qpid.dispatch.router"))
    );
}

#[test]
fn a_connection_is_closed() {
    let router = Router::start();
    let mut victim = router.peer();
    let own = victim.stream().local_addr().expect("a connected socket").to_string();
    let connections = query(&router, "connection");
    let found = connections.iter().find(|connection| connection["host"] == own.as_str()).expect("the peer");
    let identity = found["identity"].as_str().expect("a text");
    ask(&router, &format!("manage update --type connection --identity {identity} adminStatus=deleted")).ok();
    victim.expect_close();
}

/// Texts and status as scripts for `qdmanage` look for them.
#[test]
fn called_qdmanage() {
    let router = Router::start();
    let bus = router.address();
    let said = run_as("qdmanage", &format!("-b {bus} READ --type listener --name nobody"));
    assert_eq!((said.status, said.err.as_str()), (1, ""));
    assert_eq!(said.out, "NotFoundStatus: No entity with name=nobody\n");
    let said = run_as("qdmanage", &format!("-b {bus} CREATE --type listener port=0 colour=red"));
    assert!(said.status == 1 && said.out.starts_with("BadRequestStatus: "), "{said:?}");
    let said = run_as("qdmanage", &format!("-b {bus} DELETE --type router --name R"));
    assert!(said.status == 1 && said.out.starts_with("ForbiddenStatus: "), "{said:?}");
    let said = run_as("qdmanage", &format!("-b {bus} FROBNICATE"));
    assert!(said.status == 1 && said.out.starts_with("NotImplementedStatus: "), "{said:?}");
    let said = run_as("qdmanage", "--type listener");
    assert_eq!(said.status, 2);
    let nodes = run_as("qdmanage", &format!("-b {bus} get-mgmt-nodes")).json();
    assert_eq!(nodes[0], "amqp:/_topo/0/R/$management");
    let links = run_as("skmanage", &format!("-b {bus} query --type router.link")).json();
    assert_eq!(links[0]["type"], "io.skupper.router.router.link");
}

/// Whoever is refused says goodbye all the same: an orderly close is no error in the router's log.
#[test]
fn a_refused_request_ends_with_a_close() {
    let router = Router::start();
    let said = ask(&router, "manage read --type address --name nobody");
    assert_eq!(said.status, 1);
    // A connection after it, so that what the router says of the first has been said.
    ask(&router, "manage get-types").ok();
    let without = |line: &String| line.contains("without an AMQP close");
    assert!(!router.log().iter().any(without), "{:?}", router.log());
}
