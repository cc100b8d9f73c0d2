//! `address`, `autoLink`, `linkRoute`, `exchange`, `binding`.

use super::super::features::Feature;
use super::super::schema::Attribute;
use super::super::schema::Kind;
use super::super::schema::Kind::{Boolean, Enumeration, Integer, String};
use super::NAME;
use super::router::DISTRIBUTIONS;

const PHASE: Kind = Integer { min: 0, max: 9 };

const DIRECTIONS: Kind = Enumeration(&["in", "out"]);

const CONTAINER_ID: Attribute = Attribute::new(
    "containerId",
    String,
    "The container-id of the container meant. Either this or connection.",
);

const CONNECTION: Attribute = Attribute::new(
    "connection",
    String,
    "The name of the connector or listener through which the container is connected. Either this or containerId.",
);

/// Section `address`.
pub(super) const ADDRESS: &[Attribute] = &[
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
        Enumeration(DISTRIBUTIONS),
        "How messages reach the receivers, see defaultDistribution of the router.",
    )
    .default("balanced"),
    Attribute::new(
        "waypoint",
        Boolean,
        "Messages pass through a broker's queue on their way: the same as ingressPhase 0 and egressPhase 1.",
    )
    .default("no")
    .needs(Feature::Waypoints),
    Attribute::new("ingressPhase", PHASE, "The phase into which senders send.")
        .default("0")
        .needs(Feature::Waypoints),
    Attribute::new("egressPhase", PHASE, "The phase from which receivers receive.")
        .default("0")
        .needs(Feature::Waypoints),
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
    .needs(Feature::Fallback),
    NAME,
];

/// Section `autoLink`.
pub(super) const AUTO_LINK: &[Attribute] = &[
    Attribute::new(
        "address",
        String,
        "The address in the network of routers. It may be left out with direction in, for messages that say themselves where to.",
    )
    .formerly("addr"),
    Attribute::new(
        "direction",
        DIRECTIONS,
        "in: messages come from the container; out: they go to it.",
    )
    .formerly("dir")
    .required(),
    Attribute::new("phase", PHASE, "The phase of the address. Unset: 1 for direction in, 0 for direction out.")
        .needs(Feature::Waypoints),
    CONTAINER_ID,
    CONNECTION,
    Attribute::new("externalAddress", String, "The address in the container. Unset: the same as address.")
        .formerly("externalAddr"),
    Attribute::new("fallback", Boolean, "The link serves the address as its fallback destination.")
        .default("no")
        .needs(Feature::Fallback),
    Attribute::reported("linkRef", String, "The identity of the link, while there is one."),
    Attribute::reported(
        "operStatus",
        Enumeration(&["inactive", "attaching", "failed", "active", "quiescing", "idle"]),
        "inactive: the container isn't connected; attaching: asked for; active: attached; failed: refused, to be tried again.",
    ),
    Attribute::reported("lastError", String, "Why the container refused or ended the link last."),
    NAME,
];

/// Section `linkRoute`.
pub(super) const LINK_ROUTE: &[Attribute] = &[
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
    Attribute::new("addExternalPrefix", String, "Put before the address on its way to the container."),
    Attribute::new("delExternalPrefix", String, "Taken off the address on its way to the container."),
    CONTAINER_ID,
    CONNECTION,
    Attribute::new(
        "distribution",
        Enumeration(&["linkBalanced"]),
        "How links are distributed where several containers serve the addresses.",
    )
    .default("linkBalanced"),
    Attribute::new(
        "direction",
        DIRECTIONS,
        "in: links of clients that send; out: links of clients that receive.",
    )
    .formerly("dir")
    .required(),
    Attribute::reported(
        "operStatus",
        Enumeration(&["inactive", "active"]),
        "active: the container is connected.",
    ),
    NAME,
];

/// Section `exchange`.
pub(super) const EXCHANGE: &[Attribute] = &[
    Attribute::new("address", String, "The address whose messages the exchange distributes.").required(),
    Attribute::new("phase", PHASE, "The phase of the address.").default("0"),
    Attribute::new(
        "alternateAddress",
        String,
        "Where messages go that no binding matches. Unset: they are released.",
    ),
    Attribute::new("alternatePhase", PHASE, "The phase of alternateAddress.").default("0"),
    Attribute::new("matchMethod", Enumeration(&["amqp", "mqtt"]), "The notation of binding keys.")
        .default("amqp"),
    Attribute::count("bindingCount", "Bindings of the exchange."),
    Attribute::count("receivedCount", "Messages that came."),
    Attribute::count("droppedCount", "Messages that no binding matched and that had no alternate address."),
    Attribute::count("forwardedCount", "Messages that a binding matched."),
    Attribute::count("divertedCount", "Messages that went to the alternate address."),
    NAME,
];

/// Section `binding`.
pub(super) const BINDING: &[Attribute] = &[
    Attribute::new("exchangeName", String, "The name of the exchange.").required(),
    Attribute::new(
        "bindingKey",
        String,
        "Which subjects: tokens with '.' (mqtt: '/') between them and wildcards. Unset: all.",
    ),
    Attribute::new("nextHopAddress", String, "The address that messages go to.").required(),
    Attribute::new("nextHopPhase", PHASE, "The phase of nextHopAddress.").default("0"),
    Attribute::count("matchedCount", "Messages that the binding matched."),
    NAME,
];

/// What a client may ask for on its own connection.
pub(super) const CONNECTION_LINK_ROUTE: &[Attribute] = &[
    Attribute::new("pattern", String, "The addresses meant, in the notation of address patterns.").required(),
    Attribute::new(
        "direction",
        DIRECTIONS,
        "in: links of clients that send; out: links of clients that receive.",
    )
    .required(),
    Attribute::reported("containerId", String, "The container-id of the client."),
    NAME,
];
