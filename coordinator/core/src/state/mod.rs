//! The durable state: what the journal says of jobs, frames and nodes. Only records change it, so
//! that a replay and a running farm take the same path.

pub(crate) mod accounts;
pub(crate) mod awaited;
pub(crate) mod bitmap;
pub(crate) mod committed_by;
pub(crate) mod done;
pub(crate) mod farm;
pub(crate) mod farm_waits;
pub(crate) mod finishing;
pub(crate) mod frame;
pub(crate) mod job;
pub(crate) mod kernel_votes;
pub(crate) mod ledger;
pub(crate) mod parts;
mod pieces;
pub(crate) mod presets;
pub(crate) mod register;
pub(crate) mod rounds;
pub(crate) mod shelf;
pub(crate) mod snapshot;
pub(crate) mod spent;
pub(crate) mod trust;
pub(crate) mod usage;
pub(crate) mod votes;
pub(crate) mod waits;
