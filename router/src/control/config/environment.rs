//! Environment variables in values: `$NAME` and `${NAME}`, as the containers of `qdrouterd` expand them.

/// Names that stand for themselves in a configuration: policy's `${user}` and the names of groups, of the
/// management node and of transactions' coordinators.
const NOT_MEANT: [&str; 5] = ["user", "default", "connector", "management", "coordinator"];

/// What stands for a `$` that no name follows, so that any text can be written.
const DOLLAR: &str = "${$}";

/// Puts in the values of the variables that `text` names. One that isn't set is left as it is; `${$}` is a `$`.
///
/// `missing` is told of each that looks as if it had been meant. The result is looked at once only, so a
/// value may contain a `$`.
pub(super) fn expand(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    mut missing: impl FnMut(&str),
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(behind) = rest.strip_prefix(DOLLAR) {
            out.push('$');
            rest = behind;
            continue;
        }
        let (name, length) = name_of(rest);
        let is_meant = |name: &&str| !NOT_MEANT.contains(name);
        match (name, name.filter(is_meant).and_then(variable)) {
            (_, Some(value)) => out.push_str(&value),
            (name, None) => {
                out.push_str(&rest[..length]);
                if let Some(name) = name.filter(is_meant) {
                    missing(name);
                }
            }
        }
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// The text such that [`expand`] gives it back, whatever the variables are.
pub(crate) fn protected(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let is_variable = name_of(rest).0.is_some_and(|name| !NOT_MEANT.contains(&name));
        out.push_str(if is_variable || rest.starts_with(DOLLAR) { DOLLAR } else { "$" });
        rest = &rest[1..];
    }
    out.push_str(rest);
    out
}

/// The name after the `$` that `text` begins with, if it is one, and how many bytes are dealt with.
fn name_of(text: &str) -> (Option<&str>, usize) {
    if let Some(inside) = text.strip_prefix("${") {
        return match inside.find('}') {
            Some(end) if is_name(&inside[..end]) => (Some(&inside[..end]), end + 3),
            Some(_) | None => (None, 1),
        };
    }
    let inside = &text[1..];
    let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inside.len());
    let name = &inside[..end];
    (Some(name).filter(|name| is_name(name)), 1 + end)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{expand, protected};

    fn expanded(text: &str) -> (String, Vec<String>) {
        let variable = |name: &str| match name {
            "HOST" => Some("example.org".to_owned()),
            "EMPTY" => Some(String::new()),
            "DOLLAR" => Some("$HOST".to_owned()),
            // What stands for itself does so even if somebody has a variable of that name.
            "user" => Some("somebody".to_owned()),
            _ => None,
        };
        let mut missing = Vec::new();
        let text = expand(text, &variable, |name| missing.push(name.to_owned()));
        (text, missing)
    }

    #[test]
    fn both_notations_and_what_is_none() {
        for (text, expected) in [
            ("$HOST", "example.org"),
            ("a-${HOST}-b", "a-example.org-b"),
            ("${HOST}$HOST", "example.orgexample.org"),
            ("$HOST.x", "example.org.x"),
            ("[$EMPTY]", "[]"),
            ("$DOLLAR", "$HOST"),
            ("100 $ a", "100 $ a"),
            ("$", "$"),
            ("${", "${"),
            ("${}", "${}"),
            ("${a b}", "${a b}"),
            ("$1", "$1"),
            ("ü$HOSTü", "üexample.orgü"),
            ("${$}HOST", "$HOST"),
            ("a${$}{HOST}", "a${HOST}"),
            ("${user}", "${user}"),
        ] {
            assert_eq!(expanded(text), (expected.to_owned(), Vec::new()), "{text}");
        }
    }

    #[test]
    fn what_is_protected_comes_back() {
        for text in
            ["$HOST", "${HOST}", "a$$HOST$", "${$}", "${$}HOST", "${${$}}", "$1 ${user} $management", ""]
        {
            assert_eq!(expanded(&protected(text)), (text.to_owned(), Vec::new()), "{text}");
        }
        assert_eq!(protected("$HOST"), "${$}HOST");
        assert_eq!(protected("100 $ ${user}/$management"), "100 $ ${user}/$management");
    }

    #[test]
    fn what_is_not_set_stays_and_is_told() {
        assert_eq!(
            expanded("${NOBODY}/$HOST"),
            ("${NOBODY}/example.org".to_owned(), vec!["NOBODY".to_owned()])
        );
        assert_eq!(expanded("tmp/${user}/$management"), ("tmp/${user}/$management".to_owned(), Vec::new()));
    }
}
