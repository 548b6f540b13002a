//! Speeds of nodes at one job, measured from the device times of its results. Not durable; decides
//! nothing.

use std::collections::BTreeMap;
use tessera_protocol::ids::NodeId;

/// Weight of earlier units in a rate when a new one arrives: four units make up most of a rate, so
/// that a device that slows down is noticed after a few.
const KEEP: f64 = 0.75;

/// The same for the steady rate: some hundred units, so that tiles of unequal cost even out.
const KEEP_STEADY: f64 = 0.995;

/// Work and time of a device's units: of the last few, and of many.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    samples: f64,
    secs: f64,
    steady_samples: f64,
    steady_secs: f64,
}

/// Rates of the devices that have made results of a job, by node.
#[derive(Debug, Default)]
pub(crate) struct Rates(BTreeMap<NodeId, BTreeMap<u8, Rate>>);

/// Speed of a node at a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed {
    /// Camera samples per second of all usable devices together, above 0.
    pub(crate) per_sec: f64,
    /// Number of usable devices, at least 1: so many units are in progress at a time.
    pub(crate) devices: f64,
}

impl Speed {
    /// Seconds for which some work keeps the whole node busy.
    pub(crate) fn share(&self, samples: f64) -> f64 {
        samples / self.per_sec
    }

    /// Seconds that some work takes on one of its devices.
    pub(crate) fn alone(&self, samples: f64) -> f64 {
        self.devices * self.share(samples)
    }

    /// Seconds until a device is free for some work that comes after so many seconds of work, a
    /// part of which runs beside it.
    pub(crate) fn wait(&self, queue: f64, samples: f64) -> f64 {
        (queue - (self.alone(samples) - self.share(samples))).max(0.0)
    }

    /// Seconds after which such work is finished.
    pub(crate) fn behind(&self, queue: f64, samples: f64) -> f64 {
        self.wait(queue, samples) + self.alone(samples)
    }
}

impl Rates {
    /// Adds a result. A result that took no time counts as a microsecond.
    pub(crate) fn note(&mut self, node: NodeId, device: u8, samples: u64, micros: u64) {
        let rate = self.0.entry(node).or_default().entry(device).or_default();
        rate.samples = rate.samples * KEEP + samples as f64;
        rate.secs = rate.secs * KEEP + micros.max(1) as f64 * 1e-6;
        rate.steady_samples = rate.steady_samples * KEEP_STEADY + samples as f64;
        rate.steady_secs = rate.steady_secs * KEEP_STEADY + micros.max(1) as f64 * 1e-6;
    }

    /// Limits the speed of a node's devices to so many camera samples per second, in spite of
    /// former results.
    pub(crate) fn slow_down(&mut self, node: NodeId, per_sec: f64) {
        for rate in self.0.get_mut(&node).into_iter().flat_map(BTreeMap::values_mut) {
            rate.secs = rate.secs.max(rate.samples / per_sec);
        }
    }

    /// Returns the nodes that have made results of the job.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.keys().copied()
    }

    /// Whether the node has made a result of the job.
    pub(crate) fn knows(&self, node: NodeId) -> bool {
        self.0.contains_key(&node)
    }

    /// Returns the speed of these devices of a node; None before the first result of one of them.
    /// Devices without results count as the slowest with some.
    pub(crate) fn speed(&self, node: NodeId, devices: impl Iterator<Item = u8>) -> Option<Speed> {
        self.speed_by(node, devices, |rate| rate.samples / rate.secs)
    }

    /// Returns the same speed over many units.
    pub(crate) fn steady(&self, node: NodeId, devices: impl Iterator<Item = u8>) -> Option<Speed> {
        self.speed_by(node, devices, |rate| rate.steady_samples / rate.steady_secs)
    }

    fn speed_by(
        &self,
        node: NodeId,
        devices: impl Iterator<Item = u8>,
        per_sec: impl Fn(&Rate) -> f64,
    ) -> Option<Speed> {
        let rates = self.0.get(&node)?;
        let (mut sum, mut slowest, mut measured, mut all) = (0.0, f64::INFINITY, 0.0, 0.0);
        for device in devices {
            all += 1.0;
            if let Some(rate) = rates.get(&device) {
                let per_sec = per_sec(rate);
                sum += per_sec;
                slowest = per_sec.min(slowest);
                measured += 1.0;
            }
        }
        let per_sec = sum + slowest * (all - measured);
        (measured > 0.0 && per_sec > 0.0 && per_sec.is_finite())
            .then_some(Speed { per_sec, devices: all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u128) -> NodeId {
        NodeId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn a_device_that_slows_down_is_seen_after_a_few_units() {
        let mut rates = Rates::default();
        (0..20).for_each(|_| rates.note(node(1), 0, 1000, 1_000_000));
        assert!((rates.speed(node(1), 0..1).unwrap().per_sec - 1000.0).abs() < 1e-6);
        (0..4).for_each(|_| rates.note(node(1), 0, 1000, 10_000_000));
        assert!(rates.speed(node(1), 0..1).unwrap().per_sec < 150.0);
    }

    #[test]
    fn devices_without_results_count_as_the_slowest() {
        let mut rates = Rates::default();
        rates.note(node(1), 0, 100, 1_000_000);
        rates.note(node(1), 2, 300, 1_000_000);
        rates.note(node(2), 0, 0, 0);
        let speed = rates.speed(node(1), 0..4).unwrap();
        assert_eq!((speed.per_sec, speed.devices), (600.0, 4.0));
        assert_eq!(speed.alone(150.0), 1.0);
        assert_eq!(
            (rates.speed(node(1), 3..4), rates.speed(node(2), 0..1), rates.speed(node(3), 0..9)),
            (None, None, None)
        );
        assert_eq!(rates.nodes().collect::<Vec<_>>(), [node(1), node(2)]);
    }
}
