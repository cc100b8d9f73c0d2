//! channel-max and handle-max: C-07 (AMQP 1.0 §2.7.1, §2.7.2).

use ringmain_codec::{Attach, Begin, DeliveryState, Performative};

use crate::support::{OpenOptions, Router, Setup, message, receiver, sender};

const FRAMING_ERROR: &str = "amqp:connection:framing-error";

fn begin() -> Performative<'static> {
    Performative::Begin(Begin { incoming_window: 100, outgoing_window: 100, ..Begin::default() })
}

/// channel-max 0 means one session, and the router keeps to it: whatever channel the peer begins on (the
/// router's own limit allows for it), the answer is on channel 0, and a second session can't be answered.
/// (The peer checks the channel of every frame.)
#[test]
fn c_07_a_channel_max_zero_means_one_session() {
    let router = Router::start();
    for channel in [0, 5] {
        let mut peer = router.connect();
        peer.open_with(OpenOptions { channel_max: 0, ..OpenOptions::default() });
        peer.send(channel, begin(), &[]);
        let answer = peer.expect("begin");
        assert_eq!((answer.channel, answer.begin().remote_channel), (0, Some(channel)));
        let link = peer.attach(channel, sender(Some("q"))).0;
        peer.detach(link);
        peer.send(channel + 1, begin(), &[]);
        let description = peer.expect_closed_with("amqp:resource-limit-exceeded");
        assert!(description.contains("channel-max"), "{description}");
    }
    // The place is free again after the end of the session.
    let mut peer = router.connect();
    peer.open_with(OpenOptions { channel_max: 0, ..OpenOptions::default() });
    for _ in 0..3 {
        peer.send(0, begin(), &[]);
        peer.expect("begin");
        peer.send(0, Performative::End(ringmain_codec::End::default()), &[]);
        assert!(peer.expect("end").end().error.is_none());
    }
}

/// Channels up to the router's channel-max are served, none beyond it.
#[test]
fn c_07_b_a_channel_beyond_channel_max_closes_the_connection() {
    for (listener, channel_max) in [("", 32_767), ("maxSessions: 4", 3)] {
        let router = Router::with(Setup { listener, ..Setup::default() });
        let mut peer = router.connect();
        let open = peer.open_with(OpenOptions::default());
        assert_eq!(open.open().channel_max, channel_max);
        peer.send(channel_max, begin(), &[]);
        assert_eq!(peer.expect("begin").begin().remote_channel, Some(channel_max));
        peer.send(channel_max + 1, begin(), &[]);
        peer.expect_closed_with(FRAMING_ERROR);
    }
}

/// A begin without handle-max means 2^32-1: links attach, at any handle that the router allows, and the
/// router takes the lowest free handle of its own.
#[test]
fn c_07_c_handles_are_sparse_and_used_again() {
    let router = Router::start();
    let mut peer = router.connect();
    peer.open_with(OpenOptions::default());
    peer.send(0, begin(), &[]);
    let router_handle_max = peer.expect("begin").begin().handle_max;
    let before = router.memory();

    let attach_at = |peer: &mut crate::support::Peer, handle: u32, name: &str, attach: Attach<'_>| {
        peer.send(0, Performative::Attach(Attach { name, handle, ..attach }), &[]);
        peer.expect_where("attach", |frame| frame.attach().name == name).attach().handle
    };
    assert_eq!(attach_at(&mut peer, 0, "first", receiver("q")), 0);
    assert_eq!(attach_at(&mut peer, router_handle_max, "last", sender(Some("q"))), 1);
    assert_eq!(attach_at(&mut peer, 7, "between", sender(Some("q"))), 2);

    let ends = [0, router_handle_max].map(|handle| crate::support::LinkId { channel: 0, handle });
    peer.grant(ends[0], 10);
    let id = peer.send_delivery(ends[1], &message::data(b"x"), false);
    let delivery = peer.expect_delivery();
    peer.accept(&delivery);
    assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));

    peer.detach(ends[1]);
    assert_eq!(attach_at(&mut peer, 9, "again", sender(Some("q"))), 1, "the lowest free handle");
    peer.detach(ends[0]);
    assert_eq!(attach_at(&mut peer, 10, "and again", receiver("q")), 0, "the lowest free handle");
    assert!(router.memory() - before < 1 << 20, "tables are sparse");
}

/// A handle beyond the router's handle-max closes the connection.
#[test]
fn c_07_d_a_handle_beyond_handle_max_closes_the_connection() {
    let router = Router::start();
    let mut peer = router.peer();
    let beyond = peer.session(0).router_handle_max + 1;
    peer.send(0, Performative::Attach(Attach { name: "x", handle: beyond, ..sender(Some("q")) }), &[]);
    peer.expect_closed_with(FRAMING_ERROR);
}
