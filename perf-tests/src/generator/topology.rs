//! Which connections, sessions and links a load consists of.

use serde::{Deserialize, Serialize};

/// How a receiver settles what it accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Settle {
    /// One disposition for each delivery.
    #[default]
    Each,
    /// One disposition for all the deliveries that came with one read.
    Range,
}

/// In what a receiver is slow that has a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Slow {
    /// It grants credit for no more than it takes.
    #[default]
    Credit,
    /// It grants credit for more, and leaves what comes in its socket.
    Reading,
}

/// A load: who sends what to whom. The drive (how fast) comes on top of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadSpec {
    /// Links that send.
    pub senders: usize,
    /// Links that receive.
    pub receivers: usize,
    /// Addresses: the i-th link uses the (i modulo addresses)-th.
    pub addresses: usize,
    /// Every receiver of an address gets a copy.
    pub is_multicast: bool,
    /// Links on one connection, all senders or all receivers.
    pub links_per_connection: usize,
    /// Sessions on one connection; its links take turns.
    pub sessions_per_connection: usize,
    /// Bytes of each body.
    pub body_bytes: usize,
    /// The largest frame in bytes that we send; less where the peer wants less.
    pub frame_bytes_max: usize,
    /// Messages are sent settled.
    pub is_presettled: bool,
    /// Credit that receivers grant; topped up when half of it is used.
    pub credit: u32,
    /// Unsettled messages of one sender at any time.
    pub in_flight: u32,
    /// How receivers settle.
    pub settle: Settle,
    /// Senders have no target; each message names its address.
    pub is_anonymous: bool,
    /// Each message is a request that is answered; measured is the way there and back.
    pub is_request_response: bool,
    /// Each connection has a sender and a receiver, of the same address.
    pub is_mixed: bool,
    /// Messages per second that each receiver takes; `None` for as many as come.
    pub receiver_rate: Option<u64>,
    /// How it keeps to that rate.
    pub slow: Slow,
}

impl Default for LoadSpec {
    fn default() -> Self {
        Self {
            senders: 1,
            receivers: 1,
            addresses: 1,
            is_multicast: false,
            links_per_connection: 1,
            sessions_per_connection: 1,
            body_bytes: 100,
            frame_bytes_max: 16_384,
            is_presettled: false,
            credit: 1000,
            in_flight: 1000,
            settle: Settle::Each,
            is_anonymous: false,
            is_request_response: false,
            is_mixed: false,
            receiver_rate: None,
            slow: Slow::Credit,
        }
    }
}

impl LoadSpec {
    /// `pairs` of a sender and a receiver, each with an address of its own.
    pub fn pairs(pairs: usize) -> Self {
        Self { senders: pairs, receivers: pairs, addresses: pairs, ..Self::default() }
    }

    /// Whether a program that only forwards between fixed pairs of connections can carry it.
    pub fn is_plain_pairs(&self) -> bool {
        self.senders == self.receivers
            && self.addresses == self.senders
            && !self.is_multicast
            && !self.is_anonymous
            && !self.is_request_response
            && !self.is_mixed
    }

    /// Copies that are received of each message sent.
    pub fn copies(&self) -> usize {
        if self.is_multicast { self.receivers / self.addresses } else { 1 }
    }

    /// # Errors
    /// What doesn't fit together.
    pub fn check(&self) -> Result<(), String> {
        let counts = [
            ("senders", self.senders),
            ("receivers", self.receivers),
            ("addresses", self.addresses),
            ("links per connection", self.links_per_connection),
            ("sessions per connection", self.sessions_per_connection),
        ];
        for (what, count) in counts {
            if !(1..=100_000).contains(&count) {
                return Err(format!("{what}: {count} is outside of 1 to 100000"));
            }
        }
        if self.addresses > self.senders.min(self.receivers) {
            return Err(
                "there are more addresses than senders or receivers: some would have nobody".to_owned()
            );
        }
        if self.body_bytes < super::frames::STAMP_BYTES {
            return Err("a body holds a time stamp: it has 8 bytes or more".to_owned());
        }
        if self.frame_bytes_max < 512 {
            return Err("a frame has 512 bytes or more".to_owned());
        }
        if self.credit == 0 || self.in_flight == 0 {
            return Err("without credit or messages in flight nothing is sent".to_owned());
        }
        if self.is_request_response
            && (self.senders != self.receivers || self.addresses != self.senders || self.is_multicast)
        {
            return Err(
                "requests go to one service each: as many senders, receivers and addresses".to_owned()
            );
        }
        if self.is_mixed && (self.senders != self.receivers || self.is_request_response) {
            return Err("connections with both have as many senders as receivers".to_owned());
        }
        if self.is_request_response && self.links_per_connection > 1 {
            return Err("requests have a connection for each client and each service".to_owned());
        }
        Ok(())
    }

    /// The connections to make, in this order. Where [`is_plain_pairs`](Self::is_plain_pairs), the
    /// connections 2k and 2k + 1 mirror each other.
    pub fn connections(&self) -> Vec<ConnectionPlan> {
        if self.is_request_response {
            return (0..self.senders).flat_map(|index| self.request_connections(index)).collect();
        }
        if self.is_mixed {
            let both = |index| {
                let address = index % self.addresses;
                vec![Purpose::Consume { address }, Purpose::Produce { address }]
            };
            return (0..self.senders)
                .map(|index| ConnectionPlan { sessions: 1, links: both(index) })
                .collect();
        }
        let producers = self.side(self.senders, |index| Purpose::Produce { address: index % self.addresses });
        let consumers =
            self.side(self.receivers, |index| Purpose::Consume { address: index % self.addresses });
        let (mut producers, mut consumers) = (producers.into_iter(), consumers.into_iter());
        let mut all = Vec::new();
        loop {
            let before = all.len();
            all.extend(producers.next());
            all.extend(consumers.next());
            if all.len() == before {
                return all;
            }
        }
    }

    fn side(&self, links: usize, purpose: impl Fn(usize) -> Purpose) -> Vec<ConnectionPlan> {
        let all: Vec<usize> = (0..links).collect();
        all.chunks(self.links_per_connection)
            .map(|indexes| ConnectionPlan {
                sessions: self.sessions_per_connection.min(indexes.len()),
                links: indexes.iter().map(|index| purpose(*index)).collect(),
            })
            .collect()
    }

    fn request_connections(&self, index: usize) -> [ConnectionPlan; 2] {
        [
            ConnectionPlan {
                sessions: 1,
                links: vec![
                    Purpose::ConsumeReplies { pair: index },
                    Purpose::Request { pair: index, address: index },
                ],
            },
            ConnectionPlan {
                sessions: 1,
                links: vec![Purpose::Serve { pair: index, address: index }, Purpose::Reply { pair: index }],
            },
        ]
    }
}

/// A connection to make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionPlan {
    /// Sessions, at least one.
    pub sessions: usize,
    /// The links; the i-th is on session i modulo sessions.
    pub links: Vec<Purpose>,
}

/// What a link is there for. Addresses and pairs are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Sends to the address.
    Produce { address: usize },
    /// Receives from the address.
    Consume { address: usize },
    /// Sends requests to the address.
    Request { pair: usize, address: usize },
    /// Receives the answers, from an address that the peer makes up.
    ConsumeReplies { pair: usize },
    /// Receives requests from the address, and answers each.
    Serve { pair: usize, address: usize },
    /// Sends the answers, each to where its request says.
    Reply { pair: usize },
}

impl Purpose {
    /// Whether the link sends.
    pub const fn is_sender(self) -> bool {
        match self {
            Self::Produce { .. } | Self::Request { .. } | Self::Reply { .. } => true,
            Self::Consume { .. } | Self::ConsumeReplies { .. } | Self::Serve { .. } => false,
        }
    }

    /// Whether the drive makes it send.
    pub const fn is_driven(self) -> bool {
        match self {
            Self::Produce { .. } | Self::Request { .. } => true,
            Self::Consume { .. } | Self::ConsumeReplies { .. } | Self::Serve { .. } | Self::Reply { .. } => {
                false
            }
        }
    }

    /// Whether what it receives is counted and its latency recorded.
    pub const fn is_measured(self) -> bool {
        match self {
            Self::Consume { .. } | Self::ConsumeReplies { .. } => true,
            Self::Produce { .. } | Self::Request { .. } | Self::Serve { .. } | Self::Reply { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionPlan, LoadSpec, Purpose};

    #[test]
    fn pairs_mirror_each_other() {
        let spec = LoadSpec { links_per_connection: 2, sessions_per_connection: 2, ..LoadSpec::pairs(3) };
        assert!(spec.is_plain_pairs() && spec.check().is_ok());
        let produce = |address| Purpose::Produce { address };
        let consume = |address| Purpose::Consume { address };
        assert_eq!(
            spec.connections(),
            [
                ConnectionPlan { sessions: 2, links: vec![produce(0), produce(1)] },
                ConnectionPlan { sessions: 2, links: vec![consume(0), consume(1)] },
                ConnectionPlan { sessions: 1, links: vec![produce(2)] },
                ConnectionPlan { sessions: 1, links: vec![consume(2)] },
            ]
        );
    }

    #[test]
    fn one_to_many_and_many_to_one_are_no_plain_pairs() {
        let fan_out = LoadSpec { receivers: 8, is_multicast: true, ..LoadSpec::default() };
        assert_eq!((fan_out.connections().len(), fan_out.copies()), (9, 8));
        let fan_in = LoadSpec { senders: 8, ..LoadSpec::default() };
        assert_eq!((fan_in.connections().len(), fan_in.copies()), (9, 1));
        assert!(!fan_out.is_plain_pairs() && !fan_in.is_plain_pairs());
        assert!(!LoadSpec { is_anonymous: true, ..LoadSpec::default() }.is_plain_pairs());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(LoadSpec { addresses: 2, ..LoadSpec::default() }.check().is_err());
        assert!(LoadSpec { body_bytes: 7, ..LoadSpec::default() }.check().is_err());
        assert!(LoadSpec { senders: 0, ..LoadSpec::default() }.check().is_err());
        let requests = LoadSpec { is_request_response: true, ..LoadSpec::pairs(2) };
        assert!(requests.check().is_ok());
        assert!(LoadSpec { receivers: 1, addresses: 1, ..requests }.check().is_err());
    }
}
