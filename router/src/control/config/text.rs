//! The line-oriented form of a configuration file, and its JSON form: both give [`RawSection`]s.
//!
//! ```text
//! # a comment                      a line that begins with '#'
//! listener {                       a section
//!     host: 0.0.0.0                an attribute; the value is the rest of the line, up to a '#'
//!     openProperties: {            a map: JSON from here on, up to its '}'
//!         "site": "east"
//!     }
//! }                                a '}' of its own
//! ```

use super::error::Findings;
use super::json::{Json, Member, Reader, unescape};
use super::raw::{RawAttribute, RawSection, camel_case};

/// Attributes whose value may contain a `#`: it is the first run of non-blank characters.
pub(super) const HASH_ATTRIBUTES: [&str; 3] = ["pattern", "bindingKey", "hostname"];

/// The attribute whose map may be written in lines instead of JSON, as the documentation of `qdrouterd` does.
const LINE_MAP: &str = "groups";

/// Attributes in such a map whose value may contain a `#`; a comment after it has a blank before its `#`.
const LINE_MAP_PATTERNS: [&str; 2] = ["sourcePattern", "targetPattern"];

/// How deeply maps in lines may be nested, one more than any has.
const LINE_MAP_DEPTH_MAX: usize = 3;

/// Reads the line-oriented form. Faults go to `findings`; what could be read is returned all the same.
pub(super) fn parse_lines(text: &str, findings: &mut Findings) -> Vec<RawSection> {
    let mut parser = Parser { text, at: 0, line: 0, sections: Vec::new(), open: None, findings };
    while parser.at < text.len() {
        parser.next_line();
    }
    if let Some(open) = parser.open.take() {
        let message = format!("section '{}' isn't closed: '}}' is missing", open.name);
        parser.findings.error(open.line, message);
        parser.sections.push(open);
    }
    parser.sections
}

/// Reads the JSON form: a list of `["section", {attributes}]`. Faults go to `findings`.
pub(super) fn parse_json(text: &str, findings: &mut Findings) -> Vec<RawSection> {
    let mut reader = Reader::new(text, 0, 1);
    if reader.is_at_end() {
        return Vec::new();
    }
    let entries = match reader.list_with_lines() {
        Ok(entries) => entries,
        Err(error) => {
            findings.error(error.line, error.message);
            return Vec::new();
        }
    };
    if !reader.is_at_end() {
        findings.error(reader.position().1, "text after the end of the list of sections");
    }
    let mut sections = Vec::new();
    for (line, entry) in entries {
        let Json::List(parts) = entry else {
            findings.error(line, format!("expected [\"section\", {{…}}], found {}", entry.kind()));
            continue;
        };
        match <[Json; 2]>::try_from(parts) {
            Ok([Json::String(name), Json::Map(members)]) => {
                if name.contains('.') {
                    findings.error(line, dotted(&name));
                }
                let attributes = members
                    .into_iter()
                    .map(|member| RawAttribute { name: member.key, line: member.line, value: member.value })
                    .collect();
                sections.push(RawSection { name, line, attributes });
            }
            Ok(_) | Err(_) => findings.error(line, "expected [\"section\", {…}]: a name and a map"),
        }
    }
    sections
}

/// The message about a section whose name has a dot, as management's types have.
fn dotted(name: &str) -> String {
    let hint = match name.rsplit('.').next() {
        Some(last) if !last.is_empty() => format!(" (write '{last}')"),
        Some(_) | None => String::new(),
    };
    format!("a section's name has no dot: '{name}'{hint}")
}

struct Parser<'t, 'f> {
    text: &'t str,
    /// Where the next line begins.
    at: usize,
    /// The line just read, counted from 1.
    line: u32,
    sections: Vec<RawSection>,
    open: Option<RawSection>,
    findings: &'f mut Findings,
}

impl<'t> Parser<'t, '_> {
    /// Reads one line, or the lines of one JSON map.
    fn next_line(&mut self) {
        let start = self.at;
        let whole = self.take_line();
        if whole.is_empty() || whole.starts_with('#') {
            return;
        }
        if let Some((name, value)) = attribute(whole)
            && HASH_ATTRIBUTES.contains(&camel_case(name).as_str())
            && !value.starts_with('{')
        {
            let value = value.split_whitespace().next().unwrap_or_default();
            self.set(name, value);
            return;
        }
        let line = whole.split('#').next().unwrap_or_default().trim_end();
        match attribute(line) {
            Some((name, value)) if value.starts_with('{') => self.set_map(name, start),
            Some((name, value)) => self.set(name, value),
            None if line == "}" => self.close_section(),
            None => match line.strip_suffix('{') {
                Some(name) => self.open_section(name.trim_end()),
                None => self.misplaced(line),
            },
        }
    }

    fn open_section(&mut self, name: &str) {
        if let Some(open) = self.open.take() {
            let message = format!(
                "section '{name}' begins inside section '{}' (opened at line {}): is a '}}' missing before it?",
                open.name, open.line
            );
            self.error(message);
            self.sections.push(open);
        }
        if name.contains('.') && is_word(&name.replace('.', "")) {
            self.error(dotted(name));
        }
        self.open = Some(RawSection { name: name.to_owned(), line: self.line, attributes: Vec::new() });
    }

    fn close_section(&mut self) {
        match self.open.take() {
            Some(section) => self.sections.push(section),
            None => self.error("a '}' that closes nothing"),
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.error(format!("attribute '{name}' has no value"));
            return;
        }
        match unescape(value) {
            Ok(value) => self.add(name, self.line, Json::String(value)),
            Err(message) => self.error(format!("attribute '{name}': {message}")),
        }
    }

    /// An attribute whose value is a JSON map. It begins in the line that starts at the byte `start`.
    fn set_map(&mut self, name: &str, start: usize) {
        let line = self.line;
        let Some(brace) = self.text[start..].find('{').map(|column| start + column) else { return };
        if camel_case(name) == LINE_MAP
            && self.text[brace + 1..].starts_with(['\n', '\r', ' ', '#'])
            && !self.is_json_next()
        {
            self.set_line_map(name);
            return;
        }
        let mut reader = Reader::new(self.text, brace, line);
        match reader.value() {
            Ok(value) => {
                let (at, line_reached) = reader.position();
                let end = self.text[at..].find('\n').map_or(self.text.len(), |length| at + length);
                self.at = end + 1;
                self.line = line_reached;
                let after = self.text[at..end].trim();
                if !matches!(after, "" | ",") && !after.starts_with('#') {
                    self.error(format!("attribute '{name}': text after the map's '}}': '{after}'"));
                }
                self.add(name, line, value);
            }
            Err(error) => {
                self.findings.error(error.line, format!("attribute '{name}': {error}"));
                self.skip_map(brace);
            }
        }
    }

    /// Whether what follows the current line is the inside of a JSON map, or its end.
    fn is_json_next(&self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let next = rest.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        next.is_none_or(|line| line.starts_with(['"', '}']))
    }

    /// An attribute whose value is a map in lines: names with values, or with maps of their own.
    fn set_line_map(&mut self, name: &str) {
        let opened = self.line;
        let mut members: Vec<Member> = Vec::new();
        // The maps that are open within it: the name, its line, and what is outside.
        let mut outer: Vec<(String, u32, Vec<Member>)> = Vec::new();
        while self.at < self.text.len() {
            let line = self.take_line();
            let line = line.strip_suffix(',').unwrap_or(line).trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let cut = line.split('#').next().unwrap_or_default().trim_end();
            if cut == "}" || cut == "}," {
                let inner = core::mem::take(&mut members);
                match outer.pop() {
                    Some((key, line, outside)) => {
                        members = outside;
                        members.push(Member { key, line, value: Json::Map(inner) });
                    }
                    None => {
                        self.add(name, opened, Json::Map(inner));
                        return;
                    }
                }
                continue;
            }
            let Some((key, value)) = map_line(line) else {
                self.error(format!(
                    "attribute '{name}': expected 'NAME: {{', 'ATTRIBUTE: VALUE' or '}}', found '{cut}'"
                ));
                continue;
            };
            if value == "{" {
                if outer.len() == LINE_MAP_DEPTH_MAX {
                    self.error(format!("attribute '{name}': maps are nested too deeply"));
                    break;
                }
                outer.push((key, self.line, core::mem::take(&mut members)));
                continue;
            }
            match unescape(value) {
                Ok(value) if value.is_empty() => self.error(format!("attribute '{key}' has no value")),
                Ok(value) => members.push(Member { key, line: self.line, value: Json::String(value) }),
                Err(message) => self.error(format!("attribute '{key}': {message}")),
            }
        }
        self.error(format!("attribute '{name}': the map opened at line {opened} isn't closed with '}}'"));
        // The section is the map's, too; one message about it is enough.
        self.sections.extend(self.open.take());
    }

    /// The next line, trimmed.
    fn take_line(&mut self) -> &'t str {
        let start = self.at;
        let end = self.text[start..].find('\n').map_or(self.text.len(), |length| start + length);
        self.at = end + 1;
        self.line += 1;
        self.text[start..end].trim()
    }

    /// Goes on after the map that begins at the byte `brace` and isn't JSON, so that later faults are
    /// found as well. Where its braces don't balance, the rest of the file is part of it.
    fn skip_map(&mut self, brace: usize) {
        let mut depth = 0_u32;
        let mut at = brace;
        for line in self.text[brace..].split_inclusive('\n') {
            at += line.len();
            if !line.trim_start().starts_with('#') {
                let mut is_quoted = false;
                for byte in line.bytes() {
                    match byte {
                        b'"' => is_quoted = !is_quoted,
                        b'{' if !is_quoted => depth += 1,
                        b'}' if !is_quoted => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                }
            }
            if depth == 0 {
                break;
            }
            self.line += 1;
        }
        self.at = at;
        if depth > 0 {
            // The section is the map's, too; one message about it is enough.
            self.sections.extend(self.open.take());
        }
    }

    fn add(&mut self, name: &str, line: u32, value: Json) {
        match &mut self.open {
            Some(section) => {
                section.attributes.push(RawAttribute { name: name.to_owned(), line, value });
            }
            None => self.findings.error(line, format!("attribute '{name}' is outside of a section")),
        }
    }

    /// A line that is nothing of what a file may have.
    fn misplaced(&mut self, line: &str) {
        let message = if line.starts_with('}') {
            format!("a closing '}}' must stand alone on its line, found '{line}'")
        } else if line.contains('{') {
            format!("what follows a '{{' belongs on the next lines, found '{line}'")
        } else {
            format!("expected 'SECTION {{', 'ATTRIBUTE: VALUE' or '}}', found '{line}'")
        };
        self.error(message);
    }

    fn error(&mut self, message: impl Into<String>) {
        self.findings.error(self.line, message);
    }
}

/// Splits `WORD: VALUE`. The value is trimmed and may be empty.
fn attribute(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim_end();
    is_word(name).then(|| (name, value.trim()))
}

/// Splits a line of a map: the name may be that of a group, `$default` or in quotes.
fn map_line(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
    if name.is_empty() || name.contains(['"', '{', '}', '#']) {
        return None;
    }
    let value = value.trim();
    let value = if LINE_MAP_PATTERNS.contains(&camel_case(name).as_str()) {
        value.split(" #").next()
    } else {
        value.split('#').next()
    };
    Some((name.to_owned(), value.unwrap_or_default().trim_end()))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}
