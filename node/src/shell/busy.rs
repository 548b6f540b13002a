//! How busy the devices of a node are while there is work: pure, over intervals of time. Owns no
//! clock and no device.
//!
//! ```text
//! units held   ████████  ████████████            █████████
//! work         ██████████████████████            █████████   short gaps count: work came at once
//! devices      ██████     ██████████              ████████   busy = devices / work
//! ```

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Time that is looked at.
const WINDOW: Duration = Duration::from_secs(60);
/// Longest gap without a unit that counts as time with work, if a unit follows: the node could have
/// had it before.
const GAP_MAX: Duration = Duration::from_secs(1);

/// An interval. Beginning and end are times since a common start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    begin: Duration,
    end: Duration,
}

impl Span {
    /// Returns the part of the interval that is after a time.
    fn after(&self, time: Duration) -> Duration {
        self.end.saturating_sub(self.begin.max(time))
    }
}

/// What the devices had done at a time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Duration,
    device_time: Duration,
}

/// Share of the time with work in which devices worked, over the last minute.
#[derive(Debug)]
pub(super) struct Busy {
    start: Instant,
    /// Intervals in which units were held, in order. Those with short gaps between them are one.
    work: VecDeque<Span>,
    /// Whether units are held now. The last interval has then not ended.
    holds: bool,
    /// One sample for each heartbeat of the last minute.
    samples: VecDeque<Sample>,
}

impl Busy {
    pub(super) fn new(start: Instant) -> Self {
        let none = Sample { at: Duration::ZERO, device_time: Duration::ZERO };
        Self { start, work: VecDeque::new(), holds: false, samples: VecDeque::from([none]) }
    }

    /// Records whether the node holds units that are not done.
    pub(super) fn look(&mut self, holds: bool, now: Instant) {
        let now = now.saturating_duration_since(self.start);
        let held = std::mem::replace(&mut self.holds, holds);
        match self.work.back_mut() {
            Some(last) if held || holds && now.saturating_sub(last.end) <= GAP_MAX => {
                last.end = now;
            }
            _ if holds => self.work.push_back(Span { begin: now, end: now }),
            _ => {}
        }
    }

    /// Returns the share of the time with work in which `devices` worked, 0 to 1; None if there was
    /// no work. `device_time` is the device time of all of them since the start.
    pub(super) fn beat(
        &mut self,
        (device_time, devices): (Duration, usize),
        now: Instant,
    ) -> Option<f32> {
        self.look(self.holds, now);
        let at = now.saturating_duration_since(self.start);
        self.samples.push_back(Sample { at, device_time });
        let oldest = at.saturating_sub(WINDOW);
        while self.samples.len() > 2 && self.samples[0].at < oldest {
            self.samples.pop_front();
        }
        let first = self.samples[0];
        self.work.retain(|span| span.end > first.at || span.end == at);
        let work: Duration = self.work.iter().map(|span| span.after(first.at)).sum();
        let possible = work.as_secs_f32() * devices.max(1) as f32;
        let worked = device_time.saturating_sub(first.device_time).as_secs_f32();
        (possible > 0.0).then(|| (worked / possible).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Returns the share at the end of `end`, for devices that worked so long in all while units
    /// were held in these intervals, with a heartbeat every two seconds.
    fn share(held: &[(u64, u64)], end: u64, worked: &dyn Fn(u64) -> u64) -> Option<f32> {
        let start = Instant::now();
        let mut busy = Busy::new(start);
        let mut changes: Vec<(u64, bool)> =
            held.iter().flat_map(|(begin, end)| [(*begin, true), (*end, false)]).collect();
        changes.retain(|(at, _)| *at <= end);
        let mut last = None;
        for beat in (2000..=end).step_by(2000) {
            for (at, holds) in changes.extract_if(.., |(at, _)| *at <= beat) {
                busy.look(holds, start + millis(at));
            }
            last = busy.beat((millis(worked(beat)), 2), start + millis(beat));
        }
        last
    }

    #[test]
    fn devices_that_work_all_the_time_are_busy() {
        assert_eq!(share(&[(0, 20_000)], 20_000, &|at| 2 * at), Some(1.0));
        // One of the two devices has nothing to do.
        assert_eq!(share(&[(0, 20_000)], 20_000, &|at| at), Some(0.5));
        assert_eq!(share(&[(0, 20_000)], 20_000, &|_| 0), Some(0.0));
    }

    #[test]
    fn time_without_work_does_not_count() {
        assert_eq!(share(&[], 20_000, &|_| 0), None);
        // Eight seconds of work in twenty, and twelve seconds of device time of sixteen.
        let worked = |at: u64| if at < 10_000 { 0 } else { 12_000 };
        assert_eq!(share(&[(2000, 10_000)], 20_000, &worked), Some(0.75));
    }

    #[test]
    fn a_border_between_frames_counts_against_the_node() {
        // Five frames of 1.5 s, with half a second between them, in which the next one came late.
        let held: Vec<(u64, u64)> =
            (0..5).map(|frame| (2000 * frame, 2000 * frame + 1500)).collect();
        // 9.5 s with work and 7.5 s of rendering on both devices.
        let found = share(&held, 20_000, &|at| 2 * 1500 * (at / 2000).min(5)).unwrap();
        assert!((found - 7.5 / 9.5).abs() < 1e-6, "{found}");
        // Units are held all the time, and the devices wait 0.5 s of 2 s for their scene.
        assert_eq!(share(&[(0, 10_000)], 10_000, &|at| 2 * at * 3 / 4), Some(0.75));
    }

    #[test]
    fn only_the_last_minute_counts() {
        // Idle devices for a hundred seconds, then busy ones.
        let worked = |at: u64| 2 * at.saturating_sub(100_000);
        assert_eq!(share(&[(0, 300_000)], 160_000, &worked), Some(1.0));
        assert_eq!(share(&[(0, 300_000)], 130_000, &worked), Some(0.5));
        assert_eq!(share(&[(0, 20_000)], 100_000, &|at| at.min(20_000)), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let start = Instant::now();
        let mut busy = Busy::new(start);
        for second in 0..10_000u64 {
            busy.look(second % 4 == 0, start + Duration::from_secs(second));
            if second % 2 == 0 {
                busy.beat((Duration::ZERO, 1), start + Duration::from_secs(second));
            }
        }
        assert!(busy.work.len() <= 17 && busy.samples.len() <= 32, "{busy:?}");
    }
}
