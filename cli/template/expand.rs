//! From a template and its parameters to the jobs that it makes.

use super::bounds::{JOBS_MAX, OPTIONS_BYTES_MAX, VALUES_MAX};
use super::each::{Combination, combinations, text_of};
use super::error::{self, TemplateError};
use super::file::{File, Step};
use super::order::{Edge, order};
use super::parameter::{Value, Values};
use super::text;
use crate::args::chosen::OptionValue;
use std::collections::BTreeSet;
use tessera_protocol::job::Until;
use tessera_protocol::limits::{AFTER_MAX, AWAITED_MAX, NAME_MAX};
use tessera_protocol::names::file_name;

/// The jobs of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Name of the template, or the one that it was given.
    pub(crate) name: String,
    /// What it is for, for people.
    pub(crate) description: String,
    /// The jobs, each after those that it waits for.
    pub(crate) jobs: Vec<Planned>,
    /// What people should know of what was read, a line each.
    pub(crate) notes: Vec<String>,
}

/// What a job does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Renders a scene, as `submit` does.
    Render(String),
    /// Runs a kernel, as `compute` does.
    Compute(String),
}

/// A job that another one of the plan waits for: its place, and what has to happen to it.
pub(crate) type Waits = (usize, Until);

/// A job that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// Name of its step.
    pub(crate) step: String,
    /// The values that the sweep gives it, by variable.
    pub(crate) values: Vec<(String, String)>,
    /// Name of the job.
    pub(crate) name: String,
    pub(crate) work: Work,
    /// Options of the command, by their long names, in any order.
    pub(crate) options: Vec<(String, OptionValue)>,
    /// Jobs that it waits for.
    pub(crate) after: Vec<Waits>,
}

impl Planned {
    pub(crate) fn bytes(&self) -> usize {
        let options = self.options.iter().map(|(name, value)| name.len() + value.bytes());
        options.sum::<usize>() + size_of::<Self>()
    }

    /// Says which job it is: its step, and its values.
    pub(crate) fn place(&self) -> String {
        let values: Vec<_> =
            self.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        match values.is_empty() {
            true => error::step(&self.step),
            false => format!("{} with {}", error::step(&self.step), values.join(", ")),
        }
    }
}

/// Makes the jobs.
pub(super) fn expand(
    file: &File,
    name: Option<&str>,
    parameters: &Values,
) -> Result<Plan, TemplateError> {
    let (order, edges) = order(file)?;
    let name = name.unwrap_or(&file.name).to_owned();
    let (mut jobs, mut bytes): (Vec<Planned>, usize) = (Vec::new(), 0);
    // The places of each step's jobs, and their combinations.
    let mut made: Vec<Vec<(usize, Combination)>> = vec![Vec::new(); file.steps.len()];
    for place in order {
        let step = &file.steps[place];
        let at = |error: TemplateError| error.at(error::step(&step.name));
        let each = combinations(&step.each, parameters).map_err(at)?;
        if jobs.len() + each.len() > JOBS_MAX {
            let text = format!("the template makes more than {JOBS_MAX} jobs");
            return Err(at(TemplateError::new(text)));
        }
        for (index, values) in each.into_iter().enumerate() {
            let mut job = planned(step, &values, parameters).map_err(at)?;
            bytes += job.bytes();
            if bytes > OPTIONS_BYTES_MAX {
                let text = format!(
                    "the options of all jobs have more than {OPTIONS_BYTES_MAX} \
                    bytes together"
                );
                return Err(at(TemplateError::new(text)));
            }
            job.name = name_of(&name, &step.name, &job.values, index);
            job.after = waits(&edges[place], &made, &job).map_err(at)?;
            made[place].push((jobs.len(), values));
            jobs.push(job);
        }
    }
    check(&jobs)?;
    Ok(Plan { name, description: file.description.clone(), jobs, notes: Vec::new() })
}

fn planned(
    step: &Step,
    values: &Combination,
    parameters: &Values,
) -> Result<Planned, TemplateError> {
    let fill = |text: &str| text::fill(text, |name| value_of(name, values, parameters));
    let work = match (&step.render, &step.compute) {
        (Some(scene), _) => Work::Render(fill(scene).map_err(|error| error.at("render"))?),
        (_, kernel) => {
            let kernel = kernel.as_deref().unwrap_or_default();
            Work::Compute(fill(kernel).map_err(|error| error.at("compute"))?)
        }
    };
    let mut options = Vec::new();
    for (name, value) in &step.options {
        let value = option(value, fill).map_err(|error| error.at(name))?;
        options.push((name.clone(), value));
    }
    Ok(Planned {
        step: step.name.clone(),
        values: values.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        name: String::new(),
        work,
        options,
        after: Vec::new(),
    })
}

fn option(
    value: &toml::Value,
    fill: impl Fn(&str) -> Result<String, TemplateError>,
) -> Result<OptionValue, TemplateError> {
    let wrong =
        || TemplateError::new("has to be a text, a number, true, false, or a list of these");
    let one = |value: &toml::Value| fill(&text_of(value).ok_or_else(wrong)?);
    match value {
        toml::Value::Boolean(value) => Ok(OptionValue::Switch(*value)),
        toml::Value::Array(values) if values.len() > VALUES_MAX => {
            let text = format!("{} values are more than {VALUES_MAX}", values.len());
            Err(TemplateError::new(text))
        }
        toml::Value::Array(values) => {
            Ok(OptionValue::Texts(values.iter().map(one).collect::<Result<_, _>>()?))
        }
        value => one(value).map(OptionValue::Text),
    }
}

/// The value of a name in braces: of the sweep, else of a parameter.
fn value_of<'a>(
    name: &str,
    values: &'a Combination,
    parameters: &'a Values,
) -> Result<&'a str, TemplateError> {
    if let Some(value) = values.get(name) {
        return Ok(value);
    }
    match parameters.get(name) {
        Some(Value::One(value)) => Ok(value),
        Some(Value::List(_)) => {
            let text = format!("`{{{name}}}` is a list; only `each` takes lists");
            Err(TemplateError::new(text))
        }
        None => {
            let known: Vec<&str> =
                values.keys().chain(parameters.keys()).map(String::as_str).collect();
            let error = TemplateError::new(format!("there is no `{{{name}}}` here"));
            Err(match known.is_empty() {
                true => error.hint("the template has no parameters"),
                false => error.hint(format!("there are {}", known.join(", "))),
            })
        }
    }
}

/// The jobs that a job waits for: of each step, those that have its values of the variables that
/// both sweep over.
fn waits(
    edges: &[Edge],
    made: &[Vec<(usize, Combination)>],
    job: &Planned,
) -> Result<Vec<Waits>, TemplateError> {
    let mut after = Vec::new();
    for (before, until) in edges {
        let agrees = |other: &Combination| {
            job.values.iter().all(|(name, value)| other.get(name).is_none_or(|of| of == value))
        };
        let found: Vec<Waits> = made[*before]
            .iter()
            .filter(|(_, values)| agrees(values))
            .map(|(place, _)| (*place, *until))
            .collect();
        if found.is_empty() {
            let text = format!("{}: no job of the step before it has these values", job.place());
            return Err(TemplateError::new(text)
                .hint("sweep both steps over the same values, or give the variables other names"));
        }
        after.extend(found);
    }
    check_after(&after).map_err(|error| {
        error.hint("sweep this step too, over the same variable: each job then waits for its own")
    })?;
    Ok(after)
}

/// A job waits for no more jobs than a farm allows.
pub(crate) fn check_after(after: &[Waits]) -> Result<(), TemplateError> {
    match after.len() > AFTER_MAX {
        false => Ok(()),
        true => Err(TemplateError::new(format!(
            "waits for {} jobs, and a job waits for {AFTER_MAX} at most",
            after.len()
        ))),
    }
}

/// What holds of all jobs together.
pub(crate) fn check(jobs: &[Planned]) -> Result<(), TemplateError> {
    check_names(jobs)?;
    check_awaited(jobs)
}

/// No job is waited for by more than a farm allows.
fn check_awaited(jobs: &[Planned]) -> Result<(), TemplateError> {
    let mut waiting = vec![0_usize; jobs.len()];
    for (place, _) in jobs.iter().flat_map(|job| &job.after) {
        waiting[*place] += 1;
    }
    match waiting.iter().position(|count| *count > AWAITED_MAX) {
        Some(place) => {
            let text = format!("{} jobs wait for it, more than {AWAITED_MAX}", waiting[place]);
            Err(TemplateError::new(text).at(error::step(&jobs[place].step)))
        }
        None => Ok(()),
    }
}

/// `film.render.seed=7`; with its number in place of the values where these are too long.
pub(crate) fn name_of(
    template: &str,
    step: &str,
    values: &[(String, String)],
    index: usize,
) -> String {
    let pairs: Vec<_> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let name = match pairs.is_empty() {
        true => format!("{template}.{step}"),
        false => format!("{template}.{step}.{}", pairs.join(",")),
    };
    match name.len() > NAME_MAX || file_name(&name) != name {
        true => file_name(&format!("{template}.{step}.{:04}", index + 1)),
        false => name,
    }
}

/// Names of files begin with those of jobs.
fn check_names(jobs: &[Planned]) -> Result<(), TemplateError> {
    let mut seen = BTreeSet::new();
    match jobs.iter().find(|job| !seen.insert(job.name.as_str())) {
        Some(job) => {
            let text = format!("{}: another job has the name `{}` too", job.place(), job.name);
            Err(TemplateError::new(text))
        }
        None => Ok(()),
    }
}
