//! The combined progress of all nodes that work on a job: data only. Estimates times and decides
//! nothing; which nodes wait because of it is in `withhold`.

use crate::schedule::rates::Speed;
use crate::time::Moment;
use tessera_protocol::ids::NodeId;

/// Combined progress of all nodes that work on a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// When it has to be worked out again.
    until: Moment,
    /// Camera samples per second of all of them.
    together: f64,
    /// Camera samples that they have yet to do of what they hold.
    queued: f64,
    /// The first two of them that would end one more unit of the mean size.
    soonest: [Soonest; 2],
    /// Units of the job that are leased.
    leased: f64,
}

/// A node, and the seconds after which it would end one more unit.
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

    /// Adds a node with so many seconds of work, where one more unit has so many samples.
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

    /// The same without one node, which has so many seconds of work.
    pub(crate) fn without(self, id: NodeId, speed: Speed, queue: f64) -> Self {
        let [first, second] = self.soonest;
        Self {
            together: (self.together - speed.per_sec).max(0.0),
            queued: (self.queued - queue * speed.per_sec).max(0.0),
            soonest: [if first.node == Some(id) { second } else { first }; 2],
            ..self
        }
    }

    /// Camera samples per second of all of them.
    pub(crate) fn together(&self) -> f64 {
        self.together
    }

    /// Units of the job that are leased.
    pub(crate) fn leased(&self) -> f64 {
        self.leased
    }

    /// It need not be worked out again yet.
    pub(crate) fn is_fresh(&self, now: Moment) -> bool {
        now < self.until
    }

    /// The same, to be used until a moment.
    pub(crate) fn lasting(self, until: Moment) -> Self {
        Self { until, ..self }
    }

    /// Seconds in which they would end so many open units, of so many samples each, at `together`
    /// camera samples per second.
    pub(crate) fn end_of(&self, open: f64, samples: f64, together: f64) -> f64 {
        let work = (open - self.leased).max(1.0) * samples + self.queued;
        (work / together).max(self.soonest[0].secs)
    }
}
