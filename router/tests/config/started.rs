//! Files in the style of the documentation of `qdrouterd`: each checks, and a router starts from it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Folder, Router, run, text};

/// The file, how many warnings this says at least, and what the summary has a line of.
const FILES: &[(&str, &str)] = &[
    ("standalone.conf", "listener           0.0.0.0:5672 normal"),
    ("addresses.conf", "address            4: multicast/# multicast, closest/# closest, */orders/# balanced"),
    ("auto-links.conf", "autoLink           3: my_queue, my_queue, events"),
    ("link-routes.conf", "linkRoute          4: my_queue/#, my_queue/#, $coordinator/#, *.orders.#"),
    ("policy.conf", "vhost              2: example.com, *.example.org"),
    ("tls.conf", "sslProfile         service-tls"),
    ("interior.conf", "router             mode interior, id Router.A"),
    ("edge.conf", "exchange           prices"),
    ("everything.json", "vhost              localhost"),
    ("old-names.conf", "console            without a name"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/files")
}

#[test]
fn each_file_is_in_the_list() {
    let mut names: Vec<_> = fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("a readable entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    let mut listed: Vec<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
    listed.sort();
    assert_eq!(names, listed);
}

#[test]
fn each_file_checks_well() {
    for (name, line) in FILES {
        // The port is the environment's in one of them.
        let file = with_free_ports(name, false);
        let output = run(&["check", file.1.to_str().expect("text")]);
        let said = text(&output.stdout);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert!(said.contains(line), "{name}: no line {line:?} in:\n{said}");
        assert!(said.contains(": a router can start from it\n"), "{said}");
    }
}

#[test]
fn a_router_starts_from_each_file() {
    for (name, _) in FILES {
        let file = with_free_ports(name, true);
        let router = Router::start(&file.1, &[("LISTENER_PORT", "0"), ("HOW_MANY_ROUTERS", "3")]);
        assert!(router.log.iter().any(|line| line.contains("Listening on ")), "{name}: {:#?}", router.log);
        // The brokers and routers that the files name aren't there.
        let is_fault = |line: &&String| line.contains("(error)") && !line.contains("Connection to ");
        assert_eq!(router.log.iter().find(is_fault), None, "{name}: {:#?}", router.log);
        let status = router.stop();
        assert_eq!(status.code(), Some(0), "{name}");
    }
}

/// A copy of the file whose listeners take any free port, if so desired.
fn with_free_ports(name: &str, are_free: bool) -> (Folder, PathBuf) {
    let original = fs::read_to_string(folder().join(name)).expect("the file is there");
    let mut copy = String::new();
    let mut section = "";
    for line in original.lines() {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_suffix(" {") {
            section = name;
        }
        if are_free && section == "listener" && trimmed.starts_with("port:") {
            copy.push_str("    port: 0\n");
        } else if are_free || !trimmed.contains("$LISTENER_PORT") {
            copy.push_str(line);
            copy.push('\n');
        } else {
            copy.push_str("        \"port\": \"5672\",\n");
        }
    }
    let folder = Folder::new();
    if are_free && copy.contains("/etc/pki/") {
        // What the file names, where a test may write.
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("it signs itself").pem();
        folder.write("tls.crt", &certificate);
        folder.write("ca.crt", &certificate);
        folder.write("tls.key", &key.serialize_pem());
        copy = copy.replace("/etc/pki/", &format!("{}/", folder.path().display()));
    }
    let path = folder.write(name, &copy);
    (folder, path)
}
