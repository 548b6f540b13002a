//! Open Job Description: templates of other farms' tools become jobs, and jobs become templates for
//! other farms. Reads and writes no file, and knows no farm.
//!
//! ```text
//! document ─► read.rs ─► tasks.rs ─► words.rs ─► jobs of one submission
//!             its steps, words of    options of
//!             resolved   each job    each job
//! jobs ─► export.rs ─► document       (folders.rs: where its files are)
//! ```
//!
//! The specification: <https://github.com/OpenJobDescription/openjd-specifications>, version
//! 2023-09.

mod export;
mod folders;
mod read;
mod tasks;
mod words;

pub(crate) use export::{Exported, export};

use crate::template::{
    self, JOBS_MAX, NAME_CHARS_MAX, OPTIONS_BYTES_MAX, Plan, Planned, TemplateError, Waits,
};
use std::path::Path;
use tessera_protocol::job::Until;
use tessera_protocol::names::file_name;
use words::Verbs;

/// Returns whether a file is such a template, by its name.
pub(crate) fn is_document(path: &Path) -> bool {
    let is = |extension: &str| ["yaml", "yml", "json"].contains(&extension);
    path.extension().is_some_and(|extension| is(&extension.to_string_lossy().to_lowercase()))
}

/// The jobs of a template with these parameters (`NAME=VALUE`), each after those that it waits
/// for. Whole or not at all. `path` is where the template is: it says the form, and where its files
/// are.
pub(crate) fn plan(
    text: &str,
    path: &Path,
    name: Option<&str>,
    set: &[String],
) -> Result<Plan, TemplateError> {
    name.map_or(Ok(()), template::check_name).map_err(|error| error.at("--name"))?;
    let document = read::read(text, path, set)?;
    let own: String = file_name(&document.name).chars().take(NAME_CHARS_MAX).collect();
    let name = name.map_or(own, str::to_owned);
    let mut verbs = Verbs::new();
    let (mut jobs, mut bytes): (Vec<Planned>, usize) = (Vec::new(), 0);
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); document.steps.len()];
    for at in document.order {
        let step = &document.steps[at];
        let wrong = |error: TemplateError| error.at(template::step_place(&step.name));
        let after: Vec<Waits> = step
            .after
            .iter()
            .flat_map(|before| places[*before].iter().map(|job| (*job, Until::Success)))
            .collect();
        template::check_after(&after).map_err(wrong)?;
        let groups = tasks::grouped(&step.tasks).map_err(wrong)?;
        for (index, group) in groups.into_iter().enumerate() {
            let mut job = verbs.read(&group).map_err(wrong)?;
            job.name = template::name_of(&name, &file_name(&step.name), &group.values, index);
            job.step.clone_from(&step.name);
            job.values = group.values;
            job.after.clone_from(&after);
            bytes += job.bytes();
            if jobs.len() == JOBS_MAX || bytes > OPTIONS_BYTES_MAX {
                return Err(wrong(TemplateError::new(format!(
                    "the template makes more than {JOBS_MAX} jobs, or more than \
                     {OPTIONS_BYTES_MAX} bytes of options"
                ))));
            }
            places[at].push(jobs.len());
            jobs.push(job);
        }
    }
    template::check(&jobs)?;
    Ok(Plan { name, description: document.description, jobs, notes: document.notes })
}

#[cfg(test)]
mod tests;
