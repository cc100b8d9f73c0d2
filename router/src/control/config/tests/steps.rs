//! What a reload has to do.

use super::super::{Config, Step};
use super::parse;

/// The steps as short words.
fn steps(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (parse(old), parse(new));
    old.steps_to(&new).iter().map(word).collect()
}

fn word(step: &Step) -> String {
    match step {
        Step::RemoveListener(listener) => format!("-listener {}", listener.host_port()),
        Step::AddListener(listener) => format!("+listener {}", listener.host_port()),
        Step::RemoveConnector(connector) => format!("-connector {}", connector.host_port()),
        Step::AddConnector(connector) => format!("+connector {}", connector.host_port()),
        Step::RemoveAutoLink(link) => format!("-autoLink {}", link.address.as_deref().unwrap_or_default()),
        Step::AddAutoLink(link) => format!("+autoLink {}", link.address.as_deref().unwrap_or_default()),
        Step::RemoveAddress(address) => format!("-address {}", address.matching.text()),
        Step::SetAddress(address) => format!("=address {} {}", address.matching.text(), address.distribution),
        Step::SetProfile(profile) => format!("=profile {}", profile.name),
        Step::Restart(what) => format!("restart {what}"),
    }
}

const OLD: &str = "listener {\nhost: a\nport: 1\n}\nlistener {\nhost: b\nport: 2\n}\n\
                   connector {\nname: c\nhost: c\nport: 3\n}\nautoLink {\naddress: q\ndirection: in\nconnection: c\n}\n\
                   address {\nprefix: x\n}\naddress {\nprefix: y\n}\n";

#[test]
fn nothing_changes_nothing() {
    assert_eq!(
        steps(OLD, &format!("# moved\n\n{OLD}\nlog {{\nmodule: DEFAULT\nenable: debug+\n}}\n")),
        [""; 0]
    );
}

#[test]
fn removals_come_first_and_listeners_last() {
    let none = "router {\n}\n";
    assert_eq!(
        steps(OLD, none),
        ["-listener a:1", "-listener b:2", "-connector c:3", "-autoLink q", "-address x", "-address y"]
    );
    assert_eq!(
        steps(none, OLD),
        [
            "=address x balanced",
            "=address y balanced",
            "+autoLink q",
            "+connector c:3",
            "+listener a:1",
            "+listener b:2",
        ]
    );
}

#[test]
fn only_what_differs_is_touched() {
    let new = OLD
        .replace("port: 2", "port: 2\nlinkCapacity: 7")
        .replace("prefix: y", "prefix: y\ndistribution: closest");
    assert_eq!(steps(OLD, &new), ["-listener b:2", "=address y closest", "+listener b:2"]);
    // The same addresses by another notation: set anew, never without settings in between.
    let new = OLD.replace("prefix: y", "pattern: y/#\ndistribution: multicast");
    assert_eq!(steps(OLD, &new), ["=address y/# multicast"]);
}

#[test]
fn what_takes_a_restart_is_named() {
    let new = format!("router {{\nid: A\nworkerThreads: 2\nmetadata: m\ntimestampsInUTC: yes\n}}\n{OLD}");
    assert_eq!(steps(OLD, &new), ["restart router: 'id'", "restart router: 'workerThreads'"]);
}

/// The typed form of a record is at the place of the record, also with several of each.
#[test]
fn every_record_finds_its_typed_form() {
    let text: String = (0..20)
        .map(|n| format!("address {{\nprefix: a{n}\n}}\nlistener {{\nport: {}\n}}\n", n + 1))
        .collect();
    let config = parse(&text);
    let steps = Config::embedded().steps_to(&config);
    let added = steps.iter().map(word).filter(|word| !word.starts_with('-')).count();
    assert_eq!(added, 40, "{steps:?}");
    assert!(steps.iter().any(|step| word(step) == "=address a19 balanced"));
    assert!(steps.iter().any(|step| word(step) == "+listener :20"));
}
