//! What the core tells people and programs about jobs, frames and nodes. Decides nothing.

pub(crate) mod listing;
mod standing;
mod turn;
mod waiting;
