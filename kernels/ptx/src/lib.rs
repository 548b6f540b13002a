//! PTX read, checked and executed on a CPU, bit for bit. Knows nothing of Tessera's kernels, of
//! drivers or of GPUs.
//!
//! [`Module::parse`] reads what NVRTC, nvcc and clang write; [`whitelist`] lists the instructions
//! that could differ from the host's arithmetic; [`Machine`] runs kernels over bounds-checked
//! memory.
//!
//! ```
//! use tessera_ptx::{Limits, Machine, Module, Settings};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let module = Module::parse(
//!     ".version 7.0\n.target sm_75\n.address_size 64\n\
//!      .visible .entry seven(.param .u64 out)\n\
//!      { .reg .b64 %rd<2>; ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], 7; ret; }",
//! )?;
//! let mut machine = Machine::new(Settings::default());
//! let loaded = machine.load(&module.into())?;
//! let out = machine.allocate(4)?;
//! machine.launch(&loaded, "seven", [1, 1, 1], [1, 1, 1], 0, &out.to_le_bytes(),
//!     &Limits::default())?;
//! let mut bytes = [0; 4];
//! machine.read(out, &mut bytes)?;
//! assert_eq!(u32::from_le_bytes(bytes), 7);
//! # Ok(())
//! # }
//! ```

mod decode;
mod error;
mod instruction;
mod machine;
mod memory;
mod module;
mod parse;
pub mod profile;
mod run;
mod text;
mod trace;
pub mod whitelist;

pub use error::{Cause, Fault, MemoryError, ParseError};
pub use machine::{Limits, LoadedModule, Machine, Settings, Stats};
pub use module::{Kernel, Module, Parameter, Space, Type, TypeKind, Unsupported, Variable};
