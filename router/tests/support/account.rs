//! What the peer keeps account of, and what it holds the router to.

use ringmain_codec::{Disposition, Performative, Role, Transfer};

use super::frame::Frame;
use super::link::{Link, LinkId};
use super::peer::Peer;
use super::session::Session;

impl Peer {
    pub(super) fn account_sent(&mut self, channel: u16, performative: &Performative<'_>) {
        match performative {
            Performative::Open(open) => {
                self.max_frame_size = open.max_frame_size;
                self.channel_max = open.channel_max;
            }
            Performative::Begin(begin) => {
                self.sessions.insert(channel, Session::new(begin));
            }
            Performative::End(_) => {
                if let Some(session) = self.sessions.get(&channel)
                    && session.router_channel.is_none()
                {
                    self.sessions.remove(&channel);
                }
            }
            Performative::Attach(attach) => {
                if let Some(session) = self.sessions.get_mut(&channel) {
                    session.links.entry(attach.handle).or_insert_with(|| Link::new(attach));
                }
            }
            Performative::Flow(flow) => {
                let Some(session) = self.sessions.get_mut(&channel) else { return };
                session.flow_sent(flow);
                if let Some(link) = flow.handle.and_then(|handle| session.links.get_mut(&handle)) {
                    link.flow_sent(flow);
                }
            }
            Performative::Transfer(transfer) => self.account_transfer_sent(channel, transfer),
            Performative::Disposition(disposition) => {
                if disposition.role == Role::Sender
                    && disposition.settled
                    && let Some(session) = self.sessions.get_mut(&channel)
                {
                    let last = disposition.last.unwrap_or(disposition.first);
                    session.unsettled.retain(|id| !(disposition.first..=last).contains(id));
                }
            }
            Performative::Detach(_) | Performative::Close(_) => {}
        }
    }

    fn account_transfer_sent(&mut self, channel: u16, transfer: &Transfer<'_>) {
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        session.next_outgoing_id = session.next_outgoing_id.wrapping_add(1);
        session.remote_incoming_window = session.remote_incoming_window.saturating_sub(1);
        let Some(link) = session.links.get_mut(&transfer.handle) else { return };
        let id = match link.sending {
            Some(id) => id,
            None => {
                link.delivery_count = link.delivery_count.wrapping_add(1);
                link.credit = link.credit.saturating_sub(1);
                let id = transfer.delivery_id.unwrap_or(session.next_delivery_id);
                session.next_delivery_id = id.wrapping_add(1);
                session.unsettled.insert(id);
                id
            }
        };
        link.sending = (transfer.more && !transfer.aborted).then_some(id);
        if transfer.settled == Some(true) || transfer.aborted {
            session.unsettled.remove(&id);
        }
    }

    pub(super) fn account_received(&mut self, frame: &Frame) {
        let Some((performative, payload)) = frame.performative() else { return };
        assert!(
            frame.channel <= self.channel_max,
            "a frame on channel {}, though the peer's channel-max is {}: {frame:?}",
            frame.channel,
            self.channel_max
        );
        let frames = self.frames;
        if let Performative::Begin(begin) = &performative
            && begin.remote_channel.is_none()
            && self.is_broker
        {
            let ours = self.answer_begin(frame.channel);
            self.sessions.get_mut(&ours).expect("it was begun").begun(frame.channel, begin);
            self.channels.insert(frame.channel, ours);
            return;
        }
        if let Performative::Begin(begin) = &performative {
            let ours = begin.remote_channel.expect("a begin that answers the peer's");
            let session = self.sessions.get_mut(&ours).expect("a begin that answers the peer's");
            session.begun(frame.channel, begin);
            self.channels.insert(frame.channel, ours);
            return;
        }
        match performative {
            Performative::Open(open) => {
                assert!(open.max_frame_size >= 512, "a max-frame-size below 512 is never legal (§2.7.1)");
                assert!(!open.container_id.is_empty(), "a container-id is mandatory (§2.7.1)");
                self.router_max_frame_size = open.max_frame_size;
            }
            Performative::Close(_) | Performative::Begin(_) => {}
            Performative::Attach(_)
            | Performative::Flow(_)
            | Performative::Transfer(_)
            | Performative::Disposition(_)
            | Performative::Detach(_)
            | Performative::End(_) => {
                let Some(&ours) = self.channels.get(&frame.channel) else {
                    panic!("a frame on channel {}, where no session is: {frame:?}", frame.channel);
                };
                self.account_in_session(ours, frame.channel, &performative, payload, frames);
            }
        }
    }

    fn account_in_session(
        &mut self,
        channel: u16,
        router_channel: u16,
        performative: &Performative<'_>,
        payload: &[u8],
        frame: u64,
    ) {
        let session = self.sessions.get_mut(&channel).expect("a session that is mapped");
        match performative {
            Performative::Attach(attach) => {
                let known = session.links.iter_mut().find(|(_, link)| {
                    link.name == attach.name && link.role != attach.role && link.router_handle.is_none()
                });
                let Some((&handle, link)) = known else {
                    if self.is_broker {
                        // The test answers it.
                        return;
                    }
                    panic!("an attach that answers none of the peer's: {attach:?}");
                };
                link.attached(attach);
                let before = session.handles.insert(attach.handle, handle);
                assert_eq!(before, None, "the router uses handle {} twice", attach.handle);
            }
            Performative::Flow(flow) => {
                session.flow_received(flow);
                if flow.handle.is_some() {
                    self.link_flows += 1;
                } else {
                    self.session_flows += 1;
                }
                if let Some(router_handle) = flow.handle {
                    let handle = session.handles.get(&router_handle).expect("a flow on an attached handle");
                    let link = session.links.get_mut(handle).expect("a link that is attached");
                    link.flow_received(flow);
                }
            }
            Performative::Transfer(transfer) => {
                let handle =
                    *session.handles.get(&transfer.handle).expect("a transfer on an attached handle");
                let first = session.links.get(&handle).is_some_and(|link| link.receiving.is_none());
                session.transfer_received(transfer, first);
                let link = session.links.get_mut(&handle).expect("a link that is attached");
                let id = LinkId { channel, handle };
                if let Some(delivery) = link.transfer_received(id, transfer, payload, frame) {
                    self.deliveries.push_back(delivery);
                }
            }
            Performative::Disposition(disposition) => {
                self.account_disposition(channel, disposition);
            }
            Performative::Detach(detach) => {
                let handle = session.handles.remove(&detach.handle).expect("a detach of an attached handle");
                session.links.remove(&handle);
            }
            Performative::End(_) => {
                self.channels.remove(&router_channel);
                session.router_channel = None;
            }
            Performative::Open(_) | Performative::Begin(_) | Performative::Close(_) => {}
        }
    }

    fn account_disposition(&mut self, channel: u16, disposition: &Disposition<'_>) {
        let session = self.sessions.get_mut(&channel).expect("a session that is mapped");
        if disposition.role == Role::Sender {
            return;
        }
        let mut id = disposition.first;
        loop {
            assert!(
                session.unsettled.contains(&id),
                "the router speaks of delivery {id}, which isn't unsettled: {disposition:?}"
            );
            if disposition.settled {
                session.unsettled.remove(&id);
                self.outcomes.count(disposition.state.as_ref());
            }
            if id == disposition.last.unwrap_or(disposition.first) {
                return;
            }
            id = id.wrapping_add(1);
        }
    }
}
