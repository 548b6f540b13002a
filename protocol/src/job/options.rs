//! The table of a render job's options: what each is called, what it changes, and how listings and
//! files tell of it. A field of [`RenderSpec`] without a row fails a test.

use super::{RenderSpec, described};
use serde_json::Value;

/// What of a picture an option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The film: which samples are taken, of what, and what is kept of them.
    Film,
    /// Only what is made of the film: its files.
    Finishing,
    /// The film, and what is made of it.
    FilmAndFinishing,
    /// Nothing: only how the work is cut.
    Neither,
}

impl Effect {
    /// Whether it changes the film.
    pub fn has_film(self) -> bool {
        matches!(self, Self::Film | Self::FilmAndFinishing)
    }

    /// Whether it changes the pixels or the files of a frame.
    pub fn has_picture(self) -> bool {
        self != Self::Neither
    }
}

/// How listings and files tell of an option that is not at its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// By the field's name and its value. A new option needs no more.
    ByName,
    /// By this name and its value, in files.
    As(&'static str),
    /// Otherwise: a listing has a line for it, or one sees it in the file.
    Otherwise,
}

/// What people must know about a picture that was made with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What is not as the scene says.
    pub subject: &'static str,
    /// What is done to it; the option's value comes behind it.
    pub treatment: &'static str,
    /// How the picture differs.
    pub result: &'static str,
}

/// An option of a render job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOption {
    /// Field of [`RenderSpec`].
    pub field: &'static str,
    /// Options of the command line that set it, by commas; empty where none does.
    pub flags: &'static str,
    /// What it changes.
    pub effect: Effect,
    /// How it is told.
    pub told: Told,
    /// What commands and files must say of it.
    pub warning: Option<Warning>,
}

impl RenderOption {
    /// Its name for people: the first of its flags.
    pub fn name(&self) -> &'static str {
        match self.flags.split(',').next() {
            Some(flag) if !flag.is_empty() => flag,
            _ => self.field,
        }
    }

    /// Its name in files; None where one sees it otherwise.
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

/// A row of an option that listings and files tell in words of their own.
const fn plain(field: &'static str, flags: &'static str, effect: Effect) -> RenderOption {
    RenderOption { told: Told::Otherwise, ..row(field, flags, effect) }
}

/// What a picture with bounded light is.
const CLAMPED: Warning =
    Warning { subject: "indirect light", treatment: "clamped at", result: "darker than the scene" };

/// One row for each field, in their order.
pub const OPTIONS: [RenderOption; 26] = [
    plain("scene", "", Effect::Film),
    plain("files", "", Effect::Film),
    row("environment", "env", Effect::Film),
    row("environment_intensity", "env-intensity", Effect::Film),
    row("environment_rotation_degrees", "env-rotate", Effect::Film),
    row("camera", "camera,eye,target,up,vfov", Effect::Film),
    row(
        "lens",
        "lens-radius,f-stop,focus-distance,focus-point,blades,blade-rotation",
        Effect::Film,
    ),
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
];

/// An option of a job that is not at its default, with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Its row.
    pub option: &'static RenderOption,
    /// Its value, as the job's JSON has it.
    pub value: Value,
}

impl Chosen {
    /// Its value for people: texts without quotes.
    pub fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            // `4` and not `4.0`.
            Value::Number(number) if number.is_f64() => {
                number.as_f64().map_or_else(|| number.to_string(), |value| value.to_string())
            }
            other => other.to_string(),
        }
    }

    /// Name and value for people.
    pub fn words(&self) -> String {
        match &self.value {
            Value::Bool(true) => self.option.name().to_owned(),
            _ => format!("{} {}", self.option.name(), self.text()),
        }
    }

    /// What a file of the picture must say; None where there is nothing to say.
    pub fn file_note(&self) -> Option<String> {
        let Warning { subject, treatment, result } = self.option.warning?;
        Some(format!("{subject} {treatment} {}: {result}", self.text()))
    }

    /// What a command must say; None where there is nothing to say.
    pub fn sentence(&self) -> Option<String> {
        let Warning { subject, treatment, result } = self.option.warning?;
        Some(format!("{subject} is {treatment} {}: the picture is {result}", self.text()))
    }
}

/// The options of a job that are not at their default, in the order of the table.
pub fn away_from_default(render: &RenderSpec) -> Vec<Chosen> {
    let away = described::options_away(render);
    // Through its text, in which a number has the digits that were given.
    let values = serde_json::to_string(render).and_then(|text| serde_json::from_str(&text));
    let values: Value = values.unwrap_or_default();
    OPTIONS
        .iter()
        .filter(|option| away.iter().any(|(field, _)| field == option.field))
        .map(|option| Chosen { option, value: values[option.field].clone() })
        .collect()
}

/// The options that a listing has no line of its own for, with their values; None where it has one
/// for each.
pub fn words(chosen: &[Chosen]) -> Option<String> {
    let told = chosen.iter().filter(|chosen| chosen.option.told != Told::Otherwise);
    let words: Vec<String> = told.map(Chosen::words).collect();
    (!words.is_empty()).then(|| words.join(", "))
}
