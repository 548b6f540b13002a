//! Tells the service manager about a service: ready, a line of status, progress, stopping. Speaks
//! systemd's sd_notify protocol; without a service manager it does nothing.

use sd_notify::NotifyState;
use std::time::{Duration, Instant};
use tessera_node::Vitals;

/// How often a status line is looked at anew.
const LOOK: Duration = Duration::from_secs(1);

/// The service manager, as this process sees it.
#[derive(Debug)]
pub(crate) struct Manager {
    listens: bool,
    /// Within this time it wants to hear of progress, or it ends the process.
    watchdog: Option<Duration>,
    ready: bool,
    told: String,
}

impl Manager {
    /// The manager of the environment, if there is one.
    pub(crate) fn find() -> Self {
        Self {
            listens: std::env::var_os("NOTIFY_SOCKET").is_some(),
            watchdog: sd_notify::watchdog_enabled(),
            ready: false,
            told: String::new(),
        }
    }

    /// Returns whether a service manager listens.
    pub(crate) fn listens(&self) -> bool {
        self.listens
    }

    /// Within what time it wants to hear of progress.
    pub(crate) fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// How often to look for something to say: a quarter of the watchdog's time, or a second.
    pub(crate) fn interval(&self) -> Duration {
        self.watchdog.map_or(LOOK, |limit| (limit / 4).min(LOOK)).max(Duration::from_millis(10))
    }

    /// The service does what it is for. Said once.
    pub(crate) fn ready(&mut self) {
        if !std::mem::replace(&mut self.ready, true) {
            self.say(&[NotifyState::Ready]);
        }
    }

    /// One line for people; said where it has changed.
    pub(crate) fn status(&mut self, line: String) {
        if line != self.told {
            self.say(&[NotifyState::Status(&line)]);
            self.told = line;
        }
    }

    /// Whether there was progress since the last call.
    pub(crate) fn alive(&self) {
        if self.watchdog.is_some() {
            self.say(&[NotifyState::Watchdog]);
        }
    }

    /// The service ends by its own will.
    pub(crate) fn stopping(&mut self, line: &str) {
        self.say(&[NotifyState::Stopping, NotifyState::Status(line)]);
        line.clone_into(&mut self.told);
    }

    fn say(&self, state: &[NotifyState<'_>]) {
        if !self.listens {
            return;
        }
        if let Err(error) = sd_notify::notify(state) {
            tracing::warn!(%error, "the service manager cannot be told");
        }
    }
}

/// The node is well enough to say so: its loop turned, and no device has been stuck, within half of
/// the watchdog's time. The other half is left for the manager's own clock.
pub(crate) fn is_alive(vitals: Vitals, now: Instant, watchdog: Duration) -> bool {
    let limit = watchdog / 2;
    now.saturating_duration_since(vitals.turned) < limit && vitals.stalled < limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hung_loop_or_device_reports_no_progress() {
        let (now, watchdog) = (Instant::now(), Duration::from_secs(60));
        let well = Vitals { turned: now, stalled: Duration::from_secs(29) };
        assert!(is_alive(well, now + Duration::from_secs(1), watchdog));
        assert!(!is_alive(well, now + Duration::from_secs(30), watchdog));
        assert!(!is_alive(Vitals { stalled: Duration::from_secs(30), ..well }, now, watchdog));
    }
}
