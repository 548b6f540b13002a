//! Measurements and estimates of one open job: speeds, memory, and how its end goes. A wrong
//! estimate costs time, never a unit. Rebuilt at a restart.

use crate::schedule::cost::Cost;
use crate::schedule::measured::Measured;
use crate::schedule::pace::Pace;
use crate::schedule::rates::{Rates, Taken};
use crate::time::Moment;
use tessera_protocol::ids::NodeId;

/// Measurements and estimates of one open job.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    /// Speeds of nodes at the job.
    rates: Rates,
    /// Combined progress of all nodes at work; None if they are few.
    pace: Option<Pace>,
    /// Memory that units of the job need.
    measured: Measured,
    /// Time since which younger jobs have been preferred.
    passed_over_since: Option<Moment>,
    /// Time until which units are withheld from slow nodes; None if none were yet.
    withheld_until: Option<Moment>,
    /// Device time of the job's units.
    cost: Cost,
    /// Device time of its finishing units, by pixels.
    finishing: Cost,
}

impl Estimates {
    /// Speeds of nodes at the job.
    pub(crate) fn rates(&self) -> &Rates {
        &self.rates
    }

    /// Combined progress of all nodes at work; None if they are few.
    pub(crate) fn pace(&self) -> Option<Pace> {
        self.pace
    }

    /// Memory that units of the job need.
    pub(crate) fn measured(&self) -> &Measured {
        &self.measured
    }

    /// Time since which younger jobs have been preferred.
    pub(crate) fn passed_over_since(&self) -> Option<Moment> {
        self.passed_over_since
    }

    /// Learns a device's speed and the device time of units from a result.
    pub(crate) fn note_result(&mut self, node: NodeId, taken: &Taken) {
        self.rates.note(node, taken);
        self.cost.note(taken.samples, taken.micros);
    }

    /// Device time of the job's units.
    pub(crate) fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Learns the device time of a finishing unit from its result.
    pub(crate) fn note_finished(&mut self, pixels: u64, micros: u64) {
        self.finishing.note(pixels, micros);
    }

    /// Whether some finishing unit has a result.
    pub(crate) fn knows_finishing(&self) -> bool {
        self.finishing.is_known()
    }

    /// Returns the camera samples that are expected to take as long as finishing these pixels.
    pub(crate) fn work_of_pixels(&self, pixels: u64) -> u64 {
        self.cost.samples_in(self.finishing.of(pixels)).unwrap_or(pixels)
    }

    /// Limits the speed of a node's devices to so many camera samples per second.
    pub(crate) fn slow_down(&mut self, node: NodeId, per_sec: f64) {
        self.rates.slow_down(node, per_sec);
    }

    /// Notes the bytes of memory that a unit needed.
    pub(crate) fn note_need(&mut self, bytes: u64) {
        self.measured.note_need(bytes);
    }

    /// Notes that a unit, which needs so many bytes, ran out of memory on a node's device with
    /// `total` bytes.
    pub(crate) fn note_out_of_memory(&mut self, node: NodeId, needed: u64, total: u64) {
        self.measured.note_need(needed);
        self.measured.note_short(node, total);
    }

    /// Drops the measurements of a node that has rejoined: its devices may be others.
    pub(crate) fn forget_node(&mut self, node: NodeId) {
        self.measured.forget(node);
    }

    /// Notes that a younger job is preferred, from now on if none was yet.
    pub(crate) fn pass_over(&mut self, now: Moment) {
        self.passed_over_since.get_or_insert(now);
    }

    /// Notes that the job was served: younger jobs are no longer preferred.
    pub(crate) fn note_served(&mut self) {
        self.passed_over_since = None;
    }

    /// Withholds units from slow nodes until a moment. Returns the moment if it is new.
    ///
    /// A first estimate can be far off, so a much shorter one replaces it. It is never prolonged,
    /// or it would not end.
    pub(crate) fn withhold(&mut self, now: Moment, most: std::time::Duration) -> Option<Moment> {
        let is_new = self.withheld_until.is_none_or(|until| until.since(now) > most * 2);
        if is_new {
            self.withheld_until = Some(now.after(most));
        }
        self.withheld_until.filter(|_| is_new)
    }

    /// Whether units are withheld from slow nodes now.
    pub(crate) fn is_withheld(&self, now: Moment) -> bool {
        self.withheld_until.is_some_and(|until| now < until)
    }

    pub(crate) fn set_pace(&mut self, pace: Pace) {
        self.pace = Some(pace);
    }

    /// Drops the estimates of the job's end, because the job was paused and is resumed.
    pub(crate) fn resume(&mut self) {
        (self.passed_over_since, self.withheld_until, self.pace) = (None, None, None);
    }
}
