//! Idle time-outs, each way: C-06 (AMQP 1.0 §2.4.5).

use std::time::{Duration, Instant};

use ringmain_codec::{Close, Open, Performative, ProtocolHeader};

use crate::support::{OpenOptions, PATIENCE, Router, Setup};

/// An open that announces this idle time-out.
fn idle(idle_time_out: Option<u32>) -> OpenOptions {
    OpenOptions { idle_time_out, ..OpenOptions::default() }
}

/// The peer announces 1000 ms and is silent itself: between two frames of the router there is never more than
/// that; the router aims at half.
#[test]
fn c_06_a_the_peers_time_out_is_kept() {
    const ANNOUNCED: Duration = Duration::from_millis(1000);
    const WATCHED: Duration = Duration::from_secs(10);
    let router = Router::start();
    let mut peer = router.peer_with(idle(Some(1000)));
    let start = Instant::now();
    let (mut last, mut frames, mut widest) = (start, 0, Duration::ZERO);
    while start.elapsed() < WATCHED {
        let Some(frame) = peer.poll(ANNOUNCED) else { break };
        widest = widest.max(frame.at - last);
        last = frame.at;
        frames += 1;
    }
    widest = widest.max(last.elapsed());
    assert!(widest < ANNOUNCED, "the router was silent for {widest:?}");
    // Half of the time-out makes twenty frames; twice as many would be too many for a peer that only idles.
    assert!((10..=40).contains(&frames), "{frames} frames in {WATCHED:?}");
}

/// The router bears T and announces T/2. A peer that uses the announced interval and 20 % more is never cut
/// off; one that falls silent is, after T and not before.
#[test]
fn c_06_b_c_half_of_the_routers_time_out_is_announced() {
    const BORNE: Duration = Duration::from_secs(2);
    let router = Router::with(Setup { listener: "idleTimeoutSeconds: 2", ..Setup::default() });
    let mut peer = router.connect();
    let open = peer.open_with(OpenOptions::default());
    assert_eq!(open.open().idle_time_out, Some(1000));

    for _ in 0..10 {
        peer.send_empty_frame();
        let frame = peer.poll(Duration::from_millis(1200));
        assert!(frame.is_none(), "the router closes or talks though the peer isn't late: {frame:?}");
    }

    peer.send_empty_frame();
    let silent_since = Instant::now();
    let close = peer.expect_close();
    let after = close.at - silent_since;
    assert!(after >= BORNE.mul_f32(0.95), "closed after {after:?} already");
    let error = close.close().error.expect("an error that says why");
    assert_eq!(error.condition.0, "amqp:resource-limit-exceeded");
    peer.send(0, Performative::Close(Close::default()), &[]);
    peer.expect_end_of_stream();
}

/// No idle time-out and one of 0 mean the same: none. So does 0 in the router's configuration.
#[test]
fn c_06_d_none_and_zero_mean_none() {
    let router = Router::with(Setup { listener: "idleTimeoutSeconds: 0", ..Setup::default() });
    let mut silent = router.connect();
    let open = silent.open_with(idle(None));
    assert!(matches!(open.open().idle_time_out, None | Some(0)));
    let mut zero = router.peer_with(idle(Some(0)));
    // Nobody says a word, and nobody minds.
    for peer in [&mut silent, &mut zero] {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(2500) {
            if let Some(frame) = peer.poll(Duration::from_millis(100)) {
                panic!("expected silence, got {frame:?}");
            }
        }
        peer.begin();
    }
}

/// A time-out of 10 ms is refused with an error that says why; the least that is honoured, 100 ms, is kept
/// to.
#[test]
fn c_06_e_a_very_short_time_out_is_refused_or_kept() {
    let router = Router::start();
    for too_short in [1, 10, 99] {
        let mut peer = router.connect();
        peer.send_header(ProtocolHeader::AMQP);
        let open = Open { container_id: "peer", idle_time_out: Some(too_short), ..Open::default() };
        peer.send(0, Performative::Open(open), &[]);
        peer.expect_header(ProtocolHeader::AMQP);
        let description = peer.expect_closed_with("amqp:not-allowed");
        assert!(description.contains("idle-time-out"), "{description}");
    }

    let mut peer = router.peer_with(idle(Some(100)));
    let start = Instant::now();
    let mut frames = 0;
    while start.elapsed() < Duration::from_secs(2) {
        frames += usize::from(peer.poll(PATIENCE.min(Duration::from_millis(500))).is_some());
    }
    // Twenty would keep the average within the time-out; the router aims at forty.
    assert!(frames >= 20, "{frames} frames in 2 s");
}
