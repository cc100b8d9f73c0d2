//! A target's process, from its start to its end.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::Settings;
use crate::generator::{Endpoint, hello};
use crate::interrupt;
use crate::pin::pin;
use crate::process::{listener_on, tree};

/// How long a target has to end by itself.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// A process that the harness started. It ends with this value.
pub struct Started {
    child: Child,
    /// When it was started.
    pub since: Instant,
    /// What it writes.
    pub log: PathBuf,
    /// The name of a daemon that it leaves behind and that is to end with it, and the port where it listens.
    pub daemon: Option<(&'static str, u16)>,
}

impl Started {
    /// Starts `command` on the target's CPUs, with its output in a file.
    ///
    /// # Errors
    /// The program isn't there.
    pub fn spawn(name: &str, command: &mut Command, settings: &Settings) -> Result<Self> {
        std::fs::create_dir_all(&settings.folder)?;
        let log = settings.folder.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("can't write {}", log.display()))?;
        // In a group of its own, so that Ctrl-C reaches only the harness, which ends it in good order.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        // A child begins where its parent is.
        pin(&settings.cpus)?;
        let since = Instant::now();
        let child = command.spawn();
        pin(&settings.generator_cpus)?;
        let child =
            child.with_context(|| format!("can't start {}", command.get_program().to_string_lossy()))?;
        Ok(Self { child, since, log, daemon: None })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to processes of it. One that has ended meanwhile is no fault.
    pub fn signal(&self, pids: &[u32], signal: Signal) {
        for pid in pids {
            if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, signal);
            }
        }
    }

    /// Waits until it has written `word`. For a target that takes every connection for one to be measured.
    ///
    /// # Errors
    /// It hasn't in time; its last words are in the message.
    pub fn wait_for_word(&mut self, word: &str, patience: Duration) -> Result<()> {
        let log = self.log.clone();
        self.wait(patience, || match std::fs::read_to_string(&log)?.contains(word) {
            true => Ok(()),
            false => bail!("it doesn't say '{word}'"),
        })
    }

    /// Waits until the target answers an open, and says how long that was after its start.
    ///
    /// # Errors
    /// It doesn't in time.
    pub fn wait_for_open(&mut self, endpoint: &Endpoint, patience: Duration) -> Result<Duration> {
        self.wait(patience, || hello(endpoint))?;
        Ok(self.since.elapsed())
    }

    fn wait(&mut self, patience: Duration, attempt: impl Fn() -> Result<()>) -> Result<()> {
        loop {
            interrupt::check()?;
            let error = match attempt() {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended at once, with {status}{}", self.last_words());
            }
            let waited = self.since.elapsed();
            if waited > patience {
                bail!("it isn't ready after {} s: {error:#}{}", patience.as_secs(), self.last_words());
            }
            // Often at first, for what starts in milliseconds; then at ease.
            std::thread::sleep(if waited < Duration::from_millis(500) {
                Duration::from_micros(100)
            } else {
                Duration::from_millis(20)
            });
        }
    }

    fn end_daemon(&self) {
        let Some((name, port)) = self.daemon else { return };
        if let Ok(pid) = listener_on(port)
            && std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
        {
            self.signal(&[pid], Signal::TERM);
        }
    }

    /// The end of its output, for error messages.
    pub fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(5)..];
        if last.is_empty() { String::new() } else { format!("\n  it wrote:\n    {}", last.join("\n    ")) }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let pids = tree(self.pid());
        self.signal(&pids, Signal::CONT);
        self.signal(&pids, Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < END_PATIENCE {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                // What it started and left behind is ours as well.
                self.signal(&pids[1..], Signal::KILL);
                return self.end_daemon();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.signal(&pids, Signal::KILL);
        // The exit status of what we killed says nothing.
        let _ = self.child.wait();
        self.end_daemon();
    }
}

/// An address of this machine on which nobody listens.
///
/// # Errors
/// All ports are taken.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}
