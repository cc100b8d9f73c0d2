//! The frames of a connection, for the log: module PROTOCOL, level trace.
//!
//! ```text
//! [C7]: <- SASL 1.0.0
//! [C7]:0 -> @sasl-mechanisms(64) [sasl-server-mechanisms=:ANONYMOUS]
//! [C7]:0 <- @open(16) [container-id="client", channel-max=255]
//! [C7]:0 <- @transfer(20) [handle=0, delivery-id=0, delivery-tag=b"\x00"] (57 bytes)
//! [C7]:0 -> (empty)
//! ```
//!
//! All connections are traced while the level is enabled for the module, and single ones that are told to
//! be (`enableProtocolTrace`), whatever is enabled.
//!
//! # Cost
//! A flag and a relaxed load for each buffer that is received or sent. Where it is on, each frame is decoded
//! once more and formatted, and goes through the log's bounded queue like any line: what doesn't fit there
//! is counted and left out.

mod notation;

use super::Core;
use super::slots::Slot;
use crate::base::id::ConnectionKey;
use crate::io::driver::Chunk;
use crate::log::{self, Level, Module, Source};
use notation::Body;
use ringmain_codec::split_frame;
use std::fmt;

/// The length of a protocol header, and of a frame's header.
const HEADER_BYTES: usize = 8;

impl Slot {
    /// Whether its frames are logged.
    #[inline]
    pub(super) fn is_traced(&self) -> bool {
        self.trace || log::is_enabled(Module::Protocol, Level::Trace)
    }

    /// Logs the frames that are complete with what has just been received.
    #[cold]
    pub(super) fn trace_received(&self, bytes: &[u8]) {
        if self.is_internal() {
            return;
        }
        if self.partial.is_empty() {
            trace(self.id, "<-", bytes);
        } else {
            trace(self.id, "<-", &[&self.partial, bytes].concat());
        }
    }

    /// Logs the frames in what goes out. None of them straddles chunks.
    #[cold]
    pub(super) fn trace_sent(&self, chunks: &[Chunk]) {
        if self.is_internal() {
            return;
        }
        for chunk in chunks {
            trace(self.id, "->", &chunk.bytes[..chunk.filled]);
        }
    }
}

impl Core {
    /// Traces a client's connection, or does so no more. Tells whether it was there.
    pub(super) fn set_trace(&mut self, key: ConnectionKey, is_on: bool) -> bool {
        let slot = self.connections.get_mut(key).filter(|slot| !slot.is_internal() && !slot.over);
        let Some(slot) = slot else { return false };
        slot.trace = is_on;
        true
    }
}

/// Logs the protocol headers and whole frames at the front of `bytes`.
fn trace(connection: u64, direction: &str, bytes: &[u8]) {
    each_line(connection, direction, bytes, |line| {
        let source = Source { file: file!(), line: line!() };
        log::write(Module::Protocol, Level::Trace, source, line);
    });
}

fn each_line(connection: u64, direction: &str, mut bytes: &[u8], mut tell: impl FnMut(fmt::Arguments<'_>)) {
    loop {
        if let Some((header, rest)) = protocol_header(bytes) {
            tell(format_args!("[C{connection}]: {direction} {header}"));
            bytes = rest;
            continue;
        }
        match split_frame(bytes, u32::MAX) {
            Ok(Some((frame, rest))) => {
                let channel = frame.channel;
                tell(format_args!("[C{connection}]:{channel} {direction} {}", Body(frame.body)));
                bytes = rest;
            }
            Ok(None) => return,
            // The engine says what it does about that.
            Err(malformed) => {
                tell(format_args!("[C{connection}]: {direction} (no frame: {malformed})"));
                return;
            }
        }
    }
}

/// A protocol header at the front: what it says, and what follows.
fn protocol_header(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let [b'A', b'M', b'Q', b'P', id, major, minor, revision] = header else { return None };
    let name = match id {
        0 => "AMQP".to_owned(),
        2 => "TLS".to_owned(),
        3 => "SASL".to_owned(),
        other => format!("protocol {other}"),
    };
    Some((format!("{name} {major}.{minor}.{revision}"), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringmain_codec::{FrameKind, Open, SaslInit, Symbol, Writer, write_empty_frame, write_frame};

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        each_line(7, "<-", bytes, |line| lines.push(line.to_string()));
        lines
    }

    /// A frame around what `write` writes.
    fn frame(kind: FrameKind, channel: u16, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut room = vec![0; 4096];
        let mut writer = Writer::new(&mut room);
        let written = write_frame(&mut writer, kind, channel, |writer| {
            write(writer);
            Ok(())
        });
        written.expect("room for a frame");
        writer.written().to_vec()
    }

    #[test]
    fn an_open_is_shown_with_the_names_of_its_fields() {
        let open = Open { container_id: "client", channel_max: 255, ..Open::default() };
        let mut bytes = b"AMQP\x00\x01\x00\x00".to_vec();
        bytes.extend(frame(FrameKind::Amqp, 0, |writer| writer.put(&open).expect("room for an open")));
        let lines = lines(&bytes);
        assert_eq!(lines[0], "[C7]: <- AMQP 1.0.0");
        assert!(lines[1].starts_with("[C7]:0 <- @open(16) [container-id=\"client\", "), "{}", lines[1]);
        assert!(lines[1].contains("channel-max=255"), "{}", lines[1]);
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn only_whole_frames_are_shown() {
        let mut room = [0; 8];
        let mut writer = Writer::new(&mut room);
        write_empty_frame(&mut writer).expect("room for an empty frame");
        let empty = writer.written().to_vec();
        let twice = [&empty[..], &empty[..7]].concat();
        assert_eq!(lines(&twice), ["[C7]:0 <- (empty)"]);
        assert!(lines(&empty[..3]).is_empty());
        assert!(lines(b"GET / HTTP/1.1")[0].starts_with("[C7]: <- (no frame: "));
    }

    #[test]
    fn what_a_client_shows_to_be_let_in_is_not_shown() {
        let init = SaslInit {
            mechanism: Symbol("PLAIN"),
            initial_response: Some(b"\0user\0secret"),
            hostname: None,
        };
        let bytes = frame(FrameKind::Sasl, 0, |writer| writer.put(&init).expect("room for an init"));
        assert_eq!(
            lines(&bytes),
            ["[C7]:0 <- @sasl-init(65) [mechanism=:PLAIN, initial-response=(12 bytes)]"]
        );
    }
}
