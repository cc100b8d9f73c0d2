//! By which name the program was called, and so whose tool it is.

/// Which tool this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Called {
    /// `ringmain`: a command of its own.
    #[default]
    Ringmain,
    /// `qdstat` or `qdmanage`: what is printed is what scripts written for them read.
    Dispatch,
    /// `skstat` or `skmanage`: the same, with `skrouterd`'s names of types.
    Skupper,
}

impl Called {
    /// What types' names begin with.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Ringmain | Self::Dispatch => "org.apache.qpid.dispatch.",
            Self::Skupper => "io.skupper.router.",
        }
    }

    /// Whether it is called as another program, whose output it keeps to.
    pub(super) const fn is_original(self) -> bool {
        match self {
            Self::Ringmain => false,
            Self::Dispatch | Self::Skupper => true,
        }
    }

    /// The whole name of a type: of a short one (`listener`, `address`), one without prefix (`router.link`), or one
    /// that is whole already.
    pub(super) fn long_type(self, name: &str) -> String {
        let prefix = self.prefix();
        let is_whole = ["org.", "io.skupper."].iter().any(|whole| name.starts_with(whole));
        match name {
            _ if is_whole => name.to_owned(),
            "link" | "node" => format!("{prefix}router.{name}"),
            "address" | "linkRoute" | "autoLink" | "exchange" | "binding" => {
                format!("{prefix}router.config.{name}")
            }
            _ => format!("{prefix}{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Called;

    /// The whole names are those of router-protocol reference §10.4.
    #[test]
    fn types_by_short_names() {
        for (short, long) in [
            ("listener", "org.apache.qpid.dispatch.listener"),
            ("link", "org.apache.qpid.dispatch.router.link"),
            ("router.link", "org.apache.qpid.dispatch.router.link"),
            ("address", "org.apache.qpid.dispatch.router.config.address"),
            ("autoLink", "org.apache.qpid.dispatch.router.config.autoLink"),
            ("org.amqp.management", "org.amqp.management"),
            ("io.skupper.router.router.link", "io.skupper.router.router.link"),
        ] {
            assert_eq!(Called::Ringmain.long_type(short), long);
        }
        assert_eq!(Called::Skupper.long_type("node"), "io.skupper.router.router.node");
    }
}
