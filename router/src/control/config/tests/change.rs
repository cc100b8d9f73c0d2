//! Differences between configurations, and changes of one.

use super::super::schema::EntityType;
use super::super::{Config, Json, Member, Record};
use super::parse;

const BASE: &str = "router {\nid: A\n}\nlistener {\nname: a\nport: 1\n}\nlistener {\nport: 2\n}\n\
                    address {\nprefix: x\n}\naddress {\npattern: y/#\ndistribution: closest\n}\n\
                    log {\nmodule: DEFAULT\nenable: info+\n}\n";

fn names(records: &[&Record]) -> Vec<String> {
    records.iter().map(|record| format!("{record:?}")).collect()
}

#[test]
fn the_same_file_in_another_order_and_with_comments_is_the_same() {
    let other = "# moved\n\nlog {\nmodule: DEFAULT\nenable: INFO+\n}\naddress {\npattern: y/#\ndistribution: closest\n}\n\
                 address {\nprefix: x\ndistribution: balanced\n}\nlistener {\nport: 2\n}\n\
                 listener {\nname: a\nport: 1\n}\nrouter {\nid: A\n}\n";
    let (old, new) = (parse(BASE), parse(other));
    assert!(old.difference(&new).is_empty(), "{:?}", old.difference(&new));
}

#[test]
fn what_is_added_removed_and_changed() {
    let old = parse(BASE);
    let new = BASE
        .replace("port: 2", "port: 3")
        .replace("name: a\nport: 1", "name: a\nport: 1\nlinkCapacity: 10")
        .replace("distribution: closest", "distribution: multicast")
        .replace("enable: info+", "enable: debug+");
    let new = parse(&(new + "autoLink {\naddress: q\ndirection: in\nconnection: c\n}\n"));
    let difference = old.difference(&new);
    assert_eq!(difference.added.len(), 2, "{:?}", names(&difference.added));
    assert_eq!(difference.added[0].value("port").unwrap().text(), "3");
    assert_eq!(difference.added[1].entity_name(), "autoLink");
    assert_eq!(difference.removed.len(), 1, "{:?}", names(&difference.removed));
    assert_eq!(difference.removed[0].value("port").unwrap().text(), "2");
    let changed: Vec<_> = difference
        .changed
        .iter()
        .map(|change| (change.new.entity_name(), change.attributes.clone()))
        .collect();
    assert_eq!(
        changed,
        [("listener", vec!["linkCapacity"]), ("address", vec!["distribution"]), ("log", vec!["enable"])]
    );
    let back = new.difference(&old);
    assert_eq!((back.added.len(), back.removed.len(), back.changed.len()), (1, 2, 3));
}

#[test]
fn maps_and_groups_are_compared_by_what_they_say() {
    let text = "listener {\nopenProperties: {\n\"a\": [1, {\"b\": 2}]\n}\n}\nvhost {\nhostname: h\ngroups: {\n\
                $default: {\nsources: a, b\n}\nadmin: {\nusers: x\n}\n}\n}\n";
    let old = parse(text);
    let moved = text.replace("sources: a, b", "# here\nsources: a,b").replace("[1, {", "[1,\n{");
    assert!(old.difference(&parse(&moved)).is_empty());
    for (from, to) in [("users: x", "users: y"), ("\"b\": 2", "\"b\": 3"), ("admin", "root")] {
        let new = parse(&text.replace(from, to));
        assert_eq!(old.difference(&new).changed.len(), 1, "{to}");
    }
}

fn member(key: &str, value: Json) -> Member {
    Member { key: key.to_owned(), line: 1, value }
}

#[test]
fn entities_are_created_changed_and_deleted_with_all_checks() {
    let config = parse(BASE);
    let text = |text: &str| Json::String(text.to_owned());
    let listener = EntityType::find_type("listener").unwrap();
    let more = config
        .with_created(
            listener,
            vec![member("port", text("7")), member("authenticatePeer", Json::Boolean(false))],
        )
        .unwrap();
    assert_eq!(more.listeners.len(), 3);
    assert_eq!((more.listeners[2].port, config.difference(&more).added.len()), (7, 1));
    let taken = config.with_created(listener, vec![member("port", Json::Integer(2))]).unwrap_err();
    assert!(taken.0[0].message.contains("is listened on already"), "{taken}");
    let unknown = config.with_created(listener, vec![member("colour", text("red"))]).unwrap_err();
    assert!(unknown.0[0].message.starts_with("listener: unknown attribute 'colour'"), "{unknown}");

    let log = config.records.iter().position(|record| record.entity_name() == "log").unwrap();
    let quieter = config.with_updated(log, vec![member("enable", text("error+"))]).unwrap();
    assert_eq!(config.difference(&quieter).changed[0].attributes, ["enable"]);
    let fixed = config.with_updated(log, vec![member("module", text("AGENT"))]).unwrap_err();
    assert_eq!(fixed.0[0].message, "log: 'module' can't be changed");

    let fewer = more.without(more.records.len() - 1).unwrap();
    assert!(config.difference(&fewer).is_empty());
}

#[test]
fn what_is_written_reads_back_as_the_same() {
    let text = "router {\nid: A\nmetadata: \\u0020a # b\n}\nlistener {\nport: amqp\nhost: [::1]\nopenProperties: {\n\"a\": \"#\\\\\\\"\",\n\"b\": [1, 2.5, null, true]\n}\n}\n\
           address {\npattern: a.#.b\n}\naddress {\nprefix: \\u0023 \\u007b\n}\n\
           vhost {\nhostname: h\ngroups: {\n$default: {\nusers: a, b\nmaxSessions: 3\n}\n}\n}\n\
           log {\nmodule: DEFAULT\nenable: debug, info\noutputFile: \\u007bx\n}\n";
    let config = parse(text);
    let written = config.to_text();
    let again = Config::parse(&written, "test.conf").unwrap_or_else(|errors| panic!("{errors}\n{written}"));
    assert!(config.difference(&again).is_empty(), "{written}\n{:?}", config.difference(&again));
    assert_eq!(again.to_text(), written);
}
