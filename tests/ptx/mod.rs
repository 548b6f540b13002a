//! Proof of bits without a GPU: the PTX that ships, executed on a CPU, gives what the host builds
//! give.

mod cases;
mod clang;
mod device;
mod features;
mod functions;
mod instances;
mod library_scenes;
mod model;
mod mutants;
mod pictures;
mod whitelist;
