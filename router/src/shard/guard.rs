//! What keeps those at bay who haven't shown who they are: failed attempts are slowed, and connections that aren't open
//! yet are counted, for all shards together.
//!
//! # Cost
//! A lock for each connection that comes, that is opened or that fails; none for what goes over it.

use crate::base::id::ListenerId;
use crate::base::limits::{
    AUTHENTICATION_DELAY_MAX, AUTHENTICATION_DELAY_MIN, AUTHENTICATION_FORGET, AUTHENTICATION_SOURCES_MAX,
    AUTHENTICATION_WAITS_MAX,
};
use crate::base::lock::Mutex;
use crate::base::time::Instant;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// A block of addresses that is likely to be one party's: of IPv4 a /24, of IPv6 a /64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Block(Ipv6Addr);

impl Block {
    /// The block that an address is in.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let bits = match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits() & !0xff,
            IpAddr::V6(address) => address.to_bits() & !u128::from(u64::MAX),
        };
        Self(Ipv6Addr::from_bits(bits))
    }
}

/// Where failed attempts come from: an IPv4 address, or a block of IPv6, of which whoever has one has them all.
fn source(address: IpAddr) -> Ipv6Addr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(_) => Block::of(address).0,
    }
}

/// What is known of those who haven't shown who they are.
#[derive(Debug, Default)]
pub struct Guard(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: HashMap<Ipv6Addr, Failures>,
    half_open: HashMap<ListenerId, HalfOpenOfListener>,
}

#[derive(Clone, Debug)]
struct Failures {
    count: u32,
    last: Instant,
    /// When those are told that haven't been told yet: [`AUTHENTICATION_WAITS_MAX`] of them at the most.
    waits: Vec<Instant>,
}

#[derive(Debug, Default)]
struct HalfOpenOfListener {
    count: u32,
    by_block: HashMap<Block, u32>,
}

/// How many connections may be under way to their open at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HalfOpenLimits {
    /// Through one listener.
    pub listener: u32,
    /// Of them from one block of addresses.
    pub block: u32,
}

impl Default for HalfOpenLimits {
    /// As good as none.
    fn default() -> Self {
        Self { listener: u32::MAX, block: u32::MAX }
    }
}

/// Which limit is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TooMany {
    /// That of the listener.
    OfListener,
    /// That of the block.
    OfBlock,
    /// That of the process: the last descriptors are kept.
    OfProcess,
}

/// A connection that isn't open yet, as long as this is kept.
#[derive(Debug)]
pub struct HalfOpen {
    guard: Arc<Guard>,
    listener: ListenerId,
    block: Block,
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        let mut state = self.guard.state();
        let Some(of_listener) = state.half_open.get_mut(&self.listener) else { return };
        of_listener.count = of_listener.count.saturating_sub(1);
        if let Some(count) = of_listener.by_block.get_mut(&self.block) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                of_listener.by_block.remove(&self.block);
            }
        }
        if of_listener.count == 0 {
            state.half_open.remove(&self.listener);
        }
    }
}

impl Guard {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked left numbers behind, which are all good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an attempt that failed. Returns how many there were lately from there, and how long the peer waits for its
    /// answer: twice as long each time.
    pub fn failed(&self, address: IpAddr, now: Instant) -> (u32, Duration) {
        let source = source(address);
        let mut state = self.state();
        let failures = &mut state.failures;
        let is_known = failures.contains_key(&source);
        if !is_known && failures.len() >= AUTHENTICATION_SOURCES_MAX {
            failures.retain(|_, failures| now.since(failures.last) < AUTHENTICATION_FORGET);
        }
        if !is_known && failures.len() >= AUTHENTICATION_SOURCES_MAX {
            // Whoever has so many addresses gains nothing by making us forget one of them.
            let oldest = failures.iter().min_by_key(|(_, failures)| failures.last).map(|(source, _)| *source);
            oldest.map(|oldest| failures.remove(&oldest));
        }
        let fresh = || Failures { count: 0, last: now, waits: Vec::new() };
        let entry = failures.entry(source).or_insert_with(fresh);
        if now.since(entry.last) >= AUTHENTICATION_FORGET {
            entry.count = 0;
        }
        entry.count = entry.count.saturating_add(1);
        entry.last = now;
        let doublings = (entry.count - 1).min(16);
        let delay = (AUTHENTICATION_DELAY_MIN * (1 << doublings)).min(AUTHENTICATION_DELAY_MAX);
        entry.waits.retain(|told| *told > now);
        if entry.waits.len() < AUTHENTICATION_WAITS_MAX {
            entry.waits.push(now + delay);
        }
        (entry.count, delay)
    }

    /// Whether a password from there may be checked now: not while too many failures wait to be told. So trying passwords on
    /// many connections is no faster than on some.
    pub fn may_try(&self, address: IpAddr, now: Instant) -> bool {
        let mut state = self.state();
        let Some(entry) = state.failures.get_mut(&source(address)) else { return true };
        entry.waits.retain(|told| *told > now);
        entry.waits.len() < AUTHENTICATION_WAITS_MAX
    }

    /// Counts a connection that comes through a listener.
    ///
    /// # Errors
    /// It would be one too many.
    pub fn admit(
        self: &Arc<Self>,
        listener: ListenerId,
        address: IpAddr,
        limits: HalfOpenLimits,
    ) -> Result<HalfOpen, TooMany> {
        let block = Block::of(address);
        let mut state = self.state();
        let of_listener = state.half_open.entry(listener).or_default();
        if of_listener.count >= limits.listener {
            return Err(TooMany::OfListener);
        }
        let count = of_listener.by_block.entry(block).or_default();
        if *count >= limits.block {
            // There is an entry, since it isn't empty.
            return Err(TooMany::OfBlock);
        }
        *count += 1;
        of_listener.count += 1;
        Ok(HalfOpen { guard: self.clone(), listener, block })
    }

    /// How many connections aren't open yet.
    #[must_use]
    pub fn half_open(&self) -> u64 {
        self.state().half_open.values().map(|of_listener| u64::from(of_listener.count)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn blocks_are_24_and_64_bits_wide() {
        assert_eq!(Block::of(ip("192.0.2.1")), Block::of(ip("192.0.2.254")));
        assert_ne!(Block::of(ip("192.0.2.1")), Block::of(ip("192.0.3.1")));
        assert_eq!(Block::of(ip("192.0.2.1")), Block::of(ip("::ffff:192.0.2.9")));
        assert_eq!(Block::of(ip("2001:db8::1")), Block::of(ip("2001:db8::ffff:0:0:9")));
        assert_ne!(Block::of(ip("2001:db8::1")), Block::of(ip("2001:db8:0:1::1")));
    }

    #[test]
    fn each_failure_waits_longer_and_is_forgotten() {
        let guard = Guard::default();
        let now = Instant(1);
        let peer = ip("192.0.2.1");
        assert_eq!(guard.failed(peer, now), (1, AUTHENTICATION_DELAY_MIN));
        assert_eq!(guard.failed(peer, now), (2, 2 * AUTHENTICATION_DELAY_MIN));
        for count in 3..100 {
            let (counted, delay) = guard.failed(peer, now);
            assert_eq!(counted, count);
            assert!(delay <= AUTHENTICATION_DELAY_MAX);
        }
        assert_eq!(guard.failed(peer, now).1, AUTHENTICATION_DELAY_MAX);
        assert_eq!(guard.failed(ip("192.0.2.2"), now).0, 1);
        assert_eq!(guard.failed(peer, now + AUTHENTICATION_FORGET).0, 1);
    }

    #[test]
    fn many_connections_try_no_faster_than_some() {
        let guard = Guard::default();
        let (peer, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        let mut now = Instant(1);
        // Ten at a time for a minute: hundreds of tries would be told by then if each waited for itself alone.
        let mut tried = 0;
        for _ in 0..6000 {
            for _ in 0..10 {
                if guard.may_try(peer, now) {
                    tried += 1;
                    guard.failed(peer, now);
                }
            }
            now = now + Duration::from_millis(10);
        }
        let rounds = 60 / AUTHENTICATION_DELAY_MAX.as_secs() as usize + 1;
        assert!(tried <= (rounds + 1) * AUTHENTICATION_WAITS_MAX, "{tried}");
        while guard.may_try(peer, now) {
            guard.failed(peer, now);
        }
        assert!(guard.may_try(other, now));
        assert!(guard.may_try(peer, now + AUTHENTICATION_DELAY_MAX));
    }

    #[test]
    fn sources_are_bounded() {
        let guard = Guard::default();
        for number in 0..2 * AUTHENTICATION_SOURCES_MAX {
            let address = IpAddr::from((number as u32).to_be_bytes());
            guard.failed(address, Instant(number as u64 + 1));
        }
        assert_eq!(guard.state().failures.len(), AUTHENTICATION_SOURCES_MAX);
    }

    #[test]
    fn half_open_connections_are_counted_by_listener_and_block() {
        let guard = Arc::new(Guard::default());
        let limits = HalfOpenLimits { listener: 3, block: 2 };
        let admit = |listener, address| guard.admit(ListenerId(listener), ip(address), limits);
        let first = admit(0, "192.0.2.1").unwrap();
        let second = admit(0, "192.0.2.2").unwrap();
        assert_eq!(admit(0, "192.0.2.3").unwrap_err(), TooMany::OfBlock);
        let third = admit(0, "192.0.3.1").unwrap();
        assert_eq!(admit(0, "192.0.4.1").unwrap_err(), TooMany::OfListener);
        let other = admit(1, "192.0.2.1").unwrap();
        assert_eq!(guard.half_open(), 4);
        drop(first);
        let again = admit(0, "192.0.2.3").unwrap();
        drop((second, third, other, again));
        assert_eq!(guard.half_open(), 0);
        assert!(guard.state().half_open.is_empty());
    }
}
