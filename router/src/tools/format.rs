//! Numbers and times for people.

use core::fmt::Write as _;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// `DDD:HH:MM:SS`, as `qdstat` shows how long something has been going on.
pub(super) fn long_duration(seconds: u64) -> String {
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    format!("{:03}:{:02}:{minutes:02}:{seconds:02}", hours / 24, hours % 24)
}

/// `HH:MM:SS`; days are hours.
pub(super) fn short_duration(seconds: u64) -> String {
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    format!("{:02}:{:02}:{seconds:02}", minutes / 60, minutes % 60)
}

/// A time as people read it: µs, ms or s.
pub(super) fn microseconds(time: u64) -> String {
    match time {
        0..1_000 => format!("{time} µs"),
        1_000..1_000_000 => format!("{:.1} ms", time as f64 / 1e3),
        _ => format!("{:.1} s", time as f64 / 1e6),
    }
}

/// A number of bytes with the unit that suits it, of powers of 1024.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut scaled = bytes as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 999.95 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS[unit])
}

/// So many a second: with a decimal where that says something.
pub(super) fn rate(rate: f64) -> String {
    if rate > 0.0 && rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

/// A large number in few characters: `950`, `12.3k`, `4.56M`.
pub(super) fn short_number(number: f64) -> String {
    let (scaled, unit) = match number {
        number if number < 999.5 => return rate(number),
        number if number < 999.5e3 => (number / 1e3, "k"),
        number if number < 999.5e6 => (number / 1e6, "M"),
        number => (number / 1e9, "G"),
    };
    match scaled {
        scaled if scaled < 9.995 => format!("{scaled:.2}{unit}"),
        scaled if scaled < 99.95 => format!("{scaled:.1}{unit}"),
        scaled => format!("{scaled:.0}{unit}"),
    }
}

/// A list of texts with commas between.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join(", ")
}

/// `2026-11-30 23:05:00.123456 UTC`, as `qdstat` begins.
pub(super) fn heading_time(at: OffsetDateTime) -> String {
    let format =
        format_description!("[year]-[month]-[day] [hour]:[minute]:[second].[subsecond digits:6] UTC");
    at.to_offset(time::UtcOffset::UTC).format(format).unwrap_or_default()
}

/// `2026-11-30T23:05:00.123Z`
pub(super) fn machine_time(at: OffsetDateTime) -> String {
    at.to_offset(time::UtcOffset::UTC).format(&Rfc3339).unwrap_or_default()
}

/// `Mon Nov 30 23:05:00 2026`, of seconds since 1970 in UTC, or the number where there is no such time.
pub(super) fn log_time(seconds: f64) -> String {
    let format = format_description!(
        "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
    );
    let at = OffsetDateTime::from_unix_timestamp(seconds as i64);
    let text = at.ok().and_then(|at| at.format(format).ok());
    text.unwrap_or_else(|| {
        let mut text = String::new();
        write!(text, "{seconds}").expect("a string grows");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::{
        bytes, heading_time, log_time, long_duration, machine_time, rate, short_duration, short_number,
    };
    use time::OffsetDateTime;

    #[test]
    fn durations() {
        assert_eq!(long_duration(83), "000:00:01:23");
        assert_eq!(long_duration(86_400 * 12 + 3600 * 5 + 59), "012:05:00:59");
        assert_eq!(short_duration(3_661), "01:01:01");
        assert_eq!(short_duration(360_000), "100:00:00");
    }

    #[test]
    fn numbers() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(1 << 20), "1.0 MiB");
        assert_eq!(bytes(5 << 40), "5.0 TiB");
        assert_eq!((rate(0.0).as_str(), rate(2.25).as_str(), rate(1234.6).as_str()), ("0", "2.2", "1235"));
        assert_eq!(short_number(0.0), "0");
        assert_eq!(short_number(950.0), "950");
        assert_eq!(short_number(12_340.0), "12.3k");
        assert_eq!(short_number(4_560_000.0), "4.56M");
        assert_eq!(short_number(999_999.0), "1.00M");
    }

    /// Seconds since 1970 of known dates: 1,000,000,000 is Sunday, 9 September 2001, 01:46:40 UTC.
    #[test]
    fn times() {
        let at = OffsetDateTime::from_unix_timestamp(1_000_000_000).unwrap();
        assert_eq!(heading_time(at), "2001-09-09 01:46:40.000000 UTC");
        assert_eq!(machine_time(at), "2001-09-09T01:46:40Z");
        assert_eq!(log_time(1_000_000_000.9), "Sun Sep  9 01:46:40 2001");
    }
}
