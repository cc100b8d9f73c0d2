//! The driver over real sockets on the loopback interface.

use super::*;
use crate::io::contract::{Peer, Stand, contract_tests};
use crate::io::driver::ACCEPT_PAUSE;
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};

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

/// Runs this test in a process of its own, where nobody else opens descriptors, and then `test` there.
fn alone(name: &str, test: impl FnOnce()) {
    const MARK: &str = "RINGMAIN_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return test();
    }
    let path = format!("io::uring::tests::{name}");
    let status = std::process::Command::new(std::env::current_exe().expect("the test's own path"))
        .args(["--exact", &path, "--test-threads=1", "--nocapture"])
        .env(MARK, "1")
        .status()
        .expect("to start the test");
    assert!(status.success());
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc").count()
}

fn key(index: u32, generation: u32) -> ConnectionKey {
    ConnectionKey(Key { index, generation })
}

/// Turns until `count` sockets were accepted; opens them with keys of this generation, from index 0.
fn accept_all(stand: &mut UringStand, count: u32, generation: u32) {
    accept(stand, 0..count, generation);
}

fn accept(stand: &mut UringStand, indices: std::ops::Range<u32>, generation: u32) {
    let mut opened = indices.start;
    while opened < indices.end {
        stand.driver.submit_and_wait(None).expect("the driver works");
        while let Some(completion) = stand.driver.next_completion() {
            if let Completion::Accepted { socket, .. } = completion {
                stand.driver.open(key(opened, generation), socket);
                opened += 1;
            }
        }
    }
}

fn chunks(length: usize) -> Chunks {
    let bytes = vec![1; length].into_boxed_slice();
    [crate::io::driver::Chunk { bytes, filled: length }].into_iter().collect()
}

#[test]
fn descriptors_return_after_all_connections_were_reset_at_once() {
    const CONNECTIONS: u32 = 300;
    alone("descriptors_return_after_all_connections_were_reset_at_once", || {
        let Some(mut stand) = UringStand::new(ROOMY) else { return };
        let before = descriptors();
        for generation in 0..3 {
            let mut peers = Vec::new();
            for first in (0..CONNECTIONS).step_by(100) {
                // The standard library's listeners hold no more than 128 that wait.
                peers.extend((0..100).map(|_| stand.connect()));
                accept(&mut stand, first..first + 100, generation);
            }
            for index in 0..CONNECTIONS {
                stand
                    .driver
                    .send(key(index, generation), chunks(if index % 20 == 0 { 8 << 20 } else { 100 }));
            }
            peers.iter_mut().for_each(Peer::reset);
            let (mut closed, mut returned) = (0, 0);
            while closed < CONNECTIONS {
                stand.driver.submit_and_wait(None).expect("the driver works");
                while let Some(completion) = stand.driver.next_completion() {
                    match completion {
                        Completion::ReceiveEnded { connection, .. } => stand.driver.close(connection),
                        Completion::Sent { .. } => returned += 1,
                        Completion::Closed { .. } => closed += 1,
                        other => panic!("{other:?}"),
                    }
                }
            }
            assert_eq!(returned, CONNECTIONS);
            drop(peers);
            assert_eq!(descriptors(), before);
            assert_eq!(stand.driver.buffers.free(), usize::from(ROOMY.buffer_count));
        }
        drop(stand);
        // The ring, the event descriptor and the listener.
        assert_eq!(descriptors(), before - 3);
    });
}

#[test]
fn accepting_goes_on_after_descriptors_had_run_out() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    alone("accepting_goes_on_after_descriptors_had_run_out", || {
        let Some(mut stand) = UringStand::new(ROOMY) else { return };
        let _peers: Vec<_> = (0..3).map(|_| stand.connect()).collect();
        let before = getrlimit(Resource::Nofile);
        let mut tight = before;
        tight.current = Some(3);
        setrlimit(Resource::Nofile, tight).expect("a lower limit");
        let mut failures = Vec::new();
        while failures.len() < 3 {
            stand.driver.submit_and_wait(None).expect("the driver works");
            while let Some(completion) = stand.driver.next_completion() {
                match completion {
                    Completion::AcceptFailed { listener: ListenerId(0), error } => {
                        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
                        failures.push(stand.driver.now());
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(failures.windows(2).all(|pair| pair[1].since(pair[0]) >= ACCEPT_PAUSE));
        setrlimit(Resource::Nofile, before).expect("the former limit");
        accept_all(&mut stand, 3, 0);
    });
}

#[test]
fn dropping_the_driver_ends_everything_under_way() {
    let Some(mut stand) = UringStand::new(ROOMY) else { return };
    let mut peers: Vec<_> = (0..20).map(|_| stand.connect()).collect();
    accept_all(&mut stand, 20, 0);
    for index in 0..20 {
        match index % 4 {
            0 => stand.driver.send(key(index, 0), chunks(8 << 20)),
            1 => stand.driver.pause_receiving(key(index, 0)),
            2 => stand.driver.close(key(index, 0)),
            _ => {}
        }
    }
    stand.driver.submit_and_wait(Some(Instant(0))).expect("the driver works");
    // Not submitted yet.
    stand.driver.close(key(3, 0));
    stand.driver.pause_receiving(key(7, 0));
    let start = clock::monotonic();
    drop(stand);
    assert!(clock::monotonic().since(start) < Duration::from_secs(1));
    for peer in &mut peers {
        while !peer.has_ended {
            peer.read(usize::MAX);
        }
    }
}

#[test]
fn no_wake_from_another_thread_is_lost() {
    use std::sync::atomic::{AtomicU32, Ordering};
    const THREADS: u32 = 3;
    const LETTERS: u32 = 2_000;
    let Some(mut stand) = UringStand::new(ROOMY) else { return };
    let mailbox = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (mailbox, waker) = (Arc::clone(&mailbox), stand.driver.waker());
            std::thread::spawn(move || {
                for letter in 0..LETTERS {
                    mailbox.fetch_add(1, Ordering::Release);
                    waker.wake();
                    if letter % 100 == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            })
        })
        .collect();
    let mut taken = 0;
    while taken < THREADS * LETTERS {
        let deadline = stand.driver.now() + Duration::from_secs(10);
        stand.driver.submit_and_wait(Some(deadline)).expect("the driver works");
        assert!(stand.driver.now() < deadline, "a wake was lost");
        while let Some(completion) = stand.driver.next_completion() {
            assert!(matches!(completion, Completion::Woken));
            taken += mailbox.swap(0, Ordering::Acquire);
        }
    }
    threads.into_iter().for_each(|thread| thread.join().expect("the thread ends"));
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let Some(mut stand) = UringStand::new(ROOMY) else { return };
    for milliseconds in [1, 5, 30] {
        let deadline = clock::monotonic() + Duration::from_millis(milliseconds);
        stand.driver.submit_and_wait(Some(deadline)).expect("the driver works");
        let late = stand.driver.now().since(deadline);
        assert!(stand.driver.now() >= deadline && late < Duration::from_millis(50), "{late:?}");
        assert!(stand.driver.next_completion().is_none());
    }
}

#[test]
fn accepted_sockets_send_small_segments_at_once() {
    let Some(mut stand) = UringStand::new(ROOMY) else { return };
    let _peer = stand.connect();
    loop {
        stand.driver.submit_and_wait(None).expect("the driver works");
        if let Some(Completion::Accepted { socket, peer, .. }) = stand.driver.next_completion() {
            assert_eq!(rustix::net::sockopt::tcp_nodelay(&socket.0), Ok(true));
            assert!(peer.ip().is_loopback());
            return;
        }
    }
}

#[test]
fn a_dialled_socket_becomes_a_connection_though_it_was_non_blocking() {
    let Some(mut stand) = UringStand::new(ROOMY) else { return };
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port");
    let dialled = TcpStream::connect(elsewhere.local_addr().expect("an address")).expect("to connect");
    dialled.set_nonblocking(true).expect("non-blocking");
    let (mut other, _) = elsewhere.accept().expect("to accept");
    stand.driver.open(key(0, 0), UringSocket::try_from(dialled).expect("a socket"));
    stand.driver.submit_and_wait(Some(Instant(0))).expect("the driver works");
    assert!(stand.driver.next_completion().is_none());
    other.write_all(b"later").expect("to write");
    stand.driver.submit_and_wait(None).expect("the driver works");
    let Some(Completion::Received { buffer, .. }) = stand.driver.next_completion() else {
        panic!("nothing came")
    };
    assert_eq!(stand.driver.bytes(&buffer), b"later");
    stand.driver.release(buffer);
}

#[test]
#[should_panic(expected = "through the driver that received it")]
fn a_buffer_of_another_driver_is_refused() {
    let (Some(mut stand), Some(other)) = (UringStand::new(ROOMY), UringStand::new(ROOMY)) else {
        panic!("skipped: not read through the driver that received it");
    };
    stand.driver.buffers.offer();
    let buffer = stand.driver.buffers.take(0, 1);
    other.driver.bytes(&buffer);
}

#[test]
fn the_probe_leaves_nothing_behind() {
    alone("the_probe_leaves_nothing_behind", || {
        let before = descriptors();
        if let Err(reason) = probe() {
            eprintln!("skipped: {reason}");
        }
        assert_eq!(descriptors(), before);
    });
}

/// A deadline that has passed is a look at what is there: how a shard spins. Everything comes without one
/// wait that blocks.
#[test]
fn what_comes_is_seen_without_ever_blocking() {
    let (Some(mut stand), Some(mut other)) = (UringStand::new(ROOMY), UringStand::new(ROOMY)) else { return };
    let doorbell = stand.driver.doorbell().expect("a descriptor");
    let waker = stand.driver.waker();
    let mut peer = stand.connect();
    let (mut accepted, mut received, mut woken) = (0, 0, 0);
    let end = clock::monotonic() + Duration::from_secs(10);
    while received < 5 || woken < 2 {
        assert!(stand.driver.now() < end, "accepted {accepted}, received {received}, woken {woken}");
        let deadline = stand.driver.now();
        stand.driver.submit_and_wait(Some(deadline)).expect("the driver works");
        while let Some(completion) = stand.driver.next_completion() {
            match completion {
                Completion::Accepted { socket, .. } => {
                    accepted += 1;
                    stand.driver.open(key(0, 0), socket);
                    peer.write(b"hello");
                    other.driver.ring_doorbell(&doorbell);
                    other.driver.submit_and_wait(Some(Instant(0))).expect("the driver works");
                }
                Completion::Received { buffer, .. } => {
                    received += stand.driver.bytes(&buffer).len();
                    stand.driver.release(buffer);
                    waker.wake();
                }
                Completion::Woken => woken += 1,
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn devices_are_polled_or_the_kernel_says_that_it_cannot() {
    let Some(mut stand) = UringStand::new(ROOMY) else { return };
    if let Err(error) = stand.driver.busy_poll_devices(Duration::from_micros(20)) {
        eprintln!("this kernel can't: {error}");
        assert!(matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)), "{error:?}");
    }
    let deadline = clock::monotonic() + Duration::from_millis(2);
    stand.driver.submit_and_wait(Some(deadline)).expect("waiting works either way");
    assert!(stand.driver.now() >= deadline);
}
