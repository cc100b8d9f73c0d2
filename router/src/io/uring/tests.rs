//! The driver over real sockets on the loopback interface.

use super::*;
use crate::io::contract::{Peer, Stand, contract_tests};
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::Shutdown;

/// A real socket that never blocks.
struct TcpPeer {
    stream: TcpStream,
    has_ended: bool,
}

impl Peer for TcpPeer {
    fn write(&mut self, bytes: &[u8]) -> usize {
        self.stream.write(bytes).unwrap_or(0)
    }

    fn read(&mut self, most: usize) -> Vec<u8> {
        let mut all = Vec::new();
        let mut piece = [0; 16 * 1024];
        while all.len() < most && !self.has_ended {
            let room = piece.len().min(most - all.len());
            match self.stream.read(&mut piece[..room]) {
                Ok(0) => self.has_ended = true,
                Ok(length) => all.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.has_ended = true,
            }
        }
        all
    }

    fn has_ended(&mut self) -> bool {
        self.has_ended
    }

    fn shutdown(&mut self) {
        let _reset = self.stream.shutdown(Shutdown::Write);
    }

    fn reset(&mut self) {
        set_socket_linger(&self.stream, Some(Duration::ZERO)).expect("SO_LINGER");
        let (replacement, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        // Closes the socket, now that closing it means to reset.
        self.stream = TcpStream::from(OwnedFd::from(replacement));
    }
}

struct UringStand {
    driver: UringDriver,
    address: SocketAddr,
}

impl UringStand {
    fn new(sizes: UringSizes) -> Option<Self> {
        if let Err(reason) = probe() {
            eprintln!("skipped: {reason}");
            return None;
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut driver = UringDriver::new(sizes).expect("a driver");
        driver.listen(ListenerId(0), listener).expect("to listen");
        Some(Self { driver, address })
    }
}

impl Stand for UringStand {
    type Driver = UringDriver;
    type Peer = TcpPeer;
    const BUFFERS: usize = 32;

    fn driver(&mut self) -> &mut UringDriver {
        &mut self.driver
    }

    fn connect(&mut self) -> TcpPeer {
        let stream = TcpStream::connect(self.address).expect("to connect");
        stream.set_nonblocking(true).expect("non-blocking");
        TcpPeer { stream, has_ended: false }
    }
}

/// The usual rings, few buffers.
const ROOMY: UringSizes =
    UringSizes { submission_entries: 256, completion_entries: 1024, buffer_size: 8 * 1024, buffer_count: 32 };

/// Rings that overflow all the time.
const TIGHT: UringSizes =
    UringSizes { submission_entries: 2, completion_entries: 4, buffer_size: 8 * 1024, buffer_count: 32 };

mod roomy {
    use super::*;
    contract_tests!(UringStand::new(ROOMY));
}

mod tight {
    use super::*;
    contract_tests!(UringStand::new(TIGHT));
}
