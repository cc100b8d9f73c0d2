//! Questions while messages flow: neither loses anything.

use std::thread;

use crate::datum::{Datum, map, text, texts};
use crate::manager::{Manager, any_message, request};
use crate::support::{Router, Setup};

const MESSAGES: usize = 20_000;
const CLIENTS: usize = 3;
const QUERIES: usize = 150;

#[test]
fn two_shards_lose_neither_messages_nor_requests() {
    let router = Router::with(Setup { router: "    workerThreads: 2\n", ..Setup::default() });
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 1000);
    // Many addresses, so that a survey takes several turns.
    let mut crowd = router.peer();
    for number in 0..600 {
        crowd.attach_receiver(&format!("crowd/{number}"), 0);
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut producer = router.peer();
            let sender = producer.attach_sender("q");
            producer.send_many(sender, MESSAGES, false, |_| any_message());
            producer.absorb_until("all outcomes", |peer| peer.outcomes.total() == MESSAGES);
            assert_eq!(producer.outcomes.accepted, MESSAGES);
        });
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut manager = Manager::new(&router);
                for _ in 0..QUERIES {
                    let rows = manager.query(
                        "org.apache.qpid.dispatch.router.address",
                        &["name", "subscriberCount", "remoteCount", "containerCount"],
                    );
                    let crowd = rows.iter().filter(|row| row[0].str().starts_with("M0crowd/")).count();
                    assert_eq!(crowd, 600);
                }
                let reply = manager.ask(
                    [("operation", text("QUERY")), ("entityType", text("router.link"))],
                    map([("attributeNames", texts(&["identity"]))]),
                );
                assert!(reply.body.get("results").items().len() > 600);
            });
        }
        for _ in 0..MESSAGES {
            let delivery = consumer.expect_delivery();
            consumer.accept(&delivery);
            let link = consumer.link(receiver);
            if link.limit.wrapping_sub(link.delivery_count) < 500 {
                consumer.grant(receiver, 1000);
            }
        }
    });
}

/// A client that asks for much and takes nothing, neither by credit nor from its socket.
#[test]
fn a_client_that_takes_no_replies_holds_up_nobody() {
    let router = Router::with(Setup { router: "    workerThreads: 2\n", ..Setup::default() });
    let mut idlers: Vec<Manager> = (0..6).map(|_| Manager::new(&router)).collect();
    for (number, idler) in idlers.iter_mut().enumerate() {
        if number % 2 == 0 {
            idler.take_no_more();
        }
        let reply_to = idler.reply_to.clone();
        let schema = map([("operation", text("GET-JSON-SCHEMA"))]);
        for _ in 0..20 {
            idler.send(&request(&reply_to, &Datum::Null, &schema, &map([]), None));
        }
    }
    let mut manager = Manager::new(&router);
    for _ in 0..50 {
        assert_eq!(manager.query("router.address", &["name"]).len(), 2 + 7);
    }
}
