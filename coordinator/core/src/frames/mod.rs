//! Frames whose units are all committed: their rounds end, and their files are asked for.

mod measure;
pub(crate) mod resolve;
