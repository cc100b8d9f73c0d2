//! A client of HTTP/1.1 that knows just enough of it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::support::{PATIENCE, Router, Setup};

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// By their names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// The section of an HTTP listener with these attributes beside, one a line.
pub fn http_listener(attributes: &str) -> String {
    format!("listener {{\n    name: web\n    host: 127.0.0.1\n    port: 0\n    http: yes\n{attributes}\n}}\n")
}

/// A router with an HTTP listener, and where that listens.
pub fn router(attributes: &str) -> (Router, SocketAddr) {
    router_with(attributes, Setup::default())
}

/// The same with more in its configuration.
pub fn router_with(attributes: &str, setup: Setup<'_>) -> (Router, SocketAddr) {
    let sections = format!("{}{}", http_listener(attributes), setup.sections);
    let router = Router::with(Setup { sections: &sections, ..setup });
    let address = http_address(&router);
    (router, address)
}

/// Where a router listens for HTTP.
pub fn http_address(router: &Router) -> SocketAddr {
    let line = router.await_log("Listening for HTTP on ");
    line.rsplit(' ').next().and_then(|address| address.parse().ok()).expect("the router logs the address")
}

/// A connection.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the router accepts connections");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out that isn't zero");
    stream
}

/// Sends a request, all of its headers but two given, and reads the answer to its end.
pub fn request(address: SocketAddr, method: &str, path: &str, headers: &str) -> Answer {
    let mut stream = connect(address);
    let request = format!("{method} {path} HTTP/1.1\r\nHost: router\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("the router reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the router closes after the answer");
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status line");
    let headers = lines.filter_map(|line| line.split_once(": "));
    Answer {
        status: status.parse().expect("a status"),
        headers: headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect(),
        body: body.to_owned(),
    }
}

/// GET.
pub fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path, "")
}

/// What `/metrics` says: values by name and labels, as they are written, and the type of each family.
pub struct Scrape {
    pub values: BTreeMap<String, f64>,
    pub types: BTreeMap<String, String>,
}

impl Scrape {
    pub fn of(address: SocketAddr) -> Self {
        let answer = get(address, "/metrics");
        assert_eq!(answer.status, 200, "{}", answer.body);
        let (mut values, mut types) = (BTreeMap::new(), BTreeMap::new());
        for line in answer.body.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').expect("a name and a type");
                assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} comes twice");
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').expect("a name and a value");
                let value = value.parse().unwrap_or_else(|_| panic!("a number: {line}"));
                assert!(values.insert(name.to_owned(), value).is_none(), "{name} comes twice");
            }
        }
        Self { values, types }
    }

    #[track_caller]
    pub fn value(&self, name: &str) -> f64 {
        *self.values.get(name).unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// The sum over all labels.
    pub fn sum(&self, name: &str) -> f64 {
        let with_labels = format!("{name}{{");
        let its = self.values.iter().filter(|(key, _)| *key == name || key.starts_with(&with_labels));
        its.map(|(_, value)| value).sum()
    }
}
