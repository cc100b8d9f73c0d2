//! What is wrong with a configuration: every fault with its file and line.

use core::fmt;

use super::features::Feature;

/// The line of what is in no file, because management made it.
pub(crate) const BY_MANAGEMENT: u32 = u32::MAX;

/// Where something is, for the end of a message about something else.
pub(super) fn place(line: u32) -> String {
    if line == BY_MANAGEMENT { "made at run time".to_owned() } else { format!("at line {line}") }
}

/// One fault of a configuration file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The file as it was named to us.
    pub file: String,
    /// The line, counted from 1; `None` if the fault isn't one of a line (the file can't be read).
    pub line: Option<u32>,
    /// What is wrong and what to do about it, in one sentence.
    pub message: String,
}

impl fmt::Display for ConfigError {
    /// `FILE:LINE: message`, or `FILE: message` where no line is to blame.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// All faults of a configuration, in the order of the lines. Never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    /// One fault a line, without a newline after the last; of very many the first ones, and how many more there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = self.0.len().saturating_sub(SHOWN_MAX);
        for (index, error) in self.0.iter().take(SHOWN_MAX).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        match more {
            0 => Ok(()),
            1 => f.write_str("\n… and 1 more fault"),
            _ => write!(f, "\n… and {more} more faults"),
        }
    }
}

impl std::error::Error for ConfigErrors {}

/// Where the parser and the checks put what they find, so that one start shows every fault.
#[derive(Debug)]
pub(super) struct Findings {
    file: String,
    errors: Vec<ConfigError>,
    warnings: Vec<(Option<u32>, String)>,
    /// Features that the file asks for, each with the places: the line, and what asks there.
    uses: Vec<(Feature, Vec<(u32, String)>)>,
}

/// How many faults are shown at a time: enough to see what is wrong with the file.
pub(in crate::control) const SHOWN_MAX: usize = 50;

/// How many places a warning names: enough to find the rest.
const PLACES_MAX: usize = 10;

impl Findings {
    /// Nothing found yet in `file`.
    pub(super) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), errors: Vec::new(), warnings: Vec::new(), uses: Vec::new() }
    }

    /// A fault at `line`.
    pub(super) fn error(&mut self, line: u32, message: impl Into<String>) {
        let line = Some(line).filter(|line| *line != BY_MANAGEMENT);
        self.errors.push(ConfigError { file: self.file.clone(), line, message: message.into() });
    }

    /// Something at `line` that works, but not for ever or not as one might think.
    pub(super) fn warning(&mut self, line: u32, message: impl Into<String>) {
        self.warnings.push((Some(line).filter(|line| *line != BY_MANAGEMENT), message.into()));
    }

    /// Something about the file as a whole.
    pub(super) fn file_warning(&mut self, message: impl Into<String>) {
        self.warnings.push((None, message.into()));
    }

    /// `what` at `line` asks for a feature. If this version doesn't have it, there is one warning for it.
    pub(super) fn uses(&mut self, feature: Feature, line: u32, what: &str) {
        let place = (line, what.to_owned());
        match self.uses.iter_mut().find(|(used, _)| *used == feature) {
            Some((_, places)) => places.push(place),
            None => self.uses.push((feature, vec![place])),
        }
    }

    /// No warning about features.
    pub(super) fn forget_uses(&mut self) {
        self.uses.clear();
    }

    /// The warnings as `FILE:LINE: message`, or every fault if there is one.
    pub(super) fn finish(mut self) -> Result<Vec<String>, ConfigErrors> {
        if !self.errors.is_empty() {
            self.errors.sort_by_key(|error| error.line);
            return Err(ConfigErrors(self.errors));
        }
        for (feature, mut places) in core::mem::take(&mut self.uses) {
            let Some(consequence) = feature.unserved() else { continue };
            places.sort_by_key(|(line, _)| *line);
            let (line, what) = &places[0];
            let mut others: Vec<u32> =
                places.iter().map(|(line, _)| *line).filter(|other| other != line).collect();
            others.dedup();
            let more = if others.len() > PLACES_MAX { " …" } else { "" };
            let others: Vec<String> = others.iter().take(PLACES_MAX).map(u32::to_string).collect();
            let also = match others.len() {
                0 => String::new(),
                1 => format!(", also at line {}", others[0]),
                _ => format!(", also at lines {}{more}", others.join(", ")),
            };
            let message = format!(
                "this version doesn't have {} yet: {consequence} (asked for by {what}{also})",
                feature.name()
            );
            self.warnings.push((Some(*line), message));
        }
        self.warnings.sort_by_key(|(line, _)| *line);
        let file = self.file;
        let shown = self.warnings.into_iter().map(|(line, message)| match line {
            Some(line) => format!("{file}:{line}: {message}"),
            None => format!("{file}: {message}"),
        });
        Ok(shown.collect())
    }
}
