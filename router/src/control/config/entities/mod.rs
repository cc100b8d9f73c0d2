//! The types of entity that there are, as data, in the order in which the documentation has them.

mod adaptors;
mod addressing;
mod connections;
mod observed;
mod router;
mod security;

use super::features::Feature;
use super::schema::Kind::{Integer, String};
use super::schema::Operation::{
    Create, Delete, GetAnnotations, GetAttributes, GetJsonSchema, GetLog, GetMgmtNodes, GetOperations,
    GetSchema, GetTypes, Query, Read, Update,
};
use super::schema::{Attribute, Category, EntityType, Kind};

/// The greatest number of a 32-bit signed integer, which bounds most of `qdrouterd`'s numbers.
const INT_MAX: i64 = 0x7fff_ffff;

/// A number from 0 on.
const COUNT: Kind = Integer { min: 0, max: INT_MAX };

/// A number of bytes from 0 on.
const SIZE: Kind = Integer { min: 0, max: i64::MAX };

/// The attribute that every entity has; `identity` and `type`, which nobody can set, follow it.
const NAME: Attribute =
    Attribute::new("name", String, "A name of your choice, unique among the entities of its type.");

/// The attributes of a type that has nothing else.
pub(super) const NAMED: &[Attribute] = &[NAME];

/// Every type of entity.
pub const ENTITY_TYPES: &[EntityType] = &[
    EntityType::section("router", router::ROUTER, "The router as a whole.").singleton().operations(&[Read]),
    EntityType::section(
        "listener",
        connections::LISTENER,
        "An address on which the router accepts connections.",
    ),
    EntityType::section(
        "connector",
        connections::CONNECTOR,
        "A connection that the router opens, and opens again when it is lost.",
    )
    .needs(Feature::Connectors),
    EntityType::section("address", addressing::ADDRESS, "How messages to some addresses are distributed.")
        .managed_as("router.config.address"),
    EntityType::section(
        "autoLink",
        addressing::AUTO_LINK,
        "A link that the router attaches to a broker or another container as soon as it is connected.",
    )
    .managed_as("router.config.autoLink")
    .needs(Feature::AutoLinks),
    EntityType::section(
        "linkRoute",
        addressing::LINK_ROUTE,
        "Addresses whose links the router passes on to a broker, from end to end.",
    )
    .managed_as("router.config.linkRoute")
    .needs(Feature::LinkRoutes),
    EntityType::section(
        "exchange",
        addressing::EXCHANGE,
        "An address whose messages are distributed by their subject.",
    )
    .managed_as("router.config.exchange")
    .needs(Feature::Exchanges),
    EntityType::section("binding", addressing::BINDING, "Which subjects of an exchange go to which address.")
        .managed_as("router.config.binding")
        .needs(Feature::Exchanges),
    EntityType::section(
        "sslProfile",
        security::SSL_PROFILE,
        "Certificates and settings of TLS, for listeners and connectors that name it.",
    )
    .needs(Feature::Tls),
    EntityType::section(
        "authServicePlugin",
        security::AUTH_SERVICE,
        "A remote service that authenticates clients and says what they may do.",
    )
    .needs(Feature::AuthService),
    EntityType::section(
        "policy",
        security::POLICY,
        "Limits for all clients together, and whether vhost sections apply.",
    )
    .singleton()
    .operations(&[Read]),
    EntityType::section("vhost", security::VHOST, "Who may do what on one virtual host.")
        .operations(&[Create, Update, Delete, Read])
        .needs(Feature::Policy),
    EntityType::part(
        "vhostUserGroupSettings",
        security::VHOST_GROUP,
        "What the users of a group of a vhost may do.",
    )
    .operations(&[Read]),
    EntityType::section("log", router::LOG, "What one part of the router logs, and where to.")
        .operations(&[Update, Read]),
    EntityType::section(
        "tcpListener",
        adaptors::TCP_LISTENER,
        "A port whose TCP connections are carried over AMQP to an address.",
    )
    .needs(Feature::TcpAdaptor),
    EntityType::section("tcpConnector", adaptors::TCP_CONNECTOR, "A TCP server that serves an address.")
        .needs(Feature::TcpAdaptor),
    EntityType::section(
        "listenerAddress",
        adaptors::LISTENER_ADDRESS,
        "One of several addresses of a tcpListener.",
    )
    .of_skupper()
    .needs(Feature::TcpAdaptor),
    EntityType::section(
        "httpListener",
        adaptors::HTTP_LISTENER,
        "A port whose HTTP requests are carried over AMQP to an address.",
    )
    .needs(Feature::HttpAdaptor),
    EntityType::section("httpConnector", adaptors::HTTP_CONNECTOR, "An HTTP server that serves an address.")
        .needs(Feature::HttpAdaptor),
    EntityType::section(
        "proxyProfile",
        adaptors::PROXY_PROFILE,
        "An HTTP proxy through which connectors connect.",
    )
    .operations(&[Create, Update, Delete, Read])
    .of_skupper()
    .needs(Feature::Proxies),
    EntityType::section("network", adaptors::NETWORK, "The network of which the router is a part.")
        .operations(&[Update, Read])
        .of_skupper()
        .needs(Feature::Sites),
    EntityType::section("site", adaptors::SITE, "The site at which the router stands.")
        .operations(&[Read])
        .of_skupper()
        .needs(Feature::Sites),
    EntityType::section("console", adaptors::CONSOLE, "The web console of old versions.")
        .operations(&[Read])
        .needs(Feature::Console),
    EntityType::part(
        "router.connection.linkRoute",
        addressing::CONNECTION_LINK_ROUTE,
        "A link route that a client makes for its own connection.",
    )
    .operations(&[Create, Delete, Read]),
    EntityType::operational("connection", observed::CONNECTION, "A connection, whoever opened it."),
    EntityType::operational("router.link", observed::LINK, "A link of a connection.")
        .operations(&[Update, Read]),
    EntityType::operational("router.address", observed::ADDRESS, "An address in use."),
    EntityType::operational("router.node", observed::NODE, "A router of the network."),
    EntityType::operational(
        "routerMetrics",
        observed::ROUTER_METRICS,
        "What the router as a whole has counted.",
    )
    .of_skupper(),
    EntityType::operational(
        "vhostStats",
        observed::VHOST_STATS,
        "What the policy of a vhost has allowed and refused.",
    ),
    EntityType::operational(
        "logStats",
        observed::LOG_STATS,
        "How many lines one part of the router has logged.",
    ),
    EntityType::operational(
        "latency",
        observed::LATENCY,
        "How long deliveries take: 'forward' until they go to their receiver, 'settle' until their sender is told their \
         outcome (of one in 64).",
    )
    .our_own(),
    EntityType::operational("allocator", observed::ALLOCATOR, "A pool of memory."),
    EntityType::of_management(
        "management",
        Category::Management,
        &[
            GetSchema,
            GetJsonSchema,
            GetLog,
            Query,
            GetTypes,
            GetAnnotations,
            GetOperations,
            GetAttributes,
            GetMgmtNodes,
            Read,
        ],
        "The management node of the router.",
    ),
    EntityType::of_management(
        "org.amqp.management",
        Category::Abstract,
        &[Query, GetTypes, GetAnnotations, GetOperations, GetAttributes, GetMgmtNodes, Read],
        "A management node.",
    ),
    EntityType::of_management("entity", Category::Abstract, &[], "Anything that management knows."),
    EntityType::of_management(
        "configurationEntity",
        Category::Abstract,
        &[Read],
        "Anything that is configured.",
    ),
    EntityType::of_management(
        "operationalEntity",
        Category::Abstract,
        &[Read],
        "Anything that the router reports.",
    ),
];
