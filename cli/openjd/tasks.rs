//! Tasks that differ by nothing but their frame and the names of their files become one job of all
//! these frames.

use super::read::Task;
use crate::frame_files::format_of;
use crate::template::TemplateError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tessera_protocol::limits::JOB_FRAMES_MAX;
use tessera_protocol::{FrameNumber, FrameSet};

/// The program that tasks run.
const PROGRAM: &str = "tessera";
/// Options that say which frames.
const FRAMES: [&str; 2] = ["--frame", "--frames"];
/// Options that say which files are written.
const FILES: [&str; 3] = ["-o", "--output", "--out"];

/// How often all tasks of a job may name frames: each frame a few times.
const NAMED_MAX: usize = 4 * JOB_FRAMES_MAX as usize;

/// What a task of a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Render,
    Compute,
    Submit,
}

/// A job that is to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) verb: Verb,
    /// Arguments of the verb, without frames and files.
    pub(super) words: Vec<String>,
    pub(super) frames: Option<FrameSet>,
    /// Extensions of the files that tasks write: `exr`, `npy`.
    pub(super) formats: BTreeSet<&'static str>,
    /// Parameters that tell this job from the others of its step.
    pub(super) values: Vec<(String, String)>,
}

/// What tasks of one job have in common.
type Key = (Verb, Vec<String>, BTreeSet<&'static str>);

/// What is gathered of them.
struct Gathered {
    frames: Vec<FrameNumber>,
    values: BTreeMap<String, String>,
}

/// The jobs of a step's tasks, in the order in which the tasks name them.
pub(super) fn grouped(tasks: &[Task]) -> Result<Vec<Group>, TemplateError> {
    let mut places: BTreeMap<Key, usize> = BTreeMap::new();
    let mut found: Vec<(Key, Gathered)> = Vec::new();
    for task in tasks {
        let (key, frames) = parted(&task.words)?;
        let place = *places.entry(key.clone()).or_insert(found.len());
        match found.get_mut(place) {
            None => found.push((key, Gathered { frames, values: task.values.clone() })),
            Some((_, gathered)) => {
                gathered.frames.extend(frames);
                if gathered.frames.len() > NAMED_MAX {
                    let text = "its tasks name more frames than a job can have";
                    return Err(TemplateError::new(text));
                }
                gathered.values.retain(|name, value| task.values.get(name) == Some(value));
            }
        }
    }
    let is_one = found.len() == 1;
    let group = |((verb, words, formats), gathered): (Key, Gathered)| {
        let Gathered { frames, values } = gathered;
        let frames = match frames.is_empty() {
            true => None,
            false => Some(FrameSet::from_frames(frames).map_err(|error| {
                TemplateError::new(format!("its tasks render too many frames: {error}"))
            })?),
        };
        let values = if is_one { Vec::new() } else { values.into_iter().collect() };
        Ok(Group { verb, words, frames, formats, values })
    };
    found.into_iter().map(group).collect()
}

/// What a task has in common with others, and its frames.
fn parted(words: &[String]) -> Result<(Key, Vec<FrameNumber>), TemplateError> {
    let (verb, rest) = verb_of(words)?;
    let (mut kept, mut frames, mut formats) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            kept.push(word.clone());
            kept.extend(rest.cloned());
            break;
        }
        let (name, own) = match word.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let is_files = FILES.contains(&name) && verb != Verb::Submit;
        if !is_files && !FRAMES.contains(&name) {
            kept.push(word.clone());
            continue;
        }
        let value = own.or_else(|| rest.next().cloned()).ok_or_else(|| {
            TemplateError::new(format!("`{name}` has no value in the command of a task"))
        })?;
        if is_files {
            formats.insert(format_of(Path::new(&value)).ok_or_else(|| {
                TemplateError::new(format!("`{value}` is neither .exr, .png, .jpg nor .npy"))
            })?);
        } else {
            let set: FrameSet = value.parse().map_err(|error| {
                TemplateError::new(format!("`{value}` is not a number of a frame: {error}"))
            })?;
            frames.extend(set.iter());
        }
    }
    Ok(((verb, kept, formats), frames))
}

/// The verb of a command, and its arguments.
fn verb_of(words: &[String]) -> Result<(Verb, &[String]), TemplateError> {
    let program = words.first().map(String::as_str).unwrap_or_default();
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let refused = |what: String| {
        Err(TemplateError::new(what)
            .hint("jobs are data: a step runs `tessera render` or `tessera compute` and no more"))
    };
    if name != PROGRAM {
        return refused(format!("it runs the command `{}`", shortened(program)));
    }
    let verb = match words.get(1).map(String::as_str) {
        Some("render") => Verb::Render,
        Some("compute") => Verb::Compute,
        Some("submit") => Verb::Submit,
        other => {
            return refused(format!("it runs `tessera {}`", shortened(other.unwrap_or_default())));
        }
    };
    Ok((verb, &words[2..]))
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
