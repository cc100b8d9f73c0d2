//! `router`.

use core::time::Duration;
use std::path::PathBuf;

use super::super::error::Findings;
use super::super::record::Record;
use super::addressing::{Distribution, distribution};
use crate::log::TimeFormat;
use crate::shard::idle::Idle;

/// The longest id of a router: as container-id it must fit the smallest frame, with the rest of an open.
const ID_BYTES_MAX: usize = 255;

/// The kernel's CPUs are numbered below this.
const CPUS_MAX: usize = 1024;

/// The router as a whole (section `router`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouterConfig {
    /// `id`; `None`: the router makes one up.
    pub id: Option<String>,
    /// `mode`
    pub mode: RouterMode,
    /// `workerThreads`: the number of shards; `None`: one for each CPU.
    pub worker_threads: Option<u32>,
    /// The line of the section, for messages about it; 0 if there is none.
    pub line: u32,
    /// `cpus`: the CPUs to pin shards to, each once, in the order of the file; at least one.
    pub cpus: Option<Vec<usize>>,
    /// `idle` and `spinMicroseconds`: what shards do while there is nothing to do.
    pub idle: Idle,
    /// `napiMicroseconds`: how long the kernel polls devices before a shard sleeps; zero: not at all.
    pub napi: Duration,
    /// `timestampsInUTC`: of the log.
    pub is_log_in_utc: bool,
    /// `timestampFormat`: of the log; `None`: as qdrouterd has it.
    pub time_format: Option<TimeFormat>,
    /// `defaultDistribution`: for addresses that no `address` section matches.
    pub default_distribution: Distribution,
    /// `usersFile`: who may log in by PLAIN and SCRAM; `None`: nobody.
    pub users_file: Option<PathBuf>,
    /// `metadata`
    pub metadata: Option<String>,
}

/// Whether and how the router is part of a network of routers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouterMode {
    /// It is alone.
    Standalone,
    /// It is one of a network, and knows the whole of it.
    Interior,
    /// It is at the rim of a network, and knows one router of it.
    Edge,
}

impl RouterMode {
    /// The word of the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Interior => "interior",
            Self::Edge => "edge",
        }
    }
}

/// The router of its record.
pub(super) fn router_config(record: &Record, findings: &mut Findings) -> RouterConfig {
    let id = record.text("id");
    if let Some(id) = id {
        let is_forbidden = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '|' | '$' | '/');
        if id.is_empty() || id.len() > ID_BYTES_MAX || id.contains(is_forbidden) {
            let message = format!(
                "router: 'id' is '{id}', expected a name of 1 to {ID_BYTES_MAX} bytes without blanks, control \
                 characters, '|', '$' and '/'"
            );
            findings.error(record.line_of("id"), message);
        }
    }
    let mode = match record.text("mode") {
        Some("standalone") => RouterMode::Standalone,
        Some("interior") => RouterMode::Interior,
        Some("edge") => RouterMode::Edge,
        other => unreachable!("the schema refuses mode {other:?}"),
    };
    if mode != RouterMode::Standalone && id.is_none() {
        let message = format!("router: 'id' is missing (mode '{}' requires it)", mode.name());
        findings.error(record.line_of("mode"), message);
    }
    let worker_threads = record.unsigned("workerThreads");
    let cpus = record.text("cpus").and_then(|text| match cpu_list(text) {
        Ok(cpus) => Some(cpus),
        Err(reason) => {
            let message =
                format!("router: 'cpus' is '{text}', expected numbers and ranges such as 2-5,8: {reason}");
            findings.error(record.line_of("cpus"), message);
            None
        }
    });
    if cpus.is_some() && worker_threads.is_some() {
        let message = "router: 'cpus' and 'workerThreads' are both given; leave one out".to_owned();
        findings.error(record.line_of("cpus"), message);
    }
    RouterConfig {
        id: id.map(str::to_owned),
        mode,
        line: record.line(),
        worker_threads,
        cpus,
        idle: idle(record, findings),
        napi: microseconds(record, "napiMicroseconds"),
        is_log_in_utc: record.boolean("timestampsInUTC"),
        time_format: time_format(record, findings),
        default_distribution: distribution(record, "defaultDistribution"),
        users_file: record.text("usersFile").map(PathBuf::from),
        metadata: record.text("metadata").map(str::to_owned),
    }
}

fn time_format(record: &Record, findings: &mut Findings) -> Option<TimeFormat> {
    let text = record.text("timestampFormat")?;
    match TimeFormat::parse(text) {
        Ok(format) => Some(format),
        Err(reason) => {
            let message = format!(
                "router: 'timestampFormat' is '{text}', expected a format of strftime such as %Y-%m-%d %H:%M:%S.%f: {reason}"
            );
            findings.error(record.line_of("timestampFormat"), message);
            None
        }
    }
}

fn microseconds(record: &Record, name: &str) -> Duration {
    Duration::from_micros(record.unsigned(name).unwrap_or(0).into())
}

/// What shards do while there is nothing to do. Settings that the others make useless give a warning.
fn idle(record: &Record, findings: &mut Findings) -> Idle {
    let idle = match record.text("idle") {
        Some("spin") => Idle::Spin,
        Some("spin-then-block") => Idle::SpinThenBlock(microseconds(record, "spinMicroseconds")),
        Some("block") => Idle::Block,
        other => unreachable!("the schema refuses idle {other:?}"),
    };
    let spins_for_a_while = matches!(idle, Idle::SpinThenBlock(_));
    if record.is_set("spinMicroseconds") && !spins_for_a_while {
        let message = "router: 'spinMicroseconds' changes nothing without 'idle: spin-then-block'".to_owned();
        findings.warning(record.line_of("spinMicroseconds"), message);
    }
    if idle == Idle::Spin && !microseconds(record, "napiMicroseconds").is_zero() {
        let message =
            "router: 'napiMicroseconds' changes nothing with 'idle: spin': the kernel polls devices \
                       only before a shard sleeps, and these never do"
                .to_owned();
        findings.warning(record.line_of("napiMicroseconds"), message);
    }
    idle
}

/// The CPUs of a list such as `2-5,8`.
fn cpu_list(text: &str) -> Result<Vec<usize>, String> {
    let number = |text: &str| {
        let number = text.trim().parse::<usize>().ok().filter(|&cpu| cpu < CPUS_MAX);
        number.ok_or_else(|| format!("'{text}' isn't a CPU's number below {CPUS_MAX}"))
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if last < first {
            return Err(format!("the range '{part}' runs backwards"));
        }
        for cpu in first..=last {
            if cpus.contains(&cpu) {
                return Err(format!("CPU {cpu} is named twice"));
            }
            cpus.push(cpu);
        }
    }
    Ok(cpus)
}
