//! A line of the log as a JSON object, for programs that collect logs (`--log-format json`).
//!
//! ```text
//! {"time":"2026-04-01T12:34:56.789012+02:00","level":"notice","module":"SERVER","text":"…","source":"file:line"}
//!  |---------- includeTimestamp ----------|                                              |-- includeSource --|
//! ```

use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::UtcOffset;

use super::format::{Record, append};

/// Appends the line, with its newline, to `out`.
pub(super) fn write(record: &Record, out: &mut String, has_timestamp: bool, is_utc: bool, has_source: bool) {
    let mut line = Map::new();
    if has_timestamp {
        line.insert("time".to_owned(), timestamp(record, is_utc).into());
    }
    line.insert("level".to_owned(), record.level.name().into());
    line.insert("module".to_owned(), record.module.name().into());
    line.insert("text".to_owned(), record.text.as_str().into());
    if has_source {
        line.insert("source".to_owned(), format!("{}:{}", record.source.file, record.source.line).into());
    }
    append(out, format_args!("{}\n", Value::Object(line)));
}

/// The time by RFC 3339, with microseconds.
fn timestamp(record: &Record, is_utc: bool) -> String {
    let at = OffsetDateTime::from(record.at);
    let offset =
        if is_utc { UtcOffset::UTC } else { UtcOffset::local_offset_at(at).unwrap_or(UtcOffset::UTC) };
    let at = at.to_offset(offset);
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second, micro) = at.to_hms_micro();
    let (hours, minutes, _) = offset.as_hms();
    let sign = if offset.is_negative() { '-' } else { '+' };
    format!(
        "{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}{sign}{:02}:{:02}",
        u8::from(month),
        hours.unsigned_abs(),
        minutes.unsigned_abs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Level, Module, Source};
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_line_is_one_json_object() {
        // 2001-09-09T01:46:40Z is second 1,000,000,000 of Unix time.
        let at = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 12_345_678);
        let source = Source { file: "src/shard/turn.rs", line: 42 };
        let text = format_args!("a \"quoted\" text");
        let record = Record { at, ..Record::now(Module::Server, Level::Notice, source, text) };
        let mut whole = String::new();
        write(&record, &mut whole, true, true, true);
        assert!(whole.ends_with("}\n") && whole.lines().count() == 1, "{whole}");
        let read: serde_json::Value = serde_json::from_str(&whole).expect("it is JSON");
        let wanted = serde_json::json!({
            "time": "2001-09-09T01:46:40.012345+00:00",
            "level": "notice",
            "module": "SERVER",
            "text": "a \"quoted\" text",
            "source": "src/shard/turn.rs:42",
        });
        assert_eq!(read, wanted);
        let mut short = String::new();
        write(&record, &mut short, false, true, false);
        let read: serde_json::Value = serde_json::from_str(&short).expect("it is JSON");
        assert_eq!(read.as_object().map(serde_json::Map::len), Some(3));
    }
}
