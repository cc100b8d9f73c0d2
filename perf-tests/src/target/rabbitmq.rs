//! RabbitMQ from Debian, with its AMQP 1.0 plugin, in a folder and on ports of its own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::process::{Started, free_address};
use super::{Kind, Settings, Target};
use crate::generator::Endpoint;
use crate::generator::topology::LoadSpec;

/// The program behind Debian's wrapper, which would insist on the system's own instance and user.
const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// The user that a fresh instance has.
const LOGIN: (&str, &str) = ("guest", "guest");

/// Our names as the plugin writes addresses: queues for one receiver each, a topic for copies to all.
pub fn address(spec: &LoadSpec, name: &str) -> String {
    if spec.is_multicast { format!("/topic/{name}") } else { format!("/queue/{name}") }
}

/// Starts a broker of our own and waits for its first open.
///
/// # Errors
/// It isn't installed, or doesn't start.
pub fn start(settings: &Settings) -> Result<Target> {
    if !Path::new(SERVER).is_file() {
        bail!("it isn't installed (scripts/bench --install-peers)");
    }
    let address = free_address()?;
    let distribution = free_address()?;
    let mapper = free_address()?;
    // A fresh one each time: nothing that an earlier run left counts.
    let folder = settings.folder.join("rabbitmq");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("can't empty {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    std::fs::write(folder.join("enabled_plugins"), "[rabbitmq_amqp1_0].\n")?;
    // Each port is given by the environment; the schedulers follow the CPU affinity.
    std::fs::write(folder.join("rabbitmq.conf"), "log.console = true\nlog.console.level = warning\n")?;
    let mut command = Command::new(SERVER);
    command
        .env("HOME", &folder)
        .env("RABBITMQ_NODENAME", format!("perf{}@localhost", address.port()))
        .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_NODE_PORT", address.port().to_string())
        .env("RABBITMQ_DIST_PORT", distribution.port().to_string())
        .env("ERL_EPMD_PORT", mapper.port().to_string())
        .env("RABBITMQ_CONF_ENV_FILE", folder.join("none"))
        .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("enabled_plugins"))
        .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
        .env("RABBITMQ_LOG_BASE", folder.join("log"))
        .env("RABBITMQ_PID_FILE", folder.join("pid"))
        .env("RABBITMQ_FEATURE_FLAGS_FILE", folder.join("feature_flags"));
    let mut started = Started::spawn("rabbitmq", &mut command, settings)?;
    // Erlang's port mapper outlives the node that started it.
    started.daemon = Some(("epmd", mapper.port()));
    let login = Some((LOGIN.0.to_owned(), LOGIN.1.to_owned()));
    let endpoint = Endpoint::Amqp { address, login };
    let start_time = started.wait_for_open(&endpoint, Duration::from_secs(60))?;
    Ok(Target {
        kind: Kind::RabbitMq,
        endpoint,
        pids: crate::process::tree(started.pid()),
        log: Some(started.log.clone()),
        started: Some(started),
        start_time: Some(start_time),
        version: version(),
    })
}

fn version() -> String {
    let output =
        Command::new("dpkg-query").args(["-W", "-f", "RabbitMQ ${Version}", "rabbitmq-server"]).output();
    output
        .map_or_else(|_| "unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}
