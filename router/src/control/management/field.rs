//! Values of attributes, and how they go onto the wire.

use ringmain_codec::{Encode, Full, Value, View, Writer};
use std::borrow::Cow;

/// A value in a reply.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Field<'a> {
    /// Nothing is known, or nothing was set.
    Null,
    Bool(bool),
    Int(i32),
    Uint(u32),
    Long(i64),
    Ulong(u64),
    Double(f64),
    Text(Cow<'a, str>),
    List(Vec<Field<'a>>),
    /// Keys are strings.
    Map(Vec<(Cow<'a, str>, Field<'a>)>),
    /// One value that is encoded already.
    Encoded(Value<'a>),
}

impl<'a> Field<'a> {
    /// A text that lives as long as the reply needs it.
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// A list of such texts.
    pub(super) fn texts(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    /// Whether it is the null value.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The text, if it is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

impl From<String> for Field<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl Encode for Field<'_> {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Null => View::Null.encode(writer),
            Self::Bool(value) => value.encode(writer),
            Self::Int(value) => value.encode(writer),
            Self::Uint(value) => value.encode(writer),
            Self::Long(value) => value.encode(writer),
            Self::Ulong(value) => value.encode(writer),
            Self::Double(value) => value.encode(writer),
            Self::Text(text) => (**text).encode(writer),
            Self::List(items) => writer.list(|writer| items.iter().try_for_each(|item| writer.put(item))),
            Self::Map(entries) => writer.map(|writer| {
                entries.iter().try_for_each(|(key, value)| {
                    writer.put(&**key)?;
                    writer.put(value)
                })
            }),
            Self::Encoded(value) => value.encode(writer),
        }
    }
}

/// What `write` writes, however long it is.
pub(super) fn encoded(guess: usize, write: impl Fn(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
    let mut room = vec![0; guess.max(64)];
    loop {
        let mut writer = Writer::new(&mut room);
        match write(&mut writer) {
            Ok(()) => {
                let length = writer.len();
                room.truncate(length);
                return room;
            }
            // Nothing of what was written is worth copying.
            Err(Full) => room = vec![0; room.len() * 2],
        }
    }
}
