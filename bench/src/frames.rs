//! Frames and messages to work on, as common clients send them.

use ringmain_codec::{
    Attach, Begin, Close, Condition, DeliveryState, Detach, Disposition, Encode, End, Error, Flow, FrameKind,
    Header, Open, Properties, Role, SectionKind, Source, Symbols, Target, TargetNode, Transfer, Value,
    Writer, write_frame,
};

/// The largest frame here.
pub const FRAME_MAX: u32 = 16_384;

/// Bytes of the usual message's body.
pub const BODY_BYTES: usize = 100;

/// What `write` writes.
///
/// # Panics
/// If that is longer than [`FRAME_MAX`].
#[must_use]
pub fn encoded(write: impl FnOnce(&mut Writer<'_>) -> Result<(), ringmain_codec::Full>) -> Vec<u8> {
    let mut room = vec![0; FRAME_MAX as usize];
    let mut writer = Writer::new(&mut room);
    write(&mut writer).expect("an example fits the largest frame");
    writer.written().to_vec()
}

/// A frame on channel 0.
#[must_use]
pub fn frame(performative: &impl Encode, payload: &[u8]) -> Vec<u8> {
    encoded(|writer| {
        write_frame(writer, FrameKind::Amqp, 0, |writer| {
            performative.encode(writer)?;
            writer.extend(payload)
        })
    })
}

/// An example of each performative as a frame, with its name.
#[must_use]
pub fn each_performative() -> Vec<(&'static str, Vec<u8>)> {
    let refused = Error { description: Some("there is no such node"), ..Error::new(Condition::NOT_FOUND) };
    vec![
        ("open", frame(&open(), &[])),
        ("begin", frame(&begin(), &[])),
        ("attach", frame(&attach("receiver-7c0f1f5a", Role::Receiver), &[])),
        ("flow", frame(&flow(1000), &[])),
        ("transfer", frame(&transfer(70_000, &70_000u64.to_be_bytes()), &message())),
        ("disposition", frame(&accepted(70_000, Some(70_099)), &[])),
        ("detach", frame(&Detach { handle: 3, closed: true, error: Some(refused) }, &[])),
        ("end", frame(&End { error: None }, &[])),
        ("close", frame(&Close { error: None }, &[])),
    ]
}

/// An open with what clients usually say.
#[must_use]
pub fn open() -> Open<'static> {
    Open {
        container_id: "client-0f2b6a5e-5a1c",
        hostname: Some("router.example.com"),
        max_frame_size: FRAME_MAX,
        channel_max: 255,
        idle_time_out: Some(30_000),
        desired_capabilities: Symbols::Slice(&["ANONYMOUS-RELAY"]),
        ..Open::default()
    }
}

/// A begin whose window doesn't run out.
#[must_use]
pub fn begin() -> Begin<'static> {
    Begin {
        next_outgoing_id: 1,
        incoming_window: i32::MAX as u32,
        outgoing_window: i32::MAX as u32,
        handle_max: 255,
        ..Begin::default()
    }
}

/// An attach on handle 0, both of whose ends are one address.
#[must_use]
pub fn attach(name: &str, role: Role) -> Attach<'_> {
    const ADDRESS: &str = "market.prices.eu";
    Attach {
        name,
        handle: 0,
        role,
        source: Some(Source { address: Some(ADDRESS), ..Source::default() }),
        target: Some(Target::Node(TargetNode { address: Some(ADDRESS), ..TargetNode::default() })),
        initial_delivery_count: (role == Role::Sender).then_some(0),
        ..Attach::default()
    }
}

/// A flow of handle 0.
#[must_use]
pub fn flow(link_credit: u32) -> Flow<'static> {
    Flow {
        next_incoming_id: Some(0),
        incoming_window: i32::MAX as u32,
        next_outgoing_id: 1,
        outgoing_window: i32::MAX as u32,
        handle: Some(0),
        delivery_count: Some(0),
        link_credit: Some(link_credit),
        ..Flow::default()
    }
}

/// The only transfer of an unsettled delivery, on handle 0.
#[must_use]
pub fn transfer(delivery_id: u32, tag: &[u8]) -> Transfer<'_> {
    Transfer {
        handle: 0,
        delivery_id: Some(delivery_id),
        delivery_tag: Some(tag),
        message_format: Some(0),
        ..Transfer::default()
    }
}

/// A receiver's disposition that settles deliveries as accepted.
#[must_use]
pub fn accepted(first: u32, last: Option<u32>) -> Disposition<'static> {
    Disposition {
        role: Role::Receiver,
        first,
        last,
        settled: true,
        state: Some(DeliveryState::Accepted),
        ..Disposition::default()
    }
}

fn section(writer: &mut Writer<'_>, kind: SectionKind, value: &[u8]) -> Result<(), ringmain_codec::Full> {
    writer.described(kind.descriptor().code, |writer| writer.extend(value))
}

/// A message of one data section of [`BODY_BYTES`].
#[must_use]
pub fn message() -> Vec<u8> {
    encoded(|writer| {
        section(writer, SectionKind::Data, &encoded(|writer| writer.put(&[7u8; BODY_BYTES].as_slice())))
    })
}

/// A message with header, annotations, properties, application properties and [`BODY_BYTES`] of data.
#[must_use]
pub fn message_of_many_sections() -> Vec<u8> {
    let annotations = encoded(|writer| {
        writer.map(|writer| {
            writer.put(&ringmain_codec::Symbol("x-opt-jms-msg-type"))?;
            writer.put(&3u8)
        })
    });
    let application = encoded(|writer| {
        writer.map(|writer| {
            for (name, value) in [("instrument", "DE0007164600"), ("venue", "XETR"), ("currency", "EUR")] {
                writer.put(name)?;
                writer.put(value)?;
            }
            writer.put("sequence")?;
            writer.put(&123_456_789u64)
        })
    });
    encoded(|writer| {
        Header { durable: true, ..Header::default() }.encode(writer)?;
        section(writer, SectionKind::MessageAnnotations, &annotations)?;
        Properties {
            message_id: Value::from_encoded(&encoded(|writer| writer.put("ID:7c0f1f5a-0001"))).ok(),
            to: Some("market.prices.eu"),
            subject: Some("tick"),
            ..Properties::default()
        }
        .encode(writer)?;
        section(writer, SectionKind::ApplicationProperties, &application)?;
        section(writer, SectionKind::Data, &encoded(|writer| writer.put(&[7u8; BODY_BYTES].as_slice())))
    })
}
