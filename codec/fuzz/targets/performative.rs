//! The body of a frame, AMQP or SASL: whatever decodes can be printed and used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringmain_codec::{DeliveryState, Performative, SaslFrame, Target};

fuzz_target!(|input: &[u8]| {
    match Performative::decode(input) {
        Ok((performative, payload)) => {
            assert!(input.ends_with(payload));
            assert!(!format!("{performative:?}").is_empty());
            match performative {
                Performative::Open(open) => {
                    assert!(
                        open.offered_capabilities
                            .iter()
                            .all(|symbol| open.offered_capabilities.contains(symbol))
                    );
                }
                Performative::Attach(attach) => {
                    if let Some(Target::Node(node)) = attach.target {
                        assert!(node.capabilities.iter().all(str::is_ascii));
                    }
                    if let Some(filter) = attach.source.and_then(|source| source.filter) {
                        assert_eq!(filter.entries().unwrap().count(), filter.entries().unwrap().len());
                    }
                }
                Performative::Disposition(disposition) => {
                    if let Some(DeliveryState::Other(value)) = disposition.state {
                        assert!(value.is_described());
                    }
                }
                Performative::Begin(_)
                | Performative::Flow(_)
                | Performative::Transfer(_)
                | Performative::Detach(_)
                | Performative::End(_)
                | Performative::Close(_) => {}
            }
        }
        Err(malformed) => {
            assert!(malformed.offset <= input.len());
            assert!(!malformed.to_string().is_empty());
        }
    }
    if let Ok(frame) = SaslFrame::decode(input) {
        assert!(!format!("{frame:?}").is_empty());
    }
});
