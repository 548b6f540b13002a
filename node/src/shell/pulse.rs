//! The pulse of a node: how long each device has made no progress with its work. Owns no clock; the
//! service manager decides how long is too long.

use std::time::{Duration, Instant};

/// Health of a node, for a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vitals {
    /// When the node's loop last ran. It runs at least every half second, with or without work.
    pub turned: Instant,
    /// The longest time that a device has had work without progress; zero if every device makes
    /// progress or has nothing to do.
    pub stalled: Duration,
}

/// Progress of one device.
#[derive(Clone, Debug)]
struct Beat {
    given: usize,
    busy: Duration,
    /// When the device last made progress, or got its first unit after having none.
    moved: Instant,
}

/// Progress of all devices.
#[derive(Debug)]
pub(super) struct Pulse(Vec<Beat>);

impl Pulse {
    pub(super) fn new(devices: usize, now: Instant) -> Self {
        Self(vec![Beat { given: 0, busy: Duration::ZERO, moved: now }; devices])
    }

    /// Records that a device was given a unit.
    pub(super) fn given(&mut self, device: usize, now: Instant) {
        if let Some(beat) = self.0.get_mut(device) {
            if beat.given == 0 {
                beat.moved = now;
            }
            beat.given += 1;
        }
    }

    /// Records that a device has ended a unit, in whatever way.
    pub(super) fn ended(&mut self, device: usize, now: Instant) {
        if let Some(beat) = self.0.get_mut(device) {
            beat.given = beat.given.saturating_sub(1);
            beat.moved = now;
        }
    }

    /// Looks at the device times. A time that has grown means progress within a unit.
    pub(super) fn look(&mut self, busy: impl Iterator<Item = Duration>, now: Instant) -> Vitals {
        for (beat, busy) in self.0.iter_mut().zip(busy) {
            if std::mem::replace(&mut beat.busy, busy) != busy {
                beat.moved = now;
            }
        }
        let working = self.0.iter().filter(|beat| beat.given > 0);
        let stalled = working.map(|beat| now.saturating_duration_since(beat.moved)).max();
        Vitals { turned: now, stalled: stalled.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn stalled(pulse: &mut Pulse, busy: [u64; 2], now: Instant) -> Duration {
        pulse.look(busy.into_iter().map(Duration::from_secs), now).stalled
    }

    #[test]
    fn an_idle_device_counts_as_healthy() {
        let start = Instant::now();
        let mut pulse = Pulse::new(2, start);
        assert_eq!(stalled(&mut pulse, [0, 0], start + 100 * SECOND), Duration::ZERO);
        pulse.given(0, start + 100 * SECOND);
        assert_eq!(stalled(&mut pulse, [0, 0], start + 101 * SECOND), SECOND);
        pulse.ended(0, start + 102 * SECOND);
        assert_eq!(stalled(&mut pulse, [0, 0], start + 200 * SECOND), Duration::ZERO);
    }

    #[test]
    fn a_stuck_device_is_seen_beside_a_working_one() {
        let start = Instant::now();
        let mut pulse = Pulse::new(2, start);
        pulse.given(0, start);
        pulse.given(1, start);
        for second in 1..=9 {
            let now = start + second as u32 * SECOND;
            assert_eq!(stalled(&mut pulse, [second, 0], now), second as u32 * SECOND);
        }
    }

    #[test]
    fn device_time_and_ended_units_are_both_progress() {
        let start = Instant::now();
        let mut pulse = Pulse::new(2, start);
        pulse.given(0, start);
        pulse.given(0, start);
        assert_eq!(stalled(&mut pulse, [1, 0], start + 5 * SECOND), Duration::ZERO);
        assert_eq!(stalled(&mut pulse, [1, 0], start + 8 * SECOND), 3 * SECOND);
        pulse.ended(0, start + 9 * SECOND);
        assert_eq!(stalled(&mut pulse, [1, 0], start + 10 * SECOND), SECOND);
    }
}
