//! The comparison tables.

use std::fmt::Write as _;

use super::targets;
use crate::metric::{Metric, short};
use crate::result::{Outcome, Report};
use crate::stats::Spread;

/// The figures that are also given as a ratio to the plain forwarder's.
const RATIOS: [(Metric, &str); 3] =
    [(Metric::CpuPerMessage, "CPU × fwd"), (Metric::P50, "p50 × fwd"), (Metric::P99, "p99 × fwd")];

/// What it is written for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// A terminal.
    Text,
    /// Markdown.
    Markdown,
}

/// Rows and columns of text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// The headings.
    pub head: Vec<String>,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

/// The table of one scenario: a row for each target, a column for each figure.
pub fn of_scenario(report: &Report, scenario: &str) -> Table {
    let outcomes: Vec<&Outcome> =
        report.outcomes_of(scenario).filter(|outcome| outcome.has_figures()).collect();
    let mut metrics: Vec<Metric> = outcomes
        .iter()
        .flat_map(|outcome| &outcome.rounds)
        .flat_map(|figures| figures.keys().copied())
        .collect();
    metrics.sort_unstable();
    metrics.dedup();
    let ratios: Vec<(Metric, &str)> = RATIOS
        .into_iter()
        .filter(|(metric, _)| {
            outcomes.iter().any(|outcome| outcome.against_forwarder(*metric, report).is_some())
        })
        .collect();
    let mut head = vec!["target".to_owned()];
    head.extend(metrics.iter().map(|metric| metric.title().to_owned()));
    head.extend(ratios.iter().map(|(_, title)| (*title).to_owned()));
    let rows = outcomes
        .iter()
        .map(|outcome| {
            let mut row = vec![outcome.target.clone()];
            row.extend(metrics.iter().map(|metric| cell(outcome.spread(*metric))));
            row.extend(ratios.iter().map(|(metric, _)| {
                outcome.against_forwarder(*metric, report).map_or_else(
                    || "-".to_owned(),
                    |ratio| format!("{:.2}x{}", ratio.median, plus_minus(&ratio)),
                )
            }));
            row
        })
        .collect();
    Table { head, rows }
}

fn cell(spread: Option<Spread>) -> String {
    spread.map_or_else(|| "-".to_owned(), |spread| format!("{}{}", short(spread.median), plus_minus(&spread)))
}

/// How far the runs lie apart, if there were several and they do.
fn plus_minus(spread: &Spread) -> String {
    if spread.runs < 2 || spread.median == 0.0 {
        String::new()
    } else {
        format!(" ±{:.0}%", spread.relative() * 100.0)
    }
}

impl Table {
    /// As text or Markdown.
    pub fn render(&self, style: Style) -> String {
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = self.rows.iter().chain([&self.head]).filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let line = |row: &[String]| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            match style {
                Style::Text => format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end()),
                Style::Markdown => format!("| {} |\n", cells.collect::<Vec<_>>().join(" | ")),
            }
        };
        let mut text = line(&self.head);
        if style == Style::Markdown {
            let rule = widths.iter().enumerate().map(|(column, width)| {
                if column == 0 {
                    "-".repeat(*width)
                } else {
                    format!("{}:", "-".repeat(width.saturating_sub(1)))
                }
            });
            text.push_str(&format!("| {} |\n", rule.collect::<Vec<_>>().join(" | ")));
        }
        for row in &self.rows {
            text.push_str(&line(row));
        }
        text
    }
}

/// The lines about machine and settings.
pub fn about(report: &Report) -> Vec<String> {
    let machine = &report.machine;
    let rounds = report.outcomes.iter().map(|outcome| outcome.rounds.len()).max().unwrap_or(0);
    let mut lines = vec![
        format!(
            "{} UTC, {:.0} s, {rounds} rounds; medians, ± half the range",
            report.started, report.seconds
        ),
        format!(
            "{}, kernel {}; targets on CPU {}, generator on CPU {}",
            machine.cpu, machine.kernel, report.target_cpus, report.generator_cpus
        ),
    ];
    for target in &report.targets {
        lines.push(format!("{}: {} ({})", target.name, target.version, target.how));
    }
    for (name, why) in &report.left_out {
        lines.push(format!("{name} is left out: {why}"));
    }
    lines.extend(report.notes.iter().map(|note| format!("Note: {note}")));
    lines
}

/// What went wrong in a scenario.
pub fn failures(report: &Report, scenario: &str) -> Vec<String> {
    report
        .outcomes_of(scenario)
        .flat_map(|outcome| outcome.failures.iter().map(|why| format!("{}: {why}", outcome.target)))
        .collect()
}

/// How the figures are to be read.
pub const LEGEND: &str = "CPU is the target's, all its threads; where it is well below 100 % of each of its CPUs under \
throughput, the generator or the waiting for each other was the limit. A message is one received copy (a round trip for \
requests). 'itself' is the generator without a target: the ceiling. '× fwd' is the ratio to the better of the plain \
forwarders in the same round. Open loops are timed from when each message was to be sent. 'missing' is what had not arrived 3 s \
after the last was sent.";

/// The whole report.
pub fn document(report: &Report, style: Style) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    match style {
        Style::Text => {
            let _ = writeln!(text, "{}\n\n{LEGEND}", about(report).join("\n"));
        }
        Style::Markdown => {
            let _ = writeln!(text, "# Measurements\n");
            for line in about(report) {
                let _ = writeln!(text, "- {line}");
            }
            let _ = writeln!(text, "\n{LEGEND}");
        }
    }
    let aims = targets::table(report);
    if !aims.rows.is_empty() {
        text.push('\n');
        text.push_str(&aims.render(style));
    }
    for (scenario, title) in report.scenarios() {
        let _ = match style {
            Style::Text => write!(text, "\n{scenario}: {title}\n"),
            Style::Markdown => write!(text, "\n## {scenario}: {title}\n\n"),
        };
        let table = of_scenario(report, scenario);
        if !table.rows.is_empty() {
            text.push_str(&table.render(style));
        }
        for failure in failures(report, scenario) {
            let _ = match style {
                Style::Text => writeln!(text, "  ! {failure}"),
                Style::Markdown => writeln!(text, "\n*{failure}*"),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Style, document, of_scenario};
    use crate::result::tests::report;

    #[test]
    fn a_row_for_each_target() {
        let report = report(&[("ringmain", &[0.5, 0.52, 0.48]), ("forwarder-epoll", &[0.25, 0.25, 0.25])]);
        let table = of_scenario(&report, "pair-1");
        assert_eq!(table.head, ["target", "CPU µs/msg", "CPU × fwd"]);
        assert_eq!(table.rows[0], ["ringmain", "0.50 ±4%", "2.00x ±4%"]);
        assert_eq!(table.rows[1], ["forwarder-epoll", "0.25 ±0%", "-"]);
        let text = document(&report, Style::Text);
        assert!(text.contains("pair-1: 1 pair\n  target           CPU µs/msg  CPU × fwd\n"), "{text}");
        let markdown = document(&report, Style::Markdown);
        assert!(
            markdown
                .contains("\n| target          | CPU µs/msg | CPU × fwd |\n| --------------- | ---------: |"),
            "{markdown}"
        );
    }
}
