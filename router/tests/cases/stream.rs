//! Large messages: F-08, T-04.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ringmain_codec::{DeliveryState, Error, Performative, Rejected, Symbol, Transfer};

use crate::support::{LinkId, Peer, Router, first_transfer, message, receiver, sender};

/// Bytes that are the same again only after a period that no frame size divides, so that a byte lost, doubled
/// or out of place shows.
struct Pattern(Vec<u8>);

impl Pattern {
    const PERIOD: usize = 1_000_003;
    /// The most bytes asked for at once.
    const PIECE_MAX: usize = 64 * 1024;

    fn new() -> Self {
        let mut random = fastrand::Rng::with_seed(8);
        let mut bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(Self::PERIOD).collect();
        bytes.extend_from_within(..Self::PIECE_MAX);
        Self(bytes)
    }

    fn at(&self, position: u64, length: usize) -> &[u8] {
        let start = usize::try_from(position % Self::PERIOD as u64).expect("less than the period");
        &self.0[start..start + length]
    }
}

/// A data section's header for so many bytes.
fn section_header(bytes: u64) -> Vec<u8> {
    let length = u32::try_from(bytes).expect("a section's length has four bytes");
    [&[0x00, 0x53, 0x75, 0xb0], length.to_be_bytes().as_slice()].concat()
}

/// What the threads of F-08 tell one another.
#[derive(Default)]
struct Progress {
    /// The receiver takes nothing of the large message for now.
    stalled: AtomicBool,
    /// The large message is settled.
    done: AtomicBool,
    /// Bytes of the large message sent so far.
    sent: AtomicU64,
    /// Small messages settled so far.
    small: AtomicUsize,
}

/// A message of 1 GiB to a receiver with a window of 8 frames that takes nothing more for ten seconds, and
/// small messages, a thousand a second, on other sessions of the same two connections. The router's memory
/// stays below idle + 32 MiB, the sender's window closes, the small ones go on, all bytes arrive, and in the
/// end the memory is what it was.
#[test]
fn f_08_a_stalled_receiver_costs_only_its_own_link() {
    const SIZE: u64 = 1 << 30;
    const STALL: Duration = Duration::from_secs(10);
    const MEMORY_MAX: u64 = 32 << 20;
    let router = Router::start();
    let mut consumer = router.connect();
    consumer.open_with(Default::default());
    consumer.begin_with(8);
    let large_in = consumer.attach_receiver("large", 1);
    consumer.link_mut(large_in).keeps_payload = false;
    let other = consumer.begin();
    let (small_in, _) = consumer.attach(other, receiver("small"));
    consumer.grant(small_in, 1_000_000);
    let mut producer = router.peer();
    let large_out = producer.attach_sender("large");
    let other = producer.begin();
    let (small_out, _) = producer.attach(other, sender(Some("small")));
    producer.await_credit(large_out, 1);
    producer.await_credit(small_out, 1);
    let idle = router.memory();

    let pattern = Pattern::new();
    let progress = Progress::default();
    std::thread::scope(|scope| {
        scope.spawn(|| produce(&mut producer, large_out, small_out, &pattern, SIZE, &progress));
        scope.spawn(|| consume(&mut consumer, large_in, small_in, &pattern, SIZE, STALL, &progress));

        let mut highest = 0;
        let mut at_stall = None;
        while !progress.done.load(Ordering::SeqCst) {
            highest = router.memory().max(highest);
            assert!(highest - idle.min(highest) < MEMORY_MAX, "{} bytes above idle", highest - idle);
            if progress.stalled.load(Ordering::SeqCst) {
                let small = progress.small.load(Ordering::SeqCst);
                let (_, first, last) = at_stall.get_or_insert((Instant::now(), small, small));
                (*first, *last) = ((*first).min(small), small);
                // The window has closed: what the router holds and what it announced is all that went.
                let sent = progress.sent.load(Ordering::SeqCst);
                assert!(sent < 16 << 20, "{sent} bytes sent to a receiver that takes none");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let (_, first, last) = at_stall.expect("it was watched");
        assert!(last - first > 3000, "{} small messages during the stall", last - first);
    });
    // But for the buffers that each shard keeps for the next time.
    let kept = router.shards() * (8 << 20);
    router.await_state("memory back to idle", |router| router.memory() < idle + kept);
}

fn produce(peer: &mut Peer, large: LinkId, small: LinkId, pattern: &Pattern, size: u64, progress: &Progress) {
    const PIECE: usize = 16_000;
    const FRAMES_AT_ONCE: usize = 16;
    let header = section_header(size);
    let start = Instant::now();
    let mut sent = 0;
    let mut smalls = 0;
    while !progress.done.load(Ordering::SeqCst) {
        while peer.absorb(Duration::ZERO) {}
        progress.small.store(peer.outcomes.accepted, Ordering::SeqCst);
        let mut idle = true;
        for _ in 0..FRAMES_AT_ONCE {
            if sent == size || peer.session(0).remote_incoming_window == 0 {
                break;
            }
            idle = false;
            let piece = pattern.at(sent, PIECE.min(usize::try_from(size - sent).expect("it fits")));
            let first = sent == 0;
            sent += piece.len() as u64;
            let more = sent < size;
            if first {
                let transfer = first_transfer(large, 0, b"large", false, more);
                peer.queue(0, Performative::Transfer(transfer), &[header.as_slice(), piece].concat());
            } else {
                peer.queue(0, Performative::Transfer(next(large, more)), piece);
            }
            progress.sent.store(sent, Ordering::SeqCst);
        }
        let due = start.elapsed().as_millis();
        while smalls < due && peer.link(small).credit > 0 {
            smalls += 1;
            peer.queue_delivery(small, &message::data(b"small"), false);
        }
        peer.flush();
        if idle {
            peer.absorb(Duration::from_millis(2));
        }
        if peer.session(0).unsettled.is_empty() && sent == size {
            progress.done.store(true, Ordering::SeqCst);
        }
    }
    // The large one is among them.
    assert_eq!(peer.outcomes.accepted, peer.outcomes.total());
}

fn consume(
    peer: &mut Peer,
    large: LinkId,
    small: LinkId,
    pattern: &Pattern,
    size: u64,
    stall: Duration,
    progress: &Progress,
) {
    const SLOW_BYTES: u64 = 32 << 20;
    let large_channel = peer.session(large.channel).router_channel;
    let header = section_header(size);
    let mut position = 0;
    let mut stalled_since = None;
    let mut is_over = false;
    while !progress.done.load(Ordering::SeqCst) {
        while let Some(delivery) = peer.take_delivery() {
            if delivery.link == small {
                assert_eq!(delivery.payload, message::data(b"small"));
            } else {
                assert_eq!(delivery.bytes, size + header.len() as u64);
            }
            peer.accept(&delivery);
        }
        if peer.session(0).incoming_window == 0 && !is_over {
            let since = *stalled_since.get_or_insert_with(Instant::now);
            is_over = since.elapsed() >= stall;
            progress.stalled.store(!is_over, Ordering::SeqCst);
        }
        // It goes on as it was, and then with a larger window, to be done in reasonable time.
        let window = if position < SLOW_BYTES { 8 } else { 512 };
        if is_over && peer.session(0).incoming_window <= window / 2 {
            peer.open_window(0, window);
        }
        let Some(frame) = peer.poll(Duration::from_millis(20)) else { continue };
        if Some(frame.channel) == large_channel && frame.name() == "transfer" {
            let mut payload = frame.payload();
            if position == 0 {
                let (front, rest) = payload.split_at(header.len());
                assert_eq!(front, header);
                payload = rest;
            }
            for piece in payload.chunks(Pattern::PIECE_MAX) {
                assert!(
                    piece == pattern.at(position, piece.len()),
                    "another byte than was sent, near {position}"
                );
                position += piece.len() as u64;
            }
        }
    }
    assert_eq!(position, size);
}

fn next(link: LinkId, more: bool) -> Transfer<'static> {
    Transfer { handle: link.handle, more, ..Transfer::default() }
}

/// One message from end to end: the links go on.
#[track_caller]
fn exchange(peer: &mut Peer, sender: LinkId, consumer: &mut Peer) {
    let message = message::sized(50, 9);
    let id = peer.send_delivery(sender, &message, false);
    let delivery = consumer.expect_delivery();
    assert_eq!(delivery.payload, message);
    consumer.accept(&delivery);
    assert_eq!(peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
}

/// The receiver rejects and settles after the second of a thousand frames: the sender hears of it while it
/// sends, the rest is read and thrown away, and both links go on.
#[test]
fn t_04_a_an_outcome_before_the_last_frame() {
    const FRAMES: usize = 1000;
    let router = Router::start();
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 10);
    let mut peer = router.peer();
    let link = peer.attach_sender("q");
    exchange(&mut peer, link, &mut consumer);
    let before = router.memory();
    let piece = [0x44; 16_000];
    peer.send_transfer(0, first_transfer(link, 1, b"t", false, true), &message::data(&piece));
    peer.send_transfer(0, next(link, true), &piece);
    let first = consumer.expect("transfer");
    consumer.expect("transfer");
    let id = first.transfer().delivery_id.expect("a first frame");
    let error = Error { condition: Symbol("x:enough"), description: Some("no more of it"), info: None };
    let rejected = DeliveryState::Rejected(Rejected { error: Some(error) });
    consumer.dispose_range(0, id, id, true, Some(rejected));
    let outcome = peer.expect_outcome(1);
    assert_eq!(outcome.disposition().state, Some(rejected));
    assert!(outcome.disposition().settled);

    for number in 2..FRAMES {
        while peer.session(0).remote_incoming_window == 0 {
            assert!(peer.absorb(crate::support::PATIENCE));
        }
        peer.queue(0, Performative::Transfer(next(link, number + 1 < FRAMES)), &piece);
        if number % 16 == 0 {
            peer.flush();
        }
    }
    peer.flush();
    // What the receiver still gets is at most what was under way, and the word that it is over.
    consumer.await_state("the end of the delivery", |peer| peer.link(receiver).receiving.is_none());
    let rest = consumer.expect_delivery();
    assert!(rest.aborted && rest.frames < 10, "{} frames", rest.frames);
    exchange(&mut peer, link, &mut consumer);
    let grown = router.memory().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes more");
}

/// A settled message of 10 MiB whose only receiver leaves in the middle: the rest is dropped, the message is
/// counted as dropped, and the sender's link goes on.
#[test]
fn t_04_b_a_settled_stream_with_nowhere_to_go() {
    let router = Router::start();
    let mut consumer = router.peer();
    let receiver = consumer.attach_receiver("q", 10);
    let mut peer = router.peer();
    let link = peer.attach_sender("q");
    peer.await_credit(link, 1);
    let before = router.memory();
    let large = message::sized(10 << 20, 5);
    let pieces: Vec<&[u8]> = large.chunks(16_000).collect();
    for (number, piece) in pieces.iter().enumerate() {
        while peer.session(0).remote_incoming_window == 0 {
            assert!(peer.absorb(crate::support::PATIENCE));
        }
        if number == 0 {
            peer.send_transfer(0, first_transfer(link, 0, b"t", true, true), piece);
        } else {
            peer.send_transfer(0, next(link, number + 1 < pieces.len()), piece);
        }
        if number == pieces.len() / 2 {
            consumer.absorb_until("some of it", |peer| peer.link(receiver).receiving.is_some());
            consumer.detach(receiver);
        }
    }
    peer.begin();
    consumer.attach_receiver("q", 10);
    exchange(&mut peer, link, &mut consumer);
    let grown = router.memory().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes more");
    // It is counted with the sender's link, the receiver's, or (on one shard) with both.
    peer.detach(link);
    router.await_log_where("the message counted as dropped", |line| {
        line.contains("Link detached") && line.contains("psdrop=1 ")
    });
}

/// The first frame has nothing in it yet, and the link is closed: nothing is routed before there is something
/// to route, and nothing is left behind.
#[test]
fn t_04_c_an_empty_first_frame() {
    const ROUNDS: usize = 1000;
    let router = Router::start();
    let mut consumer = router.peer();
    consumer.attach_receiver("q", 10_000);
    let mut peer = router.peer();
    let mut memory = 0;
    for round in 0..ROUNDS {
        let link = peer.attach_sender("q");
        peer.await_credit(link, 1);
        let id = peer.session(0).next_delivery_id;
        peer.send_transfer(0, first_transfer(link, id, b"t", round % 2 == 0, true), &[]);
        match round % 3 {
            // It goes on, with data or without, and is closed in the middle.
            0 => peer.send_transfer(0, next(link, true), &[]),
            1 => peer.send_transfer(0, next(link, true), &[0x00]),
            _ => {}
        }
        peer.detach(link);
        peer.forget_pending();
        if round == ROUNDS / 10 {
            memory = router.memory();
        }
    }
    consumer.expect_nothing_for(100);
    let grown = router.memory().saturating_sub(memory);
    assert!(grown < 1 << 20, "{grown} bytes more after {ROUNDS} links");

    // With data behind it, it is a message like any other.
    let link = peer.attach_sender("q");
    peer.await_credit(link, 1);
    let id = peer.session(0).next_delivery_id;
    peer.send_transfer(0, first_transfer(link, id, b"t", false, true), &[]);
    peer.send_transfer(0, next(link, true), &[]);
    let message = message::data(b"late");
    for (number, byte) in message.iter().enumerate() {
        peer.send_transfer(0, next(link, number + 1 < message.len()), &[*byte]);
    }
    let delivery = consumer.expect_delivery();
    assert_eq!(delivery.payload, message);
    consumer.accept(&delivery);
    peer.expect_outcome(id);
    exchange(&mut peer, link, &mut consumer);
}
