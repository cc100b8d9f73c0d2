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
