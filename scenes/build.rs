//! Hashes the sources of import and flattening, and of the layout that they write: a part of the
//! fingerprint.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut hasher = blake3::Hasher::new();
    for folder in ["src", "../kernels/layout/src"] {
        println!("cargo:rerun-if-changed={folder}");
        let mut files = Vec::new();
        find(&root.join(folder), &mut files);
        files.sort();
        for file in files {
            let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().into_owned();
            let text = fs::read(&file).expect("a source file can be read");
            for part in [name.as_bytes(), &text] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
    }
    println!("cargo:rustc-env=TESSERA_SCENES_HASH={}", hasher.finalize().to_hex());
}

/// Rust sources below a folder that are no tests.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are beside build.rs") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            files.push(path);
        }
    }
}
