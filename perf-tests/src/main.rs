//! `ringmain-perf`: how fast an AMQP 1.0 router or broker is, beside others and beside the limit.
//!
//! | module | what |
//! |---|---|
//! | [`generator`] | one thread that plays all senders and receivers, with raw frames |
//! | [`forwarder`] | the plain limit: frames forwarded without a protocol, with epoll and with io_uring |
//! | [`target`] | starting, reaching and stopping what is measured |
//! | [`scenario`] | the standard set |
//! | [`measure`] | throughput, ping-pong, open loop, slow receiver, idle connections, start |
//! | [`run`] | all scenarios with all targets in turn, several times |
//! | [`result`], [`stats`], [`compare`] | figures, medians and spreads, before and after |
//! | [`report`] | tables, percentile curves, one page |
#![deny(unsafe_code)]

mod cli;
mod compare;
mod forwarder;
mod generator;
mod interrupt;
mod machine;
mod measure;
mod metric;
mod pin;
mod process;
mod progress;
mod report;
mod result;
mod run;
mod scenario;
mod stats;
mod syscalls;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;

use cli::{Cli, Command, CommonOptions, CompareOptions, LoadOptions, RunOptions};
use generator::topology::{LoadSpec, Slow};
use result::Report;
use run::Plan;
use scenario::{Measure, Scenario, Times, standard};
use target::{Kind, Settings};

/// Idle connections of the standard set, and of `--quick`.
const CONNECTIONS: (u32, u32) = (2000, 200);

/// Runs of the standard set.
const RUNS: u16 = 3;

/// What is measured when the user names nothing.
const TARGETS_DEFAULT: [&str; 7] =
    ["ringmain", "forwarder", "ringmain-spin", "forwarder-spin", "ringmain-counted", "rabbitmq", "activemq"];

fn main() -> ExitCode {
    let command = Cli::parse().command;
    // The forwarder has nothing to put in order: signals end it.
    if !matches!(command, Command::Forwarder(_))
        && let Err(error) = interrupt::prepare()
    {
        eprintln!("ringmain-perf: can't handle signals: {error}");
    }
    let result = match command {
        Command::Run(options) => run_standard(&options),
        Command::Load(options) => run_load(&options),
        Command::List => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        Command::Compare(options) => compare_reports(&options),
        Command::Report { path } => Report::read(&path).and_then(|report| {
            let folder = if path.is_dir() { path } else { path.parent().unwrap_or(&path).to_owned() };
            report::write_views(&report, &folder)?;
            Ok(ExitCode::SUCCESS)
        }),
        Command::Forwarder(options) => {
            forwarder::run(options.engine, options.listen, Duration::from_micros(options.spin_us))
                .map(|()| ExitCode::SUCCESS)
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("ringmain-perf: {error:#}");
        ExitCode::FAILURE
    })
}

fn list() {
    println!("{:<15} what it measures", "scenario");
    for scenario in standard(CONNECTIONS.0 as usize) {
        println!("{:<15} {}", scenario.name, scenario.title);
    }
}

fn run_standard(options: &RunOptions) -> Result<ExitCode> {
    let connections =
        options.connections.unwrap_or(if options.quick { CONNECTIONS.1 } else { CONNECTIONS.0 }) as usize;
    let scenarios = choose(standard(connections), &options.scenarios)?;
    let mut times = if options.quick { Times::QUICK } else { Times::STANDARD };
    if let Some(seconds) = options.slow_seconds {
        (times.slow_receiver, times.slow_reader) =
            (Duration::from_secs(seconds), Duration::from_secs(seconds));
    }
    let rounds = options.common.runs.unwrap_or(if options.quick { 1 } else { RUNS });
    execute(&options.common, scenarios, times, rounds, 1000)
}

fn run_load(options: &LoadOptions) -> Result<ExitCode> {
    let spec = LoadSpec {
        senders: options.pairs * options.fan_in.unwrap_or(1),
        receivers: options.pairs * options.fan_out.unwrap_or(1),
        addresses: options.pairs,
        is_multicast: options.fan_out.is_some(),
        links_per_connection: options.links,
        sessions_per_connection: options.sessions,
        body_bytes: options.size,
        frame_bytes_max: options.frame_size,
        is_presettled: options.presettled,
        credit: options.credit,
        in_flight: if options.ping { 1 } else { options.in_flight.unwrap_or(options.credit) },
        settle: options.settle,
        is_anonymous: options.anonymous,
        is_request_response: options.requests,
        is_mixed: false,
        receiver_rate: None,
        slow: Slow::Credit,
    };
    if let Err(fault) = spec.check() {
        bail!(fault);
    }
    if options.ping && options.presettled {
        bail!("a ping waits for its settlement, so it can't be pre-settled");
    }
    let measure = match options.rate {
        Some(rate) => Measure::Open { rate: Some(rate), percent: 0, capacity: String::new() },
        None if options.ping => Measure::Ping,
        None => Measure::Throughput,
    };
    let scenario = Scenario {
        name: scenario::LOAD.to_owned(),
        title: "the load of the command line".to_owned(),
        spec,
        measure,
    };
    let time = Duration::from_secs_f64(options.seconds);
    let times = Times { measure: time, open: time, ..Times::STANDARD };
    execute(&options.common, vec![scenario], times, options.common.runs.unwrap_or(1), options.credit)
}

/// The scenarios that the user wants, with those that they build on.
fn choose(all: Vec<Scenario>, wanted: &[String]) -> Result<Vec<Scenario>> {
    if wanted.is_empty() {
        return Ok(all);
    }
    if let Some(unknown) = wanted.iter().find(|name| all.iter().all(|scenario| scenario.name != **name)) {
        bail!("there is no scenario '{unknown}' ('ringmain-perf list' shows them)");
    }
    let mut needed = wanted.to_vec();
    for scenario in all.iter().filter(|scenario| wanted.contains(&scenario.name)) {
        match &scenario.measure {
            Measure::Open { rate: None, capacity, .. } | Measure::SlowReceiver { capacity } => {
                needed.push(capacity.clone());
            }
            Measure::Open { rate: Some(_), .. }
            | Measure::Throughput
            | Measure::Ping
            | Measure::Idle
            | Measure::Start => {}
        }
    }
    Ok(all.into_iter().filter(|scenario| needed.contains(&scenario.name)).collect())
}

fn execute(
    options: &CommonOptions,
    scenarios: Vec<Scenario>,
    times: Times,
    rounds: u16,
    link_capacity: u32,
) -> Result<ExitCode> {
    let words: Vec<&str> = if options.targets.is_empty() {
        TARGETS_DEFAULT.to_vec()
    } else {
        options.targets.iter().map(String::as_str).collect()
    };
    let mut kinds: Vec<Kind> = Vec::new();
    for word in words {
        for kind in Kind::parse(word)? {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    let folder = options.out.clone().unwrap_or_else(|| {
        let time: String = machine::now_utc().chars().filter(char::is_ascii_digit).collect();
        PathBuf::from(format!("target/perf/{time}"))
    });
    let (target_cpus, generator_cpus) = match (&options.target_cpus, &options.generator_cpus) {
        (Some(target), Some(generator)) => (target.clone(), generator.clone()),
        (target, generator) => {
            let default = pin::default_cpus()?;
            (target.clone().unwrap_or(default.0), generator.clone().unwrap_or(default.1))
        }
    };
    if target_cpus.0.iter().any(|cpu| generator_cpus.0.contains(cpu)) {
        bail!("target and generator need CPUs of their own, and both have some of {target_cpus}");
    }
    let settings = Settings {
        cpus: target_cpus,
        generator_cpus,
        folder: folder.join("targets"),
        ringmain: match &options.ringmain {
            Some(path) => path.clone(),
            None => std::env::current_exe()?.with_file_name("ringmain"),
        },
        counted: match &options.ringmain {
            Some(path) => path.with_file_name("ringmain-counted"),
            None => std::env::current_exe()?.with_file_name("ringmain-counted"),
        },
        router_attributes: options.router_attribute.clone(),
        link_capacity,
        spin_us: options.spin_us,
    };
    let plan = Plan {
        kinds,
        scenarios,
        rounds: rounds.into(),
        times,
        settings,
        is_generator_blocking: options.block,
    };
    let finished = run::run(&plan)?;
    report::write(&finished.report, &finished.latencies, &folder)?;
    print!("\n{}", report::text(&finished.report));
    println!("\nThe whole report: {}", folder.join("report.html").display());
    let has_figures = finished.report.outcomes.iter().any(result::Outcome::has_figures);
    Ok(if has_figures { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compare_reports(options: &CompareOptions) -> Result<ExitCode> {
    let read = |path: &PathBuf| Report::read(path).context("a report to compare");
    let (old, new) = (read(&options.old)?, read(&options.new)?);
    let changes = compare::compare(&old, &new);
    if changes.is_empty() {
        bail!("the two reports have no scenario and target in common");
    }
    print!("{}", compare::text(&changes, &old, &new, options.all));
    let is_over = |change: &compare::Change| {
        let over = options.fail_over.is_some_and(|percent| change.relative().abs() * 100.0 > percent);
        change.verdict == compare::Verdict::Worse && over
    };
    Ok(if changes.iter().any(is_over) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[cfg(test)]
mod tests {
    use super::{choose, standard};

    #[test]
    fn a_scenario_brings_what_it_builds_on() {
        let names = |wanted: &[&str]| -> Vec<String> {
            let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            choose(standard(1), &wanted).unwrap().into_iter().map(|scenario| scenario.name).collect()
        };
        assert_eq!(names(&["open-30"]), ["pairs-64", "open-30"]);
        assert_eq!(names(&["slow-receiver", "ping"]), ["presettled", "ping", "slow-receiver"]);
        assert_eq!(names(&["open-20k"]), ["open-20k"]);
        assert!(names(&[]).len() > 15);
        assert!(choose(standard(1), &["nonsense".to_owned()]).is_err());
    }
}
