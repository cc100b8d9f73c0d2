//! What decodes encodes back to an equal value, in a form that doesn't shrink further; and a buffer of the exact
//! size suffices.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringmain_codec::{
    Encode, Full, Header, Performative, Properties, SaslFrame, SectionKind, Sections, Value, Writer,
};

/// Encodes what was decoded from `input_length` bytes.
fn encode(value: &impl Encode, input_length: usize) -> Vec<u8> {
    // Re-encoding may grow: three bytes of an array of 256 empty lists become eight for each of them.
    let mut buffer = vec![0; 1024 * (input_length + 1)];
    let mut writer = Writer::new(&mut buffer);
    writer.put(value).unwrap();
    let length = writer.len();
    let mut exact = vec![0; length];
    assert_eq!(Writer::new(&mut exact).put(value), Ok(()));
    assert_eq!(exact, buffer[..length]);
    let mut writer = Writer::new(&mut exact[1..]);
    assert_eq!(writer.put(value), Err(Full));
    assert!(writer.is_empty());
    buffer.truncate(length);
    buffer
}

fuzz_target!(|input: &[u8]| {
    if let Ok(value) = Value::from_encoded(input) {
        let bytes = encode(&value.view(), input.len());
        let again = Value::from_encoded(&bytes).unwrap();
        assert_eq!(again, value);
        assert_eq!(encode(&again.view(), input.len()), bytes);
    }
    if let Ok((performative, _)) = Performative::decode(input) {
        let bytes = encode(&performative, input.len());
        let (again, payload) = Performative::decode(&bytes).unwrap();
        assert_eq!((again, payload), (performative, &b""[..]));
        assert_eq!(encode(&again, input.len()), bytes);
    }
    if let Ok(frame) = SaslFrame::decode(input) {
        let bytes = encode(&frame, input.len());
        assert_eq!(SaslFrame::decode(&bytes), Ok(frame));
    }
    let mut sections = Sections::new(input);
    while let Ok(Some(section)) = sections.next() {
        match section.kind {
            SectionKind::Header => {
                if let Ok(header) = Header::from_section(&section) {
                    let bytes = encode(&header, input.len());
                    let again = Sections::new(&bytes).next().unwrap().unwrap();
                    assert_eq!(Header::from_section(&again), Ok(header));
                }
            }
            SectionKind::Properties => {
                if let Ok(properties) = Properties::from_section(&section) {
                    let bytes = encode(&properties, input.len());
                    let again = Sections::new(&bytes).next().unwrap().unwrap();
                    assert_eq!(Properties::from_section(&again), Ok(properties));
                }
            }
            SectionKind::DeliveryAnnotations
            | SectionKind::MessageAnnotations
            | SectionKind::ApplicationProperties
            | SectionKind::Data
            | SectionKind::AmqpSequence
            | SectionKind::AmqpValue
            | SectionKind::Footer => {}
        }
    }
});
