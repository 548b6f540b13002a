//! Templates that admins have published.

use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tessera_protocol::preset::{Preset, PresetSummary};

/// A template, and who published it when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Published {
    text: String,
    by: String,
    at: Moment,
}

/// All presets, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Presets(BTreeMap<String, Published>);

impl Presets {
    /// Number of presets.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the text of a preset.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|published| published.text.as_str())
    }

    /// Returns a preset.
    pub(crate) fn get(&self, name: &str) -> Option<Preset> {
        let Published { text, by, at } = self.0.get(name)?.clone();
        Some(Preset { name: name.to_owned(), text, by, at: at.secs() })
    }

    /// Returns what there is, by name.
    pub(crate) fn list(&self) -> Vec<PresetSummary> {
        let summary = |(name, published): (&String, &Published)| PresetSummary {
            name: name.clone(),
            bytes: u32::try_from(published.text.len()).unwrap_or(u32::MAX),
            by: published.by.clone(),
            at: published.at.secs(),
        };
        self.0.iter().map(summary).collect()
    }

    /// Publishes a preset, or takes it away.
    pub(in crate::state) fn set(&mut self, name: &str, text: Option<&str>, by: &str, at: Moment) {
        match text {
            None => drop(self.0.remove(name)),
            Some(text) => {
                let (text, by) = (text.to_owned(), by.to_owned());
                self.0.insert(name.to_owned(), Published { text, by, at });
            }
        }
    }

    /// Returns all, for a snapshot.
    pub(in crate::state) fn all(&self) -> &BTreeMap<String, Published> {
        &self.0
    }

    /// Takes one in from a snapshot.
    pub(in crate::state) fn restore(&mut self, name: String, published: Published) {
        self.0.insert(name, published);
    }
}
