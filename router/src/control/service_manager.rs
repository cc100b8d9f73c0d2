//! What the service manager is told: that the router is ready, reads its configuration again, is alive, stops.
//!
//! The protocol is that of sd_notify(3): datagrams of `NAME=value` lines to the socket that `NOTIFY_SOCKET` names.
//! Without it nothing is sent. It happens on the control thread, never on a shard.

use super::reload::Reloaded;
use crate::log;
use crate::log::{Level, Module};
use sd_notify::NotifyState;
use std::net::SocketAddr;
use std::time::Duration;

/// Tells that clients can connect, at these addresses.
pub(super) fn ready(addresses: &[SocketAddr], shards: usize) {
    let listening = match addresses {
        [] => "Listening nowhere".to_owned(),
        [only] => format!("Listening on {only}"),
        [first, others @ ..] => format!("Listening on {first} and {} more", others.len()),
    };
    let shards = if shards == 1 { "1 shard".to_owned() } else { format!("{shards} shards") };
    send(&[NotifyState::Ready, NotifyState::Status(&format!("{listening}; {shards}"))]);
}

/// Tells that the configuration is read again. [`reloaded`] must follow, or a `systemctl reload` waits in vain.
pub(super) fn reloading() {
    // Both in one datagram: so systemd knows which of its requests is meant.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(error) => log!(Module::Server, Level::Warning, "Can't read the monotonic clock: {error}"),
    }
}

/// Tells that the configuration has been read again, and what came of it; `None`: there was no file.
pub(super) fn reloaded(outcome: Option<Reloaded>) {
    let status = match outcome {
        None => "No configuration file to read again".to_owned(),
        Some(Reloaded::Refused) => {
            "The changed configuration can't be used, the old one holds; the log says why".to_owned()
        }
        Some(Reloaded::Applied { taken, failed: 0 }) => {
            format!("Configuration read again, changes made: {taken}")
        }
        Some(Reloaded::Applied { taken, failed }) => {
            format!(
                "Configuration read again, changes made: {taken}, failed: {failed}; the log says which and why"
            )
        }
    };
    send(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// Tells that the router ends.
pub(super) fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("Closing connections")]);
}

/// Signs of life, as often as the service manager wants them (`WATCHDOG_USEC`).
#[derive(Debug)]
pub(super) struct Heartbeat {
    /// Looks at the shards from one sign to the next; `None`: nobody wants any.
    every: Option<u32>,
    /// Looks until the next one is due.
    left: u32,
}

impl Heartbeat {
    /// What the environment asks for, if the shards are looked at so often.
    pub(super) fn from_environment(period: Duration) -> Self {
        let patience = sd_notify::watchdog_enabled();
        if let Some(short) = patience.filter(|patience| *patience < 2 * period) {
            log!(
                Module::Server,
                Level::Warning,
                "The service manager's watchdog waits {short:?} only, and a sign of life comes each {period:?}: \
                 set WatchdogSec to {:?} or more",
                4 * period
            );
        }
        Self::new(patience, period)
    }

    fn new(patience: Option<Duration>, period: Duration) -> Self {
        // At half of the patience, as sd_watchdog_enabled(3) advises.
        let every = patience.map(|patience| {
            let looks = patience.as_millis() / (2 * period.as_millis()).max(1);
            u32::try_from(looks).unwrap_or(u32::MAX).max(1)
        });
        Self { every, left: 0 }
    }

    /// The shards were looked at. A sign that is due waits until all of them turn.
    pub(super) fn looked(&mut self, all_turn: bool) {
        if self.is_due(all_turn) {
            send(&[NotifyState::Watchdog]);
        }
    }

    fn is_due(&mut self, all_turn: bool) -> bool {
        let Some(every) = self.every else { return false };
        self.left = self.left.saturating_sub(1);
        let is_due = self.left == 0 && all_turn;
        if is_due {
            self.left = every;
        }
        is_due
    }
}

/// Sends one datagram. A service manager that doesn't listen is no reason to stop routing.
fn send(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        log!(Module::Server, Level::Warning, "Can't tell the service manager (NOTIFY_SOCKET): {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::Heartbeat;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    fn beats(patience: Option<Duration>, looks: &[bool]) -> Vec<bool> {
        let mut heartbeat = Heartbeat::new(patience, SECOND);
        looks.iter().map(|all_turn| heartbeat.is_due(*all_turn)).collect()
    }

    #[test]
    fn a_sign_comes_at_half_of_the_patience() {
        assert_eq!(beats(Some(6 * SECOND), &[true; 7]), [true, false, false, true, false, false, true]);
        assert_eq!(beats(Some(7 * SECOND), &[true; 4]), [true, false, false, true]);
        for short in [4 * SECOND / 2, SECOND, SECOND / 10, Duration::ZERO] {
            assert_eq!(beats(Some(short), &[true; 3]), [true; 3], "{short:?}");
        }
        assert_eq!(beats(None, &[true; 3]), [false; 3]);
    }

    #[test]
    fn while_a_shard_is_stuck_there_is_none_and_then_at_once() {
        assert_eq!(
            beats(Some(6 * SECOND), &[true, true, false, false, false, true, true, true, true]),
            [true, false, false, false, false, true, false, false, true]
        );
    }
}
