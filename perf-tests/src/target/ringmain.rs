//! Our router, with the harness's configuration.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::process::{Started, free_address};
use super::{Kind, Settings, Target, counted};
use crate::generator::Endpoint;

/// Starts the router and waits for its first open.
///
/// # Errors
/// It isn't built, or doesn't start.
pub fn start(kind: &Kind, settings: &Settings) -> Result<Target> {
    let (program, how) = if *kind == Kind::Counted {
        (&settings.counted, "cargo build --release --package ringmain-perf --features count")
    } else {
        (&settings.ringmain, "cargo build --release --package ringmain")
    };
    if !program.is_file() {
        bail!("{} isn't there: build it with '{how}'", program.display());
    }
    let address = free_address()?;
    std::fs::create_dir_all(&settings.folder)?;
    let file = settings.folder.join(format!("{}.conf", kind.name()));
    let mut attributes = settings.router_attributes.clone();
    if kind.spins() {
        attributes.push("idle: spin-then-block".to_owned());
        attributes.push(format!("spinMicroseconds: {}", settings.spin_us));
    }
    let text = configuration(address.port(), settings.link_capacity, &attributes);
    std::fs::write(&file, text).with_context(|| format!("can't write {}", file.display()))?;
    let mut command = Command::new(program);
    command.arg("-c").arg(&file);
    if *kind == Kind::Counted {
        let socket = counted::socket(&settings.folder);
        // An earlier one left it behind.
        let _ = std::fs::remove_file(&socket);
        command.env(counted::SOCKET_VARIABLE, socket);
    }
    let mut started = Started::spawn(kind.name(), &mut command, settings)?;
    let endpoint = Endpoint::Amqp { address, login: None };
    let start_time = started.wait_for_open(&endpoint, Duration::from_secs(5))?;
    Ok(Target {
        kind: kind.clone(),
        endpoint,
        pids: vec![started.pid()],
        log: Some(started.log.clone()),
        started: Some(started),
        start_time: Some(start_time),
        version: version(settings),
    })
}

/// What the harness configures: credit as wide as the load's, a multicast prefix, nothing that isn't needed.
fn configuration(port: u16, link_capacity: u32, router_attributes: &[String]) -> String {
    let mut text = "router {\n    mode: standalone\n    id: perf\n".to_owned();
    for line in router_attributes {
        // Writing to a string can't fail.
        let _ = writeln!(text, "    {line}");
    }
    let _ = write!(
        text,
        "}}\nlistener {{\n    host: 127.0.0.1\n    port: {port}\n    linkCapacity: {link_capacity}\n}}\n\
         address {{\n    prefix: multicast\n    distribution: multicast\n}}\n\
         log {{\n    module: DEFAULT\n    enable: info+\n}}\n"
    );
    text
}

fn version(settings: &Settings) -> String {
    let output = Command::new(&settings.ringmain).arg("--version").output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::configuration;

    #[test]
    fn attributes_go_into_the_router_section() {
        let text = configuration(5700, 1000, &["workerThreads: 1".to_owned()]);
        let (router, rest) = text.split_once("}\n").unwrap();
        assert!(router.contains("    workerThreads: 1\n"));
        assert!(rest.contains("    port: 5700\n    linkCapacity: 1000\n"));
    }
}
