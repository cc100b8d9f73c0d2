//! TCP and HTTP carried over AMQP, and what else belongs to other versions of the router.

use super::super::features::Feature;
use super::super::schema::Attribute;
use super::super::schema::Kind::{Boolean, Enumeration, Host, Integer, Port, String};
use super::NAME;

const SITE_ID: Attribute = Attribute::new("siteId", String, "The site that the connections are counted for.");

/// Section `tcpListener`.
pub(super) const TCP_LISTENER: &[Attribute] = &[
    Attribute::new("address", String, "The address to which connections go."),
    Attribute::new("host", Host, "The address to listen on; nothing for all local addresses.").default(""),
    Attribute::new("port", Port, "The port to listen on.").required(),
    SITE_ID,
    Attribute::new(
        "backlog",
        Integer { min: 0, max: 65535 },
        "How many connections may wait to be accepted.",
    )
    .of_skupper(),
    Attribute::new(
        "multiAddressStrategy",
        Enumeration(&["none", "priority", "weighted"]),
        "How one of several listenerAddress sections is chosen.",
    )
    .default("none")
    .of_skupper(),
    Attribute::new("sslProfile", String, "The name of the sslProfile section for TLS.").of_skupper(),
    Attribute::new("authenticatePeer", Boolean, "Whether a client must show a certificate.")
        .default("no")
        .of_skupper(),
    Attribute::new(
        "observer",
        Enumeration(&["none", "auto", "http1", "http2"]),
        "What is read along for statistics.",
    )
    .default("auto")
    .updatable()
    .of_skupper(),
    NAME,
];

/// Section `tcpConnector`.
pub(super) const TCP_CONNECTOR: &[Attribute] = &[
    Attribute::new("address", String, "The address whose connections come here.").required(),
    Attribute::new("host", Host, "The host of the server.").required(),
    Attribute::new("port", Port, "The port of the server.").required(),
    SITE_ID,
    Attribute::new("processId", String, "The process that the server belongs to, for statistics.")
        .of_skupper(),
    Attribute::new("sslProfile", String, "The name of the sslProfile section for TLS.").of_skupper(),
    Attribute::new("verifyHostname", Boolean, "With TLS: whether the certificate must name the host.")
        .default("yes")
        .of_skupper(),
    NAME,
];

/// Section `listenerAddress`.
pub(super) const LISTENER_ADDRESS: &[Attribute] = &[
    Attribute::new("address", String, "The address to which connections go.").required(),
    Attribute::new(
        "value",
        Integer { min: 0, max: 100 },
        "Its priority or weight among the addresses of the listener.",
    )
    .default("0"),
    Attribute::new("listener", String, "The name of the tcpListener section.").required(),
    Attribute::count("connectionsOpened", "Connections that went to the address."),
    NAME,
];

const PROTOCOL_VERSION: Attribute =
    Attribute::new("protocolVersion", Enumeration(&["HTTP1", "HTTP2"]), "The version of HTTP.")
        .default("HTTP1");

const AGGREGATION: Attribute = Attribute::new(
    "aggregation",
    Enumeration(&["none", "json", "multipart"]),
    "How the responses of all servers of a multicast address are put into one.",
)
.default("none");

const EVENT_CHANNEL: Attribute = Attribute::new(
    "eventChannel",
    Boolean,
    "Requests are events that all servers of a multicast address get.",
)
.default("no");

/// Section `httpListener`.
pub(super) const HTTP_LISTENER: &[Attribute] = &[
    Attribute::new("host", Host, "The address to listen on; nothing for all local addresses.").default(""),
    Attribute::new("port", Port, "The port to listen on.").required(),
    Attribute::new("address", String, "The address to which requests go.").required(),
    SITE_ID,
    PROTOCOL_VERSION,
    AGGREGATION,
    EVENT_CHANNEL,
    Attribute::new(
        "hostOverride",
        String,
        "The host that requests name, in place of the one that they have.",
    ),
    Attribute::new("sslProfile", String, "The name of the sslProfile section for TLS.").needs(Feature::Tls),
    NAME,
];

/// Section `httpConnector`.
pub(super) const HTTP_CONNECTOR: &[Attribute] = &[
    Attribute::new("host", Host, "The host of the server.").default("127.0.0.1"),
    Attribute::new("port", Port, "The port of the server.").required(),
    Attribute::new("address", String, "The address whose requests come here.").required(),
    SITE_ID,
    PROTOCOL_VERSION,
    AGGREGATION,
    EVENT_CHANNEL,
    Attribute::new(
        "hostOverride",
        String,
        "The host that requests name, in place of the one that they have.",
    ),
    NAME,
];

/// Section `proxyProfile`.
pub(super) const PROXY_PROFILE: &[Attribute] = &[
    Attribute::new("host", Host, "The host of the proxy.").required(),
    Attribute::new("port", Port, "The port of the proxy.").required(),
    Attribute::new("username", String, "The user's name at the proxy.").updatable(),
    Attribute::new("password", String, "The user's password at the proxy.").updatable().secret(),
    NAME,
];

/// Section `network`.
pub(super) const NETWORK: &[Attribute] = &[
    Attribute::new("networkId", String, "The name of the network.").updatable(),
    Attribute::new("tenantId", String, "The tenant for whom it exists."),
    NAME,
];

/// Section `site`.
pub(super) const SITE: &[Attribute] = &[
    Attribute::new("location", String, "Where it is."),
    Attribute::new("provider", String, "Who runs it."),
    Attribute::new("version", String, "The version of the software there."),
    Attribute::new("platform", String, "What it runs on."),
    Attribute::new("namespace", String, "The namespace of the router."),
    NAME,
];

/// Section `console`.
pub(super) const CONSOLE: &[Attribute] = &[
    Attribute::new("listener", String, "The listener that served it."),
    Attribute::new("wsport", Integer { min: 0, max: 65535 }, "The port of its WebSockets.").default("5673"),
    Attribute::new("proxy", String, "The program that carried its WebSockets."),
    Attribute::new("home", String, "The directory of its files."),
    Attribute::new("args", String, "The arguments of that program."),
    NAME,
];
