//! Running in the background, as another user, and the file with the process id.
//!
//! A process with threads can't be divided in two safely, and which libraries start some is hard to know. So
//! the program starts itself once more instead: the second process leaves the terminal, and writes a line to
//! the first when clients can connect.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::unistd::{User, initgroups, setgid, setuid};

/// What the second process writes when clients can connect.
const UP: &str = "up";

/// Starts the program once more with the same `arguments` and `detached`, and waits until clients can connect
/// there.
///
/// # Errors
/// It can't be started. If it ends by itself, it has said why on standard error.
pub fn start(arguments: &[OsString], detached: &str) -> Result<ExitCode, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("can't find this program's file: {error}"))?;
    let (name, rest) = match arguments {
        [name, rest @ ..] => (name.clone(), rest),
        [] => (program.clone().into_os_string(), arguments),
    };
    let mut child = Command::new(&program)
        .arg0(name)
        .args(rest)
        .arg(detached)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("can't start {} in the background: {error}", program.display()))?;
    let output = child.stdout.take().expect("it is piped");
    let mut line = String::new();
    // An error is an end: whatever it is, the router isn't known to be up.
    let _bytes = BufReader::new(output).read_line(&mut line);
    if line.trim_end() == UP {
        return Ok(ExitCode::SUCCESS);
    }
    // It has said why.
    let _status = child.wait();
    Ok(ExitCode::FAILURE)
}

/// Leaves the terminal and the working directory: what the second process does first.
///
/// # Errors
/// The system forbids it.
pub fn detach() -> Result<(), String> {
    rustix::process::setsid().map_err(|error| format!("can't leave the terminal: {error}"))?;
    std::env::set_current_dir("/").map_err(|error| format!("can't change to /: {error}"))
}

/// Tells the first process that clients can connect, and lets go of the terminal: what the second one does
/// last.
pub fn report_up() {
    // If the first process is gone, nobody waits.
    let _told = writeln!(std::io::stdout(), "{UP}").and_then(|()| std::io::stdout().flush());
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _closed = rustix::stdio::dup2_stdout(&null);
        let _closed = rustix::stdio::dup2_stderr(&null);
    }
}

/// Becomes `name`, with its groups. Only root may.
///
/// # Errors
/// There is no such user, or this process may not.
pub fn become_user(name: &str) -> Result<(), String> {
    let user = User::from_name(name).map_err(|error| format!("can't look up the user '{name}': {error}"))?;
    let user = user.ok_or_else(|| format!("there is no user '{name}'"))?;
    let fault = |error| format!("can't become the user '{name}': {error} (only root may)");
    let c_name = std::ffi::CString::new(name).map_err(|_| format!("there is no user '{name}'"))?;
    initgroups(&c_name, user.gid).map_err(fault)?;
    setgid(user.gid).map_err(fault)?;
    setuid(user.uid).map_err(fault)
}

/// A file with the process id, for as long as the process runs.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    content: String,
}

impl PidFile {
    /// Writes the id of this process into the file: one decimal line.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(path: &Path) -> Result<Self, String> {
        let content = format!("{}\n", std::process::id());
        std::fs::write(path, &content)
            .map_err(|error| format!("can't write the process id into {}: {error}", path.display()))?;
        Ok(Self { path: path.to_owned(), content })
    }
}

impl Drop for PidFile {
    /// Removes the file, unless it is another process's by now.
    fn drop(&mut self) {
        if std::fs::read_to_string(&self.path).is_ok_and(|content| content == self.content) {
            // As another user we may not be allowed to; then the file stays, as that of qdrouterd does.
            let _removed = std::fs::remove_file(&self.path);
        }
    }
}

/// What a process that runs a router is called.
const ROUTER_NAMES: [&str; 3] = ["ringmain", "qdrouterd", "skrouterd"];

/// Whether a process runs the same program as this one, whatever it is called.
fn runs_this_program(pid: i32) -> bool {
    let program = |process: &str| {
        let file = std::fs::metadata(format!("/proc/{process}/exe")).ok()?;
        Some((file.dev(), file.ino()))
    };
    program(&pid.to_string()).is_some_and(|other| program("self") == Some(other))
}

/// What a process is called; `None`: there is none, or nobody says.
fn name_of(pid: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Tells the router with this process id, or that of the file, to read its configuration again.
///
/// # Errors
/// There is no such process, or it isn't ours.
pub fn reload(pid: Option<i32>, pidfile: Option<&Path>) -> Result<i32, String> {
    let pid = match (pid, pidfile) {
        (Some(pid), _) => pid,
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("can't read {}: {error}", path.display()))?;
            text.trim()
                .parse()
                .map_err(|_| format!("{} has no process id, but '{}'", path.display(), text.trim()))?
        }
        (None, None) => return Err("neither a process id nor a file with one".to_owned()),
    };
    // 0 and negative numbers mean groups of processes.
    let process = rustix::process::Pid::from_raw(pid)
        .filter(|_| pid > 0)
        .ok_or_else(|| format!("{pid} isn't a process id"))?;
    // The signal ends most programs, and numbers are given again.
    if let Some(name) = name_of(pid)
        && !ROUTER_NAMES.contains(&name.as_str())
        && !runs_this_program(pid)
    {
        let whence =
            pidfile.map_or_else(String::new, |path| format!(" (its number is in {})", path.display()));
        return Err(format!("process {pid}{whence} is '{name}', which is no router: nothing was sent to it"));
    }
    rustix::process::kill_process(process, rustix::process::Signal::HUP)
        .map_err(|error| format!("can't tell process {pid}: {error}"))?;
    Ok(pid)
}
