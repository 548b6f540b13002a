//! The store on a real PostgreSQL: what both stores must do, fencing, lost answers, a killed
//! database, standbys that take over, and migrations. Without PostgreSQL each test says that it was
//! left out.
#![expect(clippy::unwrap_used, reason = "a test")]

mod both;
mod cutter;
mod failover;
mod fence;
mod follow;
mod lost;
mod pooler;
mod relay;
mod support;
mod takeover;
mod tls;
