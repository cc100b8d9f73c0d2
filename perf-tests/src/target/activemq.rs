//! ActiveMQ from Debian: whether it can be measured at all.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Settings, Target};

/// Where Debian's package keeps its modules.
const MODULES: &str = "/usr/share/activemq/lib";

/// Says why Debian's ActiveMQ can't be measured.
///
/// Its package leaves out the module `activemq-amqp` (`/usr/share/doc/libactivemq-java/README.Debian` lists it
/// among the disabled ones), so it speaks OpenWire, STOMP and MQTT, and no AMQP.
///
/// # Errors
/// Always: with the module (from elsewhere) the broker isn't Debian's any more, and is to be started by whoever
/// put it there and measured as a URL.
pub fn start(_settings: &Settings) -> Result<Target> {
    let folder = Path::new(MODULES);
    if !folder.is_dir() {
        bail!("it isn't installed (scripts/bench --install-peers)");
    }
    let has_amqp = std::fs::read_dir(folder)?
        .flatten()
        .any(|file| file.file_name().to_string_lossy().starts_with("activemq-amqp"));
    if has_amqp {
        bail!(
            "this ActiveMQ isn't as Debian packages it: start it, and measure it as --target amqp://HOST:PORT"
        );
    }
    bail!(
        "it doesn't speak AMQP as Debian packages it: the module activemq-amqp is left out \
         (/usr/share/doc/libactivemq-java/README.Debian)"
    )
}
