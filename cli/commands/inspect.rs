//! `inspect`: shows what a scene holds, what is ignored, and the memory it needs.

use crate::args::inspect::InspectArgs;
use crate::error::{CliError, Status};
use crate::json;
use crate::submission::render;
use crate::table::{bytes, printable};
use serde::Serialize;
use std::fmt::Write as _;
use tessera_node::device::SceneMemory;
use tessera_node::import::ImportedScene;
use tessera_scenes::{CameraChoice, FlattenOptions, SceneReport};

/// Output of `--json`.
#[derive(Serialize)]
struct Inspection<'a> {
    #[serde(flatten)]
    report: &'a SceneReport,
    memory: Option<SceneMemory>,
}

/// `tessera inspect`.
pub(crate) fn run(args: InspectArgs) -> Result<Status, CliError> {
    let scene = render::load(&args.scene, &args.env, None, args.import.limits())?;
    let inspection = Inspection { report: scene.report(), memory: memory(&scene)? };
    match args.json {
        true => json::print(&inspection)?,
        false => json::line(describe(&inspection).trim_end())?,
    }
    Ok(Status::Done)
}

/// Lays the first frame out as nodes do, so that the figures are what devices will hold. None where
/// it cannot be laid out, which rendering will tell of in full.
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
            "{} ({} stored), {}, {}, {}, {}",
            counted(report.triangles, "triangle", "triangles"),
            report.triangles_stored,
            counted(report.vertices, "vertex", "vertices"),
            counted(report.meshes, "mesh", "meshes"),
            counted(report.nodes, "node", "nodes"),
            counted(report.skins, "skin", "skins")
        ),
    );
    if report.instances > 0 {
        let places = counted(report.instances, "place", "places");
        field("instances", format!("{places} of meshes that are held once"));
    }
    let [lower, upper] = [report.bounds_lower, report.bounds_upper].map(place);
    field("bounds", format!("{lower} to {upper} m"));
    let texture_bytes = report.textures.iter().map(|texture| texture.bytes).sum();
    field("materials", report.materials.to_string());
    field("textures", format!("{}, {}", report.textures.len(), bytes(texture_bytes)));
    field(
        "lights",
        format!(
            "{} punctual, {}",
            report.punctual_lights,
            counted(report.emissive_triangles, "emissive triangle", "emissive triangles")
        ),
    );
    field("environment", report.environment.clone());
    for camera in &report.cameras {
        field("camera", format!("{} {} {}", camera.index, camera.kind, camera.name));
    }
    for variant in &report.variants {
        field("variant", variant.clone());
    }
    for animation in &report.animations {
        let played =
            if animation.played { "" } else { " (not played: it moves what an earlier one moves)" };
        let length = animation.length_secs;
        let channels = counted(animation.channels.into(), "channel", "channels");
        field("animation", format!("{:?}, {length:.3} s, {channels}{played}", animation.name));
    }
    for extension in &report.extensions {
        let applied = match (extension.applied, extension.required) {
            (true, _) => "applied".to_owned(),
            (false, _) => format!("ignored: {}", extension.effect),
        };
        field("extension", format!("{}, {applied}", extension.name));
    }
    if let Some(SceneMemory { processor_bytes, gpu_bytes }) = inspection.memory {
        field(
            "memory",
            format!("{} on a processor, {} on a GPU", bytes(processor_bytes), bytes(gpu_bytes)),
        );
    }
    for warning in
        report.warnings.iter().map(String::as_str).chain(report.camera_note(&CameraChoice::Default))
    {
        field("warning", warning.to_owned());
    }
    text
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A place to the micrometre: what floats have beyond it is noise.
fn place(point: [f32; 3]) -> String {
    // 0 and not -0.
    let [x, y, z] = point.map(|coordinate| (f64::from(coordinate) * 1e6).round() / 1e6 + 0.0);
    format!("({x}, {y}, {z})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(counted(1, "mesh", "meshes"), "1 mesh");
        assert_eq!(
            [counted(0, "mesh", "meshes"), counted(12, "mesh", "meshes")],
            ["0 meshes", "12 meshes"]
        );
        assert_eq!(place([-0.100_000_024, 7.25, -1e-9]), "(-0.1, 7.25, 0)");
    }
}
