//! `ringmain stat`: what a router says of itself, as tables, comma-separated values or JSON; once, or again and
//! again.

use core::time::Duration;
use std::io::{self, IsTerminal as _, Write};
use std::time::Instant;

use ratatui::crossterm::terminal;
use serde_json::{Map, Value as Json};
use time::OffsetDateTime;

use super::names::Called;
use super::options::StatOptions;
use super::problem::Problem;
use super::router::Router;
use super::table::{Table, printable};
use super::views::{How, View, fetch, tables};
use super::{format, rates};
use crate::client::management::Entity;

/// Clears a terminal and goes to its upper left corner (ECMA-48 ED, CUP).
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Shows what the options ask for.
///
/// # Errors
/// [`Problem`]: the router can't be asked, or the output not be written.
pub fn stat(options: &StatOptions, called: Called) -> Result<(), Problem> {
    let router = Router::connect(&options.connection, &options.target, called)?;
    let mut stat = Stat {
        options,
        called,
        view: options.show.view(),
        router,
        before: Vec::new(),
        is_first: true,
        out: io::BufWriter::new(io::stdout().lock()),
    };
    let shown = stat.run();
    let flushed = stat.out.flush().map_err(|error| Problem::of_output(&error));
    if shown.as_ref().err().is_none_or(Problem::leaves_connection) {
        stat.router.close();
    }
    shown.and(flushed)
}

/// What one router said at one time.
struct Sample {
    router_id: String,
    at: OffsetDateTime,
    clock: Instant,
    whole: Entity,
    parts: Vec<(View, Vec<Entity>)>,
}

struct Stat<'o> {
    options: &'o StatOptions,
    called: Called,
    view: View,
    router: Router,
    /// The tables shown last, of each router, and when.
    before: Vec<(String, Vec<Table>, Instant)>,
    is_first: bool,
    out: io::BufWriter<io::StdoutLock<'static>>,
}

impl Stat<'_> {
    fn run(&mut self) -> Result<(), Problem> {
        let Some(interval) = self.options.watch else { return self.show_all() };
        loop {
            match self.show_all() {
                Ok(()) => {}
                Err(Problem::Stopped) => return Ok(()),
                Err(problem) => return Err(problem),
            }
            self.out.flush().map_err(|error| Problem::of_output(&error))?;
            self.is_first = false;
            match self.router.rest(Duration::from_secs_f64(interval)) {
                // Ctrl-C is how this ends.
                Err(Problem::Stopped) => return Ok(()),
                other => other?,
            }
        }
    }

    /// Shows each of the routers that are asked for once.
    fn show_all(&mut self) -> Result<(), Problem> {
        let mut samples = Vec::new();
        if self.options.all_routers {
            for node in self.router.nodes()? {
                self.router.turn_to(&node);
                samples.push(self.sample()?);
            }
        } else {
            samples.push(self.sample()?);
        }
        self.print(&samples).map_err(|error| Problem::of_output(&error))
    }

    fn how(&self) -> How {
        How { limit: self.options.limit, is_verbose: self.options.verbose > 0, called: self.called }
    }

    fn sample(&mut self) -> Result<Sample, Problem> {
        let how = self.how();
        let whole = match self.view {
            View::General | View::Memory | View::All => self.router.whole()?,
            _ => self.router.query(Some("router"), &["id"], None)?.pop().unwrap_or_default(),
        };
        let mut parts = Vec::new();
        for part in self.view.parts() {
            let entities = if *part == View::General {
                vec![whole.clone()]
            } else {
                fetch(*part, &mut self.router, how)?
            };
            parts.push((*part, entities));
        }
        Ok(Sample {
            router_id: whole.get("id").and_then(Json::as_str).unwrap_or_default().to_owned(),
            at: OffsetDateTime::now_utc(),
            clock: Instant::now(),
            whole,
            parts,
        })
    }

    fn print(&mut self, samples: &[Sample]) -> io::Result<()> {
        if self.options.json {
            return samples.iter().try_for_each(|sample| self.print_json(sample));
        }
        let is_terminal = io::stdout().is_terminal();
        if self.options.watch.is_some() && is_terminal && !self.options.csv {
            self.out.write_all(CLEAR.as_bytes())?;
        }
        let how = self.how();
        let several = samples.len() > 1;
        for (place, sample) in samples.iter().enumerate() {
            let mut shown: Vec<Table> = Vec::new();
            for (part, entities) in &sample.parts {
                shown.extend(tables(*part, entities, &sample.whole, how));
            }
            let plain = shown.clone();
            if self.options.watch.is_some() {
                self.add_rates(&mut shown, sample);
            }
            if self.options.csv {
                self.print_csv(&shown, sample, several, place)?;
            } else if self.view == View::Log {
                self.print_log(sample)?;
            } else {
                self.print_tables(&shown, sample, several, is_terminal)?;
            }
            self.before.retain(|(id, ..)| *id != sample.router_id);
            self.before.push((sample.router_id.clone(), plain, sample.clock));
        }
        Ok(())
    }

    fn add_rates(&self, shown: &mut [Table], sample: &Sample) {
        let before = self.before.iter().find(|(id, ..)| *id == sample.router_id);
        for (place, table) in shown.iter_mut().enumerate() {
            let earlier = before.and_then(|(_, tables, _)| tables.get(place));
            let seconds =
                before.map_or(0.0, |(_, _, clock)| sample.clock.duration_since(*clock).as_secs_f64());
            rates::add(table, earlier, seconds);
        }
    }

    fn print_tables(
        &mut self,
        shown: &[Table],
        sample: &Sample,
        several: bool,
        is_terminal: bool,
    ) -> io::Result<()> {
        let width =
            if is_terminal { terminal::size().ok().map(|(columns, _)| usize::from(columns)) } else { None };
        self.heading(sample, several)?;
        for table in shown {
            table.print(&mut self.out, width)?;
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn heading(&mut self, sample: &Sample, several: bool) -> io::Result<()> {
        writeln!(self.out, "{}", format::heading_time(sample.at))?;
        let router = if several { "Router " } else { "" };
        writeln!(self.out, "{router}{}\n", printable(&sample.router_id))
    }

    fn print_csv(&mut self, shown: &[Table], sample: &Sample, several: bool, place: usize) -> io::Result<()> {
        if self.called.is_original() {
            self.heading(sample, several)?;
        }
        let time = format::machine_time(sample.at);
        let mut first: Vec<(&str, &str)> = Vec::new();
        if self.options.watch.is_some() {
            first.push(("time", &time));
        }
        if several && !self.called.is_original() {
            first.push(("router", &sample.router_id));
        }
        for table in shown {
            // Several tables have titles to be told apart by, and heads each time.
            let is_one = shown.len() == 1 && !self.called.is_original();
            if !is_one {
                writeln!(self.out, "{}", table.title)?;
            }
            table.print_csv(&mut self.out, &first, !is_one || (self.is_first && place == 0))?;
            if !is_one {
                writeln!(self.out)?;
            }
        }
        Ok(())
    }

    fn print_json(&mut self, sample: &Sample) -> io::Result<()> {
        let mut document = Map::new();
        document.insert("time".to_owned(), format::machine_time(sample.at).into());
        document.insert("router".to_owned(), sample.router_id.clone().into());
        document.insert("view".to_owned(), self.view.name().into());
        let list = |entities: &[Entity]| Json::Array(entities.iter().cloned().map(Json::Object).collect());
        let entities = match sample.parts.as_slice() {
            [(_, entities)] => list(entities),
            parts => Json::Object(
                parts.iter().map(|(view, entities)| (view.name().to_owned(), list(entities))).collect(),
            ),
        };
        document.insert("entities".to_owned(), entities);
        // One document is for reading, several are for programs: one a line.
        let is_one = self.options.watch.is_none() && !self.options.all_routers;
        let text =
            if is_one { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) };
        writeln!(self.out, "{}", text?)
    }

    /// The lines of the log as `qdstat` shows them.
    fn print_log(&mut self, sample: &Sample) -> io::Result<()> {
        for (_, lines) in &sample.parts {
            for line in lines {
                let text = |name: &str| line.get(name).and_then(Json::as_str).unwrap_or("");
                let time = line.get("time").and_then(Json::as_f64).map(format::log_time).unwrap_or_default();
                let (module, level) = (text("module"), text("level"));
                writeln!(self.out, "{time} {module} ({level}) {}", printable(text("text")))?;
            }
        }
        Ok(())
    }
}
