//! Bytes below the mark of a connection, and looks at them.

use super::{Peer as _, Shard, Stand, pattern};
use crate::io::driver::Driver as _;

pub(in crate::io) fn bytes_below_the_mark_are_not_reported<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    // Receiving begins with whatever is there.
    shard.turns(3);
    shard.driver().set_receive_mark(key, 9);
    peer.write(b"12345678");
    shard.turns(10);
    assert!(shard.record(key).received.is_empty());
    // What makes it worth a report brings all of it.
    peer.write(b"9");
    shard.until(|shard| shard.record(key).received == b"123456789");
    // To lower the mark is to look.
    peer.write(b"abc");
    shard.turns(10);
    assert_eq!(shard.record(key).received.len(), 9);
    shard.driver().set_receive_mark(key, 1);
    shard.until(|shard| shard.record(key).received == b"123456789abc");
    // The end is reported whatever stands before it.
    shard.driver().set_receive_mark(key, 9);
    peer.write(b"end");
    peer.shutdown();
    shard.until(|shard| shard.record(key).ended.is_some());
    assert_eq!(shard.record(key).received, b"123456789abcend");
}

pub(in crate::io) fn a_look_brings_what_is_below_the_mark<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut peer, key) = shard.connect();
    shard.turns(3);
    shard.driver().set_receive_mark(key, 9);
    // Where nothing is, nothing comes.
    shard.driver().look(key);
    shard.turns(5);
    assert!(shard.record(key).received.is_empty());
    peer.write(b"1234");
    shard.turns(5);
    assert!(shard.record(key).received.is_empty());
    // Looked at twice is looked at once.
    shard.driver().look(key);
    shard.driver().look(key);
    shard.until(|shard| shard.record(key).received == b"1234");
    // The mark has stayed.
    peer.write(b"5678");
    shard.turns(10);
    assert_eq!(shard.record(key).received, b"1234");
    peer.write(b"and more");
    shard.until(|shard| shard.record(key).received == b"12345678and more");
    // Looking at an end shows the end, once, behind the bytes.
    peer.write(b"end");
    peer.shutdown();
    shard.driver().look(key);
    shard.until(|shard| shard.record(key).ended.is_some());
    assert!(matches!(shard.record(key).ended, Some(None)));
    assert_eq!(shard.record(key).received, b"12345678and moreend");
    shard.driver().look(key);
    shard.turns(3);
    shard.close_and_wait(key);
    shard.driver().look(key);
}

pub(in crate::io) fn looking_at_random_keeps_the_order<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let mut peers: Vec<_> = (0..8).map(|_| shard.connect()).collect();
    let bytes = pattern(100_000, 13);
    let mut written = [0; 8];
    let mut random = fastrand::Rng::with_seed(13);
    shard.until(|shard| {
        for ((peer, key), written) in peers.iter_mut().zip(&mut written) {
            // Around the mark, so that either of the two may be the one that takes them.
            let length = if random.u8(0..8) == 0 { random.usize(1..=20_000) } else { random.usize(1..=16) };
            let piece = (*written + length).min(bytes.len());
            let before = random.bool();
            if before {
                *written += peer.write(&bytes[*written..piece]);
            }
            match random.u8(0..8) {
                0 => shard.driver().pause_receiving(*key),
                1 => shard.driver().set_receive_mark(*key, 1),
                2 | 3 => shard.driver().set_receive_mark(*key, 9),
                _ => shard.driver().resume_receiving(*key),
            }
            shard.driver().look(*key);
            if random.bool() {
                shard.driver().resume_receiving(*key);
            }
            if !before {
                *written += peer.write(&bytes[*written..piece]);
            }
        }
        peers.iter().all(|(_, key)| {
            let received = &shard.record(*key).received;
            assert!(bytes.starts_with(received), "the order is kept");
            received.len() == bytes.len()
        })
    });
    for (index, (peer, _)) in peers.iter_mut().enumerate() {
        if index % 2 == 0 { peer.shutdown() } else { peer.reset() }
    }
    for (_, key) in &peers {
        shard.driver().resume_receiving(*key);
        shard.driver().look(*key);
    }
    shard.until(|shard| peers.iter().all(|(_, key)| shard.record(*key).ended.is_some()));
    for (index, (_, key)) in peers.iter().enumerate() {
        let ended = shard.record(*key).ended.as_ref();
        assert_eq!(ended.is_some_and(Option::is_some), index % 2 == 1, "a reset stays one: {ended:?}");
        shard.close(*key);
    }
    shard.until(|shard| peers.iter().all(|(_, key)| shard.record(*key).is_closed));
}

pub(in crate::io) fn closing_and_pausing_while_looked_at<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let mut peers: Vec<_> = (0..10).map(|_| shard.connect()).collect();
    shard.turns(3);
    for (index, (peer, key)) in peers.iter_mut().enumerate() {
        shard.driver().set_receive_mark(*key, 9);
        peer.write(b"beat");
        shard.driver().look(*key);
        if index % 2 == 0 {
            shard.close(*key);
        } else {
            shard.driver().pause_receiving(*key);
        }
        shard.driver().look(*key);
        if index % 3 == 0 {
            peer.shutdown();
        }
    }
    shard.turns(5);
    for (index, (peer, key)) in peers.iter_mut().enumerate() {
        if index % 2 == 0 {
            peer.shutdown();
            shard.until(|shard| shard.record(*key).is_closed);
            assert!(shard.record(*key).received.is_empty() && shard.record(*key).ended.is_none());
        } else {
            shard.driver().resume_receiving(*key);
            shard.driver().set_receive_mark(*key, 1);
            shard.until(|shard| shard.record(*key).received == b"beat");
            shard.close(*key);
            peer.shutdown();
        }
    }
    shard.until(|shard| peers.iter().all(|(_, key)| shard.record(*key).is_closed));
}

pub(in crate::io) fn a_look_waits_for_a_buffer<S: Stand>(stand: S) {
    let mut shard = Shard::new(stand);
    let (mut quiet, quiet_key) = shard.connect();
    let (mut loud, loud_key) = shard.connect();
    shard.turns(3);
    shard.driver().set_receive_mark(quiet_key, 9);
    quiet.write(b"quiet");
    shard.is_holding = true;
    let bytes = pattern(1_500_000, 14);
    let mut written = 0;
    shard.until(|shard| {
        written += loud.write(&bytes[written..]);
        shard.held.len() == S::BUFFERS
    });
    shard.driver().look(quiet_key);
    shard.turns(10);
    assert!(shard.record(quiet_key).received.is_empty());
    shard.is_holding = false;
    shard.release_held();
    shard.until(|shard| {
        written += loud.write(&bytes[written..]);
        shard.record(loud_key).received.len() == bytes.len() && shard.record(quiet_key).received == b"quiet"
    });
    assert!(shard.record(loud_key).received == bytes);
    quiet.shutdown();
    shard.close_and_wait(quiet_key);
}
