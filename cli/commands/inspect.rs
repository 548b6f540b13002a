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
use tessera_scenes::{
    AnimationReport, CameraChoice, CameraReport, FlattenOptions, LightUnits, MotionPart,
    MotionReport, SceneReport, WorkingSpace, rate_name,
};

/// Output of `--json`.
#[derive(Serialize)]
pub(crate) struct Inspection<'a> {
    #[serde(flatten)]
    pub(crate) report: &'a SceneReport,
    pub(crate) memory: Option<SceneMemory>,
}

/// `tessera inspect`.
pub(crate) fn run(args: InspectArgs) -> Result<Status, CliError> {
    let options = render::load_options(&args.env, args.lights);
    let scene = render::load(&args.scene, &options, args.import.limits())?;
    let inspection = Inspection { report: scene.report(), memory: memory(&scene)? };
    match args.json {
        true => json::print(&inspection)?,
        false => json::line(describe(&inspection).text().trim_end())?,
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

/// Names and values, a line each.
#[derive(Default)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    fn add(&mut self, name: &str, value: impl AsRef<str>) {
        self.0.push((name.to_owned(), printable(value.as_ref()).to_string()));
    }

    fn text(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name:<12}{value}\n")).collect()
    }
}

/// What people read of a scene.
pub(crate) fn describe(inspection: &Inspection) -> Fields {
    let report = inspection.report;
    let mut fields = Fields::default();
    fields.add("file", &report.file);
    if !report.generator.is_empty() {
        fields.add("generator", &report.generator);
    }
    add_geometry(&mut fields, report);
    add_appearance(&mut fields, report);
    add_choices(&mut fields, report);
    if let Some(motion) = &report.motion {
        add_motion(&mut fields, motion);
    }
    add_extensions(&mut fields, report);
    if let Some(SceneMemory { processor_bytes, gpu_bytes }) = inspection.memory {
        let (processor, gpu) = (bytes(processor_bytes), bytes(gpu_bytes));
        fields.add("memory", format!("{processor} on a processor, {gpu} on a GPU"));
    }
    let note = report.camera_note(&CameraChoice::Default);
    for warning in report.warnings.iter().map(String::as_str).chain(note) {
        fields.add("warning", warning);
    }
    fields
}

/// Triangles, their places and their bounds.
fn add_geometry(fields: &mut Fields, report: &SceneReport) {
    fields.add(
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
        fields.add("instances", format!("{places} of meshes that are held once"));
    }
    let [lower, upper] = [report.bounds_lower, report.bounds_upper].map(place);
    fields.add("bounds", format!("{lower} to {upper} m"));
    let WorkingSpace { origin: [x, y, z], exponent } = report.space;
    if report.space != WorkingSpace::FILE {
        let moved = if report.space.origin == [0.0; 3] {
            String::new()
        } else {
            format!("about ({x}, {y}, {z}) m")
        };
        let scaled =
            if exponent == 0 { String::new() } else { format!("at 2^{exponent} its size") };
        let words: Vec<String> = [moved, scaled].into_iter().filter(|w| !w.is_empty()).collect();
        let why = "for single precision; layers keep the file's metres";
        fields.add("rendered", format!("{}, {why}", words.join(", ")));
    }
}

/// Materials, textures and lights.
fn add_appearance(fields: &mut Fields, report: &SceneReport) {
    let texture_bytes = report.textures.iter().map(|texture| texture.bytes).sum();
    fields.add("materials", report.materials.to_string());
    fields.add("textures", format!("{}, {}", report.textures.len(), bytes(texture_bytes)));
    let emissive = counted(report.emissive_triangles, "emissive triangle", "emissive triangles");
    let units = match (report.punctual_lights, report.light_units) {
        (0, _) => "",
        (_, LightUnits::Radiometric) => " (read as W/sr and W/m²)",
        (_, LightUnits::Photometric) => " (read as candela and lux)",
    };
    fields.add("lights", format!("{} punctual{units}, {emissive}", report.punctual_lights));
    fields.add("environment", &report.environment);
}

/// What options of a render choose among: cameras, variants and animations.
fn add_choices(fields: &mut Fields, report: &SceneReport) {
    if report.scenes.len() > 1 {
        for (index, name) in report.scenes.iter().enumerate() {
            let shown = if index == report.shown_scene as usize { " (shown)" } else { "" };
            fields.add("scene", format!("{index} {name:?}{shown}"));
        }
    }
    for camera in &report.cameras {
        fields.add("camera", camera_words(camera));
    }
    for variant in &report.variants {
        fields.add("variant", variant);
    }
    for (index, animation) in report.animations.iter().enumerate() {
        let played = if animation.played { "" } else { " (not played; see --animation)" };
        let channels = counted(animation.channels.into(), "channel", "channels");
        let length = length(animation);
        fields.add(
            "animation",
            format!("{index} {:?}, {length}, {channels}{played}", animation.name),
        );
    }
}

/// What a film places once, and what in every frame.
fn add_motion(fields: &mut Fields, motion: &MotionReport) {
    let standing = match motion.is_placed_once {
        true => "placed once",
        false => "placed in every frame, because that is little",
    };
    let parts = [
        ("standing still", motion.stands, standing),
        ("standing still and emitting", motion.emits, EVERY_FRAME),
        ("coming and going, or changing with their material", motion.varies, EVERY_FRAME),
        ("moving as they are", motion.moves, EVERY_FRAME),
        ("changing their shape", motion.deforms, EVERY_FRAME),
    ];
    for (what, MotionPart { triangles, bytes: placed, held_triangles }, when) in parts {
        if triangles > 0 {
            let mut words = format!("{triangles} {what}; {}, {when}", bytes(placed));
            if held_triangles > 0 {
                let _ =
                    write!(words, "; {held_triangles} are held once, and only their places change");
            }
            fields.add("triangles", words);
        }
    }
}

const EVERY_FRAME: &str = "placed in every frame";

/// Length of a clip in seconds, and in frames at the rates that its keys fit.
fn length(animation: &AnimationReport) -> String {
    let secs = animation.length_secs;
    let frames = |rate: f64| (secs * rate).round();
    let (rate, last) = animation.last_frame();
    let rates: Vec<String> = animation
        .rates
        .iter()
        .map(|rate| format!("{} at {} fps", frames(*rate), rate_name(*rate)))
        .collect();
    match rates.is_empty() {
        false => format!("{secs:.3} s = frames 0 to {}", rates.join(" or ")),
        true => format!("{secs:.3} s, about frames 0 to {last} at {} fps", rate_name(rate)),
    }
}

/// `#0 `name` (perspective)`; the number and the name are values of --camera.
fn camera_words(camera: &CameraReport) -> String {
    let CameraReport { index, name, kind, .. } = camera;
    let name = if name.is_empty() { String::new() } else { format!(" `{name}`") };
    format!("#{index}{name} ({kind})")
}

/// Extensions of the file, and what is lost with those that are ignored.
fn add_extensions(fields: &mut Fields, report: &SceneReport) {
    for extension in &report.extensions {
        let applied = match extension.applied {
            true => "applied".to_owned(),
            false => format!("ignored: {}", extension.effect),
        };
        fields.add("extension", format!("{}, {applied}", extension.name));
    }
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
        let camera = |name: &str| {
            let (name, kind) = (name.to_owned(), "perspective".into());
            camera_words(&CameraReport { index: 0, name, kind, aspect: None })
        };
        assert_eq!([camera("eye"), camera("")], ["#0 `eye` (perspective)", "#0 (perspective)"]);
        assert_eq!(place([-0.100_000_024, 7.25, -1e-9]), "(-0.1, 7.25, 0)");
    }
}
