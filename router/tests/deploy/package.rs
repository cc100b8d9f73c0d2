//! The Debian package, made by `scripts/package` and installed by `dpkg` below a folder of the test's own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::Folder;
use crate::system::assert_user;
use crate::{file, root, said, skip, try_command};

const NAME: &str = "the package";

/// Makes the package of the tested program; `None` where that can't be done.
fn package(folder: &Folder) -> Option<PathBuf> {
    if try_command(Command::new("dpkg-deb").arg("--version")).is_none() {
        skip(NAME, "there is no dpkg");
        return None;
    }
    let cargo = try_command(Command::new("cargo").args(["deb", "--version"]));
    if !cargo.is_some_and(|output| output.status.success()) {
        skip(NAME, "there is no cargo-deb (scripts/test installs it)");
        return None;
    }
    let output = Command::new(root().join("scripts/package"))
        .args(["--fast", "--binary", env!("CARGO_BIN_EXE_ringmain"), "--output"])
        .arg(folder.path())
        .env("CARGO_TARGET_DIR", folder.path().join("target"))
        .output()
        .expect("it can be started");
    said(&output);
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let mut entries = fs::read_dir(folder.path()).expect("a readable folder");
    Some(entries.find_map(|entry| Some(entry.ok()?.path()).filter(is_package)).expect("there is a package"))
}

/// What `dpkg-deb` says of a package.
fn dpkg_deb(arguments: &[&str], package: &Path) -> String {
    said(&Command::new("dpkg-deb").args(arguments).arg(package).output().expect("it can be started"))
}

/// A machine below a folder, on which `dpkg` installs.
struct Machine {
    folder: Folder,
    is_root: bool,
}

impl Machine {
    fn new() -> Self {
        let folder = Folder::new();
        for path in
            ["root/var/lib/dpkg/info", "root/var/lib/dpkg/updates", "root/etc", "root/var/log", "tools"]
        {
            fs::create_dir_all(folder.path().join(path)).expect("a folder can be made");
        }
        folder.write("root/var/lib/dpkg/status", "");
        // The scripts of a package run on this machine when they run without chroot. What would start services here only notes
        // what it was asked.
        let notes = folder.path().join("notes");
        for tool in ["systemctl", "deb-systemd-invoke"] {
            let path = folder.write(
                &format!("tools/{tool}"),
                &format!("#!/bin/sh\necho \"{tool} $*\" >>'{}'\n", notes.display()),
            );
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        Self { folder, is_root: rustix::process::geteuid().is_root() }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn dpkg(&self, action: &str, what: &str) -> String {
        let mut command = if self.is_root {
            Command::new("dpkg")
        } else {
            // It lets dpkg and its scripts believe that files are root's.
            let mut command = Command::new("fakeroot");
            command.args(["dpkg", "--force-not-root"]);
            command
        };
        let tools = self.folder.path().join("tools");
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .arg(format!("--root={}", self.root().display()))
            .args(["--force-script-chrootless", "--force-depends", "--log=/dev/null", action, what])
            .env("PATH", format!("{}:{path}:/usr/sbin:/sbin", tools.display()))
            .env("DEBIAN_FRONTEND", "noninteractive");
        said(&command.output().expect("it can be started"))
    }
}

#[test]
fn it_is_made_installed_and_removed() {
    let folder = Folder::new();
    let Some(package) = package(&folder) else { return };
    let version = env!("CARGO_PKG_VERSION");
    let control = dpkg_deb(&["--field"], &package);
    for line in
        ["Package: ringmain\n", &format!("Version: {version}-1\n"), "Section: net\n", "Priority: optional\n"]
    {
        assert!(control.contains(line), "{line:?}: {control}");
    }
    let depends =
        control.lines().find(|line| line.starts_with("Depends: ")).expect("it depends on something");
    assert!(depends.contains("libc6") && depends.contains("systemd-sysusers"), "{depends}");
    assert_contents(&package);

    let machine = Machine::new();
    if !machine.is_root && try_command(Command::new("fakeroot").arg("--version")).is_none() {
        return skip(NAME, "neither root nor fakeroot: it isn't installed");
    }
    let root = machine.root();
    let configuration = root.join("etc/ringmain/ringmain.conf");
    machine.dpkg("--install", package.to_str().expect("text"));
    assert_user(&root);
    let wanted = root.join("etc/systemd/system/multi-user.target.wants/ringmain.service");
    assert!(wanted.is_symlink(), "the service isn't enabled");
    let output = Command::new(root.join("usr/lib/ringmain/bin/qdrouterd")).arg("-v").output();
    assert_eq!(said(&output.expect("it can be started")), format!("{version}\n"));
    let output =
        Command::new(root.join("usr/bin/ringmain")).args(["check", "--strict"]).arg(&configuration).output();
    said(&output.expect("it can be started"));

    // An upgrade keeps what was changed.
    fs::write(&configuration, "# mine\n").expect("it can be written");
    machine.dpkg("--install", package.to_str().expect("text"));
    assert_eq!(fs::read_to_string(&configuration).expect("it is there"), "# mine\n");

    fs::create_dir_all(root.join("var/log/ringmain")).expect("a folder can be made");
    machine.dpkg("--remove", "ringmain");
    assert!(!root.join("usr/bin/ringmain").exists());
    assert!(configuration.exists() && root.join("var/log/ringmain").exists());
    machine.dpkg("--purge", "ringmain");
    assert!(!root.join("etc/ringmain").exists() && !root.join("var/log/ringmain").exists());
    assert!(!wanted.is_symlink());
    assert_user(&root);
}

/// What is in it, whose it is, and what `dpkg` must not overwrite.
fn assert_contents(package: &Path) {
    let contents = dpkg_deb(&["--contents"], package);
    for (mode, path) in [
        ("-rwxr-xr-x", "./usr/bin/ringmain"),
        ("-rw-r--r--", "./etc/ringmain/ringmain.conf"),
        ("-rw-r--r--", "./etc/logrotate.d/ringmain"),
        ("-rw-r--r--", "./usr/lib/systemd/system/ringmain.service"),
        ("-rw-r--r--", "./usr/lib/sysusers.d/ringmain.conf"),
        ("-rw-r--r--", "./usr/share/man/man8/ringmain.8.gz"),
        ("-rw-r--r--", "./usr/share/man/man5/ringmain.conf.5.gz"),
        ("-rw-r--r--", "./usr/share/bash-completion/completions/ringmain"),
        ("-rw-r--r--", "./usr/share/zsh/vendor-completions/_ringmain"),
        ("-rw-r--r--", "./usr/share/fish/vendor_completions.d/ringmain.fish"),
        ("-rw-r--r--", "./usr/share/doc/ringmain/copyright"),
        ("-rw-r--r--", "./usr/share/doc/ringmain/changelog.Debian.gz"),
        ("-rw-r--r--", "./usr/share/doc/ringmain/examples/production.conf"),
    ] {
        let line = contents
            .lines()
            .find(|line| line.ends_with(path))
            .unwrap_or_else(|| panic!("{path}: {contents}"));
        assert!(line.starts_with(mode), "{line}");
    }
    for name in ["qdrouterd", "qdstat", "qdmanage"] {
        let link = format!("./usr/lib/ringmain/bin/{name} -> ../../../bin/ringmain");
        assert!(contents.lines().any(|line| line.ends_with(&link)), "{link}: {contents}");
        // What else has the name would be in the way of that program's own package.
        assert_eq!(contents.lines().filter(|line| line.contains(name)).count(), 1, "{contents}");
    }
    let is_strange = |line: &&str| !line.contains(" root/root ") && !line.contains(" 0/0 ");
    assert_eq!(contents.lines().find(is_strange), None);
    let conffiles = dpkg_deb(&["--info"], package);
    assert!(conffiles.contains("conffiles"), "{conffiles}");
    let folder = Folder::new();
    let control = folder.path().join("control");
    let output = Command::new("dpkg-deb").arg("--control").arg(package).arg(&control).output();
    said(&output.expect("it can be started"));
    let conffiles = fs::read_to_string(control.join("conffiles")).expect("there are such");
    assert_eq!(
        conffiles.lines().collect::<std::collections::BTreeSet<_>>(),
        ["/etc/logrotate.d/ringmain", "/etc/ringmain/ringmain.conf"].into()
    );
    // The unit is the one that was looked at.
    let data = folder.path().join("data");
    let output = Command::new("dpkg-deb").arg("--extract").arg(package).arg(&data).output();
    said(&output.expect("it can be started"));
    let unit = fs::read_to_string(data.join("usr/lib/systemd/system/ringmain.service")).expect("it is there");
    assert_eq!(unit, file("deploy/ringmain.service"));
}
