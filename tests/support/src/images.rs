//! What the committed PTX images are made of and how: used by the tool that writes them and by the
//! test that compares them.

use crate::root;
use std::path::PathBuf;
use tessera_kernels::{SOURCES, TEST_SOURCES};
use tessera_nvrtc::{Compiled, Nvrtc, NvrtcError, Program, STRICT_OPTIONS, Target, portable_ptx};

/// The version of NVRTC whose output is committed, as PTX names it.
pub const NVRTC_VERSION: &str = "V13.5.37";
/// The virtual architecture: Turing, the oldest that NVRTC 13 knows.
const COMPUTE: u32 = 75;

/// What compute kernels include of the path tracer's headers.
const COMPUTE_HEADERS: &[&str] =
    &["compiler.h", "film/denoise.h", "layout.h", "math/arithmetic.h", "math/logarithm.h"];

/// A committed image.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// The source file.
    pub entry: &'static str,
    /// The packed PTX, relative to `kernels`.
    pub file: &'static str,
}

/// All of them.
pub const IMAGES: &[Image] = &[
    Image { entry: "entry/cuda.cu", file: "images/tessera.ptx.zst" },
    Image { entry: "entry/cuda_instances.cu", file: "images/tessera-instances.ptx.zst" },
    Image { entry: "compute/entry.cu", file: "images/compute.ptx.zst" },
    Image { entry: "tests/functions.cu", file: "images/unit-tests.ptx.zst" },
];

impl Image {
    /// Path of the committed file.
    pub fn path(self) -> PathBuf {
        root().join("kernels").join(self.file)
    }

    /// The committed PTX.
    pub fn committed(self) -> String {
        let packed = std::fs::read(self.path()).expect("the image is committed");
        tessera_kernels::unpack_ptx(&packed).expect("the image is whole")
    }

    /// Names and texts of the entry (first) and of every header.
    fn sources(self) -> Vec<(&'static str, &'static str)> {
        let all = || SOURCES.iter().chain(TEST_SOURCES).copied();
        let mut sources: Vec<_> = all().filter(|(name, _)| *name == self.entry).collect();
        let compute = self.entry.starts_with("compute/");
        sources.extend(all().filter(|(name, _)| {
            name.ends_with(".h")
                && (!is_of_tests(name) || self.is_test())
                && (!name.starts_with("compute/") || compute)
                && (!compute || name.starts_with("compute/") || COMPUTE_HEADERS.contains(name))
        }));
        sources
    }

    fn is_test(self) -> bool {
        is_of_tests(self.entry)
    }

    /// The line that says what the image was made of: BLAKE3 of the target, the options and the
    /// sources.
    pub fn stamp(self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        add(&format!("compute_{COMPUTE} {}", STRICT_OPTIONS.join(" ")));
        for (name, text) in self.sources() {
            add(name);
            add(text);
        }
        format!("// made from {} and its headers, BLAKE3 {}\n", self.entry, hasher.finalize())
    }

    /// The image as `compiler` makes it.
    pub fn make(self, compiler: &Nvrtc) -> Result<String, NvrtcError> {
        let made = self.compile(compiler, Target::Ptx { compute: COMPUTE }, STRICT_OPTIONS)?;
        Ok(self.stamp() + &portable_ptx(&made.text()?))
    }

    /// Its sources compiled for any target.
    pub fn compile(
        self,
        compiler: &Nvrtc,
        target: Target,
        options: &[&str],
    ) -> Result<Compiled, NvrtcError> {
        let sources = self.sources();
        compiler.compile(&Program {
            name: self.entry,
            source: sources.first().map_or("", |(_, text)| text),
            headers: sources.get(1..).unwrap_or_default(),
            target,
            options,
        })
    }
}

/// A source that is no part of the product.
fn is_of_tests(source: &str) -> bool {
    TEST_SOURCES.iter().any(|(name, _)| *name == source)
}

/// Whether a PTX text was made by [`NVRTC_VERSION`].
pub fn is_pinned(ptx: &str) -> bool {
    ptx.lines().take(12).any(|line| line.ends_with(NVRTC_VERSION))
}
