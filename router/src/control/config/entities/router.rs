//! `router` and `log`.

use super::super::features::Feature;
use super::super::schema::Kind::{Boolean, Enumeration, Integer, LogLevels, Path, String};
use super::super::schema::{Attribute, Availability};
use super::{COUNT, INT_MAX, NAME};
use crate::log::Module;

/// How an address's messages reach its receivers, as far as a configuration may choose.
pub(super) const DISTRIBUTIONS: &[&str] = &["multicast", "closest", "balanced", "unavailable"];

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

/// Section `router`.
pub(super) const ROUTER: &[Attribute] = &[
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
    .availability(Availability::WordsNeed(&[("interior", Feature::Network), ("edge", Feature::Network)])),
    Attribute::reported("area", String, "The area of the network that the router belongs to; there is one, '0'."),
    Attribute::reported("version", String, "The version of the program."),
    Attribute::reported("hostName", String, "The name of the machine."),
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
    Attribute::new("debugDumpFile", Path, "A file for debug output at exit. It stays absent.").formerly("debugDump").inert(),
    Attribute::new("saslConfigDir", Path, "The directory of the Cyrus SASL library's configuration, which this router doesn't use: see usersFile.")
        .formerly("saslConfigPath")
        .needs(Feature::Cyrus),
    Attribute::new("saslConfigName", String, "The name of the SASL library's configuration, without '.conf'.")
        .default("qdrouterd")
        .inert(),
    Attribute::new("allowResumableLinkRoute", Boolean, "Whether links that can be resumed may be link-routed.")
        .default("yes")
        .inert(),
    Attribute::new("timestampsInUTC", Boolean, "Write the log's time in UTC rather than in local time.").default("no"),
    Attribute::new("timestampFormat", String, "How the log writes the time, in the notation of strftime, with %f for microseconds. Unset: as %Y-%m-%d %H:%M:%S.%f %z.")
        .needs(Feature::TimestampFormat),
    Attribute::new("allowUnsettledMulticast", Boolean, "Unsettled deliveries to multicast addresses are always allowed.")
        .default("no")
        .inert(),
    Attribute::new(
        "defaultDistribution",
        Enumeration(DISTRIBUTIONS),
        "How messages to an address that no 'address' section matches reach its receivers: multicast: a copy to each; closest: to the nearest; balanced: to the one with the least outstanding; unavailable: links to it are refused.",
    )
    .default("balanced"),
    Attribute::new(
        "usersFile",
        Path,
        "The users who may log in on listeners by PLAIN and SCRAM, as 'ringmain user' writes the file. It is read at start and by a reload.",
    )
    .our_own(),
    Attribute::new("metadata", String, "Any text that describes the router, for tools to show."),
    Attribute::new("cpus", String, "The CPUs to pin shards to, one shard each, such as 2-5,8. In place of workerThreads.")
        .our_own(),
    Attribute::new(
        "idle",
        Enumeration(&["block", "spin", "spin-then-block"]),
        "What a shard does while there is nothing to do. block: it sleeps; spin: it looks for work all the time and takes a whole CPU, for the least latency; spin-then-block: it spins for spinMicroseconds after something came, then it sleeps.",
    )
    .default("block")
    .our_own(),
    Attribute::new(
        "spinMicroseconds",
        Integer { min: 1, max: 10_000_000 },
        "How long a shard spins after something came (idle: spin-then-block).",
    )
    .default("50")
    .unit("microseconds")
    .our_own(),
    Attribute::new(
        "napiMicroseconds",
        Integer { min: 0, max: 1_000_000 },
        "How long the kernel polls the network devices' queues before a shard sleeps (Linux 6.9 and newer); 0: not at all. It takes that much CPU each time that a shard has nothing to do.",
    )
    .default("0")
    .unit("microseconds")
    .our_own(),
    Attribute::new("vanId", String, "The network that the router's addresses belong to.").of_skupper().needs(Feature::Sites),
    Attribute::new(
        "unreachableHoldoffSeconds",
        COUNT,
        "How long messages to an address that has just lost its last receiver wait for another one.",
    )
    .default("1")
    .unit("seconds")
    .of_skupper()
    .inert(),
    Attribute::new("dataConnectionCount", String, "How many connections to a neighbour router carry streams (mode interior).")
        .default("auto")
        .of_skupper()
        .inert(),
    Attribute::new("dropTcpConnections", Boolean, "Close carried TCP connections as soon as the other router is lost.")
        .default("yes")
        .of_skupper()
        .inert(),
    Attribute::count("addrCount", "Addresses in use."),
    Attribute::count("linkCount", "Links attached."),
    Attribute::count("blockedLinkCount", "Links that have been without credit for more than ten seconds."),
    Attribute::count("nodeCount", "Other routers in the network."),
    Attribute::count("linkRouteCount", "Link routes configured."),
    Attribute::count("autoLinkCount", "Auto-links configured."),
    Attribute::count("connectionCount", "Connections open."),
    Attribute::count("presettledDeliveries", "Deliveries that came settled."),
    Attribute::count("droppedPresettledDeliveries", "Settled deliveries that were dropped because their receiver was too slow."),
    Attribute::count("acceptedDeliveries", "Deliveries that ended accepted."),
    Attribute::count("rejectedDeliveries", "Deliveries that ended rejected."),
    Attribute::count("releasedDeliveries", "Deliveries that ended released."),
    Attribute::count("modifiedDeliveries", "Deliveries that ended modified."),
    Attribute::count("deliveriesDelayed1Sec", "Deliveries that took between one second and ten to be settled."),
    Attribute::count("deliveriesDelayed10Sec", "Deliveries that took more than ten seconds to be settled."),
    Attribute::count("deliveriesStuck", "Deliveries that have been waiting for more than ten seconds."),
    Attribute::count("deliveriesIngress", "Deliveries that came from clients."),
    Attribute::count("deliveriesEgress", "Deliveries that went to clients."),
    Attribute::count("deliveriesTransit", "Deliveries that came from a router and went to a router."),
    Attribute::count("deliveriesIngressRouteContainer", "Deliveries that came from brokers (role route-container)."),
    Attribute::count("deliveriesEgressRouteContainer", "Deliveries that went to brokers (role route-container)."),
    Attribute::count("deliveriesRedirectedToFallback", "Deliveries that went to a fallback destination."),
    Attribute::count("authenticationFailures", "Clients that weren't who they said, or didn't keep to their SASL mechanism.").our_own(),
    Attribute::count("connectionsRefused", "Connections closed as soon as they came, since there were too many.").our_own(),
    Attribute::count("uptimeSeconds", "How long the router has been running.").unit("seconds"),
    Attribute::count("memoryUsage", "The memory of the process.").unit("bytes"),
    NAME,
];

/// Section `log`.
pub(super) const LOG: &[Attribute] = &[
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
    NAME,
];
