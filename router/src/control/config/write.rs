//! Writes a configuration as a file, such that reading it gives the same one.

use core::fmt::Write as _;

use super::Config;
use super::environment::protected;
use super::json::{Json, Member};
use super::record::{Record, Value};
use super::text::HASH_ATTRIBUTES;

impl Value {
    /// The value as text: as a file has it, maps as JSON.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Boolean(true) => "yes".to_owned(),
            Self::Boolean(false) => "no".to_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Text(text)
            | Self::Port { text, .. }
            | Self::Words { text, .. }
            | Self::Levels { text, .. } => text.clone(),
            Self::Map(_) | Self::Entities(_) | Self::List(_) => self.to_json().to_string(),
        }
    }

    /// The value as JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Boolean(value) => Json::Boolean(*value),
            Self::Integer(number) => Json::Integer(*number),
            Self::Text(text)
            | Self::Port { text, .. }
            | Self::Words { text, .. }
            | Self::Levels { text, .. } => Json::String(text.clone()),
            Self::Map(members) => Json::Map(members.clone()),
            Self::List(items) => Json::List(items.clone()),
            Self::Entities(parts) => Json::Map(
                parts
                    .iter()
                    .map(|(name, part)| Member {
                        key: name.clone(),
                        line: part.line(),
                        value: Json::Map(part.set_members()),
                    })
                    .collect(),
            ),
        }
    }
}

impl Record {
    /// What is set, as JSON.
    fn set_members(&self) -> Vec<Member> {
        self.values()
            .filter(|(attribute, _)| self.is_set(attribute.name))
            .filter_map(|(attribute, value)| {
                Some(Member { key: attribute.name.to_owned(), line: 0, value: value?.to_json() })
            })
            .collect()
    }
}

impl Config {
    /// The configuration as a file in the line-oriented form: everything that is set, none of the defaults. A
    /// `$` in it names no environment variable, but in passwords, which are in it as they are here: what came
    /// from [`Config::load_verbatim`] may name one.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for record in &self.records {
            if record.values().any(|(attribute, _)| record.is_set(attribute.name)) {
                if !out.is_empty() {
                    out.push('\n');
                }
                section(&mut out, record);
            }
        }
        out
    }
}

fn section(out: &mut String, record: &Record) {
    let written = "a string grows";
    writeln!(out, "{} {{", record.entity_name()).expect(written);
    for (attribute, value) in record.values().filter(|(attribute, _)| record.is_set(attribute.name)) {
        let Some(value) = value else { continue };
        let text = match value {
            Value::Map(_) | Value::Entities(_) | Value::List(_) => {
                protected_json(value.to_json()).to_string()
            }
            Value::Boolean(_)
            | Value::Integer(_)
            | Value::Text(_)
            | Value::Port { .. }
            | Value::Words { .. }
            | Value::Levels { .. } => {
                let text = value.text();
                let text = if attribute.is_secret { text } else { protected(&text) };
                escaped(&text, HASH_ATTRIBUTES.contains(&attribute.name))
            }
        };
        writeln!(out, "    {}: {text}", attribute.name).expect(written);
    }
    out.push_str("}\n");
}

/// The value with its texts such that reading a file gives them back. A configuration is nested only so deeply.
fn protected_json(value: Json) -> Json {
    match value {
        Json::String(text) => Json::String(protected(&text)),
        Json::List(items) => Json::List(items.into_iter().map(protected_json).collect()),
        Json::Map(members) => {
            let member = |member: Member| Member { value: protected_json(member.value), ..member };
            Json::Map(members.into_iter().map(member).collect())
        }
        Json::Null | Json::Boolean(_) | Json::Integer(_) | Json::Float(_) => value,
    }
}

/// A text such that the line-oriented form gives it back: with JSON's escapes for what would end it.
fn escaped(text: &str, is_run: bool) -> String {
    let mut out = String::new();
    let last = text.chars().count().saturating_sub(1);
    for (index, c) in text.chars().enumerate() {
        let is_at_an_end = index == 0 || index == last;
        match c {
            '\\' => out.push_str("\\\\"),
            '#' if is_run => out.push(c),
            '#' => out.push_str("\\u0023"),
            '{' if index == 0 => out.push_str("\\u007b"),
            c if c.is_control() || (c.is_whitespace() && (is_run || is_at_an_end || c != ' ')) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    write!(out, "\\u{unit:04x}").expect("a string grows");
                }
            }
            c => out.push(c),
        }
    }
    out
}
