//! Render: pictures of whole scenes. Same bits from every build and hierarchy, stored hashes, and references by another renderer.

mod compilers;
mod hashes;
mod hierarchies;
mod picture;
mod references;
