//! A format of the log's time that the configuration chooses (`timestampFormat`), in the notation of strftime(3), with `%f`
//! for microseconds.

use std::fmt;
use std::sync::Arc;

use time::OffsetDateTime;
use time::format_description::{OwnedFormatItem, parse_strftime_owned};

/// The longest format, in bytes.
const FORMAT_BYTES_MAX: usize = 100;

/// A format of points in time.
#[derive(Clone)]
pub struct TimeFormat {
    text: Arc<str>,
    /// What comes between the microseconds.
    parts: Arc<[OwnedFormatItem]>,
}

impl TimeFormat {
    /// The format that `text` means.
    ///
    /// # Errors
    /// It means none: why, for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > FORMAT_BYTES_MAX {
            return Err(format!("it is longer than {FORMAT_BYTES_MAX} bytes"));
        }
        if text.contains(|character: char| character.is_control())
            || text.contains("%n")
            || text.contains("%t")
        {
            return Err("a line of the log has no line breaks and tabs in it".to_owned());
        }
        let parts = split(text)
            .into_iter()
            .map(|part| parse_strftime_owned(part).map_err(|error| error.to_string()))
            .collect::<Result<_, _>>()?;
        Ok(Self { text: text.into(), parts })
    }

    /// Appends a point in time.
    pub(super) fn write(&self, out: &mut String, at: OffsetDateTime) {
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                super::format::append(out, format_args!("{:06}", at.microsecond()));
            }
            // All of a date, a time and an offset is there, so nothing can be missing.
            out.push_str(&at.format(part).unwrap_or_default());
        }
    }
}

/// The parts before, between and behind each `%f`.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(found) = text[at..].find('%') {
        let percent = at + found;
        if text[percent + 1..].starts_with('f') {
            parts.push(&text[start..percent]);
            start = percent + 2;
        }
        // What follows is a letter of the format, or a second percent sign.
        let follows = text[percent + 1..].chars().next().map_or(0, char::len_utf8);
        at = percent + 1 + follows;
    }
    parts.push(&text[start..]);
    parts
}

impl PartialEq for TimeFormat {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for TimeFormat {}

impl fmt::Debug for TimeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TimeFormat").field(&self.text).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `TZ=UTC date -d @1000000000 +FORMAT` of coreutils prints it.
    #[test]
    fn what_date_prints() {
        let at = OffsetDateTime::from_unix_timestamp(1_000_000_000).unwrap();
        for (format, printed) in [
            ("%Y-%m-%d %H:%M:%S %z", "2001-09-09 01:46:40 +0000"),
            ("%FT%T", "2001-09-09T01:46:40"),
            ("%a %b %e %H:%M:%S %Y", "Sun Sep  9 01:46:40 2001"),
            ("%s 100%%", "1000000000 100%"),
            ("%d/%m/%y %I:%M:%S %p", "09/09/01 01:46:40 AM"),
            ("%j", "252"),
        ] {
            let mut out = String::new();
            TimeFormat::parse(format).unwrap().write(&mut out, at);
            assert_eq!(out, printed, "{format}");
        }
    }

    #[test]
    fn microseconds_are_told_by_f() {
        let at = OffsetDateTime::from_unix_timestamp_nanos(1_000_000_000_012_345_678).unwrap();
        for (format, printed) in
            [("%T.%f", "01:46:40.012345"), ("%f", "012345"), ("%%f", "%f"), ("%f%%%f", "012345%012345")]
        {
            let mut out = String::new();
            TimeFormat::parse(format).unwrap().write(&mut out, at);
            assert_eq!(out, printed, "{format}");
        }
    }

    #[test]
    fn formats_that_mean_nothing() {
        for format in ["%", "%Q", "a\nb", "%n", &"x".repeat(101)] {
            assert!(TimeFormat::parse(format).is_err(), "{format}");
        }
    }
}
