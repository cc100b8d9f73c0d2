//! Modules and levels: what a line of the log is about, and how much it matters.

use core::fmt;

macro_rules! modules {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// The part of the router that a line of the log comes from.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Module {
            $($(#[$doc])* $variant),*
        }

        impl Module {
            /// Every module.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// Their names, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The name as lines and `log` sections have it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }
        }
    };
}

modules! {
    /// Forwarding of messages in general.
    Router = "ROUTER",
    /// Addresses, links and deliveries.
    RouterCore = "ROUTER_CORE",
    /// Neighbour routers.
    RouterHello = "ROUTER_HELLO",
    /// Link state of the network of routers.
    RouterLs = "ROUTER_LS",
    /// Mobile addresses in the network of routers.
    RouterMa = "ROUTER_MA",
    /// Contents of messages.
    Message = "MESSAGE",
    /// Listeners, connections, start and end of the process.
    Server = "SERVER",
    /// Management.
    Agent = "AGENT",
    /// Remote authentication.
    AuthService = "AUTHSERVICE",
    /// AMQP endpoints.
    Container = "CONTAINER",
    /// Faults of the router itself.
    Error = "ERROR",
    /// Who may do what.
    Policy = "POLICY",
    /// HTTP listeners.
    Http = "HTTP",
    /// Listeners and connectors as configured.
    ConnMgr = "CONN_MGR",
    /// Kept for files that name it; nothing logs here.
    Python = "PYTHON",
    /// Frames.
    Protocol = "PROTOCOL",
    /// Kept for files that name it; nothing logs here.
    TcpAdaptor = "TCP_ADAPTOR",
    /// Kept for files that name it; nothing logs here.
    HttpAdaptor = "HTTP_ADAPTOR",
    /// What holds for all modules that have no setting of their own.
    Default = "DEFAULT",
}

impl Module {
    /// How many modules there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The module of this name, spelled exactly so.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|known| *known == name).map(|index| Self::ALL[index])
    }

    /// Its place in [`Self::ALL`].
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much a line matters, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Every frame, every step.
    Trace,
    /// Of use to whoever looks for a fault.
    Debug,
    /// Ordinary events.
    Info,
    /// Ordinary events that an operator wants to see.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
    /// The router can't go on.
    Critical,
}

impl Level {
    /// Every level, the least first.
    pub const ALL: [Self; 7] =
        [Self::Trace, Self::Debug, Self::Info, Self::Notice, Self::Warning, Self::Error, Self::Critical];

    /// The name as lines have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }

    /// Its bit in [`Levels`].
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Levels(u8);

impl Levels {
    /// No level.
    pub const NONE: Self = Self(0);

    /// `level` and all above it.
    #[must_use]
    pub const fn from(level: Level) -> Self {
        Self((Level::Critical.bit() << 1) - level.bit())
    }

    /// Whether `level` is among them.
    #[must_use]
    pub const fn contains(self, level: Level) -> bool {
        self.0 & level.bit() != 0
    }

    /// The set as a number that [`Self::from_bits`] understands.
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    /// The set of the number that [`Self::bits`] gave.
    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Reads the value of `enable`: levels with commas between them, each with a `+` if all above it are
    /// meant as well; `none`; or `default`, which gives `None`. In any letter case.
    ///
    /// # Errors
    /// The word that is none of these.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("default") {
            return Ok(None);
        }
        if text.eq_ignore_ascii_case("none") {
            return Ok(Some(Self::NONE));
        }
        let mut levels = Self::NONE;
        for word in text.split(',').map(str::trim) {
            let (name, is_open) =
                word.strip_suffix('+').map_or((word, false), |name| (name.trim_end(), true));
            let level = Level::ALL
                .into_iter()
                .find(|level| name.eq_ignore_ascii_case(level.name()))
                .ok_or_else(|| word.to_owned())?;
            levels.0 |= if is_open { Self::from(level).0 } else { level.bit() };
        }
        Ok(Some(levels))
    }
}

impl fmt::Display for Levels {
    /// In the form that [`Self::parse`] reads: `info+` where all above are meant as well.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("none");
        }
        if let Some(lowest) = Level::ALL.into_iter().find(|level| Self::from(*level) == *self) {
            return write!(f, "{lowest}+");
        }
        let names = Level::ALL.into_iter().filter(|level| self.contains(*level)).map(Level::name);
        for (index, name) in names.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, Levels, Module};

    #[test]
    fn a_plus_means_all_above() {
        let levels = Levels::parse("notice+").unwrap().unwrap();
        let enabled: Vec<_> = Level::ALL.into_iter().filter(|level| levels.contains(*level)).collect();
        assert_eq!(enabled, [Level::Notice, Level::Warning, Level::Error, Level::Critical]);
        assert_eq!(Levels::parse("TRACE+"), Ok(Some(Levels::from(Level::Trace))));
        assert!(Level::ALL.into_iter().all(|level| Levels::from(Level::Trace).contains(level)));
    }

    #[test]
    fn lists_none_and_default() {
        let levels = Levels::parse("Debug, info,critical").unwrap().unwrap();
        let enabled: Vec<_> = Level::ALL.into_iter().filter(|level| levels.contains(*level)).collect();
        assert_eq!(enabled, [Level::Debug, Level::Info, Level::Critical]);
        assert_eq!(Levels::parse("NONE"), Ok(Some(Levels::NONE)));
        assert_eq!(Levels::parse("Default"), Ok(None));
        assert_eq!(Levels::parse("debug,verbose"), Err("verbose".to_owned()));
        assert_eq!(Levels::parse(""), Err(String::new()));
    }

    #[test]
    fn levels_are_shown_as_they_are_read() {
        for bits in 0..=Levels::from(Level::Trace).bits() {
            let levels = Levels::from_bits(bits);
            assert_eq!(Levels::parse(&levels.to_string()), Ok(Some(levels)), "{levels}");
        }
        assert_eq!(Levels::from(Level::Info).to_string(), "info+");
    }

    #[test]
    fn modules_are_found_by_name() {
        assert_eq!(Module::find("ROUTER_CORE"), Some(Module::RouterCore));
        assert_eq!(Module::find("router_core"), None);
        for (index, module) in Module::ALL.iter().enumerate() {
            assert_eq!(module.index(), index);
            assert_eq!(Module::find(module.name()), Some(*module));
        }
    }
}
