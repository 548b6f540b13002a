//! Reads scenes and templates for the coordinator's pages, before they are submitted: in a confined
//! process, with less memory and time than on nodes.

use crate::commands::inspect::{Inspection, describe};
use crate::error::CliError;
use crate::template_reader::{self, Found};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tessera_http::{BatchAsked, Inspector, Seen, TemplateAsked, TemplateOutline, TemplatePlan};
use tessera_node::device::SceneMemory;
use tessera_node::import::{ImportError, ImportLimits, Importer};
use tessera_node::{Sandbox, flatten_options, load_options};
use tessera_protocol::{FrameNumber, RenderSpec};

/// Most memory of the process, bytes.
const MEMORY_BYTES: u64 = 2 << 30;
/// Longest time for reading, and for laying out.
const TIME: Duration = Duration::from_secs(60);
/// Most triangles that are laid out to tell the memory of a device.
const TRIANGLES_MAX: u64 = 2_000_000;

/// Reads scenes with one thread.
#[derive(Debug)]
pub(crate) struct SceneInspector(Importer);

impl SceneInspector {
    pub(crate) fn new() -> Self {
        let usual = ImportLimits::default();
        let memory_bytes = usual.memory_bytes.min(MEMORY_BYTES);
        let limits = ImportLimits { memory_bytes, time: TIME };
        let sandbox = Sandbox::of_environment();
        Self(Importer::new("/proc/self/exe".into(), limits, Some(1), sandbox))
    }
}

/// What `tessera inspect` would say.
fn words(error: ImportError) -> String {
    let text = CliError::from(error).to_string();
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

impl Inspector for SceneInspector {
    fn inspect(&self, folder: &Path, spec: &RenderSpec) -> Result<Seen, String> {
        // Where the files lie for now is nothing to the artist.
        let within = format!("{}/", folder.display());
        let words = |error| words(error).replace(&within, "");
        let scene = self.0.load(folder, &spec.scene, &load_options(spec)).map_err(words)?;
        let (mut memory, mut device_bytes) = (None, 0);
        if scene.report().triangles <= TRIANGLES_MAX {
            let first = spec.frames.iter().next().unwrap_or(FrameNumber(0));
            let flat = scene.flatten(&flatten_options(spec, first)).map_err(words)?;
            device_bytes = flat.bytes();
            memory = SceneMemory::of(flat).ok();
        }
        let inspection = Inspection { report: scene.report(), memory };
        let report = serde_json::to_value(&inspection).unwrap_or(Value::Null);
        Ok(Seen { report, lines: describe(&inspection).0, device_bytes })
    }

    fn outline(&self, asked: &TemplateAsked) -> Result<TemplateOutline, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        match template_reader::ask(folder.path(), asked, None)? {
            Found::Outline(outline) => Ok(outline),
            Found::Plan(_) => Err("the reader answered another question".to_owned()),
        }
    }

    fn plan(
        &self,
        folder: &Path,
        asked: &TemplateAsked,
        batch: &BatchAsked,
    ) -> Result<TemplatePlan, String> {
        match template_reader::ask(folder, asked, Some(batch))? {
            Found::Plan(plan) => Ok(plan),
            Found::Outline(_) => Err("the reader answered another question".to_owned()),
        }
    }
}
