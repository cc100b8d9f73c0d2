//! `ringmain top` in a terminal of its own.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::support::{PATIENCE, Router, message};

/// What a terminal is told to leave the second screen (xterm's private mode 1049).
const SECOND_SCREEN_OFF: &str = "\x1b[?1049l";

/// The program in a terminal.
struct Terminal {
    child: Child,
    keys: File,
    /// What the program has its screen from.
    slave: OwnedFd,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn start(router: &Router) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let slave = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it can be opened");
        tcsetwinsize(&slave, Winsize { ws_row: 30, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 })
            .expect("a size");
        let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
        let child = Command::new(env!("CARGO_BIN_EXE_ringmain"))
            .args(["top", "--interval", "0.1", "-b", &router.address().to_string()])
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the program can be started");
        let keys = File::from(master);
        let mut reader = keys.try_clone().expect("a descriptor");
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                match reader.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => {
                        if sender.send(buffer[..count].to_vec()).is_err() {
                            return;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Self { child, keys, slave, screen, seen: String::new() }
    }

    /// Waits until `text` has been written to the screen since the last time.
    #[track_caller]
    fn await_text(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.seen.contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{text:?} isn't on the screen:\n{:?}", self.seen),
            }
        }
        self.seen.clear();
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    /// Whether what is typed is shown: a program that takes keys one by one turns that off.
    fn echoes(&self) -> bool {
        tcgetattr(&self.slave).expect("a terminal").local_modes.contains(LocalModes::ECHO)
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                return status;
            }
            assert!(Instant::now() < deadline, "it doesn't end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_shows_what_is_there_and_gives_the_terminal_back() {
    let router = Router::start();
    let mut consumer = router.peer();
    let mut producer = router.peer();
    consumer.attach_receiver("shown/here", 10);
    let sender = producer.attach_sender("shown/here");
    producer.await_credit(sender, 1);
    producer.send_delivery(sender, &message::data(&[1]), true);
    consumer.expect_delivery();
    let mut terminal = Terminal::start(&router);
    terminal.await_text("shown/here");
    assert!(!terminal.echoes());
    terminal.press("4");
    terminal.await_text("container");
    terminal.press("?");
    // Only what differs from the screen before is written, so whole sentences needn't come in one piece.
    terminal.await_text("Keys");
    terminal.press("q");
    terminal.await_text(SECOND_SCREEN_OFF);
    assert_eq!(terminal.wait().code(), Some(0));
    assert!(terminal.echoes());
}

#[test]
fn signals_and_the_loss_of_the_router_give_the_terminal_back_too() {
    let router = Router::start();
    let mut terminal = Terminal::start(&router);
    terminal.await_text("standalone");
    kill_process(Pid::from_child(&terminal.child), Signal::TERM).expect("it runs");
    terminal.await_text(SECOND_SCREEN_OFF);
    assert_eq!(terminal.wait().code(), Some(0));
    assert!(terminal.echoes());

    let mut terminal = Terminal::start(&router);
    terminal.await_text("standalone");
    router.terminate();
    terminal.await_text(SECOND_SCREEN_OFF);
    assert_eq!(terminal.wait().code(), Some(1));
    assert!(terminal.echoes());
}
