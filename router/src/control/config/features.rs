//! What a file may ask for that this version doesn't do yet.
//!
//! The schema knows every attribute of `qdrouterd`, so that files and management are checked whole. An
//! attribute or section that belongs to one of these features parses like any other; one warning a feature
//! says that it is without effect, and what happens instead. **A feature that has come is taken out of
//! [`NOT_SERVED`]**: nothing else says that it's missing.

/// A part of `qdrouterd`'s abilities that a file asks for with attributes of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Feature {
    /// Routers that know one another: modes interior and edge, roles inter-router and edge.
    Network,
    /// Connections that the router opens.
    Connectors,
    /// Role route-container.
    RouteContainers,
    /// Section `autoLink`.
    AutoLinks,
    /// Section `linkRoute`.
    LinkRoutes,
    /// Sections `exchange` and `binding`.
    Exchanges,
    /// Phases of addresses: `waypoint`, `ingressPhase`, `egressPhase`, `phase`.
    Waypoints,
    /// `enableFallback`, `fallback`.
    Fallback,
    /// Section `sslProfile` and all that refers to it.
    Tls,
    /// Mechanisms and databases that only the Cyrus SASL library has.
    Cyrus,
    /// Section `authServicePlugin`.
    AuthService,
    /// `enableVhostPolicy`, sections `vhost`, global limits.
    Policy,
    /// `allowAdminStatusUpdate: no`.
    AdminStatusUpdate,
    /// `multiTenant`.
    MultiTenancy,
    /// `failoverUrls` of a listener.
    FailoverUrls,
    /// `http` of a listener.
    Http,
    /// `messageLoggingComponents`.
    MessageLog,
    /// `timestampFormat`.
    TimestampFormat,
    /// TCP carried over AMQP.
    TcpAdaptor,
    /// HTTP carried over AMQP.
    HttpAdaptor,
    /// Section `console`.
    Console,
    /// HTTP proxies for connectors.
    Proxies,
    /// What skupper-router knows of sites and of networks of networks.
    Sites,
}

/// The features that this version doesn't have, and what happens where a file asks for one.
pub const NOT_SERVED: &[(Feature, &str)] = &[
    (Feature::Network, "this router works on its own, and opens no such listener or connector"),
    (
        Feature::LinkRoutes,
        "links to these addresses end at this router, and messages go straight to receivers",
    ),
    (Feature::Exchanges, "messages to such an address go to its own receivers only"),
    (Feature::Fallback, "messages that reach no receiver are released"),
    (
        Feature::Cyrus,
        "the mechanisms are ANONYMOUS, EXTERNAL, PLAIN and SCRAM-SHA-1, -256 and -512, with the users of 'usersFile' \
         ('ringmain user')",
    ),
    (Feature::AuthService, "nobody is asked who clients are"),
    (
        Feature::AdminStatusUpdate,
        "whoever may send to $management may close connections: leave it out of 'targets'",
    ),
    (Feature::MultiTenancy, "all clients share one address space"),
    (Feature::TcpAdaptor, "the section is without effect"),
    (Feature::HttpAdaptor, "the section is without effect; no router of this kind has it any more"),
    (Feature::Console, "the section is without effect; no router of this kind has it any more"),
    (Feature::Proxies, "the section is without effect"),
    (Feature::Sites, "it is without effect"),
];

impl Feature {
    /// What warnings and the documentation call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "a network of routers",
            Self::Connectors => "connectors",
            Self::RouteContainers => "role route-container",
            Self::AutoLinks => "auto-links",
            Self::LinkRoutes => "link routes",
            Self::Exchanges => "exchanges",
            Self::Waypoints => "waypoints and phases",
            Self::Fallback => "fallback destinations",
            Self::Tls => "TLS",
            Self::Cyrus => "what the Cyrus SASL library alone has",
            Self::AuthService => "an authentication service",
            Self::Policy => "policy",
            Self::AdminStatusUpdate => "a policy for closing connections by management",
            Self::MultiTenancy => "multi-tenancy",
            Self::FailoverUrls => "failover URLs",
            Self::Http => "HTTP",
            Self::MessageLog => "logging of messages",
            Self::TimestampFormat => "another format of time in the log",
            Self::TcpAdaptor => "TCP over AMQP",
            Self::HttpAdaptor => "HTTP over AMQP",
            Self::Console => "the web console",
            Self::Proxies => "HTTP proxies",
            Self::Sites => "sites and networks of networks",
        }
    }

    /// What happens instead in this version; `None`: it is served.
    #[must_use]
    pub fn unserved(self) -> Option<&'static str> {
        NOT_SERVED.iter().find(|(feature, _)| *feature == self).map(|(_, consequence)| *consequence)
    }

    /// Whether this version does it.
    #[must_use]
    pub fn is_served(self) -> bool {
        self.unserved().is_none()
    }
}
