//! A connection's input as a whole: protocol headers, then frame after frame and what is in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringmain_codec::{FrameKind, Performative, ProtocolHeader, SaslFrame, split_frame};

const FRAME_SIZE_MAX: u32 = 4096;

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    loop {
        if let Ok(Some(header)) = ProtocolHeader::decode(rest) {
            assert_eq!(header.to_bytes()[..], rest[..ProtocolHeader::LEN]);
            rest = &rest[ProtocolHeader::LEN..];
            continue;
        }
        let Ok(Some((frame, after))) = split_frame(rest, FRAME_SIZE_MAX) else { break };
        let size = rest.len() - after.len();
        assert!((8..=FRAME_SIZE_MAX as usize).contains(&size));
        // Every beginning of it is "read more", and never something else.
        assert_eq!(split_frame(&rest[..size - 1], FRAME_SIZE_MAX), Ok(None));
        assert_eq!(split_frame(&rest[..size / 2], FRAME_SIZE_MAX), Ok(None));
        match frame.kind {
            FrameKind::Amqp => drop(Performative::decode(frame.body)),
            FrameKind::Sasl => drop(SaslFrame::decode(frame.body)),
        }
        rest = after;
    }
});
