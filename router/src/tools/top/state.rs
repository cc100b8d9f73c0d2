//! What was seen, what of it is chosen, and in which order.

use core::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::sample::{Address, COUNTERS, Latency, Link, Sample};
use crate::base::histogram::quantile;
use crate::tools::format;
use crate::tools::rates::between;

/// How many rates of the past are kept for the curve: as many as a wide terminal has columns.
const HISTORY_MAX: usize = 300;

/// A link without credit for so long is blocked (router-protocol reference §8.13).
const BLOCKED_SECONDS: u64 = 10;

/// Which list is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tab {
    Addresses,
    Links,
    Blocked,
    Connections,
}

impl Tab {
    /// In the order of their keys.
    pub(super) const ALL: [Self; 4] = [Self::Addresses, Self::Links, Self::Blocked, Self::Connections];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Addresses => "Addresses",
            Self::Links => "Links",
            Self::Blocked => "Blocked links",
            Self::Connections => "Connections",
        }
    }

    /// The columns: their names, whether their values stand at the right, how wide they are; 0: what is left.
    pub(super) const fn columns(self) -> &'static [(&'static str, bool, u16)] {
        match self {
            Self::Addresses => &[
                ("address", false, 0),
                ("distrib", false, 11),
                ("receivers", true, 9),
                ("in/s", true, 8),
                ("out/s", true, 8),
                ("in", true, 10),
                ("out", true, 10),
            ],
            Self::Links | Self::Blocked => &[
                ("id", true, 6),
                ("conn", true, 6),
                ("dir", false, 3),
                ("address", false, 0),
                ("deliv/s", true, 8),
                ("deliv", true, 12),
                ("undel", true, 7),
                ("unsett", true, 7),
                ("credit", true, 7),
                ("blocked", true, 8),
                ("delayed", true, 7),
                ("stuck", true, 6),
            ],
            Self::Connections => &[
                ("id", true, 6),
                ("host", false, 22),
                ("container", false, 0),
                ("role", false, 12),
                ("dir", false, 3),
                ("links", true, 6),
                ("deliv/s", true, 8),
                ("uptime", true, 12),
                ("last dlv", true, 12),
            ],
        }
    }

    /// The columns that a narrow terminal does without, in the order in which they go.
    pub(super) const fn left_out_first(self) -> &'static [usize] {
        match self {
            Self::Addresses => &[6, 5, 1],
            Self::Links | Self::Blocked => &[5, 1, 10, 7, 11],
            Self::Connections => &[8, 3, 4, 5],
        }
    }

    /// The column by which it is sorted at first, from the greatest on.
    const fn first_sort(self) -> usize {
        match self {
            Self::Addresses => 3,
            Self::Links => 4,
            Self::Blocked => 9,
            Self::Connections => 6,
        }
    }

    fn place(self) -> usize {
        Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0)
    }
}

/// A value of a list.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Text(String),
    Number(u64),
    /// A number that is called by, such as an id.
    Id(String),
    /// So many a second, if it is known yet.
    Rate(Option<f64>),
    /// For how long, in seconds; `None`: not at all.
    Lasting(Option<u64>),
    Short(u64),
}

impl Value {
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) | Self::Id(text) => crate::tools::table::printable(text),
            Self::Number(number) => number.to_string(),
            Self::Rate(Some(rate)) => format::short_number(*rate),
            Self::Rate(None) | Self::Lasting(None) | Self::Short(0) => "-".to_owned(),
            Self::Lasting(Some(seconds)) => format::long_duration(*seconds),
            Self::Short(seconds) => format::short_duration(*seconds),
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(one), Self::Text(two)) => one.cmp(two),
            // Numbers by value: a shorter one is smaller.
            (Self::Id(one), Self::Id(two)) => (one.len(), one).cmp(&(two.len(), two)),
            (Self::Number(one), Self::Number(two)) | (Self::Short(one), Self::Short(two)) => one.cmp(two),
            (Self::Rate(one), Self::Rate(two)) => one.unwrap_or(-1.0).total_cmp(&two.unwrap_or(-1.0)),
            (Self::Lasting(one), Self::Lasting(two)) => one.cmp(two),
            // A column has one type.
            (_, _) => Ordering::Equal,
        }
    }
}

/// What is to be done after a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Then {
    GoOn,
    Quit,
}

/// What the screen shows.
pub(super) struct State {
    pub(super) now: Sample,
    before: Option<Sample>,
    /// Deliveries in per second, the latest last.
    pub(super) history: VecDeque<u64>,
    pub(super) tab: Tab,
    /// By tab: the column that it is sorted by, and whether from the greatest on.
    sorts: [(usize, bool); Tab::ALL.len()],
    /// The first row that is shown.
    pub(super) first_row: usize,
    /// How many rows the screen has room for.
    pub(super) page_rows: usize,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
}

impl State {
    pub(super) fn new(sample: Sample) -> Self {
        Self {
            now: sample,
            before: None,
            history: VecDeque::new(),
            tab: Tab::Addresses,
            sorts: Tab::ALL.map(|tab| (tab.first_sort(), true)),
            first_row: 0,
            page_rows: 1,
            is_paused: false,
            shows_help: false,
        }
    }

    /// Takes a new sample.
    pub(super) fn see(&mut self, sample: Sample) {
        self.before = Some(core::mem::replace(&mut self.now, sample));
        if let Some(rate) = self.rates()[0] {
            self.history.push_back(rate.round() as u64);
            if self.history.len() > HISTORY_MAX {
                self.history.pop_front();
            }
        }
    }

    /// How fast the router's counters grow, in the order of [`COUNTERS`].
    pub(super) fn rates(&self) -> [Option<f64>; COUNTERS.len()] {
        let Some(before) = &self.before else { return [None; COUNTERS.len()] };
        let seconds = self.seconds();
        core::array::from_fn(|at| between(before.whole.counters[at], self.now.whole.counters[at], seconds))
    }

    /// How long deliveries took lately, or since the start while there is no earlier sample: the name, and how many
    /// microseconds half of them and 99 in a hundred didn't exceed; `None`: there were none.
    pub(super) fn latencies(&self) -> Vec<(&str, Option<[u64; 2]>)> {
        let before = self.before.as_ref().map(|before| &before.latencies);
        let lately = |latency: &Latency| {
            let then = before.and_then(|before| before.iter().find(|other| other.name == latency.name));
            let classes = latency.classes.iter().enumerate().map(|(at, (bound, count))| {
                let then = then.and_then(|then| then.classes.get(at)).map_or(0, |(_, count)| *count);
                (*bound, count.saturating_sub(then))
            });
            let any = classes.clone().any(|(_, count)| count > 0);
            any.then(|| [500, 990].map(|of| quantile(classes.clone(), of)))
        };
        self.now.latencies.iter().map(|latency| (latency.name.as_str(), lately(latency))).collect()
    }

    fn seconds(&self) -> f64 {
        self.before.as_ref().map_or(0.0, |before| self.now.at.duration_since(before.at).as_secs_f64())
    }

    /// The column by which the list is sorted, and whether from the greatest on.
    pub(super) fn sort(&self) -> (usize, bool) {
        self.sorts[self.tab.place()]
    }

    /// The rows of the list, in order.
    pub(super) fn rows(&self) -> Vec<Vec<Value>> {
        let mut rows = match self.tab {
            Tab::Addresses => self.address_rows(),
            Tab::Links => self.link_rows(|_| true),
            Tab::Blocked => self.link_rows(is_blocked),
            Tab::Connections => self.connection_rows(),
        };
        let (column, is_down) = self.sort();
        rows.sort_by(|one, two| {
            let order = one[column].order(&two[column]);
            if is_down { order.reverse() } else { order }
        });
        rows
    }

    fn address_rows(&self) -> Vec<Vec<Value>> {
        let before: HashMap<&str, &Address> = self
            .before
            .iter()
            .flat_map(|before| &before.addresses)
            .map(|address| (address.key.as_str(), address))
            .collect();
        let seconds = self.seconds();
        let row = |address: &Address| {
            let earlier = before.get(address.key.as_str());
            let rate = |now: u64, then: fn(&Address) -> u64| {
                Value::Rate(earlier.and_then(|earlier| between(then(earlier), now, seconds)))
            };
            vec![
                Value::Text(address.address.clone()),
                Value::Text(address.distribution.clone()),
                Value::Number(address.receivers),
                rate(address.ingress, |address| address.ingress),
                rate(address.egress, |address| address.egress),
                Value::Number(address.ingress),
                Value::Number(address.egress),
            ]
        };
        self.now.addresses.iter().map(row).collect()
    }

    /// Deliveries a second of each link, by its id.
    fn link_rates(&self) -> HashMap<&str, f64> {
        let before: HashMap<&str, u64> = self
            .before
            .iter()
            .flat_map(|before| &before.links)
            .map(|link| (link.id.as_str(), link.deliveries))
            .collect();
        let seconds = self.seconds();
        let rate = |link: &'_ Link| between(*before.get(link.id.as_str())?, link.deliveries, seconds);
        self.now.links.iter().filter_map(|link| Some((link.id.as_str(), rate(link)?))).collect()
    }

    fn link_rows(&self, is_shown: fn(&Link) -> bool) -> Vec<Vec<Value>> {
        let rates = self.link_rates();
        let row = |link: &Link| {
            vec![
                Value::Id(link.id.clone()),
                Value::Id(link.connection.clone()),
                Value::Text(link.direction.clone()),
                Value::Text(link.address.clone()),
                Value::Rate(rates.get(link.id.as_str()).copied()),
                Value::Number(link.deliveries),
                Value::Number(link.undelivered),
                Value::Number(link.unsettled),
                Value::Number(link.credit),
                Value::Short(link.blocked_seconds),
                Value::Number(link.delayed),
                Value::Number(link.stuck),
            ]
        };
        self.now.links.iter().filter(|link| is_shown(link)).map(row).collect()
    }

    fn connection_rows(&self) -> Vec<Vec<Value>> {
        let rates = self.link_rates();
        let mut sums: HashMap<&str, (u64, Option<f64>)> = HashMap::new();
        for link in &self.now.links {
            let (links, sum) = sums.entry(&link.connection).or_default();
            *links += 1;
            if let Some(rate) = rates.get(link.id.as_str()) {
                *sum = Some(sum.unwrap_or(0.0) + rate);
            }
        }
        let row = |connection: &super::sample::Connection| {
            let (links, rate) = sums.get(connection.id.as_str()).copied().unwrap_or_default();
            vec![
                Value::Id(connection.id.clone()),
                Value::Text(connection.host.clone()),
                Value::Text(connection.container.clone()),
                Value::Text(connection.role.clone()),
                Value::Text(connection.direction.clone()),
                Value::Number(links),
                Value::Rate(rate),
                Value::Lasting(Some(connection.uptime_seconds)),
                Value::Lasting(connection.idle_seconds),
            ]
        };
        self.now.connections.iter().map(row).collect()
    }

    /// Does what a key is for.
    pub(super) fn press(&mut self, key: KeyEvent) -> Then {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Then::Quit;
        }
        // Any key takes the help away.
        if core::mem::take(&mut self.shows_help) && key.code != KeyCode::Char('q') {
            return Then::GoOn;
        }
        let columns = self.tab.columns().len();
        let (column, is_down) = &mut self.sorts[self.tab.place()];
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Then::Quit,
            KeyCode::Char('?' | 'h') => self.shows_help = true,
            KeyCode::Char(' ' | 'p') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') | KeyCode::Right => *column = (*column + 1) % columns,
            KeyCode::Char('S') | KeyCode::Left => *column = (*column + columns - 1) % columns,
            KeyCode::Char('r') => *is_down = !*is_down,
            KeyCode::Char(digit @ '1'..='4') => self.turn_to(digit as usize - '1' as usize),
            KeyCode::Tab => self.turn_to(self.tab.place() + 1),
            KeyCode::BackTab => self.turn_to(self.tab.place() + Tab::ALL.len() - 1),
            KeyCode::Down | KeyCode::Char('j') => self.first_row += 1,
            KeyCode::Up | KeyCode::Char('k') => self.first_row = self.first_row.saturating_sub(1),
            KeyCode::PageDown => self.first_row += self.page_rows,
            KeyCode::PageUp => self.first_row = self.first_row.saturating_sub(self.page_rows),
            KeyCode::Home => self.first_row = 0,
            _ => {}
        }
        Then::GoOn
    }

    fn turn_to(&mut self, place: usize) {
        self.tab = Tab::ALL[place % Tab::ALL.len()];
        self.first_row = 0;
    }
}

fn is_blocked(link: &Link) -> bool {
    link.direction == "out" && link.blocked_seconds >= BLOCKED_SECONDS
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Latency, Sample, State, Tab, Then, Value};
    use crate::client::management::Entity;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use serde_json::json;
    use std::time::{Duration, Instant};

    fn entity(json: serde_json::Value) -> Entity {
        json.as_object().unwrap().clone()
    }

    /// A router with two addresses, `seconds` after the start, to which 100 and 10 deliveries a second go.
    pub(in super::super) fn sample(start: Instant, seconds: u64) -> Sample {
        let whole = json!({"id": "ROUTER_A", "version": "9.8.7", "mode": "standalone", "uptimeSeconds": 83 + seconds,
            "memoryUsage": 5 << 20, "connectionCount": 2, "linkCount": 3, "addrCount": 2, "linksBlocked": 1,
            "deliveriesIngress": 110 * seconds, "deliveriesEgress": 110 * seconds,
            "acceptedDeliveries": 110 * seconds});
        let address = |name: &str, rate: u64| {
            entity(json!({"name": name, "distribution": "balanced", "subscriberCount": 1,
                "deliveriesIngress": rate * seconds, "deliveriesEgress": rate * seconds}))
        };
        let link = |id: &str, direction: &str, of: &str, rate: u64, blocked: u64| {
            entity(json!({"identity": id, "connectionId": "1", "linkDir": direction, "owningAddr": of,
                "deliveryCount": rate * seconds, "creditAvailable": 250, "zeroCreditSeconds": blocked}))
        };
        let connection = |id: &str, container: &str| {
            entity(
                json!({"identity": id, "host": "127.0.0.1:40000", "container": container, "role": "normal",
                "dir": "in", "uptimeSeconds": 60 + seconds}),
            )
        };
        Sample::of(
            start + Duration::from_secs(seconds),
            &entity(whole),
            &[address("M0slow", 10), address("M0fast", 100)],
            &[
                link("9", "in", "M0fast", 100, 0),
                link("10", "out", "M0fast", 100, 12),
                link("11", "in", "M0slow", 10, 60),
            ],
            &[connection("1", "producer"), connection("2", "idler")],
        )
    }

    #[test]
    fn latency_is_that_of_the_last_interval() {
        let mut state = state();
        let with = |counts: [u64; 3]| Sample {
            latencies: vec![Latency {
                name: "forward".to_owned(),
                classes: [Some(10), Some(1000), None].into_iter().zip(counts).collect(),
            }],
            ..sample(Instant::now(), 3)
        };
        state.see(with([1000, 0, 0]));
        assert_eq!(state.latencies(), [("forward", Some([10, 10]))]);
        state.see(with([1000, 100, 0]));
        assert_eq!(state.latencies(), [("forward", Some([1000, 1000]))]);
        state.see(with([1000, 100, 0]));
        assert_eq!(state.latencies(), [("forward", None)]);
    }

    /// The same after two seconds.
    pub(in super::super) fn state() -> State {
        let start = Instant::now();
        let mut state = State::new(sample(start, 0));
        state.see(sample(start, 2));
        state
    }

    fn press(state: &mut State, keys: &str) {
        for key in keys.chars() {
            assert_eq!(
                state.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE)),
                Then::GoOn,
                "{key}"
            );
        }
    }

    fn column(state: &State, at: usize) -> Vec<String> {
        state.rows().iter().map(|row| row[at].shown()).collect()
    }

    #[test]
    fn the_busiest_is_on_top() {
        let state = state();
        assert_eq!(state.rates()[..2], [Some(110.0), Some(110.0)]);
        assert_eq!(state.history, [110]);
        assert_eq!(column(&state, 0), ["fast", "slow"]);
        assert_eq!(column(&state, 3), ["100", "10"]);
    }

    #[test]
    fn keys_choose_lists_and_orders() {
        let mut state = state();
        press(&mut state, "r");
        assert_eq!(column(&state, 0), ["slow", "fast"]);
        press(&mut state, "2SSSS");
        assert_eq!((state.tab, state.sort()), (Tab::Links, (0, true)));
        // By number, not by letter.
        assert_eq!(column(&state, 0), ["11", "10", "9"]);
        press(&mut state, "3");
        // Of two without credit only the receiver is blocked.
        assert_eq!(column(&state, 0), ["10"]);
        press(&mut state, "4");
        assert_eq!(column(&state, 2), ["producer", "idler"]);
        assert_eq!(state.rows()[0][6], Value::Rate(Some(210.0)));
        assert_eq!(column(&state, 8), ["-", "-"]);
    }

    #[test]
    fn help_goes_with_any_key_and_q_quits() {
        let mut state = state();
        press(&mut state, "?");
        assert!(state.shows_help);
        press(&mut state, "2");
        assert!(!state.shows_help && state.tab == Tab::Addresses);
        press(&mut state, " ");
        assert!(state.is_paused);
        let q = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        assert_eq!(state.press(q), Then::Quit);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.press(interrupt), Then::Quit);
    }

    #[test]
    fn without_an_earlier_sample_no_rate_is_claimed() {
        let state = State::new(sample(Instant::now(), 5));
        assert_eq!(state.rates()[0], None);
        assert_eq!(column(&state, 3), ["-", "-"]);
    }
}
