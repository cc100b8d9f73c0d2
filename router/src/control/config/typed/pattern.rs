//! Which addresses an `address` section means, in a form that tells whether two sections mean the same.

/// The tokens of a pattern, with wildcards in one order.
///
/// `.` and `/` are the same separator, and those at either end don't count. A run of wildcards matches
/// the same whatever its order: `#` beside `#` adds nothing, and `#/*` is `*/#`.
pub(super) fn normal_form(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut has_hash = false;
    let flush = |out: &mut String, token: &str| {
        if !out.is_empty() {
            out.push('/');
        }
        out.push_str(token);
    };
    for token in pattern.trim_matches(['.', '/']).split(['.', '/']) {
        match token {
            "#" => has_hash = true,
            "*" => flush(&mut out, "*"),
            literal => {
                if core::mem::take(&mut has_hash) {
                    flush(&mut out, "#");
                }
                flush(&mut out, literal);
            }
        }
    }
    if has_hash {
        flush(&mut out, "#");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::normal_form;

    #[test]
    fn equal_patterns_have_one_form() {
        assert_eq!(normal_form("a.b"), normal_form("a/b"));
        assert_eq!(normal_form("/a/b/"), "a/b");
        assert_eq!(normal_form("a/#/#"), "a/#");
        assert_eq!(normal_form("a.#.*.b"), "a/*/#/b");
        assert_eq!(normal_form("#/*/#"), "*/#");
        assert_ne!(normal_form("a/*"), normal_form("a/#"));
    }
}
