//! Jobs as a template of Open Job Description, so that farms of other kinds run them: a step a job,
//! a task a frame, `tessera render` or `tessera compute --local` a task.

use super::folders::Folders;
use crate::args::chosen::OptionValue;
use crate::args::compute::ComputeArgs;
use crate::args::files::with_place;
use crate::args::render::RenderArgs;
use crate::error::{CliError, Status};
use crate::template::{Planned, Work};
use clap::{Args, Command};
use openjd_model::{CallerLimits, decode_job_template};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use tessera_protocol::job::Until;
use tessera_protocol::names::file_name;
use tessera_protocol::{FrameSet, JobSpec};

/// Version of the specification.
const VERSION: &str = "jobtemplate-2023-09";
/// Characters of a step's name at most.
const STEP_CHARS_MAX: usize = 64;
/// Characters of a job's name at most.
const JOB_CHARS_MAX: usize = 128;
/// Bytes of a default at most: longer frames are written into the step.
const DEFAULT_MAX: usize = 1024;
/// Options that become something else, or are about no job.
const WRITTEN_APART: [&str; 12] = [
    "after",
    "after-any",
    "coordinator",
    "export",
    "format",
    "frame",
    "frames",
    "identity",
    "json",
    "name",
    "out",
    "set",
];
/// Options that only a farm of Tessera has.
const OF_FARMS: [&str; 7] =
    ["attempts", "give-up", "max-nodes", "not-before", "notify", "pool", "priority"];
/// Name of a task's parameter.
const FRAME: &str = "Frame";

/// A job that is to be exported.
pub(crate) struct Exported<'a> {
    /// Its options; files of them are looked for in the folder.
    pub(crate) job: &'a Planned,
    /// The job as a farm would get it.
    pub(crate) spec: &'a JobSpec,
}

/// A template, and what people should know of it.
pub(crate) struct Template {
    pub(crate) value: Value,
    pub(crate) notes: Vec<String>,
}

/// Writes jobs as a template that will be in the folder `here`. Files of their options are looked
/// for in `folder`.
pub(crate) fn export(
    (name, description): (&str, &str),
    jobs: &[Exported<'_>],
    (folder, here): (&Path, &Path),
) -> Result<Template, CliError> {
    let mut writer = Writer {
        render: RenderArgs::augment_args(Command::new("render")),
        compute: ComputeArgs::augment_args(Command::new("compute")),
        folders: Folders::new(here),
        left_out: BTreeSet::new(),
        notes: Vec::new(),
        folder,
    };
    // One job's frames can be set; the steps of several have their own.
    let all = match jobs {
        [one] => Some(range(one.spec.kind.frames())).filter(|text| text.len() <= DEFAULT_MAX),
        _ => None,
    };
    let is_split = jobs.iter().any(|one| splits(one.job, one.spec));
    let frames = all.filter(|_| is_split);
    let mut steps = Vec::with_capacity(jobs.len());
    for (at, one) in jobs.iter().enumerate() {
        let range = frames.as_ref().map(|_| "{{Param.Frames}}".to_owned());
        let step = writer.step((at, one), jobs, range);
        steps.push(step.map_err(|error| error.context(format!("`{}`", one.spec.name)))?);
    }
    let mut parameters = writer.folders.definitions();
    parameters.push(json!({
        "name": "Out", "type": "PATH", "objectType": "DIRECTORY", "dataFlow": "OUT",
        "default": ".", "description": "folder to which tasks write their files; it has to exist",
    }));
    parameters.push(json!({
        "name": "Tessera", "type": "STRING", "default": "tessera",
        "description": "the program, as the farm's machines find it",
    }));
    if let Some(frames) = frames {
        parameters.push(json!({
            "name": "Frames", "type": "STRING", "default": frames, "description": "frames to make",
        }));
    }
    let mut value = json!({
        "specificationVersion": VERSION,
        "name": name.chars().take(JOB_CHARS_MAX).collect::<String>(),
        "parameterDefinitions": parameters,
        "steps": steps,
    });
    if !description.is_empty() {
        value["description"] = description.into();
    }
    // What others would refuse is refused here.
    decode_job_template(value.clone(), None, &CallerLimits::default())
        .map_err(|error| usage(format!("Open Job Description cannot say this: {error}")))?;
    Ok(Template { notes: writer.all_notes(), value })
}

struct Writer<'a> {
    render: Command,
    compute: Command,
    folders: Folders,
    /// Options that only farms of Tessera have.
    left_out: BTreeSet<String>,
    notes: Vec<String>,
    /// Where files of options are looked for.
    folder: &'a Path,
}

impl Writer<'_> {
    fn step(
        &mut self,
        (at, one): (usize, &Exported<'_>),
        all: &[Exported<'_>],
        frames: Option<String>,
    ) -> Result<Value, CliError> {
        let Exported { job, spec } = one;
        let mut args = self.words(job, spec)?;
        let set = spec.kind.frames();
        let mut step = json!({ "name": step_name(at, job) });
        let flag = |of: &str| if spec.kind.render().is_some() { "--frame" } else { of }.to_owned();
        if splits(job, spec) {
            let range = frames.unwrap_or_else(|| range(set));
            let definition = json!({ "name": FRAME, "type": "INT", "range": range });
            step["parameterSpace"] = json!({ "taskParameterDefinitions": [definition] });
            args.push(format!("{}={{{{Task.Param.{FRAME}}}}}", flag("--frames")));
        } else {
            if set.len() > 1 {
                let text = "is one task: its frames depend on each other";
                self.notes.push(format!("`{}` {text}", job.name));
            }
            args.push(format!("--frames={set}"));
        }
        if let Some(hidden) = args.iter().find(|word| stray(word)) {
            let text = format!("`{hidden}`: Open Job Description has no way to write `{{{{`");
            return Err(usage(text));
        }
        let run = json!({ "command": "{{Param.Tessera}}", "args": args });
        step["script"] = json!({ "actions": { "onRun": run } });
        if spec.kind.compute().is_some_and(|compute| compute.needs_cuda()) {
            let gpu = json!({ "name": "amount.worker.gpu", "min": 1 });
            step["hostRequirements"] = json!({ "amounts": [gpu] });
        }
        let mut dependencies = Vec::new();
        for (place, until) in &job.after {
            let before = step_name(*place, all[*place].job);
            match until {
                Until::Success => {}
                Until::Frames => self.notes.push(format!(
                    "`{}` waits for all of `{before}`: elsewhere steps do not wait by frames",
                    job.name
                )),
                Until::End => {
                    let text = format!("waits for any end of `{before}`");
                    return Err(usage(text).hint("elsewhere a step waits for success only"));
                }
            }
            dependencies.push(json!({ "dependsOn": before }));
        }
        if !dependencies.is_empty() {
            step["dependencies"] = dependencies.into();
        }
        Ok(step)
    }

    /// The arguments of a task, without its frames.
    fn words(&mut self, job: &Planned, spec: &JobSpec) -> Result<Vec<String>, CliError> {
        let (verb, what) = match &job.work {
            Work::Render(scene) => ("render", self.file(scene)),
            Work::Compute(kernel) if kernel.starts_with("builtin:") => ("compute", kernel.clone()),
            Work::Compute(kernel) => ("compute", self.file(kernel)),
        };
        let mut words = vec![verb.to_owned(), what];
        let command = if verb == "render" { self.render.clone() } else { self.compute.clone() };
        for (name, value) in &job.options {
            if WRITTEN_APART.contains(&name.as_str()) {
                continue;
            }
            if OF_FARMS.contains(&name.as_str()) {
                self.left_out.insert(name.clone());
                continue;
            }
            if !command.get_arguments().any(|known| known.get_long() == Some(name)) {
                return Err(usage(format!("--{name}: a task elsewhere has no such option")));
            }
            if name == "input" && texts(value).iter().any(|text| text.contains("=job:")) {
                let text = "reads frames of another job, and elsewhere tasks read files only";
                return Err(usage(text));
            }
            match value {
                OptionValue::Switch(true) => words.push(format!("--{name}")),
                OptionValue::Switch(false) => {}
                OptionValue::Text(text) => words.push(self.word(name, text)),
                OptionValue::Texts(texts) => {
                    words.extend(texts.iter().map(|text| self.word(name, text)));
                }
            }
        }
        words.extend(outputs(job, spec));
        Ok(words)
    }

    fn word(&mut self, name: &str, text: &str) -> String {
        with_place(name, text, |path| self.file(path))
    }

    fn file(&mut self, path: &str) -> String {
        self.folders.place(&self.folder.join(path))
    }

    fn all_notes(self) -> Vec<String> {
        let Self { left_out, mut notes, folders, .. } = self;
        if !left_out.is_empty() {
            let names: Vec<String> = left_out.iter().map(|name| format!("--{name}")).collect();
            notes.push(format!("only a farm of Tessera has {}: left out", names.join(", ")));
        }
        notes.extend(folders.outside().map(|(name, folder)| {
            format!(
                "the parameter {name} has to be set: {} is not below this folder",
                folder.display()
            )
        }));
        notes
    }
}

/// Whether each frame is a task: else they depend on each other.
fn splits(job: &Planned, spec: &JobSpec) -> bool {
    let is_metered = |(name, value): &(String, OptionValue)| {
        name == "exposure" && *value == OptionValue::Text("auto".to_owned())
    };
    let has_feed = |(name, _): &(String, OptionValue)| name == "feed";
    spec.kind.frames().len() > 1
        && !job.options.iter().any(|option| is_metered(option) || has_feed(option))
}

/// The options that say where a task writes its files: as the farm names them.
fn outputs(job: &Planned, spec: &JobSpec) -> Vec<String> {
    let stem = file_name(&spec.name);
    let file = |extension: &str| format!("{{{{Param.Out}}}}/{stem}.####.{extension}");
    let formats: Vec<&str> = match option(job, "format") {
        Some(OptionValue::Text(text)) => text.split(',').collect(),
        Some(OptionValue::Texts(texts)) => texts.iter().map(String::as_str).collect(),
        _ if spec.kind.render().is_some() => vec!["exr"],
        _ => vec!["npy"],
    };
    let Some(compute) = spec.kind.compute() else {
        let mut words = Vec::new();
        for format in formats {
            let extension = match format {
                "jpeg" => "jpg",
                "png16" => "png",
                other => other,
            };
            words.extend(["-o".to_owned(), file(extension)]);
            words.extend((format == "png16").then(|| "--png16".to_owned()));
        }
        return words;
    };
    let format = formats.first().copied().unwrap_or("npy");
    let is_named = compute.written().iter().any(|output| !output.name.is_empty());
    let extension = if is_named { format!("{{output}}.{format}") } else { format.to_owned() };
    vec!["--local".to_owned(), "--out".to_owned(), file(&extension)]
}

fn texts(value: &OptionValue) -> &[String] {
    match value {
        OptionValue::Text(text) => std::slice::from_ref(text),
        OptionValue::Texts(texts) => texts,
        OptionValue::Switch(_) => &[],
    }
}

fn option<'a>(job: &'a Planned, name: &str) -> Option<&'a OptionValue> {
    job.options.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// `film`, or `look.seed=7`; a number where that is too long for a step's name.
fn step_name(at: usize, job: &Planned) -> String {
    let values: Vec<String> =
        job.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let name = match values.is_empty() {
        true => job.step.clone(),
        false => format!("{}.{}", job.step, values.join(",")),
    };
    match name.chars().count() > STEP_CHARS_MAX || name.chars().any(char::is_control) {
        true => format!("step {}", at + 1),
        false => name,
    }
}

/// Frames as a range of the specification: `1-9:2,20`.
fn range(frames: &FrameSet) -> String {
    frames.to_string().replace('x', ":")
}

/// Braces that would be taken for an expression.
fn stray(word: &str) -> bool {
    let mut rest = word.to_owned();
    for known in ["{{Param.Out}}", "{{Task.Param.Frame}}"] {
        rest = rest.replace(known, "");
    }
    while let Some(at) = rest.find("{{Param.Folder") {
        let Some(end) = rest[at..].find("}}") else { return true };
        rest.replace_range(at..at + end + 2, "");
    }
    rest.contains("{{") || rest.contains("}}")
}

fn usage(text: impl Into<String>) -> CliError {
    CliError::new(Status::Usage, text.into())
}
