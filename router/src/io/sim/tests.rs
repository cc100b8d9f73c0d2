//! The simulated driver keeps the contract of the real one.

use super::*;
use crate::base::id::ListenerId;
use crate::io::contract::{Peer, Stand, contract_tests};
use crate::io::driver::Driver;

impl Peer for SimPeer {
    fn write(&mut self, bytes: &[u8]) -> usize {
        SimPeer::write(self, bytes);
        bytes.len()
    }

    fn read(&mut self, most: usize) -> Vec<u8> {
        SimPeer::read(self, most)
    }

    fn has_ended(&mut self) -> bool {
        self.ended().is_some()
    }

    fn shutdown(&mut self) {
        SimPeer::shutdown(self);
    }

    fn reset(&mut self) {
        SimPeer::reset(self);
    }
}

struct SimStand {
    network: SimNetwork,
    driver: SimDriver,
}

impl SimStand {
    fn new(seed: u64, is_ragged: bool) -> Self {
        let options = SimOptions { is_ragged, buffer_count: Self::BUFFERS, ..SimOptions::default() };
        let network = SimNetwork::with_options(seed, options);
        let mut driver = network.driver();
        driver.listen(ListenerId(0), network.listener()).expect("to listen");
        Self { network, driver }
    }
}

impl Stand for SimStand {
    type Driver = SimDriver;
    type Peer = SimPeer;
    const BUFFERS: usize = 32;

    fn driver(&mut self) -> &mut SimDriver {
        &mut self.driver
    }

    fn connect(&mut self) -> SimPeer {
        let peer = self.network.connect(ListenerId(0));
        peer.stop_reading();
        peer
    }
}

mod ragged {
    use super::*;
    contract_tests!(Some(SimStand::new(1, true)));
}

mod smooth {
    use super::*;
    contract_tests!(Some(SimStand::new(2, false)));
}
