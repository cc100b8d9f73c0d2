//! What `openProperties` of a listener means on the wire.

use super::config::{Json, Member};
use ringmain_codec::{Full, Symbol, Writer};

/// A value of JSON as an AMQP value: strings, booleans, integers (int, or long where they need it), doubles,
/// lists, and maps with symbol keys.
pub(super) fn encode(json: &Json) -> Vec<u8> {
    let mut room = vec![0; 64];
    loop {
        let mut writer = Writer::new(&mut room);
        match write(json, &mut writer) {
            Ok(()) => return writer.written().to_vec(),
            Err(Full) => room = vec![0; room.len() * 2],
        }
    }
}

/// The open's property with which a listener tells clients of other servers (router-protocol reference §1.2).
pub(super) const FAILOVER_SERVERS: &str = "failover-server-list";

/// The value of [`FAILOVER_SERVERS`] for addresses such as `amqps://host:5671` or `host`: a map for each, with
/// `network-host`, `port`, and `scheme` where one is written.
pub(super) fn failover_servers(urls: &[String]) -> Json {
    let server = |url: &String| {
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, url.as_str()),
        };
        let (host, port) = match rest.rsplit_once(':') {
            // A colon within brackets is the address's own.
            Some((host, port)) if !port.contains(']') => (host, port),
            Some(_) | None => (rest, if scheme == Some("amqps") { "5671" } else { "5672" }),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let member = |key: &str, value: &str| Member {
            key: key.to_owned(),
            line: 0,
            value: Json::String(value.to_owned()),
        };
        let scheme = scheme.map(|scheme| member("scheme", scheme));
        Json::Map([member("network-host", host), member("port", port)].into_iter().chain(scheme).collect())
    };
    Json::List(urls.iter().map(server).collect())
}

fn write(json: &Json, writer: &mut Writer<'_>) -> Result<(), Full> {
    match json {
        Json::Null => writer.null(),
        Json::Boolean(value) => writer.put(value),
        Json::Integer(value) => match i32::try_from(*value) {
            Ok(value) => writer.put(&value),
            Err(_) => writer.put(value),
        },
        Json::Float(value) => writer.put(value),
        Json::String(value) => writer.put(value.as_str()),
        Json::List(items) => writer.list(|writer| items.iter().try_for_each(|item| write(item, writer))),
        Json::Map(members) => writer.map(|writer| {
            members.iter().try_for_each(|Member { key, value, .. }| {
                writer.put(&Symbol(key))?;
                write(value, writer)
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringmain_codec::Value;

    /// Router-protocol reference §1.2: strings under symbols.
    #[test]
    fn servers_are_told_as_clients_read_them() {
        let urls = ["amqps://r2:10001", "amqp://[::1]:5673", "r3", "amqps://[fe80::1]"].map(str::to_owned);
        let encoded = encode(&failover_servers(&urls));
        let list = Value::from_encoded(&encoded).unwrap();
        let servers: Vec<Vec<Option<String>>> = list
            .items()
            .unwrap()
            .map(|server| {
                let text = |key| server.get(key).and_then(|value| value.as_str().map(str::to_owned));
                ["scheme", "network-host", "port"].map(text).into()
            })
            .collect();
        let some = |text: &str| Some(text.to_owned());
        let expected = [
            [some("amqps"), some("r2"), some("10001")],
            [some("amqp"), some("::1"), some("5673")],
            [None, some("r3"), some("5672")],
            [some("amqps"), some("fe80::1"), some("5671")],
        ];
        assert_eq!(servers, expected.map(Vec::from));
    }

    #[test]
    fn json_becomes_amqp() {
        let json = Json::Map(vec![
            Member { key: "n".to_owned(), line: 1, value: Json::Integer(1 << 40) },
            Member { key: "l".to_owned(), line: 2, value: Json::List(vec![Json::Boolean(true), Json::Null]) },
        ]);
        let encoded = encode(&json);
        let value = Value::from_encoded(&encoded).unwrap();
        let mut entries = value.entries().unwrap();
        let (key, number) = entries.next().unwrap();
        assert_eq!(key.as_symbol().unwrap().0, "n");
        assert_eq!(number.as_i64(), Some(1 << 40));
        let (_, list) = entries.next().unwrap();
        assert_eq!(list.items().unwrap().count(), 2);
        assert_eq!(entries.next().map(|_| ()), None);
    }
}
