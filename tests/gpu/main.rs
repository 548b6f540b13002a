//! The proof with a GPU: every function of the kernels by itself on the device, called by `run.sh`;
//! and `run.sh` as a whole, proven on the fake driver.

mod script;
mod units;
