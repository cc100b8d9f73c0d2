//! What the running kernel must offer, tried out before anything else starts.

use super::{UringDriver, UringSizes, UringSocket};
use crate::base::id::{ConnectionKey, Key};
use crate::io::driver::{Completion, Driver};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fmt;
use std::io;
use std::time::Duration;

/// The oldest kernel with everything that the driver uses.
const KERNEL_MIN: &str = "Linux 6.1";

/// How long the trial may take.
const TRIAL_LIMIT: Duration = Duration::from_secs(2);

/// Why the router can't run here: one sentence for the user.
#[derive(Debug, PartialEq, Eq)]
pub struct Unsupported(String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

/// Tries a small ring: sets it up as a shard does, and receives a byte through it.
///
/// # Errors
/// When the kernel lacks something, or forbids it: what, which kernel it is, and what to do.
pub fn probe() -> Result<(), Unsupported> {
    let sizes =
        UringSizes { submission_entries: 8, completion_entries: 16, buffer_size: 4096, buffer_count: 2 };
    let mut driver = UringDriver::new(sizes).map_err(|error| unsupported(&error, &Machine::read()))?;
    receive_one_byte(&mut driver).map_err(|error| unsupported(&error, &Machine::read()))
}

fn receive_one_byte(driver: &mut UringDriver) -> io::Result<()> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::io::write(&theirs, &[1])?;
    driver.open(ConnectionKey(Key { index: 0, generation: 0 }), UringSocket(ours));
    let deadline = driver.now() + TRIAL_LIMIT;
    while driver.now() < deadline {
        driver.submit_and_wait(Some(deadline))?;
        while let Some(completion) = driver.next_completion() {
            match completion {
                Completion::Received { connection: _, buffer } => {
                    let is_right = driver.bytes(&buffer) == [1];
                    driver.release(buffer);
                    return if is_right { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) };
                }
                Completion::ReceiveEnded { connection: _, error } => {
                    return Err(error.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
                }
                Completion::Accepted { .. }
                | Completion::AcceptFailed { .. }
                | Completion::Sent { .. }
                | Completion::Closed { .. }
                | Completion::Woken => {}
            }
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// What the message to the user depends on.
struct Machine {
    /// The kernel's release, `6.1.0-18-amd64` say.
    release: String,
    /// `kernel.io_uring_disabled`, if there is such a setting (Linux 6.6 and newer).
    disabled: Option<String>,
}

impl Machine {
    fn read() -> Self {
        let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok();
        Self { release: kernel_release(), disabled: disabled.map(|setting| setting.trim().to_owned()) }
    }
}

/// The kernel's release. (`uname` needs no descriptor, unlike /proc: they may have run out.)
fn kernel_release() -> String {
    // SAFETY: a `utsname` of zeros is a valid one: empty strings.
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is a valid place for the result.
    unsafe { libc::uname(&mut name) };
    let release = name.release.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0);
    String::from_utf8_lossy(&release.collect::<Vec<u8>>()).into_owned()
}

fn unsupported(error: &io::Error, machine: &Machine) -> Unsupported {
    let release = &machine.release;
    Unsupported(match (error.raw_os_error(), machine.disabled.as_deref()) {
        (Some(libc::EPERM), Some(setting @ ("1" | "2"))) => format!(
            "io_uring is switched off on this machine (kernel {release}, kernel.io_uring_disabled = {setting}): \
             run `sysctl kernel.io_uring_disabled=0` as root"
        ),
        (Some(libc::EPERM | libc::EACCES), _) => format!(
            "this process may not use io_uring (kernel {release}): a container's seccomp profile or another \
             security policy forbids it; allow io_uring_setup, io_uring_enter and io_uring_register"
        ),
        (Some(libc::ENOSYS), _) => format!(
            "io_uring is missing (kernel {release}): the kernel was built without it, or a container's seccomp \
             profile hides it; use {KERNEL_MIN} or newer with CONFIG_IO_URING, and allow its system calls"
        ),
        (Some(libc::EINVAL | libc::EOPNOTSUPP), _) => format!(
            "the kernel's io_uring is too old (kernel {release}): it lacks deferred task running, buffer \
             rings or multishot receive; use {KERNEL_MIN} or newer"
        ),
        (Some(libc::ENOMEM), _) => format!(
            "there is no memory for an io_uring (kernel {release}): raise the limit of locked memory \
             (`ulimit -l`), or the memory limit of the container"
        ),
        (Some(libc::EMFILE | libc::ENFILE), _) => format!(
            "there is no file descriptor left for an io_uring (kernel {release}): raise the limit (`ulimit -n`)"
        ),
        (Some(_) | None, _) => {
            format!("io_uring doesn't work here (kernel {release}): {error}; use {KERNEL_MIN} or newer")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(error: i32, release: &str, disabled: Option<&str>) -> String {
        let machine = Machine { release: release.to_owned(), disabled: disabled.map(str::to_owned) };
        unsupported(&io::Error::from_raw_os_error(error), &machine).to_string()
    }

    #[test]
    fn the_release_is_the_one_that_proc_shows() {
        let shown = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc");
        assert_eq!(kernel_release(), shown.trim());
    }

    #[test]
    fn the_sentence_names_the_cause_and_the_kernel_and_the_remedy() {
        let switched_off = message(libc::EPERM, "6.6.1", Some("2"));
        assert!(switched_off.contains("kernel.io_uring_disabled = 2") && switched_off.contains("6.6.1"));
        assert!(message(libc::EPERM, "6.6.1", Some("0")).contains("seccomp"));
        assert!(message(libc::EPERM, "6.1.0", None).contains("seccomp"));
        assert!(message(libc::ENOSYS, "6.1.0", None).contains("CONFIG_IO_URING"));
        let old = message(libc::EINVAL, "5.15.0", None);
        assert!(old.contains("5.15.0") && old.contains("Linux 6.1 or newer"));
        assert!(message(libc::ENOMEM, "6.1.0", None).contains("ulimit -l"));
        for error in [libc::EPERM, libc::ENOSYS, libc::EINVAL, libc::ENOMEM, libc::EMFILE, libc::EIO] {
            assert_eq!(message(error, "6.1.0", None).lines().count(), 1);
        }
    }
}
