//! Address patterns: tokens, `*` and `#`.

use std::collections::HashMap;

/// Patterns, each with a value, of which the best match is found.
///
/// Tokens are what lies between `.` and `/`, which are the same; separators in front are skipped. `*` is
/// exactly one token, `#` none or more. Of several matches the one wins that is the more exact at the
/// leftmost token where they differ: a word before `*` before `#`.
#[derive(Clone, Debug)]
pub struct PatternTree<V> {
    root: Node<V>,
}

#[derive(Clone, Debug)]
struct Node<V> {
    words: HashMap<Box<str>, Node<V>>,
    star: Option<Box<Node<V>>>,
    hash: Option<Box<Node<V>>>,
    value: Option<V>,
}

impl<V> Default for Node<V> {
    fn default() -> Self {
        Self { words: HashMap::new(), star: None, hash: None, value: None }
    }
}

impl<V> Default for PatternTree<V> {
    fn default() -> Self {
        Self { root: Node::default() }
    }
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim_start_matches(['.', '/']);
    // An empty text has no token; an empty token between two separators counts.
    text.split(['.', '/']).filter(move |_| !text.is_empty())
}

/// Tokens of an address that patterns look at.
const TOKENS_MAX: usize = 64;

impl<V> PatternTree<V> {
    /// Adds a pattern; returns the value that the same pattern had before.
    pub fn insert(&mut self, pattern: &str, value: V) -> Option<V> {
        let mut node = &mut self.root;
        for token in tokens(pattern) {
            node = match token {
                "*" => node.star.get_or_insert_default(),
                // `#.#` is no more than `#`.
                "#" => node.hash.get_or_insert_default(),
                word => node.words.entry(word.into()).or_default(),
            };
        }
        node.value.replace(value)
    }

    /// Takes a pattern out; returns the value that it had.
    pub fn remove(&mut self, pattern: &str) -> Option<V> {
        let tokens: Vec<&str> = tokens(pattern).collect();
        self.root.remove(&tokens)
    }

    /// The value of the best match for `address`.
    #[must_use]
    pub fn find(&self, address: &str) -> Option<&V> {
        // What lies beyond isn't looked at, so that a peer can't make a look-up long.
        let tokens: Vec<&str> = tokens(address).take(TOKENS_MAX).collect();
        self.root.find(&tokens)
    }
}

impl<V> Node<V> {
    /// The depth of the recursion is that of the patterns, which the operator wrote.
    fn find(&self, tokens: &[&str]) -> Option<&V> {
        let Some((token, rest)) = tokens.split_first() else {
            return self.value.as_ref().or_else(|| self.hash.as_ref().and_then(|hash| hash.find(&[])));
        };
        if let Some(found) = self.words.get(*token).and_then(|node| node.find(rest)) {
            return Some(found);
        }
        if let Some(found) = self.star.as_ref().and_then(|star| star.find(rest)) {
            return Some(found);
        }
        let hash = self.hash.as_ref()?;
        if hash.is_leaf() {
            return hash.value.as_ref();
        }
        (0..=tokens.len()).find_map(|skipped| hash.find(&tokens[skipped..]))
    }

    /// The depth of the recursion is that of the pattern, which the operator wrote. Nodes that lead nowhere any
    /// more go with it.
    fn remove(&mut self, tokens: &[&str]) -> Option<V> {
        let Some((token, rest)) = tokens.split_first() else { return self.value.take() };
        match *token {
            "*" => {
                let removed = self.star.as_mut()?.remove(rest);
                self.star.take_if(|node| node.is_empty());
                removed
            }
            "#" => {
                let removed = self.hash.as_mut()?.remove(rest);
                self.hash.take_if(|node| node.is_empty());
                removed
            }
            word => {
                let node = self.words.get_mut(word)?;
                let removed = node.remove(rest);
                if node.is_empty() {
                    self.words.remove(word);
                }
                removed
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.is_leaf() && self.value.is_none()
    }

    fn is_leaf(&self) -> bool {
        self.words.is_empty() && self.star.is_none() && self.hash.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::PatternTree;

    fn best(patterns: &[&'static str], address: &str) -> Option<&'static str> {
        let mut tree = PatternTree::default();
        for pattern in patterns {
            tree.insert(pattern, *pattern);
        }
        tree.find(address).copied()
    }

    #[test]
    fn stars_and_hashes_match_as_documented() {
        assert_eq!(best(&["a.*.c"], "a/b/c"), Some("a.*.c"));
        assert_eq!(best(&["a.*.c"], "a.c"), None);
        assert_eq!(best(&["a.*.c"], "a.b.b.c"), None);
        assert_eq!(best(&["a.#"], "a"), Some("a.#"));
        assert_eq!(best(&["a.#"], "a.b.c.d"), Some("a.#"));
        assert_eq!(best(&["a.#"], "ab"), None);
        assert_eq!(best(&["#.z"], "z"), Some("#.z"));
        assert_eq!(best(&["#.z"], "x.y.z"), Some("#.z"));
        assert_eq!(best(&["#.z"], "x.y"), None);
        assert_eq!(best(&["#"], ""), Some("#"));
        assert_eq!(best(&["a.b"], "/a/b"), Some("a.b"));
        assert_eq!(best(&["a.#.m.#.z"], "a.b.m.m.c.z"), Some("a.#.m.#.z"));
    }

    #[test]
    fn what_was_removed_matches_no_more_and_leaves_the_others() {
        let mut tree = PatternTree::default();
        let patterns = ["a.*.c", "a.*", "a.#", "a.b.c", "#"];
        for pattern in patterns {
            tree.insert(pattern, pattern);
        }
        assert_eq!(tree.remove("a.b"), None);
        assert_eq!(tree.remove("x.y.z"), None);
        assert_eq!(tree.remove("a/b/c"), Some("a.b.c"), "separators are the same");
        assert_eq!(tree.find("a.b.c"), Some(&"a.*.c"));
        assert_eq!(tree.remove("a.*"), Some("a.*"));
        assert_eq!(tree.remove("a.*"), None);
        assert_eq!(tree.find("a.b"), Some(&"a.#"));
        for pattern in ["a.*.c", "a.#", "#"] {
            assert_eq!(tree.remove(pattern), Some(pattern));
        }
        assert!(tree.root.is_empty());
    }

    #[test]
    fn the_more_exact_token_from_the_left_wins() {
        let patterns = ["#", "a.#", "a.*.c", "a.b.#", "a.b.c", "*.b.c"];
        assert_eq!(best(&patterns, "a.b.c"), Some("a.b.c"));
        assert_eq!(best(&patterns, "a.b.d"), Some("a.b.#"));
        assert_eq!(best(&patterns, "a.x.c"), Some("a.*.c"));
        assert_eq!(best(&patterns, "a.x.d"), Some("a.#"));
        assert_eq!(best(&patterns, "x.b.c"), Some("*.b.c"));
        assert_eq!(best(&patterns, "x"), Some("#"));
    }
}
