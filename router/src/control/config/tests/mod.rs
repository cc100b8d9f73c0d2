//! Whole files: right ones as `qdrouterd`'s users write them, and broken ones with what must be said.

mod broken;
mod change;
mod features;
mod schema;
mod steps;

use super::{AddressMatch, Config, Distribution, Json, ListenerConfig, RouterMode, StripAnnotations};
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

#[test]
fn all_faults_of_a_file_at_once_in_order() {
    let said = faults("router {\nmode: none\n}\nfoo {\n}\nlistener {\nport: x\nbar: 1\n}\nlog {\n}\n}");
    let lines: Vec<_> = said.iter().map(|fault| fault.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["2", "4", "7", "8", "10", "12"], "{said:#?}");
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
