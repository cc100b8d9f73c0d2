//! Constructors: format codes and what they say about the bytes that follow (AMQP 1.0 §1.2, §1.6).

/// The primitive types (§1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the specification's types by name")]
pub enum Type {
    Null,
    Boolean,
    Ubyte,
    Ushort,
    Uint,
    Ulong,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    Decimal32,
    Decimal64,
    Decimal128,
    Char,
    Timestamp,
    Uuid,
    Binary,
    String,
    Symbol,
    List,
    Map,
    Array,
}

impl Type {
    /// The specification's name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Ubyte => "ubyte",
            Self::Ushort => "ushort",
            Self::Uint => "uint",
            Self::Ulong => "ulong",
            Self::Byte => "byte",
            Self::Short => "short",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal32 => "decimal32",
            Self::Decimal64 => "decimal64",
            Self::Decimal128 => "decimal128",
            Self::Char => "char",
            Self::Timestamp => "timestamp",
            Self::Uuid => "uuid",
            Self::Binary => "binary",
            Self::String => "string",
            Self::Symbol => "symbol",
            Self::List => "list",
            Self::Map => "map",
            Self::Array => "array",
        }
    }
}

/// How the bytes after a format code are laid out (§1.2.1 to §1.2.4).
///
/// ```text
/// Fixed     | width bytes of data |
/// Variable  | size: width bytes | size bytes of data |
/// Compound  | size: width bytes | count: width bytes | elements … |
/// Array     | size: width bytes | count: width bytes | constructor | elements without constructors … |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Data of a fixed width.
    Fixed,
    /// A size, then that many bytes.
    Variable,
    /// A size that covers a count and that many values.
    Compound,
    /// A size that covers a count, one constructor and that many values without their own.
    Array,
}

/// What a format code stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constructor {
    /// The type it constructs.
    pub primitive: Type,
    /// The layout of what follows.
    pub category: Category,
    /// Bytes of the data ([`Category::Fixed`]) or of the size and of the count (all others).
    pub width: u8,
}

/// The format codes by the names of the specification (§1.6). Codes with one encoding bear the type's name.
#[expect(missing_docs, reason = "the constants are the specification's encodings by name")]
pub mod code {
    /// Not a value by itself: a descriptor and the value it describes follow (§1.2).
    pub const DESCRIBED: u8 = 0x00;
    pub const NULL: u8 = 0x40;
    pub const BOOLEAN: u8 = 0x56;
    pub const TRUE: u8 = 0x41;
    pub const FALSE: u8 = 0x42;
    pub const UBYTE: u8 = 0x50;
    pub const USHORT: u8 = 0x60;
    pub const UINT: u8 = 0x70;
    pub const SMALLUINT: u8 = 0x52;
    pub const UINT0: u8 = 0x43;
    pub const ULONG: u8 = 0x80;
    pub const SMALLULONG: u8 = 0x53;
    pub const ULONG0: u8 = 0x44;
    pub const BYTE: u8 = 0x51;
    pub const SHORT: u8 = 0x61;
    pub const INT: u8 = 0x71;
    pub const SMALLINT: u8 = 0x54;
    pub const LONG: u8 = 0x81;
    pub const SMALLLONG: u8 = 0x55;
    pub const FLOAT: u8 = 0x72;
    pub const DOUBLE: u8 = 0x82;
    pub const DECIMAL32: u8 = 0x74;
    pub const DECIMAL64: u8 = 0x84;
    pub const DECIMAL128: u8 = 0x94;
    pub const CHAR: u8 = 0x73;
    pub const TIMESTAMP: u8 = 0x83;
    pub const UUID: u8 = 0x98;
    pub const VBIN8: u8 = 0xa0;
    pub const VBIN32: u8 = 0xb0;
    pub const STR8: u8 = 0xa1;
    pub const STR32: u8 = 0xb1;
    pub const SYM8: u8 = 0xa3;
    pub const SYM32: u8 = 0xb3;
    pub const LIST0: u8 = 0x45;
    pub const LIST8: u8 = 0xc0;
    pub const LIST32: u8 = 0xd0;
    pub const MAP8: u8 = 0xc1;
    pub const MAP32: u8 = 0xd1;
    pub const ARRAY8: u8 = 0xe0;
    pub const ARRAY32: u8 = 0xf0;
}

impl Constructor {
    /// What `format_code` stands for; `None` for codes that AMQP 1.0 doesn't assign and for
    /// [`code::DESCRIBED`], which is a prefix rather than a type.
    #[inline]
    pub const fn of(format_code: u8) -> Option<Self> {
        CONSTRUCTORS[format_code as usize]
    }
}

/// Every format code's meaning, worked out by the compiler.
static CONSTRUCTORS: [Option<Constructor>; 256] = {
    let mut constructors = [None; 256];
    let mut format_code = 0;
    while format_code < constructors.len() {
        constructors[format_code] = assigned(format_code as u8);
        format_code += 1;
    }
    constructors
};

/// The format codes of §1.6.
const fn assigned(format_code: u8) -> Option<Constructor> {
    let primitive = match format_code {
        code::NULL => Type::Null,
        code::BOOLEAN | code::TRUE | code::FALSE => Type::Boolean,
        code::UBYTE => Type::Ubyte,
        code::USHORT => Type::Ushort,
        code::UINT | code::SMALLUINT | code::UINT0 => Type::Uint,
        code::ULONG | code::SMALLULONG | code::ULONG0 => Type::Ulong,
        code::BYTE => Type::Byte,
        code::SHORT => Type::Short,
        code::INT | code::SMALLINT => Type::Int,
        code::LONG | code::SMALLLONG => Type::Long,
        code::FLOAT => Type::Float,
        code::DOUBLE => Type::Double,
        code::DECIMAL32 => Type::Decimal32,
        code::DECIMAL64 => Type::Decimal64,
        code::DECIMAL128 => Type::Decimal128,
        code::CHAR => Type::Char,
        code::TIMESTAMP => Type::Timestamp,
        code::UUID => Type::Uuid,
        code::VBIN8 | code::VBIN32 => Type::Binary,
        code::STR8 | code::STR32 => Type::String,
        code::SYM8 | code::SYM32 => Type::Symbol,
        code::LIST0 | code::LIST8 | code::LIST32 => Type::List,
        code::MAP8 | code::MAP32 => Type::Map,
        code::ARRAY8 | code::ARRAY32 => Type::Array,
        _ => return None,
    };
    match layout(format_code) {
        Some((category, width)) => Some(Constructor { primitive, category, width }),
        None => None,
    }
}

/// Category and width, which the code's upper half gives for assigned and unassigned codes alike (§1.2).
#[inline]
pub(crate) const fn layout(format_code: u8) -> Option<(Category, u8)> {
    match format_code >> 4 {
        0x4 => Some((Category::Fixed, 0)),
        0x5 => Some((Category::Fixed, 1)),
        0x6 => Some((Category::Fixed, 2)),
        0x7 => Some((Category::Fixed, 4)),
        0x8 => Some((Category::Fixed, 8)),
        0x9 => Some((Category::Fixed, 16)),
        0xa => Some((Category::Variable, 1)),
        0xb => Some((Category::Variable, 4)),
        0xc => Some((Category::Compound, 1)),
        0xd => Some((Category::Compound, 4)),
        0xe => Some((Category::Array, 1)),
        0xf => Some((Category::Array, 4)),
        _ => None,
    }
}
