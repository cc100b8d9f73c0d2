//! Which vhost, which group, from where, and how many.

use super::*;
use core::net::IpAddr;

fn group(name: &str, users: &[&str]) -> Group {
    let mut hosts = Hosts::default();
    hosts.add_any();
    Group {
        name: name.to_owned(),
        users: users.iter().map(|&user| user.to_owned()).collect(),
        hosts,
        max_connections_per_user: None,
        max_connections_per_host: None,
        permissions: Arc::default(),
    }
}

fn vhost(name: &str, groups: Vec<Group>) -> Vhost {
    Vhost {
        name: name.into(),
        aliases: Vec::new(),
        limits: ConnectionLimits::default(),
        allows_unknown_user: false,
        groups,
    }
}

fn policy(vhosts: Vec<Vhost>, has_patterns: bool, default_vhost: &str) -> Policy {
    let mut policy = Policy::default();
    policy.enforce(vhosts, Naming { has_patterns, default_vhost });
    policy
}

fn ask(policy: &Policy, user: &str, hostname: &str, peer: &str) -> Result<Admission, Denial> {
    let peer = SocketAddr::new(peer.parse::<IpAddr>().unwrap(), 5000);
    let applicant = Applicant { user, peer, hostname, is_dialled: false };
    policy.admit(&applicant).map(|admission| admission.expect("vhosts are enforced"))
}

#[test]
fn a_policy_without_vhosts_asks_nothing() {
    let peer = "127.0.0.1:1".parse().unwrap();
    let applicant = Applicant { user: "a", peer, hostname: "b", is_dialled: false };
    assert!(Policy::default().admit(&applicant).unwrap().is_none());
}

#[test]
fn names_aliases_patterns_and_the_default_lead_to_vhosts() {
    let with_alias =
        Vhost { aliases: vec!["b.example".to_owned()], ..vhost("a.example", vec![group("g", &["*"])]) };
    let fallback = vhost("$default", vec![group("g", &["*"])]);
    let plain = policy(vec![with_alias.clone(), fallback.clone()], false, "$default");
    for (asked, found) in
        [("a.example", "a.example"), ("b.example", "a.example"), ("c", "$default"), ("", "$default")]
    {
        assert_eq!(&*ask(&plain, "u", asked, "127.0.0.1").unwrap().vhost, found, "{asked}");
    }
    let without = policy(vec![with_alias.clone(), fallback], false, "");
    assert_eq!(ask(&without, "u", "c", "127.0.0.1").unwrap_err(), Denial::NoVhost);
    assert_eq!(without.counts.router().denied, 1);
    let by_pattern = vhost("*.example", vec![group("g", &["*"])]);
    let patterns = policy(vec![by_pattern, with_alias], true, "");
    assert_eq!(&*ask(&patterns, "u", "x.example", "127.0.0.1").unwrap().vhost, "*.example");
    assert_eq!(&*ask(&patterns, "u", "a.example", "127.0.0.1").unwrap().vhost, "a.example");
    assert_eq!(ask(&patterns, "u", "x.y.example", "127.0.0.1").unwrap_err(), Denial::NoVhost);
}

#[test]
fn a_user_s_group_is_the_one_that_names_it_then_that_of_all_then_the_default() {
    let marked = |name: &str, users: &[&str], senders| Group {
        permissions: Arc::new(Permissions { max_senders: senders, ..Permissions::default() }),
        ..group(name, users)
    };
    let mut host = vhost("h", vec![marked("all", &["*"], 1), marked("named", &["fred"], 2)]);
    let named = policy(vec![host.clone()], false, "");
    assert_eq!(ask(&named, "fred", "h", "127.0.0.1").unwrap().permissions.max_senders, 2);
    assert_eq!(ask(&named, "joe", "h", "127.0.0.1").unwrap().permissions.max_senders, 1);
    host.groups = vec![marked("named", &["fred"], 2), marked("$default", &[], 3)];
    let known_only = policy(vec![host.clone()], false, "");
    assert_eq!(ask(&known_only, "joe", "h", "127.0.0.1").unwrap_err(), Denial::NoGroup);
    assert_eq!(known_only.counts.vhost("h").denied, 1);
    host.allows_unknown_user = true;
    let unknown_too = policy(vec![host], false, "");
    assert_eq!(ask(&unknown_too, "joe", "h", "127.0.0.1").unwrap().permissions.max_senders, 3);
}

#[test]
fn hosts_that_a_group_doesn_t_name_are_refused() {
    let mut hosts = Hosts::default();
    hosts.add_range("10.0.0.1".parse().unwrap(), "10.0.0.9".parse().unwrap());
    let policy = policy(vec![vhost("h", vec![Group { hosts, ..group("g", &["*"]) }])], false, "");
    assert!(ask(&policy, "u", "h", "10.0.0.9").is_ok());
    assert_eq!(ask(&policy, "u", "h", "10.0.0.10").unwrap_err(), Denial::Host);
}

#[test]
fn connections_count_until_they_go() {
    let mut host = vhost("h", vec![group("g", &["*"])]);
    host.limits = ConnectionLimits { vhost: Some(3), user: Some(2), host: Some(2) };
    host.groups.push(Group { max_connections_per_user: Some(1), ..group("few", &["one"]) });
    host.groups.push(Group {
        max_connections_per_host: Some(65_535),
        max_connections_per_user: Some(0),
        ..group("none", &["zero"])
    });
    let policy = policy(vec![host], false, "");
    let full = |what| Denial::Exceeded(what);
    assert_eq!(ask(&policy, "zero", "h", "10.0.0.9").unwrap_err(), full(Exceeded::User));
    let first = ask(&policy, "one", "h", "10.0.0.1").unwrap();
    assert_eq!(ask(&policy, "one", "h", "10.0.0.2").unwrap_err(), full(Exceeded::User));
    let second = ask(&policy, "two", "h", "10.0.0.1").unwrap();
    assert_eq!(ask(&policy, "two", "h", "10.0.0.1").unwrap_err(), full(Exceeded::Host));
    let third = ask(&policy, "two", "h", "10.0.0.2").unwrap();
    assert_eq!(ask(&policy, "four", "h", "10.0.0.3").unwrap_err(), full(Exceeded::Vhost));
    let counts = policy.counts.vhost("h");
    assert_eq!((counts.approved, counts.denied, counts.current), (3, 4, 3));
    assert_eq!(counts.users.keys().map(|user| &**user).collect::<Vec<_>>(), ["one", "two"]);
    drop(first);
    assert!(ask(&policy, "four", "h", "10.0.0.3").is_ok());
    drop((second, third));
    let counts = policy.counts.vhost("h");
    assert_eq!((counts.current, counts.users.len(), counts.hosts.len()), (0, 0, 0));
}

#[test]
fn the_router_s_own_limit_counts_all_clients() {
    let counts = Arc::new(Counts::default());
    let first = counts.come(Some(1));
    assert!(first.is_some() && counts.come(Some(1)).is_none());
    drop(first);
    assert!(counts.come(Some(1)).is_some() && counts.come(None).is_some());
    let counted = counts.router();
    assert_eq!((counted.processed, counted.denied, counted.current), (4, 1, 0));
}

#[test]
fn connectors_have_a_group_of_their_own() {
    let policy = policy(
        vec![vhost("h", vec![group("$connector", &[])]), vhost("i", vec![group("g", &["*"])])],
        false,
        "",
    );
    let peer = "192.0.2.1:5672".parse().unwrap();
    let applicant = Applicant { user: "u", peer, hostname: "h", is_dialled: true };
    assert!(policy.admit(&applicant).unwrap().is_some());
    assert_eq!(policy.admit(&Applicant { hostname: "i", ..applicant }).unwrap_err(), Denial::NoGroup);
}
