//! What `qdmanage` and `qdstat` do, by the client library that they use.

use std::time::Duration;

use serde_json::{Value, json};

use crate::peer::{Library, peers};
use crate::process::{Deadline, Output, Process};
use crate::router::Router;

const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A running management client.
struct Client {
    process: Process,
    deadline: Deadline,
}

impl Client {
    fn start(router: &Router, address: &str, deadline: Deadline) -> Self {
        let mut command = Library::Proton.interpreter();
        command
            .arg(peers().join("proton/manage.py"))
            .arg(format!("amqp://{}", router.address()))
            .arg(address);
        let mut client =
            Self { process: Process::start("manage.py", &mut command, Output::Stdout), deadline };
        let reply_to = client.line()["reply_to"].clone();
        let reply_to = reply_to.as_str().expect("an address");
        assert!(reply_to.starts_with("amqp:/_topo/0/interop/temp."), "{reply_to}");
        client
    }

    fn line(&mut self) -> Value {
        let line = self.process.next_line(self.deadline).expect("the client goes on");
        serde_json::from_str(&line).expect("a line of JSON")
    }

    /// A request, and its reply.
    fn call(&mut self, properties: &Value, body: &Value) -> Value {
        self.process.say(&json!([properties, body]).to_string());
        self.line()
    }

    /// A request that succeeds with this status; the body of the reply.
    #[track_caller]
    fn expect(&mut self, status: i64, properties: &Value, body: &Value) -> Value {
        let reply = self.call(properties, body);
        assert_eq!(reply["status"], status, "{properties}: {reply}");
        reply["body"].clone()
    }

    /// QUERY in pages of 500, as `qdstat` does it: the rows as objects.
    #[track_caller]
    fn query(&mut self, entity_type: &str) -> Vec<Value> {
        const PAGE: usize = 500;
        let mut rows = Vec::new();
        loop {
            let properties = json!({
                "operation": "QUERY",
                "type": "org.amqp.management",
                "name": "self",
                "entityType": format!("org.apache.qpid.dispatch.{entity_type}"),
                "count": PAGE,
                "offset": rows.len(),
            });
            let body = self.expect(200, &properties, &json!({ "attributeNames": [] }));
            let names = body["attributeNames"].as_array().expect("a list").clone();
            let page = body["results"].as_array().expect("a list").clone();
            let is_last = page.len() < PAGE;
            for row in page {
                let row = row.as_array().expect("a list").clone();
                assert_eq!(row.len(), names.len());
                let named = names.iter().map(|name| name.as_str().expect("a name").to_owned()).zip(row);
                rows.push(Value::Object(named.collect()));
            }
            if is_last {
                return rows;
            }
        }
    }
}

pub fn what_the_tools_do() {
    let deadline = Deadline::after(TIME_LIMIT);
    let router = Router::start(deadline);
    let mut client = Client::start(&router, "$management", deadline);

    // qdstat -g, -c, -l, -a, -m, --log
    let general = client.query("router");
    assert_eq!(general.len(), 1);
    assert_eq!((&general[0]["id"], &general[0]["mode"]), (&json!("interop"), &json!("standalone")));
    let connections = client.query("connection");
    assert_eq!(connections.len(), 1);
    let connection = &connections[0];
    assert_eq!((&connection["dir"], &connection["role"]), (&json!("in"), &json!("normal")));
    // Proton goes through the SASL layer.
    assert_eq!((&connection["isAuthenticated"], &connection["sasl"]), (&json!(true), &json!("ANONYMOUS")));
    let mut directions: Vec<Value> =
        client.query("router.link").iter().map(|link| link["linkDir"].clone()).collect();
    directions.sort_by_key(ToString::to_string);
    assert_eq!(directions, ["in", "out"]);
    let addresses = client.query("router.address");
    let node = addresses.iter().find(|address| address["name"] == "M0$management").expect("the node");
    assert_eq!((&node["inProcess"], &node["distribution"]), (&json!(1), &json!("closest")));
    assert!(client.query("allocator").len() >= 2);
    assert!(client.query("log").iter().any(|log| log["module"] == "ROUTER_CORE"));

    // qdmanage create, read, update, query, delete
    let address = "org.apache.qpid.dispatch.router.config.address";
    let named = |operation: &str| json!({ "operation": operation, "type": address, "name": "work" });
    client.expect(201, &named("CREATE"), &json!({ "prefix": "work", "distribution": "closest" }));
    let read = client.expect(200, &named("READ"), &json!({}));
    assert_eq!((&read["prefix"], &read["distribution"]), (&json!("work"), &json!("closest")));
    client.expect(400, &named("CREATE"), &json!({ "prefix": "other" }));
    assert_eq!(client.query("router.config.address").len(), 2);
    client.expect(204, &named("DELETE"), &json!({}));
    client.expect(404, &named("READ"), &json!({}));
    let log = json!({ "operation": "UPDATE", "type": "log", "name": "log/SERVER" });
    let updated = client.expect(200, &log, &json!({ "enable": "debug+" }));
    assert_eq!(updated["enable"], "debug+");

    // qdmanage get-types, get-operations, get-attributes, get-annotations, get-mgmt-nodes, get-schema, get-log
    for (operation, has) in [
        ("GET-TYPES", "org.apache.qpid.dispatch.router.link"),
        ("GET-OPERATIONS", "org.apache.qpid.dispatch.router.link"),
        ("GET-ATTRIBUTES", "org.apache.qpid.dispatch.router.link"),
        ("GET-SCHEMA", "entityTypes"),
    ] {
        let body = client.expect(200, &json!({ "operation": operation }), &json!({}));
        assert!(body.get(has).is_some(), "{operation}: {body}");
    }
    assert_eq!(client.expect(200, &json!({ "operation": "GET-ANNOTATIONS" }), &json!({})), json!({}));
    let nodes = client.expect(200, &json!({ "operation": "GET-MGMT-NODES" }), &json!({}));
    assert_eq!(nodes, json!(["amqp:/_topo/0/interop/$management"]));
    let lines = client.expect(200, &json!({ "operation": "GET-LOG", "limit": 3 }), &json!({}));
    assert_eq!(lines.as_array().map(Vec::len), Some(3));

    // qdmanage -r
    let mut by_topology = Client::start(&router, "_topo/0/interop/$management", deadline);
    assert_eq!(by_topology.query("connection").len(), 2);
    drop(by_topology);
    drop(client);
    router.stop(deadline);
}
