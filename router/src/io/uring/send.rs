//! The one send of a connection: a single chunk goes as SEND, several go as SENDMSG.

use super::op::{Kind, Op};
use super::ring::Ring;
use crate::base::id::{ConnectionKey, Key};
use crate::io::driver::{Chunk, Chunks};
use io_uring::{opcode, types};
use std::io;
use std::os::fd::RawFd;

/// Never raise SIGPIPE; and let the kernel go on by itself after a short send.
const FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;

/// Chunks that one SENDMSG takes at most (UIO_MAXIOV); a longer list goes in several.
const IOVECS_MAX: usize = 1024;

/// Bytes that one operation sends at most (the kernel's MAX_RW_COUNT, rounded down).
const BYTES_MAX: usize = 0x7fff_0000;

/// Free messages that are kept for the next send, 64 bytes and a list each.
const MESSAGES_KEPT_MAX: usize = 64;

/// What SENDMSG reads: the header and the list that it points to.
pub(super) struct Message {
    header: libc::msghdr,
    iovecs: Vec<libc::iovec>,
}

/// Messages to use again, so that sending doesn't allocate.
#[derive(Default)]
#[expect(
    clippy::vec_box,
    reason = "the kernel holds the address of a message while it moves in and out of here"
)]
pub(super) struct Messages(Vec<Box<Message>>);

impl Messages {
    fn take(&mut self) -> Box<Message> {
        self.0.pop().unwrap_or_else(|| {
            // SAFETY: a `msghdr` of zeros is a valid one: null pointers with length 0.
            Box::new(Message { header: unsafe { std::mem::zeroed() }, iovecs: Vec::new() })
        })
    }

    fn give_back(&mut self, message: Option<Box<Message>>) {
        if let Some(mut message) = message
            && self.0.len() < MESSAGES_KEPT_MAX
        {
            message.iovecs.clear();
            self.0.push(message);
        }
    }
}

/// A send under way.
pub(super) struct Sending {
    chunks: Chunks,
    /// What comes behind the chunks.
    lasting: &'static [u8],
    total: usize,
    sent: usize,
    message: Option<Box<Message>>,
    /// Whether the kernel was asked to give it up.
    pub(super) is_cancelled: bool,
}

/// What a completion of a send means.
pub(super) enum Progress {
    /// There is more to send.
    More,
    /// It is over.
    Done(io::Result<()>),
}

impl Sending {
    /// A send of `chunks` that has not started.
    ///
    /// # Panics
    /// If a chunk is said to be filled beyond its buffer.
    pub(super) fn new(chunks: Chunks) -> Self {
        let total = chunks.iter().map(|chunk| filled(chunk).len()).sum();
        Self { chunks, lasting: &[], total, sent: 0, message: None, is_cancelled: false }
    }

    /// A send of bytes that are there for ever, that has not started.
    pub(super) fn of_static(bytes: &'static [u8]) -> Self {
        let chunks = Chunks::new();
        Self { chunks, lasting: bytes, total: bytes.len(), sent: 0, message: None, is_cancelled: false }
    }

    /// Whether there is nothing (more) to send.
    pub(super) fn is_complete(&self) -> bool {
        self.sent == self.total
    }

    /// Ends the send, and gives the buffers back.
    pub(super) fn into_chunks(self, messages: &mut Messages) -> Chunks {
        messages.give_back(self.message);
        self.chunks
    }

    /// Starts sending what is left. Not to be called when it is complete, nor while it is under way.
    pub(super) fn start(
        &mut self,
        key: ConnectionKey,
        socket: RawFd,
        ring: &mut Ring,
        messages: &mut Messages,
    ) {
        let socket = types::Fd(socket);
        let mut rest = remaining(&self.chunks, self.lasting, self.sent);
        let (Some(first), second) = (rest.next(), rest.next()) else {
            unreachable!("a complete send is not started");
        };
        let entry = if let Some(second) = second {
            let message = self.message.get_or_insert_with(|| messages.take());
            message.iovecs.clear();
            let mut bytes = 0;
            let parts = [first, second].into_iter().chain(rest).take(IOVECS_MAX);
            for part in parts.take_while(|part| {
                bytes += part.len();
                bytes <= BYTES_MAX
            }) {
                message
                    .iovecs
                    .push(libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
            }
            if message.iovecs.is_empty() {
                send(socket, first)
            } else {
                message.header.msg_iov = message.iovecs.as_mut_ptr();
                message.header.msg_iovlen = message.iovecs.len();
                opcode::SendMsg::new(socket, &message.header).flags(FLAGS as u32).build()
            }
        } else {
            send(socket, first)
        };
        // SAFETY: the bytes are static, or the chunks' memory and the message are on the heap and belong to this value, which the
        // driver keeps, unchanged, until the operation has completed; the kernel only reads them. The
        // socket is closed only after that.
        unsafe { ring.push(entry, Op::new(Kind::Send, Key::from(key))) };
    }

    /// Takes the result of the operation: bytes sent, or a negative error number.
    pub(super) fn complete(&mut self, result: i32) -> Progress {
        let Ok(sent) = usize::try_from(result) else {
            return match -result {
                libc::EINTR if !self.is_cancelled => Progress::More,
                error => Progress::Done(Err(io::Error::from_raw_os_error(error))),
            };
        };
        self.sent += sent;
        if self.is_complete() {
            Progress::Done(Ok(()))
        } else if self.is_cancelled {
            Progress::Done(Err(io::Error::from_raw_os_error(libc::ECANCELED)))
        } else if sent == 0 {
            Progress::Done(Err(io::ErrorKind::WriteZero.into()))
        } else {
            Progress::More
        }
    }
}

fn send(socket: types::Fd, bytes: &[u8]) -> io_uring::squeue::Entry {
    let length = bytes.len().min(BYTES_MAX) as u32;
    opcode::Send::new(socket, bytes.as_ptr(), length).flags(FLAGS).build()
}

fn filled(chunk: &Chunk) -> &[u8] {
    &chunk.bytes[..chunk.filled]
}

/// What is left of `chunks` and `lasting` after the first `sent` bytes: parts of at least one byte.
fn remaining<'a>(chunks: &'a Chunks, lasting: &'static [u8], sent: usize) -> impl Iterator<Item = &'a [u8]> {
    let mut skip = sent;
    chunks.iter().map(filled).chain([lasting]).filter_map(move |bytes| {
        let skipped = skip.min(bytes.len());
        skip -= skipped;
        let rest = &bytes[skipped..];
        (!rest.is_empty()).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bytes: &[u8], capacity: usize) -> Chunk {
        let mut buffer = vec![0xee; capacity].into_boxed_slice();
        buffer[..bytes.len()].copy_from_slice(bytes);
        Chunk { bytes: buffer, filled: bytes.len() }
    }

    #[test]
    fn what_is_left_of_a_short_send_is_the_rest_of_the_bytes() {
        let chunks: Chunks =
            [chunk(b"abc", 8), chunk(b"", 8), chunk(b"de", 2), chunk(b"f", 4)].into_iter().collect();
        for sent in 0..=8 {
            let rest: Vec<u8> = remaining(&chunks, b"gh", sent).flatten().copied().collect();
            assert_eq!(rest, &b"abcdefgh"[sent..]);
            assert!(remaining(&chunks, b"gh", sent).all(|part| !part.is_empty()));
        }
    }
}
