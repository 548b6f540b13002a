//! Freshness: a source that changed without its image is found here.

use crate::{VARIABLE, is_every_image};
use tessera_nvrtc::Nvrtc;
use tessera_support::images::{IMAGES, NVRTC_VERSION, is_pinned};

const HINT: &str = "cargo run --release -p tessera-kernels --example make_ptx";

#[test]
fn the_images_carry_the_stamp_of_their_sources() {
    for image in IMAGES {
        let text = image.committed();
        assert!(text.starts_with(&image.stamp()), "{} is stale: run `{HINT}`", image.file);
        assert!(is_pinned(&text), "{} was not made by NVRTC {NVRTC_VERSION}", image.file);
        assert!(
            text.contains("\n.version 7.0\n") && text.contains("\n.target sm_75\n"),
            "{}",
            image.file
        );
    }
}

#[test]
fn the_pinned_compiler_makes_the_same_images() {
    let compiler = match Nvrtc::find() {
        Ok(found) => found,
        Err(error) => {
            return eprintln!("NOT RUN: the_pinned_compiler_makes_the_same_images: {error}");
        }
    };
    let images = if is_every_image() { IMAGES.to_vec() } else { vec![IMAGES[0], IMAGES[2]] };
    if images.len() < IMAGES.len() {
        eprintln!("only {} of {} images: {VARIABLE}=all makes all", images.len(), IMAGES.len());
    }
    for image in images {
        let made = image.make(&compiler).unwrap();
        if !is_pinned(&made) {
            let version = compiler.version();
            return eprintln!(
                "NOT RUN: the_pinned_compiler_makes_the_same_images: found NVRTC {version:?}, not \
                    {NVRTC_VERSION}"
            );
        }
        let committed = image.committed();
        assert!(
            made == committed,
            "{} differs from what {NVRTC_VERSION} makes: run `{HINT}`",
            image.file
        );
    }
}

#[test]
fn the_images_hold_nothing_that_could_differ_from_the_host() {
    for image in IMAGES {
        let text = image.committed();
        let violations = tessera_ptx::whitelist::check(&text);
        assert!(
            violations.is_empty(),
            "{}: {} violations, first {:?}",
            image.file,
            violations.len(),
            violations[0]
        );
    }
}
