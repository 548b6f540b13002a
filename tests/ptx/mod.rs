//! Proof of bits without a GPU: the PTX that ships, executed on a CPU, gives what the host builds
//! give.

mod bits;
mod clang;
mod culling;
mod device;
mod edges;
mod exact;
mod features;
mod instances;
mod lamps;
mod library;
mod made;
mod mirrors;
mod mutants;
mod mutations;
mod probes;
mod slack;
mod soap;
mod unheeded;
mod units;
mod unread;
mod watched;
mod whitelist;
