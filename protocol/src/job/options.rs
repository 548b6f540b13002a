//! The table of a render job's options: how each one is named, what it changes, and how listings
//! and files show it. A test fails if a field of [`RenderSpec`] has no row.

use super::{RenderSpec, described};
use serde_json::Value;

/// Part of a picture that an option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The film: which samples are taken, and what is kept of them.
    Film,
    /// Only the files that are made from the film.
    Finishing,
    /// The film, and the files that are made from it.
    FilmAndFinishing,
    /// No pixel: only how the work is divided.
    Neither,
}

impl Effect {
    /// Returns whether the option changes the film.
    pub fn has_film(self) -> bool {
        matches!(self, Self::Film | Self::FilmAndFinishing)
    }

    /// Returns whether the option changes the pixels or the files of a frame.
    pub fn has_picture(self) -> bool {
        self != Self::Neither
    }
}

/// How listings and files show an option that is not at its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// By the field's name and the option's value. This is enough for a new option.
    ByName,
    /// By this name and the option's value, in files.
    As(&'static str),
    /// In another way: a listing has its own line for it, or the file shows it.
    Otherwise,
}

/// What people must know about a picture that was made with the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The part of the picture that differs from the scene.
    pub subject: &'static str,
    /// What the option does to that part. The option's value follows this text.
    pub treatment: &'static str,
    /// How the picture differs.
    pub result: &'static str,
}

/// An option of a render job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOption {
    /// Name of the field of [`RenderSpec`].
    pub field: &'static str,
    /// Options of the command line that set the field, separated by commas; empty if there are
    /// none.
    pub flags: &'static str,
    /// Part of the picture that the option changes.
    pub effect: Effect,
    /// How listings and files show the option.
    pub told: Told,
    /// Warning that commands and files must show with the picture.
    pub warning: Option<Warning>,
}

impl RenderOption {
    /// Returns the name for people, which is the first of the flags.
    pub fn name(&self) -> &'static str {
        match self.flags.split(',').next() {
            Some(flag) if !flag.is_empty() => flag,
            _ => self.field,
        }
    }

    /// Returns the name in files; None if files show the option in another way.
    pub fn file_key(&self) -> Option<&'static str> {
        match self.told {
            Told::ByName => Some(self.field),
            Told::As(key) => Some(key),
            Told::Otherwise => None,
        }
    }
}

const fn row(field: &'static str, flags: &'static str, effect: Effect) -> RenderOption {
    RenderOption { field, flags, effect, told: Told::ByName, warning: None }
}

/// Creates the row of an option that listings and files show in their own words.
const fn plain(field: &'static str, flags: &'static str, effect: Effect) -> RenderOption {
    RenderOption { told: Told::Otherwise, ..row(field, flags, effect) }
}

/// Warning for a picture with clamped light.
const CLAMPED: Warning =
    Warning { subject: "indirect light", treatment: "clamped at", result: "darker than the scene" };

/// One row for each field of [`RenderSpec`], in their order.
pub const OPTIONS: [RenderOption; 40] = [
    plain("scene", "", Effect::Film),
    plain("files", "", Effect::Film),
    row("environment", "env", Effect::Film),
    row("environment_intensity", "env-intensity", Effect::Film),
    row("environment_rotation_degrees", "env-rotate", Effect::Film),
    row("shown_scene", "scene", Effect::Film),
    row("animations", "animation", Effect::Film),
    row("lights", "lights", Effect::Film),
    row("camera", "camera,eye,target,up,vfov", Effect::Film),
    row(
        "lens",
        "lens-radius,f-stop,focus-distance,focus-point,blades,blade-rotation,sensor-width",
        Effect::Film,
    ),
    row("shift", "shift", Effect::Film),
    plain("width", "size", Effect::Film),
    plain("height", "size", Effect::Film),
    plain("frames", "frame,frames", Effect::Neither),
    row("fps", "fps", Effect::Film),
    plain("spp", "spp", Effect::Film),
    plain("depth", "depth", Effect::Film),
    plain("seed", "seed", Effect::Film),
    row("filter", "filter", Effect::Film),
    row("tile", "tile", Effect::Neither),
    row("unit_samples", "unit-samples", Effect::Neither),
    plain("aovs", "aov", Effect::Film),
    plain("formats", "format", Effect::Finishing),
    plain("exposure", "exposure", Effect::Finishing),
    plain("tone_map", "tone-map", Effect::Finishing),
    row("variant", "variant", Effect::Film),
    RenderOption {
        told: Told::As("denoised"),
        ..row("denoise", "denoise", Effect::FilmAndFinishing)
    },
    row("noise", "noise", Effect::FilmAndFinishing),
    row("time_secs", "time", Effect::FilmAndFinishing),
    RenderOption { warning: Some(CLAMPED), ..row("clamp", "clamp", Effect::Film) },
    row("exr_depth", "exr-depth", Effect::Finishing),
    row("transparent", "transparent", Effect::FilmAndFinishing),
    row("crop", "crop", Effect::Finishing),
    row("overscan", "overscan", Effect::FilmAndFinishing),
    row("look", "look", Effect::Finishing),
    row("exr_layers", "exr-depth", Effect::Finishing),
    row("exr_compression", "exr-compression", Effect::Finishing),
    row("jpeg_quality", "jpeg-quality", Effect::Finishing),
    row("auto_exposure", "exposure", Effect::Finishing),
    plain("space", "", Effect::FilmAndFinishing),
];

/// An option of a job that is not at its default, with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Row of the option in [`OPTIONS`].
    pub option: &'static RenderOption,
    /// Value of the option, as in the job's JSON.
    pub value: Value,
}

impl Chosen {
    /// Returns the value for people. Texts have no quotes.
    pub fn text(&self) -> String {
        text_of(&self.value)
    }

    /// Returns name and value for people, as options of the command line.
    pub fn words(&self) -> String {
        let flags = match self.option.field {
            "environment" | "camera" => flags_of_choice(&self.value, self.option.name()),
            "lens" => flags_of_lens(&self.value),
            "animations" => {
                let names = self.value.as_array().into_iter().flatten();
                names.map(|name| (self.option.name(), name)).collect()
            }
            "auto_exposure" => return format!("{} auto", self.option.name()),
            "exr_layers" => return words_of_layers(&self.value, self.option.name()),
            _ => vec![(self.option.name(), &self.value)],
        };
        let words = flags.into_iter().map(|(flag, value)| match value {
            Value::Bool(true) => flag.to_owned(),
            Value::String(text) if self.option.field == "environment" && text == "None" => {
                format!("{flag} none")
            }
            value => format!("{flag} {}", text_of(value)),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// Returns the warning for a file of the picture; None if there is no warning.
    pub fn file_note(&self) -> Option<String> {
        let Warning { subject, treatment, result } = self.option.warning?;
        Some(format!("{subject} {treatment} {}: {result}", self.text()))
    }

    /// Returns the warning for the output of a command; None if there is no warning.
    pub fn sentence(&self) -> Option<String> {
        let Warning { subject, treatment, result } = self.option.warning?;
        Some(format!("{subject} is {treatment} {}: the picture is {result}", self.text()))
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // `4` and not `4.0`.
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(|| number.to_string(), |value| value.to_string())
        }
        // As the command line takes a crop: `8,16,64x48`.
        Value::Object(fields) if fields.len() == 4 && fields.contains_key("width") => {
            let [x, y, width, height] = ["x", "y", "width", "height"].map(|key| &value[key]);
            format!("{x},{y},{width}x{height}")
        }
        // A choice by name or by number.
        Value::Object(fields) if fields.len() == 1 => {
            fields.values().map(text_of).next().unwrap_or_default()
        }
        // As the command line takes points: `1,2,3`.
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Returns the flags of a value that is one of several kinds. A kind with fields has a flag for
/// each of them; the only flag of every other kind is `name`.
fn flags_of_choice<'a>(value: &'a Value, name: &'static str) -> Vec<(&'static str, &'a Value)> {
    let chosen = value.as_object().and_then(|kinds| kinds.values().next()).unwrap_or(value);
    let fields = [
        ("path", name),
        ("eye", "eye"),
        ("target", "target"),
        ("up", "up"),
        ("vfov_degrees", "vfov"),
    ];
    let named = fields.into_iter().filter_map(|(field, flag)| Some((flag, chosen.get(field)?)));
    let named: Vec<_> = named.collect();
    if named.is_empty() { vec![(name, chosen)] } else { named }
}

/// Returns the precision of each layer, as the command line takes it.
fn words_of_layers(layers: &Value, name: &str) -> String {
    let layers = layers.as_array().into_iter().flatten();
    let words = layers.map(|of| format!("{}={}", text_of(&of["layer"]), text_of(&of["depth"])));
    format!("{name} {}", words.collect::<Vec<_>>().join(","))
}

fn flags_of_lens(lens: &Value) -> Vec<(&'static str, &Value)> {
    let flags = [
        ("/aperture/radius", "lens-radius"),
        ("/aperture/f-stop", "f-stop"),
        ("/focus/distance", "focus-distance"),
        ("/focus/point", "focus-point"),
        ("/blades/count", "blades"),
        ("/blades/rotation_degrees", "blade-rotation"),
        ("/sensor_width_mm", "sensor-width"),
    ];
    flags.into_iter().filter_map(|(place, flag)| Some((flag, lens.pointer(place)?))).collect()
}

/// Returns the options of a job that are not at their default, in the order of the table.
pub fn away_from_default(render: &RenderSpec) -> Vec<Chosen> {
    let away = described::options_away(render);
    // Convert through text, so that a number keeps the digits that the user gave.
    let values = serde_json::to_string(render).and_then(|text| serde_json::from_str(&text));
    let values: Value = values.unwrap_or_default();
    OPTIONS
        .iter()
        .filter(|option| away.iter().any(|(field, _)| field == option.field))
        .map(|option| Chosen { option, value: values[option.field].clone() })
        .collect()
}

/// Returns the options for which a listing has no line of its own, with their values. None if there
/// is no such option.
pub fn words(chosen: &[Chosen]) -> Option<String> {
    let told = chosen.iter().filter(|chosen| chosen.option.told != Told::Otherwise);
    let words: Vec<String> = told.map(Chosen::words).collect();
    (!words.is_empty()).then(|| words.join(", "))
}
