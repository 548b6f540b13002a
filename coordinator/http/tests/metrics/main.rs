//! `/metrics` of a real coordinator with nodes that do as they are told: what moves each metric,
//! and that the documents, the dashboard and the rules name what there is.

#![expect(clippy::unwrap_used, reason = "in a test, a failure of the setup is a failure")]

mod documents;
mod farm;
mod moves;
mod node;
mod page;
mod prometheus;
mod promtool;
mod store;
