//! Explanations in JSON.

use serde::Serialize;
use tessera_protocol::explain;
use utoipa::ToSchema;

/// Why a job, a frame or a node stands as it does, and what would help.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// What is explained, for people.
    pub(crate) about: String,
    /// Its state in a word.
    pub(crate) state: String,
    /// All reasons, the most important first.
    pub(crate) reasons: Vec<Reason>,
    /// Who is before a job that waits for its turn.
    pub(crate) ahead: Vec<Ahead>,
    /// Seconds until a job that waits for its turn should begin; null if it is not known.
    pub(crate) begins_secs: Option<u64>,
    /// Seconds until the job should end; null if it is not known.
    pub(crate) left_secs: Option<u64>,
}

/// A reason.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Reason {
    /// The kind of reason in a word: `turn`, `pool`, `drained`.
    pub(crate) word: String,
    /// Why, for people.
    pub(crate) why: String,
    /// What would help; empty if nothing is needed.
    pub(crate) help: String,
    /// Seconds until it ends by itself, where that is known.
    pub(crate) ends_secs: Option<u64>,
}

/// An owner whose jobs are worked on before this one.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Ahead {
    /// Name of the owner.
    pub(crate) owner: String,
    /// Number of that owner's units that nodes work on.
    pub(crate) units: u64,
    /// Name of one of those jobs.
    pub(crate) job: String,
}

impl From<&explain::Explanation> for Explanation {
    fn from(of: &explain::Explanation) -> Self {
        let explain::Explanation { about, state, reasons, ahead, begins_secs, left_secs } = of;
        let reason = |reason: &explain::Reason| Reason {
            word: reason.word.clone(),
            why: reason.why.clone(),
            help: reason.help.clone(),
            ends_secs: reason.ends_secs,
        };
        let one = |one: &explain::Ahead| Ahead {
            owner: one.owner.clone(),
            units: one.units,
            job: one.job.clone(),
        };
        Self {
            about: about.clone(),
            state: state.clone(),
            reasons: reasons.iter().map(reason).collect(),
            ahead: ahead.iter().map(one).collect(),
            begins_secs: *begins_secs,
            left_secs: *left_secs,
        }
    }
}
