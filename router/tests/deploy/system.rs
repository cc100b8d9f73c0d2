//! The unit and the settings for the system, by the system's own tools.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{Folder, text};
use crate::{file, root, said, skip, try_command};

const UNIT: &str = "deploy/ringmain.service";

/// The unit with the tested program in it, for tools that look for it.
fn unit(folder: &Folder) -> std::path::PathBuf {
    let unit = file(UNIT);
    let start = "ExecStart=/usr/bin/ringmain ";
    assert!(unit.contains(start));
    folder.write(
        "ringmain.service",
        &unit.replace(start, &format!("ExecStart={} ", env!("CARGO_BIN_EXE_ringmain"))),
    )
}

/// The values of a name in the unit.
fn values(name: &str) -> Vec<String> {
    let assigns = |line: &str| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    file(UNIT).lines().filter_map(assigns).collect()
}

/// systemd's version, by `systemd-analyze --version`.
fn systemd() -> Option<u32> {
    let output = try_command(Command::new("systemd-analyze").arg("--version"))?;
    text(&output.stdout).split_whitespace().nth(1)?.split('.').next()?.parse().ok()
}

#[test]
fn systemd_finds_no_fault_with_the_unit() {
    let Some(version) = systemd() else {
        return skip("systemd_finds_no_fault_with_the_unit", "there is no systemd-analyze");
    };
    let folder = Folder::new();
    let output = try_command(Command::new("systemd-analyze").arg("verify").arg(unit(&folder)));
    let output = output.expect("it was there just now");
    let all = text(&output.stderr);
    let ours: Vec<_> = all.lines().filter(|line| line.contains("ringmain")).collect();
    // It comes with 253; before, the line above it holds.
    let is_expected = |line: &&&str| {
        version < 253 && line.contains("Failed to parse service type, ignoring: notify-reload")
    };
    let faults: Vec<_> = ours.iter().filter(|line| !is_expected(line)).collect();
    assert!(faults.is_empty(), "{all}");
    assert_eq!(values("Type"), ["notify", "notify-reload"]);
}

/// What `systemd-analyze security` calls the exposure of a service goes from 0 to 10; above 5 it is "medium".
#[test]
fn systemd_finds_the_unit_well_hardened() {
    if systemd().is_none_or(|version| version < 250) {
        return skip("systemd_finds_the_unit_well_hardened", "there is no systemd-analyze that can do it");
    }
    let folder = Folder::new();
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=yes", "--threshold=20", "--no-pager"]).arg(unit(&folder));
    let output = try_command(&mut command).expect("it was there just now");
    let shown = said(&output);
    assert!(shown.contains("Overall exposure level"), "{shown}");
}

/// The system calls that a router can't do without are let through.
#[test]
fn the_filter_lets_the_router_work() {
    let shown = try_command(Command::new("systemd-analyze").args(["syscall-filter", "--no-pager"]));
    let Some(shown) = shown.filter(|output| output.status.success()) else {
        return skip("the_filter_lets_the_router_work", "there is no systemd-analyze that can do it");
    };
    let shown = text(&shown.stdout);
    // A set's name stands at the beginning of a line, what it has is indented.
    let mut sets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut set = "";
    for line in shown.lines() {
        match line.strip_prefix("    ") {
            Some(member) => sets.entry(set).or_default().push(member.trim()),
            None => set = line.trim(),
        }
    }
    let has = |set: &str, call: &str| {
        // A set has calls and sets, and no set has itself.
        let mut rest = vec![set];
        while let Some(set) = rest.pop() {
            let members = sets.get(set).map_or(&[][..], Vec::as_slice);
            if members.contains(&call) {
                return true;
            }
            rest.extend(members.iter().filter(|member| member.starts_with('@')));
        }
        false
    };
    let filters = values("SystemCallFilter");
    let (taken, let_through): (Vec<&String>, Vec<&String>) =
        filters.iter().partition(|set| set.starts_with('~'));
    let calls = [
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "eventfd2",
        "sched_setaffinity",
        "sched_getaffinity",
        "prlimit64",
        "socketpair",
        "bind",
        "listen",
        "accept4",
        "sendto",
        "epoll_create1",
        "rt_sigaction",
        "clone3",
        "mmap",
        "madvise",
        "openat",
        "fsync",
    ];
    for call in calls {
        let is_in = |set: &&str| has(set.trim_start_matches('~'), call);
        assert!(let_through.iter().flat_map(|line| line.split(' ')).any(|set| is_in(&set)), "{call}");
        assert!(!taken.iter().flat_map(|line| line.split(' ')).any(|set| is_in(&set)), "{call}");
    }
}

/// The settings `name = value` of sysctl.d(5).
fn settings() -> BTreeMap<String, String> {
    let split = |line: &str| {
        let (name, value) = line.trim().trim_start_matches('-').split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    let text = file("deploy/sysctl.d/60-ringmain.conf");
    text.lines().filter(|line| !line.starts_with('#')).filter_map(split).collect()
}

/// A machine that has the settings of the file is as `scripts/tune-host` wants it, and the page names each.
#[test]
fn the_kernels_settings_are_what_tune_host_asks_for() {
    let settings = settings();
    assert!(settings.len() >= 6, "{settings:?}");
    let tuning = file("docs/tuning.md");
    let machine = Folder::new();
    let put = |path: &str, content: &str| {
        let path = machine.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder can be made");
        fs::write(path, content).expect("it can be written");
    };
    // The limit of files is the unit's.
    let [files] = <[String; 1]>::try_from(values("LimitNOFILE")).expect("one limit");
    put(
        "/proc/self/limits",
        &format!("Max open files            1024                 {files}              files\n"),
    );
    put("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1000 0 -2\n");
    put("/proc/sys/fs/file-max", "9223372036854775807\n");
    for (name, value) in &settings {
        put(&format!("/proc/sys/{}", name.replace('.', "/")), &format!("{value}\n"));
        assert!(tuning.contains(name.as_str()), "docs/tuning.md has no {name}");
    }
    let output = Command::new(root().join("scripts/tune-host"))
        .args(["--cpus", "0", "--connections", "1000000"])
        .env("RINGMAIN_TUNE_ROOT", machine.path())
        .output()
        .expect("it can be started");
    let shown = text(&output.stdout);
    let line_of = |what: &str| {
        shown.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("no line of {what}: {shown}"))
    };
    for (name, value) in &settings {
        let what =
            if name == "kernel.numa_balancing" { "automatic NUMA balancing is off" } else { name.as_str() };
        let line = line_of(what);
        assert!(line.starts_with("ok "), "{line}");
        assert!(name == "kernel.numa_balancing" || line.contains(value.as_str()), "{line}: {value}");
    }
    assert!(line_of("the limit of open files").starts_with("ok "), "{shown}");
}

/// limits.d(5) says for a router without systemd what the unit says for one with it.
#[test]
fn the_limits_are_those_of_the_unit() {
    let text = file("deploy/limits.d/60-ringmain.conf");
    let limits: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let (files, core) = (values("LimitNOFILE"), values("LimitCORE"));
    assert_eq!(values("LimitMEMLOCK"), ["infinity"]);
    assert_eq!(
        limits,
        [
            ["ringmain", "hard", "nofile", &files[0]],
            ["ringmain", "-", "memlock", "unlimited"],
            ["ringmain", "-", "core", &core[0]]
        ]
    );
}

#[test]
fn sysusers_makes_the_user_of_the_unit() {
    let machine = Folder::new();
    for path in ["etc", "usr/lib/sysusers.d"] {
        fs::create_dir_all(machine.path().join(path)).expect("a folder can be made");
    }
    machine.write("usr/lib/sysusers.d/ringmain.conf", &file("deploy/sysusers.d/ringmain.conf"));
    let mut command = Command::new("systemd-sysusers");
    command.arg(format!("--root={}", machine.path().display())).arg("ringmain.conf");
    let Some(output) = try_command(&mut command) else {
        return skip("sysusers_makes_the_user_of_the_unit", "there is no systemd-sysusers");
    };
    if !rustix::process::geteuid().is_root() {
        return skip("sysusers_makes_the_user_of_the_unit", "only root may make users");
    }
    said(&output);
    assert_user(machine.path());
    assert_eq!((values("User"), values("Group")), (vec!["ringmain".to_owned()], vec!["ringmain".to_owned()]));
}

/// Below this root there is the user of the unit, who can't log in.
pub(crate) fn assert_user(root: &Path) {
    let read = |name: &str| fs::read_to_string(root.join("etc").join(name)).expect("there are users");
    let passwd = read("passwd");
    let user = passwd.lines().find(|line| line.starts_with("ringmain:")).expect("there is the user");
    assert!(user.ends_with("/nologin"), "{user}");
    assert!(read("group").lines().any(|line| line.starts_with("ringmain:")));
}
