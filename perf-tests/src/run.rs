//! A run: all scenarios with all targets in turn, several times, so that what is compared was measured within
//! seconds of each other.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use hdrhistogram::Histogram;

use crate::machine::{Machine, now_utc};
use crate::measure::{Context, measure};
use crate::metric::Metric;
use crate::progress::Progress;
use crate::result::{FORMAT, Outcome, Report, curve};
use crate::scenario::{Measure, Scenario, Times};
use crate::target::{About, Kind, Settings, Target, Wait};
use crate::{interrupt, pin, syscalls};

/// What to run.
pub struct Plan {
    /// The targets.
    pub kinds: Vec<Kind>,
    /// The scenarios, each after the one that it builds on.
    pub scenarios: Vec<Scenario>,
    /// How often.
    pub rounds: usize,
    /// How long.
    pub times: Times,
    /// How targets are started.
    pub settings: Settings,
    /// Whether the generator sleeps when it has nothing to do.
    pub is_generator_blocking: bool,
}

/// What a run gave.
pub struct Finished {
    /// The figures.
    pub report: Report,
    /// The latencies of all rounds, by scenario and target.
    pub latencies: BTreeMap<(String, String), Histogram<u64>>,
}

/// A run under way.
struct Run<'a> {
    plan: &'a Plan,
    progress: Progress,
    outcomes: Vec<Outcome>,
    latencies: BTreeMap<(String, String), Histogram<u64>>,
    can_count_system_calls: bool,
    /// Tells the addresses of measurements apart.
    number: usize,
}

/// Runs a plan.
///
/// # Errors
/// Nothing could be measured.
pub fn run(plan: &Plan) -> Result<Finished> {
    let begun = Instant::now();
    let (started, machine) = (now_utc(), Machine::here());
    let folder = &plan.settings.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("can't write to {}", folder.display()))?;
    raise_descriptor_limit();
    pin::pin(&plan.settings.generator_cpus)?;
    let mut notes = notes(&machine);
    let can_count_system_calls = syscalls::check().map_err(|error| notes.push(error.to_string())).is_ok();
    let mut run = Run {
        plan,
        progress: Progress::new(plan.scenarios.len() * (plan.kinds.len() * plan.rounds + 1)),
        outcomes: Vec::new(),
        latencies: BTreeMap::new(),
        can_count_system_calls,
        number: 0,
    };
    run.measure_ceiling()?;
    let (mut targets, mut left_out) = (Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let mut started = Vec::new();
        for kind in &plan.kinds {
            if left_out.iter().any(|(name, _)| name == kind.name()) {
                continue;
            }
            match Target::start(kind, &plan.settings) {
                Ok(target) => {
                    if targets.iter().all(|about: &About| about.name != kind.name()) {
                        targets.push(about(&target, &plan.settings));
                    }
                    target.suspend();
                    started.push(target);
                }
                Err(error) if *kind == Kind::Ringmain(Wait::Block) => {
                    return Err(error).context("ringmain doesn't start");
                }
                Err(error) => {
                    run.progress.say(&format!("{} is left out: {error:#}", kind.name()));
                    left_out.push((kind.name().to_owned(), format!("{error:#}")));
                }
            }
        }
        if started.is_empty() {
            bail!("there is no target left to be measured");
        }
        run.round(round, &mut started)?;
    }
    let mut outcomes = run.outcomes;
    sort(&mut outcomes, &plan.scenarios);
    let report = Report {
        format: FORMAT,
        started,
        seconds: begun.elapsed().as_secs_f64(),
        command: std::env::args().collect(),
        machine,
        target_cpus: plan.settings.cpus.to_string(),
        generator_cpus: plan.settings.generator_cpus.to_string(),
        times: plan.times,
        targets,
        left_out,
        notes,
        outcomes,
    };
    Ok(Finished { report, latencies: run.latencies })
}

impl Run<'_> {
    /// The generator straight to itself: what no target can exceed here.
    fn measure_ceiling(&mut self) -> Result<()> {
        let itself = Target::start(&Kind::Itself, &self.plan.settings)?;
        for scenario in &self.plan.scenarios {
            if scenario.fits(&Kind::Itself) {
                self.measure_one(scenario, &itself, 0);
                interrupt::check()?;
            } else {
                self.progress.skip();
            }
        }
        Ok(())
    }

    /// # Errors
    /// We were told to stop.
    fn round(&mut self, round: usize, targets: &mut [Target]) -> Result<()> {
        for scenario in &self.plan.scenarios {
            // Nobody is always first.
            for at in 0..targets.len() {
                let at = (at + round) % targets.len();
                let target = &mut targets[at];
                if !scenario.fits(&target.kind) || (scenario.is_once(&target.kind) && round > 0) {
                    self.progress.skip();
                    continue;
                }
                target.resume();
                self.measure_one(scenario, target, round);
                target.suspend();
                interrupt::check()?;
            }
        }
        Ok(())
    }

    fn measure_one(&mut self, scenario: &Scenario, target: &Target, round: usize) {
        let name = target.kind.name();
        self.progress.begin(&scenario.name, name, round, self.plan.rounds);
        self.number += 1;
        let context = Context {
            times: self.plan.times,
            counts_system_calls: self.can_count_system_calls && round == 0,
            folder: self.plan.settings.folder.clone(),
            settings: &self.plan.settings,
            run: format!("{}-{}", std::process::id(), self.number),
            capacity: self.capacity(scenario, name),
            is_generator_blocking: self.plan.is_generator_blocking,
        };
        let result = measure(scenario, target, &context);
        let at = self.outcome(scenario, name);
        let outcome = &mut self.outcomes[at];
        outcome.rounds.resize(round + 1, BTreeMap::new());
        match result {
            Ok(measured) => {
                self.progress.end(&measured.figures);
                outcome.rounds[round] = measured.figures;
                if let Some(latencies) = measured.latencies {
                    let key = (scenario.name.clone(), name.to_owned());
                    let all = self.latencies.entry(key).or_insert_with(crate::generator::latency_histogram);
                    // Both have the same bounds.
                    let _ = all.add(&latencies);
                    outcome.curve = curve(all);
                }
            }
            Err(error) => {
                let error = format!("{error:#}");
                self.progress.fail(&error);
                if !outcome.failures.contains(&error) {
                    outcome.failures.push(error);
                }
            }
        }
    }

    /// What a target took so far in the scenario that `scenario` builds on.
    fn capacity(&self, scenario: &Scenario, target: &str) -> Option<f64> {
        let name = match &scenario.measure {
            Measure::Open { capacity, .. } | Measure::SlowReceiver { capacity } => capacity,
            Measure::Throughput | Measure::Ping | Measure::Idle | Measure::Start => return None,
        };
        let outcome = self.outcomes.iter().find(|it| it.scenario == *name && it.target == target)?;
        Some(outcome.spread(Metric::Throughput)?.median)
    }

    fn outcome(&mut self, scenario: &Scenario, target: &str) -> usize {
        let known = self.outcomes.iter().position(|it| it.scenario == scenario.name && it.target == target);
        known.unwrap_or_else(|| {
            self.outcomes.push(Outcome {
                scenario: scenario.name.clone(),
                title: scenario.title.clone(),
                target: target.to_owned(),
                rounds: Vec::new(),
                failures: Vec::new(),
                curve: Vec::new(),
            });
            self.outcomes.len() - 1
        })
    }
}

/// By scenario, in the order of the plan; within one, in the order in which they were measured first.
fn sort(outcomes: &mut [Outcome], scenarios: &[Scenario]) {
    let place = |name: &str| scenarios.iter().position(|scenario| scenario.name == name);
    outcomes.sort_by_key(|outcome| place(&outcome.scenario));
}

fn about(target: &Target, settings: &Settings) -> About {
    let how = match &target.kind {
        Kind::Ringmain(wait) => {
            let mut how = format!("linkCapacity {}", settings.link_capacity);
            for line in &settings.router_attributes {
                how.push_str("; ");
                how.push_str(line);
            }
            if *wait == Wait::Spin {
                // Writing to a string can't fail.
                let _ = write!(how, "; idle: spin-then-block, {} µs", settings.spin_us);
            }
            how
        }
        Kind::Counted => "counts its allocations, so its speed doesn't count".to_owned(),
        Kind::RabbitMq => "as packaged, plugin rabbitmq_amqp1_0, classic queues".to_owned(),
        Kind::ActiveMq => "as packaged".to_owned(),
        Kind::Forwarder(_, Wait::Spin) => {
            format!("looks for work for {} µs before it sleeps", settings.spin_us)
        }
        Kind::Forwarder(_, Wait::Block) => "sleeps when there is nothing to do".to_owned(),
        Kind::Url(url) => format!("was running at {}", url.address),
        Kind::Itself => "the generator, straight to itself".to_owned(),
    };
    About { name: target.kind.name().to_owned(), version: target.version.clone(), how }
}

/// What makes figures of this machine doubtful.
fn notes(machine: &Machine) -> Vec<String> {
    let mut notes = Vec::new();
    if machine.load.parse::<f64>().is_ok_and(|load| load > 0.5) {
        notes.push(format!(
            "the machine wasn't quiet: its load average was {} before the run, so the figures are not to be trusted",
            machine.load
        ));
    }
    if machine.is_virtual {
        notes.push(
            "this is a virtual machine: wake-ups cost more than on bare metal, and neighbours show"
                .to_owned(),
        );
    }
    notes
}

/// Thousands of connections need descriptors, here and (inherited) in the targets.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it can't be raised, connecting says so.
    let _ = setrlimit(Resource::Nofile, limit);
}
