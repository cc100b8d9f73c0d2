//! AMQP values as JSON, and the other way round: what a command line takes and prints.

use ringmain_codec::{Encode, Full, Value, View, Writer};
use serde_json::{Map, Number, Value as Json};

/// The value as JSON. What JSON has no type for becomes text: symbols, binaries, UUIDs, characters; a timestamp
/// becomes its milliseconds, a described value what it describes.
pub(super) fn from_amqp(value: &Value<'_>) -> Json {
    from_view(&value.view())
}

/// Values are nested only so deeply as the codec lets them be.
fn from_view(view: &View<'_>) -> Json {
    match view {
        View::Null => Json::Null,
        View::Bool(value) => Json::Bool(*value),
        View::Ubyte(value) => (*value).into(),
        View::Ushort(value) => (*value).into(),
        View::Uint(value) => (*value).into(),
        View::Ulong(value) => (*value).into(),
        View::Byte(value) => (*value).into(),
        View::Short(value) => (*value).into(),
        View::Int(value) => (*value).into(),
        View::Long(value) => (*value).into(),
        View::Float(value) => Number::from_f64(f64::from(*value)).map_or(Json::Null, Json::Number),
        View::Double(value) => Number::from_f64(*value).map_or(Json::Null, Json::Number),
        View::Timestamp(value) => value.0.into(),
        View::Char(value) => value.to_string().into(),
        View::Str(text) => (*text).into(),
        View::Symbol(symbol) => symbol.0.into(),
        View::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        View::Uuid(_) | View::Decimal32(_) | View::Decimal64(_) | View::Decimal128(_) => {
            view.to_string().into()
        }
        View::List(items) => Json::Array(items.map(|item| from_amqp(&item)).collect()),
        View::Array(items) => Json::Array(items.map(|item| from_view(&item)).collect()),
        View::Map(items) => {
            let mut map = Map::new();
            let mut items = *items;
            while let (Some(key), Some(value)) = (items.next(), items.next()) {
                let key = match from_amqp(&key) {
                    Json::String(text) => text,
                    other => other.to_string(),
                };
                map.insert(key, from_amqp(&value));
            }
            Json::Object(map)
        }
        View::Described { descriptor: _, value } => from_amqp(value),
    }
}

/// JSON as an AMQP value: whole numbers are longs (ulongs where they need it), the rest is what it is called.
pub(super) struct AsAmqp<'j>(pub(super) &'j Json);

impl Encode for AsAmqp<'_> {
    /// The depth is bounded where the JSON was read.
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self.0 {
            Json::Null => writer.null(),
            Json::Bool(value) => value.encode(writer),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => number.encode(writer),
                (None, Some(number)) => number.encode(writer),
                (None, None) => number.as_f64().unwrap_or_default().encode(writer),
            },
            Json::String(text) => text.as_str().encode(writer),
            Json::Array(items) => {
                writer.list(|writer| items.iter().try_for_each(|item| writer.put(&AsAmqp(item))))
            }
            Json::Object(entries) => writer.map(|writer| {
                entries.iter().try_for_each(|(key, value)| {
                    writer.put(key.as_str())?;
                    writer.put(&AsAmqp(value))
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AsAmqp, from_amqp};
    use ringmain_codec::{Value, Writer};
    use serde_json::json;

    fn encoded(json: &serde_json::Value) -> Vec<u8> {
        let mut room = [0; 512];
        let mut writer = Writer::new(&mut room);
        writer.put(&AsAmqp(json)).unwrap();
        writer.written().to_vec()
    }

    /// AMQP 1.0 §1.6: 0x40 null, 0x41 true, 0x55 smalllong, 0xa1 str8.
    #[test]
    fn values_on_the_wire() {
        assert_eq!(encoded(&json!(null)), [0x40]);
        assert_eq!(encoded(&json!(true)), [0x41]);
        assert_eq!(encoded(&json!(-1)), [0x55, 0xff]);
        assert_eq!(encoded(&json!("ab")), [0xa1, 2, b'a', b'b']);
    }

    #[test]
    fn what_goes_comes_back() {
        let json = json!({"a": [1, -2, 2.5, u64::MAX, i64::MIN], "b": {"c": null, "d": false}, "": "text"});
        let bytes = encoded(&json);
        assert_eq!(from_amqp(&Value::from_encoded(&bytes).unwrap()), json);
    }

    /// §1.6: 0x83 timestamp, 0xa3 sym8, 0xa0 vbin8, 0x00 described, 0x73 char.
    #[test]
    fn types_that_json_has_not() {
        let json = |bytes: &[u8]| from_amqp(&Value::from_encoded(bytes).unwrap());
        assert_eq!(json(&[0x83, 0, 0, 0, 0, 0, 0, 3, 0xe8]), json!(1000));
        assert_eq!(json(&[0xa3, 1, b'x']), json!("x"));
        assert_eq!(json(&[0xa0, 2, b'h', b'i']), json!("hi"));
        assert_eq!(json(&[0x00, 0x53, 0x24, 0x41]), json!(true));
        assert_eq!(json(&[0x73, 0, 0, 0, b'z']), json!("z"));
    }
}
