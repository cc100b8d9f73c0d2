//! What each completion of the ring means.

use super::connection::{Look, Operation, Phase, Receive};
use super::op::{Kind, Op};
use super::send::Progress;
use super::{ReceivedBuffer, UringDriver, UringSocket, find};
use crate::base::id::ConnectionKey;
use crate::io::driver::{ACCEPT_PAUSE, Completion};
use io_uring::cqueue;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroI32;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

/// What the shard is told.
type Told = Option<Completion<UringSocket, ReceivedBuffer>>;

impl UringDriver {
    fn on_accept(&mut self, index: u32, entry: &cqueue::Entry) -> Told {
        let socket = u32::try_from(entry.result()).ok().map(|descriptor| {
            // SAFETY: the kernel has just made the descriptor, for us alone.
            UringSocket(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
        });
        let place = self.listeners.get_mut(index as usize)?;
        let listener = place.as_mut()?;
        if !cqueue::more(entry.flags()) {
            listener.ended();
        }
        if listener.is_stopping() {
            place.take_if(|listener| listener.is_gone());
            return None;
        }
        let listener_id = listener.id;
        let mut completion = None;
        if let Some(socket) = socket {
            // A peer that is gone already has no address. It is nobody's connection.
            let peer = rustix::net::getpeername(&socket.0).ok().flatten();
            let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
            completion = peer.map(|peer| Completion::Accepted { listener: listener_id, socket, peer });
        } else {
            let error = io::Error::from_raw_os_error(-entry.result());
            match error.raw_os_error() {
                // A pause, or a connection that has gone before it was accepted.
                Some(libc::ECANCELED | libc::ECONNABORTED | libc::EINTR) => {}
                Some(_) | None => {
                    listener.retry_at = Some(self.now + ACCEPT_PAUSE);
                    completion = Some(Completion::AcceptFailed { listener: listener_id, error });
                }
            }
        }
        listener.advance(index, &mut self.ring);
        completion
    }

    fn on_receive(&mut self, key: ConnectionKey, entry: &cqueue::Entry) -> Told {
        let length = u32::try_from(entry.result()).unwrap_or(0);
        // Some kernels name a buffer although nothing was received.
        let buffer = cqueue::buffer_select(entry.flags()).map(|id| self.buffers.take(id, length));
        let has_ended = !cqueue::more(entry.flags());
        let Some(connection) = find(&mut self.connections, key) else {
            debug_assert!(false, "a connection goes only after its receive");
            buffer.into_iter().for_each(|buffer| self.buffers.release(buffer));
            return None;
        };
        let is_open = connection.phase == Phase::Open;
        if length > 0 {
            if has_ended {
                connection.receive = Receive::Idle;
                self.advance(key);
            }
            let buffer = buffer?;
            if is_open {
                return Some(Completion::Received { connection: key, buffer });
            }
            self.buffers.release(buffer);
            return None;
        }
        let mut ended = None;
        match -entry.result() {
            0 => {
                connection.receive = Receive::Ended;
                let failure = connection.failure.take();
                ended = Some(failure.map(|failure| io::Error::from_raw_os_error(failure.get())));
            }
            libc::ENOBUFS if has_ended => {
                connection.receive = Receive::Starved;
                self.buffers.on_starvation();
                if !connection.is_queued && is_open {
                    connection.is_queued = true;
                    self.starved.push_back(key);
                }
            }
            libc::ECANCELED | libc::EINTR if has_ended => connection.receive = Receive::Idle,
            error => {
                connection.receive = Receive::Ended;
                ended = Some(Some(io::Error::from_raw_os_error(error)));
            }
        }
        buffer.into_iter().for_each(|buffer| self.buffers.release(buffer));
        self.advance(key);
        match ended {
            Some(error) if is_open => Some(Completion::ReceiveEnded { connection: key, error }),
            Some(_) | None => None,
        }
    }

    fn on_look(&mut self, key: ConnectionKey, entry: &cqueue::Entry) -> Told {
        let length = u32::try_from(entry.result()).unwrap_or(0);
        // Some kernels name a buffer although nothing was received.
        let buffer = cqueue::buffer_select(entry.flags()).map(|id| self.buffers.take(id, length));
        let Some(connection) = find(&mut self.connections, key) else {
            debug_assert!(false, "a connection goes only after a look at it");
            buffer.into_iter().for_each(|buffer| self.buffers.release(buffer));
            return None;
        };
        let is_open = connection.phase == Phase::Open;
        connection.look = Look::Idle;
        if entry.result() < 0 {
            match -entry.result() {
                libc::ENOBUFS => {
                    self.buffers.on_starvation();
                    if is_open {
                        connection.look = Look::Starved;
                        if !connection.is_queued {
                            connection.is_queued = true;
                            self.starved.push_back(key);
                        }
                    }
                }
                // Nothing is there.
                libc::EAGAIN | libc::EINTR | libc::ECANCELED => {}
                // The receive finds an end, now that the error was told.
                error => connection.failure = NonZeroI32::new(error),
            }
        }
        self.advance(key);
        // The peer's end, of which no bytes tell, is told to the receive as well.
        match buffer {
            Some(buffer) if is_open && length > 0 => Some(Completion::Received { connection: key, buffer }),
            buffer => {
                buffer.into_iter().for_each(|buffer| self.buffers.release(buffer));
                None
            }
        }
    }

    fn on_watch(&mut self, key: ConnectionKey, entry: &cqueue::Entry) -> Told {
        let connection = find(&mut self.connections, key)?;
        connection.watch = Operation::Idle;
        let mut completion = None;
        // Unless it is paused, the receive reports the end, after the bytes that came before it.
        if entry.result() > 0 && connection.phase == Phase::Open && connection.receive == Receive::Idle {
            connection.receive = Receive::Ended;
            let error = match rustix::net::sockopt::socket_error(&connection.descriptor) {
                Ok(Err(error)) | Err(error) => error.into(),
                Ok(Ok(())) => io::Error::from_raw_os_error(libc::ECONNRESET),
            };
            completion = Some(Completion::ReceiveEnded { connection: key, error: Some(error) });
        }
        self.advance(key);
        completion
    }

    fn on_send(&mut self, key: ConnectionKey, result: i32) -> Told {
        let connection = find(&mut self.connections, key)?;
        let sending = connection.sending.as_mut()?;
        match sending.complete(result) {
            Progress::More => {
                let socket = connection.descriptor.as_raw_fd();
                sending.start(key, socket, &mut self.ring, &mut self.messages);
                None
            }
            Progress::Done(result) => {
                let chunks = connection.sending.take()?.into_chunks(&mut self.messages);
                self.advance(key);
                Some(Completion::Sent { connection: key, chunks, result })
            }
        }
    }

    fn on_drain(&mut self, key: ConnectionKey, result: i32) {
        let Some(connection) = find(&mut self.connections, key) else {
            return;
        };
        if result > 0 && connection.phase == Phase::Draining(Operation::Active) {
            connection.drain(&mut self.ring, &mut self.scratch);
        } else {
            connection.phase = Phase::Draining(Operation::Idle);
            self.advance(key);
        }
    }

    fn on_close(&mut self, key: ConnectionKey) -> Told {
        let place = self.connections.get_mut(key.0.index as usize)?;
        let connection = place.take_if(|connection| connection.key == key)?;
        // The kernel has closed it; whatever close(2) returns on Linux, the descriptor is gone.
        let _closed = connection.descriptor.into_raw_fd();
        Some(Completion::Closed { connection: key })
    }

    /// What the shard is told of a completion; `None`: nothing.
    pub(super) fn translate(&mut self, entry: &cqueue::Entry) -> Told {
        let Some(op) = Op::decode(entry.user_data()) else {
            debug_assert!(false, "every operation has a kind");
            return None;
        };
        let key = ConnectionKey(op.key);
        match op.kind {
            Kind::Accept => self.on_accept(op.key.index, entry),
            Kind::Receive => self.on_receive(key, entry),
            Kind::Look => self.on_look(key, entry),
            Kind::Watch => self.on_watch(key, entry),
            Kind::Send => self.on_send(key, entry.result()),
            Kind::Drain => {
                self.on_drain(key, entry.result());
                None
            }
            Kind::Close => self.on_close(key),
            // It came too late; the operation completes, or has completed, by itself. The alarm ended a wait.
            Kind::Cancel | Kind::Alarm => None,
            Kind::Wake => {
                if !cqueue::more(entry.flags()) {
                    self.arm_waker();
                }
                self.waker.acknowledge();
                Some(Completion::Woken)
            }
            Kind::Doorbell => (entry.result() >= 0).then_some(Completion::Woken),
        }
    }

    /// Takes a completion that nobody will be told of.
    pub(super) fn forget(&mut self, entry: &cqueue::Entry) {
        let Some(op) = Op::decode(entry.user_data()) else { return };
        match op.kind {
            Kind::Accept => {
                if entry.result() >= 0 {
                    // SAFETY: the kernel has just made the descriptor, for us alone.
                    drop(unsafe { OwnedFd::from_raw_fd(entry.result()) });
                }
            }
            Kind::Close => {
                let _closed = self.on_close(ConnectionKey(op.key));
            }
            Kind::Receive
            | Kind::Look
            | Kind::Watch
            | Kind::Send
            | Kind::Drain
            | Kind::Cancel
            | Kind::Wake
            | Kind::Doorbell
            | Kind::Alarm => {}
        }
    }
}
