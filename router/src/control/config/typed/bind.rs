//! The socket addresses behind a listener's host and port.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::io;
use std::net::ToSocketAddrs as _;

use super::{AddressFamily, ListenerConfig};

/// An address to bind a listening socket to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BindAddress {
    /// The address and port; port 0 lets the kernel choose one.
    pub address: SocketAddr,
    /// Of an IPv6 address: don't take IPv4 connections as well (`IPV6_V6ONLY`).
    pub is_v6_only: bool,
}

impl ListenerConfig {
    /// Resolves the host, which may ask the system's resolver and take its time.
    ///
    /// No host and no family gives `[::]` that takes IPv4 as well. Where the kernel has no IPv6, bind to
    /// `0.0.0.0` instead.
    ///
    /// # Errors
    /// The host has no address, or none of the family demanded.
    pub fn bind_addresses(&self) -> io::Result<Vec<BindAddress>> {
        let at = |address: IpAddr| SocketAddr::new(address, self.port);
        if self.host.is_empty() {
            let (address, is_v6_only) = match self.socket_address_family {
                None => (IpAddr::V6(Ipv6Addr::UNSPECIFIED), false),
                Some(AddressFamily::IPv6) => (IpAddr::V6(Ipv6Addr::UNSPECIFIED), true),
                Some(AddressFamily::IPv4) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), false),
            };
            return Ok(vec![BindAddress { address: at(address), is_v6_only }]);
        }
        let mut addresses: Vec<BindAddress> = Vec::new();
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            let is_wanted = match self.socket_address_family {
                None => true,
                Some(AddressFamily::IPv4) => address.is_ipv4(),
                Some(AddressFamily::IPv6) => address.is_ipv6(),
            };
            let found = BindAddress { address, is_v6_only: address.is_ipv6() };
            if is_wanted && !addresses.contains(&found) {
                addresses.push(found);
            }
        }
        if addresses.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::AddrNotAvailable,
                format!("host '{}' has no address of the family demanded", self.host),
            ));
        }
        Ok(addresses)
    }
}
