//! From the text of an address to what is looked up.

use std::fmt;

/// The highest phase of an address.
pub const PHASE_MAX: u8 = 9;

/// What kind of address a text is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Anything that isn't of another kind: reachable wherever its receivers are.
    Mobile,
    /// A mobile address behind its waypoint: what has been through the waypoint is told from what is still to
    /// go there by a phase, 1 to [`PHASE_MAX`].
    Phase(u8),
    /// Of this router only: `_local/X`, and `_topo/0/ID/X` and `_edge/ID/X` with this router's own id.
    Local,
    /// Of all routers: `_topo/0/all/X`.
    Topological,
    /// Of another router, named by the text: `_topo/0/OTHER/X`.
    Router,
    /// Of an edge router, named by the text: `_edge/OTHER/X`.
    Edge,
    /// Of another area, named by the text: `_topo/AREA/…`.
    Area,
}

impl Class {
    /// The letter that stands for the class in a key, as in the existing routers' management.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Mobile => 'M',
            Self::Phase(phase) => (b'0' + phase) as char,
            Self::Local => 'L',
            Self::Topological => 'T',
            Self::Router => 'R',
            Self::Edge => 'H',
            Self::Area => 'A',
        }
    }
}

/// An address in canonical form: what two texts have in common that mean the same node.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address<'a> {
    /// Its class.
    pub class: Class,
    /// What identifies it within the class.
    pub text: &'a str,
}

impl fmt::Debug for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.class.letter(), self.text)
    }
}

impl<'a> Address<'a> {
    /// Reads the key of an address: its class's letter, then its text.
    #[must_use]
    pub fn from_key(key: &'a str) -> Option<Self> {
        let class = match key.chars().next()? {
            'M' => Class::Mobile,
            digit @ '1'..='9' => Class::Phase(digit as u8 - b'0'),
            'L' => Class::Local,
            'T' => Class::Topological,
            'R' => Class::Router,
            'H' => Class::Edge,
            'A' => Class::Area,
            _ => return None,
        };
        Some(Self { class, text: &key[1..] })
    }

    /// Reads the text of an address as router `id` understands it.
    #[must_use]
    pub fn parse(text: &'a str, id: &str) -> Self {
        let text = without_scheme(text);
        let text = text.strip_suffix(['.', '/']).unwrap_or(text);
        if let Some(local) = text.strip_prefix("_local/") {
            return Self { class: Class::Local, text: local };
        }
        if let Some(rest) = text.strip_prefix("_topo/") {
            return Self::topological(rest, id);
        }
        if let Some(rest) = text.strip_prefix("_edge/") {
            let (router, local) = split(rest);
            return if router == id {
                Self { class: Class::Local, text: local }
            } else {
                Self { class: Class::Edge, text: router }
            };
        }
        Self { class: Class::Mobile, text }
    }

    /// The same address in one of its phases. Only mobile ones have several; 0 is the address as it is, and a
    /// phase beyond [`PHASE_MAX`] is as good as that.
    #[must_use]
    pub fn in_phase(self, phase: u8) -> Self {
        match self.class {
            Class::Mobile if phase > PHASE_MAX => Self { class: Class::Phase(PHASE_MAX), ..self },
            Class::Mobile if phase > 0 => Self { class: Class::Phase(phase), ..self },
            Class::Mobile
            | Class::Phase(_)
            | Class::Local
            | Class::Topological
            | Class::Router
            | Class::Edge
            | Class::Area => self,
        }
    }

    fn topological(rest: &'a str, id: &str) -> Self {
        let (area, rest) = split(rest);
        let (router, local) = split(rest);
        if area != "0" && area != "all" {
            Self { class: Class::Area, text: area }
        } else if router == "all" {
            Self { class: Class::Topological, text: local }
        } else if router == id {
            Self { class: Class::Local, text: local }
        } else {
            Self { class: Class::Router, text: router }
        }
    }
}

/// What lies before and behind the first `/`.
fn split(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or((text, ""))
}

/// Takes a scheme and a host off: `amqp:/X`, `amqp://host/X`, `//host/X` and `/X` mean `X`. A colon that
/// no slash follows is an ordinary character.
fn without_scheme(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix("//") {
        return split(rest).1;
    }
    if let Some(rest) = text.strip_prefix('/') {
        return rest;
    }
    match text.find(":/") {
        Some(colon) => {
            let rest = &text[colon + 2..];
            match rest.strip_prefix('/') {
                Some(host) => split(host).1,
                None => rest,
            }
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// router-protocol reference §4.1, line by line.
    #[test]
    fn texts_are_classified() {
        let cases = [
            ("queue", 'M', "queue"),
            ("queue/", 'M', "queue"),
            ("queue.", 'M', "queue"),
            ("queue//", 'M', "queue/"),
            ("a.b/c", 'M', "a.b/c"),
            ("a:b", 'M', "a:b"),
            ("/queue", 'M', "queue"),
            ("//host:5672/queue", 'M', "queue"),
            ("amqp:/queue", 'M', "queue"),
            ("amqp:queue", 'M', "amqp:queue"),
            ("amqp://host:5672/queue", 'M', "queue"),
            ("any://host/a/b", 'M', "a/b"),
            ("_local/x", 'L', "x"),
            ("amqp:/_local/x/y", 'L', "x/y"),
            ("_topo/all/all/x", 'T', "x"),
            ("_topo/0/all/x", 'T', "x"),
            ("_topo/0/ME/x", 'L', "x"),
            ("_topo/all/ME/x", 'L', "x"),
            ("amqp:/_topo/0/ME/temp.1", 'L', "temp.1"),
            ("_topo/0/OTHER/x", 'R', "OTHER"),
            ("_topo/AREA2/R/x", 'A', "AREA2"),
            ("_edge/ME/x", 'L', "x"),
            ("_edge/OTHER/x", 'H', "OTHER"),
            ("_topology/x", 'M', "_topology/x"),
        ];
        for (text, letter, expected) in cases {
            let address = Address::parse(text, "ME");
            assert_eq!((address.class.letter(), address.text), (letter, expected), "{text}");
        }
    }
}
