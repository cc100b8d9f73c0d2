//! Annotations and the bare message: L-08 (AMQP 1.0 §3.2).

use ringmain_codec::{
    DeliveryState, Header, Properties, SectionKind, Sections, Symbol, Timestamp, Value, Writer,
};

use crate::support::{LinkId, Peer, Router, Setup, message};

type Written = Result<(), ringmain_codec::Full>;

fn map_section(descriptor: u64, write: impl Fn(&mut Writer<'_>) -> Written) -> Vec<u8> {
    message::encoded(|writer| writer.described(descriptor, |writer| writer.map(|writer| write(writer))))
}

fn header() -> Vec<u8> {
    let header =
        Header { durable: true, priority: 7, ttl: Some(60_000), first_acquirer: true, delivery_count: 3 };
    message::value(&header)
}

fn empty_delivery_annotations() -> Vec<u8> {
    map_section(0x71, |_| Ok(()))
}

/// The annotations of the case: a symbol key, one without the prefix `x-opt-` that has a list, a ulong key.
fn own_annotations(writer: &mut Writer<'_>) -> Written {
    writer.put(&Symbol("x-opt-a"))?;
    writer.put(&1i32)?;
    writer.put(&Symbol("x-b"))?;
    writer.list(|writer| {
        writer.put("one")?;
        writer.null()?;
        writer.put(&2.5f64)
    })?;
    writer.put(&4711u64)?;
    writer.put("ulong key")
}

/// Properties with every field, several data sections, application properties of many types. Some values are
/// deliberately not in their shortest form: the router has no business to rewrite them.
fn bare() -> Vec<u8> {
    let id = message::value("an id");
    let correlation = message::value(&ringmain_codec::Uuid([7; 16]));
    let properties = Properties {
        message_id: Some(Value::from_encoded(&id).expect("a value")),
        user_id: Some(b"user"),
        to: Some("elsewhere"),
        subject: Some("subject"),
        reply_to: Some("reply"),
        correlation_id: Some(Value::from_encoded(&correlation).expect("a value")),
        content_type: Some(Symbol("text/plain")),
        content_encoding: Some(Symbol("identity")),
        absolute_expiry_time: Some(Timestamp(2_000_000_000_000)),
        creation_time: Some(Timestamp(-1)),
        group_id: Some("group"),
        group_sequence: Some(u32::MAX),
        reply_to_group_id: Some("group of answers"),
    };
    let mut bare = message::value(&properties);
    bare.extend(map_section(0x74, |writer| {
        writer.put("s")?;
        writer.put("string")?;
        writer.put("u")?;
        writer.put(&0u32)?;
        writer.put("b")?;
        writer.put(&false)
    }));
    // A uint of zero in four bytes, in a list32, as application-properties of their own: valid, and long.
    bare.extend(message::data(b"first"));
    bare.extend(message::data(b""));
    bare.extend(message::data(&[0xa5; 3000]));
    bare
}

fn footer() -> Vec<u8> {
    map_section(0x78, |writer| {
        writer.put(&Symbol("x-opt-sum"))?;
        writer.put(b"\x01\x02".as_slice())
    })
}

struct Pair {
    peer: Peer,
    sender: LinkId,
    consumer: Peer,
}

impl Pair {
    fn new(router: &Router) -> Self {
        let mut consumer = router.peer();
        consumer.attach_receiver("q", 1000);
        let mut peer = router.peer();
        let sender = peer.attach_sender("q");
        Self { peer, sender, consumer }
    }

    /// Sends a message and returns what arrives.
    #[track_caller]
    fn pass(&mut self, message: &[u8]) -> Vec<u8> {
        let id = self.peer.send_delivery(self.sender, message, false);
        let delivery = self.consumer.expect_delivery();
        self.consumer.accept(&delivery);
        assert_eq!(self.peer.expect_outcome(id).disposition().state, Some(DeliveryState::Accepted));
        delivery.payload
    }
}

/// A section of a message: its bytes.
fn section(message: &[u8], kind: SectionKind) -> Option<&[u8]> {
    let mut sections = Sections::new(message);
    while let Some(section) = sections.next().expect("a well-formed message") {
        if section.kind == kind {
            return Some(section.encoded);
        }
    }
    None
}

/// What follows the annotations: the bare message and the footer.
fn from_properties_on(message: &[u8]) -> &[u8] {
    let mut sections = Sections::new(message);
    while let Some(kind) = sections.peek().expect("a well-formed message") {
        match kind {
            SectionKind::Header | SectionKind::DeliveryAnnotations | SectionKind::MessageAnnotations => {
                sections.next().expect("a well-formed message");
            }
            SectionKind::Properties
            | SectionKind::ApplicationProperties
            | SectionKind::Data
            | SectionKind::AmqpSequence
            | SectionKind::AmqpValue
            | SectionKind::Footer => break,
        }
    }
    &message[sections.offset()..]
}

/// The bare message arrives byte for byte, message-annotations are kept, and the header's fields too; an
/// empty delivery-annotations section hurts nobody.
#[test]
fn l_08_the_bare_message_is_untouched() {
    let router = Router::start();
    let mut pair = Pair::new(&router);
    let annotations = map_section(0x72, own_annotations);
    let rest = [bare(), footer()].concat();
    let message = [header(), empty_delivery_annotations(), annotations.clone(), rest.clone()].concat();
    let arrived = pair.pass(&message);
    assert_eq!(from_properties_on(&arrived), rest, "the bare message and the footer");
    let kept = section(&arrived, SectionKind::MessageAnnotations).expect("kept");
    assert_eq!(Value::from_encoded(kept), Value::from_encoded(&annotations));
    let kept = section(&arrived, SectionKind::Header).expect("kept");
    assert_eq!(Value::from_encoded(kept), Value::from_encoded(&header()));
}

/// The same with each section in front left out in turn, in frames of every size, and for every kind of body.
#[test]
fn l_08_every_combination_of_sections() {
    let router = Router::start();
    let mut pair = Pair::new(&router);
    let delivery_annotations =
        map_section(0x71, |writer| writer.put(&Symbol("x-opt-d")).and_then(|()| writer.put(&9u64)));
    let annotations = map_section(0x72, own_annotations);
    let bodies = [
        bare(),
        message::data(b"only data"),
        message::encoded(|writer| writer.described(0x77, |writer| writer.put("a value"))),
        message::encoded(|writer| writer.described(0x77, |writer| writer.null())),
        message::encoded(|writer| writer.described(0x76, |writer| writer.list(|writer| writer.put(&1i64)))),
        message::data(&[]),
    ];
    for body in &bodies {
        for choice in 0..16 {
            let chosen =
                |bit: usize, section: &[u8]| if choice >> bit & 1 == 1 { section.to_vec() } else { vec![] };
            let front =
                [chosen(0, &header()), chosen(1, &delivery_annotations), chosen(2, &annotations)].concat();
            let rest = [body.clone(), chosen(3, &footer())].concat();
            let arrived = pair.pass(&[front, rest.clone()].concat());
            assert_eq!(from_properties_on(&arrived), rest, "sections {choice:04b}");
            let kept = section(&arrived, SectionKind::MessageAnnotations);
            assert_eq!(kept.is_some(), choice >> 2 & 1 == 1, "sections {choice:04b}");
        }
    }
}

/// The routers' own annotations are taken out on the way to clients, by default; others stay. What a
/// listener's stripAnnotations says, holds.
#[test]
fn l_08_the_routers_own_annotations_are_stripped() {
    fn with_routers(writer: &mut Writer<'_>) -> Written {
        writer.put(&Symbol("x-opt-qd.ingress"))?;
        writer.put("0/OTHER")?;
        own_annotations(writer)?;
        writer.put(&Symbol("x-opt-qd.trace"))?;
        writer.list(|writer| writer.put("0/OTHER"))
    }
    fn only_routers(writer: &mut Writer<'_>) -> Written {
        writer.put(&Symbol("x-opt-qd.to"))?;
        writer.put("elsewhere")
    }
    let rest = [bare(), footer()].concat();
    for (strip, is_stripped) in [("", true), ("both", true), ("in", true), ("out", true), ("no", false)] {
        let listener = if strip.is_empty() { String::new() } else { format!("stripAnnotations: {strip}") };
        let router = Router::with(Setup { listener: &listener, ..Setup::default() });
        let mut pair = Pair::new(&router);
        let sent = map_section(0x72, with_routers);
        let expected = if is_stripped { map_section(0x72, own_annotations) } else { sent.clone() };
        let arrived = pair.pass(&[header(), sent, rest.clone()].concat());
        assert_eq!(from_properties_on(&arrived), rest);
        let kept = section(&arrived, SectionKind::MessageAnnotations).expect("some are left");
        assert_eq!(Value::from_encoded(kept), Value::from_encoded(&expected), "stripAnnotations {strip:?}");

        let arrived = pair.pass(&[map_section(0x72, only_routers), rest.clone()].concat());
        assert_eq!(from_properties_on(&arrived), rest);
        let kept = section(&arrived, SectionKind::MessageAnnotations);
        let entries = kept.and_then(|kept| {
            Sections::new(kept).next().ok().flatten()?.value.entries().map(|entries| entries.count())
        });
        assert_eq!(entries.unwrap_or(0) > 0, !is_stripped, "stripAnnotations {strip:?}");
    }
}

/// Annotations that can't be read: the message is rejected, the link goes on. Deeper in, the router doesn't
/// look.
#[test]
fn l_08_annotations_must_be_readable() {
    let router = Router::start();
    let mut pair = Pair::new(&router);
    let unreadable: [&[u8]; 4] = [
        // message-annotations whose value is a list
        &[0x00, 0x53, 0x72, 0x45],
        // a map of one key and no value
        &[0x00, 0x53, 0x72, 0xc1, 0x03, 0x01, 0xa3, 0x00],
        // a map that is longer than the message
        &[0x00, 0x53, 0x72, 0xc1, 0xff, 0x02, 0xa3, 0x00],
        // no message at all
        &[],
    ];
    for front in unreadable {
        let message = if front.is_empty() { vec![] } else { [front, &message::data(b"x")].concat() };
        let id = pair.peer.send_delivery(pair.sender, &message, false);
        let outcome = pair.peer.expect_outcome(id);
        let Some(DeliveryState::Rejected(rejected)) = outcome.disposition().state else {
            panic!("{outcome:?}")
        };
        assert_eq!(rejected.error.map(|error| error.condition.0), Some("amqp:decode-error"), "{front:02x?}");
    }
    // The body is the receiver's business.
    let odd = [message::value(&Header::default()).as_slice(), &[0x00, 0x53, 0x75, 0xb0, 0x00]].concat();
    assert_eq!(pair.pass(&odd), odd);
    pair.consumer.expect_nothing_for(100);
}

/// Other formats than AMQP's own (§3.2.16: the format is the sender's to say) pass whatever is in them.
#[test]
fn l_08_other_message_formats_are_opaque() {
    let router = Router::start();
    let mut pair = Pair::new(&router);
    pair.peer.await_credit(pair.sender, 1);
    let transfer = ringmain_codec::Transfer {
        message_format: Some(0x1234_5600),
        ..crate::support::first_transfer(pair.sender, 0, b"t", false, false)
    };
    let bytes = b"\x00\x53\x72 these are no sections".as_slice();
    pair.peer.send_transfer(0, transfer, bytes);
    let delivery = pair.consumer.expect_delivery();
    assert_eq!(delivery.message_format, 0x1234_5600);
    assert_eq!(delivery.payload, bytes);
    pair.consumer.accept(&delivery);
    pair.peer.expect_outcome(0);
}
