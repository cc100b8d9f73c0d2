//! Reading the configuration again while the router runs (SIGHUP, `ringmain reload`).
//!
//! What differs from the file as it was read last is applied, step by step; what was made or changed by
//! management meanwhile stays. A file with a fault changes nothing.

use super::config::{Config, ConfigErrors, Record, SHOWN_MAX, Step};
use crate::log;
use crate::log::{Level, Module};

/// The parts of a running router that follow a file.
pub(super) trait Running {
    /// Lets the log follow `config`. Nothing has changed if that fails.
    ///
    /// # Errors
    /// A file of the log can't be opened: a sentence for the user.
    fn follow_log(&mut self, config: &Config) -> Result<(), String>;

    /// Lets the policy follow `new`, where `old` was applied before.
    ///
    /// # Errors
    /// It doesn't go with what management has made: a sentence for the user. Nothing has changed then.
    async fn follow_policy(&mut self, old: &Config, new: &Config) -> Result<(), String>;

    /// Takes a step other than [`Step::Restart`]. `record` is what it adds or removes.
    ///
    /// # Errors
    /// Why it couldn't be taken: a sentence for the user.
    async fn take(&mut self, step: &Step, record: &Record) -> Result<(), String>;
}

/// What came of reading the file again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reloaded {
    /// It has a fault, or the log can't follow it: nothing has changed.
    Refused,
    /// So many steps were taken, and so many failed.
    Applied {
        /// Taken, with that of the log.
        taken: usize,
        /// Failed; they are tried again by the next reload.
        failed: usize,
    },
}

/// Lets `running` follow what was `read`, and notes in `applied` what holds now. The log says what happens.
pub(super) async fn reload(
    applied: &mut Config,
    read: Result<Config, ConfigErrors>,
    running: &mut impl Running,
) -> Reloaded {
    let mut new = match read {
        Ok(new) => new,
        Err(ConfigErrors(faults)) => {
            let count = faults.len();
            log!(
                Module::Server,
                Level::Error,
                "The configuration can't be used ({}); nothing has changed",
                counted(count, "fault")
            );
            for fault in faults.iter().take(SHOWN_MAX) {
                log!(Module::Server, Level::Error, "{fault}");
            }
            if count > SHOWN_MAX {
                let more = counted(count - SHOWN_MAX, "more fault");
                log!(Module::Server, Level::Error, "… and {more}; 'ringmain check' helps");
            }
            return Reloaded::Refused;
        }
    };
    let mut taken = 0;
    if new.log_settings() != applied.log_settings() {
        if let Err(reason) = running.follow_log(&new) {
            log!(Module::Server, Level::Error, "{}: {reason}; nothing has changed", new.file);
            return Reloaded::Refused;
        }
        taken += 1;
        log!(Module::Server, Level::Notice, "{}: the log follows its sections", new.file);
    }
    for warning in &new.warnings {
        log!(Module::ConnMgr, Level::Warning, "{warning}");
    }
    let (mut failed, mut waiting) = (0, 0);
    for step in applied.steps_to(&new) {
        if let Step::Restart(what) = &step {
            log!(Module::Server, Level::Warning, "{}: {what} has changed, which takes a restart", new.file);
            waiting += 1;
            continue;
        }
        let record = if step.is_removal() { applied.record_of(&step) } else { new.record_of(&step) };
        let record = record.cloned();
        let Some(record) = record else { continue };
        match running.take(&step, &record).await {
            Ok(()) => {
                taken += 1;
                log!(Module::Server, Level::Notice, "{}: {step}", new.file);
            }
            Err(reason) => {
                failed += 1;
                log!(Module::Server, Level::Error, "{}: {step}: failed: {reason}", new.file);
                new.forget(&step);
            }
        }
    }
    if (&new.policy, &new.vhosts) != (&applied.policy, &applied.vhosts) {
        match running.follow_policy(applied, &new).await {
            Ok(()) => {
                taken += 1;
                log!(Module::Server, Level::Notice, "{}: the policy follows its sections", new.file);
            }
            Err(reason) => {
                failed += 1;
                log!(Module::Server, Level::Error, "{}: policy: failed: {reason}", new.file);
                new.forget_policy(applied);
            }
        }
    }
    let file = new.file.clone();
    new.keep_what_takes_a_restart(applied);
    *applied = new;
    if waiting > 0 {
        log!(
            Module::Server,
            Level::Warning,
            "{file}: {} for a restart",
            if waiting == 1 { "1 change waits".to_owned() } else { format!("{waiting} changes wait") }
        );
    }
    match (taken, failed) {
        (0, 0) if waiting > 0 => {
            log!(Module::Server, Level::Notice, "{file}: read again, nothing else to change")
        }
        (0, 0) => log!(Module::Server, Level::Notice, "{file}: read again, nothing to change"),
        (_, 0) => {
            log!(Module::Server, Level::Notice, "{file}: read again, {} made", counted(taken, "change"))
        }
        (..) => log!(
            Module::Server,
            Level::Error,
            "{file}: read again, {} made, {failed} failed; the next reload tries again",
            counted(taken, "change")
        ),
    }
    Reloaded::Applied { taken, failed }
}

/// `1 change`, `2 changes`.
fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::{Reloaded, Running, reload};
    use crate::control::config::{Config, Record, Step};

    /// Notes the steps, and fails those that name `unlucky`.
    #[derive(Default)]
    struct Noted {
        steps: Vec<String>,
        unlucky: Option<&'static str>,
    }

    impl Noted {
        fn note(&mut self, step: String) -> Result<(), String> {
            let fails = self.unlucky.is_some_and(|unlucky| step.contains(unlucky));
            self.steps.push(step);
            if fails { Err("bad luck".to_owned()) } else { Ok(()) }
        }
    }

    impl Running for Noted {
        fn follow_log(&mut self, _: &Config) -> Result<(), String> {
            self.note("log".to_owned())
        }

        async fn follow_policy(&mut self, _: &Config, _: &Config) -> Result<(), String> {
            self.note("policy".to_owned())
        }

        async fn take(&mut self, step: &Step, _: &Record) -> Result<(), String> {
            self.note(step.to_string())
        }
    }

    fn read(applied: &mut Config, text: &str, running: &mut Noted) -> Reloaded {
        running.steps.clear();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(reload(applied, Config::parse(text, "a.conf"), running))
    }

    const BASE: &str = "listener {\nport: 1\n}\naddress {\nprefix: a\n}\n";

    #[test]
    fn only_the_difference_is_applied_and_once() {
        let mut applied = Config::parse(BASE, "a.conf").unwrap();
        let mut running = Noted::default();
        assert_eq!(read(&mut applied, BASE, &mut running), Reloaded::Applied { taken: 0, failed: 0 });
        assert!(running.steps.is_empty());
        let more = format!("{BASE}listener {{\nport: 2\n}}\nlog {{\nmodule: DEFAULT\nenable: debug+\n}}\n");
        assert_eq!(read(&mut applied, &more, &mut running), Reloaded::Applied { taken: 2, failed: 0 });
        assert_eq!(running.steps, ["log", "listener :2 added"]);
        assert_eq!(read(&mut applied, &more, &mut running), Reloaded::Applied { taken: 0, failed: 0 });
    }

    #[test]
    fn a_file_with_a_fault_changes_nothing() {
        let mut applied = Config::parse(BASE, "a.conf").unwrap();
        let before = applied.clone();
        let mut running = Noted::default();
        let broken = "listener {\nport: 2\n}\nlistner {\n}\nlog {\nmodule: DEFAULT\nenable: debug+\n}\n";
        assert_eq!(read(&mut applied, broken, &mut running), Reloaded::Refused);
        assert!(running.steps.is_empty());
        assert_eq!(applied, before);
        // Nor does one whose log can't be written.
        running.unlucky = Some("log");
        let more = format!("{BASE}listener {{\nport: 2\n}}\nlog {{\nmodule: DEFAULT\nenable: debug+\n}}\n");
        assert_eq!(read(&mut applied, &more, &mut running), Reloaded::Refused);
        assert_eq!((running.steps.as_slice(), &applied), (&["log".to_owned()][..], &before));
    }

    #[test]
    fn what_failed_is_tried_again_and_the_rest_is_done() {
        let mut applied = Config::parse(BASE, "a.conf").unwrap();
        let more = format!("{BASE}listener {{\nport: 2\n}}\nlistener {{\nport: 3\n}}\n");
        let mut running = Noted { unlucky: Some(":2"), ..Noted::default() };
        assert_eq!(read(&mut applied, &more, &mut running), Reloaded::Applied { taken: 1, failed: 1 });
        running.unlucky = None;
        assert_eq!(read(&mut applied, &more, &mut running), Reloaded::Applied { taken: 1, failed: 0 });
        assert_eq!(running.steps, ["listener :2 added"]);
        assert_eq!(read(&mut applied, BASE, &mut running), Reloaded::Applied { taken: 2, failed: 0 });
        assert_eq!(running.steps, ["listener :2 removed", "listener :3 removed"]);
    }
}
