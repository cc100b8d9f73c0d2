//! A run's report, for people and for programs.

mod curves;
mod html;
mod table;
mod targets;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use hdrhistogram::Histogram;

use crate::result::{Report, hgrm};

/// The report as text for the terminal.
pub fn text(report: &Report) -> String {
    table::document(report, table::Style::Text)
}

/// Writes all of a report into `folder`: `report.json`, `report.txt`, `report.md`, `report.html`, a `.svg` for
/// each scenario with latencies, and the `.hgrm` files.
///
/// # Errors
/// The folder can't be written to.
pub fn write(
    report: &Report,
    latencies: &BTreeMap<(String, String), Histogram<u64>>,
    folder: &Path,
) -> Result<()> {
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
    };
    fs::create_dir_all(folder)?;
    put("report.json", &serde_json::to_string_pretty(report)?)?;
    for ((scenario, target), latencies) in latencies {
        put(&format!("{}.hgrm", file_name(&format!("{scenario}-{target}"))), &hgrm(latencies))?;
    }
    write_views(report, folder)
}

/// Writes what is made from `report.json` alone.
///
/// # Errors
/// The folder can't be written to.
pub fn write_views(report: &Report, folder: &Path) -> Result<()> {
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
    };
    put("report.txt", &table::document(report, table::Style::Text))?;
    put("report.md", &table::document(report, table::Style::Markdown))?;
    let mut pictures = Vec::new();
    for (scenario, title) in report.scenarios() {
        if let Some(picture) = curves::picture(report, scenario, title)? {
            put(&format!("{}.svg", file_name(scenario)), &picture)?;
            pictures.push((scenario.to_owned(), picture));
        }
    }
    put("report.html", &html::page(report, &pictures))
}

/// What a file may be called.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' }).collect()
}
