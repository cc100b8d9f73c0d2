//! Descriptors of the composite types and of the message sections: numeric code and symbolic name (AMQP 1.0
//! §1.5).

use crate::constructor::code;
use crate::cursor::Cursor;
use crate::error::{Malformed, MalformedKind};
use crate::primitive::{Decode, Symbol};
use crate::value::Value;

/// Both forms of a descriptor; a peer may send either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The numeric form. Domain (upper 32 bits) is 0 for all that the specification defines.
    pub code: u64,
    /// The symbolic form.
    pub name: &'static str,
}

macro_rules! descriptors {
    ($($name:ident = $code:literal, $symbol:literal;)+) => {
        $(
            #[doc = concat!("`", $symbol, "`, ", stringify!($code), ".")]
            pub const $name: Descriptor = Descriptor { code: $code, name: $symbol };
        )+

        /// The numeric forms alone, for patterns.
        pub mod numeric {
            $(
                #[doc = concat!("`", $symbol, "`.")]
                pub const $name: u64 = $code;
            )+
        }

        /// Every descriptor that this crate encodes and decodes.
        pub const ALL: &[Descriptor] = &[$($name),+];

        /// The numeric form of a symbolic descriptor.
        fn code_of(symbol: &str) -> Option<u64> {
            match symbol {
                $($symbol => Some($code),)+
                _ => None,
            }
        }
    };
}

descriptors! {
    OPEN = 0x10, "amqp:open:list";
    BEGIN = 0x11, "amqp:begin:list";
    ATTACH = 0x12, "amqp:attach:list";
    FLOW = 0x13, "amqp:flow:list";
    TRANSFER = 0x14, "amqp:transfer:list";
    DISPOSITION = 0x15, "amqp:disposition:list";
    DETACH = 0x16, "amqp:detach:list";
    END = 0x17, "amqp:end:list";
    CLOSE = 0x18, "amqp:close:list";
    ERROR = 0x1d, "amqp:error:list";
    RECEIVED = 0x23, "amqp:received:list";
    ACCEPTED = 0x24, "amqp:accepted:list";
    REJECTED = 0x25, "amqp:rejected:list";
    RELEASED = 0x26, "amqp:released:list";
    MODIFIED = 0x27, "amqp:modified:list";
    SOURCE = 0x28, "amqp:source:list";
    TARGET = 0x29, "amqp:target:list";
    DELETE_ON_CLOSE = 0x2b, "amqp:delete-on-close:list";
    DELETE_ON_NO_LINKS = 0x2c, "amqp:delete-on-no-links:list";
    DELETE_ON_NO_MESSAGES = 0x2d, "amqp:delete-on-no-messages:list";
    DELETE_ON_NO_LINKS_OR_MESSAGES = 0x2e, "amqp:delete-on-no-links-or-messages:list";
    COORDINATOR = 0x30, "amqp:coordinator:list";
    DECLARE = 0x31, "amqp:declare:list";
    DISCHARGE = 0x32, "amqp:discharge:list";
    DECLARED = 0x33, "amqp:declared:list";
    TRANSACTIONAL_STATE = 0x34, "amqp:transactional-state:list";
    SASL_MECHANISMS = 0x40, "amqp:sasl-mechanisms:list";
    SASL_INIT = 0x41, "amqp:sasl-init:list";
    SASL_CHALLENGE = 0x42, "amqp:sasl-challenge:list";
    SASL_RESPONSE = 0x43, "amqp:sasl-response:list";
    SASL_OUTCOME = 0x44, "amqp:sasl-outcome:list";
    HEADER = 0x70, "amqp:header:list";
    DELIVERY_ANNOTATIONS = 0x71, "amqp:delivery-annotations:map";
    MESSAGE_ANNOTATIONS = 0x72, "amqp:message-annotations:map";
    PROPERTIES = 0x73, "amqp:properties:list";
    APPLICATION_PROPERTIES = 0x74, "amqp:application-properties:map";
    DATA = 0x75, "amqp:data:binary";
    AMQP_SEQUENCE = 0x76, "amqp:amqp-sequence:list";
    AMQP_VALUE = 0x77, "amqp:amqp-value:*";
    FOOTER = 0x78, "amqp:footer:map";
}

/// Reads `0x00` and the descriptor; the cursor then stands at the described value.
///
/// `None` for a well-formed descriptor that isn't in [`ALL`] (numbers are given back as they are, known or
/// not).
///
/// # Errors
/// Not a described value, or the bytes end.
#[inline]
pub(crate) fn read(
    cursor: &mut Cursor<'_>,
    expected: &'static str,
    field: &'static str,
) -> Result<Option<u64>, Malformed> {
    // Every peer seen sends this form for what the specification defines.
    if let [code::DESCRIBED, code::SMALLULONG, number, rest @ ..] = cursor.rest {
        cursor.rest = rest;
        return Ok(Some(u64::from(*number)));
    }
    let (number, after) = read_any(*cursor, expected, field)?;
    *cursor = after;
    Ok(number)
}

/// Whether `descriptor` comes next in its shortest form. The cursor then stands at the described value, and where it
/// was otherwise.
#[inline]
pub(crate) fn is_short(cursor: &mut Cursor<'_>, descriptor: Descriptor) -> bool {
    match cursor.rest {
        [code::DESCRIBED, code::SMALLULONG, number, rest @ ..] if u64::from(*number) == descriptor.code => {
            cursor.rest = rest;
            true
        }
        _ => false,
    }
}

/// Every other form of a descriptor.
#[cold]
fn read_any<'b>(
    mut cursor: Cursor<'b>,
    expected: &'static str,
    field: &'static str,
) -> Result<(Option<u64>, Cursor<'b>), Malformed> {
    match cursor.peek() {
        Some(code::DESCRIBED) => {}
        Some(found) => return Err(cursor.fail(MalformedKind::UnexpectedType { expected, found }, field)),
        None => return Err(cursor.fail(MalformedKind::UnexpectedEnd, field)),
    }
    cursor.u8()?;
    let number = match cursor.peek() {
        Some(code::SMALLULONG | code::ULONG | code::ULONG0) => Some(u64::decode(&mut cursor, field)?),
        Some(code::SYM8 | code::SYM32) => {
            let Symbol(name) = Symbol::decode(&mut cursor, field)?;
            code_of(name)
        }
        _ => {
            Value::decode(&mut cursor, field)?;
            None
        }
    };
    Ok((number, cursor))
}
