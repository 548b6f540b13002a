//! Job templates: a TOML file with parameters and steps becomes the jobs of one submission. Reads
//! one file; knows no scene, no kernel and no farm.
//!
//! ```text
//! text ─► file.rs ─► parameter.rs (--set) ─► expand.rs ─► planned jobs, in order
//!         kind.rs                             text.rs, each.rs, order.rs
//! ```

mod bounds;
mod each;
mod error;
mod expand;
mod file;
mod kind;
mod order;
mod outline;
mod parameter;
mod text;

pub(crate) use bounds::{FILE_BYTES_MAX, JOBS_MAX, NAME_CHARS_MAX, OPTIONS_BYTES_MAX, STEPS_MAX};
pub(crate) use error::{TemplateError, step as step_place};
pub(crate) use expand::{Plan, Planned, Waits, Work, check, check_after, name_of};
pub(crate) use file::check_name;
pub(crate) use outline::outline;

use std::path::Path;

/// Extension of a template's file.
const EXTENSION: &str = "toml";

/// Returns whether a file is a template, by its name.
pub(crate) fn is_template(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION))
}

/// The jobs that a template makes with these parameters (`NAME=VALUE`), each after those that it
/// waits for. Whole or not at all.
pub(crate) fn plan(text: &str, name: Option<&str>, set: &[String]) -> Result<Plan, TemplateError> {
    let file = file::read(text)?;
    name.map_or(Ok(()), file::check_name).map_err(|error| error.at("--name"))?;
    let parameters = parameter::values(&file.parameters, set)?;
    expand::expand(&file, name, &parameters)
}

#[cfg(test)]
mod tests;
