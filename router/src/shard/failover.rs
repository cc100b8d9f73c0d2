//! Other servers that a peer tells of in its open (router-protocol reference §1.2).

use super::mailbox::FailoverServer;
use ringmain_codec::{Value, View};

/// The property that lists them.
const SERVER_LIST: &str = "failover-server-list";

/// Servers that are remembered of one peer. (The open's size limits what a peer can say of each.)
const SERVERS_MAX: usize = 16;

/// What an open's properties say of other servers; `None` if they say nothing.
///
/// An entry without a `network-host` is passed over.
pub(super) fn servers(properties: &Value<'_>) -> Option<Vec<FailoverServer>> {
    let list = properties.get(SERVER_LIST)?;
    Some(list.items()?.filter_map(|entry| server(&entry)).take(SERVERS_MAX).collect())
}

fn server(entry: &Value<'_>) -> Option<FailoverServer> {
    let text = |key| entry.get(key).and_then(|value| scalar(&value)).filter(|text| !text.is_empty());
    Some(FailoverServer {
        host: text("network-host")?,
        scheme: text("scheme").unwrap_or_else(|| "amqp".to_owned()),
        port: text("port").unwrap_or_else(|| "5672".to_owned()),
        hostname: text("hostname"),
    })
}

/// A string, symbol or whole number as text: peers write ports in any of these ways.
fn scalar(value: &Value<'_>) -> Option<String> {
    if let View::Symbol(symbol) = value.view() {
        return Some(symbol.0.to_owned());
    }
    value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|number| number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringmain_codec::{Symbol, Writer};

    /// Router-protocol reference §1.2: a list of maps with symbol keys; scheme, port and hostname may be missing,
    /// and the port may be of any scalar type.
    #[test]
    fn servers_of_an_open() {
        let mut room = [0; 512];
        let mut writer = Writer::new(&mut room);
        writer
            .map(|writer| {
                writer.put(&Symbol("product"))?;
                writer.put("broker")?;
                writer.put(&Symbol(SERVER_LIST))?;
                writer.list(|writer| {
                    writer.map(|writer| {
                        writer.put(&Symbol("network-host"))?;
                        writer.put("b1")?;
                        writer.put(&Symbol("port"))?;
                        writer.put("5673")?;
                        writer.put(&Symbol("scheme"))?;
                        writer.put("amqps")?;
                        writer.put(&Symbol("hostname"))?;
                        writer.put("vhost")
                    })?;
                    writer.map(|writer| {
                        writer.put(&Symbol("network-host"))?;
                        writer.put("b2")?;
                        writer.put(&Symbol("port"))?;
                        writer.put(&5674u16)
                    })?;
                    writer.map(|writer| {
                        writer.put(&Symbol("port"))?;
                        writer.put("1")
                    })?;
                    writer.map(|writer| {
                        writer.put(&Symbol("network-host"))?;
                        writer.put("b3")
                    })
                })
            })
            .unwrap();
        let properties = Value::from_encoded(writer.written()).unwrap();
        let found: Vec<String> = servers(&properties)
            .unwrap()
            .iter()
            .map(|server| {
                format!("{}://{}:{} {:?}", server.scheme, server.host, server.port, server.hostname)
            })
            .collect();
        assert_eq!(found, ["amqps://b1:5673 Some(\"vhost\")", "amqp://b2:5674 None", "amqp://b3:5672 None"]);
        assert_eq!(servers(&Value::from_encoded(&[0xc1, 1, 0]).unwrap()), None);
    }
}
