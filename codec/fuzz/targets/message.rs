//! A message, whole and in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringmain_codec::{Header, Properties, SectionError, SectionKind, Sections};

fuzz_target!(|input: &[u8]| {
    let mut sections = Sections::new(input);
    let mut previous = None;
    loop {
        let before = sections.offset();
        let peeked = sections.peek();
        match sections.next() {
            Ok(Some(section)) => {
                assert_eq!(peeked, Ok(Some(section.kind)));
                assert_eq!(section.encoded.len(), sections.offset() - before);
                assert!(section.encoded.ends_with(section.value.encoded()));
                // The first pieces of it are incomplete, never malformed: what follows can't change that.
                for length in [1, section.encoded.len() / 2, section.encoded.len() - 1] {
                    assert_eq!(
                        Sections::new(&section.encoded[..length]).next(),
                        Err(SectionError::Incomplete)
                    );
                }
                match section.kind {
                    SectionKind::Header => drop(Header::from_section(&section)),
                    SectionKind::Properties => {
                        if let Ok(properties) = Properties::from_section(&section) {
                            assert_eq!(Properties::to_from_section(&section), Ok(properties.to));
                        }
                    }
                    SectionKind::DeliveryAnnotations
                    | SectionKind::MessageAnnotations
                    | SectionKind::ApplicationProperties
                    | SectionKind::Footer => {
                        assert!(section.value.entries().unwrap().all(|(key, _)| !key.encoded().is_empty()));
                    }
                    SectionKind::Data => assert!(section.value.as_binary().is_some()),
                    SectionKind::AmqpSequence => assert!(section.value.items().is_some()),
                    SectionKind::AmqpValue => {}
                }
                previous = Some(section.kind);
            }
            Ok(None) => {
                assert_eq!(sections.offset(), input.len());
                break;
            }
            Err(SectionError::Incomplete) => {
                assert_eq!(sections.offset(), before);
                break;
            }
            Err(SectionError::Malformed(malformed)) => {
                assert!(malformed.offset <= input.len());
                break;
            }
        }
    }
    // Nothing but more of the same body, or a footer, comes after a body.
    if previous == Some(SectionKind::Footer) {
        assert!(!matches!(sections.peek(), Ok(Some(_))));
    }
});
