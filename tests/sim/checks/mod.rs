//! What must hold at every moment: leases seen from outside, jobs that stand still once that was
//! answered, and what a broken invariant is.

mod end;
pub(crate) mod leases;
mod steps;
pub(crate) mod stopped_jobs;
pub(crate) mod violation;
mod waits;
