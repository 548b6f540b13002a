//! Frame files on this machine: names them, and fetches each whole or not at all.

use crate::error::{CliError, Status};
use crate::folder_claim::{self, Claim};
use crate::pattern::{Pattern, PatternField};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::names::file_name;
use tessera_protocol::status::FrameFile;
use tessera_protocol::{FrameNumber, JobId};
use tessera_transport::blob::{Existing, Target, Wanted};
use tessera_transport::client::hash_file;
use tessera_transport::{BlobError, FarmClient};

/// Destination of frames: a folder or a pattern.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// `NAME.0001.exr` and so on in a folder.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The job's name, as it is in file names.
        stem: String,
        /// Other jobs of this name write to this folder too.
        shared: bool,
    },
    /// Files of one format, a pattern for each output. With it stands the output's extension:
    /// `exr`, `png` or `npy`, for a named output `flux.npy`.
    Patterns(Vec<(String, Pattern)>),
}

/// Place of an output's name in a pattern.
const OUTPUT: &str = "{output}";
/// Place of the job's id in a folder or a pattern.
const JOB: &str = "{job}";
/// Place of the job's name in a folder or a pattern.
const NAME: &str = "{name}";

/// What files are named after.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    job: JobId,
    id: String,
    stem: String,
    outputs: Vec<String>,
}

impl Named {
    /// A job with its name; `outputs` are the names of its outputs, if they have names.
    pub(crate) fn new(job: JobId, name: &str, outputs: Vec<String>) -> Self {
        Self { job, id: job.to_string(), stem: file_name(name), outputs }
    }

    fn fields(&self) -> [PatternField<'_>; 2] {
        [(JOB, &self.id), (NAME, &self.stem)]
    }
}

impl Destination {
    /// A folder where the path has no extension of a frame file or is a folder already, a pattern
    /// otherwise.
    pub(crate) fn new(output: &Path, of: &Named, frames: &FrameSet) -> Result<Self, CliError> {
        match format_of(output) {
            Some(format) if !output.is_dir() => {
                Self::with_fields((output, format), frames, &of.outputs, &of.fields())
            }
            _ => {
                let text = output.to_str();
                let place = |text: &str| text.replace(JOB, &of.id).replace(NAME, &of.stem);
                Ok(Self::Folder {
                    folder: text.map_or_else(|| output.to_owned(), |text| place(text).into()),
                    stem: of.stem.clone(),
                    shared: !text.is_some_and(|text| text.contains(JOB)),
                })
            }
        }
    }

    /// A pattern for these frames.
    pub(crate) fn file(
        output: &Path,
        format: &'static str,
        frames: &FrameSet,
    ) -> Result<Self, CliError> {
        Self::files(output, format, frames, &[])
    }

    /// A pattern for these frames for each of these outputs, whose name goes in the place of
    /// `{output}`; for a job without named outputs one pattern.
    pub(crate) fn files(
        output: &Path,
        format: &'static str,
        frames: &FrameSet,
        outputs: &[String],
    ) -> Result<Self, CliError> {
        Self::with_fields((output, format), frames, outputs, &[])
    }

    fn with_fields(
        (output, format): (&Path, &'static str),
        frames: &FrameSet,
        outputs: &[String],
        fields: &[PatternField<'_>],
    ) -> Result<Self, CliError> {
        let text = text_of(output)?;
        let has_place = text.contains(OUTPUT);
        let refused =
            |message: String, hint: String| Err(CliError::new(Status::Usage, message).hint(hint));
        match outputs.len() {
            0 if has_place => {
                let message = format!("`{text}`: the kernel's output has no name for {OUTPUT}");
                return refused(message, "name outputs with --output, or leave it out".to_owned());
            }
            0 => {
                let pattern = pattern(text, frames, fields)?;
                return Ok(Self::Patterns(vec![(format.to_owned(), pattern)]));
            }
            2.. if !has_place => {
                let message = format!("`{text}` gives {} outputs the same name", outputs.len());
                return refused(message, format!("write `{}`", with_place(output)));
            }
            _ => {}
        }
        let one = |name: &String| {
            Ok((format!("{name}.{format}"), pattern(&text.replace(OUTPUT, name), frames, fields)?))
        };
        Ok(Self::Patterns(outputs.iter().map(one).collect::<Result<_, CliError>>()?))
    }

    /// Makes sure that no other job's frames get these names in the same folder: where another job
    /// has them, this one's files go to the folder `NAME-JOB` beside. Keep the answer while files
    /// are written. With `take`, the names are this job's from now on.
    pub(crate) fn claim(&mut self, of: &Named, take: bool) -> Option<Claim> {
        let Self::Folder { folder, stem, shared: shared @ true } = self else { return None };
        if std::fs::create_dir_all(&*folder).is_err() {
            // The first file says why.
            return None;
        }
        match folder_claim::claim(folder, stem, of.job, take) {
            Ok(Claim::Other(_)) if take => None,
            Ok(Claim::Other(other)) => {
                folder.push(format!("{stem}-{}", of.id));
                *shared = false;
                Some(Claim::Other(other))
            }
            Ok(own) => Some(own),
            Err(error) => {
                // No file is replaced without it either.
                tracing::debug!(folder = %folder.display(), %error, "no record is kept");
                None
            }
        }
    }

    /// The folder of [`Self::Folder`].
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder { folder, .. } => Some(folder),
            Self::Patterns(_) => None,
        }
    }

    /// Tests the places of these frames before any work is done for them: no file's place is taken
    /// by a folder, and every folder exists and can be written. `option` is the option that named
    /// them.
    pub(crate) fn check(&self, option: &str, frames: &FrameSet) -> Result<(), CliError> {
        let Self::Patterns(patterns) = self else { return Ok(()) };
        let mut folders = BTreeSet::new();
        let places = patterns.iter().flat_map(|(_, pattern)| {
            frames.iter().map(move |frame| (pattern, pattern.path_for(frame)))
        });
        for (pattern, path) in places {
            if path.is_dir() {
                let message = format!("{option}: `{}` is a folder", path.display());
                return Err(CliError::new(Status::Usage, message)
                    .hint("give the name of a file, or remove the folder"));
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).to_owned();
            // A folder for each frame is made when the frame is written.
            let is_made_later = pattern.has_frame_folder() && !folder.exists();
            if !is_made_later && folders.insert(folder.clone()) {
                check_folder(option, &folder)?;
            }
        }
        Ok(())
    }

    /// The path of a frame's file, by its extension; None where this is not its format.
    pub(crate) fn path(&self, frame: FrameNumber, format: &str) -> Option<PathBuf> {
        match self {
            Self::Folder { folder, stem, .. } => {
                Some(folder.join(format!("{stem}.{:04}.{format}", frame.0)))
            }
            Self::Patterns(patterns) => {
                let found = patterns.iter().find(|(own, _)| own == format);
                found.map(|(_, pattern)| pattern.path_for(frame))
            }
        }
    }
}

fn text_of(output: &Path) -> Result<&str, CliError> {
    output.to_str().ok_or_else(|| CliError::new(Status::Usage, "the output path is not UTF-8"))
}

fn pattern(
    text: &str,
    frames: &FrameSet,
    fields: &[PatternField<'_>],
) -> Result<Pattern, CliError> {
    let usage = |error| CliError::new(Status::Usage, error);
    let pattern = Pattern::with_fields(text, fields).map_err(usage)?;
    pattern.check_frames(frames).map_err(usage)?;
    Ok(pattern)
}

/// The path with a place for an output's name, before all extensions.
fn with_place(output: &Path) -> String {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let (stem, rest) = name.split_once('.').unwrap_or((&name, ""));
    let name = format!("{stem}.{OUTPUT}.{rest}");
    output.with_file_name(name).display().to_string()
}

fn check_folder(option: &str, folder: &Path) -> Result<(), CliError> {
    if !folder.is_dir() {
        let message = format!("there is no folder `{}` to write to", folder.display());
        return Err(CliError::new(Status::NotFound, message)
            .hint(format!("make it first, or correct {option}")));
    }
    // The file has no name, and is gone at once.
    tempfile::tempfile_in(folder).map_err(|error| {
        CliError::from(error)
            .context(format!("{option}: cannot write to the folder `{}`", folder.display()))
    })?;
    Ok(())
}

/// The frame file format that a path's extension names.
pub(crate) fn format_of(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    let extension = if extension.eq_ignore_ascii_case("jpeg") { "jpg" } else { extension };
    ["exr", "png", "jpg", "npy"].into_iter().find(|format| extension.eq_ignore_ascii_case(format))
}

/// Outcome for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// It was fetched.
    New,
    /// It was there, whole.
    Kept,
    /// Something else has its name, and stays.
    NotReplaced(Found),
}

/// What has the name of a frame's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A file with the frame's bytes.
    Same,
    /// A file with other bytes.
    Different,
    /// A folder.
    Folder,
    /// A link to nothing.
    BrokenLink,
    /// A device, a pipe or a socket.
    Special,
}

/// Fetches a frame's file to its path. It gets that name only when it is complete and checked. An
/// equal file that exists already stays, and an interrupted fetch is continued. `existing` says
/// what becomes of another file; nothing that appears meanwhile is replaced against it. `progress`
/// gets the number of bytes so far.
pub(crate) async fn fetch(
    client: &FarmClient,
    (of, file): ((JobId, FrameNumber), &FrameFile),
    (path, existing): (&Path, Existing),
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Fetched, CliError> {
    match find(path, file).await {
        Some(Found::Same) => return Ok(Fetched::Kept),
        Some(found) if existing == Existing::Keep => return Ok(Fetched::NotReplaced(found)),
        _ => {}
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| {
            CliError::from(error).context(format!("cannot make the folder `{}`", folder.display()))
        })?;
    }
    let wanted = Wanted { hash: file.hash, of: Some(of) };
    let target = Target { path, existing };
    match client.get_blob(wanted, file.length, target, &mut |held, _| progress(held)).await {
        Ok(_) => Ok(Fetched::New),
        Err(BlobError::Occupied { .. }) => Ok(match find_placed(path, file).await {
            Found::Same => Fetched::Kept,
            found => Fetched::NotReplaced(found),
        }),
        Err(error) => Err(not_fetched(error, path, file)),
    }
}

/// Longest wait for another process that holds a name with an empty file while it places its own.
const PLACING_MAX: Duration = Duration::from_secs(1);

/// Finds what has taken a name meanwhile.
async fn find_placed(path: &Path, file: &FrameFile) -> Found {
    let begun = Instant::now();
    loop {
        let found = find(path, file).await.unwrap_or(Found::Different);
        let is_empty = std::fs::metadata(path).is_ok_and(|found| found.len() == 0);
        if found != Found::Different || !is_empty || begun.elapsed() > PLACING_MAX {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Finds what has the name of a file; None if nothing has.
async fn find(path: &Path, file: &FrameFile) -> Option<Found> {
    let (path, hash, length) = (path.to_owned(), file.hash, file.length);
    let find = move || {
        std::fs::symlink_metadata(&path).ok()?;
        let Ok(found) = std::fs::metadata(&path) else { return Some(Found::BrokenLink) };
        let is_same = || hash_file(&path).is_ok_and(|(found, _)| found == hash);
        Some(match () {
            () if found.is_dir() => Found::Folder,
            () if !found.is_file() => Found::Special,
            () if found.len() == length && is_same() => Found::Same,
            () => Found::Different,
        })
    };
    tokio::task::spawn_blocking(find).await.unwrap_or(Some(Found::Different))
}

/// Names the path once. A file that came whole but did not get its name is not lost, so its place
/// is told.
fn not_fetched(error: BlobError, path: &Path, file: &FrameFile) -> CliError {
    let shown = path.display();
    let BlobError::File { source, .. } = error else {
        return CliError::from(error).context(format!("`{shown}`"));
    };
    let error = CliError::from(source).context(format!("cannot write `{shown}`"));
    let part = Target::replacing(path).part(file.hash);
    match std::fs::metadata(&part) {
        Ok(found) if found.len() == file.length => {
            error.hint(format!("the file is whole; it is kept in `{}`", part.display()))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, outputs: &[String]) -> Named {
        Named::new(JobId(uuid::Uuid::from_u128(7)), name, outputs.to_vec())
    }

    /// The id of the job of [`named`].
    const ID: &str = "00000000-0000-0000-0000-000000000007";

    #[test]
    fn a_pattern_takes_only_files_of_its_own_format() {
        let (frames, of): (FrameSet, _) = ("1-3".parse().unwrap(), named("box", &[]));
        let folder = Destination::new(Path::new("out"), &of, &frames).unwrap();
        assert_eq!(folder.path(FrameNumber(7), "png"), Some("out/box.0007.png".into()));
        let pattern = Destination::new(Path::new("f.##.exr"), &of, &frames).unwrap();
        assert_eq!(pattern.path(FrameNumber(7), "exr"), Some("f.07.exr".into()));
        assert_eq!(pattern.path(FrameNumber(7), "png"), None);
        assert!(Destination::new(Path::new("f.exr"), &of, &frames).is_err());
    }

    #[test]
    fn every_output_has_files_of_its_own() {
        let frames: FrameSet = "1-3".parse().unwrap();
        let names = ["flux".to_owned(), "id".to_owned()];
        let of = |path: &str, names: &[String]| {
            Destination::new(Path::new(path), &named("run", names), &frames)
                .map_err(|error| error.to_string())
        };
        let folder = of("out", &names).unwrap();
        assert_eq!(folder.path(FrameNumber(2), "id.npy"), Some("out/run.0002.id.npy".into()));
        let pattern = of("a/{output}/run.{output}.##.npy", &names).unwrap();
        let path = pattern.path(FrameNumber(2), "flux.npy");
        assert_eq!(path, Some("a/flux/run.flux.02.npy".into()));
        assert_eq!(pattern.path(FrameNumber(2), "flux.exr"), None);
        assert_eq!(pattern.path(FrameNumber(2), "npy"), None);
        let error = of("a/run.##.npy", &names).unwrap_err();
        assert!(error.contains("gives 2 outputs the same name"), "{error}");
        assert!(error.contains("hint: write `a/run.{output}.##.npy`"), "{error}");
        let alone = of("run.##.npy", &names[..1]).unwrap();
        assert_eq!(alone.path(FrameNumber(2), "flux.npy"), Some("run.02.npy".into()));
        let error = of("run.{output}.##.npy", &[]).unwrap_err();
        assert!(error.contains("has no name for {output}"), "{error}");
        assert!(of("run.{output}.npy", &names).unwrap_err().contains("3 frames the same name"));
    }

    #[test]
    fn the_job_and_its_name_go_where_the_output_says() {
        let frames: FrameSet = "1-3".parse().unwrap();
        let of = named("a:b%d##", &[]);
        let path = |output: &str| {
            let destination = Destination::new(Path::new(output), &of, &frames).unwrap();
            destination.path(FrameNumber(2), "exr").unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(path("out/{job}"), format!("out/{ID}/a_b%d##.0002.exr"));
        assert_eq!(path("{name}/x"), "a_b%d##/x/a_b%d##.0002.exr");
        assert_eq!(path("{name}-{job}.####.exr"), format!("a_b%d##-{ID}.0002.exr"));
    }

    #[test]
    fn jobs_of_one_name_do_not_mix_in_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let frames: FrameSet = "1-3".parse().unwrap();
        let other = Named::new(JobId(uuid::Uuid::from_u128(8)), "box", Vec::new());
        let of = named("box", &[]);
        let claimed = |of: &Named, output: &Path, take: bool| {
            let mut destination = Destination::new(output, of, &frames).unwrap();
            let claim = destination.claim(of, take);
            let path = destination.path(FrameNumber(2), "exr").unwrap();
            (claim, path.strip_prefix(root.path()).unwrap().to_str().unwrap().to_owned())
        };
        let (first, path) = claimed(&other, root.path(), false);
        assert_eq!(path, "box.0002.exr");
        let (_, path) = claimed(&of, root.path(), false);
        assert_eq!(path, format!("box-{ID}/box.0002.exr"));
        let (claim, path) = claimed(&of, root.path(), true);
        assert!(claim.is_none() && path == "box.0002.exr", "{claim:?}");
        let (claim, path) = claimed(&of, &root.path().join("{job}"), false);
        assert!(claim.is_none() && path == format!("{ID}/box.0002.exr"), "{path}");
        drop(first);
        assert_eq!(claimed(&of, root.path(), false).1, "box.0002.exr");
    }

    #[test]
    fn places_that_cannot_be_written_are_refused() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("f.2.exr")).unwrap();
        let refused = |name: &str| {
            let frames: FrameSet = "1-3".parse().unwrap();
            let output = root.path().join(name);
            let checked = Destination::file(&output, "exr", &frames).unwrap().check("-o", &frames);
            checked.err().map(|error| (error.status(), error.to_string()))
        };
        let (status, error) = refused("f.%d.exr").unwrap();
        assert!(status == Status::Usage && error.contains("f.2.exr` is a folder"), "{error}");
        let (status, error) = refused("none/f.%d.exr").unwrap();
        assert!(status == Status::NotFound && error.contains("no folder"), "{error}");
        assert_eq!(refused("g.%d.exr"), None);
        assert_eq!(refused("frame-%d/g.exr"), None);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_whole_file_without_its_name_is_told() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.png");
        std::fs::write(root.path().join("a.png.00000000.part"), "12345").unwrap();
        let told = |length: u64| {
            let (hash, format) = (tessera_protocol::BlobHash([0; 32]), "png".to_owned());
            let file = FrameFile { format, hash, length, pixels_sha256: [0; 32] };
            let source = std::io::Error::other("it is a folder");
            not_fetched(BlobError::File { path: path.clone(), source }, &path, &file).to_string()
        };
        let (shown, whole) = (path.display(), told(5));
        assert!(whole.starts_with(&format!("error: cannot write `{shown}`: it is a")), "{whole}");
        assert!(whole.ends_with(&format!("it is kept in `{shown}.00000000.part`")), "{whole}");
        assert!(!told(6).contains("kept"));
    }
}
