//! The form of a template's file. Reads it and checks names and numbers of things; values and
//! references are checked by those who use them.

use super::bounds::{NAME_CHARS_MAX, PARAMETERS_MAX, STEPS_MAX};
use super::error::{self, TemplateError};
use super::kind::Kind;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the form.
const VERSION: u32 = 1;
/// Most characters of a line of a message.
const LINE_CHARS_MAX: usize = 200;

/// A template as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Version of the form.
    tessera: u32,
    /// Name of the template: that of its jobs begins with it.
    pub(super) name: String,
    /// For people.
    #[serde(default)]
    pub(super) description: String,
    /// What may be set, by name.
    #[serde(default)]
    pub(super) parameters: BTreeMap<String, Parameter>,
    /// What is done, in any order.
    pub(super) steps: Vec<Step>,
}

/// A parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameter {
    /// Kind of its values.
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    /// True: a list of values.
    #[serde(default)]
    pub(super) list: bool,
    /// Its value where nobody sets it; None has to be set.
    pub(super) default: Option<toml::Value>,
    /// Least number.
    pub(super) min: Option<toml::Value>,
    /// Largest number.
    pub(super) max: Option<toml::Value>,
    /// All values that it can have.
    pub(super) choices: Option<Vec<toml::Value>>,
    /// For people.
    #[serde(default)]
    pub(super) help: String,
}

/// A step.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Step {
    /// Its name, once in a template.
    pub(super) name: String,
    /// Scene to render.
    pub(super) render: Option<String>,
    /// Kernel to run.
    pub(super) compute: Option<String>,
    /// Steps that have to succeed first: `STEP` or `STEP:frames`.
    #[serde(default)]
    pub(super) after: Vec<String>,
    /// Steps that have to end first, whichever way.
    #[serde(default, rename = "after-any")]
    pub(super) after_any: Vec<String>,
    /// Variables of a sweep, with their values: a job for each combination.
    #[serde(default)]
    pub(super) each: BTreeMap<String, toml::Value>,
    /// Options of the command, by their long names.
    #[serde(flatten)]
    pub(super) options: BTreeMap<String, toml::Value>,
}

/// Reads a template.
pub(super) fn read(text: &str) -> Result<File, TemplateError> {
    let file: File = toml::from_str(text).map_err(|error| {
        TemplateError::new(bounded(error.to_string().trim_end()))
            .hint("docs/templates.md shows what a template has")
    })?;
    check(&file)?;
    Ok(file)
}

/// The lines of a message, which repeats one of the file, none of them too long for a terminal.
fn bounded(text: &str) -> String {
    let line = |line: &str| line.chars().take(LINE_CHARS_MAX).collect::<String>();
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn check(file: &File) -> Result<(), TemplateError> {
    if file.tessera != VERSION {
        let problem = format!("tessera = {}: this build reads version {VERSION}", file.tessera);
        return Err(TemplateError::new(problem));
    }
    check_name(&file.name).map_err(|error| error.at("name"))?;
    if file.parameters.len() > PARAMETERS_MAX {
        let found = file.parameters.len();
        return Err(TemplateError::new(format!(
            "{found} parameters are more than {PARAMETERS_MAX}"
        )));
    }
    if file.steps.is_empty() || file.steps.len() > STEPS_MAX {
        let found = file.steps.len();
        return Err(TemplateError::new(format!("{found} steps are not 1 to {STEPS_MAX}")));
    }
    for name in file.parameters.keys() {
        check_identifier(name).map_err(|error| error.at(error::parameter(name)))?;
    }
    let mut seen = BTreeSet::new();
    for step in &file.steps {
        let place = || error::step(&step.name);
        check_name(&step.name).map_err(|error| error.at(place()))?;
        if !seen.insert(step.name.as_str()) {
            return Err(TemplateError::new("two steps have this name").at(place()));
        }
        if step.render.is_some() == step.compute.is_some() {
            let problem = "needs either render = \"SCENE\" or compute = \"KERNEL\"";
            let hint = "jobs are data: no step runs a command";
            return Err(TemplateError::new(problem).at(place()).hint(hint));
        }
        for name in step.each.keys() {
            check_identifier(name).map_err(|error| error.at("each").at(place()))?;
            if file.parameters.contains_key(name) {
                let problem = format!("`{name}` is a parameter, too; give it another name");
                return Err(TemplateError::new(problem).at("each").at(place()));
            }
        }
    }
    Ok(())
}

/// Names of templates and steps begin names of files.
pub(crate) fn check_name(name: &str) -> Result<(), TemplateError> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let length = name.chars().count();
    match (1..=NAME_CHARS_MAX).contains(&length) && name.chars().all(fits) && !name.starts_with('-')
    {
        true => Ok(()),
        false => Err(TemplateError::new(format!(
            "{name:?} is not 1 to {NAME_CHARS_MAX} letters, digits, `_` and `-`"
        ))),
    }
}

fn check_identifier(name: &str) -> Result<(), TemplateError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(fits) {
        true => Ok(()),
        false => Err(TemplateError::new(format!(
            "{name:?} is not 1 to {NAME_CHARS_MAX} of a-z, A-Z, 0-9, `_` and `-`"
        ))),
    }
}
