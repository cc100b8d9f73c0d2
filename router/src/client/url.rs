//! `amqp://host:port/address`: which router, and which address there.

use core::fmt;
use core::str::FromStr;

/// The port of AMQP without TLS.
const PORT_DEFAULT: u16 = 5672;

/// The port of AMQP with TLS.
const TLS_PORT_DEFAULT: u16 = 5671;

/// What stands before the `@` of a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password; `None`: it isn't in the URL.
    pub password: Option<String>,
}

impl fmt::Debug for Login {
    /// Doesn't show the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Where a client connects, and the address that it uses there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// A host name or a literal address; IPv6 without brackets.
    pub host: String,
    /// From 1.
    pub port: u16,
    /// The AMQP address, percent-decoded. Not empty.
    pub address: String,
    /// As whom; `None`: the URL doesn't say.
    pub login: Option<Login>,
    /// Whether the URL asks for TLS (`amqps`).
    pub is_encrypted: bool,
}

impl fmt::Display for Target {
    /// `HOST:PORT`, with an IPv6 literal in brackets: the connection's end, without the address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Target {
    type Err = String;

    /// Reads `amqp://[user[:password]@]host[:port]/address`, or the same with `amqps`.
    ///
    /// # Errors
    /// What is wrong or not available yet, and how it should look.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            // With a slash it looks like a URL without its scheme, else like an address.
            let example = if text.contains('/') { text.to_owned() } else { format!("127.0.0.1/{text}") };
            return Err(format!("write it as amqp://HOST[:PORT]/ADDRESS, for example amqp://{example}"));
        };
        let is_encrypted = scheme.eq_ignore_ascii_case("amqps");
        if !is_encrypted && !scheme.eq_ignore_ascii_case("amqp") {
            return Err(format!("unknown scheme '{scheme}://': write amqp://HOST[:PORT]/ADDRESS"));
        }
        let (authority, address) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, authority) = match authority.rsplit_once('@') {
            Some((login, authority)) => (Some(split_login(login)?), authority),
            None => (None, authority),
        };
        let (host, port) = split_port(authority)?;
        let port = port.unwrap_or(if is_encrypted { TLS_PORT_DEFAULT } else { PORT_DEFAULT });
        if host.is_empty() {
            return Err("the host is missing: write amqp://HOST[:PORT]/ADDRESS".to_owned());
        }
        let address = percent_decode(address)?;
        if address.is_empty() {
            return Err(format!("the address is missing: write amqp://{authority}/ADDRESS"));
        }
        Ok(Self { host: host.to_owned(), port, address, login, is_encrypted })
    }
}

/// A router to connect to: a [`Target`] without an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bus {
    /// A host name or a literal address; IPv6 without brackets.
    pub host: String,
    /// From 1.
    pub port: u16,
    /// As whom; `None`: the URL doesn't say.
    pub login: Option<Login>,
    /// Whether the URL asks for TLS (`amqps`).
    pub is_encrypted: bool,
}

impl Bus {
    /// The target of this router with this address.
    pub(super) fn target(&self, address: &str) -> Target {
        Target {
            host: self.host.clone(),
            port: self.port,
            address: address.to_owned(),
            login: self.login.clone(),
            is_encrypted: self.is_encrypted,
        }
    }
}

impl fmt::Display for Bus {
    /// `HOST:PORT`, with an IPv6 literal in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target("").fmt(f)
    }
}

impl FromStr for Bus {
    type Err = String;

    /// Reads `host`, `host:port` or `amqp://host[:port][/]`. The path `$management`, which some scripts have, is
    /// allowed.
    ///
    /// # Errors
    /// What is wrong or not available yet, and how it should look.
    fn from_str(text: &str) -> Result<Self, String> {
        let url = if text.contains("://") { text.to_owned() } else { format!("amqp://{text}") };
        let after_scheme = url.split_once("://").map_or("", |(_, rest)| rest);
        let path = after_scheme.split_once('/').map_or("", |(_, path)| path);
        if !["", "$management"].contains(&path) {
            return Err(format!(
                "leave out '/{path}': the URL names a router to connect to; --router names another one"
            ));
        }
        let separator = if after_scheme.contains('/') { "" } else { "/" };
        let path = if path.is_empty() { "$management" } else { "" };
        let target: Target = format!("{url}{separator}{path}").parse()?;
        let Target { host, port, login, is_encrypted, .. } = target;
        Ok(Self { host, port, login, is_encrypted })
    }
}

/// Reads `user` or `user:password`, percent-encoded.
fn split_login(text: &str) -> Result<Login, String> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (text, None),
    };
    let decode = |text| percent_decode(text).map_err(|reason| format!("before the '@': {reason}"));
    let user = decode(user)?;
    if user.is_empty() {
        return Err("the user is missing before the '@'".to_owned());
    }
    Ok(Login { user, password: password.map(decode).transpose()? })
}

/// Splits `host`, `host:port`, `[ipv6]` or `[ipv6]:port`.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (literal, after) = rest.split_once(']').ok_or("a ']' is missing after the IPv6 address")?;
            match after.strip_prefix(':') {
                Some(port) => (literal, Some(port)),
                None if after.is_empty() => (literal, None),
                None => return Err(format!("expected ':PORT' after the ']', found '{after}'")),
            }
        }
        None if authority.matches(':').count() > 1 => {
            return Err(format!("an IPv6 address stands in brackets: amqp://[{authority}]/ADDRESS"));
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    match port {
        None => Ok((host, None)),
        Some("amqp") => Ok((host, Some(PORT_DEFAULT))),
        Some("amqps") => Ok((host, Some(TLS_PORT_DEFAULT))),
        Some(port) => match port.parse() {
            Ok(0) | Err(_) => Err(format!("'{port}' isn't a port from 1 to 65535")),
            Ok(number) => Ok((host, Some(number))),
        },
    }
}

/// Resolves `%XX` (RFC 3986 §2.1).
fn percent_decode(text: &str) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |index: usize| after.get(index).and_then(|byte| char::from(*byte).to_digit(16));
        match (digit(0), digit(1)) {
            // Two hexadecimal digits are less than 256.
            (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
            (Some(_) | None, _) => {
                return Err("a '%' needs two hexadecimal digits ('%25' is '%' itself)".to_owned());
            }
        }
        rest = &after[2..];
    }
    String::from_utf8(out).map_err(|_| "what the '%' stand for isn't text in UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Bus, Target};

    fn target(text: &str) -> (String, u16, String) {
        let target: Target = text.parse().unwrap();
        (target.host, target.port, target.address)
    }

    fn fault(text: &str) -> String {
        text.parse::<Target>().unwrap_err()
    }

    #[test]
    fn the_parts_of_a_url() {
        assert_eq!(target("amqp://127.0.0.1/hello"), ("127.0.0.1".into(), 5672, "hello".into()));
        assert_eq!(target("AMQP://host.example:10000/a/b.c"), ("host.example".into(), 10000, "a/b.c".into()));
        let login =
            |text: &str| text.parse::<Target>().unwrap().login.map(|login| (login.user, login.password));
        assert_eq!(login("amqp://h/a@b"), None);
        assert_eq!(login("amqp://fred@h/a"), Some(("fred".into(), None)));
        let whole = Some(("fred@d".into(), Some("p:w/@".into())));
        assert_eq!(login("amqp://fred%40d:p:w%2f%40@h:1/a"), whole);
        assert_eq!(login("amqp://fred@d:p:w%2f%40@h:1/a"), whole);
        assert!(!format!("{:?}", "amqp://fred:secret@h/a".parse::<Target>()).contains("secret"));
        assert_eq!(target("amqps://h/a"), ("h".into(), 5671, "a".into()));
        assert_eq!(target("amqp://[::1]/q"), ("::1".into(), 5672, "q".into()));
        assert_eq!(target("amqp://[::1]:1/q"), ("::1".into(), 1, "q".into()));
        assert_eq!(target("amqp://h/a%20b%2Fc%C3%A4"), ("h".into(), 5672, "a b/cä".into()));
        assert_eq!(target("amqp://h//rooted"), ("h".into(), 5672, "/rooted".into()));
        assert_eq!("amqp://[::1]:1/q".parse::<Target>().unwrap().to_string(), "[::1]:1");
    }

    #[test]
    fn a_router_to_connect_to() {
        let bus = |text: &str| text.parse::<Bus>().map(|bus| bus.to_string());
        assert_eq!(bus("127.0.0.1").unwrap(), "127.0.0.1:5672");
        assert_eq!(bus("0.0.0.0:amqp").unwrap(), "0.0.0.0:5672");
        assert_eq!(bus("host.example:10000").unwrap(), "host.example:10000");
        assert_eq!(bus("amqp://host.example:10000").unwrap(), "host.example:10000");
        assert_eq!(bus("amqp://host.example/").unwrap(), "host.example:5672");
        assert_eq!(bus("amqp://host.example/$management").unwrap(), "host.example:5672");
        assert_eq!(bus("[::1]:7").unwrap(), "[::1]:7");
        assert!(bus("amqp://h/queue").unwrap_err().contains("leave out '/queue'"));
        assert_eq!(bus("amqps://h").unwrap(), "h:5671");
        assert!("amqps://h".parse::<Bus>().unwrap().is_encrypted);
        assert!(bus("").unwrap_err().contains("host is missing"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(fault("hello").contains("amqp://127.0.0.1/hello"));
        assert!(fault("http://h/a").contains("unknown scheme 'http://'"));
        assert!(fault("amqp://:secret@h/a").contains("the user is missing"));
        assert!(!fault("amqp://me:secret%@h/a").contains("secret"));
        assert!(fault("amqp://h").contains("the address is missing"));
        assert!(fault("amqp://h:5672/").contains("amqp://h:5672/ADDRESS"));
        assert!(fault("amqp:///a").contains("the host is missing"));
        assert!(fault("amqp://::1/a").contains("amqp://[::1]/ADDRESS"));
        assert!(fault("amqp://[::1/a").contains("']'"));
        assert!(fault("amqp://h:0/a").contains("'0' isn't a port"));
        assert!(fault("amqp://h:99999/a").contains("'99999' isn't a port"));
        assert!(fault("amqp://h/%4").contains("hexadecimal"));
        assert!(fault("amqp://h/%é").contains("hexadecimal"));
        assert!(fault("amqp://h/%ff").contains("UTF-8"));
    }
}
