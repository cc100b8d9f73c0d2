//! `listener` and `connector`.

use super::super::features::Feature;
use super::super::schema::Kind::{
    Boolean, Enumeration, Host, Integer, Path, Port, Properties, String, Words,
};
use super::super::schema::{Attribute, Availability};
use super::{COUNT, INT_MAX, NAME};

/// The components of a message that `messageLoggingComponents` knows.
const MESSAGE_COMPONENTS: &[&str] = &[
    "none",
    "all",
    "message-id",
    "user-id",
    "to",
    "subject",
    "reply-to",
    "correlation-id",
    "content-type",
    "content-encoding",
    "absolute-expiry-time",
    "creation-time",
    "group-id",
    "group-sequence",
    "reply-to-group-id",
    "app-properties",
];

const ROLES: &[&str] = &["normal", "inter-router", "route-container", "edge", "inter-edge", "inter-network"];

const ROLES_NEED: &[(&str, Feature)] = &[
    ("inter-router", Feature::Network),
    ("edge", Feature::Network),
    ("inter-edge", Feature::Network),
    ("inter-network", Feature::Network),
    ("route-container", Feature::RouteContainers),
];

/// The family of an address.
pub(super) const FAMILIES: &[&str] = &["IPv4", "IPv6"];

const COST: Attribute = Attribute::new(
    "cost",
    Integer { min: 1, max: INT_MAX },
    "What a way through a connection between routers costs: messages take the cheapest (role inter-router).",
)
.default("1")
.inert();

const SSL_PROFILE: Attribute =
    Attribute::new("sslProfile", String, "The name of the sslProfile section for TLS.").needs(Feature::Tls);

const MAX_FRAME_SIZE: Attribute = Attribute::new(
    "maxFrameSize",
    Integer { min: 512, max: INT_MAX },
    "The largest frame that the peer may send, put into our open as max-frame-size.",
)
.default("16384")
.unit("bytes");

const MAX_SESSIONS: Attribute = Attribute::new(
    "maxSessions",
    Integer { min: 0, max: 32768 },
    "How many sessions a connection may have; 0: the default.",
)
.default("32768");

const MAX_SESSION_FRAMES: Attribute = Attribute::new(
    "maxSessionFrames",
    COUNT,
    "The incoming window of a session, in transfer frames; 0: the router's own choice. Together with maxFrameSize at most 2^31 - 1 bytes.",
)
.unit("frames");

const IDLE_TIMEOUT: Attribute = Attribute::new(
    "idleTimeoutSeconds",
    Integer { min: 0, max: 4_294_967 },
    "A connection from which no frame has come for so long is closed; put into our open as idle-time-out. 0: never.",
)
.default("16")
.unit("seconds");

const ENABLE_PROTOCOL_TRACE: Attribute = Attribute::new(
    "enableProtocolTrace",
    Boolean,
    "Log the frames of its connections, in module PROTOCOL, whatever that module's levels are.",
)
.default("no")
.our_own();

const STRIP_ANNOTATIONS: Attribute = Attribute::new(
    "stripAnnotations",
    Enumeration(&["in", "out", "both", "no"]),
    "Where the routers' own annotations are taken out of messages: on their way in, out, both, or nowhere.",
)
.default("both");

const LINK_CAPACITY: Attribute = Attribute::new(
    "linkCapacity",
    Integer { min: 0, max: 1_000_000 },
    "How many deliveries may be in flight on a link, and the credit that a sender gets; 0: the default.",
)
.default("250")
.unit("deliveries");

const MESSAGE_LOGGING_COMPONENTS: Attribute = Attribute::new(
    "messageLoggingComponents",
    Words { separator: ',', known: MESSAGE_COMPONENTS },
    "Which parts of messages the module MESSAGE logs at level trace: none, all, or their names with commas between them.",
)
.formerly("logMessage")
.default("none")
.needs(Feature::MessageLog);

const OPEN_PROPERTIES: Attribute = Attribute::new(
    "openProperties",
    Properties,
    "More properties for our open (role normal or route-container). Not 'product', 'version', 'failover-server-list', 'network-host', 'port', 'scheme', 'hostname', nor names that begin with 'qd.' or 'x-opt-qd.'.",
);

/// Section `listener`.
pub(super) const LISTENER: &[Attribute] = &[
    Attribute::new(
        "host",
        Host,
        "The address to listen on: a host name (all of its addresses), an IPv4 or IPv6 literal, or nothing for all local addresses.",
    )
    .default(""),
    Attribute::new("port", Port, "The port: a number or the name of a service. 0 takes a free one, which the log names.")
        .default("amqp"),
    Attribute::new("socketAddressFamily", Enumeration(FAMILIES), "Listen on addresses of this family only.")
        .formerly("protocolFamily"),
    Attribute::new(
        "role",
        Enumeration(ROLES),
        "Who connects here: normal: clients; inter-router: other routers; route-container: brokers; edge: edge routers; inter-edge and inter-network: routers of skupper's.",
    )
    .default("normal")
    .availability(Availability::WordsNeed(ROLES_NEED)),
    COST,
    SSL_PROFILE,
    Attribute::new(
        "saslMechanisms",
        Words { separator: ' ', known: &[] },
        "The SASL mechanisms to offer, with blanks between them: EXTERNAL, SCRAM-SHA-512, SCRAM-SHA-256, SCRAM-SHA-1, PLAIN, ANONYMOUS. Unset: all that can be used on the connection, PLAIN only if it is encrypted, and ANONYMOUS unless authenticatePeer is set. PLAIN named here is offered without encryption too.",
    )
    .availability(Availability::OthersNeed { words: MECHANISMS, feature: Feature::Cyrus }),
    Attribute::new(
        "authenticatePeer",
        Boolean,
        "Whether a client must go through SASL, and say who it is (unless saslMechanisms names ANONYMOUS); with no, it may also begin with plain AMQP.",
    )
    .default("no"),
    Attribute::new("saslPlugin", String, "The name of the authServicePlugin section that authenticates clients.")
        .needs(Feature::AuthService),
    Attribute::new("requireEncryption", Boolean, "Refuse connections that aren't encrypted.").default("no").needs(Feature::Tls),
    Attribute::new("requireSsl", Boolean, "Refuse connections that don't begin with TLS.").default("no").needs(Feature::Tls),
    Attribute::new("trustedCertsFile", Path, "Certificates of the authorities whose client certificates are trusted.")
        .formerly("trustedCerts")
        .needs(Feature::Tls),
    MAX_FRAME_SIZE,
    MAX_SESSIONS,
    MAX_SESSION_FRAMES,
    IDLE_TIMEOUT,
    Attribute::new(
        "initialHandshakeTimeoutSeconds",
        COUNT,
        "A connection that hasn't sent its open for so long is closed; 0: never. Unset: the router's own limit.",
    )
    .unit("seconds"),
    STRIP_ANNOTATIONS,
    LINK_CAPACITY,
    Attribute::new("multiTenant", Boolean, "Give every virtual host an address space of its own.")
        .default("no")
        .needs(Feature::MultiTenancy),
    Attribute::new("failoverUrls", String, "Addresses of other routers, to be told to clients, with commas between them.")
        .formerly("failoverList")
        .needs(Feature::FailoverUrls),
    Attribute::new("healthz", Boolean, "On an http listener: serve /healthz and /readyz.").default("yes"),
    Attribute::new("metrics", Boolean, "On an http listener: serve /metrics.").default("yes"),
    Attribute::new("websockets", Boolean, "On an http listener: serve AMQP over WebSocket.").default("yes"),
    Attribute::new("http", Boolean, "Serve HTTP (and AMQP over WebSocket) rather than AMQP.").default("no").needs(Feature::Http),
    Attribute::new("httpRootDir", Path, "The directory of the files that an http listener serves; implies http.")
        .formerly("httpRoot")
        .needs(Feature::Http),
    MESSAGE_LOGGING_COMPONENTS,
    Attribute::new("policyVhost", String, "The vhost section whose policy applies, whatever host a client asks for.")
        .needs(Feature::Policy),
    OPEN_PROPERTIES,
    ENABLE_PROTOCOL_TRACE,
    Attribute::new(
        "shard",
        Integer { min: 0, max: 1023 },
        "The shard that serves this listener's connections, counted from 0. Left out: the one with the fewest connections.",
    )
    .our_own(),
    Attribute::new(
        "saslMaxFrameSize",
        Integer { min: 512, max: 65_536 },
        "The largest SASL frame that is taken. The protocol has 512; some clients send more.",
    )
    .default("512")
    .unit("bytes")
    .our_own(),
    Attribute::new(
        "maxHalfOpen",
        Integer { min: 1, max: INT_MAX },
        "How many connections may be between TCP and AMQP's open at a time; others are closed as they come.",
    )
    .default("16384")
    .our_own(),
    Attribute::new(
        "maxHalfOpenPerNetwork",
        Integer { min: 1, max: INT_MAX },
        "The same from one network: a /24 of IPv4, a /64 of IPv6.",
    )
    .default("8192")
    .our_own(),
    Attribute::new(
        "maxMessageSize",
        Integer { min: 0, max: i64::MAX },
        "The largest message that a client may send, put into our attach as max-message-size; 0: no limit.",
    )
    .default("0")
    .unit("bytes")
    .our_own(),
    NAME,
];

/// The SASL mechanisms that the router has.
const MECHANISMS: &[&str] =
    &["EXTERNAL", "SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN", "ANONYMOUS"];

/// Section `connector`.
pub(super) const CONNECTOR: &[Attribute] = &[
    Attribute::new("host", Host, "The host to connect to: a name, an IPv4 or an IPv6 literal.").default("127.0.0.1"),
    Attribute::new("port", Port, "The port to connect to: a number or the name of a service.").default("amqp"),
    Attribute::new("protocolFamily", Enumeration(FAMILIES), "Connect to addresses of this family only."),
    Attribute::new(
        "role",
        Enumeration(ROLES),
        "What is there: normal: anything that speaks AMQP; inter-router: another router of the network; route-container: a broker; edge: the network that this edge router belongs to; inter-edge and inter-network: routers of skupper's.",
    )
    .default("normal")
    .availability(Availability::WordsNeed(ROLES_NEED)),
    COST,
    SSL_PROFILE,
    Attribute::new(
        "saslMechanisms",
        Words { separator: ' ', known: &[] },
        "The SASL mechanisms that may be used, with blanks between them. Unset: the best that both sides have, PLAIN only if the connection is encrypted. PLAIN named here is used without encryption too.",
    )
    .availability(Availability::OthersNeed { words: MECHANISMS, feature: Feature::Cyrus }),
    Attribute::new("allowRedirect", Boolean, "Whether the peer may redirect the connection.").default("yes").inert(),
    MAX_FRAME_SIZE,
    MAX_SESSIONS,
    MAX_SESSION_FRAMES,
    IDLE_TIMEOUT,
    STRIP_ANNOTATIONS,
    LINK_CAPACITY,
    Attribute::new("verifyHostname", Boolean, "With TLS: whether the certificate must name the host.")
        .formerly("verifyHostName")
        .default("yes")
        .inert(),
    Attribute::new("saslUsername", String, "The name by which the router introduces itself."),
    Attribute::new(
        "saslPassword",
        String,
        "The password for it: env:NAME takes it from an environment variable, file:PATH from a file, literal:TEXT or pass:TEXT is the password itself, as is anything else.",
    )
    .secret(),
    MESSAGE_LOGGING_COMPONENTS,
    Attribute::reported("failoverUrls", String, "The hosts that are tried in turn: the one configured, and those that the peer named.")
        .formerly("failoverList"),
    Attribute::reported("connectionStatus", Enumeration(&["CONNECTING", "SUCCESS", "FAILED"]), "How far the connection is."),
    Attribute::reported("connectionMsg", String, "What came of the latest attempt to connect."),
    Attribute::new("policyVhost", String, "The vhost section whose group $connector limits what the peer may do.")
        .needs(Feature::Policy),
    OPEN_PROPERTIES,
    ENABLE_PROTOCOL_TRACE,
    Attribute::new("socketAddressFamily", Enumeration(FAMILIES), "Another name of protocolFamily.").of_skupper(),
    Attribute::new("proxyProfile", String, "The name of the proxyProfile section to connect through.")
        .of_skupper()
        .needs(Feature::Proxies),
    NAME,
];
