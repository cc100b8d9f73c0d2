//! Whole files: right ones as `qdrouterd`'s users write them, and broken ones with what must be said.

use super::schema::{Availability, ENTITY_TYPES};
use super::{
    AddressFamily, AddressMatch, Config, Distribution, Json, ListenerConfig, RouterMode, StripAnnotations,
};
use crate::log::{Level, Levels, Module};
use crate::shard::idle::Idle;
use core::time::Duration;

fn parse(text: &str) -> Config {
    Config::parse(text, "test.conf").unwrap_or_else(|errors| panic!("{errors}"))
}

fn faults(text: &str) -> Vec<String> {
    faults_in(text, "test.conf")
}

fn faults_in(text: &str, name: &str) -> Vec<String> {
    match Config::parse(text, name) {
        Ok(config) => panic!("accepted: {config:?}"),
        Err(errors) => errors.0.iter().map(ToString::to_string).collect(),
    }
}

fn listener(body: &str) -> ListenerConfig {
    parse(&format!("listener {{\n{body}\n}}")).listeners.remove(0)
}

/// The one listener that the issue describes: 127.0.0.1:5672 for clients, balanced distribution.
#[test]
fn the_embedded_configuration_is_the_default_router() {
    let config = Config::embedded();
    assert_eq!(config.warnings, [""; 0]);
    assert_eq!(config.router.mode, RouterMode::Standalone);
    assert_eq!(config.router.default_distribution, Distribution::Balanced);
    assert_eq!(config.listeners.len(), 1);
    assert_eq!(config.listeners[0].host_port(), "127.0.0.1:5672");
    assert_eq!(config.listeners[0].bind_addresses().unwrap()[0].address.to_string(), "127.0.0.1:5672");
    assert!(config.addresses.is_empty() && config.logs.is_empty());
}

/// The defaults of `qdrouterd`: an open of 16384 bytes per frame, channel-max 32767, idle time-out 16 s,
/// 250 credit, all local addresses on the port of amqp.
#[test]
fn an_empty_listener_has_the_defaults_of_qdrouterd() {
    let listener = listener("");
    assert_eq!(listener.host, "");
    assert_eq!(listener.port, 5672);
    assert_eq!(listener.max_frame_size, 16384);
    assert_eq!(listener.max_sessions, 32768);
    assert_eq!(listener.max_session_frames, None);
    assert_eq!(listener.max_message_size, 0);
    assert_eq!(listener.idle_timeout_seconds, 16);
    assert_eq!(listener.initial_handshake_timeout_seconds, None);
    assert_eq!(listener.link_capacity, 250);
    assert_eq!(listener.strip_annotations, StripAnnotations::Both);
    assert!(!listener.is_authentication_required);
    assert!(listener.sasl_mechanisms.is_empty() && listener.open_properties.is_empty());
}

#[test]
fn a_missing_router_section_gives_defaults_and_an_empty_file_a_warning() {
    let config = parse("\n\n# nothing\n");
    assert_eq!(config.router.id, None);
    assert_eq!(config.router.default_distribution, Distribution::Balanced);
    assert_eq!(config.warnings.len(), 1);
    assert!(config.warnings[0].contains("test.conf: no section 'listener'"), "{:?}", config.warnings);
}

/// In the manner of the standalone example of `qdrouterd`'s documentation.
#[test]
fn a_file_as_the_documentation_has_it() {
    let config = parse(
        "router {
    mode: standalone        # one router
    id: ROUTER_A
    workerThreads: 4
    hello-interval-seconds: 2
}

  listener {
    host: 0.0.0.0
    port: amqp
    authenticatePeer: no
    saslMechanisms: ANONYMOUS
    max-frame-size: 65536
    strip-annotations: in
    http: No
  }

listener {
    name: internal
    host: [::1]
    port: 10000
    role: normal
    initialHandshakeTimeoutSeconds: 0
    openProperties: {
        # where it stands
        \"site\": \"east # 1\",
        \"rack\" : {
            \"row\": 7,
            \"cold\": true
        },
    }
    maxSessionFrames: 100
}

address {
    prefix: multicast
    distribution: multicast
}

address {
    pattern: orders/#/urgent   # the first run of characters is the pattern
    distribution: closest
    priority: 7
}

log {
    module: DEFAULT
    enable: warning+
    includeSource: true
    outputFile: /var/log/router # 1.log
}
log {
    module: ROUTER_CORE
    enable: Debug,Info
}
",
    );
    assert_eq!(config.warnings, [""; 0]);
    assert_eq!(config.router.id.as_deref(), Some("ROUTER_A"));
    let [public, internal] = &config.listeners[..] else { panic!("two listeners") };
    assert_eq!(public.host_port(), "0.0.0.0:5672");
    assert_eq!(public.max_frame_size, 65536);
    assert_eq!(public.strip_annotations, StripAnnotations::In);
    assert_eq!(public.sasl_mechanisms, ["ANONYMOUS"]);
    assert_eq!(internal.name.as_deref(), Some("internal"));
    assert_eq!((internal.host.as_str(), internal.host_port().as_str()), ("::1", "[::1]:10000"));
    assert_eq!(internal.initial_handshake_timeout_seconds, Some(0));
    assert_eq!(internal.max_session_frames, Some(100));
    let [site, rack] = &internal.open_properties[..] else { panic!("two properties") };
    assert_eq!((site.key.as_str(), &site.value), ("site", &Json::String("east # 1".to_owned())));
    assert!(matches!(&rack.value, Json::Map(members) if members.len() == 2), "{rack:?}");
    let [multicast, urgent] = &config.addresses[..] else { panic!("two addresses") };
    assert_eq!(multicast.matching, AddressMatch::Prefix("multicast".to_owned()));
    assert_eq!((multicast.distribution, multicast.priority), (Distribution::Multicast, None));
    assert_eq!(urgent.matching, AddressMatch::Pattern("orders/#/urgent".to_owned()));
    assert_eq!((urgent.distribution, urgent.priority), (Distribution::Closest, Some(7)));
    let [default, core] = &config.logs[..] else { panic!("two logs") };
    assert_eq!((default.module, default.enable), (Module::Default, Some(Levels::from(Level::Warning))));
    assert_eq!(default.include_source, Some(true));
    assert_eq!(default.output_file.as_deref(), Some("/var/log/router"));
    assert_eq!(core.module, Module::RouterCore);
    assert_eq!(core.include_timestamp, None);
}

#[test]
fn booleans_in_any_letter_case() {
    for word in ["yes", "TRUE", "On"] {
        let body = format!("authenticatePeer: {word}\nsaslMechanisms: ANONYMOUS");
        assert!(listener(&body).is_authentication_required, "{word}");
    }
    for word in ["no", "False", "OFF"] {
        assert!(!listener(&format!("authenticatePeer: {word}")).is_authentication_required, "{word}");
    }
}

#[test]
fn values_understand_the_escapes_of_json() {
    assert_eq!(
        parse("router {\nmetadata: a\\tb \\\"c\\\" \\u0041\n}").router.metadata.unwrap(),
        "a\tb \"c\" A"
    );
}

#[test]
fn the_json_form_says_the_same() {
    let text = "# comment
[
    [\"router\", {\"id\": \"A\", \"mode\": \"standalone\"}],
    # another one
    [\"listener\", {
        \"host\": \"127.0.0.1\", \"port\": 20701, \"authenticatePeer\": false,
        \"openProperties\": {\"a\": [1, null]}
    }],
    [\"address\", {\"pattern\": \"a.#\", \"distribution\": \"unavailable\"}]
]
";
    let config = Config::parse(text, "test.json").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.router.id.as_deref(), Some("A"));
    assert_eq!((config.listeners[0].port, config.listeners[0].line), (20701, 5));
    assert_eq!(config.addresses[0].distribution, Distribution::Unavailable);
}

#[test]
fn faults_of_the_json_form_have_lines() {
    let said = |text: &str, what: &str| {
        let faults = faults_in(text, "a.json");
        assert!(faults[0].starts_with(what), "{faults:?}");
    };
    said("[\n[\"listener\", {\"port\": 70000}]]", "a.json:2: listener: 'port' is 70000, expected a port");
    said(
        "[\n[\"listener\",\n{\"prot\": 70000}]]",
        "a.json:3: listener: unknown attribute 'prot'; did you mean 'port'?",
    );
    said("{\"listener\": {}}", "a.json:1: expected a list");
    said("[\n[\"listener\"]]", "a.json:2: expected [\"section\", {…}]");
    said("[\n7]", "a.json:2: expected [\"section\", {…}], found an integer");
    said("[[\"router\", {}]\n", "a.json:2: the list opened at line 1 isn't closed with ']'");
    said("[]\n[]", "a.json:2: text after the end");
    said("[[\"router.config.address\", {\"prefix\": \"a\"}]]", "a.json:1: a section's name has no dot");
    said("[[\"listener\", {\"port\": 1,\n \"port\": 2}]]", "a.json:2: listener: 'port' is set twice");
    said("[[\"listener\", {\"http\": 1}]]", "a.json:1: listener: 'http' is 1, expected yes, true, on");
}

/// Each broken file, and the beginnings of all the messages about it.
#[test]
fn broken_files_are_refused_with_their_lines() {
    let cases: &[(&str, &[&str])] = &[
        ("listner {\nport: 1\n}", &["test.conf:1: unknown section 'listner'; did you mean 'listener'?"]),
        ("bananas {\n}", &["test.conf:1: unknown section 'bananas'"]),
        (
            "\nconnector {\n host: a\n port: amqp\n}\nsslProfile {\nname: x\n}",
            &[
                "test.conf:2: section 'connector' isn't available yet in this version: ",
                "test.conf:6: section 'sslProfile' isn't",
            ],
        ),
        ("ssl-profile {\nname: x\n}", &["test.conf:1: section 'sslProfile' isn't available yet"]),
        (
            "vhost {\nid: h\ngroups: {\n\"a\": {\n\"users\": \"*\"\n}\n}\n}",
            &["test.conf:1: section 'vhost' isn't available yet"],
        ),
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
            "listener {\nauthenticatePeer: yes\n}",
            &["test.conf:2: listener: 'authenticatePeer' needs a mechanism that isn't available yet"],
        ),
        (
            "listener {\nsaslMechanisms: ANONYMOUS PLAIN\n}",
            &[
                "test.conf:2: listener: 'saslMechanisms' is 'PLAIN', which isn't available yet in this version: ",
            ],
        ),
        (
            "listener {\nrole: inter-router\n}",
            &["test.conf:2: listener: 'role' is 'inter-router', which isn't available yet in this version: "],
        ),
        (
            "listener {\nrole: Normal\n}",
            &[
                "test.conf:2: listener: 'role' is 'Normal', expected one of normal, inter-router, route-container, edge; did you mean 'normal'?",
            ],
        ),
        (
            "listener {\nhttp: yes\n}",
            &["test.conf:2: listener: 'http' isn't available yet in this version: "],
        ),
        (
            "listener {\nsslProfile: a\nrequireSsl: yes\n}",
            &[
                "test.conf:2: listener: 'sslProfile' isn't available yet",
                "test.conf:3: listener: 'requireSsl' isn't available yet",
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
            &["test.conf:4: listener: :1 is listened on already, by the section at line 1"],
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
            "router {\nmode: interior\nid: A\n}",
            &["test.conf:2: router: 'mode' is 'interior', which isn't available yet in this version: "],
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
        ("address {\nprefix: a\nwaypoint: yes\n}", &["test.conf:3: address: 'waypoint' isn't available yet"]),
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
fn all_faults_of_a_file_at_once_in_order() {
    let said = faults("router {\nmode: none\n}\nfoo {\n}\nlistener {\nport: x\nbar: 1\n}\nlog {\n}\n}");
    let lines: Vec<_> = said.iter().map(|fault| fault.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["2", "4", "7", "8", "10", "12"], "{said:#?}");
}

#[test]
fn deprecated_names_work_and_are_named_once() {
    let config = parse(
        "router {\nhelloInterval: 2\n}\nlistener {\nprotocol-family: IPv4\nport: 1\n}\n\
         listener {\nprotocolFamily: IPv6\nport: 2\n}\nlog {\nmodule: DEFAULT\noutput: a.log\ntimestamp: no\n}",
    );
    assert_eq!(
        config.warnings,
        [
            "test.conf:2: router: 'helloInterval' is deprecated, use 'helloIntervalSeconds'",
            "test.conf:5: listener: 'protocolFamily' is deprecated, use 'socketAddressFamily'",
            "test.conf:14: log: 'output' is deprecated, use 'outputFile'",
            "test.conf:15: log: 'timestamp' is deprecated, use 'includeTimestamp'",
        ]
    );
    assert_eq!(config.listeners[1].socket_address_family, Some(AddressFamily::IPv6));
    assert_eq!(config.logs[0].output_file.as_deref(), Some("a.log"));
    assert_eq!(config.logs[0].include_timestamp, Some(false));
}

/// The deprecated names of these sections as the acceptance reference lists them.
#[test]
fn every_deprecated_name_is_known() {
    for (section, former) in [
        (
            "router",
            "helloInterval helloMaxAge raInterval raIntervalFlux remoteLsMaxAge debugDump saslConfigPath",
        ),
        ("listener", "protocolFamily trustedCerts failoverList httpRoot logMessage"),
        ("log", "timestamp source output"),
    ] {
        let entity = ENTITY_TYPES.iter().find(|entity| entity.name == section).unwrap();
        for name in former.split(' ') {
            let (_, attribute) = entity.attribute(name).unwrap_or_else(|| panic!("{section} {name}"));
            assert_eq!(attribute.deprecated_name, Some(name));
        }
    }
}

#[test]
fn what_has_no_effect_says_so() {
    let config = parse("router {\nsaslConfigDir: /etc/sasl2\n}\nlistener {\nmaxSessionFrames: 9000000\n}");
    assert_eq!(config.warnings.len(), 2, "{:?}", config.warnings);
    assert!(config.warnings[0].starts_with("test.conf:2: router: 'saslConfigDir' has no effect"));
    // 2^31 - 1 over the default frame size of 16384.
    assert!(
        config.warnings[1]
            .starts_with("test.conf:5: listener: 'maxSessionFrames' is reduced from 9000000 to 131071")
    );
    assert_eq!(config.listeners[0].max_session_frames, Some(131_071));
}

#[test]
fn the_default_of_what_is_not_available_may_be_written() {
    let text = "router {\nmode: standalone\n}\nlistener {\nhttp: false\nrequireSsl: no\nmultiTenant: off\n\
                messageLoggingComponents: none\ncost: 5\nwebsockets: no\n}\naddress {\nprefix: a\nwaypoint: no\n\
                ingressPhase: 0\n}";
    assert_eq!(parse(text).warnings, [""; 0]);
}

#[test]
fn carriage_returns_and_a_byte_order_mark_do_no_harm() {
    let config = parse(
        "\u{feff}router {\r\n  id: A\r\n}\r\nlistener {\r\nopenProperties: {\r\n\"a\": 1\r\n}\r\n}\r\n",
    );
    assert_eq!(config.router.id.as_deref(), Some("A"));
    assert_eq!(config.listeners[0].open_properties.len(), 1);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let errors = Config::load(std::path::Path::new("no-such-file.conf")).unwrap_err();
    assert!(
        errors.to_string().starts_with("no-such-file.conf: can't read the configuration file: "),
        "{errors}"
    );
}

#[test]
fn the_schema_is_consistent() {
    for (index, entity) in ENTITY_TYPES.iter().enumerate() {
        assert!(ENTITY_TYPES[..index].iter().all(|other| other.name != entity.name), "{}", entity.name);
        assert!(entity.description.ends_with('.'), "{}", entity.name);
        for (place, attribute) in entity.attributes.iter().enumerate() {
            let names = [Some(attribute.name), attribute.deprecated_name];
            for name in names.into_iter().flatten() {
                assert_eq!(entity.attribute(name).unwrap().0, place, "{}.{name}", entity.name);
            }
            assert!(attribute.description.ends_with('.'), "{}.{}", entity.name, attribute.name);
            assert!(!(attribute.is_required && attribute.default.is_some()));
            if let Availability::Only { words, .. } = attribute.availability {
                assert!(attribute.default.is_none_or(|default| words.contains(&default)));
            }
        }
        if entity.unavailable.is_none() {
            // Every default has the type of its attribute, or this panics.
            super::check::Record::defaults(entity);
        }
    }
}

#[test]
fn hosts_become_addresses_to_bind() {
    let bound = |body: &str| {
        let addresses = listener(body).bind_addresses().unwrap();
        addresses.iter().map(|bind| (bind.address.to_string(), bind.is_v6_only)).collect::<Vec<_>>()
    };
    assert_eq!(bound("port: 1"), [("[::]:1".to_owned(), false)]);
    assert_eq!(bound("port: 1\nsocketAddressFamily: IPv4"), [("0.0.0.0:1".to_owned(), false)]);
    assert_eq!(bound("port: 1\nsocketAddressFamily: IPv6"), [("[::]:1".to_owned(), true)]);
    assert_eq!(bound("port: 1\nhost: [::]"), [("[::]:1".to_owned(), true)]);
    assert_eq!(bound("port: 0\nhost: 127.0.0.1"), [("127.0.0.1:0".to_owned(), false)]);
}

/// The pieces that files consist of, so that random files reach deep into the parser.
const PIECES: [&str; 24] = [
    "router",
    "listener",
    "address",
    "log",
    "connector",
    "{",
    "}",
    ": {",
    ":",
    "port",
    "pattern",
    "openProperties",
    "max-frame-size",
    "module",
    "#",
    "\"a\"",
    ",",
    "[",
    "]",
    "\\u12",
    "\n",
    " ",
    "5672",
    "é",
];

proptest::proptest! {
    /// Whatever the text: no panic, and each fault names a line of it.
    #[test]
    fn any_text_is_read_or_refused(
        pieces in proptest::collection::vec(0..PIECES.len(), 0..60),
        noise in ".{0,8}",
        is_json in proptest::bool::ANY,
    ) {
        let mut text: String = pieces.iter().map(|piece| PIECES[*piece]).collect();
        text.push_str(&noise);
        let name = if is_json { "a.json" } else { "a.conf" };
        if let Err(errors) = Config::parse(&text, name) {
            let lines = u32::try_from(text.split('\n').count()).unwrap();
            for error in errors.0 {
                let line = error.line.unwrap();
                proptest::prop_assert!((1..=lines).contains(&line), "{error} of {lines} lines in {text:?}");
            }
        }
    }
}

#[test]
fn what_shards_do_while_idle_is_set_in_the_router_section() {
    let router = |attributes: &str| parse(&format!("router {{\n{attributes}\n}}\nlistener {{\n}}\n"));
    let plain = router("mode: standalone");
    assert_eq!((plain.router.idle, plain.router.napi), (Idle::Block, Duration::ZERO));
    assert_eq!(router("idle: spin").router.idle, Idle::Spin);
    let for_a_while = router("idle: spin-then-block").router.idle;
    assert_eq!(for_a_while, Idle::SpinThenBlock(Duration::from_micros(50)));
    let bounded = router("idle: spin-then-block\nspinMicroseconds: 200\nnapiMicroseconds: 30");
    assert_eq!(bounded.router.idle, Idle::SpinThenBlock(Duration::from_micros(200)));
    assert_eq!((bounded.router.napi, bounded.warnings.len()), (Duration::from_micros(30), 0));
    for useless in ["spinMicroseconds: 50", "idle: spin\nnapiMicroseconds: 30"] {
        let warnings = router(useless).warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("changes nothing"), "{warnings:?}");
    }
    assert!(router("napiMicroseconds: 30").warnings.is_empty());
}
