//! Streams: framed messages, and how many of them a peer may send.

pub mod frame;
pub mod meter;
