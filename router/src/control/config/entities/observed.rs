//! What the router reports: entities that no file has.

use super::super::schema::Attribute;
use super::super::schema::Kind::{Boolean, Enumeration, Host, Integer, List, Properties, String};
use super::NAME;

/// A text that the router reports.
const fn text(name: &'static str, description: &'static str) -> Attribute {
    Attribute::reported(name, String, description)
}

/// Yes or no.
const fn flag(name: &'static str, description: &'static str) -> Attribute {
    Attribute::reported(name, Boolean, description)
}

/// A number that may be negative, to say that there is none.
const fn number(name: &'static str, description: &'static str) -> Attribute {
    Attribute::reported(name, Integer { min: i64::MIN, max: i64::MAX }, description)
}

const OPER_STATUS: Attribute = Attribute::reported(
    "operStatus",
    Enumeration(&["up", "down", "quiescing", "idle", "closing"]),
    "up: it works; closing: it is being closed.",
);

/// `connection`
pub(super) const CONNECTION: &[Attribute] = &[
    Attribute::reported(
        "adminStatus",
        Enumeration(&["enabled", "deleted"]),
        "Set it to 'deleted' to close the connection.",
    )
    .updatable(),
    OPER_STATUS,
    text("protocol", "The protocol: amqp."),
    text("container", "The container-id of the peer."),
    flag("opened", "Both sides have opened the connection."),
    Attribute::reported("host", Host, "The address of the peer, HOST:PORT."),
    Attribute::reported("dir", Enumeration(&["in", "out"]), "in: the peer connected; out: the router did."),
    Attribute::reported(
        "role",
        Enumeration(&[
            "normal",
            "inter-router",
            "route-container",
            "edge",
            "inter-router-data",
            "inter-edge",
            "inter-network",
        ]),
        "What the peer is.",
    ),
    flag("isAuthenticated", "The peer has gone through SASL."),
    flag("isEncrypted", "The connection is encrypted."),
    Attribute::reported("enableProtocolTrace", Boolean, "Set it to log the connection's frames.").updatable(),
    text("sasl", "The SASL mechanism."),
    text("user", "The name of the user."),
    flag("ssl", "The connection uses TLS."),
    text("sslProto", "The version of TLS."),
    text("sslCipher", "The cipher suite."),
    Attribute::count("sslSsf", "The strength of the encryption, in bits of the key."),
    text("tenant", "The address space of the client (multiTenant)."),
    Attribute::count("uptimeSeconds", "How long the connection has been open.").unit("seconds"),
    Attribute::reported("properties", Properties, "The properties of the peer's open."),
    Attribute::count("lastDlvSeconds", "How long ago the latest delivery came or went. Absent: none has.")
        .unit("seconds"),
    flag("active", "The connection is the one in use, of several to the same router.").of_skupper(),
    text("localSocket", "The address of the router's end, HOST:PORT.").of_skupper(),
    text("meshId", "The mesh of edge routers that the peer belongs to.").of_skupper(),
    Attribute::count("tlsOrdinal", "The version of the certificate that the connection was made with.")
        .of_skupper(),
    text("groupCorrelationId", "What the connections of one pair of routers have in common.").of_skupper(),
    Attribute::count("groupOrdinal", "The number of the group of connections.").of_skupper(),
    NAME,
];

/// `router.link`
pub(super) const LINK: &[Attribute] = &[
    Attribute::reported("adminStatus", Enumeration(&["enabled", "disabled"]), "enabled: the link is in use.")
        .updatable(),
    OPER_STATUS,
    text("linkName", "The name of the link."),
    Attribute::reported(
        "linkType",
        Enumeration(&[
            "endpoint",
            "console",
            "router-control",
            "inter-router",
            "inter-edge",
            "router-data",
            "edge-downlink",
        ]),
        "endpoint: of a client or broker; the others: between routers.",
    ),
    Attribute::reported(
        "linkDir",
        Enumeration(&["in", "out"]),
        "in: deliveries come to the router; out: they go from it.",
    ),
    text("owningAddr", "The address that the link is attached to."),
    Attribute::count("capacity", "How many deliveries may be in flight."),
    text("peer", "The link at the other end of a link route."),
    Attribute::count("undeliveredCount", "Deliveries that wait to be sent."),
    Attribute::count("unsettledCount", "Deliveries that have been sent and not settled."),
    Attribute::count("deliveryCount", "Deliveries so far."),
    Attribute::count("presettledCount", "Deliveries that came settled."),
    Attribute::count(
        "droppedPresettledCount",
        "Settled deliveries that were dropped because the receiver was too slow.",
    ),
    Attribute::count("acceptedCount", "Deliveries that ended accepted."),
    Attribute::count("rejectedCount", "Deliveries that ended rejected."),
    Attribute::count("releasedCount", "Deliveries that ended released."),
    Attribute::count("modifiedCount", "Deliveries that ended modified."),
    Attribute::count(
        "deliveriesDelayed1Sec",
        "Deliveries that took between one second and ten to be settled.",
    ),
    Attribute::count("deliveriesDelayed10Sec", "Deliveries that took more than ten seconds to be settled."),
    Attribute::count("deliveriesStuck", "Deliveries that have been waiting for more than ten seconds."),
    Attribute::count("creditAvailable", "Deliveries that may still be sent."),
    Attribute::count("zeroCreditSeconds", "How long the link has been without credit.").unit("seconds"),
    Attribute::count("settleRate", "Deliveries settled in a second, lately."),
    Attribute::reported(
        "ingressHistogram",
        List,
        "Of a link out: how many of its deliveries came from each router of the network.",
    ),
    number("priority", "The priority of the link's messages."),
    text("connectionId", "The identity of the link's connection.").of_skupper(),
    Attribute::count("openMovedStreams", "Streams that have a connection of their own.").of_skupper(),
    NAME,
];

/// `router.address`
pub(super) const ADDRESS: &[Attribute] = &[
    Attribute::reported(
        "distribution",
        Enumeration(&["flood", "multicast", "closest", "balanced", "linkBalanced", "unavailable"]),
        "How messages reach the receivers.",
    ),
    Attribute::count("inProcess", "Receivers that are parts of the router."),
    Attribute::count("subscriberCount", "Receivers that are attached here."),
    Attribute::count("remoteCount", "Other routers that have receivers."),
    Attribute::count("containerCount", "Brokers whose link routes have the address."),
    Attribute::count("deliveriesIngress", "Deliveries that came from clients."),
    Attribute::count("deliveriesEgress", "Deliveries that went to clients."),
    Attribute::count("deliveriesTransit", "Deliveries that came from a router and went to a router."),
    Attribute::count("deliveriesToContainer", "Deliveries that went to parts of the router."),
    Attribute::count("deliveriesFromContainer", "Deliveries that came from parts of the router."),
    Attribute::count("deliveriesIngressRouteContainer", "Deliveries that came from brokers."),
    Attribute::count("deliveriesEgressRouteContainer", "Deliveries that went to brokers."),
    Attribute::count("deliveriesRedirectedToFallback", "Deliveries that went to the fallback destination."),
    text("key", "The address with a letter for its class before it, and of mobile ones the phase."),
    Attribute::reported("remoteHostRouters", List, "The other routers that have receivers."),
    Attribute::reported(
        "transitOutstanding",
        List,
        "Deliveries on their way to each other router (balanced).",
    ),
    Attribute::count("trackedDeliveries", "Deliveries on their way."),
    number("priority", "The priority of messages that have none of their own; -1: none."),
    flag("watch", "A part of the router watches the address.").of_skupper(),
    Attribute::count("deliveriesIngressInterNetwork", "Deliveries that came from other networks.")
        .of_skupper(),
    Attribute::count("deliveriesEgressInterNetwork", "Deliveries that went to other networks.").of_skupper(),
    NAME,
];

/// `router.node`
pub(super) const NODE: &[Attribute] = &[
    text("id", "The router's id."),
    number("protocolVersion", "The version of the protocol between routers."),
    Attribute::count("instance", "The time at which the router started, in seconds since 1970."),
    Attribute::reported("linkState", List, "Its neighbours."),
    text("nextHop", "The neighbour through which it is reached; '(self)': this router."),
    Attribute::reported("validOrigins", List, "The routers whose multicast messages may take this way."),
    text("address", "The router's address, amqp:/_topo/0/ID."),
    number("routerLink", "The number of the link to it. Absent: it isn't a neighbour."),
    number("cost", "What the way to it costs. Absent: this router."),
    Attribute::count(
        "lastTopoChange",
        "The time of the latest change of the network, in seconds since 1970.",
    ),
    number("index", "The router's number in bit masks."),
    NAME,
];

/// `routerMetrics`
pub(super) const ROUTER_METRICS: &[Attribute] = &[
    text("id", "The router's id."),
    Attribute::count("addrCount", "Addresses in use."),
    Attribute::count("linkCount", "Links attached."),
    Attribute::count("nodeCount", "Other routers in the network."),
    Attribute::count("autoLinkCount", "Auto-links configured."),
    Attribute::count("connectionCount", "Connections open."),
    Attribute::count("presettledDeliveries", "Deliveries that came settled."),
    Attribute::count(
        "droppedPresettledDeliveries",
        "Settled deliveries that were dropped because their receiver was too slow.",
    ),
    Attribute::count("acceptedDeliveries", "Deliveries that ended accepted."),
    Attribute::count("rejectedDeliveries", "Deliveries that ended rejected."),
    Attribute::count("releasedDeliveries", "Deliveries that ended released."),
    Attribute::count("modifiedDeliveries", "Deliveries that ended modified."),
    Attribute::count(
        "deliveriesDelayed1Sec",
        "Deliveries that took between one second and ten to be settled.",
    ),
    Attribute::count("deliveriesDelayed10Sec", "Deliveries that took more than ten seconds to be settled."),
    Attribute::count("deliveriesStuck", "Deliveries that have been waiting for more than ten seconds."),
    Attribute::count("deliveriesIngress", "Deliveries that came from clients."),
    Attribute::count("deliveriesEgress", "Deliveries that went to clients."),
    Attribute::count("deliveriesTransit", "Deliveries that came from a router and went to a router."),
    Attribute::count("deliveriesIngressRouteContainer", "Deliveries that came from brokers."),
    Attribute::count("deliveriesEgressRouteContainer", "Deliveries that went to brokers."),
    Attribute::count("deliveriesIngressInterNetwork", "Deliveries that came from other networks."),
    Attribute::count("deliveriesEgressInterNetwork", "Deliveries that went to other networks."),
    Attribute::count("deliveriesRedirectedToFallback", "Deliveries that went to a fallback destination."),
    Attribute::count("linksBlocked", "Links that have been without credit for more than ten seconds."),
    Attribute::count("uptimeSeconds", "How long the router has been running.").unit("seconds"),
    Attribute::count("memoryUsage", "The memory of the process.").unit("bytes"),
    Attribute::count("residentMemoryUsage", "The part of it that is in main memory.").unit("bytes"),
    Attribute::reported("connectionCounters", Properties, "Connections open, by protocol."),
    text("version", "The version of the program."),
    NAME,
];

/// `vhostStats`
pub(super) const VHOST_STATS: &[Attribute] = &[
    text("id", "The vhost's host name."),
    text("hostname", "The vhost's host name."),
    Attribute::count("connectionsApproved", "Connections that were allowed."),
    Attribute::count("connectionsDenied", "Connections that were refused."),
    Attribute::count("connectionsCurrent", "Connections that are open."),
    Attribute::reported("perUserState", Properties, "For each user, its connections."),
    Attribute::reported("perHostState", Properties, "For each host, its connections."),
    Attribute::count("sessionDenied", "Sessions that were refused."),
    Attribute::count("senderDenied", "Senders that were refused."),
    Attribute::count("receiverDenied", "Receivers that were refused."),
    Attribute::count("maxMessageSizeDenied", "Messages that were refused because they were too large."),
    NAME,
];

/// `logStats`
pub(super) const LOG_STATS: &[Attribute] = &[
    Attribute::count("traceCount", "Lines of level trace."),
    Attribute::count("debugCount", "Lines of level debug."),
    Attribute::count("infoCount", "Lines of level info."),
    Attribute::count("noticeCount", "Lines of level notice."),
    Attribute::count("warningCount", "Lines of level warning."),
    Attribute::count("errorCount", "Lines of level error."),
    Attribute::count("criticalCount", "Lines of level critical."),
    NAME,
];

/// `latency`
pub(super) const LATENCY: &[Attribute] = &[
    Attribute::count("deliveries", "Deliveries that were measured since the start."),
    Attribute::count("p50", "Half of them took no longer.").unit("microseconds"),
    Attribute::count("p90", "Nine in ten took no longer.").unit("microseconds"),
    Attribute::count("p99", "99 in a hundred took no longer.").unit("microseconds"),
    Attribute::count("p999", "999 in a thousand took no longer.").unit("microseconds"),
    Attribute::reported(
        "bounds",
        List,
        "Upper bounds of the classes that are counted, in microseconds. A last class has none.",
    ),
    Attribute::reported("counts", List, "How many deliveries are in each class."),
    NAME,
];

/// `allocator`
pub(super) const ALLOCATOR: &[Attribute] = &[
    text("typeName", "What the pool is for."),
    Attribute::count("typeSize", "The size of an item.").unit("bytes"),
    Attribute::count("transferBatchSize", "Items that are moved between threads at once."),
    Attribute::count("localFreeListMax", "Free items that a thread keeps at the most."),
    number("globalFreeListMax", "Free items that all threads keep at the most; -1: no limit."),
    Attribute::count("totalAllocFromHeap", "Items that have been made."),
    Attribute::count("totalFreeToHeap", "Items that have been given back."),
    Attribute::count("heldByThreads", "Items in use, or kept by threads."),
    Attribute::count("batchesRebalancedToThreads", "Batches of free items that went to threads."),
    Attribute::count("batchesRebalancedToGlobal", "Batches of free items that came from threads."),
    NAME,
];
