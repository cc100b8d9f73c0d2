//! A session as the scripted peer keeps account of it (AMQP 1.0 §2.5).

use std::collections::{BTreeMap, BTreeSet};

use ringmain_codec::{Begin, Flow, Transfer};

use super::link::{Link, ahead};

/// The state of a session.
#[derive(Clone, Debug)]
pub struct Session {
    /// The router's channel, once its begin has come.
    pub router_channel: Option<u16>,
    /// The highest handle that the router takes.
    pub router_handle_max: u32,
    /// The transfer-id of the peer's next frame.
    pub next_outgoing_id: u32,
    /// The transfer-id that the router will use next, as far as the peer knows it.
    pub next_incoming_id: u32,
    /// How many more frames the router may send.
    pub incoming_window: u32,
    /// How many more frames the peer may send.
    pub remote_incoming_window: u32,
    /// The delivery-id of the peer's next delivery.
    pub next_delivery_id: u32,
    /// The delivery-id of the router's next delivery; it may begin with any.
    pub next_incoming_delivery_id: Option<u32>,
    /// The links, by the peer's handle.
    pub links: BTreeMap<u32, Link>,
    /// The peer's handles, by the router's.
    pub handles: BTreeMap<u32, u32>,
    /// The peer's deliveries that aren't settled.
    pub unsettled: BTreeSet<u32>,
}

impl Session {
    pub(super) fn new(begin: &Begin<'_>) -> Self {
        Self {
            router_channel: None,
            router_handle_max: u32::MAX,
            next_outgoing_id: begin.next_outgoing_id,
            next_incoming_id: 0,
            incoming_window: begin.incoming_window,
            remote_incoming_window: 0,
            next_delivery_id: 0,
            next_incoming_delivery_id: None,
            links: BTreeMap::new(),
            handles: BTreeMap::new(),
            unsettled: BTreeSet::new(),
        }
    }

    /// The router's begin has come.
    pub(super) fn begun(&mut self, router_channel: u16, begin: &Begin<'_>) {
        self.router_channel = Some(router_channel);
        self.router_handle_max = begin.handle_max;
        self.next_incoming_id = begin.next_outgoing_id;
        self.remote_incoming_window = begin.incoming_window;
    }

    /// What a flow of the peer says of the session.
    pub fn flow(&self) -> Flow<'static> {
        Flow {
            next_incoming_id: self.router_channel.map(|_| self.next_incoming_id),
            incoming_window: self.incoming_window,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: u32::MAX >> 1,
            ..Flow::default()
        }
    }

    /// The peer has sent a flow: the router may send so much from now on. What an earlier flow allowed
    /// may still be under way, so a window never shrinks here.
    pub(super) fn flow_sent(&mut self, flow: &Flow<'_>) {
        let from = flow.next_incoming_id.unwrap_or(self.next_incoming_id);
        let limit = from.wrapping_add(flow.incoming_window);
        let window = u32::try_from(ahead(limit, self.next_incoming_id)).unwrap_or(0);
        self.incoming_window = self.incoming_window.max(window);
    }

    /// A flow of the router has come: §2.5.6 gives the formula.
    pub(super) fn flow_received(&mut self, flow: &Flow<'_>) {
        let from = flow.next_incoming_id.unwrap_or(0);
        let limit = from.wrapping_add(flow.incoming_window);
        self.remote_incoming_window = u32::try_from(ahead(limit, self.next_outgoing_id)).unwrap_or(0);
    }

    /// A transfer of the router has come; `first` of its delivery or not.
    pub(super) fn transfer_received(&mut self, transfer: &Transfer<'_>, first: bool) {
        assert!(self.incoming_window > 0, "a transfer came though the peer's incoming-window was used up");
        self.incoming_window -= 1;
        self.next_incoming_id = self.next_incoming_id.wrapping_add(1);
        if first {
            let id = transfer.delivery_id.expect("the first frame has a delivery-id (§2.7.5)");
            if let Some(expected) = self.next_incoming_delivery_id {
                assert_eq!(
                    id, expected,
                    "delivery-ids follow the order of first frames in a session (§2.6.12)"
                );
            }
            self.next_incoming_delivery_id = Some(id.wrapping_add(1));
        }
    }
}
