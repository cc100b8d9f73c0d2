//! Every composite of the crate under one roof, by the specification's names.

use ringmain_codec::*;

use super::encoded;

/// Whatever a composite is in this crate.
#[derive(Debug, PartialEq)]
pub enum Decoded<'b> {
    Performative(Performative<'b>),
    Sasl(SaslFrame<'b>),
    State(DeliveryState<'b>),
    Error(Error<'b>),
    Source(Source<'b>),
    Target(Target<'b>),
    Lifetime(LifetimePolicy),
    Declare(Declare<'b>),
    Discharge(Discharge<'b>),
    Header(Header),
    Properties(Properties<'b>),
}

impl<'b> Decoded<'b> {
    /// Decodes the composite of that name; `None` if this crate hasn't got it.
    pub fn decode(name: &str, bytes: &'b [u8]) -> Option<Result<Self, Malformed>> {
        fn whole<'b, T: Decode<'b>>(bytes: &'b [u8]) -> Result<T, Malformed> {
            let mut cursor = Cursor::new(bytes);
            let value = T::decode(&mut cursor, "")?;
            assert!(cursor.is_empty(), "{} bytes left", cursor.remaining().len());
            Ok(value)
        }
        fn section<'b, T>(
            bytes: &'b [u8],
            read: impl FnOnce(&Section<'b>) -> Result<T, Malformed>,
        ) -> Result<T, Malformed> {
            let mut sections = Sections::new(bytes);
            match sections.next() {
                Ok(Some(section)) => read(&section),
                Err(SectionError::Malformed(malformed)) => Err(malformed),
                Ok(None) | Err(SectionError::Incomplete) => {
                    Err(Malformed { kind: MalformedKind::UnexpectedEnd, offset: bytes.len(), field: "" })
                }
            }
        }
        Some(match name {
            "open" | "begin" | "attach" | "flow" | "transfer" | "disposition" | "detach" | "end"
            | "close" => Performative::decode(bytes).map(|(performative, payload)| {
                assert_eq!((performative.name(), payload), (name, &b""[..]));
                Self::Performative(performative)
            }),
            "sasl-mechanisms" | "sasl-init" | "sasl-challenge" | "sasl-response" | "sasl-outcome" => {
                SaslFrame::decode(bytes).map(|frame| {
                    assert_eq!(frame.name(), name);
                    Self::Sasl(frame)
                })
            }
            "received"
            | "accepted"
            | "rejected"
            | "released"
            | "modified"
            | "declared"
            | "transactional-state" => whole(bytes).map(|state| {
                assert!(!matches!(state, DeliveryState::Other(_)), "{name} is known");
                Self::State(state)
            }),
            "error" => whole(bytes).map(Self::Error),
            "source" => whole(bytes).map(Self::Source),
            "target" | "coordinator" => whole(bytes).map(Self::Target),
            "delete-on-close"
            | "delete-on-no-links"
            | "delete-on-no-messages"
            | "delete-on-no-links-or-messages" => whole(bytes).map(Self::Lifetime),
            "declare" => whole(bytes).map(Self::Declare),
            "discharge" => whole(bytes).map(Self::Discharge),
            "header" => section(bytes, Header::from_section).map(Self::Header),
            "properties" => section(bytes, Properties::from_section).map(Self::Properties),
            _ => return None,
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Performative(value) => encoded(value),
            Self::Sasl(value) => encoded(value),
            Self::State(value) => encoded(value),
            Self::Error(value) => encoded(value),
            Self::Source(value) => encoded(value),
            Self::Target(value) => encoded(value),
            Self::Lifetime(value) => encoded(value),
            Self::Declare(value) => encoded(value),
            Self::Discharge(value) => encoded(value),
            Self::Header(value) => encoded(value),
            Self::Properties(value) => encoded(value),
        }
    }
}

pub fn decode<'b>(name: &str, bytes: &'b [u8]) -> Result<Decoded<'b>, Malformed> {
    Decoded::decode(name, bytes).unwrap_or_else(|| panic!("{name} isn't implemented"))
}
