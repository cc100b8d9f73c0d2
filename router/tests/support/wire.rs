//! The wire, for tests: frames made of performatives, and a watch over what our side sends.

use ringmain_codec::{
    Encode, FrameKind, Performative, ProtocolHeader, ProtocolId, Role, SaslFrame, Writer, split_frame,
    write_frame,
};
use std::collections::BTreeMap;

/// A frame of AMQP with `performative` and, behind it, `payload`.
pub fn frame(channel: u16, performative: &impl Encode, payload: &[u8]) -> Vec<u8> {
    frame_of(FrameKind::Amqp, channel, performative, payload)
}

/// A frame of any kind.
pub fn frame_of(kind: FrameKind, channel: u16, body: &impl Encode, payload: &[u8]) -> Vec<u8> {
    let mut room = vec![0; payload.len() + 4096];
    let mut writer = Writer::new(&mut room);
    write_frame(&mut writer, kind, channel, |writer| {
        body.encode(writer)?;
        writer.extend(payload)
    })
    .expect("a test's frame fits");
    writer.written().to_vec()
}

/// Watches all that our side sends on one connection, and panics at what a strict peer would find fault
/// with, as far as that can be told without what the peer itself has sent.
#[derive(Default)]
pub struct Watch {
    bytes: Vec<u8>,
    stage: Stage,
    /// The largest frame that the peer has said it takes.
    pub frame_max: u32,
    is_open: bool,
    sessions: BTreeMap<u16, Session>,
    /// How many frames of AMQP have come.
    pub frames: usize,
}

#[derive(Default, PartialEq, Eq, Clone, Copy, Debug)]
enum Stage {
    #[default]
    Header,
    Sasl,
    Frames,
    Closed,
}

#[derive(Default)]
struct Session {
    links: BTreeMap<u32, Link>,
    next_delivery_id: Option<u32>,
}

struct Link {
    role: Role,
    /// Whether a delivery isn't whole yet.
    is_sending: bool,
}

impl Watch {
    pub fn new() -> Self {
        Self { frame_max: 512, ..Self::default() }
    }

    /// Whether our side has sent its close.
    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// Takes what was sent, and calls `each` with each performative.
    pub fn take(&mut self, bytes: &[u8], mut each: impl FnMut(u16, &Performative<'_>, &[u8])) {
        self.bytes.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.bytes);
        let mut rest = &bytes[..];
        loop {
            match self.stage {
                Stage::Header => {
                    let Some(header) = ProtocolHeader::decode(rest).expect("our header is one") else {
                        break;
                    };
                    rest = &rest[ProtocolHeader::LEN..];
                    self.stage = match header.id {
                        ProtocolId::Sasl => Stage::Sasl,
                        ProtocolId::Amqp => Stage::Frames,
                        ProtocolId::Tls => panic!("our side speaks no TLS"),
                    };
                }
                // Another header ends the SASL layer.
                Stage::Sasl if rest.starts_with(b"AMQP") => self.stage = Stage::Header,
                Stage::Sasl => {
                    let split = split_frame(rest, 512).expect("our SASL frames are frames");
                    let Some((frame, left)) = split else { break };
                    assert_eq!(frame.kind, FrameKind::Sasl);
                    SaslFrame::decode(frame.body).expect("our SASL frames are right");
                    rest = left;
                }
                Stage::Frames => {
                    let split = split_frame(rest, u32::MAX).expect("our frames are frames");
                    let Some((frame, left)) = split else { break };
                    let size = rest.len() - left.len();
                    assert!(size <= self.frame_max as usize, "{size} bytes are more than the peer takes");
                    assert_eq!(frame.kind, FrameKind::Amqp);
                    rest = left;
                    if !frame.body.is_empty() {
                        let (performative, payload) =
                            Performative::decode(frame.body).expect("our performatives are right");
                        self.check(frame.channel, &performative);
                        self.frames += 1;
                        each(frame.channel, &performative, payload);
                    }
                }
                Stage::Closed => {
                    assert!(rest.is_empty(), "something behind our close");
                    break;
                }
            }
        }
        self.bytes = rest.to_vec();
    }

    fn check(&mut self, channel: u16, performative: &Performative<'_>) {
        let name = performative.name();
        match performative {
            Performative::Open(_) => {
                assert!(!std::mem::replace(&mut self.is_open, true), "a second open");
                assert_eq!(channel, 0);
                return;
            }
            Performative::Close(_) => {
                assert!(self.is_open, "open comes before close");
                assert_eq!(channel, 0);
                self.stage = Stage::Closed;
                return;
            }
            Performative::Begin(_) => {
                assert!(self.is_open, "open comes before begin");
                let before = self.sessions.insert(channel, Session::default());
                assert!(before.is_none(), "begin on a channel in use");
                return;
            }
            Performative::End(_) => {
                assert!(self.sessions.remove(&channel).is_some(), "end without a session");
                return;
            }
            Performative::Attach(_)
            | Performative::Flow(_)
            | Performative::Transfer(_)
            | Performative::Disposition(_)
            | Performative::Detach(_) => {}
        }
        let Some(session) = self.sessions.get_mut(&channel) else { panic!("{name} without a session") };
        match performative {
            Performative::Attach(attach) => {
                let link = Link { role: attach.role, is_sending: false };
                let before = session.links.insert(attach.handle, link);
                assert!(before.is_none(), "attach on a handle in use");
            }
            Performative::Detach(detach) => {
                assert!(session.links.remove(&detach.handle).is_some(), "detach without a link");
            }
            Performative::Flow(flow) => {
                if let Some(handle) = flow.handle {
                    assert!(session.links.contains_key(&handle), "flow without a link");
                }
            }
            Performative::Transfer(transfer) => {
                let link = session.links.get_mut(&transfer.handle).expect("transfer without a link");
                assert_eq!(link.role, Role::Sender, "transfer on a link that we receive on");
                if !link.is_sending {
                    let id = transfer.delivery_id.expect("the first frame has a delivery-id");
                    assert!(transfer.delivery_tag.is_some(), "the first frame has a delivery-tag");
                    let expected = session.next_delivery_id.unwrap_or(id);
                    assert_eq!(id, expected, "delivery-ids follow one another");
                    session.next_delivery_id = Some(id.wrapping_add(1));
                }
                link.is_sending = transfer.more && !transfer.aborted;
            }
            Performative::Disposition(_) => {}
            Performative::Open(_)
            | Performative::Begin(_)
            | Performative::End(_)
            | Performative::Close(_) => {}
        }
    }
}
