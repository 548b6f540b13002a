//! Licence texts in the sources of crates, each once in the text that is shipped.

use crate::error::NoticesError;
use crate::graph::Linked;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Folders below a crate's own in which licences of bundled sources are looked for.
const DEPTH_MAX: usize = 3;
/// Names of files with a licence begin with one of these, in any case.
const NAMES: [&str; 7] =
    ["license", "licence", "copying", "copyright", "notice", "unlicense", "patents"];
/// Ends of names of files that are no text of a licence.
const SOURCES: [&str; 6] = [".rs", ".c", ".h", ".py", ".html", ".toml"];

const MIT: &str = include_str!("../../../LICENSE-MIT");
const APACHE: &str = include_str!("../../../LICENSE-APACHE");

/// The notices of these crates.
pub(crate) fn compose(linked: &BTreeSet<Linked>) -> Result<String, NoticesError> {
    let mut out = String::from(
        "Third-party software in tessera\n\nThe program contains these crates; the texts of their \
         licences follow.\n\n",
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in linked {
        let Linked { name, version, licence, repository, .. } = one;
        let _ = writeln!(out, "- {name} {version}: {licence} {repository}");
        for (file, text) in of_crate(one)? {
            texts.entry(text).or_default().push(format!("{name} {version} ({file})"));
        }
    }
    // By the first crate that has it, so that a new crate moves little.
    let mut texts: Vec<_> = texts.into_iter().map(|(text, crates)| (crates, text)).collect();
    texts.sort();
    for (crates, text) in texts {
        let _ = writeln!(out, "\n{}\n{}\n\n{text}", "=".repeat(80), crates.join("\n"));
    }
    Ok(out)
}

/// Licence texts of a crate, with the file that each is in.
fn of_crate(one: &Linked) -> Result<Vec<(String, String)>, NoticesError> {
    let failed = |source| NoticesError::Source { name: one.name.clone(), source };
    let mut files = Vec::new();
    find(&one.folder, DEPTH_MAX, &mut files).map_err(failed)?;
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        let bytes = std::fs::read(&file).map_err(failed)?;
        let text = tidied(&String::from_utf8_lossy(&bytes));
        let shown = file.strip_prefix(&one.folder).unwrap_or(&file).display().to_string();
        if !text.is_empty() {
            texts.push((shown, text));
        }
    }
    if texts.is_empty() {
        texts.push(("by its manifest".to_owned(), known(one)?));
    }
    Ok(texts)
}

fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            find(&entry.path(), depth - 1, files)?;
        } else if kind.is_file()
            && NAMES.iter().any(|start| name.starts_with(start))
            && !SOURCES.iter().any(|end| name.ends_with(end))
        {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// The same text whatever the ends of its lines and of itself are.
fn tidied(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// The text of a licence that a crate names and does not bring.
fn known(one: &Linked) -> Result<String, NoticesError> {
    if one.licence.contains("MIT") {
        let (_, rest) = MIT.split_once("Permission is hereby").unwrap_or(("", MIT));
        let holders = if one.authors.is_empty() {
            format!("the authors of {}", one.name)
        } else {
            one.authors.join(", ")
        };
        return Ok(tidied(&format!(
            "MIT License\n\nCopyright (c) {holders}\n\nPermission is hereby{rest}"
        )));
    }
    if one.licence.contains("Apache-2.0") {
        return Ok(tidied(APACHE));
    }
    let Linked { name, version, licence, .. } = one.clone();
    Err(NoticesError::NoText { name, version, licence })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(licence: &str, folder: &Path) -> Linked {
        Linked {
            name: "a".into(),
            version: "1.0.0".into(),
            licence: licence.into(),
            repository: String::new(),
            authors: vec!["Ann".into()],
            folder: folder.to_owned(),
        }
    }

    #[test]
    fn texts_come_from_the_sources_and_from_folders_in_them() {
        let folder = std::env::temp_dir().join(format!("tessera-notices-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("vendor/lib")).unwrap();
        std::fs::write(folder.join("LICENSE-MIT"), "one\r\n").unwrap();
        std::fs::write(folder.join("license.rs"), "no licence").unwrap();
        std::fs::write(folder.join("vendor/lib/COPYING"), "two\n\n").unwrap();
        let found = of_crate(&made("MIT", &folder));
        std::fs::remove_dir_all(&folder).unwrap();
        let want = [("LICENSE-MIT", "one"), ("vendor/lib/COPYING", "two")];
        assert_eq!(found.unwrap(), want.map(|(file, text)| (file.to_owned(), text.to_owned())));
    }

    #[test]
    fn a_crate_without_a_known_text_is_an_error() {
        assert!(known(&made("MIT OR X", Path::new("/"))).unwrap().contains("Copyright (c) Ann\n"));
        assert!(known(&made("Apache-2.0", Path::new("/"))).unwrap().contains("Version 2.0"));
        assert!(known(&made("Strange-1.0", Path::new("/"))).is_err());
    }
}
