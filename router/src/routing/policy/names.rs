//! The addresses that a group may use: lists and patterns, with the user's name in them (router-protocol reference §11.4).
//!
//! Addresses are compared as the client gave them. A user's name is never taken for a wildcard or for a separator of
//! anything but itself.

use crate::routing::pattern::PatternTree;

/// What stands for the user's name.
const USER: &str = "${user}";

/// The separators of an address's tokens.
const SEPARATORS: [char; 2] = ['.', '/'];

/// Addresses that may be used.
#[derive(Clone, Debug)]
pub enum Names {
    /// By a list: none if it is empty.
    List(Vec<ListedName>),
    /// By patterns.
    Patterns(NamePatterns),
}

impl Default for Names {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

/// One name of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedName {
    /// What comes before the user's name, or all if the name doesn't occur.
    before: Box<str>,
    /// What comes behind the user's name; `None`: it doesn't occur.
    after: Option<Box<str>>,
    /// Whether anything may follow.
    is_prefix: bool,
}

impl ListedName {
    fn new(text: &str) -> Self {
        let (text, is_prefix) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
        match text.split_once(USER) {
            Some((before, after)) => Self { before: before.into(), after: Some(after.into()), is_prefix },
            None => Self { before: text.into(), after: None, is_prefix },
        }
    }

    fn permits(&self, address: &str, user: &str) -> bool {
        let Some(rest) = address.strip_prefix(&*self.before) else { return false };
        let rest = match &self.after {
            None => rest,
            Some(after) => {
                let Some(rest) = rest.strip_prefix(user).and_then(|rest| rest.strip_prefix(&**after)) else {
                    return false;
                };
                rest
            }
        };
        self.is_prefix || rest.is_empty()
    }
}

/// Patterns of addresses.
#[derive(Clone, Debug, Default)]
pub struct NamePatterns {
    /// Those without the user's name.
    plain: PatternTree<()>,
    /// What follows the user's name where it is the first token.
    after_user: Vec<PatternTree<()>>,
    /// What comes before the user's name where it is the last token.
    before_user: Vec<PatternTree<()>>,
    /// Whether the user's name alone is one.
    is_user: bool,
}

impl NamePatterns {
    fn permits(&self, address: &str, user: &str) -> bool {
        if self.plain.find(address).is_some() {
            return true;
        }
        let address = address.trim_start_matches(SEPARATORS);
        if let Some(rest) = address.strip_prefix(user) {
            if self.is_user && rest.is_empty() {
                return true;
            }
            if let Some(rest) = rest_of_tokens(rest.strip_prefix(SEPARATORS), rest)
                && self.after_user.iter().any(|pattern| pattern.find(rest).is_some())
            {
                return true;
            }
        }
        if let Some(rest) = address.strip_suffix(user)
            && let Some(rest) = rest_of_tokens(rest.strip_suffix(SEPARATORS), rest)
        {
            return self.before_user.iter().any(|pattern| pattern.find(rest).is_some());
        }
        false
    }
}

/// The tokens beside the user's name: nothing, or what is behind a separator. An empty token isn't one that a pattern means.
fn rest_of_tokens<'a>(behind_separator: Option<&'a str>, rest: &'a str) -> Option<&'a str> {
    match behind_separator {
        None => rest.is_empty().then_some(rest),
        Some(rest) => (!rest.is_empty() && !rest.starts_with(SEPARATORS)).then_some(rest),
    }
}

impl Names {
    /// The names of a list, each with one `${user}` and a `*` at the end at the most.
    pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::List(names.into_iter().map(ListedName::new).collect())
    }

    /// The patterns, each with `${user}` as its whole first or last token at the most.
    pub fn patterns<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = NamePatterns::default();
        for pattern in patterns {
            let only = |rest: &str| {
                let mut tree = PatternTree::default();
                tree.insert(rest, ());
                tree
            };
            if pattern == USER {
                all.is_user = true;
            } else if let Some(rest) =
                pattern.strip_prefix(USER).and_then(|rest| rest.strip_prefix(SEPARATORS))
            {
                all.after_user.push(only(rest));
            } else if let Some(rest) =
                pattern.strip_suffix(USER).and_then(|rest| rest.strip_suffix(SEPARATORS))
            {
                all.before_user.push(only(rest));
            } else {
                all.plain.insert(pattern, ());
            }
        }
        Self::Patterns(all)
    }

    /// Whether `user` may use `address`.
    #[must_use]
    pub fn permits(&self, address: &str, user: &str) -> bool {
        match self {
            Self::List(names) => names.iter().any(|name| name.permits(address, user)),
            Self::Patterns(patterns) => patterns.permits(address, user),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_exact_or_prefixes() {
        let names = Names::list(["public", "news/*", "temp.${user}", "${user}-in*", "a-${user}-z"]);
        for (address, is_permitted) in [
            ("public", true),
            ("public2", false),
            ("/public", false),
            ("news/", true),
            ("news/today", true),
            ("news", false),
            ("temp.fred", true),
            ("temp.fred.1", false),
            ("temp.joe", false),
            ("fred-in", true),
            ("fred-inbox", true),
            ("joe-in", false),
            ("a-fred-z", true),
            ("a-fred-zz", false),
            ("", false),
        ] {
            assert_eq!(names.permits(address, "fred"), is_permitted, "{address}");
        }
        assert!(Names::list(["*"]).permits("anything", "fred"));
        assert!(!Names::default().permits("anything", "fred"));
    }

    #[test]
    fn names_of_users_are_no_wildcards() {
        let list = Names::list(["in.${user}", "${user}.*"]);
        let patterns = Names::patterns(["in/${user}", "${user}/#"]);
        for user in ["*", "#", "f*", "${user}"] {
            assert!(!list.permits("in.fred", user) && !list.permits("fred.x", user), "{user}");
            assert!(!patterns.permits("in/fred", user) && !patterns.permits("fred/x", user), "{user}");
        }
        assert!(list.permits("in.*", "*") && patterns.permits("in/*", "*"));
    }

    #[test]
    fn patterns_go_by_tokens() {
        let names = Names::patterns([
            "public/*",
            "all/#",
            "${user}",
            "${user}.in.*",
            "own.${user}",
            "#.tail.${user}",
        ]);
        for (address, is_permitted) in [
            ("public/a", true),
            ("public.a", true),
            ("public/a/b", false),
            ("all", true),
            ("all/a/b", true),
            ("fred", true),
            ("/fred", true),
            ("freda", false),
            ("fred/", false),
            ("fred.in.box", true),
            ("fred/in/box", true),
            ("fred.in", false),
            ("fred..in.box", false),
            ("joe.in.box", false),
            ("own.fred", true),
            ("own/fred", true),
            ("own.joe", false),
            ("own.xfred", false),
            ("a.b.tail.fred", true),
            ("tail.fred", true),
        ] {
            assert_eq!(names.permits(address, "fred"), is_permitted, "{address}");
        }
        // A name that has separators in it is one name.
        assert!(names.permits("own.fred.smith", "fred.smith"));
        assert!(!names.permits("own.fred.smith", "smith"));
    }
}
