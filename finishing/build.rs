//! Hashes what decides the bytes of a finished frame: the sources, and the versions of the crates
//! that encode files. Nodes of other bytes finish nothing.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Crates whose versions can change the bytes of a file.
const ENCODERS: [&str; 8] =
    ["exr", "fdeflate", "flate2", "half", "libm", "miniz_oxide", "png", "zune-inflate"];

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut parts: Vec<Vec<u8>> = Vec::new();
    println!("cargo:rerun-if-changed=src");
    let mut files = Vec::new();
    find(&root.join("src"), &mut files);
    files.sort();
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().into_owned();
        parts.push(name.into_bytes());
        parts.push(fs::read(&file).expect("a source file can be read"));
    }
    println!("cargo:rerun-if-changed=../Cargo.lock");
    let lock = fs::read_to_string(root.join("../Cargo.lock")).expect("the workspace has a lock");
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key));
            line.map(|value| value.trim_matches('"').to_owned()).unwrap_or_default()
        };
        let (name, version) = (value("name = "), value("version = "));
        if ENCODERS.contains(&name.as_str()) {
            parts.push(format!("{name} {version}").into_bytes());
        }
    }
    let mut hasher = blake3::Hasher::new_derive_key("tessera finishing 1");
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(&part);
    }
    println!("cargo:rustc-env=TESSERA_FINISHING_HASH={}", hasher.finalize().to_hex());
}

/// Rust sources below a folder that are no tests.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are beside build.rs") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            if !path.ends_with("tests") {
                find(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            files.push(path);
        }
    }
}
