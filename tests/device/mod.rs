//! CUDA devices of a node, one at a time, on the fake driver: opened through their worker
//! processes, tested, given units, and brought into every trouble that the driver knows. No farm;
//! that is `tests/rack`.

pub(crate) mod bench;
mod compute;
mod cubins;
mod faults;
mod filled;
mod film;
mod memory;
mod sandbox;
mod start;
mod units;
