//! From which hosts the users of a group may connect (router-protocol reference §11.3).

use core::net::IpAddr;

/// Hosts: all, or some addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hosts {
    is_any: bool,
    ranges: Vec<(IpAddr, IpAddr)>,
}

impl Hosts {
    /// Adds all hosts.
    pub fn add_any(&mut self) {
        self.is_any = true;
    }

    /// Adds the addresses from `first` to `last`, both of one family; of another order, none.
    pub fn add_range(&mut self, first: IpAddr, last: IpAddr) {
        self.ranges.push((first.to_canonical(), last.to_canonical()));
    }

    /// Whether a host is one of them.
    #[must_use]
    pub fn permits(&self, host: IpAddr) -> bool {
        let host = host.to_canonical();
        let in_range = |&(first, last): &(IpAddr, IpAddr)| match (first, host, last) {
            (IpAddr::V4(first), IpAddr::V4(host), IpAddr::V4(last)) => first <= host && host <= last,
            (IpAddr::V6(first), IpAddr::V6(host), IpAddr::V6(last)) => first <= host && host <= last,
            (IpAddr::V4(_) | IpAddr::V6(_), IpAddr::V4(_) | IpAddr::V6(_), IpAddr::V4(_) | IpAddr::V6(_)) => {
                false
            }
        };
        self.is_any || self.ranges.iter().any(in_range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_both_their_ends() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut hosts = Hosts::default();
        assert!(!hosts.permits(address("10.0.0.1")));
        hosts.add_range(address("10.0.0.1"), address("10.0.0.9"));
        hosts.add_range(address("fe80::1"), address("fe80::1"));
        for (text, is_permitted) in [
            ("10.0.0.0", false),
            ("10.0.0.1", true),
            ("10.0.0.9", true),
            ("10.0.0.10", false),
            ("::ffff:10.0.0.5", true),
            ("fe80::1", true),
            ("fe80::2", false),
        ] {
            assert_eq!(hosts.permits(address(text)), is_permitted, "{text}");
        }
        hosts.add_any();
        assert!(hosts.permits(address("192.0.2.1")));
    }
}
