//! Which crates are linked into the program, by `cargo metadata`.

use crate::error::NoticesError;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The platform of the packages.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The package whose program is shipped.
const ROOT: &str = "tessera";

/// A crate of others that is linked into the program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Linked {
    /// Name of the crate.
    pub(crate) name: String,
    /// Version of the crate.
    pub(crate) version: String,
    /// SPDX expression, or the empty text.
    pub(crate) licence: String,
    /// Where it is developed, or the empty text.
    pub(crate) repository: String,
    /// Who its manifest names.
    pub(crate) authors: Vec<String>,
    /// Folder of its sources.
    pub(crate) folder: PathBuf,
}

/// All of them, sorted by name and version.
pub(crate) fn linked(workspace: &Path) -> Result<BTreeSet<Linked>, NoticesError> {
    let metadata = metadata(workspace)?;
    let packages = by_id(&metadata["packages"])?;
    let nodes = by_id(&metadata["resolve"]["nodes"])?;
    let root =
        packages.values().find(|package| package["name"] == ROOT && package["source"].is_null());
    let root = root.and_then(|root| root["id"].as_str()).ok_or(NoticesError::Shape("no root"))?;
    let (mut seen, mut open) = (BTreeSet::new(), vec![root]);
    while let Some(id) = open.pop() {
        let package = packages.get(id).ok_or(NoticesError::Shape("a package is missing"))?;
        if is_macro(package) || !seen.insert(id) {
            continue;
        }
        let deps = nodes.get(id).and_then(|node| node["deps"].as_array());
        let deps = deps.ok_or(NoticesError::Shape("a node is missing"))?;
        open.extend(deps.iter().filter(|dep| is_linked(dep)).filter_map(|dep| dep["pkg"].as_str()));
    }
    let others = seen.iter().map(|id| packages[id]).filter(|package| !package["source"].is_null());
    others.map(of_package).collect()
}

fn metadata(workspace: &Path) -> Result<Value, NoticesError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        // The packages have this feature.
        .args(["metadata", "--format-version", "1", "--features", "otlp"])
        .args(["--locked", "--filter-platform", TARGET])
        .current_dir(workspace)
        .output()
        .map_err(NoticesError::Cargo)?;
    if !output.status.success() {
        return Err(NoticesError::Metadata(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|_| NoticesError::Shape("not JSON"))
}

fn by_id(list: &Value) -> Result<BTreeMap<&str, &Value>, NoticesError> {
    let list = list.as_array().ok_or(NoticesError::Shape("a list is missing"))?;
    Ok(list.iter().filter_map(|item| Some((item["id"].as_str()?, item))).collect())
}

/// Whether the package runs in the compiler only.
fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    let mut kinds = targets.filter_map(|target| target["kind"].as_array()).flatten();
    kinds.any(|kind| kind == "proc-macro")
}

/// Whether a dependency ends in the program: neither for tests nor for building only.
fn is_linked(dependency: &Value) -> bool {
    let kinds = dependency["dep_kinds"].as_array();
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn of_package(package: &Value) -> Result<Linked, NoticesError> {
    let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
    let manifest = PathBuf::from(text("manifest_path"));
    let authors = package["authors"].as_array().into_iter().flatten();
    Ok(Linked {
        name: text("name"),
        version: text("version"),
        licence: text("license"),
        repository: text("repository"),
        authors: authors.filter_map(|author| author.as_str().map(str::to_owned)).collect(),
        folder: manifest.parent().ok_or(NoticesError::Shape("no manifest"))?.to_owned(),
    })
}
