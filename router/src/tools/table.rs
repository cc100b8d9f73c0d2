//! Tables: columns that line up for people, comma-separated values for programs.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::format;

/// Blanks before each line.
const PREFIX: &str = "  ";

/// Blanks between columns.
const GAP: usize = 2;

/// What a wide column keeps of its width at least.
const SHRUNK_MIN: usize = 12;

/// What is shown where something was left out.
const ELLIPSIS: char = '…';

/// One value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Cell {
    /// Nothing is known.
    Empty,
    /// A text; control characters are escaped when it is shown.
    Text(String),
    /// A number that is what it is now.
    Number(i64),
    /// A number that only grows.
    Count(u64),
    /// Memory, in bytes.
    Bytes(u64),
    /// For how long, in seconds.
    Lasting(u64),
    /// For how long in seconds, where that is short mostly.
    Short(u64),
    /// How often a second; `None`: it isn't known yet.
    Rate(Option<f64>),
}

impl Cell {
    /// A text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// As people read it.
    fn shown(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(text) => printable(text),
            Self::Number(number) => number.to_string(),
            Self::Count(count) => count.to_string(),
            Self::Bytes(bytes) => format::bytes(*bytes),
            Self::Lasting(seconds) => format::long_duration(*seconds),
            Self::Short(seconds) => format::short_duration(*seconds),
            Self::Rate(Some(rate)) => format::rate(*rate),
            Self::Rate(None) => "-".to_owned(),
        }
    }

    /// As programs read it: numbers are plain.
    fn plain(&self) -> String {
        match self {
            Self::Bytes(bytes) => bytes.to_string(),
            Self::Rate(Some(rate)) => format!("{rate:.2}"),
            Self::Rate(None) => String::new(),
            Self::Empty
            | Self::Text(_)
            | Self::Number(_)
            | Self::Count(_)
            | Self::Lasting(_)
            | Self::Short(_) => self.shown(),
        }
    }
}

/// The top of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) text: &'static str,
    /// Values stand at the right.
    pub(super) is_number: bool,
    /// It gives up width where there is too little.
    pub(super) shrinks: bool,
    /// What the column is called that tells how fast this one grows.
    pub(super) rate: Option<&'static str>,
    /// Where there is too little width it is left out, those with the greatest number first; 0: it stays.
    pub(super) spare: u8,
}

impl Head {
    /// A column of texts.
    pub(super) const fn text(text: &'static str) -> Self {
        Self { text, is_number: false, shrinks: false, rate: None, spare: 0 }
    }

    /// A column of texts that may be long.
    pub(super) const fn wide(text: &'static str) -> Self {
        Self { text, is_number: false, shrinks: true, rate: None, spare: 0 }
    }

    /// A column of numbers.
    pub(super) const fn number(text: &'static str) -> Self {
        Self { text, is_number: true, shrinks: false, rate: None, spare: 0 }
    }

    /// A column of numbers that grow, and the name of the column that tells how fast.
    pub(super) const fn count(text: &'static str, rate: &'static str) -> Self {
        Self { text, is_number: true, shrinks: false, rate: Some(rate), spare: 0 }
    }
}

/// One row.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Row {
    /// By what it is found again in the next table of the same kind.
    pub(super) key: String,
    /// As many as there are heads.
    pub(super) cells: Vec<Cell>,
}

/// A table.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Table {
    pub(super) title: String,
    pub(super) heads: Vec<Head>,
    pub(super) rows: Vec<Row>,
    /// What is said instead of a table without rows.
    pub(super) none: &'static str,
}

impl Table {
    /// Prints it for people. Where it is wider than `width`, the widest texts are cut, and if that isn't enough,
    /// columns that say nothing are left out.
    pub(super) fn print(&self, out: &mut impl Write, width: Option<usize>) -> io::Result<()> {
        if self.rows.is_empty() {
            return writeln!(out, "{}", if self.none.is_empty() { &self.title } else { self.none });
        }
        writeln!(out, "{}", self.title)?;
        let mut shown = Shown::of(self);
        let left_out = width.map(|width| shown.fit(width)).unwrap_or_default();
        let heads: Vec<String> = shown.heads.iter().map(|head| head.text.to_owned()).collect();
        shown.line(out, &heads)?;
        writeln!(out, "{PREFIX}{}", "=".repeat(shown.width() - PREFIX.len()))?;
        shown.rows.iter().try_for_each(|row| shown.line(out, row))?;
        let [nothing, spare] = left_out;
        if !nothing.is_empty() {
            let names = nothing.join(", ");
            writeln!(out, "{PREFIX}(left out for want of width, nothing or 0 everywhere: {names})")?;
        }
        if !spare.is_empty() {
            writeln!(out, "{PREFIX}(left out for want of width: {})", spare.join(", "))?;
        }
        Ok(())
    }

    /// Prints it for programs, with a line of heads if `with_heads`. Each line begins with `first`'s values, under
    /// its names.
    pub(super) fn print_csv(
        &self,
        out: &mut impl Write,
        first: &[(&str, &str)],
        with_heads: bool,
    ) -> io::Result<()> {
        let mut writer = csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).from_writer(out);
        if with_heads {
            let heads = self.heads.iter().map(|head| head.text);
            writer.write_record(first.iter().map(|(name, _)| *name).chain(heads))?;
        }
        for row in &self.rows {
            let cells = row.cells.iter().map(Cell::plain);
            writer.write_record(first.iter().map(|(_, value)| (*value).to_owned()).chain(cells))?;
        }
        writer.flush()
    }
}

/// A table as it is shown.
struct Shown {
    heads: Vec<Head>,
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl Shown {
    fn of(table: &Table) -> Self {
        let rows: Vec<Vec<String>> =
            table.rows.iter().map(|row| row.cells.iter().map(Cell::shown).collect()).collect();
        let mut widths: Vec<usize> = table.heads.iter().map(|head| head.text.width()).collect();
        for row in &rows {
            for (width, text) in widths.iter_mut().zip(row) {
                *width = (*width).max(text.width());
            }
        }
        Self { heads: table.heads.clone(), rows, widths }
    }

    /// Of a line, without the gap behind its end.
    fn width(&self) -> usize {
        PREFIX.len() + self.widths.iter().sum::<usize>() + GAP * self.widths.len().saturating_sub(1)
    }

    /// Makes it fit, as far as it can: takes width from the widest of the columns that may give it, and leaves out
    /// columns that say nothing, then those that can be done without. Tells which of both.
    fn fit(&mut self, width: usize) -> [Vec<&'static str>; 2] {
        let order: Vec<&str> = self.heads.iter().map(|head| head.text).collect();
        let mut left_out = [Vec::new(), Vec::new()];
        let mut whole = self.widths.clone();
        self.shrink(width);
        while self.width() > width
            && let Some((at, says_nothing)) = self.least()
        {
            left_out[usize::from(!says_nothing)].push(self.heads.remove(at).text);
            whole.remove(at);
            self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
            // Others may have more now.
            self.widths.clone_from(&whole);
            self.shrink(width);
        }
        for names in &mut left_out {
            names.sort_by_key(|name| order.iter().position(|other| other == name));
        }
        left_out
    }

    fn shrink(&mut self, width: usize) {
        while self.width() > width {
            let least = |at: usize| self.heads[at].text.width().max(SHRUNK_MIN);
            let wide =
                (0..self.widths.len()).filter(|at| self.heads[*at].shrinks && self.widths[*at] > least(*at));
            let Some(widest) = wide.max_by_key(|at| self.widths[*at]) else { break };
            self.widths[widest] -= 1;
        }
    }

    /// The column that is missed least, and whether it says nothing.
    fn least(&self) -> Option<(usize, bool)> {
        let says_only =
            |at: usize, nothing: &[&str]| self.rows.iter().all(|row| nothing.contains(&row[at].as_str()));
        for nothing in [&[""][..], &["", "0", "-"]] {
            if let Some(at) = (0..self.heads.len()).rev().find(|at| says_only(*at, nothing)) {
                return Some((at, true));
            }
        }
        let spare = (0..self.heads.len()).filter(|at| self.heads[*at].spare > 0);
        spare.max_by_key(|at| self.heads[*at].spare).map(|at| (at, false))
    }

    fn line(&self, out: &mut impl Write, texts: &[String]) -> io::Result<()> {
        let mut line = String::from(PREFIX);
        for ((head, text), width) in self.heads.iter().zip(texts).zip(&self.widths) {
            let text = cut(text, *width);
            let blanks = " ".repeat(width - text.width());
            if head.is_number {
                line.push_str(&blanks);
                line.push_str(&text);
            } else {
                line.push_str(&text);
                line.push_str(&blanks);
            }
            line.push_str(&" ".repeat(GAP));
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// The text on one line: control characters, which could also change the terminal, are escaped.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// The text in so many columns of a terminal at most.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(character);
    }
    out.push(ELLIPSIS);
    out
}

#[cfg(test)]
mod tests {
    use super::{Cell, Head, Row, Table, cut};

    fn table() -> Table {
        let row = |name: &str, count| Row {
            key: name.to_owned(),
            cells: vec![Cell::text(name), Cell::Count(count), Cell::Bytes(2048), Cell::Lasting(5)],
        };
        Table {
            title: "Things".to_owned(),
            heads: vec![
                Head::wide("name"),
                Head::count("deliv", "deliv/s"),
                Head::number("size"),
                Head::text("uptime"),
            ],
            rows: vec![row("a", 7), row("größe日本.with.a.long.name", 1_234_567)],
            none: "No things",
        }
    }

    fn printed(table: &Table, width: Option<usize>) -> String {
        let mut out = Vec::new();
        table.print(&mut out, width).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_line_up() {
        assert_eq!(
            printed(&table(), None),
            "Things\n\
             \x20 name                          deliv     size  uptime\n\
             \x20 ==========================================================\n\
             \x20 a                                 7  2.0 KiB  000:00:00:05\n\
             \x20 größe日本.with.a.long.name  1234567  2.0 KiB  000:00:00:05\n"
        );
    }

    #[test]
    fn wide_columns_shrink_and_no_further_than_is_of_use() {
        use unicode_width::UnicodeWidthStr as _;
        let text = printed(&table(), Some(55));
        assert!(text.lines().all(|line| line.width() <= 55), "{text}");
        assert!(text.contains("größe日本.with.a.lon…  1234567"), "{text}");
        assert!(printed(&table(), Some(10)).contains("größe日本.w…"));
    }

    #[test]
    fn columns_that_say_nothing_go_first() {
        let mut table = table();
        table.heads.extend([Head::text("peer"), Head::number("rej"), Head::number("stuck")]);
        for row in &mut table.rows {
            row.cells.extend([Cell::Empty, Cell::Count(0), Cell::Count(3)]);
        }
        let text = printed(&table, Some(55));
        assert!(text.contains("stuck") && text.contains("000:00:00:05      3"), "{text}");
        assert!(
            text.ends_with("(left out for want of width, nothing or 0 everywhere: peer, rej)\n"),
            "{text}"
        );
        let text = printed(&table, Some(60));
        assert!(text.contains("rej") && text.ends_with("everywhere: peer)\n"), "{text}");
        assert!(printed(&table, None).contains("peer"));
    }

    /// Those that stay get back what they had given.
    #[test]
    fn columns_that_can_be_spared_go_last_the_least_first() {
        let mut table = table();
        table.heads[2].spare = 1;
        table.heads[3].spare = 2;
        let text = printed(&table, Some(38));
        assert!(
            text.contains("größe日本.with.a.…  1234567  2.0 KiB\n") && text.ends_with("width: uptime)\n"),
            "{text}"
        );
        let text = printed(&table, Some(24));
        assert!(text.ends_with("width: size, uptime)\n") && !text.contains("KiB"), "{text}");
    }

    #[test]
    fn values_for_programs_are_quoted_and_plain() {
        let mut out = Vec::new();
        let mut table = table();
        table.rows[0].cells[0] = Cell::text("a \"quoted\", thing");
        table.print_csv(&mut out, &[("router", "R")], true).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        assert_eq!(reader.headers().unwrap(), vec!["router", "name", "deliv", "size", "uptime"]);
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows[0], vec!["R", "a \"quoted\", thing", "7", "2048", "000:00:00:05"]);
        assert!(String::from_utf8(out).unwrap().starts_with("\"router\",\"name\""));
    }

    #[test]
    fn what_would_change_the_terminal_is_escaped() {
        let mut table = table();
        table.rows[0].cells[0] = Cell::text("\u{1b}[31mred\n");
        let text = printed(&table, None);
        assert!(text.contains("\\u{1b}[31mred\\n"), "{text}");
    }

    #[test]
    fn a_table_without_rows_says_so() {
        let table = Table { rows: Vec::new(), ..table() };
        assert_eq!(printed(&table, None), "No things\n");
    }

    #[test]
    fn cutting() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        // A wide character isn't cut in half.
        assert_eq!(cut("日本語", 4), "日…");
    }
}
