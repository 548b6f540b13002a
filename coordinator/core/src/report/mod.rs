//! What the core tells people and programs about jobs, frames and nodes. Decides nothing.

pub(crate) mod after;
pub(crate) mod costs;
pub(crate) mod explain;
mod job_state;
mod left;
mod left_checks;
pub(crate) mod listing;
pub(crate) mod pages;
pub(crate) mod quarantine;
pub(crate) mod reason;
pub(crate) mod selected;
mod standing;
pub(crate) mod tally;
mod turn;
mod waiting;
