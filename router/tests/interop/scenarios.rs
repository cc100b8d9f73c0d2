//! What the clients are told to do, and what must come of it. `peers/README.md` has the options and the events.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::peer::{Library, Peer};
use crate::process::Deadline;
use crate::router::{Router, UNAVAILABLE};

/// Which library sends to which.
#[derive(Clone, Copy)]
pub struct Pairing {
    pub sender: Library,
    pub receiver: Library,
}

/// For one scenario: the slowest takes a few seconds on two cores.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// One router, and the receiver's side attached to it.
struct Scene {
    pairing: Pairing,
    router: Router,
    deadline: Deadline,
}

impl Scene {
    fn new(pairing: Pairing) -> Self {
        let deadline = Deadline::after(TIME_LIMIT);
        Self { pairing, router: Router::start(deadline), deadline }
    }

    /// A program of the receiving library, attached and with credit given.
    fn ready(&self, arguments: &str) -> Peer {
        let mut peer = Peer::start(self.pairing.receiver, arguments, &self.router, self.deadline);
        peer.wait_for("ready");
        peer
    }

    fn sender(&self, arguments: &str) -> Peer {
        Peer::start(self.pairing.sender, arguments, &self.router, self.deadline)
    }

    /// Ends the receiver, and then the router, which must still be well.
    fn finish(self, mut receiver: Peer) -> Peer {
        receiver.say("stop");
        receiver.finish();
        // The library might have hidden a second delivery: so not only what it showed is counted.
        let received = receiver.named("received").len();
        assert_eq!(receiver.wire().deliveries(), received, "deliveries of the router to {}", receiver.name());
        self.router.stop(self.deadline);
        receiver
    }
}

pub fn unsettled(pairing: Pairing) {
    let scene = Scene::new(pairing);
    let mut receiver = scene.ready("receive --address q --credit 100");
    let mut sender = scene.sender("send --address q --count 2000");
    sender.finish();
    receiver.wait_for_count("received", 2000);
    let receiver = scene.finish(receiver);
    expect_received(&receiver, pairing, 0..2000, 100, Settled::No);
    expect_outcomes(&sender, (0..2000).map(|_| json!({ "outcome": "accepted" })));
}

pub fn presettled(pairing: Pairing) {
    let scene = Scene::new(pairing);
    // A router may drop what is pre-settled when it can't pass it on (router-protocol §8.4): so credit for all of it.
    let mut receiver = scene.ready("receive --address q --credit 2500");
    let mut sender = scene.sender("send --address q --count 2000 --presettled");
    sender.finish();
    receiver.wait_for_count("received", 2000);
    let receiver = scene.finish(receiver);
    expect_received(&receiver, pairing, 0..2000, 100, Settled::Yes);
    expect_outcomes(&sender, std::iter::empty());
}

pub fn outcomes(pairing: Pairing) {
    let scene = Scene::new(pairing);
    let names = "accepted,rejected,rejected-bare,released,modified,modified-bare";
    let mut receiver = scene.ready(&format!("receive --address q --outcomes {names}"));
    let mut sender = scene.sender("send --address q --count 12");
    sender.finish();
    receiver.wait_for_count("received", 12);
    let receiver = scene.finish(receiver);
    expect_received(&receiver, pairing, 0..12, 100, Settled::No);
    let expected = [
        json!({ "outcome": "accepted" }),
        json!({
            "outcome": "rejected",
            "condition": "interop:refused",
            "description": "no thanks",
            "info": { "reason": "taste", "tries": 3, "final": true },
        }),
        json!({ "outcome": "rejected" }),
        json!({ "outcome": "released" }),
        json!({
            "outcome": "modified",
            "delivery_failed": true,
            "undeliverable_here": true,
            "annotations": { "x-opt-reason": "taste", "x-opt-tries": 3 },
        }),
        json!({ "outcome": "modified", "delivery_failed": true, "undeliverable_here": false }),
    ];
    expect_outcomes(&sender, expected.iter().cycle().take(12).cloned());
}

pub fn large_message(pairing: Pairing) {
    let scene = Scene::new(pairing);
    let size = 10 * 1024 * 1024;
    let mut receiver = scene.ready("receive --address q");
    let mut sender = scene.sender(&format!("send --address q --size {size}"));
    sender.finish();
    receiver.wait_for_count("received", 1);
    let receiver = scene.finish(receiver);
    expect_received(&receiver, pairing, 0..1, size, Settled::No);
    expect_outcomes(&sender, [json!({ "outcome": "accepted" })]);
}

pub fn drain(pairing: Pairing) {
    let scene = Scene::new(pairing);
    let mut receiver = scene.ready("receive --address q --credit 10 --drain-after 3");
    let mut sender = scene.sender("send --address q --count 8 --pause-after 3");
    sender.wait_for("paused");
    let drained = receiver.wait_for("drained");
    assert_eq!(drained["received"], 3, "the drain ended after the three that there were");
    if pairing.receiver.shows_drained() {
        assert_eq!(drained["credit"], 0, "nothing is left of the credit");
    }
    assert_eq!(receiver.wire().drained(), 1, "the router said once that the link is drained");
    // The receiver has given new credit by now: the link works on.
    sender.say("go");
    sender.finish();
    receiver.wait_for_count("received", 8);
    let receiver = scene.finish(receiver);
    expect_received(&receiver, pairing, 0..8, 100, Settled::No);
    expect_outcomes(&sender, (0..8).map(|_| json!({ "outcome": "accepted" })));
}

pub fn request_reply(pairing: Pairing) {
    converse(pairing, "respond --address service", 100, 20);
}

pub fn request_reply_over_relay(pairing: Pairing) {
    converse(pairing, "respond --address service --anonymous", 100, 20);
}

/// The pairing's sender asks, its receiver answers to the dynamic address in reply-to.
fn converse(pairing: Pairing, respond: &str, size: usize, count: usize) {
    let scene = Scene::new(pairing);
    let limits = if size > 512 { "--max-frame-size 512" } else { "" };
    let mut responder = scene.ready(&format!("{respond} {limits}"));
    let mut requester =
        scene.sender(&format!("request --address service --count {count} --size {size} {limits}"));
    let address = requester.wait_for("ready")["address"].clone();
    assert!(address.as_str().is_some_and(|address| !address.is_empty()), "a dynamic address: {address}");
    requester.finish();
    responder.wait_for_count("received", count);
    let responder = scene.finish(responder);
    expect_received(&responder, pairing, 0..count, size, Settled::No);
    for request in responder.named("received") {
        assert_eq!(request["reply_to"], address, "{request}");
    }
    expect_messages(&requester.named("reply"), 0..count, size);
}

pub fn relay(pairing: Pairing) {
    let scene = Scene::new(pairing);
    let mut receiver = scene.ready("receive --address q");
    let mut sender = scene.sender("send --to q,nobody/is/here --count 10");
    sender.finish();
    receiver.wait_for_count("received", 5);
    let receiver = scene.finish(receiver);
    let even: Vec<usize> = (0..10).step_by(2).collect();
    expect_messages(&receiver.named("received"), even, 100);
    let expected = [json!({ "outcome": "accepted" }), json!({ "outcome": "released" })];
    expect_outcomes(&sender, expected.iter().cycle().take(10).cloned());
}

pub fn refused(pairing: Pairing) {
    let scene = Scene::new(pairing);
    let first = format!("--refused {UNAVAILABLE}/address");
    let mut receiver = scene.ready(&format!("receive --address q {first}"));
    let mut sender = scene.sender(&format!("send --address q --count 10 {first}"));
    sender.finish();
    receiver.wait_for_count("received", 10);
    // The refusal took nothing else with it: session and connection serve on.
    let receiver = scene.finish(receiver);
    for peer in [&receiver, &sender] {
        let refusals = peer.named("refused");
        assert_eq!(refusals.len(), 1);
        assert_eq!(refusals[0]["condition"], "amqp:not-found", "{}", refusals[0]);
    }
    expect_received(&receiver, pairing, 0..10, 100, Settled::No);
    expect_outcomes(&sender, (0..10).map(|_| json!({ "outcome": "accepted" })));
}

pub fn credit_of_one(pairing: Pairing) {
    let scene = Scene::new(pairing);
    let mut receiver = scene.ready("receive --address q --credit 1");
    let mut sender = scene.sender("send --address q --count 100");
    sender.finish();
    receiver.wait_for_count("received", 100);
    let receiver = scene.finish(receiver);
    expect_received(&receiver, pairing, 0..100, 100, Settled::No);
    expect_outcomes(&sender, (0..100).map(|_| json!({ "outcome": "accepted" })));
}

pub fn small_window(pairing: Pairing) {
    let scene = Scene::new(pairing);
    // Four frames, of which a message takes three: the window closes within every second message. (It can't be smaller than a
    // message: Proton counts what the program has not read, and that reads whole messages.)
    let limits = "--max-frame-size 1024 --incoming-window 4";
    let mut receiver = scene.ready(&format!("receive --address q {limits}"));
    let mut sender = scene.sender(&format!("send --address q --count 200 --size 2500 {limits}"));
    sender.finish();
    receiver.wait_for_count("received", 200);
    let receiver = scene.finish(receiver);
    expect_received(&receiver, pairing, 0..200, 2500, Settled::No);
    expect_outcomes(&sender, (0..200).map(|_| json!({ "outcome": "accepted" })));
}

pub fn max_frame_size_512(pairing: Pairing) {
    let scene = Scene::new(pairing);
    let mut receiver = scene.ready("receive --address q --max-frame-size 512");
    let mut sender = scene.sender("send --address q --count 20 --size 10000 --max-frame-size 512");
    sender.finish();
    receiver.wait_for_count("received", 20);
    let receiver = scene.finish(receiver);
    expect_received(&receiver, pairing, 0..20, 10_000, Settled::No);
    expect_outcomes(&sender, (0..20).map(|_| json!({ "outcome": "accepted" })));
    for peer in [&receiver, &sender] {
        assert_eq!(peer.wire().max_frame_size_of_client(), Some(512), "what the client asked for");
    }
    let largest = receiver.wire().largest_frame_of_router();
    assert!((400..=512).contains(&largest), "the router's frames fill what the client takes: {largest}");
    // And the other way round: the same two clients, now with large messages in both directions on each connection.
    converse(pairing, "respond --address service", 10_000, 5);
}

#[derive(Clone, Copy)]
enum Settled {
    Yes,
    No,
}

/// All of `ids` and nothing else was received, in this order and intact.
fn expect_received(receiver: &Peer, pairing: Pairing, ids: Range<usize>, size: usize, settled: Settled) {
    let received = receiver.named("received");
    expect_messages(&received, ids, size);
    if pairing.receiver.shows_settled() {
        for message in received {
            assert_eq!(message["settled"], matches!(settled, Settled::Yes), "{message}");
        }
    }
}

fn expect_messages(messages: &[&Value], ids: impl IntoIterator<Item = usize>, size: usize) {
    let mut messages = messages.iter();
    for id in ids {
        let message = messages.next().unwrap_or_else(|| panic!("message {id} is missing"));
        assert_eq!(message["id"], id, "the next message in order is {id}: {message}");
        assert_eq!(message["size"], size, "{message}");
        assert_eq!(message["sha256"], sha256_of_body(id, size), "the body of {message}");
        if message["event"] == "received" {
            assert_eq!(message["subject"], format!("message {id}"), "{message}");
        }
    }
    assert_eq!(messages.next(), None, "one more than was sent");
}

/// Message i has the i-th of `expected` as its outcome, with exactly that data, and just once.
fn expect_outcomes(sender: &Peer, expected: impl IntoIterator<Item = Value>) {
    let mut outcomes: Vec<Value> = sender.named("outcome").into_iter().cloned().collect();
    outcomes.sort_by_key(|outcome| outcome["id"].as_u64());
    let mut outcomes = outcomes.into_iter();
    for (id, expected) in expected.into_iter().enumerate() {
        let mut outcome = outcomes.next().unwrap_or_else(|| panic!("no outcome for message {id}"));
        let fields = outcome.as_object_mut().expect("an event is an object");
        fields.remove("event");
        assert_eq!(fields.remove("id"), Some(json!(id)));
        // Absent data is null, or nothing, or an empty map, as the library likes it.
        fields.retain(|_, value| !value.is_null() && *value != json!({}));
        assert_eq!(outcome, expected, "the outcome of message {id}");
    }
    assert_eq!(outcomes.next(), None, "a second outcome for a message");
}

/// Of the body that `peers/README.md` says message `index` has.
fn sha256_of_body(index: usize, size: usize) -> String {
    let body: Vec<u8> = (0..size).map(|j| ((index + 7 * (j % 251)) % 256) as u8).collect();
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}
