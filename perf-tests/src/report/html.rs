//! One page that shows all of a run, with its pictures inside.

use std::fmt::Write as _;

use super::table::{LEGEND, Table, about, failures, of_scenario};
use super::targets;
use crate::result::Report;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:75em;margin:2em auto;padding:0 1em}\
h1{font-size:1.6em}h2{font-size:1.15em;margin-top:2.2em}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:.25em .8em;text-align:right;border-bottom:1px solid #e4e4e4;white-space:nowrap}\
th:first-child,td:first-child{text-align:left}th{font-weight:600;color:#555}\
tr.ringmain td{background:#fff6ec;font-weight:600}tr.itself td{color:#888}\
.scroll{overflow-x:auto}.failure{color:#a40000}svg{max-width:100%;height:auto;margin-top:.8em}\
ul{padding-left:1.2em}.note{background:#fff3cd;padding:.1em .5em}";

/// The page; it needs nothing beside itself.
pub fn page(report: &Report, pictures: &[(String, String)]) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>ringmain-perf, {}</title><style>{STYLE}</style></head><body>\n\
         <h1>Measurements</h1>\n<ul>\n",
        escape(&report.started)
    );
    // Writing to a string can't fail.
    for line in about(report) {
        let class = if line.starts_with("Note:") { " class=\"note\"" } else { "" };
        let _ = writeln!(html, "<li{class}>{}</li>", escape(&line));
    }
    let _ = writeln!(html, "</ul>\n<p>{}</p>", escape(LEGEND));
    let aims = targets::table(report);
    if !aims.rows.is_empty() {
        html.push_str("<h2>Targets of the hot path</h2>\n");
        push_table(&mut html, &aims);
    }
    for (scenario, title) in report.scenarios() {
        let name = escape(scenario);
        let _ = writeln!(html, "<h2 id=\"{name}\">{name}: {}</h2>", escape(title));
        let table = of_scenario(report, scenario);
        if !table.rows.is_empty() {
            push_table(&mut html, &table);
        }
        for failure in failures(report, scenario) {
            let _ = writeln!(html, "<p class=\"failure\">{}</p>", escape(&failure));
        }
        if let Some((_, picture)) = pictures.iter().find(|(of, _)| of == scenario) {
            let _ = writeln!(html, "{picture}");
        }
    }
    let command = report.command.join(" ");
    let _ = writeln!(html, "<p>Repeat it with: <code>{}</code></p>\n</body></html>", escape(&command));
    html
}

fn push_table(html: &mut String, table: &Table) {
    html.push_str("<div class=\"scroll\"><table><tr>");
    for heading in &table.head {
        let _ = write!(html, "<th>{}</th>", escape(heading));
    }
    html.push_str("</tr>\n");
    for row in &table.rows {
        let class = row.first().map_or("", String::as_str);
        let _ = write!(html, "<tr class=\"{}\">", escape(class));
        for cell in row {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table></div>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::page;
    use crate::result::tests::report;

    #[test]
    fn the_page_stands_alone_and_trusts_no_text() {
        let mut report = report(&[("ringmain", &[1.0])]);
        report.left_out.push(("<script>".to_owned(), "a & b".to_owned()));
        let html = page(&report, &[("pair-1".to_owned(), "<svg></svg>".to_owned())]);
        assert!(html.contains("&lt;script&gt; is left out: a &amp; b") && !html.contains("<script"));
        assert!(html.contains("<tr class=\"ringmain\">") && html.contains("<svg></svg>"));
        assert!(!html.contains("href=") && !html.contains("src="));
    }
}
