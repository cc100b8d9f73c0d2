//! Listeners, connectors and auto-links of the running router: made, deleted, and asked what has become of them.
//!
//! The configuration file makes them at start, management while the router runs. Both check what they ask for
//! first; what is made here only has to do.

use super::config::{
    AutoLinkConfig, ConnectorConfig, Container, Direction, ListenerConfig, SslProfileConfig,
};
use super::connectors::{Connector, ConnectorStatus};
use super::handle::ShardsHandle;
use super::http::Http;
use super::router::{bind, listener_settings};
use super::tls::TlsProfiles;
use super::users::RouterUsers;
use crate::base::id::{ListenerId, ShardId};
use crate::log;
use crate::log::{Level, Module};
use crate::shard::auto_links::{AutoLink, AutoLinkDirection, AutoLinkPeer, AutoLinkStatus};
use crate::shard::mailbox::Message;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The shard that accepts connections for all.
const ACCEPTING_SHARD: ShardId = ShardId(0);

/// One of the entities that are made here. No number is given twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EndpointId(u64);

/// The listeners, connectors and auto-links of the router. Clones are the same ones; they stay on the control
/// thread.
#[derive(Clone)]
pub struct Endpoints(Rc<Inner>);

struct Inner {
    router_id: String,
    shards: ShardsHandle,
    http: Http,
    users: RouterUsers,
    tls: TlsProfiles,
    next: Cell<u64>,
    next_listener: Cell<u32>,
    listeners: RefCell<Vec<(EndpointId, Listener)>>,
    connectors: RefCell<Vec<(EndpointId, Connector)>>,
    auto_links: RefCell<Vec<(EndpointId, AutoLinkConfig, Arc<AutoLink>)>>,
}

struct Listener {
    id: ListenerId,
    config: ListenerConfig,
    addresses: Vec<SocketAddr>,
}

impl Endpoints {
    pub(super) fn new(
        router_id: &str,
        shards: ShardsHandle,
        http: Http,
        users: RouterUsers,
        tls: TlsProfiles,
    ) -> Self {
        Self(Rc::new(Inner {
            router_id: router_id.to_owned(),
            shards,
            http,
            users,
            tls,
            next: Cell::new(0),
            next_listener: Cell::new(0),
            listeners: RefCell::default(),
            connectors: RefCell::default(),
            auto_links: RefCell::default(),
        }))
    }

    fn next_id(&self) -> EndpointId {
        let id = self.0.next.get();
        self.0.next.set(id + 1);
        EndpointId(id)
    }

    /// Takes over a listener that was there when the shards started.
    pub(super) fn add_started_listener(
        &self,
        id: ListenerId,
        config: ListenerConfig,
        addresses: Vec<SocketAddr>,
    ) {
        self.0.next_listener.set(self.0.next_listener.get().max(id.0 + 1));
        let listener = Listener { id, config, addresses };
        self.0.listeners.borrow_mut().push((self.next_id(), listener));
    }

    /// Binds the sockets of a listener and accepts connections on them.
    ///
    /// # Errors
    /// Why it can't: a sentence for the user. Nothing has changed then.
    pub fn create_listener(&self, config: ListenerConfig) -> Result<EndpointId, String> {
        let Inner { router_id, shards, users, tls, .. } = &*self.0;
        let settings = listener_settings(&config, router_id, shards.count(), &users.store(), tls)?;
        let sockets = bind(&config)?;
        let number = self.0.next_listener.get();
        let next = number.checked_add(1).ok_or("too many listeners have been made")?;
        self.0.next_listener.set(next);
        let listener = ListenerId(number);
        // Every shard knows it before the first connection can come.
        let settings = Arc::new(settings);
        self.0.shards.send_all(|| Message::AddListener { listener, settings: settings.clone() });
        let addresses: Vec<_> = sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect();
        match &config.http {
            None => {
                for socket in sockets {
                    self.0.shards.send(ACCEPTING_SHARD, Message::Listen { listener, socket });
                }
            }
            Some(http) => {
                let tls = self.0.tls.of_listener(&config)?;
                if let Err(reason) = self.0.http.serve(listener, http, tls, sockets) {
                    self.0.shards.send_all(|| Message::RemoveListener(listener));
                    return Err(reason);
                }
            }
        }
        for address in &addresses {
            log!(Module::Server, Level::Notice, "Listening{} on {address}", for_http(&config));
        }
        let id = self.next_id();
        self.0.listeners.borrow_mut().push((id, Listener { id: listener, config, addresses }));
        Ok(id)
    }

    /// Accepts nobody on a listener any more. Its connections stay. Tells whether it was there.
    pub fn delete_listener(&self, id: EndpointId) -> bool {
        let Some((_, listener)) = take(&mut self.0.listeners.borrow_mut(), |(other, _)| *other == id) else {
            return false;
        };
        self.0.http.stop_listening(listener.id);
        self.0.shards.send_all(|| Message::RemoveListener(listener.id));
        for address in &listener.addresses {
            log!(Module::Server, Level::Notice, "Not listening on {address} any more");
        }
        true
    }

    /// The listeners, in the order in which they were made, and the addresses where they listen.
    #[must_use]
    pub fn listeners(&self) -> Vec<(EndpointId, ListenerConfig, Vec<SocketAddr>)> {
        let of = |(id, listener): &(EndpointId, Listener)| {
            (*id, listener.config.clone(), listener.addresses.clone())
        };
        self.0.listeners.borrow().iter().map(of).collect()
    }

    /// Dials, and keeps dialling. What goes wrong is in the connector's status.
    pub fn create_connector(&self, config: ConnectorConfig) -> EndpointId {
        let connector = Connector::start(config, &self.0.router_id, self.0.shards.clone(), &self.0.tls);
        let id = self.next_id();
        self.0.connectors.borrow_mut().push((id, connector));
        id
    }

    /// Ends a connector and its connection. Tells whether it was there.
    pub fn delete_connector(&self, id: EndpointId) -> bool {
        let taken = take(&mut self.0.connectors.borrow_mut(), |(other, _)| *other == id);
        let was_there = taken.is_some();
        if let Some((_, connector)) = taken {
            log!(Module::Server, Level::Notice, "Connector to {} deleted", connector.config().host_port());
            connector.delete();
        }
        was_there
    }

    /// The connectors, in the order in which they were made, and what has become of them.
    #[must_use]
    pub fn connectors(&self) -> Vec<(EndpointId, ConnectorConfig, ConnectorStatus)> {
        let of =
            |(id, connector): &(EndpointId, Connector)| (*id, connector.config().clone(), connector.status());
        self.0.connectors.borrow().iter().map(of).collect()
    }

    /// Attaches a link wherever a connection is open that it is for, now and later.
    ///
    /// # Errors
    /// It asks for what this version can't do: a sentence for the user.
    pub fn create_auto_link(&self, config: AutoLinkConfig) -> Result<EndpointId, String> {
        if config.is_fallback {
            return Err("'fallback' comes with a later version".to_owned());
        }
        let direction = match config.direction {
            Direction::In => AutoLinkDirection::In,
            Direction::Out => AutoLinkDirection::Out,
        };
        let name = config.name.clone().or_else(|| config.address.clone());
        let auto_link = Arc::new(AutoLink::new(
            name.or_else(|| config.external_address.clone()).unwrap_or_default(),
            direction,
            config.address.clone(),
            config.external_address.clone(),
            config.phase,
            config.container.clone().map(|container| match container {
                Container::Id(id) => AutoLinkPeer::Container(id),
                Container::Connection(name) => AutoLinkPeer::Connection(name),
            }),
        ));
        self.0.shards.send_all(|| Message::AddAutoLink(auto_link.clone()));
        let id = self.next_id();
        self.0.auto_links.borrow_mut().push((id, config, auto_link));
        Ok(id)
    }

    /// Detaches the links of an auto-link. Tells whether it was there.
    pub fn delete_auto_link(&self, id: EndpointId) -> bool {
        let taken = take(&mut self.0.auto_links.borrow_mut(), |(other, ..)| *other == id);
        let Some((_, _, auto_link)) = taken else { return false };
        self.0.shards.send_all(|| Message::RemoveAutoLink(auto_link.clone()));
        true
    }

    /// The auto-links, in the order in which they were made, and what has become of them.
    #[must_use]
    pub fn auto_links(&self) -> Vec<(EndpointId, AutoLinkConfig, AutoLinkStatus)> {
        let of = |(id, config, auto_link): &(EndpointId, AutoLinkConfig, Arc<AutoLink>)| {
            (*id, config.clone(), auto_link.status())
        };
        self.0.auto_links.borrow().iter().map(of).collect()
    }

    /// Reads the files again that sections name: of users, certificates and keys.
    pub(super) fn reread_files(&self) {
        self.0.users.reread();
        self.0.tls.reread(false, &self.0.shards);
    }

    /// The profiles of TLS.
    pub(super) fn tls(&self) -> &TlsProfiles {
        &self.0.tls
    }

    /// Makes a profile of TLS of another section of the same name.
    ///
    /// # Errors
    /// Its files can't be used, and everything is as it was: a sentence for the user.
    pub(super) fn set_profile(&self, config: SslProfileConfig) -> Result<(), String> {
        self.0.tls.set(config, &self.0.shards)
    }

    /// Dials no more, since the router stops.
    pub(super) fn stop(&self) {
        self.0.connectors.borrow().iter().for_each(|(_, connector)| connector.stop());
    }
}

/// What a listener's log lines say behind `Listening`.
pub(super) fn for_http(config: &ListenerConfig) -> &'static str {
    if config.http.is_some() { " for HTTP" } else { "" }
}

/// Takes the entry out that `is_it` holds for.
fn take<T>(entries: &mut Vec<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    let place = entries.iter().position(is_it)?;
    Some(entries.remove(place))
}
