//! The frames of a small conversation, byte by byte. The expected bytes are written by hand from AMQP 1.0
//! §1.6, §2.3 and §2.7.

use ringmain_codec::*;

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut buffer = [0; 1024];
    let mut writer = Writer::new(&mut buffer);
    writer.put(value).unwrap();
    writer.written().to_vec()
}

#[test]
fn open_leaves_out_defaults_and_trailing_nulls() {
    let open = Open { container_id: "a", channel_max: 9, ..Open::default() };
    let bytes = b"\x00\x53\x10\xc0\x09\x04\xa1\x01a\x40\x40\x60\x00\x09";
    assert_eq!(encoded(&open), bytes);
    assert_eq!(Performative::decode(bytes).unwrap(), (Performative::Open(open), &b""[..]));
}

#[test]
fn transfer_frame_with_payload() {
    let transfer = Transfer {
        handle: 1,
        delivery_id: Some(0),
        delivery_tag: Some(b"\x07"),
        message_format: Some(0),
        settled: Some(true),
        ..Transfer::default()
    };
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    write_frame(&mut writer, FrameKind::Amqp, 5, |writer| {
        transfer.encode(writer)?;
        writer.extend(b"payload")
    })
    .unwrap();
    let bytes =
        b"\x00\x00\x00\x1d\x02\x00\x00\x05\x00\x53\x14\xc0\x09\x05\x52\x01\x43\xa0\x01\x07\x43\x41payload";
    assert_eq!(writer.written(), bytes);

    assert_eq!(split_frame(&bytes[..28], 512), Ok(None));
    let (frame, rest) = split_frame(bytes, 512).unwrap().unwrap();
    assert_eq!((frame.kind, frame.channel, rest), (FrameKind::Amqp, 5, &b""[..]));
    let (performative, payload) = Performative::decode(frame.body).unwrap();
    assert_eq!((performative, payload), (Performative::Transfer(transfer), &b"payload"[..]));
}

#[test]
fn disposition_with_an_outcome() {
    let disposition = Disposition {
        role: Role::Receiver,
        first: 300,
        settled: true,
        state: Some(DeliveryState::Accepted),
        ..Disposition::default()
    };
    let bytes = b"\x00\x53\x15\xc0\x0d\x05\x41\x70\x00\x00\x01\x2c\x40\x41\x00\x53\x24\x45";
    assert_eq!(encoded(&disposition), bytes);
    assert_eq!(Performative::decode(bytes).unwrap().0, Performative::Disposition(disposition));
}

#[test]
fn a_long_list_is_moved_to_its_long_form() {
    let text = "x".repeat(300);
    let bytes = encoded(&Open { container_id: &text, ..Open::default() });
    assert_eq!(bytes[..12], *b"\x00\x53\x10\xd0\x00\x00\x01\x35\x00\x00\x00\x01");
    let Performative::Open(open) = Performative::decode(&bytes).unwrap().0 else { panic!() };
    assert_eq!(open.container_id, text);
}

#[test]
fn errors_say_what_where_and_which_condition() {
    let malformed =
        Performative::decode(b"\x00\x53\x14\xc0\x08\x03\x52\x01\x43\x71\x00\x00\x00\x00").unwrap_err();
    assert_eq!(
        malformed.to_string(),
        "transfer.delivery-tag at byte 9: expected binary, found format code 0x71"
    );
    assert_eq!(malformed.condition(), Condition::DECODE_ERROR);
    let malformed = Performative::decode(b"\x00\x53\x14\x45").unwrap_err();
    assert_eq!(malformed.to_string(), "transfer.handle at byte 4: mandatory field is absent");
    assert_eq!(malformed.condition(), Condition::INVALID_FIELD);
}

#[test]
fn maps_are_written_by_closure_and_read_by_entry() {
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    writer
        .map(|map| {
            map.put(&Symbol("product"))?;
            map.put("ringmain")?;
            map.put(&Symbol("list"))?;
            map.list(|list| {
                list.put(&1u32)?;
                list.null()
            })
        })
        .unwrap();
    let value = Value::from_encoded(writer.written()).unwrap();
    assert_eq!(value.to_string(), r#"{:product="ringmain", :list=[1, null]}"#);
    assert_eq!(value.entries().unwrap().len(), 2);
    assert_eq!(value.get("product").unwrap().as_str(), Some("ringmain"));
}

#[test]
fn sections_in_order() {
    let message = b"\x00\x53\x70\xc0\x04\x02\x40\x50\x07\x00\x53\x75\xa0\x02hi\x00\x53\x75\xa0\x03";
    let mut sections = Sections::new(message);
    assert_eq!(sections.peek(), Ok(Some(SectionKind::Header)));
    let header = Header::from_section(&sections.next().unwrap().unwrap()).unwrap();
    assert_eq!(header, Header { priority: 7, ..Header::default() });
    let data = sections.next().unwrap().unwrap();
    assert_eq!((data.kind, data.value.as_binary()), (SectionKind::Data, Some(&b"hi"[..])));
    assert_eq!(sections.peek(), Ok(Some(SectionKind::Data)));
    assert_eq!(sections.next(), Err(SectionError::Incomplete));
    assert_eq!(sections.offset(), 16);
}

#[test]
fn protocol_headers() {
    assert_eq!(ProtocolHeader::decode(b"AMQ"), Ok(None));
    assert_eq!(ProtocolHeader::decode(b"AMQP\x03\x01\x00\x00more"), Ok(Some(ProtocolHeader::SASL)));
    assert!(ProtocolHeader::decode(b"H").is_err());
    assert_eq!(ProtocolHeader::AMQP.to_bytes(), *b"AMQP\x00\x01\x00\x00");
}
