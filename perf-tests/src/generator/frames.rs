//! The frames that the generator repeats: encoded once by the codec, then copied and patched.
//!
//! # Cost
//! A message is one copy of its template and three stores of a few bytes.

use ringmain_codec::{
    DeliveryState, Disposition, Encode as _, Flow, FrameKind, Full, Properties, Role, Transfer, Value,
    Writer, message, write_frame,
};

/// Bytes at the end of every body that hold its time stamp.
pub const STAMP_BYTES: usize = 8;

/// Numbers that stand in templates for what is patched later. Their encodings occur nowhere else.
const ID_MARK: u32 = 0x7f5a_3c1e;
const TAG_MARK: [u8; 4] = [0xe1, 0xc3, 0xa5, 0xf7];
const CORRELATION_MARK: [u8; 8] = [0xd3, 0x1b, 0xc7, 0x59, 0xa1, 0x6e, 0x82, 0xf4];

/// What all messages of a link have in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageShape {
    /// The sender's handle.
    pub handle: u32,
    /// The sender's channel.
    pub channel: u16,
    /// Whether messages are sent settled.
    pub is_settled: bool,
    /// Bytes of the body; at least [`STAMP_BYTES`].
    pub body_bytes: usize,
    /// The largest frame in bytes; longer messages take several.
    pub frame_bytes_max: usize,
    /// The address in the properties, for senders without one of their own.
    pub to: Option<String>,
    /// Where the answer goes; such messages have a correlation id.
    pub reply_to: Option<String>,
}

/// All frames of a message, ready but for its delivery id, tag and time stamp.
#[derive(Debug)]
pub struct Template {
    bytes: Vec<u8>,
    id_at: usize,
    tag_at: usize,
    correlation_at: Option<usize>,
    /// Transfer frames of one message.
    pub frames: u32,
}

impl Template {
    /// Encodes the frames.
    ///
    /// # Panics
    /// When the body is too short for a time stamp or the frames for anything: mistakes of the caller.
    pub fn new(shape: &MessageShape) -> Self {
        assert!(shape.body_bytes >= STAMP_BYTES, "a body holds a time stamp");
        let message = encode_message(shape);
        let mut bytes = Vec::with_capacity(message.len() + 256);
        let mut frames = 0;
        let mut rest = message.as_slice();
        let mut header_bytes = 0;
        while !rest.is_empty() {
            let is_first = frames == 0;
            let overhead = transfer_frame(shape, is_first, true, &[]).len();
            let room = shape.frame_bytes_max.checked_sub(overhead).filter(|room| *room > STAMP_BYTES);
            let room = room.expect("a frame has room for a time stamp");
            let mut part = rest.len().min(room);
            // The time stamp is patched as a whole, so it must not lie across two frames.
            let left = rest.len() - part;
            if left > 0 && left < STAMP_BYTES {
                part -= STAMP_BYTES;
            }
            let (payload, after) = rest.split_at(part);
            bytes.extend_from_slice(&transfer_frame(shape, is_first, !after.is_empty(), payload));
            if is_first {
                header_bytes = bytes.len() - part;
            }
            rest = after;
            frames += 1;
        }
        let head = &bytes[..header_bytes];
        let id_at = find(head, &ID_MARK.to_be_bytes()).expect("the first frame has a delivery id");
        let tag_at = find(head, &TAG_MARK).expect("the first frame has a delivery tag");
        let correlation_at = shape.reply_to.is_some().then(|| {
            find(&bytes, &CORRELATION_MARK)
                .expect("a request has a correlation id, at the front of the message")
        });
        Self { bytes, id_at, tag_at, correlation_at, frames }
    }

    /// Appends a message to `out`.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>, delivery_id: u32, stamp: u64) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let message = &mut out[start..];
        patch(message, self.id_at, delivery_id.to_be_bytes());
        patch(message, self.tag_at, delivery_id.to_be_bytes());
        if let Some(at) = self.correlation_at {
            patch(message, at, stamp.to_be_bytes());
        }
        let end = message.len();
        patch(message, end - STAMP_BYTES, stamp.to_be_bytes());
    }
}

/// The time stamp at the end of a message's last frame.
#[inline]
pub fn stamp_of(payload: &[u8]) -> Option<u64> {
    payload.last_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// A disposition of one delivery or a range, ready but for the ids.
#[derive(Debug)]
pub struct DispositionTemplate {
    one: Vec<u8>,
    one_at: usize,
}

impl DispositionTemplate {
    /// What a receiver on `channel` says to accept and settle.
    pub fn new(channel: u16) -> Self {
        let disposition = Disposition {
            role: Role::Receiver,
            first: ID_MARK,
            settled: true,
            state: Some(DeliveryState::Accepted),
            ..Disposition::default()
        };
        let one = frame(channel, |writer| disposition.encode(writer));
        let one_at = find(&one, &ID_MARK.to_be_bytes()).expect("a disposition names its first delivery");
        Self { one, one_at }
    }

    /// Appends the disposition of one delivery.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>, delivery_id: u32) {
        let start = out.len();
        out.extend_from_slice(&self.one);
        patch(&mut out[start..], self.one_at, delivery_id.to_be_bytes());
    }
}

/// Appends a disposition of any kind.
pub fn append_disposition(out: &mut Vec<u8>, channel: u16, disposition: &Disposition<'_>) {
    out.extend_from_slice(&frame(channel, |writer| disposition.encode(writer)));
}

/// Appends a flow.
pub fn append_flow(out: &mut Vec<u8>, channel: u16, flow: &Flow<'_>) {
    out.extend_from_slice(&frame(channel, |writer| flow.encode(writer)));
}

/// One frame around what `body` writes.
pub fn frame(channel: u16, body: impl Fn(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
    encoded(|writer| write_frame(writer, FrameKind::Amqp, channel, &body))
}

/// What `write` writes, in as much room as it needs.
pub fn encoded(write: impl Fn(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
    let mut buffer = vec![0; 512];
    loop {
        let mut writer = Writer::new(&mut buffer);
        if write(&mut writer).is_ok() {
            let length = writer.len();
            buffer.truncate(length);
            return buffer;
        }
        buffer.resize(buffer.len() * 2, 0);
    }
}

fn transfer_frame(shape: &MessageShape, is_first: bool, more: bool, payload: &[u8]) -> Vec<u8> {
    let transfer = Transfer {
        handle: shape.handle,
        delivery_id: is_first.then_some(ID_MARK),
        delivery_tag: is_first.then_some(&TAG_MARK),
        message_format: is_first.then_some(0),
        settled: is_first.then_some(shape.is_settled),
        more,
        ..Transfer::default()
    };
    frame(shape.channel, |writer| {
        transfer.encode(writer)?;
        writer.extend(payload)
    })
}

fn encode_message(shape: &MessageShape) -> Vec<u8> {
    let body = vec![0x2e; shape.body_bytes];
    let mut correlation_id = vec![0x80]; // ulong, §1.6.5
    correlation_id.extend_from_slice(&CORRELATION_MARK);
    let correlation_id = Value::from_encoded(&correlation_id).expect("an encoded ulong");
    let properties = Properties {
        to: shape.to.as_deref(),
        reply_to: shape.reply_to.as_deref(),
        correlation_id: shape.reply_to.is_some().then_some(correlation_id),
        ..Properties::default()
    };
    encoded(|writer| {
        if properties != Properties::default() {
            properties.encode(writer)?;
        }
        writer.described(message::SectionKind::Data.descriptor().code, |writer| writer.put(body.as_slice()))
    })
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[inline]
fn patch<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

#[cfg(test)]
mod tests {
    use super::{DispositionTemplate, MessageShape, STAMP_BYTES, Template, stamp_of};
    use ringmain_codec::{
        DeliveryState, Performative, Properties, Role, SectionKind, Sections, Transfer, split_frame,
    };

    fn shape(body_bytes: usize) -> MessageShape {
        MessageShape {
            handle: 3,
            channel: 2,
            is_settled: false,
            body_bytes,
            frame_bytes_max: 512,
            to: None,
            reply_to: None,
        }
    }

    /// The transfers in `bytes` with their payloads, as the codec reads them.
    fn transfers(mut bytes: &[u8]) -> Vec<(Transfer<'_>, &[u8])> {
        let mut found = Vec::new();
        while let Some((frame, rest)) = split_frame(bytes, 512).unwrap() {
            assert_eq!(frame.channel, 2);
            match Performative::decode(frame.body).unwrap() {
                (Performative::Transfer(transfer), payload) => found.push((transfer, payload)),
                (other, _) => panic!("{other:?}"),
            }
            bytes = rest;
        }
        assert!(bytes.is_empty());
        found
    }

    #[test]
    fn a_small_message_is_one_patched_frame() {
        let template = Template::new(&shape(100));
        let mut out = vec![9; 7];
        template.append(&mut out, 0, 0);
        let second = out.len();
        template.append(&mut out, 0xa1b2_c3d4, 0x1122_3344_5566_7788);
        let [(transfer, payload)] = transfers(&out[second..]).try_into().unwrap();
        assert_eq!((transfer.handle, transfer.delivery_id), (3, Some(0xa1b2_c3d4)));
        assert_eq!(transfer.delivery_tag, Some([0xa1, 0xb2, 0xc3, 0xd4].as_slice()));
        assert_eq!((transfer.settled, transfer.more), (Some(false), false));
        assert_eq!(stamp_of(payload), Some(0x1122_3344_5566_7788));
        let section = Sections::new(payload).next().unwrap().unwrap();
        assert_eq!(section.kind, SectionKind::Data);
        assert_eq!(section.value.as_binary().unwrap().len(), 100);
    }

    #[test]
    fn a_large_message_never_splits_its_stamp() {
        for body_bytes in STAMP_BYTES..2000 {
            let template = Template::new(&shape(body_bytes));
            let mut out = Vec::new();
            template.append(&mut out, 5, u64::MAX - 1);
            let frames = transfers(&out);
            assert_eq!(frames.len(), template.frames as usize);
            let (last, front) = frames.split_last().unwrap();
            assert!(!last.0.more && front.iter().all(|(transfer, _)| transfer.more));
            assert_eq!(stamp_of(last.1), Some(u64::MAX - 1), "{body_bytes}");
            let whole: Vec<u8> = frames.iter().flat_map(|(_, payload)| payload.iter().copied()).collect();
            let section = Sections::new(&whole).next().unwrap().unwrap();
            assert_eq!(section.value.as_binary().unwrap().len(), body_bytes);
        }
    }

    #[test]
    fn requests_carry_where_the_answer_goes() {
        let shape = MessageShape {
            to: Some("service".to_owned()),
            reply_to: Some("answers".to_owned()),
            ..shape(STAMP_BYTES)
        };
        let mut out = Vec::new();
        Template::new(&shape).append(&mut out, 1, 77);
        let [(_, payload)] = transfers(&out).try_into().unwrap();
        let section = Sections::new(payload).next().unwrap().unwrap();
        let properties = Properties::from_section(&section).unwrap();
        assert_eq!((properties.to, properties.reply_to), (Some("service"), Some("answers")));
        assert_eq!(properties.correlation_id.and_then(|id| id.as_u64()), Some(77));
    }

    #[test]
    fn a_disposition_accepts_and_settles_one_delivery() {
        let mut out = Vec::new();
        DispositionTemplate::new(4).append(&mut out, 300);
        let (frame, []) = split_frame(&out, 512).unwrap().unwrap() else { panic!() };
        assert_eq!(frame.channel, 4);
        let (Performative::Disposition(disposition), []) = Performative::decode(frame.body).unwrap() else {
            panic!()
        };
        assert_eq!((disposition.role, disposition.first, disposition.last), (Role::Receiver, 300, None));
        assert!(disposition.settled);
        assert_eq!(disposition.state, Some(DeliveryState::Accepted));
    }
}
