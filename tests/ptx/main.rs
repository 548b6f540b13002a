//! Proof of bits without a GPU: the PTX that ships, executed on a CPU, gives what the host builds
//! give.

mod bits;
mod clang;
mod culling;
mod device;
mod edges;
mod exact;
mod features;
mod gauze;
#[path = "../../kernels/tests/kernels/instanced.rs"]
mod instanced;
mod instances;
mod lamps;
mod layers;
mod library;
mod made;
mod mirrors;
mod mutants;
mod mutations;
#[path = "../render/picture.rs"]
#[expect(dead_code, reason = "shared with the tests of pictures, which use all of it")]
mod picture;
mod probes;
mod scenes;
mod slack;
mod soap;
#[path = "../../kernels/tests/kernels/support.rs"]
#[expect(dead_code, reason = "shared with the kernels' own tests, which use all of it")]
mod support;
mod unheeded;
mod units;
mod unread;
mod watched;
mod whitelist;
