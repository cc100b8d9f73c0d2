//! Broken files: the router says what is wrong with the file, opens nothing and ends with status 1.

use std::process::{Command, Stdio};

use crate::program::{Folder, run, text};

/// Each file, and the messages about it without the file's name.
const FILES: &[(&str, &[&str])] = &[
    ("router {\n    mode: standalone\n    id: A\n", &["1: section 'router' isn't closed: '}' is missing"]),
    ("ruoter {\n    id: A\n}\n", &["1: unknown section 'ruoter'; did you mean 'router'?"]),
    ("router {\n    mode: interior\n}\n", &["2: router: 'id' is missing (mode 'interior' requires it)"]),
    (
        "router {\n    mode: solo\n}\n",
        &["2: router: 'mode' is 'solo', expected one of standalone, interior, edge"],
    ),
    (
        "router {\n    id: A\n}\nlistener {\n    role: inter-router\n    port: 5001\n}\n",
        &[
            "5: listener: role='standalone' not allowed to connect to or accept connections from other routers.",
        ],
    ),
    (
        "router {\n    mode: edge\n    id: A\n}\nconnector {\n    role: inter-router\n    port: 5001\n}\n",
        &["6: connector: role='inter-router' only allowed with router mode='interior'"],
    ),
    (
        "router {\n    mode: edge\n    id: A\n}\nlistener {\n    role: edge\n    port: 5001\n}\n",
        &["6: listener: role='edge' only allowed with router mode='interior'"],
    ),
    (
        "listener {\n    host: 127.0.0.1\n    prot: 5672\n}\n",
        &["3: listener: unknown attribute 'prot'; did you mean 'port'?"],
    ),
    (
        "listener {\n    port: amqpp\n    authenticatePeer: perhaps\n}\n",
        &[
            "2: listener: 'port' is 'amqpp', expected a port number from 0 to 65535",
            "3: listener: 'authenticatePeer' is 'perhaps', expected yes, true, on, no, false or off",
        ],
    ),
    (
        "listener {\n    port: 5672\n    maxFrameSize: 100\n}\n",
        &["3: listener: 'maxFrameSize' is '100', expected an integer from 512 to 2147483647 (bytes)"],
    ),
    (
        "listener {\n    port: 5672\n    sslProfile: server\n}\n",
        &["3: listener: 'sslProfile' is 'server', but no section 'sslProfile' has that name"],
    ),
    (
        "listener {\n    port: 5672\n}\nlistener {\n    port: 5672\n}\n",
        &["4: listener: :5672 is listened on already, by the listener at line 1"],
    ),
    (
        "listener {\n    openProperties: {\n        \"product\": \"mine\"\n    }\n}\n",
        &["3: listener: 'openProperties' has \"product\": the name is reserved"],
    ),
    (
        "address {\n    prefix: a\n    pattern: a.#\n}\n",
        &["3: address: 'prefix' and 'pattern' can't both be set"],
    ),
    (
        "address {\n    prefix: a\n}\naddress {\n    pattern: a/#\n    distribution: closest\n}\n",
        &["4: address: pattern conflicts: 'a/#' matches the same addresses as 'a' at line 1"],
    ),
    (
        "autoLink {\n    address: a\n    dir: in\n    direction: in\n}\n",
        &["4: Both 'dir' and 'direction' cannot be specified for entity 'autoLink'"],
    ),
    (
        "autoLink {\n    address: a\n    direction: in\n    connection: b\n    containerId: c\n}\n",
        &["5: autoLink: Both connection and containerId cannot be specified"],
    ),
    (
        "linkRoute {\n    prefix: a\n    distribution: balanced\n}\n",
        &[
            "1: linkRoute: 'direction' is missing (it is required)",
            "3: linkRoute: 'distribution' is 'balanced', expected one of linkBalanced",
        ],
    ),
    (
        "vhost {\n    hostname: a\n    groups: {\n        $default: {\n            user: b\n        }\n    }\n}\n",
        &["5: vhost group '$default': unknown attribute 'user'; did you mean 'users'?"],
    ),
    (
        "log {\n    module: ROUTER_COER\n    enable: loud\n}\n",
        &[
            "2: log: 'module' is 'ROUTER_COER', expected one of ROUTER, ROUTER_CORE",
            "3: log: 'enable' is 'loud', expected levels with commas between them",
        ],
    ),
    ("router.config.address {\n    prefix: a\n}\n", &["1: a section's name has no dot"]),
    (
        "listener {\n    port: 5672 }\n",
        &["1: section 'listener' isn't closed", "2: listener: 'port' is '5672 }'"],
    ),
];

#[test]
fn each_broken_file_is_refused_with_all_that_is_wrong() {
    assert!(FILES.len() >= 20);
    let folder = Folder::new();
    let program = folder.link("qdrouterd");
    for (number, (content, messages)) in FILES.iter().enumerate() {
        let file = folder.write(&format!("{number}.conf"), content);
        let file = file.to_str().expect("text");
        let started =
            Command::new(&program).args(["-c", file]).stdin(Stdio::null()).output().expect("it starts");
        let checked = run(&["check", file]);
        for output in [started, checked] {
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{content}\nsaid {said}");
            for message in *messages {
                let line = format!("\n{file}:{message}");
                assert!(said.contains(&line), "{content}\nsaid {said}\nexpected {line}");
            }
            assert_eq!(said.lines().count(), messages.len() + 1, "{content}\nsaid {said}");
            assert!(!said.contains("Listening"), "{said}");
            assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
        }
    }
}

#[test]
fn the_files_of_policy_dir_are_checked_with_their_names() {
    let folder = Folder::new();
    folder.write("a.json", "[[\"vhost\", {\"hostname\": \"a\"}]]");
    let b =
        folder.write("b.json", "[\n[\"vhost\", {\"hostname\": \"b\",\n\"aliases\": \"a\", \"colour\": 1}]]");
    let c = folder.write("c.json", "[[\"listener\", {}]]");
    folder.write("d.txt", "nothing");
    let conf = |directory: &str| {
        folder.write("r.conf", &format!("listener {{\nport: 0\n}}\npolicy {{\npolicyDir: {directory}\n}}\n"))
    };
    let path = |path: &std::path::Path| path.to_str().expect("text").to_owned();
    let file = conf(&path(folder.path()));
    let output = run(&["check", &path(&file)]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("\n{}:3: vhost: unknown attribute 'colour'", b.display())), "{said}");
    assert!(said.contains(&format!("\n{}:1: a file of 'policyDir' has vhosts only", c.display())), "{said}");

    std::fs::remove_file(c).expect("it is there");
    folder.write("b.json", "[[\"vhost\", {\"hostname\": \"b\",\n\"aliases\": \"a\"}]]");
    let said = text(&run(&["check", &path(&file)]).stderr);
    assert!(said.contains("vhost: the host name 'a' belongs to the vhost at "), "{said}");

    folder.write("b.json", "[[\"vhost\", {\"hostname\": \"b\"}]]");
    let output = run(&["check", &path(&file)]);
    assert!(text(&output.stdout).contains("vhost              2: a, b"), "{}", text(&output.stderr));

    let missing = conf("/no/such/directory");
    let said = text(&run(&["check", &path(&missing)]).stderr);
    assert!(said.contains("r.conf:5: policy: can't read 'policyDir' /no/such/directory: "), "{said}");
}
