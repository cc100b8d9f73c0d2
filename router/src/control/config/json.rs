//! JSON with line numbers: the maps inside a configuration file, and the whole file in its JSON form.
//!
//! As in `qdrouterd`, a line that begins with `#` is a comment, and a comma may stand before a closing
//! bracket. Nesting is capped, so that a file can't use up the stack.

use core::fmt;

/// How deeply lists and maps may be nested.
const DEPTH_MAX: u32 = 64;

/// A JSON value.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number without fraction and exponent.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A string, its escapes resolved.
    String(String),
    /// `[…]`
    List(Vec<Json>),
    /// `{…}`, in the order of the file.
    Map(Vec<Member>),
}

/// One member of a JSON map.
#[derive(Clone, PartialEq, Debug)]
pub struct Member {
    /// The name, its escapes resolved.
    pub key: String,
    /// The line of the name, counted from 1.
    pub line: u32,
    /// The value.
    pub value: Json,
}

impl Json {
    /// What kind of value this is, for messages: "a string", "a list" …
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

impl fmt::Display for Json {
    /// JSON on one line (RFC 8259). A number that JSON can't have, such as infinity, never comes from a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::String(text) => write_string(f, text),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { ", " })?;
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Map(members) => {
                f.write_str("{")?;
                for (index, member) in members.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { ", " })?;
                    write_string(f, &member.key)?;
                    f.write_str(": ")?;
                    member.value.fmt(f)?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

/// Why and where a text isn't JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct JsonError {
    /// The line, counted from 1.
    pub(super) line: u32,
    /// What is wrong.
    pub(super) message: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A place in a text from which values are read.
#[derive(Clone, Debug)]
pub(super) struct Reader<'t> {
    text: &'t str,
    at: usize,
    line: u32,
    depth: u32,
}

impl<'t> Reader<'t> {
    /// Reads `text` from the byte `at`, which lies in `line`.
    pub(super) const fn new(text: &'t str, at: usize, line: u32) -> Self {
        Self { text, at, line, depth: 0 }
    }

    /// The byte and the line that have been reached.
    pub(super) const fn position(&self) -> (usize, u32) {
        (self.at, self.line)
    }

    /// Skips blanks and comment lines; true if nothing is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_blank();
        self.rest().is_empty()
    }

    /// Reads one value.
    ///
    /// # Errors
    /// The text isn't JSON, is nested too deeply, or has an integer that 64 bits can't hold.
    pub(super) fn value(&mut self) -> Result<Json, JsonError> {
        self.skip_blank();
        match self.rest().bytes().next() {
            Some(b'{') => self.nested(Self::map),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'$') => self.variable(),
            Some(_) => self.word(),
            None => Err(self.error("the JSON value ends too early")),
        }
    }

    /// Reads a list whose items are returned with the lines at which they begin.
    ///
    /// # Errors
    /// As [`Self::value`], and if something other than a list comes next.
    pub(super) fn list_with_lines(&mut self) -> Result<Vec<(u32, Json)>, JsonError> {
        self.skip_blank();
        if !self.rest().starts_with('[') {
            return Err(self.unexpected("a list, '['"));
        }
        self.nested(Self::items)
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, JsonError>) -> Result<T, JsonError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error(format!("JSON is nested more than {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn map(&mut self) -> Result<Json, JsonError> {
        let opened = self.line;
        let mut members = Vec::new();
        while !self.take_close(b'}', opened)? {
            let line = self.line;
            if !self.rest().starts_with('"') {
                return Err(self.unexpected("a name in double quotes or '}'"));
            }
            let key = self.string()?;
            self.skip_blank();
            if !self.rest().starts_with(':') {
                return Err(self.unexpected(&format!("':' after \"{key}\"")));
            }
            self.at += 1;
            let value = self.value()?;
            members.push(Member { key, line, value });
            self.comma_or_close(b'}', opened)?;
        }
        Ok(Json::Map(members))
    }

    fn list(&mut self) -> Result<Json, JsonError> {
        let items = self.items()?;
        Ok(Json::List(items.into_iter().map(|(_, value)| value).collect()))
    }

    fn items(&mut self) -> Result<Vec<(u32, Json)>, JsonError> {
        let opened = self.line;
        let mut items = Vec::new();
        while !self.take_close(b']', opened)? {
            let line = self.line;
            items.push((line, self.value()?));
            self.comma_or_close(b']', opened)?;
        }
        Ok(items)
    }

    /// Takes the closing bracket if it comes next.
    fn take_close(&mut self, close: u8, opened: u32) -> Result<bool, JsonError> {
        self.skip_blank();
        match self.rest().bytes().next() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
            None => Err(self.unclosed(close, opened)),
        }
    }

    /// Takes a comma, or leaves the closing bracket for [`Self::take_close`].
    fn comma_or_close(&mut self, close: u8, opened: u32) -> Result<(), JsonError> {
        self.skip_blank();
        match self.rest().bytes().next() {
            Some(b',') => {
                self.at += 1;
                Ok(())
            }
            Some(byte) if byte == close => Ok(()),
            Some(_) => Err(self.unexpected(&format!("',' or '{}'", close as char))),
            None => Err(self.unclosed(close, opened)),
        }
    }

    fn unclosed(&self, close: u8, opened: u32) -> JsonError {
        let what = if close == b'}' { "map" } else { "list" };
        self.error(format!("the {what} opened at line {opened} isn't closed with '{}'", close as char))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let body = &self.rest()[1..];
        let mut escaped = false;
        for (index, byte) in body.bytes().enumerate() {
            match byte {
                b'\n' => break,
                b'\\' => escaped = !escaped,
                b'"' if !escaped => {
                    let text = unescape(&body[..index]).map_err(|message| self.error(message))?;
                    self.at += index + 2;
                    return Ok(text);
                }
                _ => escaped = false,
            }
        }
        Err(self.error("a string isn't closed with '\"' on its line"))
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let rest = self.rest();
        let length =
            rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let text = &rest[..length];
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
        let value = if is_whole {
            text.parse().map(Json::Integer).map_err(|_| format!("'{text}' isn't a 64-bit integer"))
        } else {
            match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Json::Float(number)),
                Ok(_) | Err(_) => Err(format!("'{text}' isn't a number")),
            }
        };
        let value = value.map_err(|message| self.error(message))?;
        self.at += length;
        Ok(value)
    }

    /// An environment variable that stands for a whole value, without quotes: its name is the value for now.
    fn variable(&mut self) -> Result<Json, JsonError> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let inside = rest.strip_prefix("${");
        let name = inside.unwrap_or(&rest[1..]);
        let name = &name[..name.find(|c: char| !is_part(c)).unwrap_or(name.len())];
        let length = match inside {
            Some(inside) if inside[name.len()..].starts_with('}') => name.len() + 3,
            None if !name.is_empty() => name.len() + 1,
            Some(_) | None => return Err(self.unexpected("'$NAME' or '${NAME}'")),
        };
        self.at += length;
        Ok(Json::String(rest[..length].to_owned()))
    }

    fn word(&mut self) -> Result<Json, JsonError> {
        for (word, value) in
            [("null", Json::Null), ("true", Json::Boolean(true)), ("false", Json::Boolean(false))]
        {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected("a JSON value (a string stands in double quotes)"))
    }

    /// Blanks, and lines whose first character is `#`.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            let skipped = &rest[..blank];
            self.line += newlines(skipped);
            self.at += blank;
            let before = self.text[..self.at].trim_end_matches([' ', '\t', '\r']);
            let begins_line = before.is_empty() || before.ends_with('\n');
            if !(begins_line && self.rest().starts_with('#')) {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, message: impl Into<String>) -> JsonError {
        JsonError { line: self.line, message: message.into() }
    }

    fn unexpected(&self, expected: &str) -> JsonError {
        let found: String = self.rest().chars().take_while(|c| *c != '\n' && *c != '\r').take(20).collect();
        if found.starts_with('#') {
            return self.error("a comment inside JSON must begin its line");
        }
        self.error(format!("expected {expected}, found '{found}'"))
    }
}

/// How many lines end in `text`.
fn newlines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX)
}

/// Resolves JSON's escapes (RFC 8259 §7) in `text`, the inside of a string.
///
/// # Errors
/// An escape that JSON doesn't have, or half of a surrogate pair.
pub(super) fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escape) = rest.chars().next() else {
            return Err("a '\\' at the end (write '\\\\' for a backslash)".to_owned());
        };
        rest = &rest[escape.len_utf8()..];
        match escape {
            '"' | '\\' | '/' => out.push(escape),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let (character, after) = unicode_escape(rest)?;
                out.push(character);
                rest = after;
            }
            other => return Err(format!("unknown escape '\\{other}' (write '\\\\' for a backslash)")),
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// The character of the `\u` escape whose digits `rest` begins with, and what follows it.
fn unicode_escape(rest: &str) -> Result<(char, &str), String> {
    let fault = || "'\\u' needs four hexadecimal digits of a character".to_owned();
    let (first, rest) = hex4(rest).ok_or_else(fault)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first).map(|c| (c, rest)).ok_or_else(fault);
    }
    // A character beyond U+FFFF is written as two escapes, high surrogate first.
    let (second, rest) = rest.strip_prefix("\\u").and_then(hex4).ok_or_else(fault)?;
    if !(0xdc00..0xe000).contains(&second) {
        return Err(fault());
    }
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(code).map(|c| (c, rest)).ok_or_else(fault)
}

fn hex4(text: &str) -> Option<(u32, &str)> {
    let digits = text.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some((u32::from_str_radix(digits, 16).ok()?, &text[4..]))
}

#[cfg(test)]
mod tests {
    use super::{Json, Reader, unescape};

    fn read(text: &str) -> Result<Json, (u32, String)> {
        let mut reader = Reader::new(text, 0, 1);
        let value = reader.value().map_err(|error| (error.line, error.message))?;
        assert!(reader.is_at_end());
        Ok(value)
    }

    #[test]
    fn values_of_every_kind() {
        assert_eq!(read(" null "), Ok(Json::Null));
        assert_eq!(read("-12"), Ok(Json::Integer(-12)));
        assert_eq!(read("1.5e3"), Ok(Json::Float(1500.0)));
        assert_eq!(read("[true, false,]"), Ok(Json::List(vec![Json::Boolean(true), Json::Boolean(false)])));
        assert_eq!(read("\"a\\\"b\""), Ok(Json::String("a\"b".to_owned())));
    }

    #[test]
    fn members_know_their_lines_and_comment_lines_are_skipped() {
        let Ok(Json::Map(members)) =
            read("{\n  # a comment\n  \"a\": 1,\n  \"b\": {\n    \"c\": \"#\"\n  }\n}")
        else {
            panic!("not a map")
        };
        assert_eq!(
            members.iter().map(|m| (m.key.as_str(), m.line)).collect::<Vec<_>>(),
            [("a", 3), ("b", 4)]
        );
    }

    #[test]
    fn faults_name_their_line() {
        assert_eq!(read("{\n\"a\": 1\n\"b\": 2}").unwrap_err().0, 3);
        assert!(read("{\n\"a\": 1").unwrap_err().1.contains("opened at line 1"));
        assert!(read("{\"a\": 1, # why\n}").unwrap_err().1.contains("comment"));
        assert!(read("{a: 1}").unwrap_err().1.contains("double quotes"));
        assert!(read("99999999999999999999").unwrap_err().1.contains("64-bit"));
        assert!(read("\"abc\n\"").unwrap_err().1.contains("isn't closed"));
    }

    #[test]
    fn nesting_is_capped() {
        let deep = "[".repeat(100_000);
        assert!(read(&deep).unwrap_err().1.contains("nested"));
    }

    /// RFC 8259 §7: the G clef, U+1D11E, is `\uD834\uDD1E`.
    #[test]
    fn escapes_of_rfc_8259() {
        assert_eq!(unescape(r"\uD834\uDD1E"), Ok("\u{1d11e}".to_owned()));
        assert_eq!(unescape(r"a\tb\\c\u0041"), Ok("a\tb\\cA".to_owned()));
        assert!(unescape(r"\uD834").is_err());
        assert!(unescape(r"\u+123").is_err());
        assert!(unescape(r"\x").is_err());
        assert!(unescape("a\\").is_err());
    }
}
