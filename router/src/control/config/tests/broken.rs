//! Broken files, and what must be said of each.

use super::faults;

/// Each broken file, and the beginnings of all the messages about it.
#[test]
fn broken_files_are_refused_with_their_lines() {
    let cases: &[(&str, &[&str])] = &[
        ("listner {\nport: 1\n}", &["test.conf:1: unknown section 'listner'; did you mean 'listener'?"]),
        ("bananas {\n}", &["test.conf:1: unknown section 'bananas'"]),
        (
            "listener {\nmaxFrameSise: 1\n}",
            &["test.conf:2: listener: unknown attribute 'maxFrameSise'; did you mean 'maxFrameSize'?"],
        ),
        (
            "listener {\nmaxFrameSize: 511\n}",
            &[
                "test.conf:2: listener: 'maxFrameSize' is '511', expected an integer from 512 to 2147483647 (bytes)",
            ],
        ),
        (
            "listener {\nmaxFrameSize: 16k\n}",
            &["test.conf:2: listener: 'maxFrameSize' is '16k', expected an integer"],
        ),
        (
            "listener {\nport: 65536\n}",
            &["test.conf:2: listener: 'port' is '65536', expected a port number from 0 to 65535"],
        ),
        (
            "listener {\nport: no-such-service\n}",
            &["test.conf:2: listener: 'port' is 'no-such-service', expected a port"],
        ),
        ("listener {\nhost: a b\n}", &["test.conf:2: listener: 'host' is 'a b', expected a host name"]),
        ("listener {\nhost: [::1\n}", &["test.conf:2: listener: 'host' is '[::1', expected a host name"]),
        (
            "listener {\nhost: ::1\nsocketAddressFamily: IPv4\n}",
            &["test.conf:2: listener: 'host' is '::1', which isn't of the family"],
        ),
        (
            "listener {\nauthenticatePeer: maybe\n}",
            &[
                "test.conf:2: listener: 'authenticatePeer' is 'maybe', expected yes, true, on, no, false or off",
            ],
        ),
        (
            "listener {\nrole: Normal\n}",
            &[
                "test.conf:2: listener: 'role' is 'Normal', expected one of normal, inter-router, route-container, edge, inter-edge, inter-network; did you mean 'normal'?",
            ],
        ),
        ("listener {\nport: 1\nport: 2\n}", &["test.conf:3: listener: 'port' is set twice, first at line 2"]),
        (
            "listener {\nmaxFrameSize: 512\nmax-frame-size: 512\n}",
            &["test.conf:3: listener: 'maxFrameSize' is set twice, first at line 2"],
        ),
        (
            "listener {\nsocketAddressFamily: IPv4\nprotocolFamily: IPv4\n}",
            &[
                "test.conf:3: Both 'protocolFamily' and 'socketAddressFamily' cannot be specified for entity 'listener'",
            ],
        ),
        ("listener {\nidentity: a\n}", &["test.conf:2: listener: 'identity' can't be set"]),
        (
            "listener {\nport: 1\n}\nlistener {\nport: 1\n}",
            &["test.conf:4: listener: :1 is listened on already, by the listener at line 1"],
        ),
        (
            "listener {\nname: a\nport: 1\n}\nlistener {\nport: 2\nname: a\n}",
            &["test.conf:7: listener: the name 'a' is in use already, at line 2"],
        ),
        (
            "listener {\nmessageLoggingComponents: to,froom\n}",
            &["test.conf:2: listener: 'messageLoggingComponents' is 'to,froom', expected words with commas"],
        ),
        (
            "listener {\nmessageLoggingComponents: all,to\n}",
            &["test.conf:2: listener: 'messageLoggingComponents' has 'none' or 'all'"],
        ),
        (
            "listener {\nopenProperties: yes\n}",
            &["test.conf:2: listener: 'openProperties' is 'yes', expected a JSON map"],
        ),
        (
            "listener {\nopenProperties: {\n\"product\": \"x\",\n\"qd.a\": 1,\n\"hostname\": 1,\n\"a\": 1,\n\"a\": 2\n}\n}",
            &[
                "test.conf:3: listener: 'openProperties' has \"product\": the name is reserved",
                "test.conf:4: listener: 'openProperties' has \"qd.a\"",
                "test.conf:5: listener: 'openProperties' has \"hostname\"",
                "test.conf:7: listener: 'openProperties' has \"a\": it is set twice, first at line 6",
            ],
        ),
        (
            "listener {\nopenProperties: {\nsite: east\n}\nport: x\n}",
            &[
                "test.conf:3: attribute 'openProperties': expected a name in double quotes",
                "test.conf:5: listener: 'port' is 'x'",
            ],
        ),
        (
            "listener {\nopenProperties: {\n\"a\": 1\n",
            &["test.conf:4: attribute 'openProperties': the map opened at line 2 isn't closed"],
        ),
        (
            "listener {\nopenProperties: {\n\"a\": 1 # no comment here\n}\n}",
            &["test.conf:3: attribute 'openProperties': a comment inside JSON must begin its line"],
        ),
        ("\nlistener {\nport: 1\n", &["test.conf:2: section 'listener' isn't closed: '}' is missing"]),
        (
            "listener {\nport: 1\n\naddress {\nprefix: a\n}\n",
            &["test.conf:4: section 'address' begins inside section 'listener' (opened at line 1)"],
        ),
        ("listener {\n}\n}\n", &["test.conf:3: a '}' that closes nothing"]),
        (
            "listener { port: 1\n}\n",
            &[
                "test.conf:1: what follows a '{' belongs on the next lines",
                "test.conf:2: a '}' that closes nothing",
            ],
        ),
        (
            "listener {\nport 5672\n}\n",
            &["test.conf:2: expected 'SECTION {', 'ATTRIBUTE: VALUE' or '}', found 'port 5672'"],
        ),
        ("listener {\nport:\n}\n", &["test.conf:2: attribute 'port' has no value"]),
        ("listener {\nport: # 5672\n}\n", &["test.conf:2: attribute 'port' has no value"]),
        ("port: 5672\n", &["test.conf:1: attribute 'port' is outside of a section"]),
        (
            "router.config.address {\nprefix: a\n}",
            &["test.conf:1: a section's name has no dot: 'router.config.address' (write 'address')"],
        ),
        ("my section {\n}", &["test.conf:1: unknown section 'my section'"]),
        (
            "listener {\nport: 1\n},\n",
            &["test.conf:3: a closing '}' must stand alone", "test.conf:1: section 'listener' isn't closed"],
        ),
        (
            "router {\n}\nrouter {\n}",
            &["test.conf:3: there can be only one section 'router'; the first is at line 1"],
        ),
        (
            "router {\nmode: interrior\n}",
            &[
                "test.conf:2: router: 'mode' is 'interrior', expected one of standalone, interior, edge; did you mean 'interior'?",
            ],
        ),
        ("router {\nid: a|b\n}", &["test.conf:2: router: 'id' is 'a|b', expected a name of"]),
        ("router {\nmetadata: a\\qb\n}", &["test.conf:2: attribute 'metadata': unknown escape '\\q'"]),
        (
            "address {\ndistribution: multicast\n}",
            &["test.conf:1: address: 'prefix' or 'pattern' is missing"],
        ),
        (
            "address {\nprefix: a\npattern: b\n}",
            &["test.conf:3: address: 'prefix' and 'pattern' can't both be set"],
        ),
        (
            "address {\nprefix: a\ndistribution: linkBalanced\n}",
            &[
                "test.conf:3: address: 'distribution' is 'linkBalanced', expected one of multicast, closest, balanced, unavailable",
            ],
        ),
        (
            "address {\nprefix: a\npriority: 10\n}",
            &["test.conf:3: address: 'priority' is '10', expected an integer from -1 to 9"],
        ),
        ("address {\nprefix: /\n}", &["test.conf:2: address: 'prefix' is '/', which names no address"]),
        (
            "address {\nprefix: a/b\n}\naddress {\npattern: a.b.#\n}",
            &[
                "test.conf:4: address: pattern conflicts: 'a.b.#' matches the same addresses as 'a/b' at line 1",
            ],
        ),
        ("log {\nenable: info+\n}", &["test.conf:1: log: 'module' is missing (it is required)"]),
        ("log {\nmodule: ROUTR\n}", &["test.conf:2: log: 'module' is 'ROUTR', expected one of ROUTER, "]),
        (
            "log {\nmodule: DEFAULT\nenable: verbose+\n}",
            &["test.conf:3: log: 'enable' is 'verbose+', expected levels"],
        ),
        (
            "listener {\nauthenticatePeer: yes\nrole: inter-router\n}",
            &[
                "test.conf:3: listener: role='standalone' not allowed to connect to or accept connections from other routers.",
            ],
        ),
        (
            "router {\nmode: edge\nid: A\n}\nlistener {\nrole: inter-router\n}\nlistener {\nport: 1\nrole: edge\n}",
            &[
                "test.conf:6: listener: role='inter-router' only allowed with router mode='interior'",
                "test.conf:10: listener: role='edge' only allowed with router mode='interior'",
            ],
        ),
        (
            "connector {\nrole: edge\n}",
            &["test.conf:2: connector: role='standalone' not allowed to connect to"],
        ),
        (
            "router {\nmode: interior\n}",
            &["test.conf:2: router: 'id' is missing (mode 'interior' requires it)"],
        ),
        ("connector {\nport: 0\n}", &["test.conf:2: connector: 'port' is '0', expected a port from 1"]),
        (
            "connector {\nconnectionStatus: SUCCESS\n}",
            &["test.conf:2: connector: 'connectionStatus' is reported by the router"],
        ),
        (
            "connector {\nfailoverList: a\n}",
            &["test.conf:2: connector: 'failoverUrls' is reported by the router"],
        ),
        (
            "connector {\nsslProfile: tsl\n}\nsslProfile {\nname: tls\n}",
            &[
                "test.conf:2: connector: 'sslProfile' is 'tsl', but no section 'sslProfile' has that name; did you mean 'tls'?",
            ],
        ),
        ("autoLink {\naddress: a\n}", &["test.conf:1: autoLink: 'direction' is missing (it is required)"]),
        (
            "autoLink {\naddress: a\ndir: in\ndirection: in\n}",
            &["test.conf:4: Both 'dir' and 'direction' cannot be specified for entity 'autoLink'"],
        ),
        (
            "autoLink {\naddress: a\ndirection: in\nconnection: c\ncontainerId: d\n}",
            &["test.conf:5: autoLink: Both connection and containerId cannot be specified"],
        ),
        ("autoLink {\ndirection: out\nconnection: c\n}", &["test.conf:1: autoLink: 'address' is missing"]),
        (
            "autoLink {\ndirection: both\naddress: a\n}",
            &["test.conf:2: autoLink: 'direction' is 'both', expected one of in, out"],
        ),
        ("linkRoute {\ndirection: in\n}", &["test.conf:1: linkRoute: 'prefix' or 'pattern' is missing"]),
        (
            "linkRoute {\nprefix: a\ndirection: in\n}\nlinkRoute {\npattern: a/#\ndirection: in\n}",
            &["test.conf:5: linkRoute: pattern conflicts: 'a/#' matches the same addresses as 'a' at line 1"],
        ),
        (
            "address {\nprefix: a\nenableFallback: yes\nwaypoint: yes\n}",
            &["test.conf:3: address: 'enableFallback' can't be combined"],
        ),
        ("exchange {\naddress: a\n}", &["test.conf:1: exchange: 'name' is missing"]),
        (
            "binding {\nexchangeName: x\nnextHopAddress: a\n}",
            &["test.conf:2: binding: 'exchangeName' is 'x', but no section 'exchange' has that name"],
        ),
        ("sslProfile {\ncertFile: a\n}", &["test.conf:1: sslProfile: 'name' is missing"]),
        (
            "sslProfile {\nname: a\nuidFormat: cx\n}",
            &["test.conf:3: sslProfile: 'uidFormat' is 'cx', expected letters"],
        ),
        (
            "sslProfile {\nname: a\nprotocols: TLSv1.2 SSLv3\n}",
            &["test.conf:3: sslProfile: 'protocols' is 'TLSv1.2 SSLv3', expected"],
        ),
        (
            "policy {\npolicyDir: policies\n}",
            &["test.conf:2: policy: 'policyDir' is 'policies', expected an absolute path"],
        ),
        ("vhost {\nmaxConnections: 1\n}", &["test.conf:1: vhost: 'hostname' is missing"]),
        (
            "vhost {\nhostname: a\naliases: b, c\n}\nvhost {\nhostname: c\n}",
            &["test.conf:5: vhost: the host name 'c' belongs to the vhost at line 1 already"],
        ),
        (
            "vhost {\nhostname: a\ngroups: {\n\"admin\": {\n\"users\": \"u\",\n\"sauces\": \"*\"\n},\n\"$default\": {\n\"users\": \"u\",\n\"maxSessions\": \"many\"\n}\n}\n}",
            &[
                "test.conf:6: vhost group 'admin': unknown attribute 'sauces'; did you mean 'sources'?",
                "test.conf:8: vhost group '$default': user 'u' is in group 'admin' as well",
                "test.conf:10: vhost group '$default': 'maxSessions' is 'many', expected an integer from 0 to 65535",
            ],
        ),
        (
            "vhost {\nhostname: a\ngroups: {\n$default: {\nsources: a, b\nsourcePattern: a/#\ntargetPattern: a/b${user}/c\n}\n}\n}",
            &[
                "test.conf:6: vhost group '$default': 'sources' and 'sourcePattern' can't both be set",
                "test.conf:7: vhost group '$default': 'targetPattern' has 'a/b${user}/c'",
            ],
        ),
        ("vhost {\nhostname: a\ngroups: all\n}", &["test.conf:3: vhost: 'groups' is 'all', expected a map"]),
        (
            "vhost {\nhostname: a\ngroups: {\n$default: {\nsources: a\n}\n",
            &["test.conf:6: attribute 'groups': the map opened at line 3 isn't closed"],
        ),
        ("tcpListener {\naddress: a\n}", &["test.conf:1: tcpListener: 'port' is missing"]),
        (
            "httpConnector {\nprotocolVersion: HTTP3\nport: 1\naddress: a\n}",
            &["test.conf:2: httpConnector: 'protocolVersion' is 'HTTP3', expected one of HTTP1, HTTP2"],
        ),
        (
            "listener {\nrole: edge\nhttp: yes\n}",
            &[
                "test.conf:2: listener: role='standalone' not allowed to connect",
                "test.conf:3: listener: 'http' can't be combined with role 'edge'",
            ],
        ),
        (
            "router {\nmode: interior\nid: A\n}\nlistener {\nrole: inter-router\nopenProperties: {\n\"a\": 1\n}\n}",
            &["test.conf:7: listener: 'openProperties' can't be set with role 'inter-router'"],
        ),
    ];
    for (text, expected) in cases {
        let said = faults(text);
        for expected in *expected {
            assert!(said.iter().any(|fault| fault.starts_with(expected)), "{text}\nsaid {said:#?}");
        }
        assert_eq!(said.len(), expected.len(), "{text}\nsaid {said:#?}");
    }
}

#[test]
fn of_very_many_faults_the_first_are_shown() {
    use crate::control::config::Config;
    let errors = Config::parse(&"nonsense\n".repeat(1000), "test.conf").unwrap_err();
    let text = errors.to_string();
    assert_eq!(text.lines().count(), 51);
    assert!(text.starts_with("test.conf:1: ") && text.ends_with("… and 950 more faults"), "{text}");
}
