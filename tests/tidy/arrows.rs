//! The arrows of docs/ARCHITECTURE.md: which crate may know which. An arrow not drawn there is a
//! mistake.

use crate::{files, none, root, shown};

/// Crate, folder, and the crates of ours that it may depend on.
const ARROWS: &[(&str, &str, &[&str])] = &[
    ("protocol", "protocol", &[]),
    ("layout", "kernels/layout", &[]),
    ("nvrtc", "kernels/nvrtc", &[]),
    ("ptx", "kernels/ptx", &[]),
    ("transport", "transport", &["protocol"]),
    ("core", "coordinator/core", &["protocol"]),
    ("coordinator", "coordinator", &["core", "kernels", "transport", "protocol"]),
    ("kernels", "kernels", &["layout"]),
    ("scenes", "scenes", &["layout"]),
    ("node", "node", &["kernels", "layout", "nvrtc", "ptx", "scenes", "transport", "protocol"]),
    ("fake-cuda", "tests/fake-cuda", &["ptx"]),
    ("history", "tests/history", &["protocol"]),
    ("support", "tests/support", &["core", "kernels", "layout", "protocol"]),
    ("tidy", "tests/tidy", &[]),
    ("cli", "cli", &["coordinator", "node", "nvrtc", "scenes", "transport", "protocol"]),
    ("tessera", ".", &["cli"]),
];

/// Dependencies of ours that a manifest names outside its dev-dependencies.
fn ours(manifest: &str) -> Vec<String> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
        }
        let product = section == "dependencies" || section == "build-dependencies";
        if let (true, Some(rest)) = (product, line.strip_prefix("tessera-")) {
            found.extend(rest.split(['.', ' ', '=']).next().map(str::to_owned));
        }
    }
    found
}

#[test]
fn a_crate_knows_only_what_its_arrows_allow() {
    let mut findings = Vec::new();
    for (name, folder, allowed) in ARROWS {
        let path = root().join(folder).join("Cargo.toml");
        let manifest = std::fs::read_to_string(&path).expect("every crate has a manifest");
        for dependency in ours(&manifest) {
            if !allowed.contains(&dependency.as_str()) {
                findings.push(format!("{name} must not depend on {dependency} ({})", shown(&path)));
            }
        }
    }
    none("arrows that docs/ARCHITECTURE.md does not draw", findings);
}

#[test]
fn the_core_does_no_io() {
    let banned = [
        "Instant",
        "std::fs",
        "std::net",
        "std::thread",
        "std::env",
        "SystemTime",
        "tokio",
        "HashMap",
        "HashSet",
        "println!",
    ];
    let mut findings = Vec::new();
    for path in files(&["rs"]) {
        if !path.starts_with(root().join("coordinator/core/src")) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file can be read");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in banned.iter().filter(|word| code.contains(**word)) {
                findings.push(format!("{}:{}: {word}", shown(&path), number + 1));
            }
        }
    }
    none("the core is given time and chance, it takes none", findings);
}

#[test]
fn what_reaches_pixels_uses_no_platform_mathematics() {
    let banned = [
        ".sin()",
        ".cos()",
        ".tan()",
        ".asin()",
        ".acos()",
        ".atan()",
        ".atan2(",
        ".powf(",
        ".powi(",
        ".exp()",
        ".exp2()",
        ".ln()",
        ".log2()",
        ".log10()",
        ".log(",
        ".sin_cos()",
        ".cbrt()",
        ".hypot(",
    ];
    let folders =
        ["scenes/src", "kernels/layout/src", "coordinator/src/resolve", "coordinator/src/measure"]
            .map(|folder| root().join(folder));
    let mut findings = Vec::new();
    for path in files(&["rs"]) {
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
        if is_test || !folders.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file can be read");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            for call in banned.iter().filter(|call| line.contains(**call)) {
                findings.push(format!(
                    "{}:{}: {call} (use the libm crate)",
                    shown(&path),
                    number + 1
                ));
            }
        }
    }
    none("std's transcendental functions differ between platforms", findings);
}

#[test]
fn only_one_kernel_file_knows_the_compiler() {
    let mut findings = Vec::new();
    for path in files(&["h", "cu", "cpp", "cuh"]) {
        if !path.starts_with(root().join("kernels/source")) || path.ends_with("compiler.h") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file can be read");
        for (number, line) in text.lines().enumerate() {
            let directive = line.trim_start();
            if directive.starts_with("#if") || directive.contains("#include <") {
                findings.push(format!("{}:{}: {directive}", shown(&path), number + 1));
            }
        }
    }
    none("`#if` and system headers belong to kernels/source/compiler.h", findings);
}
