//! `scripts/install`, below a folder of the test's own.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{Folder, text};
use crate::{root, said};

/// Runs the script for `/opt/ringmain` below a folder.
fn install(below: &Path, more: &[&str]) -> String {
    let output = Command::new(root().join("scripts/install"))
        .args(["--prefix", "/opt/ringmain", "--binary", env!("CARGO_BIN_EXE_ringmain"), "--destdir"])
        .arg(below)
        .args(more)
        .output()
        .expect("it can be started");
    said(&output)
}

/// All files and links below a folder, by their paths from it.
fn files(below: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![below.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a readable folder") {
            let entry = entry.expect("a readable entry");
            if entry.file_type().expect("the kind of an entry").is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path();
                found.push(path.strip_prefix(below).expect("below it").display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn it_installs_updates_and_removes() {
    let folder = Folder::new();
    let below = folder.path();
    let configuration = below.join("etc/ringmain/ringmain.conf");
    install(below, &[]);
    let installed = files(below);
    for path in [
        "etc/logrotate.d/ringmain",
        "etc/ringmain/ringmain.conf",
        "opt/ringmain/bin/ringmain",
        "opt/ringmain/lib/ringmain/bin/qdmanage",
        "opt/ringmain/lib/ringmain/bin/qdrouterd",
        "opt/ringmain/lib/ringmain/bin/qdstat",
        "opt/ringmain/lib/systemd/system/ringmain.service",
        "opt/ringmain/lib/sysusers.d/ringmain.conf",
        "opt/ringmain/share/doc/ringmain/deploy.md",
        "opt/ringmain/share/doc/ringmain/examples/production.conf",
        "opt/ringmain/share/doc/ringmain/examples/sysctl.conf",
        "opt/ringmain/share/man/man8/ringmain.8.gz",
        "opt/ringmain/share/zsh/site-functions/_ringmain",
    ] {
        assert!(installed.iter().any(|file| file == path), "{path}: {installed:#?}");
    }
    let unit = fs::read_to_string(below.join("opt/ringmain/lib/systemd/system/ringmain.service"))
        .expect("it is there");
    assert!(
        unit.contains("\nExecStart=/opt/ringmain/bin/ringmain -c /etc/ringmain/ringmain.conf\n"),
        "{unit}"
    );
    // By that program's name it is that program, whose version is a bare number.
    let output = Command::new(below.join("opt/ringmain/lib/ringmain/bin/qdrouterd")).arg("-v").output();
    assert_eq!(said(&output.expect("it can be started")), format!("{}\n", env!("CARGO_PKG_VERSION")));
    let output =
        Command::new(below.join("opt/ringmain/bin/ringmain")).arg("check").arg(&configuration).output();
    said(&output.expect("it can be started"));

    // Once more: the configuration is the administrator's now.
    fs::write(&configuration, "# mine\n").expect("it can be written");
    assert!(install(below, &[]).contains("kept: "));
    assert_eq!(files(below), installed);
    assert_eq!(fs::read_to_string(&configuration).expect("it is there"), "# mine\n");

    install(below, &["--uninstall"]);
    assert_eq!(files(below), ["etc/logrotate.d/ringmain", "etc/ringmain/ringmain.conf"]);
    assert!(!below.join("opt/ringmain/lib/ringmain").exists());
}

#[test]
fn wrong_calls_change_nothing_and_say_why() {
    let folder = Folder::new();
    let below = folder.path().to_str().expect("text");
    for (arguments, reason) in [
        (&["--prefix", "relative", "--destdir", below][..], "isn't an absolute path"),
        (&["--prefix", "/a b", "--destdir", below], "isn't an absolute path"),
        (&["--destdir", below, "--binary", "/nothing/here"], "isn't a program"),
        (&["--destdir", below, "--uninstall"], "nothing is installed below"),
        (&["--nonsense"], "unknown argument '--nonsense'"),
        (&["--prefix"], "--prefix needs a value"),
    ] {
        let output =
            Command::new(root().join("scripts/install")).args(arguments).output().expect("it can be started");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains(reason), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(files(folder.path()), [""; 0], "{arguments:?}");
    }
}
