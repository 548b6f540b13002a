//! Render: pictures of whole scenes. Same bits from every build and hierarchy, stored hashes, and
//! references by another renderer.
#![expect(clippy::print_stdout, reason = "tests say what they skip and saw")]

mod compilers;
mod glass;
mod hashes;
mod hierarchies;
mod imported;
mod instances;
pub(crate) mod parts;
pub(crate) mod picture;
mod references;
