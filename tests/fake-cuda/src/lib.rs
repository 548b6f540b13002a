//! A rack of GPUs without a GPU: one shared object that is `libcuda.so.1` and `libnvidia-ml.so.1`.
//! Kernels run in the PTX interpreter; what the rack consists of and what goes wrong stands in a
//! file. For tests alone: no crate of the product depends on it.
//!
//! A program is given a rack by its environment, and knows nothing of it:
//!
//! ```no_run
//! use tessera_fake_cuda::{Config, Device, Fault, FaultKind, Rack};
//! # fn main() -> std::io::Result<()> {
//! let mut config = Config::of(8, Device::default());
//! config.devices[3].faults.push(Fault::new(FaultKind::OffTheBus).after(100));
//! let rack = Rack::new(&config)?;
//! let mut program = std::process::Command::new("some-cuda-program");
//! rack.lend_to(&mut program);
//! program.status()?;
//! println!("{} launches on device 3", rack.counts(3).launches);
//! # Ok(())
//! # }
//! ```
//!
//! The library itself is found beside the test's own executable ([`library_path`]), where Cargo
//! puts it for whoever names this crate among the dev-dependencies.

mod config;
mod cuda;
mod driver;
mod fault;
mod ffi;
mod nvml;
mod rack;
mod shared;
mod status;
mod topology;

pub use config::{Config, ConfigError, Device, Fault, FaultKind, Slice, Watch};
pub use rack::{Counts, Rack, library_path};
pub use shared::Watched;
