//! `ringmain manage --save`: the file starts a router like the one that it is of.

use std::fs;
use std::path::Path;

use ringmain::control::config::{Config, Record};

use crate::program::{Folder, ask, run};
use crate::support::{Router, Setup};

#[test]
fn what_was_changed_at_run_time_is_in_the_file() {
    let router = Router::with(Setup {
        router: "    defaultDistribution: closest",
        listener: "    idleTimeoutSeconds: 30\n    maxFrameSize: 32768",
        sections: "address {\n prefix: from.file\n distribution: multicast\n}\n\
                   address {\n pattern: gone.#\n}\n\
                   log {\n module: SERVER\n enable: info+\n}",
    });
    ask(&router, "manage create --type address --name late pattern=a.*.# distribution=closest priority=3")
        .ok();
    ask(&router, "manage delete --type address --name address/1").ok();
    ask(&router, "manage create --type listener --name second host=127.0.0.1 port=0 linkCapacity=77").ok();
    ask(&router, "manage update --type log --name log/AGENT enable=warning+").ok();
    let folder = Folder::new();
    let path = folder.path().join("saved.conf");
    fs::write(&path, "router {\n id: FORMER\n}\n").expect("the folder is writable");
    let said = ask(&router, &format!("manage --save {}", path.display()));
    assert!(said.status == 0 && said.err.is_empty(), "{said:?}");
    let text = fs::read_to_string(&path).expect("it is written");
    let backup = fs::read_to_string(folder.path().join("saved.conf.bak")).expect("the former file is kept");
    assert!(backup.contains("FORMER"));
    for line in [
        "id: R",
        "defaultDistribution: closest",
        "maxFrameSize: 32768",
        "idleTimeoutSeconds: 30",
        "prefix: from.file",
        "pattern: a.*.#",
        "priority: 3",
        "name: second",
        "linkCapacity: 77",
        "module: AGENT",
        "enable: warning+",
        "module: SERVER",
    ] {
        assert!(text.lines().any(|found| found.trim() == line), "{line} in:\n{text}");
    }
    assert!(!text.contains("gone") && !text.contains("cost") && !text.contains("address/"), "{text}");
    let check = run(&format!("check --strict {}", path.display())).ok();
    assert!(check.contains("a router can start from it"), "{check}");
    // The same again says the same: nothing is lost or added on the way.
    let again = Router::from_file(&path);
    let second = ask(&again, "manage --save -").ok();
    assert_eq!(second, text);
}

#[test]
fn a_file_that_can_not_be_written() {
    let router = Router::start();
    let said = ask(&router, "manage --save /nowhere/at/all.conf");
    assert_eq!(said.status, 1);
    assert!(said.err.contains("can't write /nowhere/at/all.conf"), "{}", said.err);
}

/// Of each of the files in the style of qdrouterd's documentation the router saves what the file says, passwords
/// aside.
#[test]
fn what_a_file_says_is_saved_again() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/files");
    let folder = Folder::new();
    let mut tried = 0;
    for entry in fs::read_dir(files).expect("the folder is there") {
        let original = entry.expect("a readable entry").path();
        let name = original.file_name().expect("a file").to_str().expect("text");
        let path = folder.path().join(name);
        let mut text = with_free_ports(&fs::read_to_string(&original).expect("the file is there"));
        if text.contains("enableVhostPolicy: true") {
            // The tools are let in by it, too.
            text += "vhost {\n hostname: 127.0.0.1\n aliases: localhost, 0.0.0.0\n groups: {\n all: {\n users: *\n remoteHosts: *\n sources: *\n \
                     targets: *\n allowDynamicSource: yes\n }\n }\n}\n";
        }
        if text.contains("/etc/pki/") {
            let certificate =
                rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
            for (name, pem) in [
                ("tls.crt", certificate.cert.pem()),
                ("ca.crt", certificate.cert.pem()),
                ("tls.key", certificate.signing_key.serialize_pem()),
            ] {
                fs::write(folder.path().join(name), pem).expect("the folder is writable");
            }
            text = text.replace("/etc/pki/", &format!("{}/", folder.path().display()));
        }
        fs::write(&path, &text).expect("the folder is writable");
        let router = Router::from_file(&path);
        // The last listener is for clients without TLS, if not all are.
        let log = router.log();
        let listening = log.iter().rfind(|line| line.contains("Listening on ")).expect("it listens");
        let address = listening.rsplit(' ').next().expect("a line has words");
        let said = run(&format!("manage --save - -b {address}"));
        assert_eq!(said.status, 0, "{name}: {}", said.err);
        let meant = Config::parse(&text, name).expect("a router started from it");
        let saved = Config::parse(&said.out, "saved.conf").expect("it was read back");
        for record in &meant.records {
            let is_it = |other: &&Record| {
                other.entity_name() == record.entity_name() && differences(record, other).is_empty()
            };
            if is_set(record) {
                assert!(
                    saved.records.iter().any(|other| is_it(&other)),
                    "{name}: {record:?} in:\n{}",
                    said.out
                );
            }
        }
        let count = |config: &Config| config.records.iter().filter(|record| is_set(record)).count();
        assert!(count(&saved) <= count(&meant) + 1, "{name}:\n{}", said.out);
        tried += 1;
    }
    assert!(tried >= 10);
}

/// What differs that isn't a secret; a name that was made up is none, and so is an id.
fn differences(record: &Record, other: &Record) -> Vec<&'static str> {
    let mut names = record.changes(other);
    names.retain(|name| {
        let is_secret = record.entity().attribute(name).is_some_and(|(_, attribute)| attribute.is_secret);
        !is_secret && record.is_set(name)
    });
    names
}

fn is_set(record: &Record) -> bool {
    record.values().any(|(attribute, _)| record.is_set(attribute.name))
}

/// The text with listeners on any free port, and its variables' values in it.
fn with_free_ports(text: &str) -> String {
    let mut copy = String::new();
    let mut section = "";
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_suffix(" {") {
            section = name;
        }
        if section == "listener" && trimmed.starts_with("port:") {
            copy.push_str("    port: 0\n");
        } else {
            copy.push_str(&line.replace("$LISTENER_PORT", "0").replace("${HOW_MANY_ROUTERS}", "3"));
            copy.push('\n');
        }
    }
    copy
}
