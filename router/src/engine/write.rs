//! Frames into the output.

use crate::base::buffer::Output;
use crate::base::limits::{FRAME_BEFORE_OPEN_MAX, SENT_FRAME_MAX};
use ringmain_codec::{Encode, FrameKind, Full, Transfer, Writer, write_frame};

/// What most performatives fit into; only larger ones are tried again with more room.
const USUAL_FRAME_BYTES: usize = 512;

/// What a transfer's performative takes at the most, without its state: frame header 8, descriptor 3,
/// list header 9, handle 5, delivery-id 5, tag 34, message-format 5, settled, more, aborted and
/// what lies between them.
const TRANSFER_HEADER_BYTES_MAX: usize = 80;

/// Writes a performative; fails without a trace if its frame would be larger than `frame_max`.
pub(super) fn amqp(
    out: &mut Output,
    channel: u16,
    frame_max: u32,
    performative: &impl Encode,
) -> Result<(), Full> {
    frame(out, FrameKind::Amqp, channel, frame_max, performative)
}

/// Writes a SASL frame; fails without a trace if it would be larger than every peer accepts (§5.3.1).
pub(super) fn sasl(out: &mut Output, body: &impl Encode) -> Result<(), Full> {
    frame(out, FrameKind::Sasl, 0, FRAME_BEFORE_OPEN_MAX, body)
}

fn frame(
    out: &mut Output,
    kind: FrameKind,
    channel: u16,
    frame_max: u32,
    body: &impl Encode,
) -> Result<(), Full> {
    let most = frame_max.min(SENT_FRAME_MAX) as usize;
    let mut room = most.min(USUAL_FRAME_BYTES);
    loop {
        let written = out.write(room, |slice| {
            let mut writer = Writer::new(&mut slice[..room]);
            match write_frame(&mut writer, kind, channel, |writer| body.encode(writer)) {
                Ok(()) => (writer.len(), Ok(())),
                Err(full) => (0, Err(full)),
            }
        });
        match written {
            Ok(()) => return Ok(()),
            Err(full) if room == most => return Err(full),
            Err(_) => room = most,
        }
    }
}

/// Writes raw bytes: a protocol header.
pub(super) fn bytes(out: &mut Output, bytes: &[u8]) {
    out.write(bytes.len(), |slice| {
        slice[..bytes.len()].copy_from_slice(bytes);
        (bytes.len(), ())
    });
}

/// Writes one transfer frame with as much of `payload` as `frame_max` allows, and returns how much that
/// was. The frame says `more` where the payload doesn't fit, whatever `transfer` says.
///
/// # Cost
/// One encoding of the performative and one copy of the payload, straight into the output.
#[inline]
pub(super) fn transfer(
    out: &mut Output,
    channel: u16,
    frame_max: u32,
    transfer: &Transfer<'_>,
    payload: &[u8],
) -> usize {
    let most = frame_max.min(SENT_FRAME_MAX) as usize;
    let fits = payload.len() + TRANSFER_HEADER_BYTES_MAX <= most;
    let room = if fits { payload.len() + TRANSFER_HEADER_BYTES_MAX } else { most };
    out.write(room, |slice| {
        let mut writer = Writer::new(&mut slice[..room]);
        let mut consumed = payload.len();
        write_frame(&mut writer, FrameKind::Amqp, channel, |writer| {
            if fits {
                transfer.encode(writer)?;
            } else {
                // Whether all fits is known only with the performative's length, so it is encoded as if it
                // didn't; `more` is one byte either way.
                let start = writer.len();
                Transfer { more: true, ..*transfer }.encode(writer)?;
                let left = room - writer.len();
                if payload.len() <= left {
                    writer.truncate(start);
                    transfer.encode(writer)?;
                }
                consumed = payload.len().min(room - writer.len());
            }
            writer.extend(&payload[..consumed])
        })
        .expect("a transfer's performative fits the smallest frame");
        (writer.len(), consumed)
    })
}
