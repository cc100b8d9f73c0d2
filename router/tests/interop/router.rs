//! The router under test, on a port and with a configuration of its own.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::process::{Deadline, Output, Process};

/// Addresses that begin with this are configured with the distribution `unavailable`.
pub const UNAVAILABLE: &str = "unavailable";

/// Outside the range from which Linux takes the ports of outgoing connections, so that no client of a parallel test gets it.
const PORTS: std::ops::Range<u32> = 20_000..32_000;

pub struct Router {
    process: Process,
    address: SocketAddr,
    web: SocketAddr,
    configuration: PathBuf,
}

impl Router {
    pub fn start(deadline: Deadline) -> Self {
        let address = free_address();
        let web = free_address();
        let configuration =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("interop-{}.conf", address.port()));
        // What holds on one shard holds on any number: RINGMAIN_TEST_SHARDS says how many, if it isn't one for each CPU.
        let shards = std::env::var("RINGMAIN_TEST_SHARDS")
            .map_or_else(|_| String::new(), |shards| format!("    workerThreads: {shards}\n"));
        let text = format!(
            "router {{\n    mode: standalone\n    id: interop\n{shards}}}\n\
             listener {{\n    host: {}\n    port: {}\n    role: normal\n    authenticatePeer: no\n    saslMechanisms: ANONYMOUS\n}}\n\
             listener {{\n    host: {}\n    port: {}\n    http: yes\n}}\n\
             address {{\n    prefix: {UNAVAILABLE}\n    distribution: unavailable\n}}\n",
            address.ip(),
            address.port(),
            web.ip(),
            web.port(),
        );
        fs::write(&configuration, text).expect("the folder for temporary files is writable");
        let binary =
            std::env::var_os("RINGMAIN_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_ringmain").into());
        let mut process =
            Process::start("the router", Command::new(binary).arg("-c").arg(&configuration), Output::Stderr);
        while !process
            .next_line(deadline)
            .unwrap_or_else(|| panic!("the router ended before it was operational"))
            .contains("Operational")
        {}
        Self { process, address, web, configuration }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it serves HTTP and AMQP over WebSocket.
    pub fn web(&self) -> SocketAddr {
        self.web
    }

    /// SIGTERM, and the status 0 that must follow.
    pub fn stop(mut self, deadline: Deadline) {
        let pid = rustix::process::Pid::from_raw(self.process.id().cast_signed())
            .expect("a child's id is positive");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("the router still runs");
        let status = self.process.wait(deadline);
        assert!(status.success(), "the router ended with {status}");
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.configuration);
    }
}

fn free_address() -> SocketAddr {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let size = PORTS.end - PORTS.start;
    for _ in 0..size {
        let offset = (std::process::id() * 7 + TAKEN.fetch_add(1, Ordering::Relaxed)) % size;
        let port = u16::try_from(PORTS.start + offset).expect("a port");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no free port in {PORTS:?}")
}
