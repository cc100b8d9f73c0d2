//! Values of attributes, and how they go onto the wire.

use ringmain_codec::constructor::code;
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
    /// A list of lists that are encoded already.
    Rows(Rows),
}

/// Rows of a table, encoded one after the other: a table of very many takes no more memory than its reply.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Rows {
    encoded: Vec<u8>,
    count: u32,
}

impl Rows {
    /// Adds a row.
    pub(super) fn push(&mut self, row: &[Field<'_>]) {
        let start = self.encoded.len();
        let mut room = ROW_BYTES;
        loop {
            self.encoded.resize(start + room, 0);
            let mut writer = Writer::new(&mut self.encoded[start..]);
            if writer.list(|writer| row.iter().try_for_each(|value| writer.put(value))).is_ok() {
                let length = writer.len();
                self.encoded.truncate(start + length);
                self.count += 1;
                return;
            }
            room *= 2;
        }
    }

    /// Bytes of all rows.
    pub(super) fn bytes(&self) -> usize {
        self.encoded.len()
    }
}

impl Encode for Rows {
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), Full> {
        // The size counts what follows it (§1.6.22).
        let size = u32::try_from(self.encoded.len() + size_of::<u32>()).map_err(|_| Full)?;
        writer.push(code::LIST32)?;
        writer.extend(&size.to_be_bytes())?;
        writer.extend(&self.count.to_be_bytes())?;
        writer.extend(&self.encoded)
    }
}

/// Room for a row at first.
const ROW_BYTES: usize = 1024;

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
            Self::Rows(rows) => rows.encode(writer),
        }
    }
}

/// What `write` writes, however long it is. What it writes must fit the format's sizes, or there would be no
/// end of it.
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
