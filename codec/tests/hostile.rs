//! What a hostile or broken peer sends. Each input is written by hand; where the fault was seen in another
//! implementation, its effect there stands beside it.

mod common;

use std::time::{Duration, Instant};

use common::{Form, Model};
use ringmain_codec::*;

fn kind_of(bytes: &[u8]) -> MalformedKind {
    Value::from_encoded(bytes).expect_err("not well formed").kind
}

#[test]
fn a_sasl_frame_of_25_bytes_claims_a_huge_array() {
    // Seen elsewhere: room for the claimed 2^32-1 mechanisms is asked for at once.
    let header = b"\x00\x00\x00\x19\x02\x01\x00\x00";
    let body = b"\x00\x53\x40\xd0\x00\x00\x00\x09\x00\x00\x00\x01\xf0\xff\xff\xff\xff";
    let frame = [&header[..], body].concat();
    assert_eq!(frame.len(), 25);
    let (frame, _) = split_frame(&frame, 512).unwrap().unwrap();
    let malformed = SaslFrame::decode(frame.body).unwrap_err();
    assert_eq!(malformed.condition(), Condition::DECODE_ERROR);
    assert_eq!(malformed.field, "sasl-mechanisms.sasl-server-mechanisms");

    // The same with sizes that are true and only the count a lie.
    let body = b"\x00\x53\x40\xd0\x00\x00\x00\x0e\x00\x00\x00\x01\xf0\x00\x00\x00\x05\xff\xff\xff\xff\xa3";
    let malformed = SaslFrame::decode(body).unwrap_err();
    assert_eq!(malformed.kind, MalformedKind::CountBeyondBytes);
}

/// `depth` lists, each the only element of the one around it.
fn nested_lists(depth: usize) -> Vec<u8> {
    let mut bytes = vec![0x45];
    for _ in 1..depth {
        let size = bytes.len() as u32 + 4;
        bytes = [&[0xd0], &size.to_be_bytes()[..], &[0, 0, 0, 1], &bytes].concat();
    }
    bytes
}

#[test]
fn an_open_with_4000_nested_lists() {
    // Seen elsewhere: the stack overflows.
    let properties = [&[0xd1, 0, 0, 0, 0, 0, 0, 0, 2, 0xa3, 1, b'k'][..], &nested_lists(4000)].concat();
    let mut body =
        [&[0x00, 0x53, 0x10, 0xd0, 0, 0, 0, 0, 0, 0, 0, 10][..], b"\xa1\x01a", &[0x40; 8], &properties]
            .concat();
    let map = 12 + 3 + 8;
    let map_size = (body.len() - map - 5) as u32;
    body[map + 1..map + 5].copy_from_slice(&map_size.to_be_bytes());
    let size = (body.len() - 8) as u32;
    body[4..8].copy_from_slice(&size.to_be_bytes());
    let malformed = Performative::decode(&body).unwrap_err();
    assert_eq!((malformed.kind, malformed.field), (MalformedKind::NestingTooDeep, "open.properties"));
    assert_eq!(malformed.condition(), Condition::RESOURCE_LIMIT_EXCEEDED);
}

#[test]
fn nesting_ends_at_the_maximum_for_every_kind_of_nesting() {
    let wrap_list = |value: Vec<u8>| {
        [&[0xd0], &(value.len() as u32 + 4).to_be_bytes()[..], &[0, 0, 0, 1], &value].concat()
    };
    let wrap_map = |value: Vec<u8>| {
        [&[0xd1], &(value.len() as u32 + 5).to_be_bytes()[..], &[0, 0, 0, 2, 0x40], &value].concat()
    };
    let wrap_array = |value: Vec<u8>| {
        let (code, data) = value.split_first().unwrap();
        [&[0xf0], &(data.len() as u32 + 5).to_be_bytes()[..], &[0, 0, 0, 1, *code], data].concat()
    };
    let wrap_described = |value: Vec<u8>| [&[0x00, 0x44], &value[..]].concat();
    let wrap_descriptor = |value: Vec<u8>| [&[0x00], &value[..], &[0x40]].concat();
    let wraps: [&dyn Fn(Vec<u8>) -> Vec<u8>; 5] =
        [&wrap_list, &wrap_map, &wrap_array, &wrap_described, &wrap_descriptor];
    for (index, wrap) in wraps.into_iter().enumerate() {
        let mut bytes = vec![0x50, 1];
        for _ in 0..NESTING_MAX {
            bytes = wrap(bytes);
        }
        let value = Value::from_encoded(&bytes).unwrap_or_else(|error| panic!("{index}: {error}"));
        let again = common::encoded(&value.view());
        assert_eq!(Value::from_encoded(&again), Ok(value));
        assert!(!value.to_string().is_empty());
        assert_eq!(kind_of(&wrap(bytes)), MalformedKind::NestingTooDeep, "{index}");
    }
    // A descriptor before a descriptor, a million times, costs neither stack nor patience.
    let started = Instant::now();
    assert_eq!(kind_of(&vec![0x00; 1_000_000]), MalformedKind::NestingTooDeep);
    assert_eq!(kind_of(&nested_lists(4_000)[..1_000]), MalformedKind::UnexpectedEnd);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn frame_sizes_that_are_no_frames() {
    // Seen elsewhere: 4 minus the header's 8 wraps around.
    for size in 0..8_u32 {
        let bytes = size.to_be_bytes();
        let malformed = split_frame(&bytes, u32::MAX).unwrap_err();
        assert_eq!(malformed.kind, MalformedKind::FrameSizeTooSmall(size));
        assert_eq!(malformed.condition(), Condition::FRAMING_ERROR);
        let whole = [&bytes[..], &[2, 0, 0, 0, 1, 2, 3, 4]].concat();
        assert_eq!(split_frame(&whole, u32::MAX), Err(malformed));
    }
    // Too large is said before the body comes.
    let malformed = split_frame(&513_u32.to_be_bytes(), 512).unwrap_err();
    assert_eq!(malformed.kind, MalformedKind::FrameTooLarge { size: 513, max: 512 });
    assert_eq!(malformed.condition(), Condition::FRAMING_ERROR);
    assert_eq!(split_frame(&512_u32.to_be_bytes(), 512), Ok(None));
    assert_eq!(split_frame(b"\x00\x00\x02", 512), Ok(None));
    assert_eq!(split_frame(b"", 512), Ok(None));
    // A whole frame, and one that waits for its last byte.
    assert_eq!(split_frame(b"\x00\x00\x00\x09\x02\x00\x01\x02", 512), Ok(None));
    let frame = Frame { kind: FrameKind::Amqp, channel: 0x102, body: b"x" };
    assert_eq!(split_frame(b"\x00\x00\x00\x09\x02\x00\x01\x02xy", 512), Ok(Some((frame, &b"y"[..]))));
}

#[test]
fn data_offsets_outside_the_frame() {
    for data_offset in [0, 1, 5, 255] {
        let header = [0, 0, 0, 16, data_offset, 0, 0, 0];
        let malformed = split_frame(&header, 512).unwrap_err();
        assert_eq!(malformed.kind, MalformedKind::FrameDataOffset(data_offset));
        assert_eq!((malformed.offset, malformed.condition()), (4, Condition::FRAMING_ERROR));
    }
    // An extended header is stepped over, up to the whole frame.
    let bytes = *b"\x00\x00\x00\x10\x03\x00\x00\x00extdbody";
    assert_eq!(split_frame(&bytes, 512).unwrap().unwrap().0.body, b"body");
    let bytes = *b"\x00\x00\x00\x10\x04\x00\x00\x00extdext2";
    assert_eq!(split_frame(&bytes, 512).unwrap().unwrap().0.body, b"");
}

#[test]
fn unknown_frame_types() {
    for kind in 2..=255 {
        let malformed = split_frame(&[0, 0, 0, 8, 2, kind, 0, 0], 512).unwrap_err();
        assert_eq!(
            (malformed.kind, malformed.condition()),
            (MalformedKind::FrameType(kind), Condition::FRAMING_ERROR)
        );
    }
    // Bytes 6 and 7 of a SASL frame mean nothing (§5.3.1).
    let (frame, _) = split_frame(&[0, 0, 0, 8, 2, 1, 9, 9], 512).unwrap().unwrap();
    assert_eq!(frame, Frame { kind: FrameKind::Sasl, channel: 0, body: b"" });
}

#[test]
fn maps_with_an_odd_count() {
    assert_eq!(kind_of(b"\xc1\x02\x01\x40"), MalformedKind::OddMapCount);
    assert_eq!(kind_of(b"\xd1\x00\x00\x00\x07\x00\x00\x00\x03\x40\x40\x40"), MalformedKind::OddMapCount);
}

#[test]
fn counts_that_the_bytes_cannot_hold() {
    assert_eq!(kind_of(b"\xc0\x02\xff\x40"), MalformedKind::CountBeyondBytes);
    assert_eq!(kind_of(b"\xd0\x00\x00\x00\x05\xff\xff\xff\xff\x40"), MalformedKind::CountBeyondBytes);
    assert_eq!(kind_of(b"\xd1\x00\x00\x00\x05\xff\xff\xff\xfe\x40"), MalformedKind::CountBeyondBytes);
    // Arrays: of a fixed width, of a variable one, of lists.
    assert_eq!(kind_of(b"\xe0\x04\x03\x50\x01\x02"), MalformedKind::ArraySizeMismatch);
    assert_eq!(kind_of(b"\xe0\x04\x01\x50\x01\x02"), MalformedKind::ArraySizeMismatch);
    assert_eq!(kind_of(b"\xf0\x00\x00\x00\x06\xff\xff\xff\xff\x70\x00"), MalformedKind::ArraySizeMismatch);
    // 2^30 elements of 4 bytes: the product doesn't fit 32 bits.
    assert_eq!(kind_of(b"\xf0\x00\x00\x00\x05\x40\x00\x00\x00\x70"), MalformedKind::ArraySizeMismatch);
    assert_eq!(kind_of(b"\xf0\x00\x00\x00\x06\xff\xff\xff\xff\xa1\x00"), MalformedKind::CountBeyondBytes);
    assert_eq!(kind_of(b"\xf0\x00\x00\x00\x06\x00\x00\x00\x02\xc0\x01"), MalformedKind::CountBeyondBytes);
}

#[test]
fn sizes_that_lie() {
    // Beyond the end of the input: more may come. Beyond the list around it: never.
    assert_eq!(kind_of(b"\xc0\xff\x01\x40"), MalformedKind::UnexpectedEnd);
    assert_eq!(kind_of(b"\xc0\x04\x01\xa1\x7fx"), MalformedKind::BeyondEnclosing);
    assert_eq!(kind_of(b"\xc0\x04\x01\xc0\x7f\x00"), MalformedKind::BeyondEnclosing);
    // Below what they cover.
    assert_eq!(kind_of(b"\xc0\x00"), MalformedKind::SizeTooSmall);
    assert_eq!(kind_of(b"\xd0\x00\x00\x00\x03\x00\x00\x00"), MalformedKind::SizeTooSmall);
    assert_eq!(kind_of(b"\xe0\x00"), MalformedKind::SizeTooSmall);
    // More than the elements take.
    assert_eq!(kind_of(b"\xc0\x03\x01\x40\x40"), MalformedKind::TrailingBytes);
    assert_eq!(kind_of(b"\xe0\x05\x01\xa1\x01xy"), MalformedKind::TrailingBytes);
    // An array that ends before its constructor.
    assert_eq!(kind_of(b"\xe0\x01\x00"), MalformedKind::BeyondEnclosing);
    assert_eq!(kind_of(b"\x40\x40"), MalformedKind::TrailingBytes);
    assert_eq!(kind_of(b""), MalformedKind::UnexpectedEnd);
    assert_eq!(kind_of(b"\xb0\xff\xff\xff\xff"), MalformedKind::UnexpectedEnd);
}

#[test]
fn composites_whose_list_lies() {
    let kind = |body: &[u8]| {
        let malformed = Performative::decode(body).expect_err("not well formed");
        (malformed.kind, malformed.field)
    };
    // close: its list claims more than the frame has, more fields than bytes, fewer fields than bytes.
    assert_eq!(kind(b"\x00\x53\x18\xc0\x05\x01\x40"), (MalformedKind::UnexpectedEnd, "close"));
    assert_eq!(kind(b"\x00\x53\x18\xc0\x02\x09\x40"), (MalformedKind::CountBeyondBytes, "close"));
    assert_eq!(kind(b"\x00\x53\x18\xc0\x03\x01\x40\x40"), (MalformedKind::TrailingBytes, "close"));
    assert_eq!(kind(b"\x00\x53\x18\xc0\x00"), (MalformedKind::UnexpectedEnd, "close"));
    assert_eq!(kind(b"\x00\x53\x18\xc0\x00\x00"), (MalformedKind::SizeTooSmall, "close"));
    assert_eq!(kind(b"\x00\x53\x18"), (MalformedKind::UnexpectedEnd, "close"));
    let unexpected = MalformedKind::UnexpectedType { expected: "list", found: 0xc1 };
    assert_eq!(kind(b"\x00\x53\x18\xc1\x01\x00"), (unexpected, "close"));
    // An unknown field that isn't even a value.
    assert_eq!(kind(b"\x00\x53\x18\xc0\x03\x02\x40\x3f"), (MalformedKind::UnknownFormatCode(0x3f), "close"));
    // No performative at all.
    assert_eq!(kind(b""), (MalformedKind::UnexpectedEnd, ""));
    assert_eq!(kind(b"\x00"), (MalformedKind::UnexpectedEnd, ""));
    assert_eq!(kind(b"\x00\x53\x40\x45"), (MalformedKind::UnknownPerformative, ""));
    assert_eq!(kind(b"\x00\xa3\x03abc\x45"), (MalformedKind::UnknownPerformative, ""));
    assert_eq!(kind(b"\x00\x40\x45"), (MalformedKind::UnknownPerformative, ""));
}

#[test]
fn arrays_of_described_types() {
    let bytes = b"\xe0\x0c\x02\x00\xa3\x03url\xa1\x01a\x01b";
    let View::Array(items) = Value::from_encoded(bytes).unwrap().view() else { panic!() };
    let descriptors = items.descriptors().map(|descriptor| descriptor.to_string()).collect::<Vec<_>>();
    assert_eq!(descriptors, [":url"]);
    assert_eq!(items.collect::<Vec<_>>(), [View::Str("a"), View::Str("b")]);
    assert_eq!(Value::from_encoded(bytes).unwrap().to_string(), r#"@:url #["a", "b"]"#);

    // Described twice over; and a descriptor that never ends.
    let bytes = b"\xe0\x07\x01\x00\x44\x00\x43\x50\x07";
    let View::Array(items) = Value::from_encoded(bytes).unwrap().view() else { panic!() };
    assert_eq!(items.descriptors().count(), 2);
    assert_eq!(items.collect::<Vec<_>>(), [View::Ubyte(7)]);
    assert_eq!(kind_of(b"\xe0\x04\x01\x00\x00\x00"), MalformedKind::BeyondEnclosing);
    // Described elements aren't the symbols that a capability is.
    let open = b"\x00\x53\x10\xc0\x12\x08\xa1\x01a\x40\x40\x40\x40\x40\x40\xe0\x06\x01\x00\x44\xa3\x01x";
    let malformed = Performative::decode(open).unwrap_err();
    assert_eq!(malformed.field, "open.offered-capabilities");
}

#[test]
fn array_elements_without_bytes_are_not_counted_through() {
    let started = Instant::now();
    for code in [0x40, 0x41, 0x42, 0x43, 0x44, 0x45] {
        // Four billion elements in ten bytes.
        let bytes = [0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, code];
        assert_eq!(kind_of(&bytes), MalformedKind::TooManyEmptyElements);
        assert_eq!(Value::from_encoded(&bytes).unwrap_err().condition(), Condition::RESOURCE_LIMIT_EXCEEDED);
        // In an open's properties as well, and as a field beyond the last one.
        let map = [&[0xc1, 14, 2, 0xa3, 1, b'k'][..], &bytes].concat();
        let open = [&[0x00, 0x53, 0x10, 0xc0, 28, 10, 0xa1, 1, b'a'], &[0x40; 8][..], &map].concat();
        assert_eq!(Performative::decode(&open).unwrap_err().kind, MalformedKind::TooManyEmptyElements);
        let close = [&[0x00, 0x53, 0x18, 0xc0, 12, 2, 0x40][..], &bytes].concat();
        assert_eq!(Performative::decode(&close).unwrap_err().kind, MalformedKind::TooManyEmptyElements);
        // A few are legal.
        let few = [0xe0, 2, 200, code];
        let View::Array(items) = Value::from_encoded(&few).unwrap().view() else { panic!() };
        assert_eq!(items.count(), 200);
    }
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[test]
fn text_that_is_none() {
    assert_eq!(kind_of(b"\xa1\x02\xc3\x28"), MalformedKind::InvalidUtf8);
    assert_eq!(kind_of(b"\xa1\x03\xed\xa0\x80"), MalformedKind::InvalidUtf8);
    assert_eq!(kind_of(b"\xa3\x02\xc3\xa9"), MalformedKind::NonAsciiSymbol);
    assert_eq!(kind_of(b"\x73\x00\x00\xd8\x00"), MalformedKind::InvalidChar(0xd800));
    assert_eq!(kind_of(b"\x73\x00\x11\x00\x00"), MalformedKind::InvalidChar(0x11_0000));
    assert_eq!(kind_of(b"\x56\x02"), MalformedKind::InvalidBoolean(2));
    // Inside arrays, where elements aren't looked at one by one for their structure.
    assert_eq!(kind_of(b"\xe0\x05\x02\x56\x00\x01\x01"), MalformedKind::ArraySizeMismatch);
    assert_eq!(kind_of(b"\xe0\x04\x02\x56\x00\x02"), MalformedKind::InvalidBoolean(2));
    assert_eq!(kind_of(b"\xe0\x06\x01\x73\x00\x00\xd8\x00"), MalformedKind::InvalidChar(0xd800));
    assert_eq!(kind_of(b"\xe0\x05\x01\xa1\x02\xc3\x28"), MalformedKind::InvalidUtf8);
    assert_eq!(kind_of(b"\xe0\x05\x01\xa3\x02\xc3\xa9"), MalformedKind::NonAsciiSymbol);
    // In fields.
    let malformed = Performative::decode(b"\x00\x53\x10\xc0\x05\x01\xa1\x02\xc3\x28").unwrap_err();
    assert_eq!(
        (malformed.kind, malformed.field, malformed.offset),
        (MalformedKind::InvalidUtf8, "open.container-id", 6)
    );
    let malformed =
        Performative::decode(b"\x00\x53\x18\xc0\x09\x01\x00\x53\x1d\xc0\x03\x01\xa3\x01\xff").unwrap_err();
    assert_eq!(malformed.field, "error.condition");
    let malformed = Performative::decode(b"\x00\x53\x15\xc0\x03\x01\x56\x07").unwrap_err();
    assert_eq!((malformed.kind, malformed.field), (MalformedKind::InvalidBoolean(7), "disposition.role"));
}

fn scan(message: &[u8]) -> Result<Vec<SectionKind>, SectionError> {
    let mut sections = Sections::new(message);
    let mut kinds = vec![];
    while let Some(section) = sections.next()? {
        kinds.push(section.kind);
    }
    Ok(kinds)
}

fn section(code: u8) -> Vec<u8> {
    let value: &[u8] = match code {
        0x70 | 0x73 | 0x76 => b"\x45",
        0x75 => b"\xa0\x01x",
        0x77 => b"\x40",
        _ => b"\xc1\x01\x00",
    };
    [&[0x00, 0x53, code], value].concat()
}

#[test]
fn sections_out_of_order_or_repeated() {
    let message = |codes: &[u8]| codes.iter().flat_map(|code| section(*code)).collect::<Vec<_>>();
    for good in [
        &[0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x78][..],
        &[0x75, 0x75, 0x75],
        &[0x76, 0x76, 0x78],
        &[0x70, 0x77],
        &[0x73, 0x77, 0x78],
        &[],
    ] {
        assert_eq!(scan(&message(good)).map(|kinds| kinds.len()), Ok(good.len()), "{good:x?}");
    }
    // Every pair that the order of §3.2 forbids.
    for first in 0x70..=0x78 {
        for second in 0x70..=0x78 {
            let is_body = |code| (0x75..=0x77).contains(&code);
            let repeats = first == second && matches!(first, 0x75 | 0x76);
            let ordered = second > first && !(is_body(first) && is_body(second));
            let bytes = message(&[first, second]);
            if repeats || ordered {
                assert!(scan(&bytes).is_ok(), "{first:x} {second:x}");
                continue;
            }
            let Err(SectionError::Malformed(malformed)) = scan(&bytes) else {
                panic!("{first:x} {second:x}")
            };
            assert_eq!(malformed.kind, MalformedKind::SectionOrder);
            assert_eq!(malformed.offset, section(first).len());
            assert_eq!(malformed.condition(), Condition::DECODE_ERROR);
        }
    }
}

#[test]
fn sections_that_are_none() {
    for bytes in [
        &b"\x00\x53\x6f\x45"[..],
        b"\x00\x53\x79\x45",
        b"\x00\x80\x00\x00\x00\x01\x00\x00\x00\x70\x45",
        b"\x00\xa3\x01x\x45",
    ] {
        let Err(SectionError::Malformed(malformed)) = scan(bytes) else { panic!("{bytes:x?}") };
        assert_eq!(malformed.kind, MalformedKind::UnknownSection);
    }
    let Err(SectionError::Malformed(malformed)) = scan(b"\x45") else { panic!() };
    let expected = "message section";
    assert_eq!(malformed.kind, MalformedKind::UnexpectedType { expected, found: 0x45 });
    // Cut inside the descriptor, and a section that says it is longer than it will ever be inside its list.
    for bytes in [&b"\x00"[..], b"\x00\x53", b"\x00\x80\x00\x00", b"\x00\xa3\x12amqp:hea"] {
        assert_eq!(Sections::new(bytes).peek(), Err(SectionError::Incomplete), "{bytes:x?}");
    }
    let Err(SectionError::Malformed(malformed)) = scan(b"\x00\x53\x70\xc0\x03\x01\xa1\x09") else { panic!() };
    assert_eq!(
        (malformed.kind, malformed.offset, malformed.field),
        (MalformedKind::BeyondEnclosing, 8, "header")
    );
}

#[test]
fn a_deep_value_at_the_limit_walks_without_much_stack() {
    let mut model = Model::Null;
    for _ in 0..NESTING_MAX {
        model = Model::List(vec![model, Model::Uint(3)]);
    }
    let short = model.encode(&mut Form::Shortest);
    let long = model.encode(&mut Form::Longest);
    let compare = move || {
        let (short, long) = (Value::from_encoded(&short).unwrap(), Value::from_encoded(&long).unwrap());
        assert_eq!(short, long);
        assert_eq!(short.to_string(), long.to_string());
        assert_eq!(common::encoded(&long.view()), short.encoded());
    };
    std::thread::Builder::new().stack_size(128 << 10).spawn(compare).unwrap().join().unwrap();
}
