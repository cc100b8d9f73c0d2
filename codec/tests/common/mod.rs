//! What the tests share: where test data lies, and a model of AMQP values that is independent of the crate
//! under test.
//!
//! [`Model`] is encoded by code that was written from AMQP 1.0 §1.6 alone and uses nothing of
//! `ringmain_codec`, so that a fault shared by the crate's encoder and decoder shows.
#![allow(dead_code, reason = "every test file uses another part of it")]

pub mod arbitrary;
pub mod composite;
pub mod specification;

use std::path::PathBuf;

use ringmain_codec::{Decimal32, Decimal64, Decimal128, Encode, Symbol, Timestamp, Uuid, View, Writer};

/// `name` in the folder of test data that isn't part of the project, if it is there.
pub fn test_data(name: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("RINGMAIN_TESTDATA") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    };
    let path = folder.join(name);
    path.exists().then_some(path)
}

/// What the crate encodes `value` as.
pub fn encoded<T: Encode + ?Sized>(value: &T) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 20];
    let mut writer = Writer::new(&mut buffer);
    writer.put(value).expect("a test value fits a mebibyte");
    writer.written().to_vec()
}

/// A value of any AMQP type, owned. Floats are bits, so that equality is simple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    Null,
    Bool(bool),
    Ubyte(u8),
    Ushort(u16),
    Uint(u32),
    Ulong(u64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(u32),
    Double(u64),
    Decimal32([u8; 4]),
    Decimal64([u8; 8]),
    Decimal128([u8; 16]),
    Char(char),
    Timestamp(i64),
    Uuid([u8; 16]),
    Binary(Vec<u8>),
    Str(String),
    Symbol(String),
    List(Vec<Model>),
    Map(Vec<Model>),
    /// The widest constructor that the elements' type has, the descriptors of the elements, the elements.
    Array(u8, Vec<Model>, Vec<Model>),
    Described(Box<Model>, Box<Model>),
}

/// Which of the encodings of a value is used.
pub enum Form<'r> {
    /// The one with the fewest bytes.
    Shortest,
    /// The one with the most.
    Longest,
    /// Any, by a number below the count of choices.
    Any(&'r mut dyn FnMut(usize) -> usize),
}

impl Form<'_> {
    fn pick(&mut self, codes: &[u8]) -> u8 {
        match self {
            Self::Shortest => codes[0],
            Self::Longest => *codes.iter().max_by_key(|code| **code >> 4).unwrap(),
            Self::Any(choose) => codes[choose(codes.len())],
        }
    }
}

fn short(fits: bool, narrow: u8, wide: u8) -> Vec<u8> {
    if fits { vec![narrow, wide] } else { vec![wide] }
}

impl Model {
    /// The widest constructor of the type (§1.6); described values have none.
    pub fn widest(&self) -> u8 {
        match self {
            Self::Null => 0x40,
            Self::Bool(_) => 0x56,
            Self::Ubyte(_) => 0x50,
            Self::Ushort(_) => 0x60,
            Self::Uint(_) => 0x70,
            Self::Ulong(_) => 0x80,
            Self::Byte(_) => 0x51,
            Self::Short(_) => 0x61,
            Self::Int(_) => 0x71,
            Self::Long(_) => 0x81,
            Self::Float(_) => 0x72,
            Self::Double(_) => 0x82,
            Self::Decimal32(_) => 0x74,
            Self::Decimal64(_) => 0x84,
            Self::Decimal128(_) => 0x94,
            Self::Char(_) => 0x73,
            Self::Timestamp(_) => 0x83,
            Self::Uuid(_) => 0x98,
            Self::Binary(_) => 0xb0,
            Self::Str(_) => 0xb1,
            Self::Symbol(_) => 0xb3,
            Self::List(_) => 0xd0,
            Self::Map(_) => 0xd1,
            Self::Array(..) => 0xf0,
            Self::Described(..) => 0x00,
        }
    }

    /// The constructors that a single value may have, shortest first.
    fn codes(&self) -> Vec<u8> {
        match self {
            Self::Bool(value) => vec![if *value { 0x41 } else { 0x42 }, 0x56],
            Self::Uint(0) => vec![0x43, 0x52, 0x70],
            Self::Uint(number) => short(*number < 256, 0x52, 0x70),
            Self::Ulong(0) => vec![0x44, 0x53, 0x80],
            Self::Ulong(number) => short(*number < 256, 0x53, 0x80),
            Self::Int(number) => short((-128..128).contains(number), 0x54, 0x71),
            Self::Long(number) => short((-128..128).contains(number), 0x55, 0x81),
            Self::Binary(bytes) => short(bytes.len() < 256, 0xa0, 0xb0),
            Self::Str(text) => short(text.len() < 256, 0xa1, 0xb1),
            Self::Symbol(text) => short(text.len() < 256, 0xa3, 0xb3),
            other => vec![other.widest()],
        }
    }

    /// All bytes of the value.
    pub fn encode(&self, form: &mut Form<'_>) -> Vec<u8> {
        match self {
            Self::Described(descriptor, value) => {
                [vec![0x00], descriptor.encode(form), value.encode(form)].concat()
            }
            Self::List(items) => {
                let body = items.iter().flat_map(|item| item.encode(form)).collect::<Vec<_>>();
                let empty = if items.is_empty() { Some(0x45) } else { None };
                compound(form, empty, 0xc0, items.len(), &body)
            }
            Self::Map(items) => {
                let body = items.iter().flat_map(|item| item.encode(form)).collect::<Vec<_>>();
                compound(form, None, 0xc1, items.len(), &body)
            }
            Self::Array(widest, descriptors, items) => {
                let content = array_content(*widest, descriptors, items, form);
                compound(form, None, 0xe0, items.len(), &content)
            }
            _ => {
                let code = form.pick(&self.codes());
                [vec![code], self.data(code, form)].concat()
            }
        }
    }

    /// The bytes after the constructor `code`.
    fn data(&self, code: u8, form: &mut Form<'_>) -> Vec<u8> {
        let sized = |bytes: &[u8]| -> Vec<u8> {
            let size = bytes.len() as u32;
            if code >> 4 == 0xa {
                [&[size as u8], bytes].concat()
            } else {
                [&size.to_be_bytes(), bytes].concat()
            }
        };
        let number = |bytes: &[u8]| -> Vec<u8> {
            let width = match code >> 4 {
                4 => 0,
                5 => 1,
                6 => 2,
                7 => 4,
                8 => 8,
                _ => 16,
            };
            bytes[bytes.len() - width..].to_vec()
        };
        match self {
            Self::Null => vec![],
            Self::Bool(value) => number(&[u8::from(*value)]),
            Self::Ubyte(value) => number(&value.to_be_bytes()),
            Self::Ushort(value) => number(&value.to_be_bytes()),
            Self::Uint(value) => number(&value.to_be_bytes()),
            Self::Ulong(value) => number(&value.to_be_bytes()),
            Self::Byte(value) => number(&value.to_be_bytes()),
            Self::Short(value) => number(&value.to_be_bytes()),
            Self::Int(value) => number(&value.to_be_bytes()),
            Self::Long(value) => number(&value.to_be_bytes()),
            Self::Float(bits) => number(&bits.to_be_bytes()),
            Self::Double(bits) => number(&bits.to_be_bytes()),
            Self::Decimal32(bytes) => bytes.to_vec(),
            Self::Decimal64(bytes) => bytes.to_vec(),
            Self::Decimal128(bytes) | Self::Uuid(bytes) => bytes.to_vec(),
            Self::Char(value) => u32::from(*value).to_be_bytes().to_vec(),
            Self::Timestamp(value) => value.to_be_bytes().to_vec(),
            Self::Binary(bytes) => sized(bytes),
            Self::Str(text) | Self::Symbol(text) => sized(text.as_bytes()),
            Self::List(items) | Self::Map(items) => {
                let body = items.iter().flat_map(|item| item.encode(form)).collect::<Vec<_>>();
                bare_compound(code, items.len(), &body)
            }
            Self::Array(widest, descriptors, items) => {
                let content = array_content(*widest, descriptors, items, form);
                bare_compound(code, items.len(), &content)
            }
            Self::Described(..) => panic!("an array's elements are described by its constructor"),
        }
    }
}

fn array_content(widest: u8, descriptors: &[Model], items: &[Model], form: &mut Form<'_>) -> Vec<u8> {
    let mut content = vec![];
    for descriptor in descriptors {
        content.push(0x00);
        content.extend(descriptor.encode(form));
    }
    let code = form.pick(&element_codes(widest, items));
    content.push(code);
    content.extend(items.iter().flat_map(|item| item.data(code, form)));
    content
}

/// The constructors that all elements of an array may share; first the one that the crate's encoder is to
/// use.
fn element_codes(widest: u8, items: &[Model]) -> Vec<u8> {
    let mut codes = match items.first() {
        // Compounds as elements are left long by the encoder; short and empty ones are for the decoder to
        // accept.
        Some(Model::List(_) | Model::Map(_) | Model::Array(..)) => vec![widest],
        // Without elements every constructor of the type fits.
        None => match widest {
            0x70 => vec![0x52, 0x70],
            0x80 => vec![0x53, 0x80],
            0x71 => vec![0x54, 0x71],
            0x81 => vec![0x55, 0x81],
            0xb0 | 0xb1 | 0xb3 => vec![widest - 0x10, widest],
            _ => vec![widest],
        },
        Some(first) => {
            let mut codes = first.codes();
            codes.retain(|code| items.iter().all(|item| item.codes().contains(code)));
            codes
        }
    };
    // Codes without data come last: legal for up to 256 elements, but not what the encoder is to use.
    codes.sort_by_key(|code| code >> 4 == 4 && *code != 0x40);
    codes
}

fn bare_compound(code: u8, count: usize, body: &[u8]) -> Vec<u8> {
    let wide = matches!(code >> 4, 0xd | 0xf);
    let width = if wide { 4 } else { 1 };
    let number = |number: usize| (number as u32).to_be_bytes()[4 - width..].to_vec();
    [number(body.len() + width), number(count), body.to_vec()].concat()
}

/// A list, map or array in one of the forms it may have: none (list0), short, long.
fn compound(form: &mut Form<'_>, empty: Option<u8>, narrow: u8, count: usize, body: &[u8]) -> Vec<u8> {
    let mut codes = Vec::from_iter(empty);
    if body.len() < 255 && count < 256 {
        codes.push(narrow);
    }
    codes.push(narrow + 0x10);
    let code = form.pick(&codes);
    if Some(code) == empty { vec![code] } else { [vec![code], bare_compound(code, count, body)].concat() }
}

impl From<View<'_>> for Model {
    fn from(view: View<'_>) -> Self {
        match view {
            View::Null => Self::Null,
            View::Bool(value) => Self::Bool(value),
            View::Ubyte(value) => Self::Ubyte(value),
            View::Ushort(value) => Self::Ushort(value),
            View::Uint(value) => Self::Uint(value),
            View::Ulong(value) => Self::Ulong(value),
            View::Byte(value) => Self::Byte(value),
            View::Short(value) => Self::Short(value),
            View::Int(value) => Self::Int(value),
            View::Long(value) => Self::Long(value),
            View::Float(value) => Self::Float(value.to_bits()),
            View::Double(value) => Self::Double(value.to_bits()),
            View::Decimal32(Decimal32(bytes)) => Self::Decimal32(bytes),
            View::Decimal64(Decimal64(bytes)) => Self::Decimal64(bytes),
            View::Decimal128(Decimal128(bytes)) => Self::Decimal128(bytes),
            View::Char(value) => Self::Char(value),
            View::Timestamp(Timestamp(ms)) => Self::Timestamp(ms),
            View::Uuid(Uuid(bytes)) => Self::Uuid(bytes),
            View::Binary(bytes) => Self::Binary(bytes.to_vec()),
            View::Str(text) => Self::Str(text.to_owned()),
            View::Symbol(Symbol(text)) => Self::Symbol(text.to_owned()),
            View::List(items) => Self::List(items.map(|item| item.view().into()).collect()),
            View::Map(items) => Self::Map(items.map(|item| item.view().into()).collect()),
            View::Array(items) => {
                let widest = widest_of(items.primitive().name());
                let descriptors = items.descriptors().map(|descriptor| descriptor.view().into()).collect();
                Self::Array(widest, descriptors, items.map(Self::from).collect())
            }
            View::Described { descriptor, value } => {
                Self::Described(Box::new(descriptor.view().into()), Box::new(value.view().into()))
            }
        }
    }
}

/// The widest constructor of the type of that name (§1.6).
pub fn widest_of(name: &str) -> u8 {
    const WIDEST: [(&str, u8); 24] = [
        ("null", 0x40),
        ("boolean", 0x56),
        ("ubyte", 0x50),
        ("ushort", 0x60),
        ("uint", 0x70),
        ("ulong", 0x80),
        ("byte", 0x51),
        ("short", 0x61),
        ("int", 0x71),
        ("long", 0x81),
        ("float", 0x72),
        ("double", 0x82),
        ("decimal32", 0x74),
        ("decimal64", 0x84),
        ("decimal128", 0x94),
        ("char", 0x73),
        ("timestamp", 0x83),
        ("uuid", 0x98),
        ("binary", 0xb0),
        ("string", 0xb1),
        ("symbol", 0xb3),
        ("list", 0xd0),
        ("map", 0xd1),
        ("array", 0xf0),
    ];
    WIDEST.iter().find(|(type_name, _)| *type_name == name).expect("a type of the specification").1
}
