//! How fast numbers grow between two tables of the same kind.

use std::collections::HashMap;

use super::table::{Cell, Table};

/// Adds to each column of growing numbers that wants it another with so many a second, from what the table
/// `before` had for the same rows, `seconds` ago. Without such a row the rate isn't known yet.
pub(super) fn add(table: &mut Table, before: Option<&Table>, seconds: f64) {
    let rows: HashMap<&str, &[Cell]> = before
        .map(|before| before.rows.iter().map(|row| (row.key.as_str(), row.cells.as_slice())).collect())
        .unwrap_or_default();
    // From the right, so that what is inserted moves nothing that is looked at yet.
    for at in (0..table.heads.len()).rev() {
        let Some(name) = table.heads[at].rate else { continue };
        for row in &mut table.rows {
            let earlier = rows.get(row.key.as_str()).and_then(|cells| cells.get(at));
            let rate = match (&row.cells[at], earlier) {
                (Cell::Count(now), Some(Cell::Count(then))) => Cell::Rate(between(*then, *now, seconds)),
                (Cell::Count(_), _) => Cell::Rate(None),
                (_, _) => Cell::Empty,
            };
            row.cells.insert(at + 1, rate);
        }
        let head = super::table::Head { text: name, is_number: true, shrinks: false, rate: None, spare: 0 };
        table.heads.insert(at + 1, head);
    }
}

/// So many a second; `None` where the number has become smaller (what it counts began anew) or no time went by.
pub(super) fn between(then: u64, now: u64, seconds: f64) -> Option<f64> {
    let grown = now.checked_sub(then)?;
    (seconds > 0.0).then(|| grown as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::add;
    use crate::tools::table::{Cell, Head, Row, Table};

    fn table(counts: &[(&str, u64)]) -> Table {
        let row = |(key, count): &(&str, u64)| Row {
            key: (*key).to_owned(),
            cells: vec![Cell::text(*key), Cell::Count(*count)],
        };
        Table {
            title: String::new(),
            heads: vec![Head::text("addr"), Head::count("in", "in/s")],
            rows: counts.iter().map(row).collect(),
            none: "",
        }
    }

    #[test]
    fn rates_are_those_of_the_same_row() {
        let before = table(&[("b", 100), ("a", 10), ("gone", 1), ("anew", 50)]);
        let mut now = table(&[("a", 30), ("b", 100), ("new", 5), ("anew", 3)]);
        add(&mut now, Some(&before), 4.0);
        assert_eq!(now.heads[2].text, "in/s");
        let rates: Vec<_> = now.rows.iter().map(|row| row.cells[2].clone()).collect();
        let expected = [Some(5.0), Some(0.0), None, None].map(Cell::Rate);
        assert_eq!(rates, expected);
    }

    #[test]
    fn without_an_earlier_table_nothing_is_known() {
        let mut now = table(&[("a", 30)]);
        add(&mut now, None, 1.0);
        assert_eq!(now.rows[0].cells[2], Cell::Rate(None));
    }
}
