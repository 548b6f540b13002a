//! Texts: first lines, lint exceptions, links.

use crate::{files, none, root, shown};

#[test]
fn every_source_file_says_what_it_owns() {
    let mut findings = Vec::new();
    for path in files(&["rs"]) {
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        if !text.starts_with("//! ") {
            findings.push(shown(&path));
        }
    }
    for path in files(&["h", "cu", "cuh", "cpp", "c"]) {
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        if !text.starts_with("// ") {
            findings.push(shown(&path));
        }
    }
    none("files whose first line does not say what they own", findings);
}

#[test]
fn promises_and_silent_exceptions_stay_out() {
    // Written in two parts, so that this file does not find itself.
    let banned = [
        ["#[al", "low("],
        ["#![al", "low("],
        ["to", "do!("],
        ["unimple", "mented!("],
        ["#[ig", "nore"],
        ["FIX", "ME"],
    ];
    let banned: Vec<String> = banned.iter().map(|parts| parts.concat()).collect();
    let mut findings = Vec::new();
    for path in files(&["rs", "h", "cu", "cuh", "cpp", "c"]) {
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        for (number, line) in text.lines().enumerate() {
            for word in banned.iter().filter(|word| line.contains(word.as_str())) {
                findings.push(format!("{}:{}: {word}", shown(&path), number + 1));
            }
        }
    }
    none("lint exceptions say why (`expect` with a reason); promises are issues", findings);
}

/// What targets share belongs to a crate: an included file is compiled once more for each of them.
#[test]
fn no_target_includes_files_of_another() {
    // In two parts, so that this file does not find itself.
    let include = ["#[path = \"", "../"].concat();
    let mut findings = Vec::new();
    for path in files(&["rs"]) {
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        let lines = text.lines().enumerate().filter(|(_, line)| line.contains(&include));
        findings.extend(lines.map(|(at, line)| format!("{}:{}: {line}", shown(&path), at + 1)));
    }
    none("files of other targets: move them to tests/support", findings);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut findings = Vec::new();
    for path in files(&["md"]) {
        let text = std::fs::read_to_string(&path).expect("a document is UTF-8");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let local = !file.is_empty() && !file.contains("://") && !file.contains(' ');
            let base = path.parent().unwrap_or(root());
            if local && !base.join(file).exists() {
                findings.push(format!("{}: {target}", shown(&path)));
            }
        }
    }
    none("links that lead nowhere", findings);
}

/// A document that says which test shows what is wrong as soon as a test is renamed.
#[test]
fn tests_that_the_page_on_gltf_names_exist() {
    let page = std::fs::read_to_string(root().join("docs/measurements/gltf-tests.md"))
        .expect("the page is there");
    let mut sources = String::new();
    for path in files(&["rs"]) {
        sources += &std::fs::read_to_string(&path).expect("a source file is UTF-8");
    }
    let is_name = |word: &&str| {
        word.split('_').count() > 2
            && word.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
    };
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_name).collect();
    assert!(named.len() > 20, "the page names {} tests", named.len());
    let unknown = named.into_iter().filter(|name| !sources.contains(&format!("fn {name}()")));
    none("tests that gltf-tests.md names and nobody wrote", unknown.map(str::to_owned).collect());
}
