//! Nodes: who is connected, with which devices, and how nodes come and go. Does not choose work.

pub(crate) mod absent;
pub(crate) mod devices;
pub(crate) mod drain;
mod fitness;
pub(crate) mod passed;
pub(crate) mod ready;
pub(crate) mod roster;
pub(crate) mod sessions;
