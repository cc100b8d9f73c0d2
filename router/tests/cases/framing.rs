//! Framing: C-01, C-03.

use ringmain_codec::{Attach, Begin, DeliveryState, Detach, Open, Performative, ProtocolHeader};

use crate::support::{OpenOptions, Peer, Router, Setup, first_transfer, message, receiver, sender};

const FRAMING_ERROR: &str = "amqp:connection:framing-error";

/// A pair of links on a connection of its own that must not notice what others do.
struct Bystander {
    peer: Peer,
    sender: crate::support::LinkId,
    sent: u8,
}

impl Bystander {
    fn new(router: &Router) -> Self {
        let mut peer = router.peer();
        peer.attach_receiver("bystander", 1000);
        let sender = peer.attach_sender("bystander");
        let mut bystander = Self { peer, sender, sent: 0 };
        bystander.exchange();
        bystander
    }

    fn exchange(&mut self) {
        let message = message::sized(200, self.sent);
        self.sent = self.sent.wrapping_add(1);
        let id = self.peer.send_delivery(self.sender, &message, false);
        let delivery = self.peer.expect_delivery();
        assert_eq!(delivery.payload, message);
        self.peer.accept(&delivery);
        let outcome = self.peer.expect_outcome(id);
        assert_eq!(outcome.disposition().state, Some(DeliveryState::Accepted));
    }
}

/// What the parts of C-01 have in common: the frame, right after the protocol header, costs its connection
/// and nothing else. §2.3.1: a size below 8 and a data offset below 2 are malformed. §2.4.1: before the open
/// a frame has at most 512 bytes.
fn c_01(frame: &str) {
    const OFFENDERS: u64 = 32;
    let router = Router::start();
    let mut bystander = Bystander::new(&router);
    let before = router.memory();
    let mut waiting = Vec::new();
    for number in 0..OFFENDERS {
        let mut peer = router.connect();
        peer.send_header(ProtocolHeader::AMQP);
        if number % 2 == 0 {
            peer.send_raw(frame);
        } else {
            // Byte by byte: what is wrong must be seen whenever enough of it is there.
            for byte in frame.split(' ').flat_map(|word| {
                word.as_bytes().chunks(2).map(|digits| String::from_utf8(digits.to_vec()).expect("digits"))
            }) {
                peer.send_raw(&byte);
            }
        }
        peer.expect_header(ProtocolHeader::AMQP);
        waiting.push(peer);
    }
    for mut peer in waiting {
        peer.expect_closed_with(FRAMING_ERROR);
        bystander.exchange();
    }
    let grown = router.memory().saturating_sub(before);
    assert!(grown < OFFENDERS << 20, "{grown} bytes more for {OFFENDERS} offenders");
}

#[test]
fn c_01_a_size_below_the_frame_header() {
    c_01("00000007 02000000");
}

#[test]
fn c_01_b_data_offset_beyond_the_frame() {
    c_01("00000008 FF000000");
}

#[test]
fn c_01_c_data_offset_inside_the_frame_header() {
    c_01("00000008 01000000");
}

#[test]
fn c_01_d_largest_size_and_then_nothing() {
    c_01("FFFFFFFF 02000000");
}

/// The same inside the SASL layer. It has no close, so the socket is closed without a word (§5.3.2).
#[test]
fn c_01_inside_the_sasl_layer() {
    let router = Router::start();
    let mut bystander = Bystander::new(&router);
    for frame in [
        "00000007 02010000",
        "00000008 FF010000",
        "00000008 01010000",
        "FFFFFFFF 02010000",
        "00000201 02010000",
    ] {
        let mut peer = router.connect();
        peer.send_header(ProtocolHeader::SASL);
        peer.expect_header(ProtocolHeader::SASL);
        peer.expect("sasl-mechanisms");
        peer.send_raw(frame);
        peer.expect_end_of_stream();
        bystander.exchange();
    }
}

/// §2.7.1: what the router announced binds the peer, what the peer announced binds the router.
#[test]
fn c_03_a_each_direction_has_its_own_maximum() {
    let router = Router::with(Setup { listener: "maxFrameSize: 16384", ..Setup::default() });
    let mut far = router.peer_with(OpenOptions { max_frame_size: 262_144, ..OpenOptions::default() });
    assert_eq!(far.router_max_frame_size(), 16_384);
    far.attach_receiver("q", 10);
    let mut near = router.peer();
    let link = near.attach_sender("q");
    near.await_credit(link, 1);

    // 100 KiB arrive at the peer that takes large frames; the strict peer checks the frames' sizes.
    let large = message::sized(100 * 1024, 1);
    let id = near.send_delivery(link, &large, false);
    let delivery = far.expect_delivery();
    assert_eq!(delivery.payload, large);
    far.accept(&delivery);
    near.expect_outcome(id);

    // A frame of exactly the router's maximum is taken.
    let transfer = first_transfer(link, 1, b"fits", false, false);
    let overhead = frame_size(&transfer, &[]);
    let fitting = message::sized(16_384 - overhead, 2);
    assert_eq!(frame_size(&transfer, &fitting), 16_384);
    near.send_transfer(0, transfer, &fitting);
    let delivery = far.expect_delivery();
    assert_eq!(delivery.payload, fitting);
    far.accept(&delivery);
    near.expect_outcome(1);

    // One byte more isn't, whatever the sender of the frame takes itself.
    for options in [OpenOptions::default(), OpenOptions { max_frame_size: 262_144, ..OpenOptions::default() }]
    {
        let mut peer = router.peer_with(options);
        let link = peer.attach_sender("q");
        peer.await_credit(link, 1);
        let transfer = first_transfer(link, 0, b"long", false, false);
        let message = message::sized(16_385 - frame_size(&transfer, &[]), 3);
        peer.send_transfer(0, transfer, &message);
        peer.expect_closed_with(FRAMING_ERROR);
    }
    far.expect_nothing_for(200);
}

/// The size of the frame that a transfer and its payload make.
fn frame_size(transfer: &ringmain_codec::Transfer<'_>, payload: &[u8]) -> usize {
    8 + message::value(&Performative::Transfer(*transfer)).len() + payload.len()
}

/// §2.7.1: a peer that takes 512 bytes gets no larger frame, whatever the router has to say. The peer checks
/// every frame; here the router is given reason to say much.
#[test]
fn c_03_b_the_smallest_maximum_is_kept_in_every_frame() {
    let long = "x".repeat(700);
    let listener = format!("openProperties: {{ \"long\": \"{long}\" }}");
    let sections = "address {\n prefix: closed\n distribution: unavailable\n}";
    let router = Router::with(Setup { listener: &listener, sections, ..Setup::default() });
    let small = OpenOptions { max_frame_size: 512, ..OpenOptions::default() };

    // A peer that takes more gets the properties.
    let mut other = router.connect();
    let open = other.open_with(OpenOptions::default());
    let properties = open.open().properties.expect("the router's properties");
    assert_eq!(properties.get("long").and_then(|value| value.as_str().map(str::to_owned)), Some(long));
    other.begin();

    let mut peer = router.peer_with(small);
    peer.attach_receiver("q", 10);
    let link = other.attach_sender("q");
    let message = message::sized(5000, 1);
    let id = other.send_delivery(link, &message, false);
    let delivery = peer.expect_delivery();
    assert_eq!(delivery.payload, message);
    assert!(delivery.frames >= 10, "5000 bytes in frames of 512");
    peer.accept(&delivery);
    other.expect_outcome(id);

    // An outcome with more data than fits is told without the data.
    other.attach_receiver("back", 1);
    let back = peer.attach_sender("back");
    let id = peer.send_delivery(back, &message::sized(3000, 2), false);
    let delivery = other.expect_delivery();
    let description = "d".repeat(2000);
    let error = ringmain_codec::Error {
        condition: ringmain_codec::Symbol("x:y"),
        description: Some(&description),
        info: None,
    };
    other.dispose(
        &delivery,
        true,
        Some(DeliveryState::Rejected(ringmain_codec::Rejected { error: Some(error) })),
    );
    let outcome = peer.expect_outcome(id);
    let Some(DeliveryState::Rejected(rejected)) = outcome.disposition().state else { panic!("{outcome:?}") };
    assert_eq!(rejected.error.map(|error| error.condition.0), Some("x:y"));

    // Attaches and refusals with long addresses.
    let address = "a".repeat(300);
    peer.attach_sender(&address);
    let refused = format!("closed/{}", "a".repeat(300));
    let (link, attach) = peer.attach(0, sender(Some(&refused)));
    assert!(attach.attach().target.is_none());
    peer.expect_detached_with(link, "amqp:not-found");

    // Errors that end a session, and the connection.
    peer.send(0, Performative::Detach(Detach { handle: 77, ..Detach::default() }), &[]);
    assert_eq!(peer.expect_ended(0), "amqp:session:unattached-handle");
    peer.send_raw("00000007 02000000");
    peer.expect_closed_with(FRAMING_ERROR);
}

/// §2.7.1: no peer may announce less than 512. And C-03 d: the open before the close that refuses the
/// connection is a legal one (the peer checks every open that it gets).
#[test]
fn c_03_c_d_less_than_512_is_refused_with_a_legal_open() {
    let router = Router::start();
    for max_frame_size in [511, 1, 0] {
        let mut peer = router.connect();
        peer.send_header(ProtocolHeader::AMQP);
        peer.expect_header(ProtocolHeader::AMQP);
        let open = Open { container_id: "peer", max_frame_size, ..Open::default() };
        let bytes = message::value(&Performative::Open(open));
        let mut frame = u32::try_from(8 + bytes.len()).expect("short").to_be_bytes().to_vec();
        frame.extend([2, 0, 0, 0]);
        frame.extend(bytes);
        peer.send_bytes(&frame);
        let open = peer.expect("open");
        assert!(open.open().max_frame_size >= 512);
        let description = peer.expect_closed_with("amqp:invalid-field");
        assert!(description.contains("max-frame-size"), "{description}");
    }
}

/// C-03 d once more: whatever a connection is refused for before its open, a legal open precedes the close.
#[test]
fn c_03_d_every_refusal_has_a_legal_open() {
    let router = Router::start();
    let refuse = |send: &dyn Fn(&mut Peer), condition: &str| {
        let mut peer = router.connect();
        peer.send_header(ProtocolHeader::AMQP);
        peer.expect_header(ProtocolHeader::AMQP);
        send(&mut peer);
        let open = peer.expect("open");
        assert!(open.open().max_frame_size >= 512);
        peer.expect_closed_with(condition);
    };
    refuse(&|peer| peer.send_raw("00000007 02000000"), FRAMING_ERROR);
    refuse(&|peer| peer.send_raw("00000008 02010000"), FRAMING_ERROR);
    // 513 bytes, of which the header says it.
    refuse(&|peer| peer.send_raw("00000201 02000000"), FRAMING_ERROR);
    let begin = Begin { incoming_window: 1, outgoing_window: 1, ..Begin::default() };
    refuse(&|peer| peer.send(0, Performative::Begin(begin), &[]), "amqp:not-allowed");
    let attach = Attach { name: "x", ..receiver("q") };
    refuse(&|peer| peer.send(0, Performative::Attach(attach), &[]), "amqp:not-allowed");
}
