//! Makes values of the schema's types from what a file has.

use super::json::Json;
use super::nearest::did_you_mean;
use super::record::Value;
use super::schema::Kind;
use super::service;
use crate::log::Levels;

/// The value as messages show it.
pub(super) fn written(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Boolean(value) => format!("{value}"),
        Json::Integer(value) => format!("{value}"),
        Json::Float(value) => format!("{value}"),
        Json::String(value) => format!("'{value}'"),
        Json::List(_) | Json::Map(_) => value.kind().to_owned(),
    }
}

/// Makes a value of the kind from what the file has. [`Kind::Entities`] has a check of its own.
///
/// # Errors
/// What was expected instead.
pub(super) fn value_of(kind: Kind, json: Json) -> Result<Value, String> {
    match kind {
        Kind::Boolean => boolean(&json).map(Value::Boolean),
        Kind::Integer { min, max } => integer(&json, min, max).map(Value::Integer),
        Kind::String | Kind::Path => text(json).map(Value::Text),
        Kind::Host => text(json).and_then(host).map(Value::Text),
        Kind::Port => port(json),
        Kind::Enumeration(words) => enumerated(json, words).map(Value::Text),
        Kind::Words { separator, known } => words(json, separator, known),
        Kind::LogLevels => levels(json),
        Kind::Properties => match json {
            Json::Map(members) => Ok(Value::Map(members)),
            Json::Null
            | Json::Boolean(_)
            | Json::Integer(_)
            | Json::Float(_)
            | Json::String(_)
            | Json::List(_) => {
                Err("a JSON map: '{', then lines like \"name\": \"value\", then '}'".to_owned())
            }
        },
        Kind::List => match json {
            Json::List(items) => Ok(Value::List(items)),
            Json::Null
            | Json::Boolean(_)
            | Json::Integer(_)
            | Json::Float(_)
            | Json::String(_)
            | Json::Map(_) => Err("a list".to_owned()),
        },
        Kind::Entities(_) => Err(ENTITIES_EXPECTED.to_owned()),
    }
}

/// What is expected of [`Kind::Entities`].
pub(super) const ENTITIES_EXPECTED: &str =
    "a map: '{', then for each a line like 'NAME: {', its attributes and '}', then '}'";
fn boolean(json: &Json) -> Result<bool, String> {
    let expected = || "yes, true, on, no, false or off".to_owned();
    match json {
        Json::Boolean(value) => Ok(*value),
        Json::String(word) => match word.to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" => Ok(true),
            "no" | "false" | "off" => Ok(false),
            _ => Err(expected()),
        },
        Json::Null | Json::Integer(_) | Json::Float(_) | Json::List(_) | Json::Map(_) => Err(expected()),
    }
}

fn integer(json: &Json, min: i64, max: i64) -> Result<i64, String> {
    let number = match json {
        Json::Integer(number) => Some(*number),
        Json::String(text) => text.parse().ok(),
        Json::Null | Json::Boolean(_) | Json::Float(_) | Json::List(_) | Json::Map(_) => None,
    };
    number.filter(|number| (min..=max).contains(number)).ok_or_else(|| {
        if max == i64::MAX {
            format!("an integer of at least {min}")
        } else {
            format!("an integer from {min} to {max}")
        }
    })
}

fn text(json: Json) -> Result<String, String> {
    match json {
        Json::String(text) => Ok(text),
        // As `qdrouterd` does: in the JSON form a text that looks like a number may be one.
        Json::Integer(number) => Ok(number.to_string()),
        Json::Null | Json::Boolean(_) | Json::Float(_) | Json::List(_) | Json::Map(_) => {
            Err("a text".to_owned())
        }
    }
}

/// A host as sockets take it: the brackets of an IPv6 literal are taken off.
fn host(text: String) -> Result<String, String> {
    let is_bracketed = text.starts_with('[') || text.ends_with(']');
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let is_ipv6 =
        |text: &str| text.split('%').next().unwrap_or_default().parse::<core::net::Ipv6Addr>().is_ok();
    match inside {
        Some(literal) if is_ipv6(literal) => Ok(literal.to_owned()),
        None if !is_bracketed && (is_ipv6(&text) || is_host_name(&text)) => Ok(text),
        Some(_) | None => Err("a host name, an IPv4 or IPv6 literal, or nothing".to_owned()),
    }
}

/// Whether a resolver may be asked for it. Empty is allowed: all local addresses.
fn is_host_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

fn port(json: Json) -> Result<Value, String> {
    let expected = || "a port number from 0 to 65535, or the name of a service ('amqp' is 5672)".to_owned();
    match json {
        Json::Integer(number) => u16::try_from(number)
            .map(|number| Value::Port { number, text: number.to_string() })
            .map_err(|_| expected()),
        Json::String(text) => match service::port(&text) {
            Some(number) => Ok(Value::Port { number, text }),
            None => Err(expected()),
        },
        Json::Null | Json::Boolean(_) | Json::Float(_) | Json::List(_) | Json::Map(_) => Err(expected()),
    }
}

fn enumerated(json: Json, words: &[&str]) -> Result<String, String> {
    let expected = |hint: String| format!("one of {}{hint}", words.join(", "));
    match json {
        Json::String(word) if words.contains(&word.as_str()) => Ok(word),
        Json::String(word) => Err(expected(did_you_mean(&word, words.iter().copied()))),
        Json::Null | Json::Boolean(_) | Json::Integer(_) | Json::Float(_) | Json::List(_) | Json::Map(_) => {
            Err(expected(String::new()))
        }
    }
}

fn words(json: Json, separator: char, known: &[&str]) -> Result<Value, String> {
    let between = if separator == ' ' { "blanks" } else { "commas" };
    let expected = || format!("words with {between} between them");
    let text = text(json).map_err(|_| expected())?;
    let list: Vec<String> =
        text.split(separator).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    if list.is_empty() {
        return Err(expected());
    }
    match list.iter().find(|word| !known.is_empty() && !known.contains(&word.as_str())) {
        Some(word) => {
            let hint = did_you_mean(word, known.iter().copied());
            Err(format!("{} out of {}; '{word}' is none of them{hint}", expected(), known.join(", ")))
        }
        None => Ok(Value::Words { list, text }),
    }
}

fn levels(json: Json) -> Result<Value, String> {
    let expected = || {
        "levels with commas between them (trace, debug, info, notice, warning, error, critical, each with a \
         '+' for all above as well), none, or default"
            .to_owned()
    };
    let text = text(json).map_err(|_| expected())?;
    match Levels::parse(&text) {
        Ok(levels) => Ok(Value::Levels { levels, text }),
        Err(word) => Err(format!("{}; '{word}' is no level", expected())),
    }
}
