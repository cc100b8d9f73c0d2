//! `sslProfile`, `authServicePlugin`, `policy`, `vhost`.

use super::super::features::Feature;
use super::super::schema::Kind::{Boolean, Entities, Host, Integer, Path, Port, String, Words};
use super::super::schema::{Attribute, Kind};
use super::{COUNT, NAME, SIZE};

/// Names with commas between them.
const NAMES: Kind = Words { separator: ',', known: &[] };

/// A number of connections; 65535 stands for no limit.
const CONNECTIONS: Kind = Integer { min: 0, max: 65535 };

/// Section `sslProfile`.
pub(super) const SSL_PROFILE: &[Attribute] = &[
    Attribute::new("ciphers", String, "The cipher suites that may be used, in OpenSSL's notation. Unset: the library's choice."),
    Attribute::new(
        "protocols",
        Words { separator: ' ', known: &["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"] },
        "The versions of TLS that may be used, with blanks between them. Unset: all that are deemed safe.",
    ),
    Attribute::new("caCertFile", Path, "Certificates of the authorities that are trusted, in PEM.").formerly("certDb"),
    Attribute::new("certFile", Path, "The router's own certificate and those that it is issued by, in PEM."),
    Attribute::new("privateKeyFile", Path, "The key of the certificate, in PEM.").formerly("keyFile"),
    Attribute::new("passwordFile", Path, "A file with the key's password.").deprecated("set 'password: file:PATH'"),
    Attribute::new(
        "password",
        String,
        "The key's password: env:NAME takes it from an environment variable, file:PATH from a file, literal:TEXT or pass:TEXT is the password itself, as is anything else.",
    )
    .secret(),
    Attribute::new(
        "uidFormat",
        String,
        "Which fields of a client's certificate make its user name, joined with ';': c country, s state, l locality, o organization, u unit, n common name; 1, 2 or 5: the fingerprint by SHA-1, SHA-256 or SHA-512.",
    ),
    Attribute::new("uidNameMappingFile", Path, "A JSON file that gives names to those made by uidFormat.")
        .formerly("displayNameFile"),
    Attribute::new("ordinal", COUNT, "The number of this version of the certificate; a later one has a greater number.")
        .default("0")
        .updatable()
        .of_skupper(),
    Attribute::new("oldestValidOrdinal", COUNT, "Connections that were made with an earlier version are closed.")
        .default("0")
        .updatable()
        .of_skupper(),
    Attribute::reported("loads", SIZE, "How often its files were taken into use.").our_own(),
    Attribute::reported("failedLoads", SIZE, "How often they couldn't be; then those before stay in use.").our_own(),
    Attribute::reported("lastError", String, "Why they couldn't be the last time; nothing if they are in use.").our_own(),
    Attribute::reported("notAfter", SIZE, "When the certificate in use expires, in seconds since 1970.").our_own(),
    NAME,
];

/// Section `authServicePlugin`.
pub(super) const AUTH_SERVICE: &[Attribute] = &[
    Attribute::new("authService", String, "The service as HOST:PORT.").deprecated("set 'host' and 'port'"),
    Attribute::new("host", Host, "The host of the service."),
    Attribute::new("port", Port, "The port of the service.").default("amqp"),
    Attribute::new("realm", String, "The name of the realm, sent as the host name.")
        .formerly("saslInitHostname"),
    Attribute::new(
        "sslProfile",
        String,
        "The name of the sslProfile section for the connection to the service.",
    )
    .formerly("authSslProfile"),
    NAME,
];

/// Section `policy`.
pub(super) const POLICY: &[Attribute] = &[
    Attribute::new("maxConnections", CONNECTIONS, "How many clients may be connected at once.")
        .default("65535")
        .needs(Feature::Policy),
    Attribute::new(
        "maxMessageSize",
        SIZE,
        "The largest message that a client may send; 0: no limit. A vhost or group may say otherwise.",
    )
    .default("0")
    .unit("bytes")
    .needs(Feature::Policy),
    Attribute::new(
        "enableVhostPolicy",
        Boolean,
        "Whether vhost sections are enforced. With yes, who isn't in one can't connect.",
    )
    .default("no")
    .needs(Feature::Policy),
    Attribute::new(
        "enableVhostNamePatterns",
        Boolean,
        "Whether names of vhosts are patterns, as those of addresses.",
    )
    .default("no")
    .needs(Feature::Policy),
    Attribute::new(
        "policyDir",
        Path,
        "The absolute path of a directory whose files *.json have more vhost sections.",
    )
    .needs(Feature::Policy),
    Attribute::new(
        "defaultVhost",
        String,
        "The vhost for clients that ask for a host that no section names; empty: none, they are refused.",
    )
    .default("$default"),
    Attribute::count("connectionsProcessed", "Connections that came."),
    Attribute::count("connectionsDenied", "Connections that were refused."),
    Attribute::count("connectionsCurrent", "Connections that are open."),
    Attribute::count("linksDenied", "Links that were refused."),
    Attribute::count("maxMessageSizeDenied", "Messages that were refused because they were too large."),
    Attribute::count("totalDenials", "Everything that was refused."),
    NAME,
];

/// Section `vhost`.
pub(super) const VHOST: &[Attribute] = &[
    Attribute::new("hostname", String, "The host name in a client's open that the section is for.").formerly("id").required(),
    Attribute::new("aliases", NAMES, "More host names that the section is for, with commas between them.").updatable(),
    Attribute::new("maxConnections", CONNECTIONS, "How many clients may be connected at once.").default("65535").updatable(),
    Attribute::new("maxMessageSize", SIZE, "The largest message that a client may send; 0: no limit. Unset: as section policy says.")
        .unit("bytes")
        .updatable(),
    Attribute::new("maxConnectionsPerUser", CONNECTIONS, "How many of them may be of one user.").default("65535").updatable(),
    Attribute::new("maxConnectionsPerHost", CONNECTIONS, "How many of them may come from one host.").default("65535").updatable(),
    Attribute::new("allowUnknownUser", Boolean, "Whether users that no group names may connect; they belong to the group $default.")
        .default("no")
        .updatable(),
    Attribute::new(
        "groups",
        Entities("vhostUserGroupSettings"),
        "The groups of users by name, each with its settings in braces. $default is for users that no other group names, $connector for connectors.",
    )
    .updatable(),
    NAME,
];

/// A group of a `vhost`.
pub(super) const VHOST_GROUP: &[Attribute] = &[
    Attribute::new("users", NAMES, "The names of the users, with commas between them; *: all."),
    Attribute::new(
        "remoteHosts",
        NAMES,
        "The hosts from which they may connect: names, addresses, ranges such as 10.0.0.1-10.0.0.9, with commas between them; *: all.",
    ),
    Attribute::new(
        "maxConnectionsPerUser",
        CONNECTIONS,
        "How many connections a user may have. Unset: as the vhost says.",
    ),
    Attribute::new(
        "maxConnectionsPerHost",
        CONNECTIONS,
        "How many connections may come from one host. Unset: as the vhost says.",
    ),
    Attribute::new(
        "maxMessageSize",
        SIZE,
        "The largest message that they may send; 0: no limit. Unset: as the vhost says.",
    )
    .unit("bytes"),
    Attribute::new("maxFrameSize", COUNT, "The largest frame that they may send; 0: as the listener says.")
        .default("0")
        .unit("bytes"),
    Attribute::new(
        "maxSessionWindow",
        COUNT,
        "How many bytes may be in flight to us on a session; 0: as the listener says.",
    )
    .default("0")
    .unit("bytes"),
    Attribute::new(
        "maxSessions",
        Integer { min: 0, max: 65535 },
        "How many sessions a connection may have; 0: as the listener says.",
    )
    .default("0"),
    Attribute::new("maxSenders", COUNT, "How many senders a connection may attach; 0: any number.")
        .default("2147483647"),
    Attribute::new("maxReceivers", COUNT, "How many receivers a connection may attach; 0: any number.")
        .default("2147483647"),
    Attribute::new("allowDynamicSource", Boolean, "Whether receivers may ask for an address of their own.")
        .default("no"),
    Attribute::new(
        "allowAnonymousSender",
        Boolean,
        "Whether senders may leave out the address and say it in each message.",
    )
    .default("no"),
    Attribute::new(
        "allowUserIdProxy",
        Boolean,
        "Whether messages may name another user than the one that sends them.",
    )
    .default("no"),
    Attribute::new("allowWaypointLinks", Boolean, "Whether links may serve as waypoints.").default("yes"),
    Attribute::new("allowDynamicLinkRoutes", Boolean, "Whether clients may make link routes to themselves.")
        .default("yes")
        .needs(Feature::LinkRoutes),
    Attribute::new(
        "allowAdminStatusUpdate",
        Boolean,
        "Whether clients may close other connections by management.",
    )
    .default("yes")
    .needs(Feature::AdminStatusUpdate),
    Attribute::new("allowFallbackLinks", Boolean, "Whether links may serve as fallback destinations.")
        .default("yes"),
    Attribute::new(
        "sources",
        NAMES,
        "The addresses that they may receive from, with commas between them: a * at the end stands for any ending, ${user} for the user's name. Not with sourcePattern. Unset: none.",
    ),
    Attribute::new(
        "targets",
        NAMES,
        "The addresses that they may send to, in the same notation. Not with targetPattern. Unset: none.",
    ),
    Attribute::new(
        "sourcePattern",
        NAMES,
        "The addresses that they may receive from, as address patterns; ${user} may be the first or the last token. Not with sources.",
    ),
    Attribute::new(
        "targetPattern",
        NAMES,
        "The addresses that they may send to, as address patterns; ${user} may be the first or the last token. Not with targets.",
    ),
    NAME,
];
