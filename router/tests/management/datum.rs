//! Values of AMQP, owned.

use ringmain_codec::{Encode, Full, Symbol, Value, View, Writer};
use std::fmt;

/// A value.
#[derive(Clone, PartialEq)]
pub enum Datum {
    Null,
    Bool(bool),
    Int(i32),
    Uint(u32),
    Long(i64),
    Ulong(u64),
    Double(f64),
    Text(String),
    Symbol(String),
    List(Vec<Datum>),
    Map(Vec<(Datum, Datum)>),
    /// Of a type that management doesn't use: its text form.
    Other(String),
}

impl Datum {
    pub fn of(value: Value<'_>) -> Self {
        match value.view() {
            View::Null => Self::Null,
            View::Bool(value) => Self::Bool(value),
            View::Int(value) => Self::Int(value),
            View::Uint(value) => Self::Uint(value),
            View::Long(value) => Self::Long(value),
            View::Ulong(value) => Self::Ulong(value),
            View::Double(value) => Self::Double(value),
            View::Str(text) => Self::Text(text.to_owned()),
            View::Symbol(Symbol(text)) => Self::Symbol(text.to_owned()),
            View::List(items) => Self::List(items.map(Self::of).collect()),
            View::Map(_) => {
                let entries = value.entries().expect("it is a map");
                Self::Map(entries.map(|(key, value)| (Self::of(key), Self::of(value))).collect())
            }
            _ => Self::Other(value.to_string()),
        }
    }

    /// The value behind a string key.
    #[track_caller]
    pub fn get(&self, key: &str) -> &Self {
        self.find(key).unwrap_or_else(|| panic!("no '{key}' in {self:?}"))
    }

    /// The value behind a string key, if there is one.
    pub fn find(&self, key: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { panic!("not a map: {self:?}") };
        entries.iter().find(|(found, _)| *found == text(key)).map(|(_, value)| value)
    }

    #[track_caller]
    pub fn items(&self) -> &[Self] {
        let Self::List(items) = self else { panic!("not a list: {self:?}") };
        items
    }

    #[track_caller]
    pub fn str(&self) -> &str {
        let Self::Text(text) = self else { panic!("not a string: {self:?}") };
        text
    }

    /// The number, of whatever type.
    #[track_caller]
    pub fn number(&self) -> i64 {
        match self {
            Self::Int(number) => (*number).into(),
            Self::Uint(number) => (*number).into(),
            Self::Long(number) => *number,
            Self::Ulong(number) => i64::try_from(*number).expect("a number of this world"),
            other => panic!("not an integer: {other:?}"),
        }
    }
}

/// A string.
pub fn text(text: &str) -> Datum {
    Datum::Text(text.to_owned())
}

/// A map with strings for keys.
pub fn map<const N: usize>(entries: [(&str, Datum); N]) -> Datum {
    Datum::Map(entries.into_iter().map(|(key, value)| (text(key), value)).collect())
}

/// A list of strings.
pub fn texts(texts: &[&str]) -> Datum {
    Datum::List(texts.iter().map(|item| text(item)).collect())
}

impl Encode for Datum {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Null => View::Null.encode(writer),
            Self::Bool(value) => value.encode(writer),
            Self::Int(value) => value.encode(writer),
            Self::Uint(value) => value.encode(writer),
            Self::Long(value) => value.encode(writer),
            Self::Ulong(value) => value.encode(writer),
            Self::Double(value) => value.encode(writer),
            Self::Text(text) => text.as_str().encode(writer),
            Self::Symbol(text) => Symbol(text).encode(writer),
            Self::List(items) => writer.list(|writer| items.iter().try_for_each(|item| writer.put(item))),
            Self::Map(entries) => writer.map(|writer| {
                entries.iter().try_for_each(|(key, value)| {
                    writer.put(key)?;
                    writer.put(value)
                })
            }),
            Self::Other(text) => panic!("can't be written: {text}"),
        }
    }
}

impl fmt::Debug for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "int({value})"),
            Self::Uint(value) => write!(f, "uint({value})"),
            Self::Long(value) => write!(f, "long({value})"),
            Self::Ulong(value) => write!(f, "ulong({value})"),
            Self::Double(value) => write!(f, "double({value})"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Symbol(text) => write!(f, ":{text}"),
            Self::List(items) => f.debug_list().entries(items).finish(),
            Self::Map(entries) => {
                f.debug_map().entries(entries.iter().map(|(key, value)| (key, value))).finish()
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}
