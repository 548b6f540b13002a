//! A page of metrics, read back.

use std::collections::{BTreeMap, BTreeSet};

/// A page in Prometheus's text form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// Values by name and labels, such as `tessera_jobs{state="done"}`.
    pub(crate) values: BTreeMap<String, f64>,
    /// Types of the families, by the name that queries use.
    pub(crate) kinds: BTreeMap<String, String>,
}

impl Page {
    pub(crate) fn read(text: &str) -> Self {
        let mut page = Self::default();
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').unwrap();
                let former = page.kinds.insert(name.to_owned(), kind.to_owned());
                assert_eq!(former, None, "{name} comes twice");
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let former = page.values.insert(name.to_owned(), value.parse().unwrap());
                assert_eq!(former, None, "{name} comes twice");
            }
        }
        page
    }

    /// The value of a row; 0 if there is no such row.
    pub(crate) fn of(&self, row: &str) -> f64 {
        self.values.get(row).copied().unwrap_or(0.0)
    }

    /// The family of a row.
    pub(crate) fn family(&self, row: &str) -> String {
        let name = row.split('{').next().unwrap();
        let parts = ["_bucket", "_sum", "_count"];
        let mut whole = parts.iter().filter_map(|part| name.strip_suffix(part));
        let histogram =
            whole.find(|whole| self.kinds.get(*whole).is_some_and(|kind| kind == "histogram"));
        histogram.unwrap_or(name).to_owned()
    }

    /// The families with another value, or another row, than a former page.
    pub(crate) fn moved_since(&self, former: &Self) -> BTreeSet<String> {
        let moved =
            self.values.iter().filter(|(row, value)| former.values.get(*row) != Some(value));
        moved.map(|(row, _)| self.family(row)).collect()
    }

    /// Names that queries may use.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let parts = |(name, kind): (&String, &String)| match kind.as_str() {
            "histogram" => {
                vec![format!("{name}_bucket"), format!("{name}_sum"), format!("{name}_count")]
            }
            _ => vec![name.clone()],
        };
        self.kinds.iter().flat_map(parts).collect()
    }

    /// The names of the labels of a family's rows.
    pub(crate) fn labels(&self, family: &str) -> Option<BTreeSet<String>> {
        let row = self.values.keys().find(|row| row.split('{').next() == Some(family))?;
        let inside = row.split_once('{').map_or("", |(_, inside)| inside.trim_end_matches('}'));
        let pairs = inside.split(',').filter_map(|pair| pair.split_once('='));
        Some(pairs.map(|(name, _)| name.to_owned()).collect())
    }
}
