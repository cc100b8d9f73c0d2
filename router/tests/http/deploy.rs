//! The dashboard and the alert rules of `deploy/` name what the router measures, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::client::{Scrape, router_with};
use crate::support::Setup;

/// What names of our metrics begin with.
const PREFIXES: [&str; 3] = ["qdr_", "ringmain_", "process_"];

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names in an expression of PromQL that may be ours.
fn names(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix))).map(str::to_owned).collect()
}

/// All texts under the key `expr`, and the queries of variables.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value.as_str() {
                    Some(text) if key == "expr" || (key == "query" && text.contains('(')) => {
                        found.push(text.to_owned());
                    }
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The names of the series and the families of a router that has something of everything.
fn measured() -> (BTreeSet<String>, Vec<String>) {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let file = std::env::temp_dir().join(format!("ringmain-measured-{}.pem", std::process::id()));
    let pem = certificate.cert.pem() + &certificate.signing_key.serialize_pem();
    fs::write(&file, pem).expect("a file for the certificate");
    let sections = format!(
        "connector {{\n    name: broker\n    host: 127.0.0.1\n    port: 1\n}}\n\
         sslProfile {{\n    name: p\n    certFile: {0}\n    privateKeyFile: {0}\n}}\n\
         listener {{\n    host: 127.0.0.1\n    port: 0\n    sslProfile: p\n}}\n",
        file.display()
    );
    let (router, address) = router_with("", Setup { sections: &sections, ..Setup::default() });
    fs::remove_file(&file).expect("it was written");
    let mut peer = router.peer();
    peer.attach_receiver("q", 1);
    let scrape = Scrape::of(address);
    let names = scrape.values.keys().map(|name| name.split('{').next().unwrap_or(name).to_owned());
    (names.collect(), scrape.types.into_keys().collect())
}

fn check(expression: &str, measured: &BTreeSet<String>) {
    let named = names(expression);
    assert!(!named.is_empty(), "{expression} names nothing that is measured");
    for name in named {
        assert!(measured.contains(&name), "{expression}: nothing is measured as {name}");
    }
    for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
        let count = |wanted| expression.chars().filter(|c| *c == wanted).count();
        assert_eq!(count(open), count(close), "{expression}: {open} and {close}");
    }
}

#[test]
fn dashboard_and_alerts_name_what_is_measured() {
    let (measured, families) = measured();
    let dashboard: Value = serde_json::from_str(&read("grafana-dashboard.json")).expect("it is JSON");
    let mut found = Vec::new();
    expressions(&dashboard, &mut found);
    assert!(found.len() > 20, "{found:?}");
    found.iter().for_each(|expression| check(expression, &measured));

    // Every family of our own that can be drawn is drawn.
    let drawn: BTreeSet<String> = found.iter().flat_map(|expression| names(expression)).collect();
    for family in families.iter().filter(|family| family.starts_with("ringmain_")) {
        let is_drawn = drawn.iter().any(|name| name == family || name.starts_with(&format!("{family}_")));
        let is_known_by_others = ["ringmain_shard_links", "ringmain_shard_buffers_freed_total"];
        assert!(is_drawn || is_known_by_others.contains(&family.as_str()), "{family} is on no panel");
    }

    // What docs/monitoring.md has is measured, and what is measured it has.
    let documentation = read("../docs/monitoring.md");
    let written = names(&documentation);
    for name in written.iter().filter(|name| !name.ends_with('_')) {
        assert!(families.iter().any(|family| family == name), "docs/monitoring.md: there is no {name}");
    }
    for family in families.iter().filter(|family| !family.contains(':')) {
        assert!(written.contains(family), "docs/monitoring.md lacks {family}");
    }

    let rules = read("prometheus-rules.yml");
    let mut alerts = 0;
    for rule in rules.split("- alert: ").skip(1) {
        alerts += 1;
        let name = rule.lines().next().unwrap_or_default();
        let (_, rest) = rule.split_once("expr: ").unwrap_or_else(|| panic!("{name} has no expression"));
        let mut lines = rest.lines();
        let first = lines.next().unwrap_or_default();
        let expression = if first == ">-" { lines.next().unwrap_or_default() } else { first };
        check(expression, &measured);
        for wanted in ["severity: ", "summary: ", "description: "] {
            assert!(rule.contains(wanted), "{name} has no {wanted}");
        }
    }
    assert!(alerts >= 8, "{alerts} alerts");
}
