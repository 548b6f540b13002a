//! The child's side: reads one order, confines itself, reads the template and the scenes of its
//! jobs, and answers. Starts nothing and writes no file.

use super::{Answer, Order};
use crate::error::CliError;
use crate::submission::batch::{self, Names};
use crate::submission::step::Reader;
use crate::template::{self, Plan};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use tessera_http::{BatchAsked, PlannedJob, TemplateAsked, TemplateOutline, TemplatePlan};
use tessera_node::import;
use tessera_protocol::job::RawJobSpec;
use tessera_protocol::limits::MESSAGE_BYTES_MAX;

/// Argument with which the program becomes a reader of templates.
pub(crate) const COMMAND: &str = "template-reader";
/// Most memory, bytes: for the template, its jobs, and the scenes of these.
const MEMORY_BYTES: u64 = 2 << 30;
/// Most files that are named to whoever asks.
const FILES_MAX: usize = 4096;

/// Runs a reader: an order on standard input, an answer on standard output.
pub(crate) fn main() -> ExitCode {
    let mut bytes = Vec::new();
    let most = MESSAGE_BYTES_MAX as u64;
    let read = std::io::stdin().take(most).read_to_end(&mut bytes);
    let order = read.ok().and_then(|_| tessera_protocol::decode::<Order>(&bytes).ok());
    let Some(order) = order else {
        // Standard error may be closed.
        let _ = writeln!(std::io::stderr(), "{COMMAND} is started by coordinators, not by people");
        return ExitCode::from(2);
    };
    let answer = answer(&order).unwrap_or_else(Answer::Refused);
    let answer = tessera_protocol::encode(&answer).or_else(|_| {
        let text = "the jobs of the template are too many to be told here";
        tessera_protocol::encode(&Answer::Refused(text.to_owned()))
    });
    let sent = answer.map(|bytes| std::io::stdout().write_all(&bytes));
    if matches!(sent, Ok(Ok(()))) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn answer(order: &Order) -> Result<Answer, String> {
    let Order { parent, sandbox, folder, asked, batch } = order;
    // Threads are started after this, so that they are confined too.
    import::confine_reader(*parent, folder, *sandbox, MEMORY_BYTES)?;
    let threads = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
    threads.map_err(|error| format!("no thread for reading: {error}"))?;
    let answer = match batch {
        None => outline(folder, asked).map(|outline| Answer::Outline(Box::new(outline))),
        Some(batch) => plan(folder, asked, batch).map(Answer::Plan),
    };
    answer.map_err(|error| words(&error, folder))
}

/// What is wrong. Where the files lie for now is nothing to whoever asks.
fn words(error: &CliError, folder: &Path) -> String {
    let text = error.to_string().replace(&format!("{}/", folder.display()), "");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

/// A name for the template in messages, which says its form.
fn path_of(folder: &Path, asked: &TemplateAsked) -> std::path::PathBuf {
    folder.join(if asked.is_openjd { "template.yaml" } else { "template.toml" })
}

fn jobs_of(folder: &Path, asked: &TemplateAsked) -> Result<Plan, CliError> {
    let TemplateAsked { text, name, set, .. } = asked;
    batch::plan(text, (&path_of(folder, asked), asked.is_openjd), name.as_deref(), set)
}

fn outline(folder: &Path, asked: &TemplateAsked) -> Result<TemplateOutline, CliError> {
    let mut outline = match asked.is_openjd {
        // What it takes is known to its author's tools.
        true => TemplateOutline {
            name: asked.name.clone().unwrap_or_else(|| "template".to_owned()),
            description: String::new(),
            parameters: Vec::new(),
            files: Vec::new(),
            problem: None,
        },
        false => template::outline(&asked.text)?,
    };
    match jobs_of(folder, asked).and_then(|plan| Ok((files(folder, &plan)?, plan))) {
        Ok((files, plan)) => {
            outline.files = files;
            if asked.is_openjd {
                (outline.name, outline.description) = (plan.name, plan.description);
            }
        }
        Err(error) => outline.problem = Some(words(&error, folder)),
    }
    Ok(outline)
}

/// The files that jobs name, as paths in the folder.
fn files(folder: &Path, plan: &Plan) -> Result<Vec<String>, CliError> {
    let mut reader = Reader::within(folder);
    let mut files = BTreeSet::new();
    for planned in &plan.jobs {
        let named = reader.read(planned)?.files();
        let within = |path: &std::path::PathBuf| path.strip_prefix(folder).ok().map(Path::to_owned);
        files.extend(named.iter().filter_map(within));
        if files.len() > FILES_MAX {
            let text = format!("the template names more than {FILES_MAX} files");
            return Err(template::TemplateError::new(text).into());
        }
    }
    Ok(files.into_iter().map(|path| path.to_string_lossy().into_owned()).collect())
}

fn plan(folder: &Path, asked: &TemplateAsked, of: &BatchAsked) -> Result<TemplatePlan, CliError> {
    let plan = jobs_of(folder, asked)?;
    let names = Names::of(of.batch.clone(), of.seed);
    let found = batch::make(plan, &path_of(folder, asked), names, batch::Place::Confined)?;
    let job =
        |(sending, planned): (crate::submission::send::Sending, template::Planned)| PlannedJob {
            job: sending.job,
            step: planned.step,
            values: planned.values,
            spec: RawJobSpec::from(sending.spec),
        };
    let mut notes = found.plan.notes;
    notes.extend(found.warnings);
    let jobs = found.jobs.into_iter().zip(found.plan.jobs).map(job).collect();
    Ok(TemplatePlan { jobs, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str, set: &[&str]) -> TemplateAsked {
        let set = set.iter().map(ToString::to_string).collect();
        TemplateAsked { text: text.to_owned(), is_openjd: false, name: None, set }
    }

    const FILM: &str = "tessera = 1\nname = 'film'\n[parameters.scene]\ntype = 'file'\n\
        [[steps]]\nname = 'a'\nrender = '{scene}'\nenv = 'maps/sky.hdr'\n\
        [[steps]]\nname = 'b'\ncompute = 'k.ptx'\ndomain = '8x8'\nframes = '1-2'\n\
        input = ['x=in/####.npy', 'y=job:a']\nafter = ['a']\n";

    #[test]
    fn an_outline_names_the_files_of_all_jobs() {
        let folder = Path::new("/shots");
        let missing = outline(folder, &asked(FILM, &[])).unwrap();
        assert!(missing.problem.unwrap().contains("parameter `scene`: has to be set"));
        assert!(missing.files.is_empty() && missing.parameters.len() == 1);
        let seen = outline(folder, &asked(FILM, &["scene=/shots/box.gltf"])).unwrap();
        let files = ["box.gltf", "in/0001.npy", "in/0002.npy", "k.ptx", "maps/sky.hdr"];
        assert_eq!((seen.files, seen.problem), (files.map(str::to_owned).to_vec(), None));
    }

    #[test]
    fn what_is_outside_of_the_folder_is_refused_by_name() {
        let folder = Path::new("/shots");
        for (text, path) in [
            (FILM.replace("maps/sky.hdr", "../sky.hdr"), "../sky.hdr"),
            (FILM.replace("k.ptx", "/etc/k.ptx"), "/etc/k.ptx"),
            (FILM.replace("in/####", "/proc/self/####"), "/proc/self/####.npy"),
            (FILM.replace("{scene}", "a/../../b.gltf"), "a/../../b.gltf"),
        ] {
            let seen = outline(folder, &asked(&text, &["scene=/shots/box.gltf"])).unwrap();
            let problem = seen.problem.unwrap();
            assert!(problem.contains(path) && problem.contains("beside the template"), "{problem}");
            assert!(seen.files.is_empty());
        }
    }
}
