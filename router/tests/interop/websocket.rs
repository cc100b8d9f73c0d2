//! rhea through its WebSocket client, one of its programs to the other, and to one that speaks plain AMQP.

use std::time::Duration;

use serde_json::Value;

use crate::peer::{Library, peers};
use crate::process::{Deadline, Output, Process};
use crate::router::Router;

const TIME_LIMIT: Duration = Duration::from_secs(60);

fn start(arguments: &str, url: &str) -> Process {
    let mut command = Library::Rhea.interpreter();
    command.arg(peers().join("rhea/peer.js")).args(arguments.split(' ')).args(["--url", url]);
    Process::start(&format!("rhea ({arguments})"), &mut command, Output::Stdout)
}

/// Reads on until the first event called `name`, and counts the others by the way.
fn wait_for(process: &mut Process, name: &str, deadline: Deadline) -> (Value, usize) {
    let mut before = 0;
    loop {
        let line = process.next_line(deadline).unwrap_or_else(|| panic!("ended without \"{name}\""));
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not an event: {line}"));
        assert!(event["event"] != "failed", "{}: {}", process.name(), event["why"]);
        if event["event"] == name {
            return (event, before);
        }
        before += 1;
    }
}

/// Small messages and one that takes many frames, settled by both sides, over either sub-protocol.
pub fn rhea_to_rhea() {
    let deadline = Deadline::after(TIME_LIMIT);
    let router = Router::start(deadline);
    let (web, plain) = (format!("ws://{}", router.web()), format!("amqp://{}", router.address()));
    for (number, (receiver, sender, protocol, size)) in [
        (&web, &web, "amqp", 100),
        (&web, &plain, "binary", 100),
        (&plain, &web, "binary,amqp", 100),
        (&web, &web, "amqp", 3_000_000),
    ]
    .into_iter()
    .enumerate()
    {
        let count = if size > 1000 { 3 } else { 50 };
        let address = format!("websocket/{number}");
        let mut receive = start(&format!("receive --address {address} --protocol {protocol}"), receiver);
        wait_for(&mut receive, "ready", deadline);
        let arguments =
            format!("send --address {address} --count {count} --size {size} --protocol {protocol}");
        let mut send = start(&arguments, sender);
        let (_, outcomes) = wait_for(&mut send, "done", deadline);
        assert_eq!(outcomes, count, "each delivery has an outcome");
        assert!(send.wait(deadline).success());
        for index in 0..count {
            let (received, _) = wait_for(&mut receive, "received", deadline);
            assert_eq!(
                (received["id"].as_u64(), received["size"].as_u64()),
                (Some(index as u64), Some(size))
            );
        }
        receive.say("stop");
        wait_for(&mut receive, "done", deadline);
        assert!(receive.wait(deadline).success());
    }
    router.stop(deadline);
}
