//! Logging of messages (`messageLoggingComponents`): what their properties say, at level trace of the module MESSAGE. Bodies
//! aren't logged.
//!
//! # Cost
//! A flag of each link is looked at with each delivery.

use super::Core;
use super::links::Direction;
use super::slots::Slot;
use crate::base::id::LinkKey;
use crate::log;
use crate::log::{Level, Module};
use ringmain_codec::{Properties, SectionKind, Sections};
use std::fmt::{self, Write as _};

/// The component that stands for all.
const ALL: &str = "all";

/// The component that is a section of its own.
const APPLICATION_PROPERTIES: &str = "app-properties";

/// Whether a message went to the peer or came from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// It came.
    Received,
    /// It goes.
    Sent,
}

impl Slot {
    /// Whether messages on its links are logged.
    pub(super) fn logs_messages(&self) -> bool {
        !self.listener.logged_components.is_empty()
    }
}

impl Core {
    /// Logs a message on a link that says so. `payload` is what has come of it.
    #[cold]
    pub(super) fn log_message(&self, key: LinkKey, way: Way, payload: &[u8]) {
        if !log::is_enabled(Module::Message, Level::Trace) {
            return;
        }
        let Some(link) = self.links.get(key) else { return };
        let Some(slot) = self.connections.get(link.connection) else { return };
        let message = Described { payload, components: &slot.listener.logged_components };
        let way = match way {
            Way::Received => "Received",
            Way::Sent => "Sent",
        };
        log!(Module::Message, Level::Trace, "[C{}][L{}] {way} {message}", slot.id, link.id);
    }
}

impl Direction {
    /// Lets the messages of the link be logged, or not.
    pub(super) fn set_logged(&mut self, is_logged: bool) {
        match self {
            Self::In(ingress) => ingress.is_logged = is_logged,
            Self::Out(egress) => egress.is_logged = is_logged,
        }
    }
}

/// A message as the log shows it.
struct Described<'m> {
    payload: &'m [u8],
    components: &'m [String],
}

impl Described<'_> {
    fn has(&self, component: &str) -> bool {
        self.components.iter().any(|known| known == component || known == ALL)
    }

    /// Appends `name=value` for each of the properties that are wanted.
    fn write_properties(&self, out: &mut Parts<'_, '_>, properties: &Properties<'_>) -> fmt::Result {
        let quoted = |text: &str| format!("{text:?}");
        let fields: [(&str, Option<String>); 13] = [
            ("message-id", properties.message_id.map(|id| id.to_string())),
            ("user-id", properties.user_id.map(|id| quoted(&String::from_utf8_lossy(id)))),
            ("to", properties.to.map(quoted)),
            ("subject", properties.subject.map(quoted)),
            ("reply-to", properties.reply_to.map(quoted)),
            ("correlation-id", properties.correlation_id.map(|id| id.to_string())),
            ("content-type", properties.content_type.map(|symbol| quoted(symbol.0))),
            ("content-encoding", properties.content_encoding.map(|symbol| quoted(symbol.0))),
            ("absolute-expiry-time", properties.absolute_expiry_time.map(|time| time.0.to_string())),
            ("creation-time", properties.creation_time.map(|time| time.0.to_string())),
            ("group-id", properties.group_id.map(quoted)),
            ("group-sequence", properties.group_sequence.map(|number| number.to_string())),
            ("reply-to-group-id", properties.reply_to_group_id.map(quoted)),
        ];
        for (name, value) in fields {
            if let Some(value) = value.filter(|_| self.has(name)) {
                out.add(name, &value)?;
            }
        }
        Ok(())
    }
}

/// What has been written of a list with commas.
struct Parts<'f, 'b> {
    out: &'f mut fmt::Formatter<'b>,
    is_first: bool,
}

impl Parts<'_, '_> {
    fn add(&mut self, name: &str, value: &dyn fmt::Display) -> fmt::Result {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.write_str(", ")?;
        }
        write!(self.out, "{name}={value}")
    }
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Message{")?;
        let mut parts = Parts { out: f, is_first: true };
        let mut sections = Sections::new(self.payload);
        // What is malformed is rejected elsewhere; what hasn't come isn't shown.
        while let Ok(Some(section)) = sections.next() {
            match section.kind {
                SectionKind::Properties => {
                    if let Ok(properties) = Properties::from_section(&section) {
                        self.write_properties(&mut parts, &properties)?;
                    }
                }
                SectionKind::ApplicationProperties if self.has(APPLICATION_PROPERTIES) => {
                    parts.add(APPLICATION_PROPERTIES, &section.value)?;
                }
                SectionKind::Header
                | SectionKind::DeliveryAnnotations
                | SectionKind::MessageAnnotations
                | SectionKind::ApplicationProperties => {}
                SectionKind::Data
                | SectionKind::AmqpSequence
                | SectionKind::AmqpValue
                | SectionKind::Footer => {
                    break;
                }
            }
        }
        parts.out.write_char('}')
    }
}
