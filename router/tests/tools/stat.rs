//! `ringmain stat`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use ringmain_codec::DeliveryState;
use serde_json::Value;

use crate::program::{ask, run, run_as};
use crate::support::{Peer, Router, Setup, message};

/// A receiver of `orders/eu` that has accepted three messages and released one, its sender, and a receiver without
/// credit.
fn traffic(router: &Router) -> (Peer, Peer) {
    let mut consumer = router.peer();
    let mut producer = router.peer();
    consumer.attach_receiver("orders/eu", 10);
    consumer.attach_receiver("idle", 0);
    let sender = producer.attach_sender("orders/eu");
    producer.await_credit(sender, 1);
    for number in 0..4 {
        let id = producer.send_delivery(sender, &message::data(&[number]), false);
        let delivery = consumer.expect_delivery();
        let state = if number == 3 { DeliveryState::Released } else { DeliveryState::Accepted };
        consumer.dispose(&delivery, true, Some(state));
        producer.expect_outcome(id);
    }
    (consumer, producer)
}

/// The cells of a table by the places of its heads: texts begin where their head does, numbers end there.
pub fn cells(out: &str, title: &str, key: &str, heads: &[&str]) -> Vec<String> {
    let lines: Vec<&str> = out.lines().collect();
    let at = lines.iter().position(|line| *line == title).unwrap_or_else(|| panic!("{title}: {out}"));
    let head = lines[at + 1];
    assert!(lines[at + 2].trim().chars().all(|c| c == '='), "{out}");
    let line =
        lines[at + 3..].iter().find(|line| line.contains(key)).unwrap_or_else(|| panic!("{key}: {out}"));
    assert!(line.is_ascii(), "{out}");
    let cell = |name: &&str| {
        // Heads with blanks in them are told apart by two blanks between heads.
        let start = head.find(&format!("  {name}")).unwrap_or_else(|| panic!("{name}: {out}")) + 2;
        let end = start + name.len();
        let is_blank = |at: usize| line.as_bytes().get(at).is_none_or(|byte| *byte == b' ');
        if !is_blank(start) && is_blank(start - 1) {
            let rest = &line[start..];
            rest.split("  ").next().unwrap_or_default().trim().to_owned()
        } else {
            let until = line.get(..end).unwrap_or(line);
            until.rsplit("  ").next().unwrap_or_default().trim().to_owned()
        }
    };
    heads.iter().map(cell).collect()
}

#[test]
fn addresses_and_links_say_what_was_sent() {
    let router = Router::start();
    let _peers = traffic(&router);
    let out = ask(&router, "stat -a").ok();
    assert_eq!(
        cells(
            &out,
            "Router Addresses",
            "orders/eu",
            &["class", "addr", "phs", "distrib", "local", "in", "out"]
        ),
        ["mobile", "orders/eu", "0", "balanced", "1", "4", "4"],
        "{out}"
    );
    let out = ask(&router, "stat --links -v").ok();
    let links: String =
        out.lines().filter(|line| !line.contains(" out ")).map(|line| format!("{line}\n")).collect();
    assert_eq!(
        cells(
            &links,
            "Router Links",
            "orders/eu",
            &["type", "dir", "class", "addr", "cap", "deliv", "acc", "rej", "rel"]
        ),
        ["endpoint", "in", "mobile", "orders/eu", "250", "4", "3", "0", "1"],
        "{out}"
    );
    assert_eq!(
        cells(&out, "Router Links", " idle ", &["dir", "addr", "cred", "oper"]),
        ["out", "idle", "0", "up"]
    );
}

#[test]
fn the_general_view_is_the_default() {
    let router = Router::start();
    let _peers = traffic(&router);
    let out = ask(&router, "stat").ok();
    let of = |name: &str| cells(&out, "Router Statistics", &format!("  {name}  "), &["value"])[0].clone();
    assert_eq!((of("Router Id"), of("Version")), ("R".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
    // The two peers and the tool itself.
    assert_eq!(of("Connections"), "3");
    assert_eq!((of("Accepted Count"), of("Released Count")), ("3".to_owned(), "1".to_owned()));
    assert!(of("Uptime").starts_with("000:00:"), "{out}");
    assert!(out.lines().nth(1).is_some_and(|line| line == "R"), "{out}");
    let long = ask(&router, "stat --general").ok();
    assert_eq!(long.lines().count(), out.lines().count());
}

#[test]
fn connections_by_whom_they_are_from() {
    let router = Router::start();
    let peer = router.peer();
    let own = peer.stream().local_addr().expect("a connected socket").to_string();
    let out = ask(&router, "stat -c").ok();
    let heads = ["host", "container", "role", "dir", "security", "authentication", "last dlv"];
    assert_eq!(
        cells(&out, "Connections", &own, &heads),
        [own.as_str(), "peer", "normal", "in", "no-security", "no-auth", "-"],
        "{out}"
    );
    // The tool's own connection has gone through SASL.
    assert_eq!(
        cells(&out, "Connections", "ringmain-client", &["authentication"]),
        ["anonymous-user"],
        "{out}"
    );
}

#[test]
fn values_for_programs() {
    let router = Router::start();
    let _peers = traffic(&router);
    let out = ask(&router, "stat -a --csv").ok();
    let mut reader = csv::Reader::from_reader(out.as_bytes());
    let heads = reader.headers().expect("heads").clone();
    let column = |name: &str| heads.iter().position(|head| head == name).expect("a column");
    let rows: Vec<_> = reader.records().map(|row| row.expect("a row")).collect();
    let row = rows.iter().find(|row| &row[column("addr")] == "orders/eu").expect("the address");
    assert_eq!((&row[column("in")], &row[column("class")]), ("4", "mobile"));

    let json = ask(&router, "stat -l --json").json();
    assert_eq!((&json["router"], &json["view"]), (&"R".into(), &"links".into()));
    let links = json["entities"].as_array().expect("a list");
    let incoming: Vec<&Value> =
        links.iter().filter(|link| link["owningAddr"] == "M0orders/eu" && link["linkDir"] == "in").collect();
    assert_eq!(incoming.len(), 1, "{json}");
    assert_eq!((&incoming[0]["acceptedCount"], &incoming[0]["releasedCount"]), (&3.into(), &1.into()));
    let all = ask(&router, "stat --all-entities --json").json();
    assert_eq!(all["entities"]["general"][0]["id"], "R");
    assert_eq!(all["entities"]["links"].as_array().expect("a list").len(), links.len());
}

/// More than a page of 500, and fewer than all.
#[test]
fn many_rows_come_whole_and_a_limit_holds() {
    let router = Router::start();
    let mut peer = router.peer();
    for number in 0..1100 {
        peer.attach_receiver(&format!("many/{number}"), 1);
    }
    let json = ask(&router, "stat -a --json").json();
    let many = |json: &Value| {
        let entities = json["entities"].as_array().expect("a list").clone();
        entities
            .iter()
            .filter(|entity| entity["name"].as_str().is_some_and(|name| name.starts_with("M0many/")))
            .count()
    };
    assert_eq!(many(&json), 1100);
    let limited = ask(&router, "stat -a --json --limit 7").json();
    assert_eq!(limited["entities"].as_array().expect("a list").len(), 7);
}

#[test]
fn every_view_prints_something() {
    let router = Router::with(Setup {
        sections: "autoLink {\n address: q\n direction: in\n containerId: broker\n}\n",
        ..Setup::default()
    });
    router.await_log("Operational");
    for (view, said) in [
        ("-n", "router-id"),
        ("-e", "No Edge Router Connections"),
        ("-m", "output_buffer_"),
        ("-p", "Maximum Concurrent Connections"),
        ("--autolinks", "extAddr"),
        ("--linkroutes", "No Link Routes found"),
        ("--vhosts", "No Vhosts configured"),
        ("--vhostgroups", "No Vhost User Groups configured"),
        ("--vhoststats", "No Vhost Stats"),
        ("--log", "SERVER (notice) Operational"),
        ("--all-entities", "Router Statistics"),
        ("--all-routers", "Router Statistics"),
        ("-g -r R", "Router Statistics"),
    ] {
        let out = ask(&router, &format!("stat {view}")).ok();
        assert!(out.contains(said), "{view}: {out}");
        assert!(out.lines().all(|line| line.trim_end() == line), "{view}: {out}");
    }
}

#[test]
fn watching_shows_rates() {
    let router = Router::start();
    let (mut consumer, mut producer) = traffic(&router);
    let mut watch = Command::new(env!("CARGO_BIN_EXE_ringmain"))
        .args(["stat", "-a", "--csv", "--watch", "0.1", "-b", &router.address().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut lines = BufReader::new(watch.stdout.take().expect("it is piped")).lines();
    let mut line = || lines.next().expect("it goes on").expect("text");
    let head = line();
    let names: Vec<&str> = head.split(',').map(|name| name.trim_matches('"')).collect();
    assert_eq!(names[0], "time");
    let column = names.iter().position(|name| *name == "in/s").expect("a column");
    let mut rate = |of: &str| loop {
        let line = line();
        if line.contains("\"orders/eu\"") {
            let cell = line.split(',').nth(column).expect("a cell").trim_matches('"').to_owned();
            if (of == "none") == cell.is_empty() && (of != "moving" || cell != "0.00") {
                return cell;
            }
        }
    };
    // At first no rate is known, then it is zero, and more once something is sent.
    rate("none");
    assert_eq!(rate("known"), "0.00");
    let sender = producer.attach_sender("orders/eu");
    producer.await_credit(sender, 1);
    producer.send_delivery(sender, &message::data(&[9]), true);
    consumer.expect_delivery();
    assert!(rate("moving").parse::<f64>().expect("a number") > 0.0);
    let pid = rustix::process::Pid::from_child(&watch);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    assert_eq!(watch.wait().expect("it is a child").code(), Some(0));
}

#[test]
fn called_by_other_names() {
    let router = Router::start();
    let _peers = traffic(&router);
    let out = run_as("qdstat", &format!("-a -b {}", router.address())).ok();
    assert!(out.contains("Router Addresses") && out.contains("orders/eu"), "{out}");
    let out = run_as("qdstat", &format!("--general --csv --bus amqp://{}", router.address())).ok();
    assert!(
        out.contains("Router Statistics\n\"attr\",\"value\"\n") && out.contains("\"Router Id\",\"R\"\n"),
        "{out}"
    );
    // `skrouterd` knows no phases.
    let out = run_as("skstat", &format!("-a -b {}", router.address())).ok();
    assert!(!out.contains("phs") && out.contains("  orders/eu  "), "{out}");
}

#[test]
fn without_a_router_it_says_what_to_do() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let said = run(&format!("stat -b {address}"));
    assert_eq!((said.status, said.out.as_str()), (1, ""));
    assert!(said.err.contains(&address.to_string()) && said.err.contains("--bus"), "{}", said.err);
    let said = run_as("qdstat", &format!("-g -b {address}"));
    assert_eq!(said.status, 1);
    assert!(said.out.starts_with("ConnectionException: "), "{}", said.out);
    // Somebody listens and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let said = run(&format!("stat -t 0.2 -b {}", silent.local_addr().expect("an address")));
    assert_eq!(said.status, 1);
    assert!(said.err.contains("timed out: waited 0.2 s"), "{}", said.err);
    let said = run("top");
    assert_eq!(said.status, 1);
    assert!(said.err.contains("needs a terminal") && said.err.contains("stat --watch"), "{}", said.err);
}

#[test]
fn a_router_that_is_not_there() {
    let router = Router::start();
    let said = ask(&router, "stat -t 0.5 -r NOWHERE");
    assert_eq!(said.status, 1, "{said:?}");
    assert!(said.err.contains("NOWHERE"), "{}", said.err);
    let said = ask(&router, "stat --ssl-certificate x.pem");
    assert!(said.status == 1 && said.err.contains("--ssl-certificate x.pem: can't be read"), "{said:?}");
}
