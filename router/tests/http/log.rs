//! The log as JSON, and traces of frames.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::support::{Router, Setup, message};

#[test]
fn lines_are_json_if_that_is_asked_for() {
    let folder = std::env::temp_dir().join(format!("ringmain-json-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written to");
    let file = folder.join("a.conf");
    let text = "listener {\n    host: 127.0.0.1\n    port: 0\n}\nlog {\n    module: DEFAULT\n    includeSource: yes\n}\n";
    std::fs::write(&file, text).expect("the configuration can be written");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringmain"))
        .args(["--log-format", "json", "-c"])
        .arg(&file)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the router can be started");
    let mut texts = Vec::new();
    for line in BufReader::new(child.stderr.take().expect("it is piped")).lines() {
        let line = line.expect("text");
        let line: serde_json::Value = serde_json::from_str(&line).expect("each line is a JSON object");
        for name in ["time", "level", "module", "text", "source"] {
            assert!(line[name].is_string(), "{name} in {line}");
        }
        let text = line["text"].as_str().unwrap_or_default().to_owned();
        let is_up = text.contains("Operational");
        texts.push((line["module"].clone(), line["level"].clone(), text));
        if is_up {
            break;
        }
    }
    child.kill().expect("it runs");
    child.wait().expect("it is a child");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    let (module, level, _) = texts.last().expect("there are lines");
    assert_eq!((module.as_str(), level.as_str()), (Some("SERVER"), Some("notice")));
}

fn body() -> Vec<u8> {
    message::data(&[7; 100])
}

/// What one client exchanges with the router, from its header to its close.
fn exchange(router: &Router) {
    let mut peer = router.peer();
    let receiver = peer.attach_receiver("q", 1);
    let sender = peer.attach_sender("q");
    peer.await_credit(sender, 1);
    peer.send_delivery(sender, &body(), true);
    assert_eq!(peer.expect_delivery().link, receiver);
}

/// The acceptance list: module PROTOCOL, level trace, `[C<id>]`, `:<channel>`, `<-` or `->`, `@open(16) […]`.
fn expect_traced(router: &Router) {
    for wanted in [
        ": <- AMQP 1.0.0",
        ": -> AMQP 1.0.0",
        ":0 <- @open(16) [container-id=",
        ":0 -> @open(16) [container-id=\"R\", ",
        ":0 <- @begin(17) [",
        ":0 <- @attach(18) [name=",
        "role=receiver, ",
        "source=@source(40) [address=\"q\"",
        ":0 -> @flow(19) [",
        ":0 <- @transfer(20) [handle=",
        ":0 -> @transfer(20) [handle=",
    ] {
        router.await_log_where(wanted, |line| line.contains("PROTOCOL (trace) [C") && line.contains(wanted));
    }
    let transfer = router.await_log("-> @transfer(20) [");
    assert!(transfer.ends_with(&format!(" ({} bytes)", body().len())), "{transfer}");
}

#[test]
fn all_connections_are_traced_when_the_level_is_enabled() {
    let sections = "log {\n    module: PROTOCOL\n    enable: trace+\n}\n";
    let router = Router::with(Setup { sections, ..Setup::default() });
    exchange(&router);
    expect_traced(&router);
}

#[test]
fn connections_of_a_listener_are_traced_whatever_the_level_is() {
    let router = Router::with(Setup { listener: "    enableProtocolTrace: yes", ..Setup::default() });
    exchange(&router);
    expect_traced(&router);
}

#[test]
fn nothing_is_traced_unless_it_is_asked_for() {
    let router = Router::start();
    exchange(&router);
    router.await_log("Connection Opened");
    assert!(!router.log().iter().any(|line| line.contains("PROTOCOL")), "{:?}", router.log());
}

/// What of a message is logged is what its listener says, and nothing for listeners that say nothing.
#[test]
fn messages_are_logged_by_their_components() {
    use crate::support::message;
    use ringmain_codec::{Properties, Writer};

    for (components, expected) in [
        ("messageLoggingComponents: to, subject", Some("Message{to=\"a\", subject=\"news\"}")),
        ("messageLoggingComponents: group-id", Some("Message{}")),
        ("messageLoggingComponents: none", None),
    ] {
        let router = crate::support::Router::with(crate::support::Setup {
            listener: components,
            sections: "log {\n module: MESSAGE\n enable: trace+\n}\n",
            ..crate::support::Setup::default()
        });
        let (mut receiver, mut sender) = (router.peer(), router.peer());
        receiver.attach_receiver("a", 1);
        let link = sender.attach_sender("a");
        sender.await_credit(link, 1);
        let properties = Properties { to: Some("a"), subject: Some("news"), ..Properties::default() };
        let mut bytes = message::encoded(|writer: &mut Writer<'_>| writer.put(&properties));
        bytes.extend(message::data(b"secret"));
        sender.send_delivery(link, &bytes, true);
        receiver.expect_delivery();
        match expected {
            Some(expected) => {
                for way in ["Received", "Sent"] {
                    let line = router
                        .await_log_where(way, |line| line.contains("MESSAGE (trace)") && line.contains(way));
                    assert!(line.ends_with(&format!("{way} {expected}")), "{line}");
                }
            }
            None => {
                sender.close();
                router.await_log("Connection Closed");
                assert!(!router.log().iter().any(|line| line.contains("MESSAGE (")), "{:?}", router.log());
            }
        }
        assert!(!router.log().iter().any(|line| line.contains("secret")));
    }
}
