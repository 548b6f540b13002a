//! The arguments of a task's command, as options of a job: read as the command line reads them.

use super::tasks::{Group, Verb};
use crate::args::chosen::{OptionValue, chosen, given, said};
use crate::args::compute::ComputeArgs;
use crate::args::render::RenderArgs;
use crate::args::submit::SubmitArgs;
use crate::template::{Planned, TemplateError, Work};
use clap::{ArgMatches, Args, Command};

/// Options about how one machine works, of which a farm has its own, and where its files go.
const OF_MACHINES: [&str; 12] = [
    "device", "isa", "json", "local", "nodes", "out", "output", "quiet", "threads", "wait",
    "watch", "watchdog",
];

/// Reads commands. Built once: the options are many.
pub(super) struct Verbs {
    render: Command,
    compute: Command,
    submit: Command,
}

impl Verbs {
    pub(super) fn new() -> Self {
        let plain = || Command::new("task").no_binary_name(true);
        Self {
            render: RenderArgs::augment_args(plain()),
            compute: ComputeArgs::augment_args(plain()),
            submit: SubmitArgs::augment_args(plain()),
        }
    }

    /// The job of these tasks, without its name.
    pub(super) fn read(&mut self, group: &Group) -> Result<Planned, TemplateError> {
        let (command, positional) = match group.verb {
            Verb::Render => (&mut self.render, "scene"),
            Verb::Compute => (&mut self.compute, "kernel"),
            Verb::Submit => (&mut self.submit, "scene"),
        };
        // Files were taken out, and the commands want some.
        let file = group.formats.first().map(|format| format!("file.{format}"));
        let output = match (group.verb, file) {
            (Verb::Submit, _) | (_, None) => None,
            (Verb::Render, Some(file)) => Some(format!("--output={file}")),
            (Verb::Compute, Some(file)) => Some(format!("--out={file}")),
        };
        let words = output.iter().chain(&group.words);
        let matches = command
            .try_get_matches_from_mut(words)
            .map_err(|error| TemplateError::new(said(&error)))?;
        let mut options = chosen(command, &matches);
        // The environment of this machine says nothing about a document.
        let given = given(command, &matches);
        options.retain(|(name, _)| given.contains(name) && !OF_MACHINES.contains(&name.as_str()));
        if let Some(frames) = &group.frames {
            options.push(("frames".to_owned(), OptionValue::Text(frames.to_string())));
        }
        let what = positional_of(&matches, positional);
        let work = match group.verb {
            Verb::Compute => Work::Compute(what),
            Verb::Render | Verb::Submit => Work::Render(what),
        };
        add_formats(group, &mut options)?;
        let (step, name, values, after) = Default::default();
        Ok(Planned { step, values, name, work, options, after })
    }
}

fn positional_of(matches: &ArgMatches, name: &str) -> String {
    let raw = matches.try_get_raw(name).ok().flatten();
    let first = raw.and_then(|mut values| values.next());
    first.map(|value| value.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The formats of a job's files are those of the tasks' files.
fn add_formats(
    group: &Group,
    options: &mut Vec<(String, OptionValue)>,
) -> Result<(), TemplateError> {
    let is_deep = options.iter().any(|(name, _)| name == "png16");
    options.retain(|(name, _)| name != "png16");
    let names: Vec<String> = group
        .formats
        .iter()
        .map(|format| match *format {
            "jpg" => "jpeg".to_owned(),
            "png" if is_deep => "png16".to_owned(),
            other => other.to_owned(),
        })
        .collect();
    match (group.verb, &names[..]) {
        (Verb::Submit, _) => {}
        (Verb::Render, []) => {
            return Err(TemplateError::new(
                "`tessera render` has no `-o FILE` that says the format",
            ));
        }
        (_, []) => {}
        (Verb::Render, _) => options.push(("format".to_owned(), OptionValue::Texts(names))),
        (Verb::Compute, [name]) => {
            options.push(("format".to_owned(), OptionValue::Text(name.clone())));
        }
        (Verb::Compute, _) => {
            return Err(TemplateError::new("`tessera compute` writes files of one format"));
        }
    }
    Ok(())
}
