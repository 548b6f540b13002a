//! `/metrics` of a real coordinator with nodes that do as they are told: what moves each metric,
//! and that the documents, the dashboard and the rules name what there is.

mod documents;
mod moves;
pub(crate) mod node;
pub(crate) mod page;
mod prometheus;
mod promtool;
mod scraped;
mod store;
