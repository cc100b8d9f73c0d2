//! What this version doesn't do yet.

use super::super::features::{Feature, NOT_SERVED};
use super::{listener, parse};

#[test]
fn what_is_reduced_is_said() {
    let config = parse("listener {\nmaxSessionFrames: 9000000\n}");
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    // 2^31 - 1 over the default frame size of 16384.
    assert!(
        config.warnings[0]
            .starts_with("test.conf:2: listener: 'maxSessionFrames' is reduced from 9000000 to 131071")
    );
    assert_eq!(config.listeners[0].max_session_frames, Some(131_071));
}

#[test]
fn the_default_of_what_is_not_available_may_be_written() {
    let text = "router {\nmode: standalone\n}\nlistener {\nhttp: false\nrequireSsl: no\nmultiTenant: off\n\
                messageLoggingComponents: none\ncost: 5\nwebsockets: no\n}\naddress {\nprefix: a\nwaypoint: no\n\
                ingressPhase: 0\n}";
    assert_eq!(parse(text).warnings, [""; 0]);
}

/// One warning for each feature, with the first place and the lines of the others.
#[test]
fn what_this_version_lacks_is_said_once() {
    let config = parse(
        "router {\nmode: interior\nid: A\n}\nlistener {\nrole: inter-router\nport: 1\n}\nlistener {\nport: 2\n}\n\
         vhost {\nhostname: a\n}\nvhost {\nhostname: b\n}\nvhost {\nhostname: c\n}",
    );
    let said = |feature: Feature| {
        let name = format!("this version doesn't have {} yet: ", feature.name());
        config.warnings.iter().filter(|warning| warning.contains(&name)).cloned().collect::<Vec<_>>()
    };
    for (feature, place, also) in [
        (Feature::Network, "test.conf:2: ", "(asked for by router 'mode', also at line 6)"),
        (Feature::Policy, "test.conf:12: ", "(asked for by vhost, also at lines 15, 18)"),
    ] {
        let warnings = said(feature);
        if let Some(consequence) = feature.unserved() {
            assert_eq!(warnings.len(), 1, "{:?}", config.warnings);
            assert!(warnings[0].starts_with(place), "{}", warnings[0]);
            assert!(warnings[0].contains(consequence) && warnings[0].ends_with(also), "{}", warnings[0]);
        } else {
            assert_eq!(warnings.len(), 0, "{:?}", config.warnings);
        }
    }
}

/// Whoever asks for encryption, authentication or other routers doesn't get an open port without.
#[test]
fn a_listener_that_would_let_in_whom_the_file_keeps_out_is_not_opened() {
    for (body, feature) in [
        ("requireSsl: yes", Feature::Tls),
        ("requireEncryption: yes", Feature::Tls),
        ("authenticatePeer: yes\nsaslMechanisms: GSSAPI DIGEST-MD5", Feature::Cyrus),
        ("http: yes", Feature::Http),
        ("httpRootDir: /srv", Feature::Http),
    ] {
        let config = parse(&format!("listener {{\n{body}\n}}"));
        assert_eq!(config.served_listeners().count() == 1, feature.is_served(), "{body}");
        assert_eq!(config.warnings.iter().any(|said| said.contains(feature.name())), !feature.is_served());
    }
    for body in [
        "",
        "authenticatePeer: yes\nsaslMechanisms: ANONYMOUS",
        "saslMechanisms: ANONYMOUS PLAIN",
        "authenticatePeer: yes",
    ] {
        assert!(listener(body).is_served(), "{body}");
    }
}

#[test]
fn each_lacking_feature_has_one_consequence() {
    for (index, (feature, consequence)) in NOT_SERVED.iter().enumerate() {
        assert!(NOT_SERVED[..index].iter().all(|(other, _)| other != feature), "{feature:?}");
        assert!(!consequence.ends_with('.'), "{consequence}");
    }
}
