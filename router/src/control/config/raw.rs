//! Sections and attributes as a file has them, before the schema has looked at them.

use super::json::Json;

/// A section of a file.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct RawSection {
    /// The name as written.
    pub(super) name: String,
    /// Where it begins.
    pub(super) line: u32,
    /// What is set in it, in the order of the file.
    pub(super) attributes: Vec<RawAttribute>,
}

/// An attribute of a section.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct RawAttribute {
    /// The name as written.
    pub(super) name: String,
    /// Its line.
    pub(super) line: u32,
    /// A [`Json::String`] from the line-oriented form, any value from the JSON form.
    pub(super) value: Json,
}

/// The name in camel case: `max-frame-size` is `maxFrameSize`.
pub(super) fn camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (index, part) in name.split('-').enumerate() {
        let mut characters = part.chars();
        match characters.next() {
            Some(first) if index > 0 => {
                out.extend(first.to_uppercase());
                out.push_str(characters.as_str());
            }
            Some(_) | None => out.push_str(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::camel_case;

    #[test]
    fn kebab_case_is_another_spelling() {
        assert_eq!(camel_case("max-frame-size"), "maxFrameSize");
        assert_eq!(camel_case("ssl-profile"), "sslProfile");
        assert_eq!(camel_case("maxFrameSize"), "maxFrameSize");
    }
}
