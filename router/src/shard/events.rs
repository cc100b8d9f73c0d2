//! What the engine reports, and who deals with it.

use super::mailbox::DialledEvent;
use super::slots::{Origin, Slot};
use super::{Core, failover};
use crate::base::id::{Channel, ConnectionKey, LinkKey};
use crate::engine::{Cause, Event, Fault};
use crate::log;
use crate::log::{Level, Module};
use ringmain_codec::Condition;

impl Core {
    /// Deals with one event of a connection.
    #[inline]
    pub(super) fn handle_event(&mut self, key: ConnectionKey, event: Event<'_>) {
        match event {
            // These come with what was received only, which has marked the connection.
            Event::Transfer(arrived) => return self.transfer(key, &arrived),
            Event::Disposition(disposed) => return self.disposition(key, disposed),
            Event::Flow { link, user } => {
                if let Some(user) = user {
                    self.receiver_flow(LinkKey(user));
                }
                self.window_opened(key, link.channel);
            }
            Event::SenderFlow { link, user } => {
                if let Some(user) = user {
                    self.credit_due(LinkKey(user));
                }
                self.window_opened(key, link.channel);
            }
            Event::WindowOpened(channel) => self.window_opened(key, channel),
            Event::Opened(open) => self.opened(key, &open),
            Event::Begun(channel) => self.session_begun(key, channel),
            Event::Sasl(duty) => self.take_duty(key, duty),
            Event::AttachRequested { link, attach } => self.attach_requested(key, link, &attach),
            Event::Attached { link, attach } => self.auto_link_answered(key, link, &attach),
            Event::Detached { link, user, cause, .. } => {
                let Some(slot) = self.connections.get_mut(key) else { return };
                let unsettled = slot.engine.take_unsettled_of(link);
                if let Some(user) = user {
                    self.link_lost(LinkKey(user), unsettled, &cause);
                }
                if let Some(slot) = self.connections.get_mut(key) {
                    slot.engine.clear_link(link);
                }
                if matches!(&cause, Cause::Ours(fault) if fault.condition == Condition::MESSAGE_SIZE_EXCEEDED)
                {
                    self.message_too_large(key);
                }
            }
            Event::Ended { channel, cause } => self.session_lost(key, channel, &cause),
            Event::Closed(cause) => self.connection_lost(key, &cause),
        }
        self.mark_dirty(key);
    }

    fn opened(&mut self, key: ConnectionKey, open: &ringmain_codec::Open<'_>) {
        let Some(slot) = self.connections.get_mut(key) else { return };
        slot.container = open.container_id.into();
        slot.half_open = None;
        if !self.admit(key, open.hostname) {
            return;
        }
        let Some(slot) = self.connections.get_mut(key) else { return };
        slot.engine.send_open(&mut slot.out);
        if slot.is_internal() {
            return;
        }
        slot.opened_at = self.now;
        slot.properties = open.properties.map_or_else(Box::default, |properties| properties.encoded().into());
        log!(
            Module::RouterCore,
            Level::Info,
            "[C{}] Connection Opened: dir={} host={} vhost={} encrypted={} auth={} user={} container_id={} props={}",
            slot.id,
            slot.direction(),
            slot.host(),
            open.hostname.unwrap_or(""),
            slot.encryption(),
            slot.mechanism().unwrap_or("no"),
            slot.user(),
            open.container_id,
            open.properties.map_or_else(|| "{}".to_owned(), |properties| properties.to_string())
        );
        if !self.tell_opened(key, open) {
            self.hang_up(key);
            return;
        }
        self.attach_auto_links(key);
    }

    /// Tells who dialled a connection that it is open. `false`: nobody wants it any more.
    fn tell_opened(&mut self, key: ConnectionKey, open: &ringmain_codec::Open<'_>) -> bool {
        let Some(slot) = self.connections.get(key) else { return true };
        let Some(dialler) = &slot.dialler else { return true };
        let opened = DialledEvent::Opened {
            connection: key,
            id: slot.id,
            mechanism: slot.mechanism(),
            encryption: slot.encryption(),
            container: slot.container.clone(),
            failover: open.properties.and_then(|properties| failover::servers(&properties)),
        };
        dialler.try_send(opened).is_ok()
    }

    /// Closes a connection whose connector is gone.
    pub(super) fn hang_up(&mut self, key: ConnectionKey) {
        let now = self.now;
        let Some(slot) = self.connections.get_mut(key).filter(|slot| !slot.over) else { return };
        let fault = Fault::new(Condition::CONNECTION_FORCED, "the connector was deleted");
        slot.engine.send_close(Some(&fault), now, &mut slot.out);
        self.connection_lost(key, &Cause::Ours(fault));
        self.mark_dirty(key);
    }

    /// Closes a connection before it is known who its peer is. The reason is logged.
    pub(super) fn turn_away(&mut self, key: ConnectionKey, reason: &'static str) {
        let now = self.now;
        let Some(slot) = self.connections.get_mut(key).filter(|slot| !slot.over) else { return };
        slot.engine.peer_ended(now);
        let fault = Fault::new(Condition::RESOURCE_LIMIT_EXCEEDED, reason);
        self.connection_lost(key, &Cause::Ours(fault));
        self.mark_dirty(key);
    }

    fn window_opened(&mut self, key: ConnectionKey, channel: Channel) {
        if self.connections.get_mut(key).is_some_and(|slot| slot.engine.take_window_opened(channel)) {
            self.unblock(key);
        }
    }

    /// Deals with the links of a session that is gone.
    pub(super) fn session_lost(&mut self, key: ConnectionKey, channel: Channel, cause: &Cause<'_>) {
        let Some(slot) = self.connections.get_mut(key) else { return };
        if let Cause::Ours(fault) = cause
            && !slot.over
        {
            log!(
                Module::RouterCore,
                Level::Warning,
                "[C{}] Session on channel {} ended because of its peer at {}: {fault}",
                slot.id,
                channel.0,
                slot.origin
            );
        }
        let mut unsettled = slot.engine.take_all_unsettled(channel);
        for (link, user) in slot.engine.users(channel) {
            if let Some(user) = user {
                let unsettled = unsettled.remove(&link.handle).unwrap_or_default();
                self.link_lost(LinkKey(user), unsettled, cause);
            }
        }
        if let Some(slot) = self.connections.get_mut(key) {
            slot.engine.clear_session(channel);
        }
    }

    /// Deals with the sessions of a connection that is over, whether by a close or because its socket
    /// is gone. Calls after the first do nothing.
    pub(super) fn connection_lost(&mut self, key: ConnectionKey, cause: &Cause<'_>) {
        let Some(slot) = self.connections.get_mut(key) else { return };
        if std::mem::replace(&mut slot.over, true) {
            return;
        }
        slot.tell_ended(|| cause.describe().unwrap_or_else(|| "closed by the peer".to_owned()));
        let is_open_received = slot.engine.is_open_received();
        match cause {
            // Who dialled it tells why it came to nothing.
            Cause::Ours(_) if slot.listener.dialled.is_some() && !is_open_received => {}
            Cause::Ours(fault) if fault.condition != Condition::CONNECTION_FORCED => log!(
                Module::Server,
                Level::Warning,
                "[C{}] Connection {} {} closed because of its peer: {fault}",
                slot.id,
                slot.preposition(),
                slot.host()
            ),
            Cause::Ours(_) | Cause::Peer(_) => {}
        }
        slot.engine.silence();
        for channel in slot.engine.channels() {
            self.session_lost(key, channel, cause);
        }
        self.forget_auto_links_of(key);
        if let Some(slot) = self.connections.get_mut(key) {
            // Whoever comes in its place needn't wait until the socket is closed.
            (slot.governed, slot.counted) = (None, None);
        }
        if let Some(slot) = self.connections.get(key)
            && slot.engine.is_open_received()
            && !slot.is_internal()
        {
            log!(Module::RouterCore, Level::Info, "[C{}] Connection Closed", slot.id);
        }
    }

    /// Deals with a socket whose peer sends nothing more.
    pub(super) fn receive_ended(&mut self, key: ConnectionKey, error: Option<&std::io::Error>) {
        let now = self.now;
        let Some(slot) = self.connections.get_mut(key) else { return };
        slot.peer_ended = true;
        slot.engine.peer_ended(now);
        self.mark_dirty(key);
        let Some(slot) = self.connections.get(key).filter(|slot| !slot.over) else { return };
        if slot.origin == Origin::Agent {
            // With it goes the management node; the control thread says why.
            self.connection_lost(key, &Cause::Peer(None));
            return;
        }
        // A socket that closes without an open is a port probe or a client that changed its mind.
        // Of one that we dialled, who dialled it tells.
        if slot.engine.is_open_received() && slot.listener.dialled.is_none() {
            let reason = error.map_or_else(|| "closed without an AMQP close".to_owned(), ToString::to_string);
            log!(
                Module::Server,
                Level::Info,
                "[C{}] Connection from {} (container '{}') failed: {reason}",
                slot.id,
                slot.origin,
                slot.container
            );
        }
        if let Some(slot) = self.connections.get_mut(key) {
            slot.tell_ended(|| {
                error.map_or_else(
                    || "the peer closed the socket without an AMQP close".to_owned(),
                    ToString::to_string,
                )
            });
        }
        self.connection_lost(key, &Cause::Peer(None));
    }

    /// Closes a connection whose peer doesn't take what others have to tell it.
    pub(super) fn close_overloaded(&mut self, key: ConnectionKey) {
        let now = self.now;
        let fault =
            Fault::new(Condition::RESOURCE_LIMIT_EXCEEDED, "too much waits to be sent on this connection");
        let Some(slot) = self.connections.get_mut(key).filter(|slot| !slot.over) else { return };
        slot.out.clear();
        slot.engine.send_close(Some(&fault), now, &mut slot.out);
        self.connection_lost(key, &Cause::Ours(fault));
    }

    /// Closes a connection because management says so. Tells whether it was there.
    pub(super) fn close_for_management(&mut self, key: ConnectionKey) -> bool {
        let now = self.now;
        let Some(slot) = self.connections.get_mut(key).filter(|slot| !slot.is_internal() && !slot.over)
        else {
            return false;
        };
        let fault =
            Fault::new(Condition::CONNECTION_FORCED, "Connection forced-closed by management request");
        log!(Module::RouterCore, Level::Info, "[C{}] Connection closed by a management request", slot.id);
        slot.engine.send_close(Some(&fault), now, &mut slot.out);
        self.connection_lost(key, &Cause::Ours(fault));
        self.mark_dirty(key);
        true
    }

    /// Closes all connections because the router stops.
    pub(super) fn close_all(&mut self, fault: &Fault) {
        let now = self.now;
        for key in self.connections.keys() {
            if self.connections.get(key).is_some_and(Slot::is_neighbour) {
                continue;
            }
            if let Some(slot) = self.connections.get_mut(key) {
                slot.engine.send_close(Some(fault), now, &mut slot.out);
            }
            self.connection_lost(key, &Cause::Ours(fault.clone()));
            self.mark_dirty(key);
        }
    }
}
