//! A link as the scripted peer keeps account of it (AMQP 1.0 §2.6).

use ringmain_codec::{Attach, DeliveryState, Flow, Role, Transfer};

/// A link of a peer, by the peer's own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId {
    /// The peer's channel.
    pub channel: u16,
    /// The peer's handle.
    pub handle: u32,
}

/// The state of a link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The peer's role.
    pub role: Role,
    /// The router's handle, once its attach has come.
    pub router_handle: Option<u32>,
    /// The sender's delivery-count, as the peer knows it.
    pub delivery_count: u32,
    /// As sender: the credit that is left, by the formula of §2.6.7.
    pub credit: u32,
    /// As sender: what the router's last flow said of drain.
    pub drain: bool,
    /// As receiver: the delivery-count that the router may never go beyond, the farthest ever granted.
    pub limit: u32,
    /// As receiver: whether the payload of deliveries is kept.
    pub keeps_payload: bool,
    /// As receiver: the delivery of which not all has come.
    pub receiving: Option<Delivery>,
    /// As sender: the delivery of which not all has gone.
    pub sending: Option<u32>,
}

/// A delivery that came.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The link it came on.
    pub link: LinkId,
    /// Its delivery-id.
    pub id: u32,
    /// Its delivery-tag.
    pub tag: Vec<u8>,
    /// Its message-format.
    pub message_format: u32,
    /// Whether any of its frames said that it is settled.
    pub settled: bool,
    /// Whether the router gave it up.
    pub aborted: bool,
    /// The message.
    pub payload: Vec<u8>,
    /// How many bytes the message has, kept or not.
    pub bytes: u64,
    /// How many frames it came in.
    pub frames: usize,
    /// The number of its last frame among all that came.
    pub last_frame: u64,
}

/// How many deliveries of a peer ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the specification's outcomes by name")]
pub struct Outcomes {
    pub accepted: usize,
    pub rejected: usize,
    pub released: usize,
    pub modified: usize,
    /// Settled without any of those.
    pub none: usize,
}

impl Outcomes {
    /// Counts one more.
    pub fn count(&mut self, state: Option<&DeliveryState<'_>>) {
        match state {
            Some(DeliveryState::Accepted) => self.accepted += 1,
            Some(DeliveryState::Rejected(_)) => self.rejected += 1,
            Some(DeliveryState::Released) => self.released += 1,
            Some(DeliveryState::Modified(_)) => self.modified += 1,
            Some(
                DeliveryState::Received(_)
                | DeliveryState::Declared(_)
                | DeliveryState::Transactional(_)
                | DeliveryState::Other(_),
            )
            | None => self.none += 1,
        }
    }

    /// All of them.
    pub fn total(&self) -> usize {
        self.accepted + self.rejected + self.released + self.modified + self.none
    }
}

/// How far `a` is ahead of `b`, in serial arithmetic (RFC 1982); negative if it is behind.
pub fn ahead(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b).cast_signed()
}

impl Link {
    pub(super) fn new(attach: &Attach<'_>) -> Self {
        let initial = attach.initial_delivery_count.unwrap_or(0);
        Self {
            name: attach.name.to_owned(),
            role: attach.role,
            router_handle: None,
            delivery_count: initial,
            credit: 0,
            drain: false,
            limit: initial,
            keeps_payload: true,
            receiving: None,
            sending: None,
        }
    }

    /// The router's attach has come.
    pub(super) fn attached(&mut self, attach: &Attach<'_>) {
        assert_ne!(attach.role, self.role, "the router answers link '{}' in the peer's own role", self.name);
        self.router_handle = Some(attach.handle);
        if self.role == Role::Receiver {
            // §2.7.3: mandatory where the role is sender. What was granted before counts from it.
            let initial =
                attach.initial_delivery_count.expect("a sender's attach has an initial-delivery-count");
            let granted = self.limit.wrapping_sub(self.delivery_count);
            self.delivery_count = initial;
            self.limit = initial.wrapping_add(granted);
        }
    }

    /// The peer has sent a flow.
    pub(super) fn flow_sent(&mut self, flow: &Flow<'_>) {
        match self.role {
            Role::Receiver => {
                if let Some(credit) = flow.link_credit {
                    let count = flow.delivery_count.unwrap_or(self.delivery_count);
                    let limit = count.wrapping_add(credit);
                    if ahead(limit, self.limit) > 0 {
                        self.limit = limit;
                    }
                }
            }
            Role::Sender => {
                if let Some(count) = flow.delivery_count {
                    self.delivery_count = count;
                }
                if let Some(credit) = flow.link_credit {
                    self.credit = credit;
                }
            }
        }
    }

    /// A flow of the router has come.
    pub(super) fn flow_received(&mut self, flow: &Flow<'_>) {
        match self.role {
            Role::Sender => {
                if let Some(credit) = flow.link_credit {
                    let count = flow.delivery_count.unwrap_or(0);
                    let limit = count.wrapping_add(credit);
                    self.credit = u32::try_from(ahead(limit, self.delivery_count)).unwrap_or(0);
                }
                self.drain = flow.drain;
            }
            Role::Receiver => {
                let count = flow.delivery_count.expect("a sender's flow has a delivery-count (§2.7.4)");
                assert!(
                    ahead(count, self.delivery_count) >= 0,
                    "the router's delivery-count went back, from {} to {count}",
                    self.delivery_count
                );
                assert!(
                    ahead(self.limit, count) >= 0,
                    "the router's delivery-count is beyond what was granted"
                );
                self.delivery_count = count;
            }
        }
    }

    /// A transfer of the router has come. Returns its delivery if it is complete.
    pub(super) fn transfer_received(
        &mut self,
        id: LinkId,
        transfer: &Transfer<'_>,
        payload: &[u8],
        frame: u64,
    ) -> Option<Delivery> {
        assert_eq!(self.role, Role::Receiver, "a transfer came on a link whose sender the peer is");
        let mut delivery = self.receiving.take().unwrap_or_else(|| {
            assert!(
                ahead(self.limit, self.delivery_count) > 0,
                "a delivery beyond the credit: delivery-count {}, limit {}",
                self.delivery_count,
                self.limit
            );
            self.delivery_count = self.delivery_count.wrapping_add(1);
            let tag = transfer.delivery_tag.expect("the first frame has a delivery-tag (§2.7.5)");
            assert!(tag.len() <= 32, "a delivery-tag has at most 32 bytes (§2.8.7)");
            Delivery {
                link: id,
                id: transfer.delivery_id.expect("the first frame has a delivery-id (§2.7.5)"),
                tag: tag.to_vec(),
                message_format: transfer
                    .message_format
                    .expect("the first frame has a message-format (§2.7.5)"),
                settled: false,
                aborted: false,
                payload: Vec::new(),
                bytes: 0,
                frames: 0,
                last_frame: 0,
            }
        });
        assert!(
            transfer.delivery_id.is_none_or(|other| other == delivery.id),
            "delivery {} was not complete when another one came on its link",
            delivery.id
        );
        delivery.settled |= transfer.settled == Some(true);
        delivery.aborted |= transfer.aborted;
        delivery.frames += 1;
        delivery.last_frame = frame;
        delivery.bytes += payload.len() as u64;
        if self.keeps_payload {
            delivery.payload.extend_from_slice(payload);
        }
        if transfer.more && !transfer.aborted {
            self.receiving = Some(delivery);
            return None;
        }
        Some(delivery)
    }
}
