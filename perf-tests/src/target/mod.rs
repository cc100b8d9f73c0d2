//! What is measured: how each kind of target is started, reached and stopped.

mod activemq;
pub mod counted;
mod process;
mod rabbitmq;
mod ringmain;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::forwarder::{Engine, READY};
use crate::generator::Endpoint;
use crate::generator::topology::LoadSpec;
use crate::pin::Cpus;
use crate::process as proc;

pub use process::Started;

/// What a target of ours does when it has nothing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// It sleeps.
    Block,
    /// It looks for work for a while before it sleeps.
    Spin,
}

/// A kind of target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Our router, started with a configuration of the harness.
    Ringmain(Wait),
    /// The same with a counting allocator.
    Counted,
    /// RabbitMQ as Debian packages it, with its AMQP 1.0 plugin.
    RabbitMq,
    /// ActiveMQ as Debian packages it.
    ActiveMq,
    /// The plain limit: frames are forwarded without a protocol.
    Forwarder(Engine, Wait),
    /// Whatever listens there already.
    Url(Url),
    /// The generator itself: no target in between. The ceiling.
    Itself,
}

/// Somebody else's router or broker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    /// As the user wrote it, without a password.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// User and password, if given.
    pub login: Option<(String, String)>,
    /// What its addresses look like; `{}` stands for our name of one.
    pub template: String,
}

impl Kind {
    /// The targets that a word on the command line means.
    ///
    /// # Errors
    /// It means none.
    pub fn parse(word: &str) -> Result<Vec<Self>> {
        Ok(match word {
            "ringmain" => vec![Self::Ringmain(Wait::Block)],
            "ringmain-spin" => vec![Self::Ringmain(Wait::Spin)],
            "ringmain-counted" => vec![Self::Counted],
            "rabbitmq" => vec![Self::RabbitMq],
            "activemq" => vec![Self::ActiveMq],
            "forwarder" => Engine::ALL.map(|engine| Self::Forwarder(engine, Wait::Block)).to_vec(),
            "forwarder-spin" => Engine::ALL.map(|engine| Self::Forwarder(engine, Wait::Spin)).to_vec(),
            "forwarder-epoll" => vec![Self::Forwarder(Engine::Epoll, Wait::Block)],
            "forwarder-uring" => vec![Self::Forwarder(Engine::Uring, Wait::Block)],
            url if url.contains("://") => vec![Self::Url(url.parse()?)],
            other => bail!(
                "unknown target '{other}': use ringmain, rabbitmq, activemq, forwarder, forwarder-epoll, \
                 forwarder-uring, ringmain-spin, forwarder-spin, ringmain-counted, or amqp://HOST[:PORT][/TEMPLATE] of one that is \
                 running"
            ),
        })
    }

    /// Its name in tables and files.
    pub fn name(&self) -> &str {
        match self {
            Self::Ringmain(Wait::Block) => "ringmain",
            Self::Ringmain(Wait::Spin) => "ringmain-spin",
            Self::Counted => "ringmain-counted",
            Self::RabbitMq => "rabbitmq",
            Self::ActiveMq => "activemq",
            Self::Forwarder(Engine::Epoll, Wait::Block) => "forwarder-epoll",
            Self::Forwarder(Engine::Uring, Wait::Block) => "forwarder-uring",
            Self::Forwarder(Engine::Epoll, Wait::Spin) => "forwarder-epoll-spin",
            Self::Forwarder(Engine::Uring, Wait::Spin) => "forwarder-uring-spin",
            Self::Url(url) => &url.name,
            Self::Itself => "itself",
        }
    }

    /// Whether it speaks AMQP, so that it can do more than forward between fixed pairs.
    pub const fn has_protocol(&self) -> bool {
        match self {
            Self::Ringmain(_) | Self::Counted | Self::RabbitMq | Self::ActiveMq | Self::Url(_) => true,
            Self::Forwarder(..) | Self::Itself => false,
        }
    }

    /// Whether it looks for work before it sleeps.
    pub const fn spins(&self) -> bool {
        match self {
            Self::Ringmain(wait) | Self::Forwarder(_, wait) => matches!(wait, Wait::Spin),
            Self::Counted | Self::RabbitMq | Self::ActiveMq | Self::Url(_) | Self::Itself => false,
        }
    }

    /// Our name of address `index` as this target's links write it.
    pub fn address(&self, spec: &LoadSpec, run: &str, index: usize) -> String {
        let name = format!("perf.{run}.{index}");
        match self {
            // The prefix that the harness's configuration makes multicast, as qdrouterd's default one does.
            Self::Ringmain(_) | Self::Counted if spec.is_multicast => format!("multicast.{name}"),
            Self::Ringmain(_) | Self::Counted | Self::ActiveMq | Self::Forwarder(..) | Self::Itself => name,
            Self::RabbitMq => rabbitmq::address(spec, &name),
            Self::Url(url) => {
                let name = if spec.is_multicast { format!("multicast.{name}") } else { name };
                url.template.replace("{}", &name)
            }
        }
    }
}

impl FromStr for Url {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        use std::net::ToSocketAddrs as _;
        let Some(rest) = text.strip_prefix("amqp://") else {
            bail!("'{text}': only amqp:// is understood (TLS is not measured)");
        };
        let (authority, template) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, host) = match authority.rsplit_once('@') {
            Some((login, host)) => {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                (Some((user.to_owned(), password.to_owned())), host)
            }
            None => (None, authority),
        };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let with_port = if has_port { host.to_owned() } else { format!("{host}:5672") };
        let Some(address) = with_port.to_socket_addrs().ok().and_then(|mut found| found.next()) else {
            bail!("'{host}' is no host");
        };
        let template = if template.is_empty() { "{}" } else { template };
        if !template.contains("{}") {
            bail!("the address template '{template}' has no {{}}, which stands for the name of an address");
        }
        Ok(Self { name: with_port, address, login, template: template.to_owned() })
    }
}

/// How targets are started.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The CPUs that they run on.
    pub cpus: Cpus,
    /// The CPU that the generator goes back to.
    pub generator_cpus: Cpus,
    /// Where their files go.
    pub folder: PathBuf,
    /// The router's program.
    pub ringmain: PathBuf,
    /// The router's program with a counting allocator.
    pub counted: PathBuf,
    /// Lines for the `router` section of the router's configuration.
    pub router_attributes: Vec<String>,
    /// Credit that the router grants to senders.
    pub link_capacity: u32,
    /// Microseconds for which who spins looks for work before it sleeps.
    pub spin_us: u64,
}

/// A target that can be measured now.
pub struct Target {
    /// What it is.
    pub kind: Kind,
    /// How it is reached.
    pub endpoint: Endpoint,
    /// Its process, if the harness started it.
    pub started: Option<Started>,
    /// All its processes on this machine.
    pub pids: Vec<u32>,
    /// From the start of the process to the answer to our open, where we started it and it answers opens.
    pub start_time: Option<Duration>,
    /// What it says about its version.
    pub version: String,
    /// Where it logs, if the harness knows.
    pub log: Option<PathBuf>,
}

/// What a report says about a target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its version, as it gives it.
    pub version: String,
    /// Its configuration, or how it was reached.
    pub how: String,
}

impl Target {
    /// Starts a target, or looks where it is.
    ///
    /// # Errors
    /// It isn't installed, doesn't start or doesn't answer; or, for a peer, it doesn't speak AMQP 1.0.
    pub fn start(kind: &Kind, settings: &Settings) -> Result<Self> {
        match kind {
            Kind::Ringmain(_) | Kind::Counted => ringmain::start(kind, settings),
            Kind::RabbitMq => rabbitmq::start(settings),
            Kind::ActiveMq => activemq::start(settings),
            Kind::Forwarder(engine, wait) => start_forwarder(*engine, *wait, settings),
            Kind::Url(url) => Ok(reach(url)),
            Kind::Itself => Ok(Self {
                kind: Kind::Itself,
                endpoint: Endpoint::Itself,
                started: None,
                pids: Vec::new(),
                start_time: None,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                log: None,
            }),
        }
    }

    /// Stops its processes where they are, so that they take nothing from the one that is measured.
    pub fn suspend(&self) {
        if let Some(started) = &self.started {
            started.signal(&proc::tree(started.pid()), rustix::process::Signal::STOP);
        }
    }

    /// Lets them go on, and gives those time that catch up with their timers first.
    pub fn resume(&mut self) {
        if let Some(started) = &self.started {
            self.pids = proc::tree(started.pid());
            started.signal(&self.pids, rustix::process::Signal::CONT);
            match self.kind {
                Kind::RabbitMq | Kind::ActiveMq => std::thread::sleep(Duration::from_millis(300)),
                Kind::Ringmain(_) | Kind::Counted | Kind::Forwarder(..) | Kind::Url(_) | Kind::Itself => {}
            }
        }
    }
}

fn start_forwarder(engine: Engine, wait: Wait, settings: &Settings) -> Result<Target> {
    let kind = Kind::Forwarder(engine, wait);
    let address = process::free_address()?;
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(["forwarder", "--engine", engine.name(), "--listen", &address.to_string()]);
    if kind.spins() {
        command.args(["--spin-us", &settings.spin_us.to_string()]);
    }
    let mut started = Started::spawn(kind.name(), &mut command, settings)?;
    started.wait_for_word(READY, Duration::from_secs(5))?;
    Ok(Target {
        kind,
        endpoint: Endpoint::Raw(address),
        pids: vec![started.pid()],
        log: Some(started.log.clone()),
        started: Some(started),
        start_time: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn reach(url: &Url) -> Target {
    // Only a process of this machine can be looked into; without one there are no figures of it.
    let pids = if url.address.ip().is_loopback() {
        proc::listener_on(url.address.port()).map(proc::tree).unwrap_or_default()
    } else {
        Vec::new()
    };
    Target {
        kind: Kind::Url(url.clone()),
        endpoint: Endpoint::Amqp { address: url.address, login: url.login.clone() },
        started: None,
        pids,
        start_time: None,
        version: "unknown: it was running".to_owned(),
        log: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Url};
    use crate::generator::topology::LoadSpec;

    #[test]
    fn words_mean_targets() {
        let names = |word: &str| -> Vec<String> {
            Kind::parse(word).unwrap().iter().map(|kind| kind.name().to_owned()).collect()
        };
        assert_eq!(names("ringmain"), ["ringmain"]);
        assert_eq!(names("forwarder"), ["forwarder-epoll", "forwarder-uring"]);
        assert_eq!(names("forwarder-spin"), ["forwarder-epoll-spin", "forwarder-uring-spin"]);
        assert_eq!(names("amqp://127.0.0.1"), ["127.0.0.1:5672"]);
        assert!(Kind::parse("qdrouterd").unwrap_err().to_string().contains("amqp://HOST"));
    }

    #[test]
    fn a_url_has_a_login_and_a_template() {
        let url: Url = "amqp://me:se:cret@127.0.0.1:5700/queue://{}.x".parse().unwrap();
        assert_eq!(url.address.to_string(), "127.0.0.1:5700");
        assert_eq!(url.login, Some(("me".to_owned(), "se:cret".to_owned())));
        assert!(!url.name.contains("cret"));
        let kind = Kind::Url(url);
        assert_eq!(kind.address(&LoadSpec::default(), "r1", 3), "queue://perf.r1.3.x");
        assert!("amqp://127.0.0.1/fixed".parse::<Url>().is_err());
        assert!("amqps://127.0.0.1".parse::<Url>().is_err());
    }
}
