//! What the specification says to the letter, held against a peer that is scripted frame by frame.

use crate::wire::{Watch, frame};
use ringmain::base::buffer::{BufferPool, Output};
use ringmain::base::id::Channel;
use ringmain::base::time::Instant;
use ringmain::engine::{Attachment, Connection, Event, LinkRef, Settings, Side};
use ringmain_codec::{
    Attach, Begin, Close, Condition, DeliveryState, Detach, Disposition, End, Flow, Open, Performative,
    ProtocolHeader, ReceiverSettleMode, Role, SenderSettleMode, Source, Target, TargetNode, Transfer,
    split_frame,
};
use std::rc::Rc;

const NOW: Instant = Instant(1_000_000_000);

/// The engine on one side, the script on the other.
struct Bench {
    connection: Connection<u64>,
    out: Output,
    watch: Watch,
    inbox: Vec<u8>,
    /// What the engine sent, not looked at yet: whole frames.
    sent: Vec<u8>,
    header_seen: bool,
}

impl Bench {
    fn new(side: Side, settings: Settings) -> Self {
        let mut out = Output::new(BufferPool::default());
        let settings = Settings { container_id: "us".into(), ..settings };
        let connection = Connection::new(Rc::new(settings), side, NOW, &mut out);
        let mut watch = Watch::new();
        watch.frame_max = 4096;
        Self { connection, out, watch, inbox: Vec::new(), sent: Vec::new(), header_seen: false }
    }

    /// An acceptor whose peer has opened, and what was said so far forgotten.
    fn opened(settings: Settings) -> Self {
        let mut bench = Self::new(Side::Acceptor, settings);
        bench.write(&ProtocolHeader::AMQP.to_bytes());
        bench.say(0, &Open { container_id: "peer", max_frame_size: 4096, ..Open::default() });
        bench.work(|bench, event| {
            assert!(matches!(event, Event::Opened(_)));
            bench.connection.send_open(&mut bench.out);
        });
        assert_eq!(bench.heard(), ["open"]);
        bench
    }

    fn write(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    fn say(&mut self, channel: u16, performative: &impl ringmain_codec::Encode) {
        self.write(&frame(channel, performative, &[]));
    }

    /// Gives the engine what was said.
    fn work(&mut self, mut each: impl FnMut(&mut Self, Event<'_>)) {
        let inbox = std::mem::take(&mut self.inbox);
        let mut consumed = 0;
        loop {
            let progress = self.connection.recv(&inbox[consumed..], NOW, &mut self.out);
            consumed += progress.consumed;
            let Some(event) = progress.event else { break };
            each(self, event);
        }
        assert_eq!(consumed, inbox.len(), "scripts are made of whole frames");
    }

    /// What the engine has sent since the last time, each as `look` sees it.
    fn look<T>(&mut self, mut look: impl FnMut(u16, &Performative<'_>) -> T) -> Vec<T> {
        self.connection.flush(&mut self.out);
        let bytes = self.out.take_bytes();
        self.watch.take(&bytes, |_, _, _| {});
        self.sent.extend(bytes);
        let mut rest = &self.sent[..];
        if !self.header_seen && rest.starts_with(b"AMQP") {
            self.header_seen = true;
            rest = &rest[ProtocolHeader::LEN..];
        }
        let mut seen = Vec::new();
        while let Some((frame, left)) = split_frame(rest, u32::MAX).expect("frames") {
            rest = left;
            if !frame.body.is_empty() {
                let (performative, _) = Performative::decode(frame.body).expect("a performative");
                seen.push(look(frame.channel, &performative));
            }
        }
        assert!(rest.is_empty());
        self.sent.clear();
        seen
    }

    /// What the engine has sent, by name, with the conditions of errors.
    fn heard(&mut self) -> Vec<String> {
        self.look(|_, performative| {
            let error = match performative {
                Performative::Detach(detach) => detach.error,
                Performative::End(end) => end.error,
                Performative::Close(close) => close.error,
                Performative::Open(_)
                | Performative::Begin(_)
                | Performative::Attach(_)
                | Performative::Flow(_)
                | Performative::Transfer(_)
                | Performative::Disposition(_) => None,
            };
            match error {
                Some(error) => format!("{} {}", performative.name(), error.condition.0),
                None => performative.name().to_owned(),
            }
        })
    }

    /// The same without flows, which refresh windows whenever they like.
    fn heard_but_flows(&mut self) -> Vec<String> {
        let mut heard = self.heard();
        heard.retain(|name| name != "flow");
        heard
    }

    /// A session that the peer begins, with a link on which it sends and one on which it receives.
    fn with_links(
        mut self,
        begin: Begin<'_>,
        initial_delivery_count: u32,
        credit: u32,
    ) -> (Self, LinkRef, LinkRef) {
        self.say(0, &begin);
        self.say(0, &sending("in", 0, initial_delivery_count));
        self.say(0, &receiving("out", 1));
        let mut links = Vec::new();
        self.work(|bench, event| match event {
            Event::Begun(_) => {}
            Event::AttachRequested { link, attach } => {
                accept(bench, link, &attach);
                links.push(link);
            }
            other => panic!("{other:?}"),
        });
        if credit > 0 {
            self.connection.send_credit(links[0], credit, false, &mut self.out);
        }
        (self, links[0], links[1])
    }
}

fn accept(bench: &mut Bench, link: LinkRef, attach: &Attach<'_>) {
    let attachment = Attachment {
        source: attach.source,
        target: attach.target,
        snd_settle_mode: attach.snd_settle_mode,
        rcv_settle_mode: attach.rcv_settle_mode,
        max_message_size: 1000,
    };
    bench.connection.accept_link(link, &attachment, &mut bench.out).expect("the answer fits");
}

fn sending(name: &'static str, handle: u32, initial_delivery_count: u32) -> Attach<'static> {
    Attach {
        name,
        handle,
        role: Role::Sender,
        source: Some(Source::default()),
        target: Some(Target::Node(TargetNode::default())),
        initial_delivery_count: Some(initial_delivery_count),
        ..Attach::default()
    }
}

fn receiving(name: &'static str, handle: u32) -> Attach<'static> {
    Attach {
        name,
        handle,
        role: Role::Receiver,
        source: Some(Source::default()),
        target: Some(Target::Node(TargetNode::default())),
        ..Attach::default()
    }
}

fn window(size: u32) -> Begin<'static> {
    Begin { incoming_window: size, outgoing_window: size, ..Begin::default() }
}

fn transfer(delivery_id: u32) -> Transfer<'static> {
    Transfer {
        handle: 0,
        delivery_id: Some(delivery_id),
        delivery_tag: Some(b"tag"),
        message_format: Some(0),
        ..Transfer::default()
    }
}

/// All numbers of a session count on from 2^32 - 1 to 0 (RFC 1982; AMQP 1.0 §2.5.6, §2.6.7, §2.7.5).
#[test]
fn numbers_wrap() {
    let first = u32::MAX - 2;
    let begin = Begin { next_outgoing_id: first, ..window(100) };
    let (mut bench, link, _) = Bench::opened(Settings::default()).with_links(begin, first, 10);
    let flows = bench.look(|_, performative| match performative {
        Performative::Flow(flow) => Some((flow.next_incoming_id, flow.delivery_count, flow.link_credit)),
        _ => None,
    });
    assert_eq!(flows.last(), Some(&Some((Some(first), Some(first), Some(10)))));
    for number in 0..6u32 {
        bench.write(&frame(0, &transfer(first.wrapping_add(number)), b"x"));
    }
    let mut ids = Vec::new();
    bench.work(|_, event| match event {
        Event::Transfer(arrived) => ids.push(arrived.delivery_id),
        other => panic!("{other:?}"),
    });
    assert_eq!(ids.iter().map(|id| id.0).collect::<Vec<_>>(), [first, u32::MAX - 1, u32::MAX, 0, 1, 2]);
    for id in ids {
        bench.connection.dispose_incoming(link, id, true, Some(&DeliveryState::Accepted), &mut bench.out);
    }
    // An echo shows where the engine is.
    bench.say(0, &Flow { handle: Some(0), delivery_count: Some(3), echo: true, ..flow_of_peer() });
    bench.work(|_, event| assert!(matches!(event, Event::SenderFlow { .. })));
    let mut dispositions = Vec::new();
    let mut flows = Vec::new();
    bench.look(|_, performative| match performative {
        Performative::Disposition(disposition) => {
            dispositions.push((disposition.first, disposition.last, disposition.settled));
        }
        Performative::Flow(flow) => {
            flows.push((flow.next_incoming_id, flow.delivery_count, flow.link_credit));
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(dispositions, [(first, Some(2), true)], "one range across the wrap");
    assert_eq!(flows, [(Some(3), Some(3), Some(4))]);
}

fn flow_of_peer() -> Flow<'static> {
    Flow { next_incoming_id: Some(0), incoming_window: 100, outgoing_window: 100, ..Flow::default() }
}

/// §2.7.4: next-incoming-id must not be set before the peer's begin was received, delivery-count of a receiver
/// not before the sender's attach was; and what was granted before counts from the initial delivery-count.
#[test]
fn what_isnt_known_yet_isnt_said() {
    let mut bench = Bench::new(Side::Initiator, Settings::default());
    let channel = bench.connection.send_begin(&mut bench.out).expect("a session");
    let attachment = Attachment {
        source: Some(Source { address: Some("q"), ..Source::default() }),
        target: Some(Target::Node(TargetNode::default())),
        snd_settle_mode: SenderSettleMode::Mixed,
        rcv_settle_mode: ReceiverSettleMode::First,
        max_message_size: 0,
    };
    let link = bench
        .connection
        .send_attach(channel, "r", Role::Receiver, &attachment, &mut bench.out)
        .expect("a link");
    bench.connection.send_credit(link, 10, false, &mut bench.out);
    let flows = bench.look(|_, performative| match performative {
        Performative::Flow(flow) => Some((flow.next_incoming_id, flow.delivery_count, flow.link_credit)),
        _ => None,
    });
    assert_eq!(flows, [None, None, None, Some((None, None, Some(10)))], "open, begin, attach, flow");
    bench.write(&ProtocolHeader::AMQP.to_bytes());
    bench.say(0, &Open { container_id: "peer", max_frame_size: 4096, ..Open::default() });
    bench.say(5, &Begin { remote_channel: Some(channel.0), next_outgoing_id: 77, ..window(100) });
    bench.say(5, &sending("r", 9, 1000));
    let mut attached = 0;
    bench.work(|_, event| attached += usize::from(matches!(event, Event::Attached { .. })));
    assert_eq!(attached, 1);
    for number in 0..10u32 {
        let first = Transfer { handle: 9, ..transfer(300 + number) };
        bench.write(&frame(5, &first, b"x"));
    }
    let mut came = 0;
    bench.work(|_, event| match event {
        Event::Transfer(_) => came += 1,
        other => panic!("{other:?}"),
    });
    assert_eq!(came, 10);
    let state = bench.connection.link(link).expect("the link");
    assert_eq!((state.delivery_count.0, state.credit), (1010, 0));
    assert_eq!(bench.connection.session(channel).expect("the session").flow.next_incoming_id.0, 87);
}

/// §2.6.7: a drain is over when the credit is used or given up, and the flow says so by the delivery-count.
#[test]
fn a_drain_uses_what_there_is_and_gives_up_the_rest() {
    let (mut bench, _, link) = Bench::opened(Settings::default()).with_links(window(100), 0, 0);
    let _ = bench.heard();
    let drain = Flow { handle: Some(1), link_credit: Some(10), drain: true, ..flow_of_peer() };
    bench.say(0, &Flow { delivery_count: Some(0), ..drain });
    bench.work(|bench, event| {
        assert!(matches!(event, Event::Flow { .. }));
        for number in 0..3u64 {
            bench.connection.answer_flow(link, 3 - number as u32, &mut bench.out);
            let credit = bench.connection.take_credit(link).expect("there is credit");
            let new = ringmain::engine::NewDelivery {
                message_format: 0,
                settled: true,
                tag: number.to_be_bytes(),
                data: 0,
                stamp: 0,
            };
            bench.connection.begin_delivery(link, credit, new).expect("a delivery");
            assert!(bench.connection.send_payload(link, b"x", false, &mut bench.out).complete);
        }
        bench.connection.answer_flow(link, 0, &mut bench.out);
    });
    let mut names = Vec::new();
    let mut last = None;
    bench.look(|_, performative| {
        names.push(performative.name());
        if let Performative::Flow(flow) = performative {
            last = Some((flow.delivery_count, flow.link_credit, flow.available, flow.drain));
        }
    });
    assert_eq!(names, ["transfer", "transfer", "transfer", "flow"]);
    assert_eq!(last, Some((Some(10), Some(0), Some(0), true)));
}

/// A fault closes the endpoint that it concerns, with the condition that the specification names for it, and
/// nothing around it (§2.8.15 to §2.8.18).
#[test]
fn a_fault_costs_the_right_endpoint() {
    let small =
        || Settings { session_frames_max: 2, channel_max: 3, max_frame_size: 1024, ..Settings::default() };
    let session_gone = |condition: Condition| format!("end {}", condition.as_str());
    let link_gone = |condition: Condition| format!("detach {}", condition.as_str());
    let connection_gone = |condition: Condition| format!("close {}", condition.as_str());
    let mut faults: Vec<(&str, Vec<u8>, String)> = Vec::new();
    faults.push((
        "a transfer without credit",
        frame(0, &transfer(0), b"x"),
        link_gone(Condition::TRANSFER_LIMIT_EXCEEDED),
    ));
    faults.push((
        "a transfer on a handle that isn't attached",
        frame(0, &Transfer { handle: 7, ..transfer(0) }, b"x"),
        session_gone(Condition::UNATTACHED_HANDLE),
    ));
    faults.push((
        "a flow on a handle that isn't attached",
        frame(0, &Flow { handle: Some(7), ..flow_of_peer() }, &[]),
        session_gone(Condition::UNATTACHED_HANDLE),
    ));
    faults.push((
        "a detach of a handle that isn't attached",
        frame(0, &Detach { handle: 7, closed: true, error: None }, &[]),
        session_gone(Condition::UNATTACHED_HANDLE),
    ));
    faults.push((
        "an attach on a handle in use",
        frame(0, &sending("other", 0, 0), &[]),
        session_gone(Condition::HANDLE_IN_USE),
    ));
    faults.push((
        "a begin beyond channel-max",
        frame(4, &window(10), &[]),
        connection_gone(Condition::FRAMING_ERROR),
    ));
    faults.push((
        "a frame larger than max-frame-size",
        frame(0, &transfer(0), &[0; 1100]),
        connection_gone(Condition::FRAMING_ERROR),
    ));
    faults.push((
        "a frame whose size is less than its header's",
        vec![0, 0, 0, 7, 2, 0, 0, 0],
        connection_gone(Condition::FRAMING_ERROR),
    ));
    faults.push((
        "a performative that is cut off",
        vec![0, 0, 0, 12, 2, 0, 0, 0, 0, 0x53, 0x13, 0xc0],
        connection_gone(Condition::DECODE_ERROR),
    ));
    for (what, fault, expected) in faults {
        let (mut bench, ..) = Bench::opened(small()).with_links(window(100), 0, 0);
        let _ = bench.heard();
        bench.write(&fault);
        let mut events = 0;
        bench.work(|_, event| match event {
            Event::Detached { .. } | Event::Ended { .. } | Event::Closed(_) => events += 1,
            other => panic!("{what}: {other:?}"),
        });
        assert_eq!(bench.heard_but_flows(), [expected], "{what}");
        assert_eq!(events, 1, "{what}");
    }
}

#[test]
fn a_transfer_beyond_the_window_costs_the_session() {
    let settings = Settings { session_frames_max: 2, ..Settings::default() };
    let (mut bench, ..) = Bench::opened(settings).with_links(window(100), 0, 50);
    let _ = bench.heard();
    for number in 0..3 {
        bench.write(&frame(0, &transfer(number), b"x"));
    }
    let mut came = 0;
    bench.work(|_, event| came += usize::from(matches!(event, Event::Transfer(_))));
    assert_eq!(came, 2);
    assert_eq!(bench.heard_but_flows(), [format!("end {}", Condition::WINDOW_VIOLATION.as_str())]);
    // What the peer had sent before it heard of that is passed over, up to its end.
    bench.write(&frame(0, &transfer(3), b"x"));
    bench.say(0, &Disposition { role: Role::Sender, settled: true, ..Disposition::default() });
    bench.say(0, &Detach { handle: 0, closed: true, error: None });
    bench.say(0, &End { error: None });
    bench.work(|_, event| panic!("{event:?}"));
    bench.connection.clear_session(Channel(0));
    // Then the channel is free again.
    bench.say(0, &window(10));
    bench.work(|_, event| assert!(matches!(event, Event::Begun(_))));
    assert_eq!(bench.heard(), ["begin"]);
    bench.say(0, &Close { error: None });
    bench.work(|_, event| assert!(matches!(event, Event::Closed(_))));
    assert_eq!(bench.heard(), ["close"]);
    assert!(bench.connection.is_finished());
}

/// §2.6.4: frames for a link that cross its detach are passed over, and cost nothing but that.
#[test]
fn transfers_that_cross_a_detach_are_passed_over() {
    let settings = Settings { session_frames_max: 4, ..Settings::default() };
    let (mut bench, link, _) = Bench::opened(settings).with_links(window(100), 0, 50);
    let more = |delivery_id: Option<u32>| Transfer {
        delivery_id,
        delivery_tag: delivery_id.map(|_| &b"tag"[..]),
        more: true,
        ..transfer(0)
    };
    bench.write(&frame(0, &more(Some(0)), b"x"));
    bench.work(|_, event| assert!(matches!(event, Event::Transfer(_))));
    bench.connection.send_detach(link, true, None, &mut bench.out);
    bench.connection.clear_link(link);
    let _ = bench.heard();
    // The rest of the delivery, a whole one, and the beginning of a third; more frames than the window had.
    for next in [more(None), Transfer { more: false, ..more(None) }, transfer(1), more(Some(2)), more(None)] {
        bench.write(&frame(0, &next, b"x"));
        bench.work(|_, event| panic!("{event:?}"));
        // The window is refreshed all the same.
        assert!(bench.heard().iter().all(|name| name == "flow"));
    }
    bench.say(0, &Detach { handle: 0, closed: true, error: None });
    bench.work(|_, event| panic!("{event:?}"));
    // The session goes on with the number that is next.
    bench.say(0, &sending("another", 0, 0));
    let mut link = None;
    bench.work(|bench, event| match event {
        Event::AttachRequested { link: other, attach } => {
            accept(bench, other, &attach);
            bench.connection.send_credit(other, 1, false, &mut bench.out);
            link = Some(other);
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(bench.heard(), ["attach", "flow"]);
    bench.write(&frame(0, &transfer(3), b"x"));
    let mut came = None;
    bench.work(|_, event| match event {
        Event::Transfer(arrived) => came = Some((arrived.link, arrived.delivery_id.0)),
        other => panic!("{other:?}"),
    });
    assert_eq!(came, link.map(|link| (link, 3)));
}
