//! The combined progress of all nodes that work on a job: data only. Estimates times and decides
//! nothing; which nodes wait because of it is in `withhold`.

use crate::schedule::rates::Speed;
use crate::time::Moment;
use tessera_protocol::ids::NodeId;

/// Combined progress of all nodes that work on a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Time at which it must be computed again.
    until: Moment,
    /// Speed of all nodes together, in camera samples per second.
    together: f64,
    /// Camera samples that the nodes have still to do for their leases.
    queued: f64,
    /// The two nodes that would finish one more unit of the mean size first.
    soonest: [Soonest; 2],
    /// Number of leased units of the job.
    leased: f64,
}

/// A node, and the seconds after which it would finish one more unit.
#[derive(Clone, Copy, Debug)]
struct Soonest {
    node: Option<NodeId>,
    secs: f64,
}

impl Pace {
    /// Creates the pace of no nodes, for a job with so many leased units.
    pub(crate) fn new(now: Moment, leased: usize) -> Self {
        let nobody = Soonest { node: None, secs: f64::INFINITY };
        Self { until: now, together: 0.0, queued: 0.0, soonest: [nobody; 2], leased: leased as f64 }
    }

    /// Adds a node with so many seconds of work, if one more unit has so many samples.
    pub(crate) fn add(&mut self, node: NodeId, speed: Speed, queue: f64, samples: f64) {
        self.together += speed.per_sec;
        self.queued += queue * speed.per_sec;
        let [first, second] = self.soonest;
        let next = Soonest { node: Some(node), secs: speed.behind(queue, samples) };
        if next.secs < first.secs {
            self.soonest = [next, first];
        } else if next.secs < second.secs {
            self.soonest[1] = next;
        }
    }

    /// Returns the pace without one node, which has so many seconds of work.
    pub(crate) fn without(self, id: NodeId, speed: Speed, queue: f64) -> Self {
        let [first, second] = self.soonest;
        Self {
            together: (self.together - speed.per_sec).max(0.0),
            queued: (self.queued - queue * speed.per_sec).max(0.0),
            soonest: [if first.node == Some(id) { second } else { first }; 2],
            ..self
        }
    }

    /// Returns the speed of all nodes together, in camera samples per second.
    pub(crate) fn together(&self) -> f64 {
        self.together
    }

    /// Returns the number of leased units of the job.
    pub(crate) fn leased(&self) -> f64 {
        self.leased
    }

    /// Whether it need not be computed again yet.
    pub(crate) fn is_fresh(&self, now: Moment) -> bool {
        now < self.until
    }

    /// Returns the same pace, valid until a moment.
    pub(crate) fn lasting(self, until: Moment) -> Self {
        Self { until, ..self }
    }

    /// Returns the seconds in which the nodes would finish so many open units, of so many samples
    /// each, at `together` camera samples per second.
    pub(crate) fn end_of(&self, open: f64, samples: f64, together: f64) -> f64 {
        let work = (open - self.leased).max(1.0) * samples + self.queued;
        (work / together).max(self.soonest[0].secs)
    }
}
