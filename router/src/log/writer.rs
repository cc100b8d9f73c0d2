//! The thread that writes: it alone waits for files and terminals.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use super::format::{Record, Source};
use super::json;
use super::level::{Level, Module};
use super::output::Output;
use super::recent::Recent;
use super::settings::{Destination, Format, Settings};
use super::time_format::TimeFormat;

/// What the other threads send to the writer.
#[derive(Debug)]
pub(super) enum Message {
    /// Write this.
    Record(Record),
    /// Write as this says from now on.
    Table(Table),
    /// Say when everything before this has been written.
    Flush(SyncSender<()>),
}

/// How each module's lines look and where they go.
#[derive(Debug)]
pub(super) struct Table {
    format: Format,
    is_utc: bool,
    time_format: Option<TimeFormat>,
    rows: Vec<Row>,
    outputs: Vec<Output>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    has_timestamp: bool,
    has_source: bool,
    output: usize,
}

impl Table {
    /// Opens what the settings name, each destination once.
    ///
    /// # Errors
    /// A file can't be opened; the error's text names it.
    pub(super) fn open(settings: &Settings, format: Format) -> io::Result<Self> {
        let mut destinations: Vec<Destination> = Vec::new();
        let mut outputs = Vec::new();
        let mut rows = Vec::new();
        for resolved in settings.resolve() {
            let known = destinations.iter().position(|known| *known == resolved.destination);
            let output = match known {
                Some(output) => output,
                None => {
                    outputs.push(Output::open(&resolved.destination)?);
                    destinations.push(resolved.destination);
                    outputs.len() - 1
                }
            };
            rows.push(Row { has_timestamp: resolved.has_timestamp, has_source: resolved.has_source, output });
        }
        let time_format = settings.time_format.clone();
        Ok(Self { format, is_utc: settings.is_utc, time_format, rows, outputs })
    }

    /// Writes one record. `line` is a buffer to use again.
    pub(super) fn write(&mut self, record: &Record, line: &mut String) {
        let row = self.rows[record.module.index()];
        let output = &mut self.outputs[row.output];
        line.clear();
        if output.takes_lines() {
            match self.format {
                Format::Text => {
                    let time_format = self.time_format.as_ref();
                    record.write(line, row.has_timestamp, self.is_utc, time_format, row.has_source);
                }
                Format::Json => {
                    json::write(record, line, row.has_timestamp, self.is_utc, row.has_source);
                }
            }
        }
        output.write(record, line);
    }
}

/// The writer's loop; it ends when nobody can send any more. `dropped` counts what didn't fit the queue.
/// Lines are kept in `recent`.
pub(super) fn run(mut table: Table, queue: &Receiver<Message>, dropped: &AtomicU64, recent: &Recent) {
    let mut line = String::new();
    while let Ok(message) = queue.recv() {
        match message {
            Message::Record(record) => {
                // First, so that management shows what whoever reads the output has seen.
                recent.keep(record.clone());
                table.write(&record, &mut line);
            }
            Message::Table(new) => table = new,
            Message::Flush(done) => {
                report_dropped(&mut table, dropped, &mut line);
                // Whoever asked may have stopped waiting.
                let _gone = done.try_send(());
                continue;
            }
        }
        report_dropped(&mut table, dropped, &mut line);
    }
}

fn report_dropped(table: &mut Table, dropped: &AtomicU64, line: &mut String) {
    // A load first: this runs for every line, and the exchange would take the counter from the callers.
    if dropped.load(Ordering::Relaxed) == 0 {
        return;
    }
    let count = dropped.swap(0, Ordering::Relaxed);
    let source = Source { file: file!(), line: line!() };
    let text = format_args!("{count} lines are missing here: more was logged than could be written");
    table.write(&Record::now(Module::Error, Level::Warning, source, text), line);
}
