//! Frames whose units are all committed: their rounds end, nodes finish them, and their files are
//! asked for.

pub(crate) mod close;
pub(crate) mod finish;
pub(crate) mod measure;
pub(crate) mod orders;
pub(crate) mod resolve;
