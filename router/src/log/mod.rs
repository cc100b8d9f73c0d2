//! The log, in `qdrouterd`'s line format.
//!
//! ```text
//! log!(…) --is_enabled?--> Record --bounded queue--> writer thread --> files, standard streams, syslog
//! ```
//!
//! # Cost
//! What isn't enabled costs one relaxed load. What is enabled is formatted by the caller (one
//! allocation, one clock read) and never waits: a line that finds the queue full is counted, and the
//! log says later how many are missing. Nothing on the path of a message logs above level trace.

mod format;
mod json;
mod level;
mod output;
mod recent;
mod settings;
mod time_format;
mod writer;

use crate::base::lock::Mutex;
use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Instant;

pub use format::Source;
pub use level::{Level, Levels, Module};
pub use recent::RecentLine;
pub use settings::{Destination, Format, ModuleSettings, Settings};
pub use time_format::TimeFormat;

use format::Record;
use recent::{Counts, Recent};
use writer::{Message, Table};

/// Lines that may wait for the writer. With the longest text of each that is 8 MiB.
const QUEUE_LINES_MAX: usize = 2048;

const _: () = assert!(QUEUE_LINES_MAX * format::TEXT_BYTES_MAX <= 8 << 20);

/// The log of the process.
static LOG: Log = Log::new();

/// Logs a line if its level is enabled for its module: `log!(Module::Server, Level::Info, "{n} shards")`.
///
/// Nothing is formatted, and the arguments aren't evaluated, if it isn't.
#[macro_export]
macro_rules! log {
    ($module:expr, $level:expr, $($text:tt)+) => {{
        let (module, level): ($crate::log::Module, $crate::log::Level) = ($module, $level);
        if $crate::log::is_enabled(module, level) {
            let source = $crate::log::Source { file: ::core::file!(), line: ::core::line!() };
            $crate::log::write(module, level, source, ::core::format_args!($($text)+));
        }
    }};
}

/// Whether lines of this level and module are written. One relaxed load.
#[inline]
#[must_use]
pub fn is_enabled(module: Module, level: Level) -> bool {
    LOG.is_enabled(module, level)
}

/// Logs a line, whether or not its level is enabled; [`log!`](crate::log!) asks first.
#[cold]
pub fn write(module: Module, level: Level, source: Source, text: fmt::Arguments<'_>) {
    LOG.write(Record::now(module, level, source, text));
}

/// Makes the settings hold from now on: opens the files, and starts the writer the first time.
///
/// Until the first call lines go to standard error, at info and above, written by their callers.
///
/// # Errors
/// A file can't be opened (the text names it), or the writer can't be started. Nothing has changed then.
pub fn apply(settings: &Settings) -> io::Result<()> {
    LOG.apply(settings)
}

/// Writes lines in this form, from the next [`apply`] on.
pub fn use_format(format: Format) {
    LOG.is_json.store(format == Format::Json, Ordering::Relaxed);
}

/// How many lines were lost so far because more was logged than could be written.
#[must_use]
pub fn dropped() -> u64 {
    LOG.dropped_in_all.load(Ordering::Relaxed)
}

/// Waits until everything logged so far is written, but not longer than `patience`: whoever reads our
/// standard error may have stopped. True if all is written.
pub fn flush(patience: Duration) -> bool {
    LOG.flush(patience)
}

/// How many lines were logged of a module so far, by level in the order of [`Level::ALL`]. Those that were dropped
/// for lack of room count, too.
#[must_use]
pub fn counts(module: Module) -> [u64; Level::ALL.len()] {
    LOG.counts.of(module)
}

/// The lines that were written last, at most `limit` of them (and never more than a thousand), the oldest first.
#[must_use]
pub fn recent(limit: usize) -> Vec<RecentLine> {
    LOG.recent.get().map_or_else(Vec::new, |recent| recent.last(limit))
}

/// A log. The process has one; tests make their own.
struct Log {
    /// By [`Module::index`], the bits of [`Levels`].
    enabled: [AtomicU8; Module::COUNT],
    /// There since the writer was started.
    queue: OnceLock<SyncSender<Message>>,
    /// One change of the settings at a time.
    changing: Mutex<()>,
    dropped: OnceLock<Arc<AtomicU64>>,
    dropped_in_all: AtomicU64,
    is_json: AtomicBool,
    recent: OnceLock<Arc<Recent>>,
    counts: Counts,
}

impl Log {
    const fn new() -> Self {
        Self {
            enabled: [const { AtomicU8::new(Levels::from(Level::Info).bits()) }; Module::COUNT],
            queue: OnceLock::new(),
            changing: Mutex::new(()),
            dropped: OnceLock::new(),
            dropped_in_all: AtomicU64::new(0),
            is_json: AtomicBool::new(false),
            recent: OnceLock::new(),
            counts: Counts::new(),
        }
    }

    #[inline]
    fn is_enabled(&self, module: Module, level: Level) -> bool {
        // Relaxed: a line more or less while the settings change does no harm.
        Levels::from_bits(self.enabled[module.index()].load(Ordering::Relaxed)).contains(level)
    }

    fn format(&self) -> Format {
        if self.is_json.load(Ordering::Relaxed) { Format::Json } else { Format::Text }
    }

    fn write(&self, record: Record) {
        self.counts.count(record.module, record.level);
        let Some(queue) = self.queue.get() else {
            if let Ok(mut table) = Table::open(&Settings::default(), self.format()) {
                table.write(&record, &mut String::new());
            }
            return;
        };
        match queue.try_send(Message::Record(record)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped_in_all.fetch_add(1, Ordering::Relaxed);
                if let Some(dropped) = self.dropped.get() {
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn apply(&self, settings: &Settings) -> io::Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let table = Table::open(settings, self.format())?;
        match self.queue.get() {
            Some(queue) => {
                let gone = || io::Error::other("the log's writer has ended");
                queue.send(Message::Table(table)).map_err(|_| gone())?;
            }
            None => {
                let (sender, receiver) = sync_channel(QUEUE_LINES_MAX);
                let dropped = Arc::clone(self.dropped.get_or_init(Arc::default));
                let recent = Arc::clone(self.recent.get_or_init(Arc::default));
                std::thread::Builder::new()
                    .name("log".to_owned())
                    .spawn(move || writer::run(table, &receiver, &dropped, &recent))?;
                self.queue.set(sender).expect("only this function sets it, one caller at a time");
            }
        }
        for (enabled, resolved) in self.enabled.iter().zip(settings.resolve()) {
            enabled.store(resolved.levels.bits(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn flush(&self, patience: Duration) -> bool {
        let Some(queue) = self.queue.get() else { return true };
        let deadline = Instant::now() + patience;
        let (done, is_done) = sync_channel(1);
        // The queue may be full: try until there is room.
        let mut request = Message::Flush(done);
        loop {
            match queue.try_send(request) {
                Ok(()) => break,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(back)) if Instant::now() < deadline => {
                    request = back;
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TrySendError::Full(_)) => return false,
            }
        }
        is_done.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Destination, Level, Levels, Log, Module, ModuleSettings, QUEUE_LINES_MAX, Record, Settings, Source,
    };
    use core::time::Duration;
    use std::path::PathBuf;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn settings(module: Module, enable: &str, path: &std::path::Path) -> ModuleSettings {
        ModuleSettings {
            module,
            enable: Levels::parse(enable).unwrap(),
            include_timestamp: Some(false),
            include_source: None,
            destination: Some(Destination::File(path.to_owned())),
        }
    }

    fn record(text: &str) -> Record {
        let source = Source { file: "a.rs", line: 1 };
        Record::now(Module::Server, Level::Info, source, format_args!("{text}"))
    }

    /// A directory that is removed in the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ringmain-log-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn read(&self, file: &str) -> String {
            std::fs::read_to_string(self.0.join(file)).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn settings_can_change_while_it_runs() {
        let scratch = Scratch::new("change");
        let log = Log::new();
        assert!(log.is_enabled(Module::Server, Level::Info) && !log.is_enabled(Module::Server, Level::Debug));
        assert!(log.flush(PATIENCE));

        let first = settings(Module::Default, "debug+", &scratch.0.join("first"));
        log.apply(&Settings { is_utc: true, time_format: None, modules: vec![first] }).unwrap();
        assert!(
            log.is_enabled(Module::Server, Level::Debug) && !log.is_enabled(Module::Server, Level::Trace)
        );
        log.write(record("one"));

        std::fs::write(scratch.0.join("second"), "kept\n").unwrap();
        let second = settings(Module::Server, "none", &scratch.0.join("second"));
        log.apply(&Settings { is_utc: true, time_format: None, modules: vec![second] }).unwrap();
        assert!(
            !log.is_enabled(Module::Server, Level::Critical) && log.is_enabled(Module::Router, Level::Info)
        );
        log.write(record("two"));
        assert!(log.flush(PATIENCE));
        assert_eq!(scratch.read("first"), "SERVER (info) one\n");
        assert_eq!(scratch.read("second"), "kept\nSERVER (info) two\n");
    }

    #[test]
    fn a_file_that_cannot_be_opened_changes_nothing() {
        let scratch = Scratch::new("missing");
        let log = Log::new();
        let path = scratch.0.join("no/such/directory/log");
        let modules = vec![settings(Module::Default, "trace+", &path)];
        let error = log.apply(&Settings { is_utc: false, time_format: None, modules }).unwrap_err();
        assert!(error.to_string().contains("no/such/directory/log"), "{error}");
        assert!(!log.is_enabled(Module::Server, Level::Trace));
    }

    /// A pipe that nobody reads stands for a terminal that is stopped: its 64 KiB are full soon.
    #[test]
    fn a_full_queue_drops_and_says_how_many() {
        let scratch = Scratch::new("full");
        let pipe = scratch.0.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        // Open for reading and writing, so that the log's open doesn't wait for a reader.
        let reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let log = Log::new();
        log.apply(&Settings {
            is_utc: true,
            time_format: None,
            modules: vec![settings(Module::Default, "info+", &pipe)],
        })
        .unwrap();
        let lines = 3 * QUEUE_LINES_MAX;
        for number in 0..lines {
            log.write(record(&format!("{number} {}", "x".repeat(100))));
        }
        assert!(!log.flush(Duration::from_millis(20)));

        let reading = std::thread::spawn(move || {
            let mut written = 0;
            for line in std::io::BufRead::lines(std::io::BufReader::new(reader)) {
                let line = line.unwrap();
                match line.strip_prefix("ERROR (warning) ") {
                    Some(report) => {
                        return (written, report.split(' ').next().unwrap().parse::<usize>().unwrap());
                    }
                    None => written += 1,
                }
            }
            unreachable!("the pipe stays open for writing")
        });
        assert!(log.flush(PATIENCE));
        let (written, dropped) = reading.join().unwrap();
        assert!(dropped > 0);
        // The report may come before the last lines of the queue, never after a line that was dropped.
        assert!(written + dropped <= lines);
    }
}
