//! The driver's simulated twin: a network in memory, a virtual clock, and faults drawn from a seed.
//!
//! The same seed and the same calls give the same run. There are no threads and no real time.
//!
//! ```
//! use ringmain::base::id::{ConnectionKey, Key, ListenerId};
//! use ringmain::io::driver::{Completion, Driver};
//! use ringmain::io::sim::SimNetwork;
//!
//! let network = SimNetwork::new(1);
//! let mut driver = network.driver();
//! driver.listen(ListenerId(0), network.listener())?;
//! let peer = network.connect(ListenerId(0));
//! peer.write(b"hello");
//! let mut heard = Vec::new();
//! while !network.is_idle() {
//!     driver.submit_and_wait(None)?;
//!     while let Some(completion) = driver.next_completion() {
//!         match completion {
//!             Completion::Accepted { socket, .. } => {
//!                 driver.open(ConnectionKey(Key { index: 0, generation: 0 }), socket);
//!             }
//!             Completion::Received { buffer, .. } => {
//!                 heard.extend_from_slice(driver.bytes(&buffer));
//!                 driver.release(buffer);
//!             }
//!             other => panic!("{other:?}"),
//!         }
//!     }
//! }
//! assert_eq!(heard, b"hello");
//! # Ok::<(), std::io::Error>(())
//! ```

mod driver;
mod network;
mod peer;
#[cfg(test)]
mod tests;
mod world;

pub use driver::{SimBuffer, SimDoorbell, SimDriver, SimListener, SimSocket};
pub use network::SimNetwork;
pub use peer::{PeerEnd, SimPeer};

use core::time::Duration;

/// How the simulated network behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimOptions {
    /// The longest time from a cause to its completion; each takes a random part of it.
    pub latency_max: Duration,
    /// Whether received bytes are cut at random places, and sent bytes handed over in random pieces.
    pub is_ragged: bool,
    /// Bytes that the virtual socket holds for a peer that doesn't read. A send beyond it stays under way.
    pub socket_buffer: usize,
    /// Bytes that one `Received` brings at most.
    pub buffer_size: usize,
    /// Receive buffers of the shard: received and not released. When all are held, nothing is received.
    pub buffer_count: usize,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            latency_max: Duration::from_micros(50),
            is_ragged: true,
            socket_buffer: 64 * 1024,
            buffer_size: 16 * 1024,
            buffer_count: 64,
        }
    }
}
