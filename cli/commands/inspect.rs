//! `inspect`: what is in a scene, what will be ignored, how much memory it needs.

use crate::args::local::InspectArgs;
use crate::error::{CliError, Status};
use crate::table::{bytes, printable};
use crate::{json, spec};
use std::fmt::Write as _;
use tessera_scenes::{CameraChoice, SceneReport};

/// Bytes of hierarchy a triangle takes, about.
const HIERARCHY_BYTES: u64 = 80;

/// `tessera inspect`.
pub(crate) fn run(args: InspectArgs) -> Result<Status, CliError> {
    let scene = spec::load(&args.scene, &args.env, None, args.import.limits())?;
    match args.json {
        true => json::print(scene.report())?,
        false => json::line(describe(scene.report()).trim_end())?,
    }
    Ok(Status::Done)
}

fn describe(report: &SceneReport) -> String {
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
        let played = if animation.played { "" } else { " (not played: only the first is)" };
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
    let hierarchy = report.triangles.saturating_mul(HIERARCHY_BYTES);
    field("memory", format!("{} and about {} of hierarchy", bytes(report.memory_bytes), bytes(hierarchy)));
    for warning in
        report.warnings.iter().map(String::as_str).chain(report.camera_note(&CameraChoice::Default))
    {
        field("warning", warning.to_owned());
    }
    text
}
