//! The configurations that come with the router.

use crate::program::{Folder, Router, run, text};
use crate::{file, root};

/// Those that are installed, and the one that holds without any.
const DEFAULTS: [&str; 2] = ["deploy/ringmain.conf", "router/config/default.conf"];

const PRODUCTION: &str = "deploy/production.conf";

/// What `ringmain check` says of one; it must find nothing to warn of.
fn checked(path: &str) -> String {
    let output = run(&["check", "--strict", root().join(path).to_str().expect("text")]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{path}: {said}{}", text(&output.stderr));
    said
}

#[test]
fn each_is_right_and_asks_for_nothing_that_is_not_served() {
    for path in DEFAULTS.into_iter().chain([PRODUCTION]) {
        assert!(checked(path).contains(": a router can start from it\n"), "{path}");
    }
}

#[test]
fn the_defaults_listen_on_loopback_alone() {
    for path in DEFAULTS {
        let said = checked(path);
        let listeners: Vec<_> =
            said.lines().filter(|line| line.trim_start().starts_with("listener ")).collect();
        let [only] = listeners.as_slice() else { panic!("{path}: {said}") };
        assert!(only.contains(" 127.0.0.1:5672 normal"), "{path}: {only}");
    }
}

/// Each attribute of the example has its reason in the line above.
#[test]
fn the_example_for_production_is_commented_line_by_line() {
    let example = file(PRODUCTION);
    let mut above = "";
    for line in example.lines().map(str::trim) {
        let is_attribute = line.contains(": ") && !line.starts_with('#');
        assert!(!is_attribute || above.starts_with('#'), "no comment above {line:?}, but {above:?}");
        let is_section = line.ends_with('{') && !line.starts_with('#');
        assert!(
            !is_section || above.starts_with('#') || line.starts_with("router"),
            "no comment above {line:?}"
        );
        above = line;
    }
}

/// The example's own address is nobody's (RFC 5737), so that it opens nothing by mistake.
#[test]
fn a_router_starts_from_the_example_once_its_address_is_changed() {
    let example = file(PRODUCTION);
    let folder = Folder::new();
    let log = folder.path().join("ringmain.log");
    let ours = example
        .replace("host: 192.0.2.10", "host: 127.0.0.1")
        .replace("port: amqp", "port: 0")
        .replace("port: 9672", "port: 0")
        .replace("/var/log/ringmain/ringmain.log", log.to_str().expect("text"));
    // Its log is in a file: of the standard streams only the end would be heard.
    let shown = ours.replace("outputFile: ", "# outputFile: ");
    let router = Router::start(&folder.write("shown.conf", &shown), &[]);
    assert_eq!(router.log.iter().filter(|line| line.contains("Listening on 127.0.0.1:")).count(), 2);
    assert!(!router.log.iter().any(|line| line.contains("(warning)") || line.contains("(error)")));
    assert_eq!(router.stop().code(), Some(0));

    let unchanged =
        folder.write("unchanged.conf", &example.replace("/var/log/ringmain/ringmain.log", "stderr"));
    let output = run(&["-c", unchanged.to_str().expect("text")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("can't listen on 192.0.2.10:5672"), "{}", text(&output.stderr));
}
