//! The screen.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Cell, Clear, Paragraph, RenderDirection, Row, Sparkline, Table};

use super::sample::COUNTERS;
use super::state::{State, Tab};
use crate::tools::format;

const FAINT: Style = Style::new().fg(Color::DarkGray);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// The least that is left for the column that takes what others don't need.
const FLEXIBLE_MIN: u16 = 16;

const KEYS: &str = " 1-4 lists   s/S sort   r reverse   space pause   ? help   q quit";

const HELP: [(&str, &str); 8] = [
    ("1 2 3 4, Tab", "addresses, links, blocked links, connections"),
    ("s S, arrows", "sort by the next or previous column"),
    ("r", "turn the order round"),
    ("up down, j k", "move by a row"),
    ("Page Up, Down", "move by a page; Home: to the first row"),
    ("space", "stand still, or go on"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
];

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let [title, facts, latency, rates, curve, tabs, list, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(u16::from(!state.now.latencies.is_empty())),
        Constraint::Length(2),
        Constraint::Length(3),
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(title_line(state), title);
    frame.render_widget(facts_line(state), facts);
    frame.render_widget(latency_line(state), latency);
    draw_rates(frame, state, rates);
    draw_curve(frame, state, curve);
    frame.render_widget(tabs_line(state), tabs);
    draw_list(frame, state, list);
    frame.render_widget(Paragraph::new(KEYS).style(FAINT), keys);
    if state.shows_help {
        draw_help(frame);
    }
}

fn title_line(state: &State) -> Line<'static> {
    let whole = &state.now.whole;
    let mut spans = vec![
        Span::styled(format!(" {}", whole.id), STRONG),
        Span::styled(format!("  {} {}", whole.mode, whole.version), FAINT),
        Span::raw(format!("  up {}", format::long_duration(whole.uptime_seconds))),
        Span::raw(format!("  memory {}", format::bytes(whole.memory))),
    ];
    if state.is_paused {
        spans.push(Span::styled("  PAUSED", ALARM));
    }
    Line::from(spans)
}

fn facts_line(state: &State) -> Line<'static> {
    let whole = &state.now.whole;
    let mut spans = vec![Span::raw(format!(
        " connections {}   links {}   addresses {}   ",
        whole.connections, whole.links, whole.addresses
    ))];
    let alarm = |number: u64| if number > 0 { ALARM } else { Style::new() };
    spans.push(Span::styled(format!("blocked links {}", whole.blocked_links), alarm(whole.blocked_links)));
    spans.push(Span::raw("   "));
    spans.push(Span::styled(format!("stuck deliveries {}", whole.stuck), alarm(whole.stuck)));
    Line::from(spans)
}

/// How long deliveries took lately: what half of them and 99 in a hundred didn't exceed.
fn latency_line(state: &State) -> Line<'static> {
    let mut spans = vec![Span::styled(" latency", FAINT)];
    for (name, quantiles) in state.latencies() {
        let shown = match quantiles {
            Some(quantiles) => {
                let [half, most] = quantiles.map(format::microseconds);
                format!("half ≤ {half}  99 % ≤ {most}")
            }
            None => "-".to_owned(),
        };
        let name = match name {
            "forward" => "through the router",
            "settle" => "until settled",
            other => other,
        };
        spans.push(Span::styled(format!("  {name} "), FAINT));
        spans.push(Span::styled(shown, STRONG));
    }
    Line::from(spans)
}

/// The names of the counters, and below them how fast each grows.
fn draw_rates(frame: &mut Frame<'_>, state: &State, area: Rect) {
    // Each name with "/s", and blanks before it.
    let wide = COUNTERS.map(|(name, ..)| u16::try_from(name.len() + 4).unwrap_or(16).max(9));
    let is_wide = wide.iter().sum::<u16>() <= area.width;
    let widths = if is_wide { wide } else { wide.map(|_| area.width / COUNTERS.len() as u16) };
    let widths = widths.map(Constraint::Length);
    let right = |text: String| Cell::from(Text::from(text).alignment(Alignment::Right));
    let names =
        COUNTERS.iter().map(|(name, short, _)| right(format!("{}/s", if is_wide { name } else { short })));
    let rates = state.rates();
    let values = rates.iter().map(|rate| right(rate.map_or_else(|| "-".to_owned(), format::short_number)));
    let rows = [Row::new(names).style(FAINT), Row::new(values).style(STRONG)];
    frame.render_widget(Table::new(rows, widths).column_spacing(0), area);
}

/// Deliveries in per second, the latest at the right.
fn draw_curve(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let shown = usize::from(area.width).min(state.history.len());
    let data: Vec<u64> = state.history.iter().rev().take(shown).copied().collect();
    let curve = Sparkline::default()
        .data(data)
        .direction(RenderDirection::RightToLeft)
        .style(Style::new().fg(Color::Cyan));
    frame.render_widget(curve, area);
}

fn tabs_line(state: &State) -> Line<'static> {
    let mut spans = Vec::new();
    for (number, tab) in (1..).zip(Tab::ALL) {
        let style = if tab == state.tab { STRONG.add_modifier(Modifier::REVERSED) } else { FAINT };
        spans.push(Span::raw(" "));
        spans.push(Span::styled(format!(" {number} {} ", tab.title()), style));
    }
    Line::from(spans)
}

fn draw_list(frame: &mut Frame<'_>, state: &mut State, area: Rect) {
    let columns = state.tab.columns();
    let (sorted, is_down) = state.sort();
    let rows = state.rows();
    state.page_rows = usize::from(area.height.saturating_sub(1)).max(1);
    state.first_row = state.first_row.min(rows.len().saturating_sub(state.page_rows));
    let aligned = |text: String, is_number: bool| {
        let alignment = if is_number { Alignment::Right } else { Alignment::Left };
        Cell::from(Text::from(text).alignment(alignment))
    };
    let heads = columns.iter().enumerate().map(|(at, (name, is_number, _))| {
        let mark = if is_down { '▼' } else { '▲' };
        let text = if at == sorted { format!("{name}{mark}") } else { (*name).to_owned() };
        aligned(text, *is_number).style(if at == sorted { STRONG } else { FAINT })
    });
    let widths: Vec<u16> = columns
        .iter()
        .map(|(name, _, width)| match width {
            0 => FLEXIBLE_MIN,
            // Room for the mark behind the name.
            width => (*width).max(u16::try_from(name.len() + 1).unwrap_or(*width)),
        })
        .collect();
    let kept = kept(state.tab, &widths, sorted, area.width);
    let heads: Vec<_> = heads.collect();
    let heads = kept.iter().map(|at| heads[*at].clone());
    let shown = rows
        .iter()
        .skip(state.first_row)
        .take(state.page_rows)
        .map(|row| Row::new(kept.iter().map(|at| aligned(row[*at].shown(), columns[*at].1))));
    let widths = kept.iter().map(|at| match columns[*at].2 {
        0 => Constraint::Min(FLEXIBLE_MIN),
        _ => Constraint::Length(widths[*at]),
    });
    let table = Table::new(shown.collect::<Vec<_>>(), widths.collect::<Vec<_>>()).header(Row::new(heads));
    frame.render_widget(table, area);
    if rows.is_empty() && area.height > 1 {
        let none = match state.tab {
            Tab::Addresses => " no address is in use",
            Tab::Links => " no link is attached",
            Tab::Blocked => " no link has been without credit for ten seconds: good",
            Tab::Connections => " nobody is connected",
        };
        let below = Rect { y: area.y + 1, height: 1, ..area };
        frame.render_widget(Paragraph::new(none).style(FAINT), below);
    }
}

/// The columns for which the terminal is wide enough. The one that the list is sorted by always stays.
fn kept(tab: Tab, widths: &[u16], sorted: usize, width: u16) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..widths.len()).collect();
    let needed = |kept: &[usize]| kept.iter().map(|at| widths[*at] + 1).sum::<u16>().saturating_sub(1);
    for least in tab.left_out_first().iter().filter(|least| **least != sorted) {
        if needed(&kept) > width {
            kept.retain(|at| at != least);
        }
    }
    kept
}

fn draw_help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let width = area.width.min(66);
    let height = area.height.min(HELP.len() as u16 + 2);
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let line = |(keys, what): &(&'static str, &'static str)| {
        Line::from(vec![Span::styled(format!(" {keys:<15}"), STRONG), Span::raw(*what)])
    };
    let lines: Vec<Line<'_>> = HELP.iter().map(line).collect();
    frame.render_widget(Clear, place);
    let block = Block::new().borders(Borders::ALL).title(" Keys ");
    frame.render_widget(Paragraph::new(lines).block(block), place);
}

#[cfg(test)]
mod tests {
    use super::draw;
    use crate::tools::top::state::State;
    use crate::tools::top::state::tests::{sample, state};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use std::time::Instant;

    fn screen(state: &mut State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    fn press(state: &mut State, key: char) {
        state.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
    }

    #[test]
    fn the_screen_tells_what_the_router_does() {
        let mut state = state();
        let lines = screen(&mut state, 100, 20);
        let all = lines.join("\n");
        assert!(lines[0].contains("ROUTER_A") && lines[0].contains("up 000:00:01:25"), "{all}");
        assert!(lines[0].contains("memory 5.0 MiB"), "{all}");
        assert!(lines[1].contains("connections 2") && lines[1].contains("blocked links 1"), "{all}");
        assert!(lines[3].split_whitespace().take(3).all(|rate| rate == "110"), "{all}");
        let head = lines.iter().position(|line| line.contains("in/s▼")).unwrap();
        assert!(lines[head + 1].starts_with("fast") && lines[head + 2].starts_with("slow"), "{all}");
        // Numbers end where the names of their columns do.
        let end_of =
            |line: &str, text: &str| line[..line.find(text).unwrap()].chars().count() + text.chars().count();
        assert_eq!(end_of(&lines[head], "in/s▼"), end_of(&lines[head + 1], " 100"), "{all}");
        assert!(lines.last().unwrap().contains("q quit"), "{all}");
    }

    #[test]
    fn each_list_has_its_columns() {
        let mut state = state();
        for (key, column) in [('2', "undel"), ('3', "blocked▼"), ('4', "container"), ('1', "receivers")] {
            press(&mut state, key);
            let all = screen(&mut state, 120, 20).join("\n");
            assert!(all.contains(column), "{all}");
        }
        press(&mut state, '3');
        assert!(screen(&mut state, 120, 20).join("\n").contains("00:00:12"));
    }

    #[test]
    fn help_lies_over_it() {
        let mut state = state();
        press(&mut state, '?');
        let all = screen(&mut state, 100, 24).join("\n");
        assert!(all.contains("Keys") && all.contains("turn the order round"), "{all}");
    }

    /// At 80 columns every heading that is there is whole.
    #[test]
    fn headings_are_whole_on_a_narrow_terminal() {
        let mut state = state();
        for (key, names) in [
            ('1', "address distrib receivers in/s▼ out/s in out"),
            ('2', "id dir address deliv/s▼ undel unsett credit blocked stuck"),
            ('3', "id dir address deliv/s undel unsett credit blocked▼ stuck"),
            ('4', "id host container dir links deliv/s▼ uptime"),
        ] {
            press(&mut state, key);
            let lines = screen(&mut state, 80, 24);
            let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(lines.iter().any(|line| words(line) == names), "{}", lines.join("\n"));
            let rates = "in/s out/s acc/s rej/s rel/s mod/s presett/s drop/s";
            assert!(lines.iter().any(|line| words(line) == rates), "{}", lines.join("\n"));
        }
    }

    /// However small the terminal: nothing panics.
    #[test]
    fn any_size_will_do() {
        let mut state = State::new(sample(Instant::now(), 0));
        state.shows_help = true;
        for (width, height) in [(1, 1), (10, 3), (40, 10), (300, 100)] {
            screen(&mut state, width, height);
        }
    }

    #[test]
    fn lists_move() {
        let mut state = state();
        press(&mut state, '2');
        press(&mut state, 'j');
        let lines = screen(&mut state, 120, 12);
        assert_eq!(state.first_row, 1, "{}", lines.join("\n"));
        press(&mut state, 'j');
        press(&mut state, 'j');
        press(&mut state, 'j');
        screen(&mut state, 120, 12);
        // 12 lines have room for two rows of the three.
        assert_eq!(state.first_row, 1);
    }
}
