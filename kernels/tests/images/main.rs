//! The committed PTX is what the sources give: its stamp always, and byte for byte where the pinned
//! compiler is found.
#![cfg(test)]

mod budget;
mod fresh;

/// With the value `all`, every image is made again, and assembled for every architecture, as
/// nightly runs do. Without it, only the first image and the one of compute kernels are, for the
/// oldest architecture: a whole image takes 13 s of processor time, and as much again to assemble.
const VARIABLE: &str = "TESSERA_IMAGES";

fn is_every_image() -> bool {
    std::env::var(VARIABLE).is_ok_and(|value| value == "all")
}
