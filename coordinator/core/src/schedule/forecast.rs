//! When jobs should end, as far as that is known: data only. What it is computed from is in
//! `report::left`. It is for people, and decides nothing.

use crate::time::Moment;
use std::collections::BTreeMap;
use std::time::Duration;
use tessera_protocol::ids::JobId;

/// How long a forecast is shown before it is made again.
const FRESH: Duration = Duration::from_secs(1);

/// Expected ends of jobs.
#[derive(Clone, Debug)]
pub(crate) struct Forecast {
    made: Moment,
    ends: BTreeMap<JobId, Moment>,
}

impl Forecast {
    /// Creates the forecast of a moment.
    pub(crate) fn new(made: Moment, ends: BTreeMap<JobId, Moment>) -> Self {
        Self { made, ends }
    }

    /// Returns when a job should end; None if that is not known.
    pub(crate) fn end_of(&self, job: JobId) -> Option<Moment> {
        self.ends.get(&job).copied()
    }

    /// Whether it need not be made again yet.
    pub(crate) fn is_fresh(&self, now: Moment) -> bool {
        now.since(self.made) < FRESH
    }
}
