//! Frames whose units are all committed: their rounds end, and their files are asked for.

pub(crate) mod measure;
pub(crate) mod orders;
pub(crate) mod resolve;
