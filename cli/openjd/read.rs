//! From a document to its steps, with the words of all their tasks. What a farm of Tessera cannot
//! do is refused by its name.

use crate::template::{FILE_BYTES_MAX, OPTIONS_BYTES_MAX, STEPS_MAX, TemplateError, step_place};
use openjd_expr::path_mapping::PathFormat;
use openjd_expr::{ExprProfile, ExprRevision, ExprValue, FunctionLibrary, HostContext};
use openjd_model::format_string::FormatStringOptions;
use openjd_model::job::{Action, Job, Step};
use openjd_model::template::JobTemplate;
use openjd_model::template::parse::document_string_to_object;
use openjd_model::{
    CallerLimits, DocumentType, FormatString, JobParameterType, ModelExtension,
    PathParameterOptions, StepDependencyGraph, StepParameterSpaceIterator, SymbolTable,
    ValidationContext, create_job, decode_job_template, evaluate_let_bindings,
    preprocess_job_parameters,
};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// Most tasks of a template: a film of a frame a task.
const TASKS_MAX: u64 = 100_000;
/// Lines of a message at most: a document may be wrong in as many places as it has.
const LINES_MAX: usize = 12;
/// Characters of one of them at most.
const LINE_CHARS_MAX: usize = 400;

/// What a document describes.
pub(super) struct Document {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) steps: Vec<StepTasks>,
    /// Places of the steps, each after those that it waits for.
    pub(super) order: Vec<usize>,
    /// What is not kept.
    pub(super) notes: Vec<String>,
}

/// A step and all its tasks.
pub(super) struct StepTasks {
    pub(super) name: String,
    /// Places of the steps that it waits for.
    pub(super) after: Vec<usize>,
    pub(super) tasks: Vec<Task>,
}

/// A task: the command that it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// Values of its parameters.
    pub(super) values: BTreeMap<String, String>,
    /// Program and arguments.
    pub(super) words: Vec<String>,
}

/// Reads a document and gives its parameters (`NAME=VALUE`) their values.
pub(super) fn read(text: &str, path: &Path, set: &[String]) -> Result<Document, TemplateError> {
    let is_json = path.extension().is_some_and(|of| of.eq_ignore_ascii_case("json"));
    let form = if is_json { DocumentType::Json } else { DocumentType::Yaml };
    let limits = CallerLimits {
        max_step_count: Some(STEPS_MAX),
        max_task_count: Some(TASKS_MAX),
        max_template_size: Some(FILE_BYTES_MAX as usize),
        ..CallerLimits::default()
    };
    let value = document_string_to_object(text, form, &limits).map_err(|error| {
        told(error).hint("a template of Tessera's own ends in .toml (docs/templates.md)")
    })?;
    let extensions: Vec<&str> = ModelExtension::ALL.iter().map(ModelExtension::as_str).collect();
    let template = decode_job_template(value, Some(&extensions), &limits).map_err(told)?;
    let job = created(&template, path, set, limits)?;
    refuse_environments(&job.job_environments, "the template")?;
    let graph = StepDependencyGraph::new(&job).map_err(told)?;
    let order = graph.topo_sorted().map_err(told)?;
    let mut bytes = 0;
    let mut notes = Vec::new();
    let steps = job.steps.iter().map(|step| {
        let tasks = step_tasks(&job, step, &mut bytes);
        let tasks = tasks.map_err(|error| error.at(step_place(&step.name)))?;
        notes.extend(dropped(step).map(|what| {
            format!("{}: {what} of Open Job Description is not kept", step_place(&step.name))
        }));
        Ok(tasks)
    });
    let steps = steps.collect::<Result<_, TemplateError>>()?;
    let description = job.description.clone().unwrap_or_default();
    Ok(Document { name: job.name.clone(), description, steps, order, notes })
}

/// The job with its parameters' values.
fn created(
    template: &JobTemplate,
    path: &Path,
    set: &[String],
    limits: CallerLimits,
) -> Result<Job, TemplateError> {
    let mut given = std::collections::HashMap::new();
    for text in set {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            TemplateError::new(format!("--set {text:?} is not of the form NAME=VALUE"))
        })?;
        if given.insert(name.to_owned(), ExprValue::String(value.to_owned())).is_some() {
            return Err(TemplateError::new(format!("--set {name} is given twice")));
        }
    }
    let here = std::env::current_dir().map_err(TemplateError::of)?;
    let folder = std::path::absolute(path).map_err(TemplateError::of)?;
    let folder = folder.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    let here = here.to_string_lossy().into_owned();
    let options = PathParameterOptions {
        allow_template_dir_walk_up: true,
        ..PathParameterOptions::new(&folder, &here)
    };
    let values = preprocess_job_parameters(template, &given, &[], &options)
        .map_err(|error| told(error).hint("--set NAME=VALUE gives a parameter its value"))?;
    let extensions = template.extensions.iter().flatten();
    let extensions = extensions.filter_map(|name| name.as_str().parse().ok()).collect();
    let revision = openjd_model::SpecificationRevision::V2023_09;
    let context =
        ValidationContext::with_extensions(revision, extensions).with_caller_limits(limits);
    create_job(template, &values, &context).map_err(told)
}

fn refuse_environments<T>(found: &Option<Vec<T>>, whose: &str) -> Result<(), TemplateError> {
    match found.as_ref().is_some_and(|found| !found.is_empty()) {
        false => Ok(()),
        true => Err(TemplateError::new(format!(
            "{whose} has environments, which run commands on the machines of a farm"
        ))
        .hint("jobs are data: a step runs `tessera render` or `tessera compute` and no more")),
    }
}

/// What a step asks for that no job has.
fn dropped(step: &Step) -> impl Iterator<Item = &'static str> {
    let action = &step.script.actions.on_run;
    [
        (step.host_requirements.is_some(), "`hostRequirements`"),
        (action.timeout.is_some(), "`timeout`"),
        (action.cancelation.is_some(), "`cancelation`"),
    ]
    .into_iter()
    .filter_map(|(is_there, what)| is_there.then_some(what))
}

fn step_tasks(job: &Job, step: &Step, bytes: &mut usize) -> Result<StepTasks, TemplateError> {
    refuse_environments(&step.step_environments, "it")?;
    if step.script.embedded_files.as_ref().is_some_and(|files| !files.is_empty()) {
        return Err(TemplateError::new("it has files in the template, which steps cannot have")
            .hint("put the file beside the template and name it in the command"));
    }
    let profile = ExprProfile::new(ExprRevision::V2026_02).with_host_context(HostContext::None);
    let library = FunctionLibrary::for_profile(&profile);
    let format = PathFormat::host();
    let mut symbols = match &step.resolved_symtab {
        Some(symbols) => symbols.to_symtab(format).map_err(TemplateError::new)?,
        None => SymbolTable::new(),
    };
    for (name, parameter) in &job.parameters {
        // Paths are known where they are used: here, since no machine maps them.
        if matches!(parameter.param_type, JobParameterType::Path | JobParameterType::ListPath) {
            set_symbol(&mut symbols, &format!("Param.{name}"), parameter.value.clone())?;
        }
    }
    let sets = match &step.parameter_space {
        None => vec![BTreeMap::new()],
        // Frame by frame, however a template chunks them: units are dealt by tiles.
        Some(space) => {
            let all = StepParameterSpaceIterator::new_with_chunk_override(space, Some(1));
            let all = all.map_err(told)?;
            let one = |at| Some(all.get(at)?.into_iter().collect::<BTreeMap<_, _>>());
            (0..all.len()).map_while(one).collect()
        }
    };
    let mut tasks = Vec::with_capacity(sets.len());
    for values in sets {
        let mut symbols = symbols.clone();
        for (name, value) in &values {
            set_symbol(&mut symbols, &format!("Task.Param.{name}"), value.value.clone())?;
            set_symbol(&mut symbols, &format!("Task.RawParam.{name}"), value.value.clone())?;
        }
        if let Some(bindings) = &step.script.let_bindings {
            symbols =
                evaluate_let_bindings(bindings, &symbols, Some(&library), format).map_err(told)?;
        }
        let words = words(&step.script.actions.on_run, &symbols, &library)?;
        *bytes += words.iter().map(|word| word.len() + size_of::<String>()).sum::<usize>();
        if *bytes > OPTIONS_BYTES_MAX {
            let text =
                format!("the commands of all tasks have more than {OPTIONS_BYTES_MAX} bytes");
            return Err(TemplateError::new(text));
        }
        let values = values.into_iter().map(|(name, of)| (name, of.value.to_display_string()));
        tasks.push(Task { values: values.collect(), words });
    }
    let place = |name: &str| job.steps.iter().position(|step| step.name == name);
    let after = step.dependencies.iter().flatten().filter_map(|on| place(&on.depends_on));
    Ok(StepTasks { name: step.name.clone(), after: after.collect(), tasks })
}

fn set_symbol(
    symbols: &mut SymbolTable,
    name: &str,
    value: ExprValue,
) -> Result<(), TemplateError> {
    symbols.set(name, value).map_err(told)
}

/// Program and arguments.
fn words(
    action: &Action,
    symbols: &SymbolTable,
    library: &FunctionLibrary,
) -> Result<Vec<String>, TemplateError> {
    let options = FormatStringOptions::new().with_library(library);
    let mut words = Vec::new();
    let mut add = |text: &FormatString| {
        let value = text.resolve_with(symbols, &options).map_err(told)?;
        match value.list_elements() {
            // A list becomes as many arguments, and null none: RFC 0005 of the specification.
            Some(values) => words.extend(values.iter().map(ExprValue::to_display_string)),
            None if matches!(value, ExprValue::Null) => {}
            None => words.push(value.to_display_string()),
        }
        Ok(())
    };
    add(&action.command)?;
    action.args.iter().flatten().try_for_each(add)?;
    Ok(words)
}

/// A message of the library, no longer than people read.
fn told(error: impl Display) -> TemplateError {
    let text = error.to_string();
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.chars().take(LINE_CHARS_MAX).collect())
        .collect();
    let left = lines.len().saturating_sub(LINES_MAX);
    let mut said = lines.into_iter().take(LINES_MAX).collect::<Vec<_>>().join("\n");
    if left > 0 {
        said += &format!("\nand {left} lines more");
    }
    TemplateError::new(said)
}
