//! What makes the other cases say something about several shards: with `RINGMAIN_TEST_SHARDS` above 1, peers that connect
//! one after the other, as a case's sender and receiver do, sit on different shards.

use crate::support::{Outcomes, Peer, Router, message};

/// The shard that a peer's connection is on: shards take turns with the numbers of connections.
fn shard_of(router: &Router, peer: &Peer) -> u64 {
    let address = peer.stream().local_addr().expect("it is connected");
    let host = format!("host={address} ");
    let line = router.await_log_where("the connection's opening", |line| {
        line.contains("Connection Opened") && line.contains(&host)
    });
    let number = line.split_once("[C").and_then(|(_, rest)| rest.split_once(']')).expect("it has a number").0;
    (number.parse::<u64>().expect("a number") - 1) % router.shards()
}

/// Each of as many peers as there are shards is on another one, and each of them reaches each.
#[test]
fn peers_that_come_one_after_the_other_sit_on_different_shards() {
    let router = Router::start();
    let mut peers: Vec<Peer> = (0..router.shards()).map(|_| router.peer()).collect();
    let mut shards: Vec<u64> = peers.iter().map(|peer| shard_of(&router, peer)).collect();
    shards.sort_unstable();
    assert_eq!(shards, (0..router.shards()).collect::<Vec<_>>());

    let address = |number: usize| format!("shards/{number}");
    for (number, peer) in peers.iter_mut().enumerate() {
        peer.attach_receiver(&address(number), 100);
    }
    let count = peers.len();
    for from in 0..count {
        let link = peers[from].attach_anonymous();
        for to in 0..count {
            let message = message::addressed(&address(to), format!("from {from} to {to}").as_bytes());
            let id = peers[from].send_delivery(link, &message, false);
            let delivery = peers[to].expect_delivery();
            assert_eq!(delivery.payload, message);
            peers[to].accept(&delivery);
            peers[from].expect_outcome(id);
        }
        assert_eq!(peers[from].outcomes, Outcomes { accepted: count, ..Outcomes::default() });
    }
}
