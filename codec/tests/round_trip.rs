//! Properties: what is encoded decodes to the same, in the shortest form; what decodes encodes to an equal
//! value; and bytes that were changed do no harm.

mod common;

use common::arbitrary::*;
use common::{Form, Model, encoded};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use ringmain_codec::*;

/// Failures are to become tests by hand, not files beside the source.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// A decoder's error as a failure of the property.
fn failed(malformed: Malformed) -> TestCaseError {
    TestCaseError::fail(malformed.to_string())
}

/// Encodes in forms chosen by `choices`, over and over.
fn encode_anyhow(model: &Model, choices: &[usize]) -> Vec<u8> {
    let mut next = choices.iter().cycle();
    let mut choose = |count: usize| next.next().unwrap() % count;
    model.encode(&mut Form::Any(&mut choose))
}

/// Everything that can be done with a value, to see that nothing of it panics.
fn exercise(value: Value<'_>) {
    assert!(!format!("{value} {value:?} {:?}", value.view()).is_empty());
    let again = encoded(&value.view());
    let again = Value::from_encoded(&again).expect("what is encoded is well formed");
    assert_eq!(again, value);
    assert_eq!(again.to_string(), value.to_string());
    let _ = (
        value.as_str(),
        value.as_symbol(),
        value.as_bool(),
        value.as_u64(),
        value.as_i64(),
        value.as_binary(),
    );
    let _ = (value.get("key"), value.items().map(Iterator::count), value.entries().map(Iterator::count));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn values_decode_from_any_form_and_encode_in_the_shortest(
        model in value(),
        choices in vec(any::<usize>(), 1..9),
    ) {
        let shortest = model.encode(&mut Form::Shortest);
        let longest = model.encode(&mut Form::Longest);
        let any = encode_anyhow(&model, &choices);
        for bytes in [&shortest, &longest, &any] {
            let value = Value::from_encoded(bytes).map_err(failed)?;
            prop_assert_eq!(&Model::from(value.view()), &model);
            prop_assert_eq!(&encoded(&value.view()), &shortest);
            prop_assert_eq!(&encoded(&value), bytes);
            prop_assert_eq!(value, Value::from_encoded(&shortest).unwrap());
            exercise(value);
        }
    }

    #[test]
    fn values_are_equal_exactly_when_they_mean_the_same(a in value(), b in value()) {
        let (short, long) = (a.encode(&mut Form::Shortest), b.encode(&mut Form::Longest));
        let equal = Value::from_encoded(&short).unwrap() == Value::from_encoded(&long).unwrap();
        prop_assert_eq!(equal, a == b);
    }

    #[test]
    fn a_value_cut_short_is_incomplete_and_never_wrong(model in value(), choices in vec(any::<usize>(), 1..9)) {
        let bytes = encode_anyhow(&model, &choices);
        for length in 0..bytes.len() {
            let malformed = Value::from_encoded(&bytes[..length]).unwrap_err();
            // A list that is too short for the size it has is complete up to there only if the size says so.
            prop_assert_eq!(malformed.kind, MalformedKind::UnexpectedEnd, "{} of {}", length, bytes.len());
            prop_assert!(malformed.offset <= length);
        }
        let more = [&bytes[..], b"\x40"].concat();
        prop_assert_eq!(Value::from_encoded(&more).unwrap_err().kind, MalformedKind::TrailingBytes);
    }

    #[test]
    fn changed_bytes_do_no_harm(
        model in value(),
        choices in vec(any::<usize>(), 1..9),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encode_anyhow(&model, &choices);
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        if let Ok(value) = Value::from_encoded(&bytes) {
            exercise(value);
        }
        let _ = Performative::decode(&bytes);
        let _ = SaslFrame::decode(&bytes);
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..64), prefix in any::<bool>(), code in 0x10..0x80_u8) {
        let bytes = if prefix { [&[0x00, 0x53, code, 0xc0], &bytes[..]].concat() } else { bytes };
        if let Ok(value) = Value::from_encoded(&bytes) {
            exercise(value);
        }
        if let Ok((performative, _)) = Performative::decode(&bytes) {
            let again = encoded(&performative);
            prop_assert_eq!(Performative::decode(&again).unwrap().0, performative);
        }
        if let Ok(frame) = SaslFrame::decode(&bytes) {
            let again = encoded(&frame);
            prop_assert_eq!(SaslFrame::decode(&again), Ok(frame));
        }
        let mut sections = Sections::new(&bytes);
        while let Ok(Some(section)) = sections.next() {
            exercise(section.value);
            let _ = (Header::from_section(&section), Properties::from_section(&section));
        }
        let _ = split_frame(&bytes, 512);
        let _ = ProtocolHeader::decode(&bytes);
    }
}

/// A buffer that is just large enough suffices, and one byte less is refused without a trace.
fn assert_exact(value: &impl Encode, length: usize) {
    let mut buffer = vec![0xee; length + 3];
    let mut writer = Writer::new(&mut buffer[..length + 2]);
    writer.extend(b"::").unwrap();
    writer.put(value).expect("the exact room suffices");
    assert_eq!(writer.remaining(), 0);
    for room in [length - 1, length / 2, 0] {
        let mut writer = Writer::new(&mut buffer[..room + 2]);
        writer.extend(b"::").unwrap();
        assert_eq!(writer.put(value), Err(Full));
        assert_eq!(writer.written(), b"::");
        let result = write_frame(&mut writer, FrameKind::Amqp, 1, |writer| value.encode(writer));
        assert_eq!((result, writer.written()), (Err(Full), &b"::"[..]));
    }
    assert_eq!(buffer[length + 2], 0xee);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn performatives_decode_to_what_was_encoded(
        performative in performative(),
        payload in vec(any::<u8>(), 0..5),
    ) {
        let body = encoded(&performative);
        assert_exact(&performative, body.len());
        let frame = [&body[..], &payload].concat();
        let (decoded, rest) = Performative::decode(&frame).map_err(failed)?;
        prop_assert_eq!(&decoded, &performative);
        prop_assert_eq!(rest, &payload[..]);
        prop_assert_eq!(decoded.name(), performative.name());
        // Encoding is the shortest already, down to the last value.
        let value = Value::from_encoded(&body).unwrap();
        prop_assert_eq!(&encoded(&decoded), &body);
        prop_assert!(encoded(&value.view()).len() >= body.len());
        for length in 0..body.len() {
            prop_assert!(Performative::decode(&body[..length]).is_err());
        }
    }

    #[test]
    fn performatives_decode_from_any_form(
        performative in performative(),
        choices in vec(any::<usize>(), 1..9),
    ) {
        let model = Model::from(Value::from_encoded(&encoded(&performative)).unwrap().view());
        let body = encode_anyhow(&model, &choices);
        let (decoded, rest) = Performative::decode(&body).map_err(failed)?;
        prop_assert_eq!(decoded, performative);
        prop_assert_eq!(rest, &b""[..]);
    }

    #[test]
    fn frames_split_where_they_were_joined(
        performatives in vec((any::<u16>(), performative()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut buffer = vec![0; 1 << 16];
        let mut writer = Writer::new(&mut buffer);
        write_empty_frame(&mut writer).unwrap();
        for (channel, performative) in &performatives {
            write_frame(&mut writer, FrameKind::Amqp, *channel, |writer| performative.encode(writer)).unwrap();
        }
        let bytes = writer.written();
        let (empty, mut rest) = split_frame(bytes, u32::MAX).unwrap().unwrap();
        prop_assert_eq!(empty, Frame { kind: FrameKind::Amqp, channel: 0, body: b"" });
        for (channel, performative) in &performatives {
            let (frame, after) = split_frame(rest, u32::MAX).unwrap().unwrap();
            let size = rest.len() - after.len();
            prop_assert_eq!(split_frame(&rest[..cut.index(size)], u32::MAX), Ok(None));
            prop_assert!(split_frame(rest, size as u32).is_ok());
            prop_assert!(split_frame(rest, size as u32 - 1).is_err());
            prop_assert_eq!(frame.channel, *channel);
            prop_assert_eq!(&Performative::decode(frame.body).unwrap().0, performative);
            rest = after;
        }
        prop_assert_eq!(rest, &b""[..]);
    }

    #[test]
    fn sasl_frames_decode_to_what_was_encoded(frame in sasl_frame()) {
        let body = encoded(&frame);
        assert_exact(&frame, body.len());
        prop_assert_eq!(SaslFrame::decode(&body), Ok(frame));
        let more = [&body[..], b"\x40"].concat();
        prop_assert_eq!(SaslFrame::decode(&more).unwrap_err().kind, MalformedKind::TrailingBytes);
    }

    #[test]
    fn headers_and_properties_decode_to_what_was_encoded(
        header in (any::<bool>(), any::<u8>(), option::of(uint()), any::<bool>(), uint()),
        properties in properties(),
        body in value(),
    ) {
        let header = Header {
            durable: header.0,
            priority: header.1,
            ttl: header.2,
            first_acquirer: header.3,
            delivery_count: header.4,
        };
        let body = body.encode(&mut Form::Shortest);
        let message = [&encoded(&header)[..], &encoded(&properties), b"\x00\x53\x77", &body].concat();
        let mut sections = Sections::new(&message);
        let section = sections.next().unwrap().unwrap();
        prop_assert_eq!(Header::from_section(&section), Ok(header));
        let section = sections.next().unwrap().unwrap();
        prop_assert_eq!(Properties::from_section(&section), Ok(properties));
        prop_assert_eq!(Properties::to_from_section(&section), Ok(properties.to));
        let section = sections.next().unwrap().unwrap();
        prop_assert_eq!(section.kind, SectionKind::AmqpValue);
        prop_assert_eq!(section.value.encoded(), &body[..]);
        prop_assert_eq!(sections.next(), Ok(None));
        prop_assert_eq!(sections.offset(), message.len());
        assert_exact(&header, encoded(&header).len());
        assert_exact(&properties, encoded(&properties).len());
    }

    #[test]
    fn a_message_that_arrives_in_pieces_is_incomplete_until_it_is_not(
        properties in properties(),
        body in vec(any::<u8>(), 0..20),
    ) {
        let data = Model::Binary(body).encode(&mut Form::Longest);
        let message = [&encoded(&properties)[..], b"\x00\x53\x75", &data].concat();
        for length in 0..message.len() {
            let mut sections = Sections::new(&message[..length]);
            let mut whole = 0;
            loop {
                let before = sections.offset();
                match sections.next() {
                    Ok(Some(section)) => whole += section.encoded.len(),
                    Ok(None) => break,
                    Err(SectionError::Incomplete) => {
                        prop_assert_eq!(sections.offset(), before);
                        break;
                    }
                    Err(SectionError::Malformed(malformed)) => return Err(failed(malformed)),
                }
            }
            prop_assert_eq!(whole, sections.offset());
        }
    }

    #[test]
    fn primitives_decode_to_what_was_encoded(
        (uint, ulong, ubyte, ushort) in (uint(), ulong(), any::<u8>(), any::<u16>()),
        (int, long, byte, short) in (any::<i32>(), any::<i64>(), any::<i8>(), any::<i16>()),
        others in (any::<u32>(), any::<u64>(), any::<char>(), any::<i64>(), any::<[u8; 16]>(), any::<bool>()),
        texts in (text(), symbol(), binary()),
    ) {
        fn assert_round_trip<T>(value: T, model: &Model)
        where
            T: Encode + for<'b> Decode<'b> + PartialEq + std::fmt::Debug,
        {
            let bytes = encoded(&value);
            assert_eq!(bytes, model.encode(&mut Form::Shortest));
            assert_exact(&value, bytes.len());
            let long = model.encode(&mut Form::Longest);
            for bytes in [bytes, long] {
                let mut cursor = Cursor::new(&bytes);
                assert_eq!(T::decode(&mut cursor, "").as_ref(), Ok(&value));
                assert!(cursor.is_empty());
            }
        }
        assert_round_trip(uint, &Model::Uint(uint));
        assert_round_trip(ulong, &Model::Ulong(ulong));
        assert_round_trip(int, &Model::Int(int));
        assert_round_trip(long, &Model::Long(long));
        assert_round_trip(byte, &Model::Byte(byte));
        assert_round_trip(short, &Model::Short(short));
        assert_round_trip(ubyte, &Model::Ubyte(ubyte));
        assert_round_trip(ushort, &Model::Ushort(ushort));
        let (float, double, letter, time, uuid, boolean) = others;
        prop_assert_eq!(encoded(&f32::from_bits(float)), Model::Float(float).encode(&mut Form::Shortest));
        prop_assert_eq!(encoded(&f64::from_bits(double)), Model::Double(double).encode(&mut Form::Shortest));
        assert_round_trip(letter, &Model::Char(letter));
        assert_round_trip(Timestamp(time), &Model::Timestamp(time));
        assert_round_trip(Uuid(uuid), &Model::Uuid(uuid));
        assert_round_trip(Decimal128(uuid), &Model::Decimal128(uuid));
        assert_round_trip(boolean, &Model::Bool(boolean));
        let (text, symbol, binary) = texts;
        prop_assert_eq!(encoded(text), Model::Str(text.into()).encode(&mut Form::Shortest));
        prop_assert_eq!(encoded(&symbol), Model::Symbol(symbol.0.into()).encode(&mut Form::Shortest));
        prop_assert_eq!(encoded(binary), Model::Binary(binary.into()).encode(&mut Form::Shortest));
    }

    #[test]
    fn arrays_of_rust_values_have_the_narrowest_constructor(
        uints in vec(uint(), 1..5),
        longs in vec(any::<i64>(), 1..5),
        texts in vec(text(), 1..5),
        booleans in vec(any::<bool>(), 1..5),
    ) {
        fn array<T: primitive::Element>(items: &[T]) -> Vec<u8> {
            let mut buffer = [0; 8192];
            let mut writer = Writer::new(&mut buffer);
            writer.array(items).unwrap();
            writer.written().to_vec()
        }
        let expected = |widest, items: Vec<Model>| {
            Model::Array(widest, vec![], items).encode(&mut Form::Shortest)
        };
        prop_assert_eq!(array(&uints), expected(0x70, uints.iter().copied().map(Model::Uint).collect()));
        prop_assert_eq!(array(&longs), expected(0x81, longs.iter().copied().map(Model::Long).collect()));
        let strings = texts.iter().map(|text| Model::Str((*text).to_owned())).collect();
        prop_assert_eq!(array(&texts), expected(0xb1, strings));
        // All true would be the code without data, which the encoder leaves alone.
        prop_assert_eq!(array(&booleans)[3], 0x56);
        prop_assert_eq!(array(&booleans).len(), 4 + booleans.len());
    }
}
