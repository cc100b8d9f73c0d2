//! The types of entity that there are, as data. Ringmain's own attributes are marked in their descriptions.

use super::schema::Kind::{
    Boolean, Enumeration, Host, Integer, LogLevels, Path, Port, Properties, String, Words,
};
use super::schema::Operation::{Create, Delete, Read, Update};
use super::schema::{Attribute, Availability, EntityType};
use crate::log::Module;

/// The greatest number of a 32-bit signed integer, which bounds most of `qdrouterd`'s numbers.
const INT_MAX: i64 = 0x7fff_ffff;

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

const WITHOUT_TLS: &str = "leave it out and listen on a trusted network (for example on 127.0.0.1)";
const WITHOUT_VHOSTS: &str = "leave it out; this version has one address space and no policy";
const WITHOUT_PHASES: &str =
    "leave it out; this version routes messages directly to receivers, without waypoints";
const WITHOUT_HTTP: &str = "leave it out; this version speaks AMQP only";
const NO_MESSAGE_LOG: &str = "message contents can't be logged yet";

const NAME: Attribute =
    Attribute::new("name", String, "A name of your choice, unique among the entities of its type.");

/// Seconds of the protocol between routers: of no consequence to a router that stands alone.
const fn network_seconds(
    name: &'static str,
    former: &'static str,
    default: &'static str,
    description: &'static str,
) -> Attribute {
    Attribute::new(name, Integer { min: 1, max: INT_MAX }, description)
        .default(default)
        .formerly(former)
        .unit("seconds")
        .inert()
}

const ROUTER: &[Attribute] = &[
    NAME,
    Attribute::new(
        "id",
        String,
        "The router's name in its network, sent as container-id. A router that stands alone makes one up if it isn't set. No blanks, control characters, '|' or '$'.",
    ),
    Attribute::new(
        "mode",
        Enumeration(&["standalone", "interior", "edge"]),
        "standalone: the router is alone; interior: one of a network of routers; edge: at the rim of such a network.",
    )
    .default("standalone")
    .availability(Availability::Only { words: &["standalone"], advice: "this version routes on its own: use 'standalone'" }),
    network_seconds("helloIntervalSeconds", "helloInterval", "1", "Time between two HELLO messages to neighbour routers (mode interior)."),
    network_seconds("helloMaxAgeSeconds", "helloMaxAge", "3", "A neighbour router that has been silent for so long is lost (mode interior)."),
    network_seconds("raIntervalSeconds", "raInterval", "30", "Time between two router advertisements while the network is stable (mode interior)."),
    network_seconds("raIntervalFluxSeconds", "raIntervalFlux", "4", "Time between two router advertisements while the network changes (mode interior)."),
    network_seconds("remoteLsMaxAgeSeconds", "remoteLsMaxAge", "60", "The link state of another router is stale after this time without an advertisement (mode interior)."),
    Attribute::new(
        "workerThreads",
        Integer { min: 1, max: 1024 },
        "The number of shards: threads that carry messages, each pinned to a CPU of its own while there are enough. Left out: one for each CPU that the process may run on.",
    ),
    Attribute::new(
        "cpus",
        String,
        "Ringmain's own: the CPUs to pin shards to, one shard each, such as 2-5,8. In place of workerThreads.",
    ),
    Attribute::new(
        "idle",
        Enumeration(&["block", "spin", "spin-then-block"]),
        "Ringmain's own: what a shard does while there is nothing to do. block: it sleeps; spin: it looks for work all the time and takes a whole CPU, for the least latency; spin-then-block: it spins for spinMicroseconds after something came, then it sleeps.",
    )
    .default("block"),
    Attribute::new(
        "spinMicroseconds",
        Integer { min: 1, max: 10_000_000 },
        "Ringmain's own: how long a shard spins after something came (idle: spin-then-block).",
    )
    .default("50")
    .unit("microseconds"),
    Attribute::new(
        "napiMicroseconds",
        Integer { min: 0, max: 1_000_000 },
        "Ringmain's own: how long the kernel polls the network devices' queues before a shard sleeps (Linux 6.9 and newer); 0: not at all. It takes that much CPU each time that a shard has nothing to do.",
    )
    .default("0")
    .unit("microseconds"),
    Attribute::new("debugDumpFile", Path, "A file for debug output at exit. It stays absent.").formerly("debugDump").inert(),
    Attribute::new("saslConfigDir", Path, "The directory of the SASL library's configuration.")
        .formerly("saslConfigPath")
        .availability(Availability::NoEffect("the mechanism ANONYMOUS needs no configuration")),
    Attribute::new("saslConfigName", String, "The name of the SASL library's configuration, without '.conf'.")
        .default("qdrouterd")
        .inert(),
    Attribute::new("allowResumableLinkRoute", Boolean, "Whether links that can be resumed may be link-routed.")
        .default("yes")
        .inert(),
    Attribute::new("timestampsInUTC", Boolean, "Write the log's time in UTC rather than in local time.").default("no"),
    Attribute::new("timestampFormat", String, "How the log writes the time, in the notation of strftime.")
        .not_yet("leave it out to get 'YYYY-MM-DD HH:MM:SS.uuuuuu +ZZZZ'"),
    Attribute::new("allowUnsettledMulticast", Boolean, "Unsettled deliveries to multicast addresses are always allowed.")
        .default("no")
        .inert(),
    Attribute::new(
        "defaultDistribution",
        Enumeration(&["multicast", "closest", "balanced", "unavailable"]),
        "How messages to an address that no 'address' section matches reach its receivers: multicast: a copy to each; closest: to the nearest; balanced: to the one with the least outstanding; unavailable: links to it are refused.",
    )
    .default("balanced"),
    Attribute::new("metadata", String, "Any text that describes the router, for tools to show."),
];

const LISTENER: &[Attribute] = &[
    NAME,
    Attribute::new(
        "host",
        Host,
        "The address to listen on: a host name (all of its addresses), an IPv4 or IPv6 literal, or nothing for all local addresses.",
    )
    .default(""),
    Attribute::new("port", Port, "The port: a number or the name of a service. 0 takes a free one, which the log names.")
        .default("amqp"),
    Attribute::new("socketAddressFamily", Enumeration(&["IPv4", "IPv6"]), "Listen on addresses of this family only.")
        .formerly("protocolFamily"),
    Attribute::new(
        "role",
        Enumeration(&["normal", "inter-router", "route-container", "edge"]),
        "Who connects here: normal: clients; inter-router: other routers; route-container: brokers; edge: edge routers.",
    )
    .default("normal")
    .availability(Availability::Only { words: &["normal"], advice: "this version serves clients: use 'normal'" }),
    Attribute::new("cost", Integer { min: 1, max: INT_MAX }, "What a way through a connection between routers costs (role inter-router).")
        .default("1")
        .inert(),
    Attribute::new("sslProfile", String, "The name of the sslProfile section for TLS.").not_yet(WITHOUT_TLS),
    Attribute::new(
        "saslMechanisms",
        Words { separator: ' ', known: &[] },
        "The SASL mechanisms to offer, with blanks between them.",
    )
    .availability(Availability::Only { words: &["ANONYMOUS"], advice: "offer 'ANONYMOUS' only, on a trusted network" }),
    Attribute::new(
        "authenticatePeer",
        Boolean,
        "Whether a client must go through SASL; with no, it may also begin with plain AMQP.",
    )
    .default("no"),
    Attribute::new("saslPlugin", String, "The name of the authServicePlugin section that authenticates clients.")
        .not_yet("leave it out and offer ANONYMOUS"),
    Attribute::new("requireEncryption", Boolean, "Refuse connections that aren't encrypted.").default("no").not_yet(WITHOUT_TLS),
    Attribute::new("requireSsl", Boolean, "Refuse connections that don't begin with TLS.").default("no").not_yet(WITHOUT_TLS),
    Attribute::new("trustedCertsFile", Path, "Certificates of the authorities whose client certificates are trusted.")
        .formerly("trustedCerts")
        .not_yet(WITHOUT_TLS),
    Attribute::new("maxFrameSize", Integer { min: 512, max: INT_MAX }, "The largest frame that a client may send, put into our open as max-frame-size.")
        .default("16384")
        .unit("bytes"),
    Attribute::new("maxSessions", Integer { min: 0, max: 32768 }, "How many sessions a connection may have; 0: the default.")
        .default("32768"),
    Attribute::new(
        "maxSessionFrames",
        Integer { min: 0, max: INT_MAX },
        "The incoming window of a session, in transfer frames; 0: the router's own choice. Together with maxFrameSize at most 2^31 - 1 bytes.",
    )
    .unit("frames"),
    Attribute::new(
        "shard",
        Integer { min: 0, max: 1023 },
        "Ringmain's own: the shard that serves this listener's connections, counted from 0. Left out: the one with the fewest connections.",
    ),
    Attribute::new(
        "maxMessageSize",
        Integer { min: 0, max: i64::MAX },
        "Ringmain's own: the largest message that a client may send, put into our attach as max-message-size; 0: no limit.",
    )
    .default("0")
    .unit("bytes"),
    Attribute::new(
        "idleTimeoutSeconds",
        Integer { min: 0, max: 4_294_967 },
        "A connection from which no frame has come for so long is closed; put into our open as idle-time-out. 0: never.",
    )
    .default("16")
    .unit("seconds"),
    Attribute::new(
        "initialHandshakeTimeoutSeconds",
        Integer { min: 0, max: INT_MAX },
        "A connection that hasn't sent its open for so long is closed; 0: never. Unset: the router's own limit.",
    )
    .unit("seconds"),
    Attribute::new(
        "stripAnnotations",
        Enumeration(&["in", "out", "both", "no"]),
        "Where the routers' own annotations are taken out of messages: on their way in, out, both, or nowhere.",
    )
    .default("both"),
    Attribute::new(
        "linkCapacity",
        Integer { min: 0, max: 1_000_000 },
        "How many deliveries may be in flight on a link, and the credit that a sender gets; 0: the default.",
    )
    .default("250")
    .unit("deliveries"),
    Attribute::new("multiTenant", Boolean, "Give every virtual host an address space of its own.").default("no").not_yet(WITHOUT_VHOSTS),
    Attribute::new("failoverUrls", String, "Addresses of other routers, to be told to clients, with commas between them.")
        .formerly("failoverList")
        .not_yet("leave it out and give clients the list of routers themselves"),
    Attribute::new("healthz", Boolean, "On an http listener: serve /healthz.").default("yes").inert(),
    Attribute::new("metrics", Boolean, "On an http listener: serve /metrics.").default("yes").inert(),
    Attribute::new("websockets", Boolean, "On an http listener: serve AMQP over WebSocket.").default("yes").inert(),
    Attribute::new("http", Boolean, "Serve HTTP (and AMQP over WebSocket) rather than AMQP.").default("no").not_yet(WITHOUT_HTTP),
    Attribute::new("httpRootDir", Path, "The directory of the files that an http listener serves; implies http.")
        .formerly("httpRoot")
        .not_yet(WITHOUT_HTTP),
    Attribute::new(
        "messageLoggingComponents",
        Words { separator: ',', known: MESSAGE_COMPONENTS },
        "Which parts of messages the module MESSAGE logs at level trace: none, all, or their names with commas between them.",
    )
    .formerly("logMessage")
    .default("none")
    .availability(Availability::NoEffect(NO_MESSAGE_LOG)),
    Attribute::new("policyVhost", String, "The vhost section whose policy applies, whatever host a client asks for.").not_yet(WITHOUT_VHOSTS),
    Attribute::new(
        "openProperties",
        Properties,
        "More properties for our open. Not 'product', 'version', 'failover-server-list', 'network-host', 'port', 'scheme', 'hostname', nor names that begin with 'qd.' or 'x-opt-qd.'.",
    ),
];

const ADDRESS: &[Attribute] = &[
    NAME,
    Attribute::new(
        "prefix",
        String,
        "The first part of the addresses meant, in whole tokens. Either this or pattern.",
    ),
    Attribute::new(
        "pattern",
        String,
        "The addresses meant: tokens with '.' or '/' between them, '*' for exactly one, '#' for any number. Either this or prefix.",
    ),
    Attribute::new(
        "distribution",
        Enumeration(&["multicast", "closest", "balanced", "unavailable"]),
        "How messages reach the receivers, see defaultDistribution of the router.",
    )
    .default("balanced"),
    Attribute::new("waypoint", Boolean, "Messages pass through a broker's queue on their way.")
        .default("no")
        .not_yet(WITHOUT_PHASES),
    Attribute::new("ingressPhase", Integer { min: 0, max: 9 }, "The phase into which senders send.")
        .default("0")
        .not_yet(WITHOUT_PHASES),
    Attribute::new("egressPhase", Integer { min: 0, max: 9 }, "The phase from which receivers receive.")
        .default("0")
        .not_yet(WITHOUT_PHASES),
    Attribute::new(
        "priority",
        Integer { min: -1, max: 9 },
        "The priority of messages that have none of their own; -1: none.",
    )
    .default("-1"),
    Attribute::new(
        "enableFallback",
        Boolean,
        "Messages that reach no receiver go to the fallback destination.",
    )
    .default("no")
    .not_yet("leave it out; such messages are released to their sender"),
];

const LOG: &[Attribute] = &[
    NAME,
    Attribute::new("module", Enumeration(Module::NAMES), "The part of the router meant; DEFAULT for all that have no section of their own.")
        .required(),
    Attribute::new(
        "enable",
        LogLevels,
        "The levels to log, with commas between them: trace, debug, info, notice, warning, error, critical; with a '+', all above as well; none; default: as the module DEFAULT.",
    )
    .default("default")
    .updatable(),
    Attribute::new("includeTimestamp", Boolean, "Begin each line with the time. Unset: as the module DEFAULT, which does.")
        .formerly("timestamp")
        .updatable(),
    Attribute::new("includeSource", Boolean, "End each line with its place in the source. Unset: as the module DEFAULT, which doesn't.")
        .formerly("source")
        .updatable(),
    Attribute::new(
        "outputFile",
        String,
        "Where to: a file, stderr, stdout or syslog. Unset: as the module DEFAULT, which writes to stderr.",
    )
    .formerly("output")
    .updatable(),
];

/// A type that a file of `qdrouterd` may have and that this version doesn't read.
const fn unavailable(
    name: &'static str,
    type_name: &'static str,
    description: &'static str,
    advice: &'static str,
) -> EntityType {
    EntityType {
        name,
        type_name,
        description,
        is_singleton: false,
        operations: &[],
        attributes: &[],
        unavailable: Some(advice),
    }
}

const REMOVE_SECTION: &str = "remove the section";
const ADDRESS_INSTEAD: &str = "remove the section, or let clients use the router's own addresses";
const OTHER_TOOL: &str = "remove the section; no router of this kind has it any more";

/// Every type of entity that a file may name, those first that this version reads.
pub const ENTITY_TYPES: &[EntityType] = &[
    EntityType {
        name: "router",
        type_name: "router",
        description: "The router as a whole.",
        is_singleton: true,
        operations: &[Read],
        attributes: ROUTER,
        unavailable: None,
    },
    EntityType {
        name: "listener",
        type_name: "listener",
        description: "An address on which the router accepts connections.",
        is_singleton: false,
        operations: &[Create, Read, Delete],
        attributes: LISTENER,
        unavailable: None,
    },
    EntityType {
        name: "address",
        type_name: "router.config.address",
        description: "How messages to some addresses are distributed.",
        is_singleton: false,
        operations: &[Create, Read, Delete],
        attributes: ADDRESS,
        unavailable: None,
    },
    EntityType {
        name: "log",
        type_name: "log",
        description: "What one part of the router logs, and where to.",
        is_singleton: false,
        operations: &[Read, Update],
        attributes: LOG,
        unavailable: None,
    },
    unavailable(
        "connector",
        "connector",
        "A connection that the router opens.",
        "let the other side connect to a listener",
    ),
    unavailable("sslProfile", "sslProfile", "Certificates and settings of TLS.", WITHOUT_TLS_SECTION),
    unavailable(
        "authServicePlugin",
        "authServicePlugin",
        "A remote service that authenticates clients.",
        REMOVE_SECTION,
    ),
    unavailable(
        "linkRoute",
        "router.config.linkRoute",
        "Addresses whose links are passed on to a broker.",
        ADDRESS_INSTEAD,
    ),
    unavailable(
        "autoLink",
        "router.config.autoLink",
        "A link that the router attaches to a broker.",
        ADDRESS_INSTEAD,
    ),
    unavailable(
        "exchange",
        "router.config.exchange",
        "An exchange that distributes by subject.",
        ADDRESS_INSTEAD,
    ),
    unavailable("binding", "router.config.binding", "A binding of an exchange.", ADDRESS_INSTEAD),
    unavailable("policy", "policy", "Global limits, and whether vhost sections apply.", REMOVE_SECTION),
    unavailable("vhost", "vhost", "Who may do what.", REMOVE_SECTION),
    unavailable("console", "console", "The web console.", OTHER_TOOL),
    unavailable("tcpListener", "tcpListener", "TCP carried over AMQP, ingress.", REMOVE_SECTION),
    unavailable("tcpConnector", "tcpConnector", "TCP carried over AMQP, egress.", REMOVE_SECTION),
    unavailable("httpListener", "httpListener", "HTTP carried over AMQP, ingress.", REMOVE_SECTION),
    unavailable("httpConnector", "httpConnector", "HTTP carried over AMQP, egress.", REMOVE_SECTION),
];

const WITHOUT_TLS_SECTION: &str =
    "remove the section and listen on a trusted network (for example on 127.0.0.1)";
