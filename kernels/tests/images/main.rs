//! The committed PTX is what the sources give: its stamp always, and byte for byte where the pinned
//! compiler is found.
#![cfg(test)]

#[path = "../../examples/make_ptx/image.rs"]
mod image;

mod budget;
mod fresh;
