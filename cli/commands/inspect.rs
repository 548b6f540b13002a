//! `inspect`: what is in a scene, what will be ignored, how much memory it needs.

use crate::args::local::InspectArgs;
use crate::error::{CliError, Status};
use crate::table::{bytes, printable};
use crate::{json, spec};
use serde::Serialize;
use std::fmt::Write as _;
use tessera_node::device::SceneMemory;
use tessera_node::import::ImportedScene;
use tessera_scenes::{CameraChoice, FlattenOptions, SceneReport};

/// What `--json` prints.
#[derive(Serialize)]
struct Inspection<'a> {
    #[serde(flatten)]
    report: &'a SceneReport,
    memory: Option<SceneMemory>,
}

/// `tessera inspect`.
pub(crate) fn run(args: InspectArgs) -> Result<Status, CliError> {
    let scene = spec::load(&args.scene, &args.env, None, args.import.limits())?;
    let inspection = Inspection { report: scene.report(), memory: memory(&scene)? };
    match args.json {
        true => json::print(&inspection)?,
        false => json::line(describe(&inspection).trim_end())?,
    }
    Ok(Status::Done)
}

/// Lays the first frame out as nodes do, so that the figures are what devices will hold. None where it cannot be laid out, which
/// rendering will tell of in full.
fn memory(scene: &ImportedScene) -> Result<Option<SceneMemory>, CliError> {
    match scene.flatten(&FlattenOptions::still(1, 1)) {
        Ok(flat) => Ok(SceneMemory::of(flat).ok()),
        Err(error) if error.is_end() => Err(error.into()),
        Err(_) => Ok(None),
    }
}

fn describe(inspection: &Inspection) -> String {
    let report = inspection.report;
    let mut text = String::new();
    let mut field = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<12}{}", printable(&value));
    };
    field("file", report.file.clone());
    if !report.generator.is_empty() {
        field("generator", report.generator.clone());
    }
    field(
        "geometry",
        format!(
            "{} triangles ({} stored), {} vertices, {} meshes, {} nodes, {} skins",
            report.triangles,
            report.triangles_stored,
            report.vertices,
            report.meshes,
            report.nodes,
            report.skins
        ),
    );
    let [lower, upper] =
        [report.bounds_lower, report.bounds_upper].map(|p| format!("({}, {}, {})", p[0], p[1], p[2]));
    field("bounds", format!("{lower} to {upper} m"));
    let texture_bytes = report.textures.iter().map(|texture| texture.bytes).sum();
    field("materials", report.materials.to_string());
    field("textures", format!("{}, {}", report.textures.len(), bytes(texture_bytes)));
    field(
        "lights",
        format!("{} punctual, {} emissive triangles", report.punctual_lights, report.emissive_triangles),
    );
    field("environment", report.environment.clone());
    for camera in &report.cameras {
        field("camera", format!("{} {} {}", camera.index, camera.kind, camera.name));
    }
    for variant in &report.variants {
        field("variant", variant.clone());
    }
    for animation in &report.animations {
        let played = if animation.played { "" } else { " (not played: it moves what an earlier one moves)" };
        let length = animation.length_secs;
        field(
            "animation",
            format!("{:?}, {length:.3} s, {} channels{played}", animation.name, animation.channels),
        );
    }
    for extension in &report.extensions {
        let applied = match (extension.applied, extension.required) {
            (true, _) => "applied".to_owned(),
            (false, _) => format!("ignored: {}", extension.effect),
        };
        field("extension", format!("{}, {applied}", extension.name));
    }
    if let Some(SceneMemory { processor_bytes, gpu_bytes }) = inspection.memory {
        field("memory", format!("{} on a processor, {} on a GPU", bytes(processor_bytes), bytes(gpu_bytes)));
    }
    for warning in
        report.warnings.iter().map(String::as_str).chain(report.camera_note(&CameraChoice::Default))
    {
        field("warning", warning.to_owned());
    }
    text
}
