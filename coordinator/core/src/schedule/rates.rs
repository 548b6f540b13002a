//! Speeds of nodes at one job, measured from the device times of its results. Not durable; decides
//! nothing.

use crate::schedule::cells::{Cells, Layout};
use crate::schedule::cost_map::CostMap;
use crate::time::Moment;
use std::collections::{BTreeMap, VecDeque};
use tessera_protocol::ids::NodeId;

/// Weight of earlier units in a rate when a new one arrives: four units make up most of a rate, so
/// that a device that slows down is noticed after a few.
const KEEP: f64 = 0.75;
/// So many of a node's newest units make up nearly all of its rate, if it has one device.
const NEWEST: usize = 8;

/// What a result says about the speed of its device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// Device of the node.
    pub(crate) device: u8,
    /// Camera samples.
    pub(crate) samples: u64,
    /// Device time in microseconds.
    pub(crate) micros: u64,
    /// Cell of the frame, see `cells`.
    pub(crate) cell: usize,
    /// When it came.
    pub(crate) at: Moment,
}

/// Work and time of a device's units: of the last few, and of many by cell of the frame.
#[derive(Clone, Debug, Default)]
struct Rate {
    samples: f64,
    secs: f64,
    steady: Cells,
}

/// The devices of a node that have made results of a job.
#[derive(Debug, Default)]
struct OfNode {
    devices: BTreeMap<u8, Rate>,
    /// When the first result came, and the device time of all after it.
    first: Moment,
    secs: f64,
    /// Camera samples of the last results and their cells of the frame, the newest first.
    newest: VecDeque<(u64, usize)>,
}

/// Rates of the devices that have made results of a job, by node.
#[derive(Debug, Default)]
pub(crate) struct Rates(BTreeMap<NodeId, OfNode>);

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
    pub(crate) fn note(&mut self, node: NodeId, taken: &Taken) {
        let secs = taken.micros.max(1) as f64 * 1e-6;
        let of_node = self.0.entry(node).or_insert_with(|| OfNode {
            first: taken.at,
            // The first result itself lies before.
            secs: -secs,
            ..OfNode::default()
        });
        of_node.secs += secs;
        of_node.newest.truncate(NEWEST - 1);
        of_node.newest.push_front((taken.samples, taken.cell));
        let rate = of_node.devices.entry(taken.device).or_default();
        rate.samples = rate.samples * KEEP + taken.samples as f64;
        rate.secs = rate.secs * KEEP + secs;
        rate.steady.add(taken.cell, taken.samples, secs);
    }

    /// Limits the speed of a node's devices to so many camera samples per second, in spite of
    /// former results.
    pub(crate) fn slow_down(&mut self, node: NodeId, per_sec: f64) {
        let devices = self.0.get_mut(&node).into_iter().flat_map(|node| node.devices.values_mut());
        for rate in devices {
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

    /// Returns what samples cost in the cells of a frame, by all results.
    pub(crate) fn cost_map(&self, layout: Layout) -> CostMap {
        let rates = self.0.values().flat_map(|node| node.devices.values());
        CostMap::of(layout, rates.map(|rate| &rate.steady))
    }

    /// Returns the same speed over many units, in samples of mean cost.
    pub(crate) fn steady(
        &self,
        node: NodeId,
        devices: impl Iterator<Item = u8>,
        costs: &CostMap,
    ) -> Option<Speed> {
        self.speed_by(node, devices, |rate| costs.speed(&rate.steady).unwrap_or(0.0))
    }

    /// Returns what a sample cost where a node's newest results were, weighed as its rate does.
    pub(crate) fn newest_cost(&self, node: NodeId, costs: &CostMap) -> f64 {
        let (mut samples, mut work, mut weight) = (0.0, 0.0, 1.0);
        for (of_unit, cell) in self.0.get(&node).into_iter().flat_map(|node| &node.newest) {
            samples += *of_unit as f64 * weight;
            work += *of_unit as f64 * weight * costs.at(*cell);
            weight *= KEEP;
        }
        if samples > 0.0 { work / samples } else { 1.0 }
    }

    /// Returns the share of the time since a node's first result in which so many devices made
    /// further results of the job; None before there was one.
    pub(crate) fn busy(&self, node: NodeId, devices: f64, now: Moment) -> Option<f64> {
        let of_node = self.0.get(&node).filter(|node| node.secs > 0.0)?;
        let share = of_node.secs / (now.since(of_node.first).as_secs_f64() * devices);
        share.is_finite().then(|| share.min(1.0))
    }

    fn speed_by(
        &self,
        node: NodeId,
        devices: impl Iterator<Item = u8>,
        per_sec: impl Fn(&Rate) -> f64,
    ) -> Option<Speed> {
        let rates = &self.0.get(&node)?.devices;
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
    use crate::splitter::Split;
    use tessera_protocol::compute::{ComputeSpec, Domain, Program};
    use tessera_protocol::job::JobKind;

    fn node(number: u128) -> NodeId {
        NodeId(uuid::Uuid::from_u128(number))
    }

    fn note(rates: &mut Rates, number: u128, (device, samples, micros): (u8, u64, u64)) {
        rates.note(node(number), &Taken { device, samples, micros, ..Taken::default() });
    }

    #[test]
    fn a_device_that_slows_down_is_seen_after_a_few_units() {
        let mut rates = Rates::default();
        (0..20).for_each(|_| note(&mut rates, 1, (0, 1000, 1_000_000)));
        assert!((rates.speed(node(1), 0..1).unwrap().per_sec - 1000.0).abs() < 1e-6);
        (0..4).for_each(|_| note(&mut rates, 1, (0, 1000, 10_000_000)));
        assert!(rates.speed(node(1), 0..1).unwrap().per_sec < 150.0);
    }

    #[test]
    fn devices_without_results_count_as_the_slowest() {
        let mut rates = Rates::default();
        note(&mut rates, 1, (0, 100, 1_000_000));
        note(&mut rates, 1, (2, 300, 1_000_000));
        note(&mut rates, 2, (0, 0, 0));
        let speed = rates.speed(node(1), 0..4).unwrap();
        assert_eq!((speed.per_sec, speed.devices), (600.0, 4.0));
        assert_eq!(speed.alone(150.0), 1.0);
        assert_eq!(
            (rates.speed(node(1), 3..4), rates.speed(node(2), 0..1), rates.speed(node(3), 0..9)),
            (None, None, None)
        );
        assert_eq!(rates.nodes().collect::<Vec<_>>(), [node(1), node(2)]);
    }

    #[test]
    fn the_cost_of_the_newest_units_is_known() {
        let split = Split::of(&JobKind::Compute(ComputeSpec {
            chunk: 1,
            ..ComputeSpec::new(
                Program::Builtin("merge".into()),
                Domain { width: 2, height: 1, depth: 1 },
            )
        }));
        let layout = Layout::of(&split);
        let mut rates = Rates::default();
        let mut render = |cell, micros| {
            rates.note(node(1), &Taken { samples: 1000, micros, cell, ..Taken::default() });
        };
        (0..20).for_each(|_| render(0, 1_000_000));
        (0..2).for_each(|_| render(1, 3_000_000));
        // Costs of 0.5 and 1.5, and 1.75 of 3.5995 parts are the two new ones.
        let costs = rates.cost_map(layout);
        let cost = rates.newest_cost(node(1), &costs);
        assert!((cost - 0.986).abs() < 1e-3, "{cost}");
        assert_eq!(rates.newest_cost(node(2), &costs), 1.0);
        // So that samples of mean cost are rendered as fast as before.
        let now = rates.speed(node(1), 0..1).unwrap().per_sec * cost;
        assert!((now / rates.steady(node(1), 0..1, &costs).unwrap().per_sec - 1.0).abs() < 0.1);
    }

    #[test]
    fn waiting_before_the_first_result_does_not_count() {
        let mut rates = Rates::default();
        assert_eq!(rates.busy(node(1), 1.0, Moment(9000)), None);
        for at in [9000, 10_000, 11_000] {
            let taken = Taken { micros: 750_000, at: Moment(at), ..Taken::default() };
            rates.note(node(1), &taken);
        }
        assert_eq!(rates.busy(node(1), 1.0, Moment(11_000)), Some(0.75));
        assert_eq!(rates.busy(node(1), 2.0, Moment(11_000)), Some(0.375));
    }
}
