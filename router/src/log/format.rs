//! A line of the log.
//!
//! ```text
//! 2026-04-01 12:34:56.789012 +0200 SERVER (notice) text (file:line)
//! |------------ includeTimestamp ------------|      |includeSource|
//! ```

use core::fmt::{self, Write as _};
use std::time::SystemTime;

use time::{OffsetDateTime, UtcOffset};

use super::level::{Level, Module};
use super::time_format::TimeFormat;

/// The longest text of a line, in bytes; what is longer is cut off and ends in `…`.
pub(super) const TEXT_BYTES_MAX: usize = 4096;

/// Where in the source a line comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// As `file!()` says.
    pub file: &'static str,
    /// As `line!()` says.
    pub line: u32,
}

/// What happened, before it is a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) module: Module,
    pub(super) level: Level,
    pub(super) at: SystemTime,
    pub(super) source: Source,
    pub(super) text: String,
}

impl Record {
    /// A record of now. Formats `text`, at most [`TEXT_BYTES_MAX`] of it.
    pub(super) fn now(module: Module, level: Level, source: Source, text: fmt::Arguments<'_>) -> Self {
        let mut limited = LimitedText(String::new());
        if limited.write_fmt(text).is_err() {
            limited.0.push('…');
        }
        Self { module, level, at: SystemTime::now(), source, text: limited.0 }
    }

    /// Appends the line, with its newline, to `out`.
    pub(super) fn write(
        &self,
        out: &mut String,
        has_timestamp: bool,
        is_utc: bool,
        time_format: Option<&TimeFormat>,
        has_source: bool,
    ) {
        if has_timestamp {
            write_timestamp(out, self.at, is_utc, time_format);
            out.push(' ');
        }
        self.write_body(out);
        if has_source {
            append(out, format_args!(" ({}:{})", self.source.file, self.source.line));
        }
        out.push('\n');
    }

    /// Appends module, level and text.
    pub(super) fn write_body(&self, out: &mut String) {
        append(out, format_args!("{} ({}) {}", self.module, self.level, self.text));
    }
}

/// Appends the time, without a format as `YYYY-MM-DD HH:MM:SS.uuuuuu +ZZZZ`.
fn write_timestamp(out: &mut String, at: SystemTime, is_utc: bool, format: Option<&TimeFormat>) {
    let at = OffsetDateTime::from(at);
    // A system without a time zone that can be told counts as being on UTC.
    let offset =
        if is_utc { UtcOffset::UTC } else { UtcOffset::local_offset_at(at).unwrap_or(UtcOffset::UTC) };
    let at = at.to_offset(offset);
    if let Some(format) = format {
        format.write(out, at);
        return;
    }
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second, micro) = at.to_hms_micro();
    let sign = if offset.is_negative() { '-' } else { '+' };
    let (hours, minutes, _) = offset.as_hms();
    append(
        out,
        format_args!(
            "{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micro:06} {sign}{:02}{:02}",
            u8::from(month),
            hours.unsigned_abs(),
            minutes.unsigned_abs()
        ),
    );
}

/// Appends to a string, which can't fail.
pub(super) fn append(out: &mut String, text: fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String can't fail");
}

/// Text of bounded length on one line: a control character would let a peer's name forge lines.
struct LimitedText(String);

impl fmt::Write for LimitedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.0.len() + character.len_utf8() > TEXT_BYTES_MAX {
                return Err(fmt::Error);
            }
            if character.is_control() {
                self.0.extend(character.escape_default());
            } else {
                self.0.push(character);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Record, Source, TEXT_BYTES_MAX};
    use crate::log::{Level, Module};
    use std::time::{Duration, SystemTime};

    const SOURCE: Source = Source { file: "src/shard/turn.rs", line: 42 };

    fn record(text: &str) -> Record {
        // 2001-09-09T01:46:40Z is second 1,000,000,000 of Unix time.
        let at = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 12_345_678);
        Record { at, ..Record::now(Module::Server, Level::Notice, SOURCE, format_args!("{text}")) }
    }

    fn line(record: &Record, has_timestamp: bool, has_source: bool) -> String {
        let mut line = String::new();
        record.write(&mut line, has_timestamp, true, None, has_source);
        line
    }

    #[test]
    fn the_format_of_qdrouterd() {
        let record = record("Operational, 1 Threads Running (process ID 7)");
        assert_eq!(
            line(&record, true, false),
            "2001-09-09 01:46:40.012345 +0000 SERVER (notice) Operational, 1 Threads Running (process ID 7)\n"
        );
        assert_eq!(
            line(&record, false, true),
            "SERVER (notice) Operational, 1 Threads Running (process ID 7) (src/shard/turn.rs:42)\n"
        );
    }

    /// `YYYY-MM-DD HH:MM:SS.uuuuuu +ZZZZ MODULE (level) text`, character by character: `9` any digit,
    /// `±` a sign.
    #[test]
    fn local_time_has_the_same_shape() {
        let mut line = String::new();
        record("text").write(&mut line, true, false, None, false);
        let shape = "9999-99-99 99:99:99.999999 ±9999 SERVER (notice) text\n";
        assert_eq!(line.chars().count(), shape.chars().count(), "{line}");
        for (found, wanted) in line.chars().zip(shape.chars()) {
            match wanted {
                '9' => assert!(found.is_ascii_digit(), "{line}"),
                '±' => assert!(matches!(found, '+' | '-'), "{line}"),
                other => assert_eq!(found, other, "{line}"),
            }
        }
    }

    #[test]
    fn a_text_stays_on_its_line_and_within_bounds() {
        assert_eq!(record("a\nb\u{1b}c").text, "a\\nb\\u{1b}c");
        let long = record(&"é".repeat(TEXT_BYTES_MAX));
        assert!(long.text.ends_with("é…") && long.text.len() <= TEXT_BYTES_MAX + '…'.len_utf8());
    }
}
