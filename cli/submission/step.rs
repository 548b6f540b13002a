//! Turns a planned job of a template into the options of the command that makes such a job, read
//! as the command line reads them: a template knows every option that `submit` and `compute` know.

use super::inputs;
use crate::args::chosen::{OptionValue, said};
use crate::args::compute::ComputeArgs;
use crate::args::files::with_place;
use crate::args::submit::SubmitArgs;
use crate::error::{CliError, Status};
use crate::template::{Planned, Work};
use crate::vectors::EnvironmentArg;
use clap::{ArgAction, Args, Command, FromArgMatches};
use std::path::{Path, PathBuf};
use tessera_protocol::job::is_confined_path;

/// Options of the commands that are about one run of the command and not about the job.
const NOT_OF_JOBS: &[&str] = &[
    "after",
    "after-any",
    "coordinator",
    "detach",
    "device",
    "dry-run",
    "export",
    "header",
    "help",
    "identity",
    "isa",
    "json",
    "local",
    "name",
    "out",
    "set",
    "test-frame",
    "threads",
    "wait",
    "watch",
    "watchdog",
];
/// Option of a compute step: format of its files.
const FORMAT: &str = "format";

/// Reads steps. Built once: the options are many.
pub(crate) struct Reader<'a> {
    submit: Command,
    compute: Command,
    /// Folder of the template, in which its files are looked for.
    folder: &'a Path,
    /// Whether they have to be there, and kernels are left for nodes to compile.
    is_confined: bool,
}

/// A job's options.
#[derive(Debug)]
pub(crate) enum Read {
    Render(Box<SubmitArgs>),
    Compute(Box<ComputeArgs>),
}

impl Read {
    /// Files of this machine that it names.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Render(args) => {
                let map = match &args.picture.env {
                    EnvironmentArg::File(path) => Some(path.clone()),
                    _ => None,
                };
                [args.picture.scene.clone()].into_iter().chain(map).collect()
            }
            Self::Compute(args) => {
                let kernel = args.kernel.iter().filter(|kernel| !kernel.starts_with("builtin:"));
                let mut files: Vec<PathBuf> = kernel.map(PathBuf::from).collect();
                files.extend(args.args.clone());
                files.extend(args.input.iter().flat_map(|input| inputs::files(input, args)));
                files
            }
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads steps of a template in this folder, which may name files anywhere.
    pub(crate) fn new(folder: &'a Path) -> Self {
        Self::of(folder, false)
    }

    /// Reads steps that may name files in this folder only.
    pub(crate) fn within(folder: &'a Path) -> Self {
        Self::of(folder, true)
    }

    fn of(folder: &'a Path, is_confined: bool) -> Self {
        let plain = || Command::new("step").no_binary_name(true);
        Self {
            submit: SubmitArgs::augment_args(plain()),
            compute: ComputeArgs::augment_args(plain()),
            folder,
            is_confined,
        }
    }

    /// The options of a job.
    pub(crate) fn read(&mut self, job: &Planned) -> Result<Read, CliError> {
        let read = self.check_places(job).and_then(|()| match &job.work {
            Work::Render(scene) => self.render(job, scene),
            Work::Compute(kernel) => self.compute(job, kernel),
        });
        read.map_err(|error| error.context(job.place()))
    }

    /// Refuses files outside of the folder, where they have to be in it.
    fn check_places(&self, job: &Planned) -> Result<(), CliError> {
        if !self.is_confined {
            return Ok(());
        }
        let mut outside = None;
        let mut see = |path: &str| {
            let place = self.folder.join(path);
            let within = place.strip_prefix(self.folder).ok().and_then(Path::to_str);
            if !within.is_some_and(is_confined_path) {
                outside.get_or_insert_with(|| path.to_owned());
            }
        };
        match &job.work {
            Work::Render(scene) => see(scene),
            Work::Compute(kernel) if kernel.starts_with("builtin:") => {}
            Work::Compute(kernel) => see(kernel),
        }
        for (name, value) in &job.options {
            let texts = match value {
                OptionValue::Text(text) => std::slice::from_ref(text),
                OptionValue::Texts(texts) => texts,
                OptionValue::Switch(_) => continue,
            };
            for text in texts {
                with_place(name, text, |path| {
                    see(path);
                    String::new()
                });
            }
        }
        match outside {
            None => Ok(()),
            Some(path) => Err(usage(format!("`{path}` is not beside the template"))
                .hint("name files by their paths in the template's folder, and send them too")),
        }
    }

    fn render(&mut self, job: &Planned, scene: &str) -> Result<Read, CliError> {
        let mut words = self.words(&self.submit, "submit", &job.options)?;
        words.extend([format!("--name={}", job.name), "--".into(), self.path(scene)]);
        parsed(&mut self.submit, words).map(|args| Read::Render(Box::new(args)))
    }

    fn compute(&mut self, job: &Planned, kernel: &str) -> Result<Read, CliError> {
        let is_format = |option: &&(String, OptionValue)| option.0 == FORMAT;
        let format = match job.options.iter().find(is_format) {
            None => "npy",
            Some((_, OptionValue::Text(format))) => format,
            Some(_) => return Err(usage("format: has to be one of npy, exr and png")),
        };
        let options: Vec<_> =
            job.options.iter().filter(|option| !is_format(option)).cloned().collect();
        let mut words = self.words(&self.compute, "compute", &options)?;
        let kernel = match kernel.starts_with("builtin:") {
            true => kernel.to_owned(),
            false => self.path(kernel),
        };
        // What is detached is not written here; the extension of --out is the format.
        words.extend([format!("--name={}", job.name), "--detach".into()]);
        if self.is_confined {
            words.push("--compile-on-node".into());
        }
        words.extend([format!("--out=frame.{format}"), "--".into(), kernel]);
        parsed(&mut self.compute, words).map(|args| Read::Compute(Box::new(args)))
    }

    /// The words of a command line.
    fn words(
        &self,
        command: &Command,
        verb: &str,
        options: &[(String, OptionValue)],
    ) -> Result<Vec<String>, CliError> {
        let mut words = Vec::new();
        for (name, value) in options {
            let known = command.get_arguments().find(|known| known.get_long() == Some(name));
            let Some(known) = known.filter(|_| !NOT_OF_JOBS.contains(&name.as_str())) else {
                return Err(unknown(name, verb));
            };
            let is_switch = matches!(known.get_action(), ArgAction::SetTrue);
            match (is_switch, value) {
                (true, value) => match switch(value) {
                    Some(true) => words.push(format!("--{name}")),
                    Some(false) => {}
                    None => return Err(usage(format!("{name}: has to be true or false"))),
                },
                (false, OptionValue::Switch(_)) => {
                    return Err(usage(format!("{name}: takes a value, not true or false")));
                }
                (false, OptionValue::Text(text)) => words.push(self.word(name, text)),
                (false, OptionValue::Texts(texts)) => {
                    words.extend(texts.iter().map(|text| self.word(name, text)));
                }
            }
        }
        Ok(words)
    }

    fn word(&self, name: &str, text: &str) -> String {
        with_place(name, text, |path| self.path(path))
    }

    /// A file beside the template.
    fn path(&self, text: &str) -> String {
        self.folder.join(text).to_string_lossy().into_owned()
    }
}

fn switch(value: &OptionValue) -> Option<bool> {
    match value {
        OptionValue::Switch(value) => Some(*value),
        OptionValue::Text(text) => text.parse().ok(),
        OptionValue::Texts(_) => None,
    }
}

fn unknown(name: &str, verb: &str) -> CliError {
    if NOT_OF_JOBS.contains(&name) {
        let text = format!("{name}: it is not an option of a job, so no step has it");
        return usage(text);
    }
    usage(format!("{name}: `tessera {verb}` has no such option"))
        .hint(format!("`tessera {verb} --help` lists the options; a step has them without `--`"))
}

fn parsed<T: FromArgMatches>(command: &mut Command, words: Vec<String>) -> Result<T, CliError> {
    let matches = command.try_get_matches_from_mut(words);
    matches.and_then(|matches| T::from_arg_matches(&matches)).map_err(|error| usage(said(&error)))
}

fn usage(text: impl Into<String>) -> CliError {
    CliError::new(Status::Usage, text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::files::FILE_OPTIONS;
    use crate::template;

    /// The jobs of a step with these options, in the folder `/shots`.
    fn read(step: &str) -> Result<Read, CliError> {
        let text = format!("tessera = 1\nname = 'film'\n[[steps]]\nname = 'a'\n{step}");
        let plan = template::plan(&text, None, &[]).unwrap();
        Reader::new(Path::new("/shots")).read(&plan.jobs[0])
    }

    #[test]
    fn a_step_has_the_options_of_its_command() {
        let step = "render = 'a.gltf'\nspp = 7\ndenoise = true\nexposure = -1.5\naov = ['depth']\n\
            env = 'sky.hdr'\neye = '0,1,-2'\ntarget = '0,0,0'\nframes = '1-3'\n";
        let Read::Render(args) = read(step).unwrap() else { panic!("a kernel") };
        assert_eq!((args.picture.spp, args.picture.denoise), (Some(7), true));
        assert_eq!(args.picture.exposure.stops(), -1.5);
        assert_eq!(args.picture.scene, Path::new("/shots/a.gltf"));
        assert!(format!("{:?}", args.picture.env).contains("/shots/sky.hdr"));
        assert_eq!(args.name.as_deref(), Some("film.a"));
        let step = "compute = 'k.ptx'\ndomain = '8x8'\ninput = ['x=x.npy', 'y=/y.npy']\n\
            arg = 'n=-3'\nformat = 'exr'\n";
        let Read::Compute(args) = read(step).unwrap() else { panic!("a scene") };
        assert_eq!(args.input, ["x=/shots/x.npy", "y=/y.npy"]);
        assert_eq!(args.kernel.as_deref(), Some("/shots/k.ptx"));
        assert_eq!((args.arg[0].as_str(), args.detach), ("n=-3", true));
        assert_eq!(args.out.as_deref(), Some(Path::new("frame.exr")));
    }

    #[test]
    fn what_no_job_has_is_refused_with_the_steps_name() {
        for (step, told) in [
            ("render = 'a.gltf'\nsp = 7\n", "step `a`: sp: `tessera submit` has no such option"),
            ("render = 'a.gltf'\nout = '/etc/x'\n", "out: it is not an option of a job"),
            ("render = 'a.gltf'\nidentity = 'x'\n", "identity: it is not an option of a job"),
            ("render = 'a.gltf'\nspp = 'x'\n", "step `a`: invalid value 'x' for '--spp <N>'"),
            ("render = 'a.gltf'\nspp = true\n", "spp: takes a value"),
            ("render = 'a.gltf'\ndenoise = 'x'\n", "denoise: has to be true or false"),
            ("render = 'a.gltf'\nframe = 1\nframes = '1-2'\n", "cannot be used with"),
            ("compute = 'k.ptx'\n", "--domain"),
            ("compute = 'k.ptx'\ndomain = '8'\nlocal = true\n", "local: it is not an option"),
            ("compute = 'k.ptx'\ndomain = '8'\nformat = ['npy']\n", "one of npy, exr and png"),
        ] {
            let error = read(step).unwrap_err().to_string();
            assert!(error.contains(told), "{step}{error}");
        }
    }

    #[test]
    fn no_value_of_a_step_becomes_another_option() {
        let step = "render = '--json'\nvariant = '--watch'\n";
        let Read::Render(args) = read(step).unwrap() else { panic!("a kernel") };
        assert!(!args.watch && !args.json);
        assert_eq!(args.picture.variant.as_deref(), Some("--watch"));
    }

    #[test]
    fn options_that_name_files_are_looked_for_beside_the_template() {
        let reader = Reader::new(Path::new("/shots"));
        for argument in reader.submit.get_arguments().chain(reader.compute.get_arguments()) {
            let Some(name) = argument.get_long().filter(|name| !NOT_OF_JOBS.contains(name)) else {
                continue;
            };
            let values = argument.get_value_names().unwrap_or_default();
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let is_path =
                values.iter().any(|value| value.contains("FILE") || value.contains("DIR"))
                    || help.contains(".hdr");
            assert_eq!(is_path, FILE_OPTIONS.iter().any(|(path, _)| *path == name), "--{name}");
        }
    }
}
