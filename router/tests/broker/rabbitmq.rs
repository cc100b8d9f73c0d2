//! RabbitMQ from Debian, in a folder and on ports of its own.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::BROKER_PATIENCE;

/// The program behind Debian's wrapper, which would insist on the system's own instance and user.
const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// A broker of the test's own. It ends with this value.
pub struct RabbitMq {
    folder: PathBuf,
    port: u16,
    distribution: u16,
    mapper: u16,
    child: Option<Child>,
}

impl RabbitMq {
    /// Starts a broker and waits until it accepts connections; `None`, and a line that says so, if there is none
    /// here.
    pub fn start() -> Option<Self> {
        if std::env::var_os("RINGMAIN_SKIP_INTEROP").is_some_and(|value| value == "1") {
            eprintln!("SKIPPED: RINGMAIN_SKIP_INTEROP=1 is set, so no broker was run");
            return None;
        }
        if !Path::new(SERVER).is_file() {
            eprintln!(
                "SKIPPED: RabbitMQ isn't installed (Debian's package rabbitmq-server), so no broker was run"
            );
            return None;
        }
        let [port, distribution, mapper] = free_ports();
        let folder = std::env::temp_dir().join(format!("ringmain-rabbitmq-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be written to");
        fs::write(folder.join("enabled_plugins"), "[rabbitmq_amqp1_0].\n").expect("it can be written to");
        fs::write(folder.join("rabbitmq.conf"), "log.console = true\nlog.console.level = warning\n")
            .expect("it can be written to");
        let mut broker = Self { folder, port, distribution, mapper, child: None };
        broker.start_again();
        Some(broker)
    }

    /// The port of AMQP.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts it on what an earlier run has left, and waits until it accepts connections.
    pub fn start_again(&mut self) {
        let folder = &self.folder;
        let log = fs::File::options().create(true).append(true).open(folder.join("output"));
        let log = log.expect("the temporary folder can be written to");
        let child = Command::new(SERVER)
            .env("HOME", folder)
            .env("RABBITMQ_NODENAME", format!("ringmain{}@localhost", self.port))
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", self.port.to_string())
            .env("RABBITMQ_DIST_PORT", self.distribution.to_string())
            .env("ERL_EPMD_PORT", self.mapper.to_string())
            .env("RABBITMQ_CONF_ENV_FILE", folder.join("none"))
            .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("enabled_plugins"))
            .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", folder.join("log"))
            .env("RABBITMQ_PID_FILE", folder.join("pid"))
            .env("RABBITMQ_FEATURE_FLAGS_FILE", folder.join("feature_flags"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor is left"))
            .stderr(log)
            // A group of its own: the server is a shell that starts others.
            .process_group(0)
            .spawn();
        self.child = Some(child.expect("the broker can be started"));
        let deadline = Instant::now() + BROKER_PATIENCE;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        while TcpStream::connect(address).is_err() {
            let child = self.child.as_mut().expect("it was started");
            let ended = child.try_wait().expect("it is a child");
            assert!(ended.is_none(), "the broker ended: {}", self.output());
            assert!(Instant::now() < deadline, "the broker doesn't listen: {}", self.output());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
    }

    /// Ends Erlang's port mapper, which outlives the node that started it. It refuses while it still knows of one.
    fn end_mapper(&self) {
        for _ in 0..100 {
            let output = Command::new("epmd").args(["-port", &self.mapper.to_string(), "-kill"]).output();
            let Ok(output) = output else { return };
            if output.status.success() && !String::from_utf8_lossy(&output.stdout).contains("not allowed") {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn output(&self) -> String {
        fs::read_to_string(self.folder.join("output")).unwrap_or_default()
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        self.kill();
        self.end_mapper();
        if std::thread::panicking() {
            eprintln!("what the broker wrote:\n{}", self.output());
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Ports on which nobody listens now.
fn free_ports() -> [u16; 3] {
    let sockets = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free"));
    sockets.map(|socket| socket.local_addr().expect("it is bound").port())
}
