//! Looking at scenes and templates before they are submitted: one at a time, by whoever the program
//! gives us, since each is read in a process of its own.

use crate::templates::{BatchAsked, TemplateAsked, TemplateOutline, TemplatePlan};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tessera_protocol::RenderSpec;
use tokio::sync::Semaphore;

/// What is seen of a scene.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Everything that `tessera inspect --json` prints.
    pub report: serde_json::Value,
    /// Names and values that `tessera inspect` prints.
    pub lines: Vec<(String, String)>,
    /// Bytes that a device must hold, as predicted; 0: unknown.
    pub device_bytes: u64,
}

/// Reads scenes and templates in a process that has limits, no network and no other files.
pub trait Inspector: Send + Sync + 'static {
    /// Reads the scene of a checked job, whose files are in a folder. Blocks.
    ///
    /// # Errors
    /// What is wrong with the scene, in words for its artist.
    fn inspect(&self, folder: &Path, spec: &RenderSpec) -> Result<Seen, String>;

    /// Says what a template takes, without any file. Blocks.
    ///
    /// # Errors
    /// What is wrong with the template, in words for its author.
    fn outline(&self, asked: &TemplateAsked) -> Result<TemplateOutline, String>;

    /// Makes the jobs of a template, whose files are in a folder. Blocks.
    ///
    /// # Errors
    /// What is wrong with the template, or with a file that it names.
    fn plan(
        &self,
        folder: &Path,
        asked: &TemplateAsked,
        batch: &BatchAsked,
    ) -> Result<TemplatePlan, String>;
}

/// The reader of scenes and templates, and whose turn it is.
pub(crate) struct Looks {
    pub(crate) inspector: Option<Arc<dyn Inspector>>,
    /// Reading takes memory and time of the coordinator's machine.
    pub(crate) turn: Semaphore,
    /// Who looks or waits: each identity once.
    asking: Mutex<BTreeSet<u64>>,
}

impl Looks {
    pub(crate) fn new(inspector: Option<Arc<dyn Inspector>>) -> Self {
        Self { inspector, turn: Semaphore::new(1), asking: Mutex::default() }
    }

    /// Enters an identity; None where it is there already.
    pub(crate) fn enter(&self, identity: u64) -> Option<Asking<'_>> {
        self.lock().insert(identity).then_some(Asking { looks: self, identity })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An identity that looks or waits.
pub(crate) struct Asking<'a> {
    looks: &'a Looks,
    identity: u64,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.looks.lock().remove(&self.identity);
    }
}
