//! The schema itself, and what is old in it.

use super::super::schema::{Availability, ENTITY_TYPES};
use super::super::{AddressFamily, Record};
use super::parse;

#[test]
fn deprecated_names_work_and_are_named_once() {
    let config = parse(
        "router {\nhelloInterval: 2\n}\nlistener {\nprotocol-family: IPv4\nport: 1\n}\n\
         listener {\nprotocolFamily: IPv6\nport: 2\n}\nlog {\nmodule: DEFAULT\noutput: a.log\ntimestamp: no\n}",
    );
    assert_eq!(
        config.warnings,
        [
            "test.conf:2: router: 'helloInterval' is deprecated, use 'helloIntervalSeconds'",
            "test.conf:5: listener: 'protocolFamily' is deprecated, use 'socketAddressFamily'",
            "test.conf:14: log: 'output' is deprecated, use 'outputFile'",
            "test.conf:15: log: 'timestamp' is deprecated, use 'includeTimestamp'",
        ]
    );
    assert_eq!(config.listeners[1].socket_address_family, Some(AddressFamily::IPv6));
    assert_eq!(config.logs[0].output_file.as_deref(), Some("a.log"));
    assert_eq!(config.logs[0].include_timestamp, Some(false));
}

/// The deprecated names of these sections as the acceptance reference lists them.
#[test]
fn every_deprecated_name_is_known() {
    for (section, former) in [
        (
            "router",
            "helloInterval helloMaxAge raInterval raIntervalFlux remoteLsMaxAge debugDump saslConfigPath",
        ),
        ("listener", "protocolFamily trustedCerts failoverList httpRoot logMessage"),
        ("log", "timestamp source output"),
    ] {
        let entity = ENTITY_TYPES.iter().find(|entity| entity.name == section).unwrap();
        for name in former.split(' ') {
            let (_, attribute) = entity.attribute(name).unwrap_or_else(|| panic!("{section} {name}"));
            assert_eq!(attribute.deprecated_name, Some(name));
        }
    }
}

#[test]
fn the_schema_is_consistent() {
    for (index, entity) in ENTITY_TYPES.iter().enumerate() {
        assert!(ENTITY_TYPES[..index].iter().all(|other| other.name != entity.name), "{}", entity.name);
        assert!(entity.description.ends_with('.'), "{}", entity.name);
        for (place, attribute) in entity.attributes.iter().enumerate() {
            let names = [Some(attribute.name), attribute.deprecated_name];
            for name in names.into_iter().flatten() {
                assert_eq!(entity.attribute(name).unwrap().0, place, "{}.{name}", entity.name);
            }
            assert!(attribute.description.ends_with('.'), "{}.{}", entity.name, attribute.name);
            assert!(!(attribute.is_required && attribute.default.is_some()));
            if let Availability::OthersNeed { words, .. } = attribute.availability {
                assert!(attribute.default.is_none_or(|default| words.contains(&default)));
            }
        }
        // Every default has the type of its attribute, or this panics.
        Record::defaults(entity, 0);
    }
}
