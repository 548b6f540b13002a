//! The arrows of docs/ARCHITECTURE.md: which crate may know which. An arrow not drawn there is a
//! mistake.

use crate::{files, none, root, shown};
use std::collections::BTreeMap;

/// The rows of the page's table: a crate's folder, and the folders of ours that it may use.
fn drawn() -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("the page");
    let table = page.split("| from | may use |").nth(1).expect("the table of arrows");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|');
        let from: Vec<String> = names(cells.next().unwrap_or_default());
        (from.concat(), names(cells.next().unwrap_or_default()))
    })
    .collect()
}

/// Folders of ours that a manifest names outside its dev-dependencies.
fn ours(manifest: &str, folders: &BTreeMap<String, String>) -> Vec<String> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
        }
        let product = section == "dependencies" || section == "build-dependencies";
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if let (true, Some(folder)) = (product, folders.get(name)) {
            found.push(folder.clone());
        }
    }
    found
}

/// The folders of the workspace's packages by their names.
fn packages() -> BTreeMap<String, String> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    let members = manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next());
    let members = members.expect("the list of members").split('"').skip(1).step_by(2);
    let name = |folder: &str| {
        let manifest = root().join(folder).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).expect("every member has a manifest");
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \""));
        name.expect("every package has a name").trim_end_matches('"').to_owned()
    };
    members.map(|folder| (name(folder), folder.to_owned())).collect()
}

#[test]
fn crates_use_only_what_the_architecture_draws() {
    let (drawn, packages) = (drawn(), packages());
    assert!(drawn.len() > 10, "the table has {} rows", drawn.len());
    let mut findings = Vec::new();
    for folder in packages.values() {
        let Some((_, allowed)) = drawn.iter().find(|(from, _)| from == folder) else {
            findings.push(format!("`{folder}` has no row"));
            continue;
        };
        let path = root().join(folder).join("Cargo.toml");
        let manifest = std::fs::read_to_string(&path).expect("every crate has a manifest");
        let used = ours(&manifest, &packages);
        for to in used.iter().filter(|to| !allowed.contains(to)) {
            findings.push(format!("{folder} must not use {to} ({})", shown(&path)));
        }
        for to in allowed.iter().filter(|to| !used.contains(to)) {
            findings.push(format!("{folder} does not use {to}, which its row names"));
        }
    }
    for (from, _) in &drawn {
        if !packages.values().any(|folder| folder == from) {
            findings.push(format!("`{from}` is no package"));
        }
    }
    none("arrows other than those in the table of docs/ARCHITECTURE.md", findings);
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
    let folders = ["scenes/src", "kernels/layout/src", "finishing/src", "coordinator/src/measure"]
        .map(|folder| root().join(folder));
    let mut findings = Vec::new();
    for path in files(&["rs"]) {
        let is_test = path.components().any(|part| {
            let name = part.as_os_str().to_string_lossy();
            name == "tests" || name == "tests.rs" || name.ends_with("_tests.rs")
        });
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
