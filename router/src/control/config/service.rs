//! Names of services, where a port number may stand.

/// The port of a number or of a service's name; `None` if it is neither.
pub(super) fn port(text: &str) -> Option<u16> {
    match text {
        "amqp" => Some(5672),
        "amqps" => Some(5671),
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => number.parse().ok(),
        name => {
            // The file is short and there may be none at all; then only numbers and AMQP's names work.
            let services = std::fs::read_to_string("/etc/services").ok()?;
            find_service(&services, name)
        }
    }
}

/// The TCP port of `name` in the text of a services file (services(5)): `name port/tcp alias…`.
fn find_service(services: &str, name: &str) -> Option<u16> {
    services.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let official = words.next()?;
        let port = words.next()?.strip_suffix("/tcp")?;
        (official == name || words.any(|alias| alias == name)).then(|| port.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::{find_service, port};

    #[test]
    fn numbers_and_the_names_of_amqp() {
        assert_eq!(port("5672"), Some(5672));
        assert_eq!(port("amqp"), Some(5672));
        assert_eq!(port("amqps"), Some(5671));
        assert_eq!(port("65536"), None);
        assert_eq!(port("-1"), None);
        assert_eq!(port(""), None);
        assert_eq!(port("no-such-service"), None);
    }

    #[test]
    fn lines_of_a_services_file() {
        let services = "# comment\nhttp\t\t80/tcp\t\twww\t# WorldWideWeb\nntp\t\t123/udp\n";
        assert_eq!(find_service(services, "http"), Some(80));
        assert_eq!(find_service(services, "www"), Some(80));
        assert_eq!(find_service(services, "ntp"), None);
        assert_eq!(find_service(services, "WorldWideWeb"), None);
    }
}
