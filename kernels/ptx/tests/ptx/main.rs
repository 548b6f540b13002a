//! The PTX crate against PTX of NVIDIA's compiler: reading, running, refusing.

mod reading;
