//! Names of types: two routers' prefixes, and the short form.

/// Whose names a request uses, and so its reply. What isn't said is meant in `qdrouterd`'s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Dialect {
    /// `qdrouterd`'s.
    #[default]
    Dispatch,
    /// `skrouterd`'s.
    Skupper,
}

impl Dialect {
    /// What comes before the short name of a type.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Dispatch => "org.apache.qpid.dispatch.",
            Self::Skupper => "io.skupper.router.",
        }
    }

    /// The whole name of a type.
    pub(super) fn full_name(self, short: &str) -> String {
        format!("{}{short}", self.prefix())
    }

    /// Takes the prefix off the name of a type.
    pub(super) fn split(name: &str) -> (Self, &str) {
        for dialect in [Self::Dispatch, Self::Skupper] {
            if let Some(short) = name.strip_prefix(dialect.prefix()) {
                return (dialect, short);
            }
        }
        (Self::default(), name)
    }

    /// The key of an address as management shows it, from a shard's: `qdrouterd` has the phase behind the
    /// letter of a mobile address.
    pub(super) fn address_key(self, key: &str) -> String {
        let phased = match key.as_bytes().first() {
            Some(b'M') => Some(b'0'),
            Some(phase @ b'1'..=b'9') => Some(*phase),
            Some(_) | None => None,
        };
        match (self, phased) {
            (Self::Dispatch, Some(phase)) => format!("M{}{}", char::from(phase), &key[1..]),
            (Self::Dispatch, None) | (Self::Skupper, _) => key.to_owned(),
        }
    }
}
