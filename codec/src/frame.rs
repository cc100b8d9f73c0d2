//! Frames (AMQP 1.0 §2.3).
//!
//! ```text
//! | size: 4 bytes | data offset, in words: 1 | type: 1 | channel: 2 | extended header | body |
//! ```
//!
//! # Cost
//! [`split_frame`] reads the 8 bytes of the header and nothing else.

use crate::error::{Full, Malformed, MalformedKind};
use crate::writer::Writer;

/// The frame size in bytes that every peer must accept (§2.7.1), and the largest before the size is
/// negotiated.
pub const MIN_MAX_FRAME_SIZE: u32 = 512;

/// Bytes of a frame header without its extension.
const HEADER: usize = 8;
/// The smallest data offset: the frame header in words of 4 bytes.
const DATA_OFFSET_MIN: u8 = 2;

/// The frame types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// An AMQP frame, 0 (§2.3.2).
    Amqp,
    /// A SASL frame, 1 (§5.3.1).
    Sasl,
}

/// One whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'b> {
    /// Its type.
    pub kind: FrameKind,
    /// The channel; 0 for SASL frames, which have none.
    pub channel: u16,
    /// What follows the extended header; empty in a frame that only shows that the peer is alive.
    pub body: &'b [u8],
}

/// Splits the first whole frame off `input`; `None` means "read more", never an error. What is left of
/// `input` comes second.
///
/// `frame_size_max` is the largest frame in bytes that is accepted. A wrong header is reported as soon as it
/// is there, before the body is waited for.
///
/// # Errors
/// Size below 8 or above the maximum, data offset outside the frame, unknown type: all
/// [`Condition::FRAMING_ERROR`](crate::Condition::FRAMING_ERROR).
#[inline]
pub fn split_frame(input: &[u8], frame_size_max: u32) -> Result<Option<(Frame<'_>, &[u8])>, Malformed> {
    let Some((&[s0, s1, s2, s3, data_offset, kind, c0, c1], _)) = input.split_first_chunk::<HEADER>() else {
        if let Some(size) = input.first_chunk::<4>() {
            check_size(u32::from_be_bytes(*size), frame_size_max)?;
        }
        return Ok(None);
    };
    let size = u32::from_be_bytes([s0, s1, s2, s3]);
    check_size(size, frame_size_max)?;
    let body_start = usize::from(data_offset) * 4;
    if data_offset < DATA_OFFSET_MIN || body_start > size as usize {
        return Err(framing(MalformedKind::FrameDataOffset(data_offset), 4));
    }
    let (kind, channel) = match kind {
        0 => (FrameKind::Amqp, u16::from_be_bytes([c0, c1])),
        1 => (FrameKind::Sasl, 0),
        _ => return Err(framing(MalformedKind::FrameType(kind), 5)),
    };
    let Some((frame, rest)) = input.split_at_checked(size as usize) else {
        return Ok(None);
    };
    Ok(Some((Frame { kind, channel, body: &frame[body_start..] }, rest)))
}

#[inline]
fn check_size(size: u32, frame_size_max: u32) -> Result<(), Malformed> {
    if size > frame_size_max {
        return Err(framing(MalformedKind::FrameTooLarge { size, max: frame_size_max }, 0));
    }
    if (size as usize) < HEADER {
        return Err(framing(MalformedKind::FrameSizeTooSmall(size), 0));
    }
    Ok(())
}

#[cold]
fn framing(kind: MalformedKind, offset: usize) -> Malformed {
    Malformed { kind, offset, field: "" }
}

/// Writes a frame around what `body` writes.
///
/// # Errors
/// [`Full`]; the writer is as before the call then.
#[inline]
pub fn write_frame(
    writer: &mut Writer<'_>,
    kind: FrameKind,
    channel: u16,
    body: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>,
) -> Result<(), Full> {
    writer.atomically(|writer| {
        let start = writer.len();
        let kind = match kind {
            FrameKind::Amqp => 0,
            FrameKind::Sasl => 1,
        };
        let [c0, c1] = channel.to_be_bytes();
        writer.extend_array([0, 0, 0, 0, DATA_OFFSET_MIN, kind, c0, c1])?;
        body(writer)?;
        let size = u32::try_from(writer.len() - start).map_err(|_| Full)?;
        writer.patch_u32(start, size)
    })
}

/// Writes an AMQP frame without a body, which resets the peer's idle time-out (§2.4.5).
///
/// # Errors
/// [`Full`]; the writer is as before the call then.
pub fn write_empty_frame(writer: &mut Writer<'_>) -> Result<(), Full> {
    write_frame(writer, FrameKind::Amqp, 0, |_| Ok(()))
}
