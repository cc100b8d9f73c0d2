//! Log rotation: SIGHUP opens the log's files again.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Folder, free_port};
use crate::{file, said, skip, try_command};

/// Between two looks at a file.
const PAUSE: Duration = Duration::from_millis(10);

/// A router that logs into a file. It is killed, by its process id, when this is dropped.
struct Router(Child);

impl Router {
    /// Starts it, and waits until it is operational.
    fn start(folder: &Folder, log: &Path) -> Self {
        let text = format!(
            "listener {{\n    host: 127.0.0.1\n    port: {}\n}}\n\
             log {{\n    module: DEFAULT\n    enable: info+\n    outputFile: {}\n}}\n",
            free_port(),
            log.display()
        );
        let child = Command::new(env!("CARGO_BIN_EXE_ringmain"))
            .arg("-c")
            .arg(folder.write("r.conf", &text))
            .stdin(Stdio::null())
            .spawn()
            .expect("the program can be started");
        let router = Self(child);
        await_text(log, "Operational");
        router
    }

    fn hang_up(&self) {
        let pid = Pid::from_raw(self.0.id().cast_signed()).expect("a child's id is positive");
        kill_process(pid, Signal::HUP).expect("the router runs");
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the file has this text.
fn await_text(path: &Path, what: &str) -> String {
    loop {
        if let Ok(text) = fs::read_to_string(path)
            && text.contains(what)
        {
            return text;
        }
        std::thread::sleep(PAUSE);
    }
}

#[test]
fn a_file_that_was_moved_away_is_made_anew() {
    let folder = Folder::new();
    let (log, old) = (folder.path().join("router.log"), folder.path().join("router.log.1"));
    let router = Router::start(&folder, &log);
    fs::rename(&log, &old).expect("it can be renamed");
    router.hang_up();
    let new = await_text(&log, "read again, nothing to change");
    assert!(!new.contains("Operational"), "{new}");
    let kept = fs::read_to_string(&old).expect("it is there");
    assert!(kept.contains("Operational") && !kept.contains("read again"), "{kept}");

    // Also while the configuration has a fault.
    fs::rename(&log, &old).expect("it can be renamed");
    folder.write("r.conf", "listner {\n}\n");
    router.hang_up();
    await_text(&log, "nothing has changed");

    // Where no new file can be made, the old one is written on.
    fs::rename(&log, &old).expect("it can be renamed");
    fs::create_dir(&log).expect("a directory can be made");
    router.hang_up();
    let kept = await_text(&old, "The log's files can't be opened again, and the old ones are written on: ");
    assert!(kept.contains("router.log"), "{kept}");
    fs::remove_dir(&log).expect("it is empty");
    router.hang_up();
    await_text(&log, "The log's files are opened again");
}

/// The file that is installed, with a directory of our own and without systemd, by logrotate itself.
#[test]
fn logrotate_rotates() {
    let folder = Folder::new();
    let log = folder.path().join("ringmain.log");
    let router = Router::start(&folder, &log);
    let installed = file("deploy/logrotate.d/ringmain");
    let kill = "systemctl kill --signal=HUP --kill-who=main ringmain.service";
    assert!(installed.contains(kill) && installed.contains("\n    su ringmain ringmain\n"));
    let ours = installed
        .replace("/var/log/ringmain/*.log", log.to_str().expect("text"))
        .replace("    su ringmain ringmain\n", "")
        .replace(kill, &format!("kill -HUP {}", router.0.id()));
    let rules = folder.write("rules", &ours);
    let mut logrotate = Command::new("logrotate");
    logrotate.args(["--force", "--verbose", "--state"]).arg(folder.path().join("state")).arg(&rules);
    // For other users than root it is often not in PATH.
    logrotate.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
    let Some(output) = try_command(&mut logrotate) else {
        return skip("logrotate_rotates", "there is no logrotate");
    };
    said(&output);
    let new = await_text(&log, "read again, nothing to change");
    assert!(!new.contains("Operational"), "{new}");
    let kept = fs::read_to_string(folder.path().join("ringmain.log.1")).expect("it was rotated");
    assert!(kept.contains("Operational"), "{kept}");
}
